"""Other processes: fork after the threads were used and inside of tapes, spawn, workers of multiprocessing."""

import multiprocessing
import os
import subprocess
import sys
import threading
import traceback
import warnings

import numpy as np
import pytest

import gradtape as tf

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    # Python 3.12 warns of forks in processes with threads; these tests show that they work.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


def in_child(work):
    """Runs `work` in a fork of this process; fails if it fails or hangs."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            warnings.simplefilter("error")
            work()
            os.write(write, b"done")
        except BaseException:
            os.write(write, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(write)
    timer = threading.Timer(60, lambda: os.kill(pid, 9))
    timer.start()
    said = b""
    while part := os.read(read, 4096):
        said += part
    os.close(read)
    os.waitpid(pid, 0)
    timer.cancel()
    assert said == b"done", said.decode() or "the child does not come back"


def large(n=700):
    """Work for several threads: a product and its gradient."""
    x = tf.constant(np.linspace(-1, 1, n * n).reshape(n, n).astype("f4"))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.sin(tf.matmul(x, x)))
    return tape.gradient(y, x).numpy()


def test_fork_after_the_pool_was_used():
    expected = large()

    def work():
        for _ in range(3):
            assert np.array_equal(large(), expected)

    in_child(work)
    assert np.array_equal(large(), expected)


def test_fork_of_a_fork():
    expected = large(300)
    in_child(lambda: in_child(lambda: np.testing.assert_array_equal(large(300), expected)))


def test_fork_inside_a_tape():
    x = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x

        def work():
            nonlocal y
            z = tf.reduce_sum(y * x)
            assert tape.gradient(z, x).numpy().tolist() == [3.0, 12.0, 27.0]
            x.assign([0.0, 0.0, 0.0])

        in_child(work)
        z = tf.reduce_sum(y)
    assert tape.gradient(z, x).numpy().tolist() == [2.0, 4.0, 6.0]


def test_fork_with_functions_and_optimizers():
    v = tf.Variable(0.01 * tf.ones([64, 64]))
    optimizer = tf.optimizers.Adam(0.1)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.tanh(v @ v))
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])
        return loss

    step()

    def work():
        before = float(step())
        assert float(step()) < before

    in_child(work)
    assert int(optimizer.iterations) == 1
    work()


def test_fork_while_other_threads_compute():
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            large(300)

    workers = [threading.Thread(target=busy) for _ in range(3)]
    for w in workers:
        w.start()
    try:
        expected = large(300)
        for _ in range(5):
            in_child(lambda: np.testing.assert_array_equal(large(300), expected))
    finally:
        stop.set()
        for w in workers:
            w.join()


def test_fork_while_other_threads_multiply():
    """Small products, so that threads often enter OpenBLAS and take its lock."""
    x = tf.constant(np.linspace(-1, 1, 64 * 64).reshape(64, 64).astype("f4"))
    expected = tf.matmul(x, x).numpy()
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            tf.matmul(x, x)

    workers = [threading.Thread(target=busy) for _ in range(3)]
    for w in workers:
        w.start()
    try:
        for _ in range(25):
            in_child(lambda: np.testing.assert_array_equal(tf.matmul(x, x), expected))
    finally:
        stop.set()
        for w in workers:
            w.join()


def test_fork_while_another_thread_loads_the_library():
    program = """
import os, signal, threading, time
import gradtape as tf
x = tf.ones([64, 64])
worker = threading.Thread(target=lambda: tf.matmul(x, x))
worker.start()
time.sleep(0.001)  # lets it begin
child = os.fork()
if child == 0:
    signal.alarm(60)
    print(float(tf.matmul(x, x)[0, 0]), flush=True)
    os._exit(0)
worker.join()
os.waitpid(child, 0)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"64.0\n", b"")


def test_fork_while_another_thread_traces():
    traces, forked = threading.Event(), threading.Event()

    @tf.function
    def double(x):
        if threading.current_thread() is worker:
            traces.set()
            forked.wait(60)
        return 2 * x

    worker = threading.Thread(target=lambda: double(tf.constant(1.0)))
    worker.start()
    traces.wait(60)
    try:
        in_child(lambda: np.testing.assert_array_equal(double(tf.constant(3.0)), 6.0))
    finally:
        forked.set()
        worker.join()
    assert float(double(tf.constant(4.0))) == 8.0


def test_fork_while_it_is_traced():
    """The locks of the forking thread are still held in the child, and released there."""
    here, children = os.getpid(), []
    y = again = None

    @tf.function(autograph=False)
    def double(x):
        children.append(os.fork())
        return 2 * x

    try:
        y = float(double(tf.constant(3.0)))
        again = float(double(tf.constant(4.0)))
    finally:
        if os.getpid() != here:
            os._exit(0 if (y, again) == (6.0, 8.0) else 1)
    assert (y, again) == (6.0, 8.0)
    assert os.waitpid(children[0], 0)[1] == 0


def test_random_numbers_of_forks_differ(unseeded):
    _draw(0)
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        drawn = pool.map(_draw, range(4), chunksize=1)
    assert len({tuple(d) for d in drawn}) == 4


def _draw(_):
    return tf.random.normal([4]).numpy().tolist()


def _gradient(given):
    x, v = given
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.sin(tf.matmul(x, v)))
    return tape.gradient(y, v), os.getpid()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(method):
    large(300)
    x, v = tf.random.normal([50, 20]), tf.Variable(tf.random.normal([20, 3]))
    expected, here = _gradient((x, v))
    with multiprocessing.get_context(method).Pool(2) as pool:
        for g, pid in pool.map(_gradient, [(x, v)] * 3):
            assert np.array_equal(g, expected) and pid != here


if sys.platform == "darwin":
    pytestmark.append(pytest.mark.skip(reason="forks of processes with threads are not safe there"))
