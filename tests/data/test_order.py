"""Orders of elements: shuffles draw TensorFlow's order for the same seeds. Numbers are TensorFlow's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf
from gradtape._src.tensors import random

Dataset = tf.data.Dataset
InvalidArgument = tf.errors.InvalidArgumentError


def numbers(ds):
    return [int(x) for x in ds]


def by_element(ds):
    """The same dataset as a stream, whose elements go through the pipeline one by one."""
    return Dataset.from_generator(lambda: iter(ds), output_signature=ds.element_spec)


@pytest.fixture(autouse=True)
def no_global_seed():
    before = random._seeds.given
    random._seeds.given = None
    yield
    random._seeds.given = before


SHUFFLED = {
    10: ([2, 8, 6, 5, 9, 1, 0, 3, 7, 4], [9, 1, 3, 0, 6, 4, 7, 8, 2, 5]),
    3: ([1, 2, 0, 3, 6, 4, 8, 5, 7, 9], [1, 0, 3, 2, 6, 7, 8, 4, 9, 5]),
}


@pytest.mark.parametrize("form", [lambda d: d, by_element])
@pytest.mark.parametrize("room", SHUFFLED)
def test_shuffle_is_tensorflows_and_changes_each_iteration(room, form):
    ds = form(Dataset.range(10)).shuffle(room, seed=7)
    assert (numbers(ds), numbers(ds)) == SHUFFLED[room]
    again = form(Dataset.range(10)).shuffle(room, seed=7).repeat(2)
    assert numbers(again) == sum(SHUFFLED[room], [])


@pytest.mark.parametrize("form", [lambda d: d, by_element])
def test_shuffle_without_reshuffling(form):
    ds = form(Dataset.range(10)).shuffle(3, seed=7, reshuffle_each_iteration=False)
    assert numbers(ds) == numbers(ds) == [0, 2, 3, 4, 5, 7, 6, 1, 8, 9]


@pytest.mark.parametrize("form", [lambda d: d, by_element])
def test_shuffle_over_epochs(form):
    ds = form(Dataset.range(5)).repeat(3).shuffle(4, seed=7)
    assert numbers(ds) == [0, 4, 2, 3, 0, 1, 1, 4, 3, 2, 2, 0, 4, 1, 3]


def test_shuffle_with_global_seed():
    tf.random.set_seed(5)
    first, second = Dataset.range(10).shuffle(10), Dataset.range(10).shuffle(10)
    assert numbers(first) == [7, 5, 4, 1, 0, 9, 6, 3, 8, 2]
    assert numbers(first) == [9, 1, 6, 4, 2, 7, 0, 5, 8, 3]
    assert numbers(second) == [1, 7, 4, 2, 3, 0, 8, 9, 5, 6]
    assert numbers(Dataset.range(10).shuffle(10, seed=1)) == [8, 2, 3, 1, 0, 4, 6, 7, 9, 5]


def test_shuffle_without_seed_differs_and_keeps_all():
    ds = Dataset.range(1000).shuffle(1000)
    first, second = numbers(ds), numbers(ds)
    assert sorted(first) == sorted(second) == list(range(1000))
    assert first != second


def test_long_shuffle_crosses_chunks():
    """More rows than are shuffled at a time; the sum is TensorFlow's with the seeds (5, 7)."""
    tf.random.set_seed(5)
    found = np.concatenate(list(Dataset.range(200000).shuffle(70000, seed=7).batch(4096).as_numpy_iterator()))
    assert int((np.arange(1, 200001) * found).sum()) == 2390403251132255


def test_the_native_loop_checks_its_arguments():
    from gradtape._core import shuffle_indices

    numbers, buffer = np.arange(3), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="must be int64"):
        shuffle_indices(np.zeros(2, np.int32), np.zeros(3, np.int64), numbers, 1, 2, True)
    with pytest.raises(ValueError, match="a cursor of three numbers"):
        shuffle_indices(buffer, np.zeros(2, np.int64), numbers, 1, 2, True)
    with pytest.raises(ValueError, match="the cursor is wrong"):
        shuffle_indices(buffer, np.array([0, 9, 0]), numbers, 1, 2, True)
    with pytest.raises(ValueError, match="with room"):
        shuffle_indices(np.zeros(0, np.int64), np.zeros(3, np.int64), numbers, 1, 2, True)
    with pytest.raises((BufferError, ValueError)):
        shuffle_indices(tf.zeros([2], tf.int64), np.zeros(3, np.int64), numbers, 1, 2, True)


