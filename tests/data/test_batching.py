"""Batches, windows, groups, and several datasets as one."""

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.tensors import random

Dataset = tf.data.Dataset
Spec = tf.TensorSpec
InvalidArgument = tf.errors.InvalidArgumentError


def values(ds):
    return list(ds.as_numpy_iterator())


def lists(ds):
    return [tf.nest.map_structure(lambda v: v.tolist(), e) for e in ds.as_numpy_iterator()]


def lengths(*sizes):
    """Rows of these lengths, all of ones."""
    return Dataset.from_generator(
        lambda: iter([[1] * n for n in sizes]), output_signature=Spec((None,), tf.int32)
    )


# ---- batch --------------------------------------------------------------------------------------


def test_batch():
    ds = Dataset.range(5).batch(2)
    assert lists(ds) == [[0, 1], [2, 3], [4]]
    assert lists(Dataset.range(5).batch(2, drop_remainder=True)) == [[0, 1], [2, 3]]
    assert ds.element_spec == Spec((None,), tf.int64)
    assert Dataset.range(5).batch(2, drop_remainder=True).element_spec == Spec((2,), tf.int64)
    assert lists(Dataset.range(5).batch(2).batch(2)) == [[[0, 1], [2, 3]], [[4]]]


def test_batches_share_memory_where_rows_lie_side_by_side():
    x = tf.constant(np.arange(12.0).reshape(6, 2))
    a, b = Dataset.from_tensor_slices(x).batch(3)
    assert np.shares_memory(np.asarray(a), np.asarray(x))
    assert np.shares_memory(np.asarray(b), np.asarray(x))


def test_batch_of_text():
    ds = Dataset.from_tensor_slices(["a", "bb", "c"]).batch(2)
    assert lists(ds) == [[b"a", b"bb"], [b"c"]]
    assert ds.element_spec == Spec((None,), tf.string)
    assert next(iter(ds)).shape == (2,)


def test_wrong_batches():
    for wrong in (0, -1):
        with pytest.raises(InvalidArgument, match="Batch size must be greater than zero"):
            Dataset.range(3).batch(wrong)
    with pytest.raises(InvalidArgument, match="number of elements does not match"):
        list(lengths(1, 2).batch(2))


def test_unbatch():
    ds = Dataset.from_tensor_slices(np.arange(6).reshape(3, 2)).unbatch()
    assert values(ds) == list(range(6))
    assert ds.element_spec == Spec((), tf.int64)
    pairs = Dataset.from_tensors((np.arange(3), ["a", "b", "c"])).unbatch()
    assert values(pairs) == [(0, b"a"), (1, b"b"), (2, b"c")]
    with pytest.raises(ValueError, match="scalar components"):
        Dataset.range(3).unbatch()
    with pytest.raises(ValueError, match="Encountered both 3 and 2"):
        list(Dataset.from_tensors((np.arange(3), np.arange(2))).unbatch())


def test_rebatch():
    ds = Dataset.range(10).batch(4)
    assert lists(ds.rebatch(3)) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert lists(ds.rebatch(3, drop_remainder=True)) == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert lists(ds.rebatch([1, 2])) == [[0], [1, 2], [3], [4, 5], [6], [7, 8], [9]]
    assert ds.rebatch(3, True).element_spec == Spec((3,), tf.int64)
    assert ds.rebatch(3).element_spec == Spec((None,), tf.int64)
    with pytest.raises(ValueError, match="scalar elements"):
        Dataset.range(3).rebatch(2)


# ---- padding ------------------------------------------------------------------------------------


def test_padded_batch():
    ds = lengths(1, 2, 3)
    assert lists(ds.padded_batch(2)) == [[[1, 0], [1, 1]], [[1, 1, 1]]]
    assert lists(ds.padded_batch(2, [5], -1)) == [
        [[1, -1, -1, -1, -1], [1, 1, -1, -1, -1]],
        [[1, 1, 1, -1, -1]],
    ]
    assert ds.padded_batch(2).element_spec == Spec((None, None), tf.int32)
    assert ds.padded_batch(2, [5], drop_remainder=True).element_spec == Spec((2, 5), tf.int32)


def test_padded_batch_of_a_nest():
    ds = Dataset.zip(lengths(1, 2), Dataset.range(2))
    assert lists(ds.padded_batch(2)) == [([[1, 0], [1, 1]], [0, 1])]
    shapes, fill = ([None], []), (9, np.int64(0))
    assert lists(ds.padded_batch(2, shapes, fill)) == [([[1, 9], [1, 1]], [0, 1])]
    named = ds.map(lambda a, b: {"a": a, "b": b})
    assert lists(named.padded_batch(2, {"a": [3], "b": []})) == [{"a": [[1, 0, 0], [1, 1, 0]], "b": [0, 1]}]


def test_padded_batch_of_text():
    ds = Dataset.from_generator(lambda: iter([["a"], ["b", "c"]]), output_signature=Spec((None,), tf.string))
    assert lists(ds.padded_batch(2)) == [[[b"a", b""], [b"b", b"c"]]]


