"""Too little memory: the core raises a Python exception, and variables have valid values afterwards."""

import sys

import pytest

import gradtape as tf
from tests.reliability.test_variables_in_threads import in_child

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS is what bounds memory here")

_START = """
import resource
import gradtape as tf
from gradtape import _core

def used():
    return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()

class room:
    '''Lets the process take so many bytes more, and no others.'''
    def __init__(self, more):
        self.more = more
    def __enter__(self):
        _core.release_cached_memory()
        resource.setrlimit(resource.RLIMIT_AS, (used() + self.more, resource.RLIM_INFINITY))
    def __exit__(self, *_):
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

Refused = (MemoryError, tf.errors.ResourceExhaustedError)
"""

_OPS = (
    _START
    + """
n = 1 << 18
x = tf.random.normal([n])
m = tf.reshape(x, [512, 512])
i = tf.reshape(tf.range(n), [n, 1])
image = tf.reshape(x, [1, 256, 256, 4])
c = tf.complex(x, x)
f = tf.function(lambda x: tf.reduce_sum(tf.sort(tf.sin(x)) * tf.cumsum(x)))
g = tf.function(lambda m: tf.reduce_sum(tf.nn.softmax(m @ m, -1), 0))
v = tf.Variable(x)

def gradient():
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.sin(v) * tf.cos(v))
    tape.gradient(y, v)

def long_tape():
    with tf.GradientTape() as tape:
        y = v[:8]
        for _ in range(3000):
            y = y * 1.0001
    return tape.gradient(y, v)

ops = [
    lambda: tf.sort(x), lambda: tf.argsort(x), lambda: tf.math.top_k(x, 1000), lambda: tf.signal.fft(c),
    lambda: tf.where(x > 0), lambda: tf.scatter_nd(i, x, [n]), lambda: tf.image.resize(image, [300, 300]),
    lambda: tf.cumsum(x), lambda: tf.unique(x), lambda: tf.transpose(m), lambda: m @ m, lambda: tf.linalg.svd(m[:64, :64]),
    lambda: tf.linalg.inv(m[:128, :128]), lambda: tf.nn.conv2d(image, tf.ones([3, 3, 4, 8]), 1, "SAME"),
    lambda: tf.boolean_mask(x, x > 0), lambda: tf.reduce_sum(m, 0), lambda: tf.concat([x, x], 0), lambda: f(x), lambda: g(m),
    gradient, long_tape, lambda: tf.constant([float(k) for k in range(2000)]), lambda: x.numpy(),
]
for op in ops:
    op()
refused = 0
for op in ops:
    for more in [0, 1 << 12, 1 << 16, *range(1 << 19, 1 << 23, 1 << 20)]:
        with room(more):
            try:
                op()
            except Refused:
                refused += 1
    op()
assert refused > 20, refused
print("only exceptions")
"""
)


def test_ops_and_functions():
    assert in_child(_OPS) == "only exceptions\n"


_STEPS = (
    _START
    + """
shapes = [[300, 300], [300], [700, 40], [40], [5]]
variables = [tf.Variable(tf.zeros(s)) for s in shapes]
x = tf.ones([64, 300])

@tf.function
def train():
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x @ variables[0] + variables[1]) + sum(tf.reduce_sum(v) for v in variables[2:])
    for v, g in zip(variables, tape.gradient(y, variables)):
        v.assign_sub(tf.sign(g))

adam = tf.optimizers.Adam(1.0, epsilon=1e-30)
ones = [tf.ones(s) for s in shapes]

def step():
    adam.apply_gradients(list(zip(ones, variables)))

def values():
    found = {float(f(v)) for v in variables for f in (tf.reduce_min, tf.reduce_max)}
    assert len(found) == 1, found
    return found.pop()

refused = 0
for change in (train, step):
    for v in variables:
        v.assign(tf.zeros_like(v))
    change(), change()
    for k in range(60):
        before = values()
        held = [v.read_value() for v in variables] if k % 2 else []  # half of the steps cannot be in place
        with room(k // 2 * (1 << 14)):
            try:
                change()
                changed = True
            except Refused:
                changed = False
                refused += 1
        del held
        assert (values() != before) == changed, (k, before, values(), changed)
assert refused, refused
print("whole")
"""
)


def test_steps_change_all_variables_or_none():
    assert in_child(_STEPS) == "whole\n"


_FIRST_PRODUCT = (
    _START
    + """
m = tf.ones([256, 256])
refused = 0
for more in range(0, 200 << 20, 8 << 20):
    with room(more):
        try:
            y = m @ m
            break
        except Refused:
            refused += 1
assert refused, "the library was loaded before"
assert float((m @ m)[0, 0]) == 256.0
print("loaded")
"""
)


def test_the_first_product():
    """OpenBLAS ends the process when it has no memory for its buffers: it is not called unless there is enough."""
    assert in_child(_FIRST_PRODUCT) == "loaded\n"


_AT_ONCE = (
    _START
    + """
import threading
import numpy as np

tf.config.threading.set_intra_op_parallelism_threads(1)
m = tf.random.normal([{size}, {size}], seed=1)
expected = (m @ m).numpy()  # one thread, one buffer
known = tf.linalg.inv(m[:64, :64]).numpy()
alone, ready, go, wrong = threading.Lock(), threading.Barrier(5), threading.Event(), []

def work():
    with alone:
        m @ m  # each has been inside, one after the other
    ready.wait()
    go.wait()
    for _ in range(20):
        try:
            if not np.array_equal(m @ m, expected) or not np.array_equal(tf.linalg.inv(m[:64, :64]), known):
                wrong.append(1)
        except Refused:
            pass

threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads:
    t.start()
ready.wait()
with room(24 << 20):
    go.set()
    for t in threads:
        t.join()
assert not wrong
print("only exceptions")
"""
)


@pytest.mark.parametrize("size", [200, 800])
def test_products_of_several_threads_at_once_need_no_more_than_there_is(size):
    """OpenBLAS allocates 32 MB for each thread inside of it, and ends the process if that fails."""
    assert "only exceptions" in in_child(_AT_ONCE.replace("{size}", str(size)))


def test_no_memory_is_not_a_reason_to_try_another_way():
    def greedy(kind):
        calls = []

        def f(x):
            calls.append(None)
            raise kind("no more")

        return f, calls

    for kind in (MemoryError, RecursionError):
        f, calls = greedy(kind)
        with pytest.raises(kind):
            tf.vectorized_map(f, tf.ones([3]))
        assert len(calls) == 1