def test_shuffle_of_unknown_size():
    assert sorted(numbers(Dataset.range(20).shuffle(tf.data.UNKNOWN_CARDINALITY))) == list(range(20))
    odd = Dataset.range(20).filter(lambda x: x % 2 == 1)
    assert sorted(numbers(odd.shuffle(tf.data.UNKNOWN_CARDINALITY))) == list(range(1, 20, 2))
    assert sorted(numbers(by_element(odd).shuffle(tf.data.UNKNOWN_CARDINALITY))) == list(range(1, 20, 2))
    with pytest.raises(InvalidArgument, match="without an end"):
        next(iter(Dataset.range(3).repeat().shuffle(tf.data.UNKNOWN_CARDINALITY)))


@given(
    n=st.integers(0, 40), room=st.integers(1, 50), skip=st.integers(0, 10), take=st.integers(-1, 50),
    shards=st.integers(1, 4), epochs=st.integers(0, 3), size=st.integers(1, 9), drop=st.booleans(),
)  # fmt: skip
def test_rows_and_elements_go_the_same_way(n, room, skip, take, shards, epochs, size, drop):
    """Pipelines over row numbers give the same elements as pipelines over elements."""

    def pipeline(ds):
        ds = ds.skip(skip).shuffle(room, seed=3).repeat(epochs).take(take).shard(shards, shards - 1)
        return ds.batch(size, drop_remainder=drop)

    x = np.arange(2 * n).reshape(n, 2)
    ds = Dataset.from_tensor_slices((x, x[:, 0] * 1.5))
    rows, elements = (list(pipeline(d).as_numpy_iterator()) for d in (ds, by_element(ds)))
    assert len(rows) == len(elements) == len(pipeline(ds))
    for a, b in zip(rows, elements, strict=True):
        np.testing.assert_array_equal(a[0], b[0])
        np.testing.assert_array_equal(a[1], b[1])


def test_take_skip_shard_repeat():
    ds = Dataset.range(7)
    assert numbers(ds.take(2)) == [0, 1]
    assert numbers(ds.take(-1)) == list(range(7))
    assert numbers(ds.skip(5)) == [5, 6]
    assert numbers(ds.skip(-1)) == []
    assert numbers(ds.shard(3, 1)) == [1, 4]
    assert numbers(ds.repeat(0)) == []
    assert numbers(ds.take(2).repeat().take(5)) == [0, 1, 0, 1, 0]
    assert numbers(Dataset.range(0).repeat()) == []


def test_batch_over_epochs():
    ds = Dataset.range(3).repeat(2).batch(4)
    assert [b.numpy().tolist() for b in ds] == [[0, 1, 2, 0], [1, 2]]


def test_enumerate():
    ds = Dataset.from_tensor_slices([5.0, 6.0]).enumerate(3)
    assert list(ds.as_numpy_iterator()) == [(3, 5.0), (4, 6.0)]
    assert ds.element_spec[0] == tf.TensorSpec((), tf.int64)


def test_unique():
    assert numbers(Dataset.from_tensor_slices([1, 2, 1, 3, 2]).unique()) == [1, 2, 3]
    assert list(Dataset.from_tensor_slices(["a", "b", "a"]).unique().as_numpy_iterator()) == [b"a", b"b"]
    with pytest.raises(TypeError, match="does not support type <dtype: 'float32'>"):
        Dataset.from_tensor_slices([1.0]).unique()


def test_random():
    tf.random.set_seed(5)
    ds = Dataset.random(seed=3).take(5)
    assert numbers(ds) == numbers(ds) == [799339370, 1364733611, 2614644758, 848062436, 1402720254]
    ds = Dataset.random(seed=3, rerandomize_each_iteration=True).take(3)
    assert numbers(ds) == [3890593828, 390812294, 897017174]
    assert numbers(ds) == [4143349286, 986351528, 4120879482]