def test_wrong_padding():
    ds = lengths(1, 2, 3)
    with pytest.raises(tf.errors.DataLossError, match="smaller size than the input element"):
        list(ds.padded_batch(3, [2]))
    with pytest.raises(ValueError, match="is not compatible with the shape"):
        ds.padded_batch(2, [None, None])
    for wrong in (1.5, np.float32(1.5)):
        with pytest.raises(TypeError, match="does not match type"):
            ds.padded_batch(2, padding_values=wrong)
    with pytest.raises(ValueError, match="has unknown rank"):
        Dataset.from_generator(lambda: iter([[1]]), tf.int32).padded_batch(2)
    with pytest.raises(TypeError, match="structure of an element"):
        Dataset.zip(ds, ds).padded_batch(2, [None])


# ---- windows and groups -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"size": 3}, [[0, 1, 2], [3, 4, 5], [6]]),
        ({"size": 3, "shift": 1, "stride": 2, "drop_remainder": True}, [[0, 2, 4], [1, 3, 5], [2, 4, 6]]),
        ({"size": 3, "shift": 1, "stride": 2}, [[0, 2, 4], [1, 3, 5], [2, 4, 6], [3, 5], [4, 6], [5], [6]]),
        ({"size": 2, "shift": 3, "drop_remainder": True}, [[0, 1], [3, 4]]),
        ({"size": 2, "shift": 3}, [[0, 1], [3, 4], [6]]),
        ({"size": 9, "drop_remainder": True}, []),
    ],
)
def test_window(arguments, expected):
    ds = Dataset.range(7).window(**arguments)
    assert [[int(x) for x in w] for w in ds] == expected
    assert len(ds) == len(expected)


def test_windows_of_nests():
    ds = Dataset.zip(Dataset.range(3), Dataset.range(3)).window(2)
    assert [(values(a), values(b)) for a, b in ds] == [([0, 1], [0, 1]), ([2], [2])]
    assert isinstance(ds.element_spec[0], tf.data.DatasetSpec)
    ds = Dataset.from_tensor_slices({"a": [1, 2, 3]}).window(2)
    assert [values(w["a"]) for w in ds] == [[1, 2], [3]]


def test_series_of_windows():
    """Windows of a time series as examples."""
    ds = Dataset.range(10).window(5, shift=1, drop_remainder=True).flat_map(lambda w: w.batch(5))
    ds = ds.map(lambda w: (w[:-1], w[-1])).batch(4)
    x, y = next(iter(ds))
    assert x.numpy().tolist() == [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]]
    assert y.numpy().tolist() == [4, 5, 6, 7]


def test_wrong_windows():
    for arguments, words in (((0,), "size"), ((2, 0), "shift"), ((2, 1, 0), "stride")):
        with pytest.raises(InvalidArgument, match=f"Window {words} must be greater than zero"):
            Dataset.range(3).window(*arguments)


def test_group_by_window():
    ds = Dataset.range(7)
    assert lists(ds.group_by_window(lambda x: x % 2, lambda k, d: d.batch(2), 2)) == [
        [0, 2],
        [1, 3],
        [4, 6],
        [5],
    ]
    sized = ds.group_by_window(lambda x: x % 2, lambda k, d: d.batch(10), window_size_func=lambda k: k + 1)
    assert lists(sized) == [[0], [2], [1, 3], [4], [6], [5]]
    assert sized.element_spec == Spec((None,), tf.int64)
    with pytest.raises(ValueError, match="must be specified"):
        ds.group_by_window(lambda x: x, lambda k, d: d)
    with pytest.raises(ValueError, match="cannot be specified at the same time"):
        ds.group_by_window(lambda x: x, lambda k, d: d, 2, lambda k: k)
    with pytest.raises(ValueError, match="dtype int64 for Tensor with dtype int32"):
        ds.group_by_window(lambda x: tf.cast(x, tf.int32), lambda k, d: d, 2)
    with pytest.raises(TypeError, match="must return a single `tf.data.Dataset` object"):
        list(ds.group_by_window(lambda x: x, lambda k, d: 5, 2))


def test_bucket_by_sequence_length():
    def length(x):
        return tf.shape(x)[0]

    ds = lengths(1, 4, 2, 3, 4, 1)
    assert lists(lengths(1, 2, 3).bucket_by_sequence_length(length, [2, 4], [2, 2, 2])) == [
        [[1, 1, 0], [1, 1, 1]],
        [[1]],
    ]
    bounded = ds.bucket_by_sequence_length(length, [3, 5], [2, 2, 2], pad_to_bucket_boundary=True)
    assert lists(bounded) == [
        [[1, 0], [1, 1]],
        [[1, 1, 1, 1], [1, 1, 1, 0]],
        [[1, 0]],
        [[1, 1, 1, 1]],
    ]
    with pytest.raises(ValueError, match="must equal `len\\(bucket_boundaries\\) \\+ 1`"):
        ds.bucket_by_sequence_length(length, [2, 4], [2, 2])
    with pytest.raises(tf.errors.InternalError, match="elements must have length < max"):
        list(lengths(9).bucket_by_sequence_length(length, [3, 5], [2, 2, 2], pad_to_bucket_boundary=True))


