"""Ctrl-C: long work stops soon, between two ops at the latest, and the process gives right results afterwards."""

import importlib.util
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends itself an interrupt")

# A child calls `work()` and is interrupted once that has begun. `_LIMIT` is enough for a busy machine, and less
# than the work would take.
_LIMIT = 10
_CHILD = """
import gc, os, signal, threading, time
import numpy as np
import gradtape as tf

{setup}

signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored, as in jobs of a shell
begun = []
def interrupt():
    time.sleep(0.5)
    begun.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)

def known():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.matmul(x, x) * tf.sigmoid(x))
    return tape.gradient(y, x).numpy()

before = known()
threading.Thread(target=interrupt, daemon=True).start()
try:
    work()
    print("finished")
except KeyboardInterrupt:
    took = time.monotonic() - begun[0]
    print("interrupted" if took < {limit} else f"interrupted after {{took:.1f}} s")
assert np.array_equal(known(), before)
small()
gc.collect()
# No tape is left behind that would keep what is computed now.
live = tf.config.memory_info()["live_tensors"]
x = tf.ones([4])
for _ in range(10):
    x = x * 2.0
del x
gc.collect()
assert tf.config.memory_info()["live_tensors"] <= live, "something is still recorded"
print("usable")
"""

_WORK = {
    "kernels": """
a = tf.ones([1500, 1500])
def work():
    for _ in range(10**6):
        tf.matmul(a, a)
def small():
    assert tf.matmul(a[:2, :3], a[:3, :2])[0, 0] == 3
""",
    "while_loop": """
@tf.function
def count(n):
    i = tf.constant(0, tf.int64)
    while i < n:
        i += 1
    return i
count(tf.constant(3, tf.int64))
def work():
    count(tf.constant(10**12, tf.int64))
def small():
    assert count(tf.constant(12345, tf.int64)) == 12345
""",
    "slow_iterations": """
@tf.function
def power(a, n):
    i = tf.constant(0)
    while i < n:
        i += 1
        a = tf.matmul(a, a) * 1e-3
    return a
a = tf.ones([1000, 1000])
def work():
    power(a, tf.constant(10**9))
def small():
    assert power(a, tf.constant(1))[0, 0] == 1.0
""",
    "gradient_of_while_loop": """
@tf.function
def slope(a, n):
    with tf.GradientTape() as tape:
        tape.watch(a)
        i, b = tf.constant(0), a
        while i < n:
            i += 1
            b = tf.matmul(b, a)
        y = tf.reduce_sum(b)
    return tape.gradient(y, a)
def work():
    slope(tf.eye(300), tf.constant(10**5))
def small():
    assert np.allclose(slope(tf.eye(2), tf.constant(3)), 4.0)
""",
    "program": """
@tf.function
def long(a):
    for _ in range(3000):
        a = tf.matmul(a, a) * 1e-3
    return a
a = tf.ones([1000, 1000])
graph = long.get_concrete_function(a)
def work():
    long(a)
def small():
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = tf.reduce_sum(a * 2.0)
    assert tape.gradient(y, a)[0, 0] == 2.0
""",
    "compiled_pass": """
x = tf.Variable(tf.eye(700))
def gradient(n):
    with tf.GradientTape() as tape:
        y = tf.identity(x)
        for _ in range(n):
            y = tf.matmul(y, x)
        y = tf.reduce_sum(y)
    return tape.gradient(y, x)
def work():
    while True:
        gradient(40)
def small():
    assert np.allclose(gradient(2), 3.0) and np.array_equal(x, np.eye(700))
""",
    "jacobian": """
x = tf.random.stateless_normal([64, 64], [1, 2]) * 0.1
def jacobian(x, n):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(n):
            y = tf.tanh(tf.matmul(y, y))
    return tape.jacobian(y, x)
def work():
    for _ in range(1000):
        jacobian(x, 60)
def small():
    assert jacobian(x[:2, :2], 2).shape == (2, 2, 2, 2)
""",
    "pipeline": """
def work():
    for _ in tf.data.Dataset.range(10**9).map(lambda x: x * 2).shuffle(100).batch(4).prefetch(2):
        pass
def small():
    assert [int(x) for x in tf.data.Dataset.range(3).map(lambda x: x * 2).prefetch(2)] == [0, 2, 4]
""",
    "parallel_pipeline": """
def heavy(x):
    return tf.reduce_sum(tf.ones([500, 500]) * tf.cast(x, tf.float32))
def work():
    for _ in tf.data.Dataset.range(10**9).map(heavy, num_parallel_calls=4).prefetch(2):
        pass
def small():
    assert int(next(iter(tf.data.Dataset.range(3).map(heavy, num_parallel_calls=4)))) == 0
""",
    "training": """
w = tf.Variable(tf.eye(50))
optimizer = tf.optimizers.Adam(1e-3)
@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.tanh(w @ w))
    optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    return loss
step()  # traced: on a busy machine the interrupt may come before the next is done
def work():
    while True:
        step()
def small():
    assert np.isfinite(step()) and np.isfinite(w).all()
    assert int(optimizer.iterations) > 1
""",
    "fit": """
keras = tf.keras
model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
x = np.ones([1000, 20], "f4")
model.fit(x, x[:, :1], verbose=0)
def work():
    model.fit(x, x[:, :1], epochs=10**6, verbose=0)
def small():
    assert np.isfinite(model.fit(x, x[:, :1], verbose=0).history["loss"][0])
""",
}


@pytest.mark.parametrize("name", _WORK)
def test_interrupt(name, tmp_path):
    if name == "fit" and importlib.util.find_spec("keras") is None:
        pytest.skip("Keras is not installed")
    program = tmp_path / "program.py"  # a file: autograph reads the source
    program.write_text(_CHILD.format(setup=_WORK[name], limit=_LIMIT))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300)
    assert done.stdout == "interrupted\nusable\n", done.stdout + done.stderr[-3000:]
