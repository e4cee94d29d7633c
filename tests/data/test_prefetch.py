"""Elements made ahead: on a thread, no more than asked for, which ends with its iterator."""

import gc
import subprocess
import sys
import threading
import time

import pytest

import gradtape as tf

Dataset = tf.data.Dataset


def threads():
    return [t for t in threading.enumerate() if t.name.startswith("gradtape.data")]


def wait_for(condition, seconds=5.0):
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
    gc.collect()
    assert wait_for(lambda: not threads())


def test_order_and_number():
    ds = slow(20).prefetch(3)
    for _ in range(2):
        assert [int(x) for x in ds] == list(range(20))
    assert [int(x) for x in slow(6).prefetch(tf.data.AUTOTUNE)] == list(range(6))
    assert [int(x) for x in Dataset.range(5).prefetch(0)] == list(range(5))


def test_it_runs_ahead_but_not_too_far():
    made = []
    it = iter(slow(50, made).prefetch(3))
    for _ in range(4):
        next(it)
    assert wait_for(lambda: len(made) == 4 + 3)
    time.sleep(0.02)
    assert len(made) == 4 + 3
    assert len(threads()) == 1


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


def test_what_is_fast_needs_no_thread():
    it = iter(Dataset.range(1000).batch(8).prefetch(2))
    for _ in range(20):
        next(it)
    assert not threads()


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


@pytest.mark.skipif(sys.platform == "win32", reason="sends itself an interrupt")
def test_interrupts_reach_the_consumer():
    code = (
        "import gradtape as tf, time, os, signal, threading\n"
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
        "    os._exit(0)\n"  # how Python ends meanwhile is the test before this one
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_wrong_size():
    with pytest.raises(tf.errors.InvalidArgumentError, match="buffer_size must be >= 0"):
        Dataset.range(3).prefetch(-3)
