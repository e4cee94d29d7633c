"""Prefetched elements: produced on a thread that ends with its iterator, and no more than requested."""

import gc
import itertools
import os
import subprocess
import sys
import threading
import time

import pytest

import gradtape as tf
from gradtape.data import prefetch

Dataset = tf.data.Dataset


def threads():
    return [t for t in threading.enumerate() if t.name.startswith("gradtape.data")]


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.002)
    return condition()


def slow(n, made=None, seconds=0.002):
    def generate():
        for i in range(n):
            time.sleep(seconds)
            if made is not None:
                made.append(i)
            yield i

    return Dataset.from_generator(generate, output_signature=tf.TensorSpec((), tf.int64))


@pytest.fixture(autouse=True)
def no_threads_left():
    yield
    if threads():
        gc.collect()
    assert wait_for(lambda: not threads())


def test_order_and_number():
    ds = slow(20).prefetch(3)
    for _ in range(2):
        assert [int(x) for x in ds] == list(range(20))
    assert [int(x) for x in slow(6).prefetch(tf.data.AUTOTUNE)] == list(range(6))
    assert [int(x) for x in Dataset.range(5).prefetch(0)] == list(range(5))


@pytest.mark.parametrize("seconds", [0.002, 0.0])
@pytest.mark.parametrize("taken", [1, 4])
def test_it_runs_ahead_but_not_too_far(taken, seconds):
    made = []
    it = iter(slow(50, made, seconds).prefetch(3))
    assert not made, "nothing is made before an element is asked for"
    for _ in range(taken):
        next(it)
    assert wait_for(lambda: len(made) == taken + 3)
    time.sleep(0.02)
    assert len(made) == taken + 3
    assert len(threads()) == 1


@pytest.mark.parametrize(
    "step",
    [
        lambda ds: ds.map(lambda x: x + 1),
        lambda ds: ds.map(lambda x: tf.py_function(lambda v: v, [x], tf.int64)),
        lambda ds: ds.batch(1),
        lambda ds: ds.filter(lambda x: x >= 0),
        lambda ds: ds.flat_map(Dataset.from_tensors),
        lambda ds: ds.repeat(2),
        lambda ds: ds.cache(),
    ],
)
@pytest.mark.parametrize("room", [1, 2, tf.data.AUTOTUNE])
def test_it_runs_ahead_behind_other_steps(step, room):
    made = []
    it = iter(step(slow(20, made, 0.0)).prefetch(room))
    next(it)
    assert wait_for(lambda: len(made) >= 2)


def test_a_function_of_the_users_runs_ahead():
    seen = []

    def look(x):
        seen.append(int(x))
        return x

    it = iter(Dataset.range(20).map(lambda x: tf.py_function(look, [x], tf.int64)).prefetch(2))
    assert int(next(it)) == 0
    assert wait_for(lambda: len(seen) == 3)
    assert int(next(it)) == 1


def test_work_on_both_sides_overlaps():
    made, used = [], []
    ds = slow(12, made, seconds=0.03).prefetch(2)
    for _ in ds:
        before = len(made)
        time.sleep(0.06)
        used.append(len(made) - before)
    assert sum(used) >= 3, "elements that were made while the consumer worked"


def test_an_iterator_that_is_dropped_takes_its_thread_along():
    it = iter(slow(10**9).prefetch(2))
    for _ in range(5):
        next(it)
    assert threads()
    del it
    gc.collect()
    assert wait_for(lambda: not threads())


def test_a_loop_that_is_left_takes_its_thread_along():
    for i, _ in enumerate(slow(10**9).prefetch(2).map(lambda x: x + 1)):
        if i == 5:
            break
    del _
    gc.collect()
    assert wait_for(lambda: not threads())


