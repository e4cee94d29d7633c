"""Values on the device: where they are, how they are read, and when arrays are copied because they are shared."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core

N = 256


def jit(f):
    return tf.function(f, jit_compile=True)


def counter(shape=(N,), dtype=tf.float32):
    """A variable, and a function that adds one to it."""
    v = tf.Variable(tf.zeros(shape, dtype))

    @jit
    def step():
        v.assign_add(tf.ones(shape, dtype))
        return tf.reduce_sum(v)

    return v, step


def test_variables_stay_on_the_device(fetched):
    v, step = counter((16,), tf.bfloat16)
    for _ in range(5):
        result = step()
    assert not fetched
    assert result.numpy() == 5 * 16 and len(fetched) == 1
    assert v.numpy()[0] == 5.0 and v.numpy()[1] == 5.0
    assert len(fetched) == 2  # once for each value
    step()
    assert len(fetched) == 2


def test_training_looks_at_nothing_but_the_loss(fetched, engine):
    w = tf.Variable(tf.ones([4, 3], tf.bfloat16))
    optimizer = tf.optimizers.SGD(0.1, momentum=0.9)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ w - y) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss

    x, y = tf.ones([5, 4], tf.bfloat16), tf.zeros([5, 3], tf.bfloat16)
    losses = [step(x, y) for _ in range(4)]
    assert not fetched
    assert losses[0].numpy() > losses[3].numpy()
    assert len(fetched) == 2


def test_gradients_and_eager_steps_stay_there_too(fetched, engine):
    w = tf.Variable(tf.ones([4, 3], tf.bfloat16))
    optimizer = tf.optimizers.SGD(0.1, momentum=0.9)
    f = tf.function(lambda x: tf.reduce_mean((x @ w) ** 2))
    x = tf.ones([5, 4], tf.bfloat16)
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = f(x)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    assert not fetched


@pytest.mark.parametrize(
    "hold", ["tensor", "array", "view", "numpy of a tensor", "copy", "device array", "dlpack"]
)
def test_shared_values_do_not_change(hold):
    v, step = counter()
    step()
    held = {
        "tensor": lambda: v.read_value(),
        "array": lambda: v.numpy(),
        "view": lambda: np.asarray(memoryview(v.read_value())),
        "numpy of a tensor": lambda: np.asarray(v.read_value()),
        "copy": lambda: copy.deepcopy(v),
        "device array": lambda: _core.device_arrays([v])[0],
        "dlpack": lambda: np.from_dlpack(v.read_value()),
    }[hold]()
    for _ in range(3):
        step()
    assert v.numpy()[0] == 4.0
    held = held.numpy() if hasattr(held, "numpy") else np.asarray(held)
    assert held[0] == held[-1] == 1.0


def test_the_value_before_the_first_call_does_not_change():
    v, step = counter()
    before, view = v.read_value(), np.asarray(memoryview(v.read_value()))
    step(), step()
    assert before.numpy()[0] == view[0] == 0.0


def test_residuals_of_a_tape_do_not_change():
    v = tf.Variable(np.full(N, 2.0, np.float32))
    square = jit(lambda: v * v)
    bump = jit(lambda: v.assign_add(tf.ones([N])))
    bump()
    with tf.GradientTape() as tape:
        y = square() * v
    bump(), bump()
    assert tape.gradient(y, v).numpy()[0] == 27.0  # at 3, not at 5


def test_eager_code_and_functions_take_turns():
    v, step = counter()
    for k in range(3):
        step()
        v.assign_add(np.full(N, 10.0, np.float32))
        assert v.numpy()[0] == 11.0 * (k + 1)
    v.assign(np.zeros(N, np.float32))
    assert step().numpy() == N
    held = _core.device_arrays([v])[0]
    v.assign_sub(np.ones(N, np.float32))
    assert np.asarray(held)[0] == 1.0 and v.numpy()[0] == 0.0
    v[3].assign(7.0)
    assert step().numpy() == N + 7.0


def test_native_functions_read_values_on_the_device():
    v, step = counter()
    native = tf.function(lambda: v.assign(v * 2.0))
    for expected in (2.0, 6.0, 14.0):
        step(), native()
        assert v.numpy()[0] == expected


def test_a_result_is_the_argument_of_the_next(fetched):
    double = jit(lambda x: x * 2.0)
    x = tf.ones([N], tf.bfloat16)
    for _ in range(4):
        x = double(x)
    assert not fetched
    assert x.numpy()[0] == 16.0 and len(fetched) == 1


def test_the_memory_of_arguments_is_freed(counted_memory):
    f = jit(lambda x: tf.reduce_sum(x))
    f(tf.ones([N, N])).numpy()
    before = _core.memory_info()["live_tensors"]
    for _ in range(3):
        x = tf.ones([N, N]) * 2.0
        total = f(x) + f(x) + f(x)
        total.numpy()
    del x, total
    assert _core.memory_info()["live_tensors"] <= before


def test_an_output_that_is_an_input():
    v = tf.Variable([1.0, 2.0])
    x = tf.constant([3.0, 4.0])
    f = jit(lambda x: (x, x, v.read_value(), v.assign(x * 2.0)))
    for expected in ([1.0, 2.0], [6.0, 8.0]):
        a, b, old, new = f(x)
        assert a.numpy().tolist() == b.numpy().tolist() == [3.0, 4.0]
        assert old.numpy().tolist() == expected and new.numpy().tolist() == [6.0, 8.0]
    v.assign([0.0, 0.0])
    assert a.numpy().tolist() == x.numpy().tolist() == [3.0, 4.0] and new.numpy().tolist() == [6.0, 8.0]


def test_the_same_variable_twice():
    v, w = tf.Variable([1.0]), tf.Variable([2.0])
    f = jit(lambda a, b: (a.assign(b + 1.0), b.assign(a * 10.0)))
    f(v, w)
    assert (v.numpy(), w.numpy()) == (3.0, 30.0)
    f(v, v)
    assert v.numpy() == 40.0


def test_variables_change_places():
    v, w = tf.Variable([1.0]), tf.Variable([2.0])

    @jit
    def swap():
        a, b = v.read_value(), w.read_value()
        v.assign(b)
        w.assign(a)

    for expected in ((2.0, 1.0), (1.0, 2.0), (2.0, 1.0)):
        swap()
        assert (v.numpy(), w.numpy()) == expected


def test_a_variable_made_in_the_function():
    made = []

    @jit
    def f(x):
        if not made:
            made.append(tf.Variable(6.0))
        return made[0].assign_add(x)

    assert [f(tf.constant(3.0)).numpy() for _ in range(2)] == [9.0, 12.0]


def test_pickles_and_copies():
    v, step = counter((3,))
    y = jit(lambda x: x + 1.0)(tf.constant([1.0, 2.0]))
    step()
    for other in (pickle.loads(pickle.dumps(v)), copy.copy(v), copy.deepcopy(v)):
        assert other.numpy().tolist() == [1.0, 1.0, 1.0]
    for other in (pickle.loads(pickle.dumps(y)), copy.copy(y), copy.deepcopy(y)):
        assert other.numpy().tolist() == [2.0, 3.0]
    step()
    assert v.numpy().tolist() == [2.0, 2.0, 2.0]


def test_checkpoints(tmp_path):
    v, step = counter((3,))
    checkpoint = tf.train.Checkpoint(v=v)
    step()
    path = checkpoint.save(str(tmp_path / "c"))
    step()
    checkpoint.restore(path)
    assert v.numpy().tolist() == [1.0, 1.0, 1.0]
    assert step().numpy() == 6.0


# ---- threads, processes, interrupts -----------------------------------------------------------------------


def test_threads_run_one_function():
    v = tf.Variable(np.zeros(N, np.float32))
    f = jit(lambda x: tf.reduce_sum(tf.sin(x)) + tf.reduce_sum(v * 0.0))
    g = jit(lambda: v.assign_add(tf.ones([N])))
    found, wrong = [], []

    def work(k):
        try:
            x = tf.constant(np.full(N, float(k), np.float32))
            for _ in range(20):
                found.append(abs(f(x).numpy() - N * np.sin(k)) < 1e-2)
                value = v.numpy()
                if len(set(value.tolist())) != 1:
                    wrong.append("torn")
        except BaseException as e:
            wrong.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for _ in range(20):
        g()
    for t in threads:
        t.join()
    assert not wrong and len(found) == 80 and all(found)
    assert v.numpy()[0] == 20.0


def test_threads_and_callbacks():
    seen = {k: [] for k in range(4)}

    def note(x):
        seen[int(x[0])].append(threading.get_ident())
        if x[0] == 3:
            raise KeyError("three")
        return x

    f = jit(lambda x: tf.numpy_function(note, [x], tf.float32) * 2.0)
    results = {}

    def work(k):
        for _ in range(5):
            try:
                results.setdefault(k, []).append(f(tf.constant([float(k)])).numpy()[0])
            except KeyError as e:
                results.setdefault(k, []).append(e.args)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {k: [2.0 * k] * 5 for k in range(3)} | {3: [("three",)] * 5}


PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
import gradtape as tf
v = tf.Variable(np.zeros((200, 200), np.float32))
w = tf.Variable(0)
@tf.function(jit_compile=True)
def step(x):
    v.assign_add(tf.ones([200, 200]) * x + 0.0 * (v @ v))
    w.assign_add(1)
step(tf.constant(1.0))
armed = False
def handler(*_):
    global armed
    if armed:
        armed = False
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, handler)
done = []
def interrupt():
    while not done:
        time.sleep(0.002)
        os.kill(os.getpid(), signal.SIGINT)
thread = threading.Thread(target=interrupt)
thread.start()
for k in range(60):
    x = tf.constant(1.0)
    try:
        while True:
            armed = True  # again: what is raised in a callback of the garbage collector, as JAX has one, is lost
            step(x)
            x = x + 0.0 if k % 2 else x  # a new argument is not on the device
    except KeyboardInterrupt:
        value, count = v.numpy(), w.numpy()
        assert value.min() == value.max() == count, (value.min(), value.max(), count)
done.append(1)
thread.join()
print("whole")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name != "posix", reason="sends itself signals")
def test_interrupts_leave_variables_whole():
    env = os.environ | {"GRADTAPE_ENGINE": "native"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=240, env=env, check=False
    )
    assert done.stdout == "whole\n", done.stderr


@pytest.mark.skipif(os.name != "posix", reason="sends itself signals")
def test_an_interrupt_inside_jax_waits_until_variables_have_their_values(monkeypatch):
    from jax._src import stages

    real, sent = stages.Compiled.call, []

    def call(*args, **kwargs):
        results = real(*args, **kwargs)  # the arrays of the variables are donated
        sent.append(1)
        signal.raise_signal(signal.SIGINT)
        return results

    v = tf.Variable(np.zeros(N, np.float32))
    step = jit(lambda x: v.assign_add(x))
    monkeypatch.setattr(stages.Compiled, "call", staticmethod(call))
    handler = signal.getsignal(signal.SIGINT)
    interrupted = 0
    x = tf.ones([N])
    for k, given in enumerate([tf.ones([N]), x, x, x], 1):  # on the host, and on the device as it comes again
        try:
            step(given)
        except KeyboardInterrupt:
            interrupted += 1
        assert v.numpy()[0] == k
        assert signal.getsignal(signal.SIGINT) is handler
    assert interrupted == len(sent) >= 2


FORKS = """
import os, warnings
warnings.simplefilter("ignore")
import numpy as np
import gradtape as tf
v = tf.Variable(np.arange(5, dtype=np.float32))
f = tf.function(lambda: v.assign_add(tf.ones([5])), jit_compile=True)
y = f()
y.numpy(), v.numpy()
child = os.fork()
if child == 0:
    # What was looked at is there; eager ops and native functions go on.
    ok = y.numpy()[0] == 1.0 and v.numpy()[4] == 5.0 and (v + 1.0).numpy()[0] == 2.0
    v.assign_add(tf.ones([5]))
    ok = ok and tf.function(lambda: v * 2.0)().numpy()[0] == 4.0
    os._exit(0 if ok else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert f().numpy()[0] == 2.0
print("both")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_has_the_values():
    done = subprocess.run(
        [sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.stdout == "both\n", done.stderr


@pytest.mark.skipif("free-threading" in sys.version, reason="without the interpreter's lock they are copied")
@pytest.mark.parametrize("kind", ["alone", "new argument", "checked", "random"])
def test_arrays_that_are_not_shared_are_not_copied(kind, monkeypatch):
    import jax

    array_type = type(jax.numpy.zeros(()))
    real, copies = array_type.copy, []
    monkeypatch.setattr(array_type, "copy", lambda self: copies.append(self) or real(self))
    v = tf.Variable(np.zeros(N, np.float32))

    @jit
    def step(x):
        v.assign_add(tf.random.uniform([N]) if kind == "random" else x)
        return tf.gather(v, tf.cast(x[0], tf.int32)) if kind == "checked" else tf.reduce_sum(v)

    x = tf.ones([N])
    for _ in range(5):
        step(x if kind == "alone" else tf.ones([N]) * 1.0)
    assert not copies
    held = v.read_value()
    step(x)
    assert len(copies) == 1 and held.numpy()[0] != v.numpy()[0]


def test_a_tape_that_follows_nothing_leaves_old_values_alone():
    """Under a tape a function gets the values of its variables, which it must not overwrite."""
    v = tf.Variable(np.zeros(N, np.float32), trainable=False)
    step = jit(lambda: v.assign_add(tf.ones([N])))
    step(), step()
    old = v.read_value()
    with tf.GradientTape():
        step(), step()
    assert v.numpy()[0] == 4.0 and old.numpy()[0] == 2.0
