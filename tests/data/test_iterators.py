"""Iterators of datasets: shared by threads, put back to a state, left in the middle."""

import gc
import os
import sys
import threading

import pytest

import gradtape as tf

Dataset = tf.data.Dataset
SPEC = tf.TensorSpec((), tf.int64)


@pytest.fixture
def quick_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


PIPELINES = {
    "rows": lambda: Dataset.range(400),
    "generator": lambda: Dataset.from_generator(lambda: iter(range(400)), output_signature=SPEC),
    "shuffle": lambda: Dataset.range(400).shuffle(50),
    "map": lambda: Dataset.range(400).map(lambda x: x + 0),
    "eager map": lambda: Dataset.range(400).map(lambda x: tf.py_function(lambda v: v, [x], tf.int64)),
    "filter": lambda: Dataset.range(800).filter(lambda x: x < 400),
    "prefetch": lambda: Dataset.from_generator(lambda: iter(range(400)), output_signature=SPEC).prefetch(3),
    "cache": lambda: Dataset.range(400).map(lambda x: x + 0).cache(),
    "unbatch": lambda: Dataset.range(400).batch(7).unbatch(),
    "interleave": lambda: Dataset.range(4).interleave(
        lambda k: Dataset.range(100).map(lambda x: 100 * k + x)
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_threads_that_share_an_iterator_get_every_element_once(name, quick_switches):
    it = iter(PIPELINES[name]())
    found, failed = [[] for _ in range(4)], []

    def consume(mine):
        try:
            mine.extend(int(x) for x in it)
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=consume, args=(mine,)) for mine in found]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed
    assert sorted(x for mine in found for x in mine) == list(range(400))


def test_a_state_is_behind_as_many_elements():
    ds = Dataset.range(10).map(lambda x: x + 0)
    it = iter(ds)
    for _ in range(4):
        next(it)
    state = it.serialize()
    other = iter(ds)
    other.deserialize(state)
    assert [int(x) for x in other] == [4, 5, 6, 7, 8, 9]
    other.deserialize(state)
    assert int(next(other)) == 4


@pytest.mark.parametrize(
    "state", [1e9, "1000000000", "", "4", "-1:0", "4:00000000", "x:1", b"4", None, "٤:1"]
)
def test_damaged_states_are_refused(state):
    it = iter(Dataset.counter())
    next(it)
    with pytest.raises(tf.errors.DataLossError, match="state"):
        it.deserialize(state)
    assert int(next(it)) == 1


@pytest.mark.parametrize("ds", [Dataset.range(5), Dataset.range(5).filter(lambda x: x >= 0)])
def test_states_of_longer_datasets_are_refused(ds):
    long = iter(Dataset.counter())
    for _ in range(7):
        next(long)
    with pytest.raises(tf.errors.InvalidArgumentError, match="after 7 elements, but the dataset has only 5"):
        iter(ds).deserialize(long.serialize())


def test_a_loop_that_is_left_and_another_pass():
    begun = []

    def generate():
        begun.append(len(begun))
        yield from range(5)

    ds = Dataset.from_generator(generate, output_signature=SPEC)
    for x in ds:
        if x == 2:
            break
    assert [int(x) for x in ds] == [0, 1, 2, 3, 4]
    assert begun == [0, 1]
    iter(ds.repeat())  # the generator starts when an element is requested
    assert begun == [0, 1]


def test_iterators_inside_generators():
    inner = Dataset.range(3)

    def generate():
        for x in inner:
            for y in inner.prefetch(1):
                yield 10 * x + y

    ds = Dataset.from_generator(generate, output_signature=SPEC)
    expected = [0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert [int(x) for x in ds] == [int(x) for x in ds.prefetch(2)] == expected
    it = iter(ds.prefetch(2))
    next(it)
    del it
    gc.collect()


def test_variables_are_read_when_an_element_is_requested():
    v = tf.Variable(1, dtype=tf.int64)
    found = []
    for x in Dataset.range(4).map(lambda x: x * v):
        found.append(int(x))
        v.assign_add(1)
    assert found == [0, 2, 6, 12]
    v.assign(0)
    found = []
    for x in Dataset.range(6).filter(lambda x: x >= v):
        found.append(int(x))
        v.assign_add(2)
    assert found == [0, 2, 4]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_lock_of_another_thread_does_not_reach_a_forked_process():
    waiting, go = threading.Event(), threading.Event()

    def generate():
        yield 0
        waiting.set()
        go.wait()
        yield 1

    it = iter(Dataset.from_generator(generate, output_signature=SPEC))
    next(it)
    thread = threading.Thread(target=lambda: next(it))
    thread.start()
    waiting.wait()
    child = os.fork()
    if child == 0:
        try:
            next(it)
        except ValueError:  # the generator was executing
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    go.set()
    thread.join()


def test_a_restored_iterator_continues_in_the_same_order():
    def make():
        return Dataset.range(20).shuffle(20).repeat(3).batch(4).prefetch(1)

    ds = make()
    list(ds)  # another pass, which has another order
    it = iter(ds)
    for _ in range(7):
        next(it)
    state = it.serialize()
    rest = [x.numpy().tolist() for x in it]
    for other in (iter(ds), iter(make()), it):  # `make()` shuffles by other seeds
        other.deserialize(state)
        assert [x.numpy().tolist() for x in other] == rest
    numbers = Dataset.random(rerandomize_each_iteration=True).take(5)
    it = iter(numbers)
    next(it)
    state = it.serialize()
    rest = [int(x) for x in it]
    other = iter(numbers)
    other.deserialize(state)
    assert [int(x) for x in other] == rest