CARDINALITIES = [
    (lambda d: d, 5), (lambda d: d.repeat(3), 15), (lambda d: d.repeat(), -1), (lambda d: d.repeat(0), 0),
    (lambda d: d.batch(3), 2), (lambda d: d.batch(3, True), 1), (lambda d: d.take(3), 3),
    (lambda d: d.repeat().take(9), 9), (lambda d: d.skip(2), 3), (lambda d: d.shard(3, 1), 2),
    (lambda d: d.filter(lambda x: True), -2), (lambda d: d.filter(lambda x: True).repeat(), -1),
    (lambda d: d.map(lambda x: x), 5), (lambda d: d.concatenate(d), 10), (lambda d: Dataset.zip(d, d.take(2)), 2),
    (lambda d: Dataset.zip(d, d.repeat()), 5), (lambda d: d.batch(3).unbatch(), -2),
    (lambda d: d.batch(2, True).unbatch(), 4), (lambda d: d.window(2), 3), (lambda d: d.window(3, 1, 2, True), 1),
    (lambda d: d.window(2, 1), 5), (lambda d: d.take_while(lambda x: True), -2), (lambda d: d.unique(), -2),
    (lambda d: d.cache().shuffle(2).prefetch(1).enumerate(), 5), (lambda d: d.scan(0, lambda s, x: (s, x)), 5),
    (lambda d: Dataset.random(1), -1), (lambda d: Dataset.counter(), -1),
]  # fmt: skip


@pytest.mark.parametrize(("make", "expected"), CARDINALITIES)
def test_cardinality(make, expected):
    ds = make(Dataset.range(5))
    assert ds.cardinality().dtype is tf.int64
    assert int(ds.cardinality()) == expected
    assert int(tf.data.experimental.cardinality(ds)) == expected
    assert bool(ds)
    if expected >= 0:
        assert len(ds) == expected == sum(1 for _ in ds)
    else:
        word = "infinite" if expected == tf.data.INFINITE_CARDINALITY else "length is unknown"
        with pytest.raises(TypeError, match=word):
            len(ds)


def test_wrong_arguments():
    ds = Dataset.range(4)
    for wrong in (0, -1):
        with pytest.raises(InvalidArgument, match="buffer_size must be greater than zero"):
            ds.shuffle(wrong)
    with pytest.raises(InvalidArgument, match="Index must be between 0 and 1"):
        ds.shard(2, 2)
    with pytest.raises(InvalidArgument, match="Number of shards"):
        ds.shard(0, 0)
    for method in ("take", "skip", "repeat", "batch", "shuffle", "prefetch"):
        for wrong in ("a", 2.5):
            with pytest.raises(TypeError, match=f"Dataset.{method}: .* must be an integer"):
                getattr(ds, method)(wrong)


def test_options():
    options = tf.data.Options()
    options.deterministic = False
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    ds = Dataset.range(3).with_options(options).batch(2)
    assert ds.options().deterministic is False
    assert ds.options().experimental_distribute.auto_shard_policy == 2
    assert Dataset.range(3).options().deterministic is None
    options.threading.private_threadpool_size = 4
    assert Dataset.range(3).with_options(options).options().threading.private_threadpool_size == 4
    with pytest.raises(AttributeError, match="Cannot set the property foo on Options"):
        options.foo = 1
    with pytest.raises(TypeError, match='"deterministic" must be of type'):
        options.deterministic = 3


def test_assert_cardinality():
    promise = tf.data.experimental.assert_cardinality
    ds = Dataset.range(5).filter(lambda x: True).apply(promise(5))
    assert len(ds) == 5
    assert numbers(ds) == list(range(5))
    for wrong in (4, 6):
        with pytest.raises(tf.errors.FailedPreconditionError, match=f"expected to contain {wrong} elements"):
            list(Dataset.range(5).apply(promise(wrong)))


# ---- passes without elements, as in TensorFlow 2.21 ------------------------------------------------


def passes(empty=(2,)):
    """A dataset whose n-th pass gives 4 n, ..., 4 n + 3, but nothing if n is in `empty`."""
    count = [0]

    def generate():
        count[0] += 1
        if count[0] not in empty:
            yield from range(4 * count[0], 4 * count[0] + 4)

    return Dataset.from_generator(generate, output_signature=tf.TensorSpec((), tf.int64))