def test_group_by_reducer():
    reducer = tf.data.experimental.Reducer(lambda k: np.int64(0), lambda s, x: s + x, lambda s: s)
    ds = Dataset.range(9).apply(tf.data.experimental.group_by_reducer(lambda x: x % 3, reducer))
    assert values(ds) == [9, 12, 15]


# ---- several datasets ---------------------------------------------------------------------------


def test_zip():
    a, b = Dataset.range(3), Dataset.range(10, 15)
    assert values(Dataset.zip(a, b)) == values(Dataset.zip((a, b))) == [(0, 10), (1, 11), (2, 12)]
    assert values(Dataset.zip({"x": a, "y": (b, b)}))[0] == {"x": 0, "y": (10, 10)}
    assert values(Dataset.zip((a,)))[0] == (0,)
    assert values(Dataset.zip(a.shuffle(3, seed=1), b)) != []
    assert Dataset.zip(a, b).element_spec == (Spec((), tf.int64),) * 2
    rows = Dataset.zip((Dataset.from_tensor_slices(np.ones((3, 2))), a)).shuffle(3).batch(2)
    assert [x.shape for x, _ in rows] == [(2, 2), (1, 2)]


def test_wrong_zip():
    a = Dataset.range(3)
    with pytest.raises(TypeError, match="Python `list` is not supported"):
        Dataset.zip([a, a])
    with pytest.raises(TypeError, match="encountered object of type <class 'int'>"):
        Dataset.zip((a, 1))
    with pytest.raises(TypeError, match="at least one dataset"):
        Dataset.zip()


def test_concatenate():
    a = Dataset.range(2)
    assert values(a.concatenate(Dataset.range(5, 7))) == [0, 1, 5, 6]
    two, three = (Dataset.from_tensor_slices(np.ones((2, n))) for n in (3, 4))
    assert two.concatenate(three).element_spec == Spec((None,), tf.float64)
    for other in (Dataset.from_tensor_slices([1.0]), Dataset.zip(a, a)):
        with pytest.raises(TypeError, match="Incompatible dataset elements"):
            a.concatenate(other)


def test_choose_from_datasets():
    a, b = Dataset.range(3), Dataset.range(10, 12)
    choice = Dataset.from_tensor_slices(np.array([0, 1, 1, 0, 1, 1, 0]))
    assert values(Dataset.choose_from_datasets([a, b], choice)) == [0, 10, 11, 1]
    every = Dataset.choose_from_datasets([a, b], choice, stop_on_empty_dataset=False)
    assert values(every) == [0, 10, 11, 1, 2]
    with pytest.raises(TypeError, match="must be scalar `tf.int64` tensors"):
        Dataset.choose_from_datasets([a], Dataset.from_tensor_slices([0]))
    with pytest.raises(InvalidArgument, match="Selector index out of range: 4 >= 1"):
        list(Dataset.choose_from_datasets([a], Dataset.range(4, 5)))
    with pytest.raises(ValueError, match="should not be empty"):
        Dataset.choose_from_datasets([], choice)


def test_sample_from_datasets():
    """The choices are TensorFlow's."""
    before = random._seeds.given
    tf.random.set_seed(5)
    try:
        three = [Dataset.range(k, k + 10) for k in (0, 100, 200)]
        ds = Dataset.sample_from_datasets(three, weights=[0.5, 0.3, 0.2], seed=11)
        assert values(ds)[:12] == [0, 1, 100, 2, 3, 101, 102, 103, 4, 5, 6, 7]
        assert len(values(ds)) == 30
        two = [Dataset.range(5), Dataset.range(100, 105)]
        assert values(Dataset.sample_from_datasets(two, seed=11)) == [0, 1, 100, 2, 3, 101, 102, 103, 4, 104]
        stop = Dataset.sample_from_datasets(two, seed=11, stop_on_empty_dataset=True)
        assert values(stop) == [0, 1, 100, 2, 3, 101, 102, 103, 4]
        again = Dataset.sample_from_datasets(two, seed=11, rerandomize_each_iteration=True)
        assert values(again) == [100, 101, 0, 102, 103, 104, 1, 2, 3, 4]
        assert values(again) == [100, 0, 101, 1, 102, 103, 2, 3, 4, 104]
    finally:
        random._seeds.given = before
    with pytest.raises(ValueError, match="should have the same length as `datasets`"):
        Dataset.sample_from_datasets(two, weights=[1.0])


def test_batches_say_how_large_they_are():
    """Packages use it to find out whether the elements of a dataset are batches."""
    data = tf.data.Dataset.range(5)
    assert data.batch(2)._batch_size == 2
    assert data.padded_batch(3)._batch_size == 3
    assert not hasattr(data, "_batch_size")
