"""The types an element may contain: attrs classes, dataclasses with TensorFlow's protocol, datasets."""

import dataclasses

import attr
import pytest

import gradtape as tf

Dataset = tf.data.Dataset
Spec = tf.TensorSpec


@dataclasses.dataclass
class Masked:
    mask: bool
    value: object

    def __tf_flatten__(self):
        return (self.mask,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(metadata[0], components[0])


@attr.s
class Pair:
    x = attr.ib()
    y = attr.ib()


def test_attrs_classes_are_structure():
    ds = Dataset.from_tensor_slices(Pair([1, 2, 3], [3.0, 4.0, 5.0]))
    assert ds.element_spec == Pair(Spec((), tf.int32), Spec((), tf.float32))
    doubled = ds.map(lambda p: Pair(p.x * 2, p.y)).batch(2)
    first, last = doubled.as_numpy_iterator()
    assert type(first) is Pair and first.x.tolist() == [2, 4] and last.y.tolist() == [5.0]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda ds: ds, [1, 2, 3]),
        (lambda ds: ds.map(lambda m: Masked(m.mask, m.value * 2)), [2, 4, 6]),
        (lambda ds: ds.filter(lambda m: m.value > 1), [2, 3]),
        (lambda ds: ds.batch(2), [[1, 2], [3]]),
        (lambda ds: ds.batch(3).unbatch(), [1, 2, 3]),
        (lambda ds: ds.cache().repeat(2).take(4).prefetch(1), [1, 2, 3, 1]),
        (lambda ds: ds.interleave(lambda m: Dataset.from_tensors(m).repeat(2), 3), [1, 2, 3, 1, 2, 3]),
        (lambda ds: ds.scan(Masked(True, 0), lambda s, m: (Masked(True, s.value + m.value), s)), [0, 1, 3]),
    ],
)
def test_classes_that_take_themselves_apart_are_structure(make, expected):
    ds = make(Dataset.from_tensor_slices(Masked(True, tf.constant([1, 2, 3]))))
    found = list(ds)
    assert all(type(m) is Masked and m.mask is True for m in found)
    assert [m.value.numpy().tolist() for m in found] == expected


def test_the_spec_of_such_a_class_is_one_of_them():
    ds = Dataset.from_tensors(Masked(True, tf.constant([1, 2])))
    assert ds.element_spec == Masked(True, Spec((2,), tf.int32))
    total = Dataset.range(3).reduce(
        Masked(True, tf.constant(0, tf.int64)), lambda s, x: Masked(True, s.value + x)
    )
    assert int(total.value) == 3


def test_numpy_iterators_give_arrays_that_stay_as_they_are():
    array = next(Dataset.from_tensors([1, 2]).as_numpy_iterator())
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 5
    with pytest.raises(TypeError, match="not supported for datasets that produce values of type"):
        Dataset.range(4).window(2).as_numpy_iterator()


# ---- ragged tensors -------------------------------------------------------------------------------


def test_rows_of_ragged_tensors_and_batches_of_them():
    ragged = tf.ragged.constant([[1], [2, 3], [], [4]])
    rows = Dataset.from_tensor_slices(ragged)
    assert rows.element_spec == tf.RaggedTensorSpec([None], tf.int32, 0)
    assert [x.numpy().tolist() for x in rows] == [[1], [2, 3], [], [4]]
    batches = rows.batch(3)
    assert batches.element_spec == tf.RaggedTensorSpec([None, None], tf.int32, 1)
    assert [b.to_list() for b in batches] == [[[1], [2, 3], []], [[4]]]
    assert [x.numpy().tolist() for x in batches.unbatch()] == [[1], [2, 3], [], [4]]
    assert [x.to_list() for x in Dataset.from_tensors(ragged)] == [ragged.to_list()]
    assert [x.numpy().tolist() for x in rows.shuffle(4, seed=1).filter(lambda x: tf.size(x) > 1)] == [[2, 3]]
    deep = Dataset.from_tensor_slices(tf.ragged.constant([[[1]], [[2, 3], []]]))
    assert [b.to_list() for b in deep.batch(2)] == [[[[1]], [[2, 3], []]]]


def test_ragged_batch():
    ds = Dataset.range(5).map(lambda n: (n, tf.fill([n], n), [n, n]))
    batches = ds.ragged_batch(2, drop_remainder=True, row_splits_dtype=tf.int32)
    numbers, rows, pairs = batches.element_spec
    assert rows == tf.RaggedTensorSpec([2, None], tf.int64, 1, tf.int32)
    assert numbers == Spec((2,), tf.int64) and pairs == Spec((2, 2), tf.int64)
    assert [(n.numpy().tolist(), r.to_list()) for n, r, _ in batches] == [
        ([0, 1], [[], [1]]), ([2, 3], [[2, 2], [3, 3, 3]]),
    ]  # fmt: skip
    assert [b.numpy().tolist() for b in Dataset.range(3).ragged_batch(2)] == [[0, 1], [2]]
    step = tf.data.experimental.dense_to_ragged_batch(3)
    assert [b.to_list() for b in Dataset.range(1, 3).map(tf.range).apply(step)] == [[[0], [0, 1]]]


