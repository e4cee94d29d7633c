"""Parallel maps and interleaves: concurrent calls, in order or as they finish."""

import gc
import threading

import pytest

import gradtape as tf
from tests.data.test_prefetch import slow, threads, wait_for

Dataset = tf.data.Dataset


@pytest.fixture(autouse=True)
def no_threads_left():
    yield
    if threads():
        gc.collect()
    assert wait_for(lambda: not threads())


def options(deterministic):
    made = tf.data.Options()
    made.deterministic = deterministic
    return made


def first_waits(n=6):
    """A function whose call for 0 lasts until those for all others are done."""
    others = threading.Semaphore(0)

    def wait(x):
        if x == 0:
            for _ in range(n - 1):
                assert others.acquire(timeout=30)
        else:
            others.release()
        return x

    return lambda x: tf.py_function(wait, [x], tf.int64)


def test_without_an_order_elements_come_as_they_are_ready():
    ds = Dataset.range(6).map(first_waits(), num_parallel_calls=2, deterministic=False)
    found = [int(x) for x in ds]
    assert found[-1] == 0 and sorted(found) == list(range(6))


def test_options_say_whether_the_order_matters():
    ds = Dataset.range(6).map(first_waits(), num_parallel_calls=2)
    assert [int(x) for x in ds.with_options(options(False))][-1] == 0
    # The option of the map itself takes precedence.
    ds = Dataset.range(6).map(first_waits(3), num_parallel_calls=3, deterministic=True).take(3)
    assert [int(x) for x in ds.with_options(options(False))] == [0, 1, 2]
    ds = Dataset.range(6).map(first_waits(), num_parallel_calls=2, deterministic=False)
    assert [int(x) for x in ds.with_options(options(True))][-1] == 0


@pytest.mark.parametrize("deterministic", [None, True])
def test_calls_run_beside_each_other_and_keep_their_order(deterministic):
    together = threading.Barrier(3)

    def meet(x):
        together.wait(timeout=30)
        return x

    ds = Dataset.range(9).map(
        lambda x: tf.py_function(meet, [x], tf.int64), num_parallel_calls=3, deterministic=deterministic
    )
    assert [int(x) for x in ds] == list(range(9))


@pytest.mark.parametrize("deterministic", [True, False])
def test_errors_of_parallel_calls(deterministic):
    def fail(x):
        if x % 3 == 2:
            raise ValueError("two of three")
        return x

    ds = Dataset.range(9).map(
        lambda x: tf.py_function(fail, [x], tf.int64), num_parallel_calls=2, deterministic=deterministic
    )
    found, it = [], iter(ds)
    while True:
        try:
            found.append(int(next(it)))
        except StopIteration:
            break
        except Exception:
            found.append(-1)
    expected = [0, 1, -1, 3, 4, -1, 6, 7, -1]
    assert found == expected if deterministic else sorted(found) == sorted(expected)


def test_they_do_not_run_too_far_ahead():
    made = []
    it = iter(slow(100, made, 0.0).map(lambda x: tf.py_function(lambda v: v, [x], tf.int64), 3))
    next(it)
    assert wait_for(lambda: len(made) == 4)
    assert len(threads()) == 3


def test_interleaves_without_an_order():
    go = threading.Event()

    def numbers(k):
        def generate():
            if k == 0:
                assert go.wait(timeout=30)
            for i in range(3):
                yield 10 * int(k) + i
            if k == 1:
                go.set()

        return Dataset.from_generator(generate, output_signature=tf.TensorSpec((), tf.int64))

    ds = Dataset.range(2).interleave(numbers, 2, num_parallel_calls=2, deterministic=False)
    assert [int(x) for x in ds] == [10, 11, 12, 0, 1, 2]
    go.clear()
    ds = Dataset.range(2).interleave(numbers, 2, num_parallel_calls=2).with_options(options(False))
    assert [int(x) for x in ds] == [10, 11, 12, 0, 1, 2]


@pytest.mark.parametrize("deterministic", [None, False])
@pytest.mark.parametrize("cycle", [1, 2, 5])
def test_parallel_interleaves_give_every_element(cycle, deterministic):
    ds = Dataset.range(7).interleave(
        lambda k: slow(4, seconds=0.0).map(lambda x: 10 * k + x),
        cycle, 2, num_parallel_calls=min(2, cycle), deterministic=deterministic,
    )  # fmt: skip
    found = [int(x) for x in ds]
    assert sorted(found) == sorted(10 * k + i for k in range(7) for i in range(4))
    if deterministic is None:
        alone = Dataset.range(7).interleave(lambda k: Dataset.range(4).map(lambda x: 10 * k + x), cycle, 2)
        assert found == [int(x) for x in alone]


def test_interleaves_that_are_left():
    it = iter(
        Dataset.range(5).interleave(lambda k: slow(10**9), 3, num_parallel_calls=3, deterministic=False)
    )
    for _ in range(5):
        next(it)
    assert threads()
    del it
    gc.collect()
    assert wait_for(lambda: not threads())
