"""Variables that several threads read and change: no crash, no torn value, a step is seen completely or not at all."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gradtape as tf
from tests.reliability.test_threads import at_once

_ROOT = Path(__file__).resolve().parents[2]


def in_child(code: str, timeout: int = 300) -> str:
    """The output of a program, run in a child process that may crash; it must succeed."""
    start = f"import sys; sys.path.insert(0, {str(_ROOT)!r})\n"
    command = [sys.executable, "-c", start + code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, (done.returncode, done.stderr[-3000:])
    return done.stdout


_ASSIGNED = """
import gradtape as tf
from tests.reliability.test_threads import at_once
sys.setswitchinterval(1e-5)
variables = [tf.Variable(tf.zeros([2048])) for _ in range(100)]

@tf.function
def spread():
    return tf.add_n([tf.reduce_max(v) - tf.reduce_min(v) for v in variables])

def work(k):
    if k == 0:
        return [float(spread()) for _ in range(150)]
    for i in range(15):
        for v in variables:
            v.assign(tf.fill([2048], float(2 * i + k)))

assert set(at_once(work, 3)[0]) == {0.0}
print("whole")
"""


def test_a_function_reads_values_assigned_by_other_threads():
    assert in_child(_ASSIGNED) == "whole\n"


_STEPS = """
import gradtape as tf
from tests.reliability.test_threads import at_once
sys.setswitchinterval(1e-5)
variables = [tf.Variable(tf.zeros([30_000])) for _ in range(20)]
ones = [tf.ones([30_000]) for _ in variables]
optimizer = tf.optimizers.SGD(1.0)
stepping = True

@tf.function
def step():
    for v, g in zip(variables, ones):
        v.assign_sub(g)

@tf.function
def ends():
    return (tf.reduce_min([tf.reduce_min(v) for v in variables]), tf.reduce_max([tf.reduce_max(v) for v in variables]))

def work(k):
    global stepping
    if k == 0:
        for i in range(150):
            if {steps!r} == "optimizer":
                optimizer.apply_gradients(list(zip(ones, variables)))
            else:
                step()
        stepping = False
    elif k == 1:
        seen = []
        while stepping:
            low, high = ends()
            assert float(low) == float(high), (float(low), float(high))
            seen.append(float(low))
        assert seen == sorted(seen, reverse=True)
    else:
        while stepping:
            for v in variables:
                x = v.numpy()
                assert x.min() == x.max(), (x.min(), x.max())

at_once(work, 3)
assert all(float(v[0]) == -150.0 for v in variables)
print("whole")
"""


@pytest.mark.parametrize("steps", ["optimizer", "function"])
def test_a_step_is_seen_wholly_or_not_at_all(steps):
    assert in_child(_STEPS.replace("{steps!r}", repr(steps))) == "whole\n"


def test_changes_wait_for_a_step():
    """Additions of several threads to one variable are not lost."""
    v = tf.Variable(tf.zeros([200_000]))
    x = tf.ones([200_000])

    def work(k):
        for _ in range(30):
            v.assign_add(x)

    at_once(work, 4)
    assert np.array_equal(v.numpy(), np.full([200_000], 120.0, np.float32))


def test_a_tensor_that_was_read_keeps_its_value():
    v = tf.Variable(tf.zeros([100_000]))
    optimizer = tf.optimizers.SGD(1.0)
    g = tf.ones([100_000])
    before = []
    for _ in range(4):
        before.append(v.read_value())
        optimizer.apply_gradients([(g, v)])
    assert [(float(x[0]), float(x[-1])) for x in before] == [
        (0.0, 0.0),
        (-1.0, -1.0),
        (-2.0, -2.0),
        (-3.0, -3.0),
    ]


_FORKED = """
import os
import gradtape as tf
v = tf.Variable(tf.zeros([2_000_000]))
optimizer = tf.optimizers.SGD(1.0)
g = tf.ones([2_000_000])
optimizer.apply_gradients([(g, v)])
import threading
stop = False
def train():
    while not stop:
        optimizer.apply_gradients([(g, v)])
t = threading.Thread(target=train)
t.start()
for _ in range(5):
    child = os.fork()
    if child == 0:
        try:
            x = v.numpy()
            good = x.min() == x.max()
        except RuntimeError as e:
            good = "forked" in str(e)
        v.assign(g)
        good = good and float(v[0]) == 1.0
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
stop = True
t.join()
print("whole")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_in_the_middle_of_a_step():
    assert in_child(_FORKED) == "whole\n"


_DAEMON = """
import threading
import time
import gradtape as tf
x = tf.ones([300, 300])
v = tf.Variable(tf.ones([300, 300]))
def work():
    while True:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.sin(v @ x))
        tape.gradient(y, v)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
print("left")
"""


def test_the_process_ends_while_threads_compute():
    """Python ends daemon threads at exit, when they take its lock; the process must not abort."""
    for _ in range(3):
        assert in_child(_DAEMON) == "left\n"