def test_functions_and_generators_of_ragged_tensors():
    ds = Dataset.range(1, 4).map(lambda n: tf.ragged.range([n, 1]))
    assert [x.to_list() for x in ds.batch(2)] == [[[[0], [0]], [[0, 1], [0]]], [[[0, 1, 2], [0]]]]
    assert [int(tf.reduce_sum(x)) for x in ds] == [0, 1, 3]
    spec = tf.RaggedTensorSpec([2, None], tf.int32)
    given = tf.ragged.constant([[1, 2], [3]])
    ds = Dataset.from_generator(lambda: iter([given, given]), output_signature=spec)
    assert ds.element_spec == spec and [x.to_list() for x in ds] == [[[1, 2], [3]]] * 2
    wrong = Dataset.from_generator(lambda: iter([tf.ragged.constant([[1.0]])]), output_signature=spec)
    with pytest.raises(tf.errors.InvalidArgumentError, match="did not match the expected structure"):
        list(wrong)
    (array,) = Dataset.from_tensors(given).as_numpy_iterator()
    assert [row.tolist() for row in array] == [[1, 2], [3]]


# ---- extension types ------------------------------------------------------------------------------


class Weighted(tf.experimental.BatchableExtensionType):
    values: tf.Tensor
    weight: tf.Tensor


def test_extension_types():
    ds = Dataset.from_tensor_slices(
        Weighted(tf.constant([[1, 2], [3, 4], [5, 6]]), tf.constant([1.0, 2.0, 3.0]))
    )
    assert [float(w.weight) for w in ds] == [1.0, 2.0, 3.0]
    first, last = ds.batch(2)
    assert type(first) is Weighted and first.values.numpy().tolist() == [[1, 2], [3, 4]]
    assert last.weight.numpy().tolist() == [3.0]
    assert [int(w.values[1]) for w in ds.batch(3).unbatch()] == [2, 4, 6]
    summed = ds.map(lambda w: Weighted(w.values * 2, w.weight)).map(lambda w: tf.reduce_sum(w.values))
    assert [int(x) for x in summed] == [6, 14, 22]


# ---- datasets -------------------------------------------------------------------------------------


def test_datasets_are_elements():
    ds = Dataset.from_tensor_slices([Dataset.range(n) for n in range(3)])
    assert ds.element_spec == tf.data.DatasetSpec(Spec((), tf.int64))
    assert [int(x) for x in ds.flat_map(lambda d: d)] == [0, 0, 1]
    batches = Dataset.from_tensors(Dataset.range(2)).repeat(3).batch(2)
    assert batches.element_spec == tf.data.DatasetSpec(Spec((), tf.int64), [None])
    assert [int(x) for x in batches.unbatch().flat_map(lambda d: d)] == [0, 1] * 3
    with pytest.raises(ValueError, match="not supported for rank 0"):
        Dataset.from_tensor_slices(Dataset.range(3))
    with pytest.raises(TypeError, match="not supported for datasets of datasets"):
        Dataset.range(4).window(2).padded_batch(2)


# ---- specs without elements -------------------------------------------------------------------------


def test_specs_of_results_of_unknown_size():
    lengths = Dataset.from_generator(lambda: iter([[1, 2], [3]]), output_signature=Spec([None], tf.int32))
    assert lengths.map(lambda x: x * 2).element_spec == Spec([None], tf.int32)
    assert lengths.map(lambda x: tf.reshape(x, [-1, 1])).element_spec == Spec([None, 1], tf.int32)
    filled = Dataset.range(3).map(lambda n: (tf.fill([n], n), [n, n]))
    assert filled.element_spec == (Spec([None], tf.int64), Spec([2], tf.int64))
    called = Dataset.range(3).map(lambda x: tf.py_function(lambda x: x, [x], tf.int64))
    assert called.element_spec == Spec(None, tf.int64)
    grown = Dataset.range(3).scan(tf.zeros([1, 2]), lambda s, x: (tf.concat([s, s], 0), s))
    assert grown.element_spec == Spec([None, 2])