def test_errors_come_with_their_traceback():
    def generate():
        for i in range(6):
            time.sleep(0.001)
            if i == 5:
                raise KeyError("five")
            yield i

    ds = Dataset.from_generator(generate, output_signature=tf.TensorSpec((), tf.int64)).prefetch(2)
    it = iter(ds)
    assert [int(next(it)) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(KeyError, match="five") as found:
        next(it)
    assert any(entry.name == "generate" for entry in found.traceback)
    with pytest.raises(StopIteration):
        next(it)


def test_errors_come_in_their_turn_and_others_after_them():
    ds = Dataset.range(6).map(lambda x: tf.py_function(lambda v: 6 // (v - 2), [x], tf.int64)).prefetch(2)
    found = []
    it = iter(ds)
    while True:
        try:
            found.append(int(next(it)))
        except StopIteration:
            break
        except Exception as e:
            found.append(type(e).__name__)
    assert len(found) == 6 and found[:2] + found[3:] == [-3, -6, 6, 3, 2]
    assert isinstance(found[2], str)


@pytest.mark.parametrize("seconds", [1e-6, 1e-3])
def test_pure_computations_get_a_thread_only_if_they_are_slow(seconds, monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(prefetch, "perf_counter", lambda: next(clock) * seconds)
    it = iter(Dataset.range(1000).map(lambda x: x * 2).batch(8).prefetch(2))
    for _ in range(20):
        next(it)
    assert bool(threads()) == (seconds > 1e-4)


def test_two_pipelines_at_once():
    a, b = slow(15).prefetch(2), slow(15).prefetch(2)
    assert [int(x + y) for x, y in Dataset.zip(a, b)] == [2 * i for i in range(15)]


def test_iterators_in_threads():
    results = {}

    def consume(k):
        results[k] = sum(int(x) for x in Dataset.range(200).map(lambda x: x * 2).batch(7).unbatch())

    workers = [threading.Thread(target=consume, args=(k,)) for k in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert set(results.values()) == {199 * 200}


def test_python_ends_while_elements_are_made():
    code = (
        "import gradtape as tf, time\n"
        "def g():\n"
        "    while True:\n"
        "        time.sleep(0.001)\n"
        "        yield 1.0\n"
        "ds = tf.data.Dataset.from_generator(g, tf.float32).batch(3).prefetch(2)\n"
        "it = iter(ds)\n"
        "for _ in range(6): next(it)\n"
        "print('done')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def in_child(function):
    """The result of a function in a forked process, as an exit code."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(function())
        except BaseException:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@FORK
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_iterators_go_on_in_a_forked_process():
    made = []
    it = iter(slow(10, made, 0.0).prefetch(3))
    next(it)
    assert wait_for(lambda: len(made) == 4)
    time.sleep(0.01)  # the thread has gone to sleep
    assert in_child(lambda: sum(int(x) for x in it)) == 45
    assert in_child(lambda: sum(int(x) for x in slow(10).prefetch(3))) == 45
    assert [int(x) for x in it] == list(range(1, 10))


@FORK
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_an_iterator_in_the_middle_of_an_element_says_so_in_a_forked_process():
    making, go = threading.Event(), threading.Event()

    def generate():
        yield 0
        making.set()
        go.wait()
        yield 1

    it = iter(Dataset.from_generator(generate, output_signature=tf.TensorSpec((), tf.int64)).prefetch(3))
    next(it)
    making.wait()

    def go_on():
        try:
            next(it)
        except tf.errors.UnavailableError as e:
            return 7 if "forked" in str(e) else 8
        return 0

    assert in_child(go_on) == 7
    go.set()
    assert int(next(it)) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="sends itself an interrupt")
def test_interrupts_reach_the_consumer():
    code = (
        "import gradtape as tf, time, os, signal, threading\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored, as in jobs of a shell\n"
        "waiting = threading.Event()\n"
        "def g():\n"
        "    for i in range(5):\n"
        "        time.sleep(0.001)\n"
        "        yield i\n"
        "    waiting.set()\n"
        "    time.sleep(1000)\n"
        "def interrupt():\n"
        "    waiting.wait()\n"
        "    begun.wait()\n"
        "    time.sleep(0.2)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "begun = threading.Event()\n"
        "threading.Thread(target=interrupt, daemon=True).start()\n"
        "it = iter(tf.data.Dataset.from_generator(g, tf.int32).prefetch(2))\n"
        "for _ in range(5): next(it)\n"
        "try:\n"
        "    begun.set()\n"
        "    next(it)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
        "    os._exit(0)\n"  # the test before this one covers the end of Python
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_wrong_size():
    with pytest.raises(tf.errors.InvalidArgumentError, match="buffer_size must be >= 0"):
        Dataset.range(3).prefetch(-3)