def test_an_empty_pass_ends_a_repetition_without_a_number():
    ds = passes().repeat().take(10)
    assert [int(x) for x in ds] == [4, 5, 6, 7]
    assert [int(x) for x in ds] == [12, 13, 14, 15, 16, 17, 18, 19, 20, 21]
    assert [int(x) for x in passes().batch(2).unbatch().repeat().take(10)] == [4, 5, 6, 7]


def test_an_empty_pass_does_not_end_a_number_of_repetitions():
    assert [int(x) for x in passes().repeat(3)] == [4, 5, 6, 7, 12, 13, 14, 15]


def test_an_empty_pass_after_a_shuffle():
    shuffled = [4, 7, 5, 6, 15, 12, 13, 14, 16, 18]
    assert [int(x) for x in passes().shuffle(10, seed=1).repeat().take(10)] == shuffled
    assert [int(x) for x in passes().shuffle(10, seed=1).repeat(3)] == shuffled[:8]
    small = [4, 6, 7, 5, 13, 12, 15, 14, 16, 18]
    assert [int(x) for x in passes().shuffle(2, seed=1).repeat().take(10)] == small
    fixed = passes().shuffle(10, seed=1, reshuffle_each_iteration=False).repeat().take(10)
    assert [int(x) for x in fixed] == [7, 4, 5, 6, 15, 12, 13, 14, 19, 16]
    assert len(list(passes((2, 3, 4)).shuffle(4).repeat().take(8))) == 8
    assert list(passes((1,)).shuffle(4).repeat()) == []
    assert list(Dataset.range(3).filter(lambda x: x > 5).shuffle(3).repeat()) == []


def test_a_generator_that_is_used_up_does_not_repeat_for_ever():
    once = iter([1, 2, 3])
    ds = (
        Dataset.from_generator(lambda: once, output_signature=tf.TensorSpec((), tf.int64)).shuffle(2).repeat()
    )
    it = iter(ds)
    assert sorted(int(next(it)) for _ in range(3)) == [1, 2, 3]
    with pytest.raises(tf.errors.OutOfRangeError, match="no element in 10000 passes"):
        next(it)


def test_orders_of_later_iterations():
    """`repeat(count)` starts one pass too many, unless it is fused with a shuffle."""
    ds = Dataset.range(4).shuffle(4, seed=1).prefetch(1).repeat(2)
    assert [[int(x) for x in ds] for _ in range(2)] == [[0, 3, 1, 2, 2, 3, 1, 0], [0, 2, 1, 3, 2, 1, 0, 3]]
    ds = Dataset.range(4).shuffle(4, seed=1).repeat(2).repeat(2)
    assert [[int(x) for x in ds] for _ in range(2)] == [
        [0, 3, 1, 2, 2, 3, 1, 0, 3, 0, 1, 2, 0, 2, 1, 3],
        [2, 1, 0, 3, 0, 2, 1, 3, 3, 0, 2, 1, 0, 2, 3, 1],
    ]


def test_samples_with_weights_that_change():
    a, b = Dataset.range(5), Dataset.range(10, 15)
    turns = Dataset.from_tensor_slices([[1.0, 0.0], [0.0, 1.0]]).repeat()
    ds = Dataset.sample_from_datasets([a, b], turns, seed=3)
    assert [int(x) for x in ds.take(8)] == [0, 10, 1, 11, 2, 12, 3, 13]
    assert list(Dataset.sample_from_datasets([a, b], [0.0, 0.0])) == []
    assert int(Dataset.sample_from_datasets([a, b.repeat()]).cardinality()) == tf.data.INFINITE_CARDINALITY
    with pytest.raises(ValueError, match="shape of `weights` should be compatible"):
        Dataset.sample_from_datasets([a, b], tf.constant([1.0, 1.0, 1.0]))


def test_options_of_a_dataset_are_not_changed():
    options = Dataset.range(3).options()
    with pytest.raises(ValueError, match="has no effect"):
        options.deterministic = False
    with pytest.raises(ValueError, match="has no effect"):
        options.threading.private_threadpool_size = 4