def test_specs_of_empty_structures():
    nothing = Dataset.range(0)
    assert nothing.flat_map(lambda x: Dataset.range(x)).element_spec == Spec((), tf.int64)
    assert nothing.flat_map(lambda x: Dataset.from_tensors([1, 2])).element_spec == Spec((2,), tf.int32)
    assert nothing.window(2).flat_map(lambda w: w.batch(2)).element_spec == Spec((None,), tf.int64)
    grouped = nothing.group_by_window(lambda x: x, lambda key, group: group.batch(2), 2)
    assert grouped.element_spec == Spec((None,), tf.int64)


def test_functions_that_make_no_datasets_are_refused_at_once():
    ds = Dataset.range(3)
    for method in (ds.flat_map, ds.interleave):
        with pytest.raises(TypeError, match="must return a `Dataset` object"):
            method(lambda x: (x, x))
        with pytest.raises(TypeError, match="missing a required argument: 'y'"):
            method(lambda x, y: ds)
    with pytest.raises(TypeError, match="Invalid `reduce_func`"):
        ds.group_by_window(lambda x: x, lambda key, group: key, 2)
    with pytest.raises(ValueError, match="Invalid `key_func`"):
        ds.group_by_window(lambda x: [x, x], lambda key, group: group, 2)


# ---- sparse tensors ---------------------------------------------------------------------------------


def parts(x):
    return x.indices.numpy().tolist(), x.values.numpy().tolist(), x.dense_shape.numpy().tolist()


def test_rows_of_sparse_tensors_and_batches_of_them():
    sparse = tf.SparseTensor([[0, 1], [2, 0], [2, 2]], [1.0, 2.0, 3.0], [3, 4])
    rows = Dataset.from_tensor_slices((sparse, [7, 8, 9]))
    assert rows.element_spec == (tf.SparseTensorSpec([4], tf.float32), Spec((), tf.int32))
    expected = [([[1]], [1.0], [4]), ([], [], [4]), ([[0], [2]], [2.0, 3.0], [4])]
    assert [parts(x) for x, _ in rows] == expected
    assert [parts(x) for x, _ in rows.batch(2)] == [
        ([[0, 1]], [1.0], [2, 4]),
        ([[0, 0], [0, 2]], [2.0, 3.0], [1, 4]),
    ]
    assert [parts(x) for x, _ in rows.batch(3).unbatch()] == expected
    made = Dataset.range(3).map(lambda x: tf.SparseTensor([[0]], [x], [3]))
    assert made.element_spec == tf.SparseTensorSpec([3], tf.int64)
    assert made.batch(2).element_spec == tf.SparseTensorSpec([None, 3], tf.int64)
    assert [parts(x) for x in made.batch(2)][0] == ([[0, 0], [1, 0]], [0, 1], [2, 3])
    assert [x.numpy().tolist() for x in made.map(tf.sparse.to_dense)] == [[0, 0, 0], [1, 0, 0], [2, 0, 0]]
    assert [x.tolist() for x in made.take(1).as_numpy_iterator()] == [[0, 0, 0]]


def test_sparse_batch():
    ds = Dataset.range(5).map(lambda n: tf.fill([n], n))
    assert ds.sparse_batch(2, [6]).element_spec == tf.SparseTensorSpec([None, 6], tf.int64)
    first, second, _ = ds.sparse_batch(2, [6])
    assert parts(first) == ([[1, 0]], [1], [2, 6])
    assert parts(second) == ([[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]], [2, 2, 3, 3, 3], [2, 6])
    assert [x.dense_shape.numpy().tolist() for x in ds.sparse_batch(2, [None])] == [[2, 1], [2, 3], [1, 4]]
    with pytest.raises(tf.errors.DataLossError, match="larger than the row shape"):
        list(ds.apply(tf.data.experimental.dense_to_sparse_batch(2, [3])))
    with pytest.raises(tf.errors.InvalidArgumentError, match="incompatible with the row shape"):
        list(ds.sparse_batch(2, [2, 2]))


def test_files_of_ragged_and_sparse_tensors(tmp_path):
    element = (tf.ragged.constant([["a"], []]), tf.SparseTensor([[1, 2]], [5.0], [2, 3]), 7)
    ds = Dataset.from_tensors(element).repeat(2)
    ds.save(str(tmp_path / "saved"))
    back = Dataset.load(str(tmp_path / "saved"))
    assert back.element_spec == ds.element_spec
    for ragged, sparse, number in back:
        assert (ragged.to_list(), parts(sparse), int(number)) == ([[b"a"], []], ([[1, 2]], [5.0], [2, 3]), 7)
    rows = Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3]])).cache(str(tmp_path / "kept"))
    for _ in range(2):
        assert [b.to_list() for b in rows.batch(2)] == [[[1], [2, 3]]]
