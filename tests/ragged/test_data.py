"""Ragged tensors as elements of datasets: rows, batches, ragged_batch, and everything that only passes them on."""

import pytest

import gradtape as tf

rc = tf.ragged.constant
D = tf.data.Dataset
ROWS = [[3.0, 1.0, 4.0], [1.0, 5.0], [9.0], [], [2.0, 6.0]]
A = rc(ROWS)
B = rc([[[1, 2], [3]], [], [[4, 5, 6], [], [7]]])


def lists(dataset):
    return [x.to_list() if hasattr(x, "to_list") else x.numpy().tolist() for x in dataset]


def counted():
    return D.range(5).map(lambda n: tf.range(n))


def test_rows_are_elements():
    ds = D.from_tensor_slices(A)
    assert lists(ds) == ROWS
    assert ds.element_spec == tf.RaggedTensorSpec([None], tf.float32, 0)
    assert lists(D.from_tensor_slices(B)) == B.to_list()
    assert D.from_tensor_slices(B).element_spec == tf.RaggedTensorSpec([None, None], tf.int32, 1)
    assert ds.cardinality().numpy() == 5


def test_a_ragged_tensor_is_an_element():
    ds = D.from_tensors(A)
    assert lists(ds) == [ROWS]
    assert ds.element_spec == tf.RaggedTensorSpec([5, None], tf.float32, 1)
    assert lists(ds.unbatch()) == ROWS
    assert lists(ds.map(lambda x: x.to_tensor()[:1])) == [[[3.0, 1.0, 4.0]]]
    assert lists(ds.concatenate(D.from_tensors(A[:2]))) == [ROWS, ROWS[:2]]
    assert lists(ds.flat_map(D.from_tensor_slices)) == ROWS


def test_batches():
    ds = D.from_tensor_slices(A).batch(2)
    assert lists(ds) == [ROWS[:2], ROWS[2:4], ROWS[4:]]
    assert ds.element_spec == tf.RaggedTensorSpec([None, None], tf.float32, 1)
    assert lists(D.from_tensor_slices(A).batch(2, drop_remainder=True)) == [ROWS[:2], ROWS[2:4]]
    assert lists(D.from_tensor_slices(B).batch(2)) == [B.to_list()[:2], B.to_list()[2:]]
    assert lists(ds.batch(2)) == [[ROWS[:2], ROWS[2:4]], [ROWS[4:]]]
    assert lists(ds.prefetch(1).cache()) == lists(ds)
    assert lists(ds.map(lambda x: x * 2)) == [[[2 * v for v in row] for row in batch] for batch in lists(ds)]
    shuffled = D.from_tensor_slices(A).shuffle(5, seed=1).repeat(2).batch(5)
    assert all(sorted(batch) == sorted(ROWS) for batch in lists(shuffled))


def test_structures():
    ds = D.from_tensor_slices({"a": A, "b": tf.range(5)}).batch(3)
    first, second = list(ds)
    assert first["a"].to_list() == ROWS[:3] and second["a"].to_list() == ROWS[3:]
    assert second["b"].numpy().tolist() == [3, 4]
    pairs = list(D.zip((D.from_tensor_slices(A), D.range(5))).batch(2))
    assert pairs[1][0].to_list() == ROWS[2:4]


def test_functions_of_elements():
    ds = D.from_tensor_slices(A)
    assert lists(ds.filter(lambda x: tf.size(x) > 1)) == [r for r in ROWS if len(r) > 1]
    assert ds.reduce(0.0, lambda total, x: total + tf.reduce_sum(x)).numpy() == 31.0
    assert lists(D.range(2).interleave(lambda i: D.from_tensors(A[:2]))) == [ROWS[:2], ROWS[:2]]
    assert lists(counted().map(lambda x: tf.RaggedTensor.from_row_lengths(x, [tf.size(x)])))[3] == [[0, 1, 2]]


def test_ragged_batch():
    expected = [[[], [0]], [[0, 1], [0, 1, 2]], [[0, 1, 2, 3]]]
    ds = counted().ragged_batch(2)
    assert lists(ds) == expected
    assert ds.element_spec == tf.RaggedTensorSpec([None, None], tf.int64, 1)
    short = counted().ragged_batch(2, drop_remainder=True, row_splits_dtype=tf.int32)
    assert lists(short) == expected[:2]
    assert short.element_spec == tf.RaggedTensorSpec([2, None], tf.int64, 1, tf.int32)
    assert next(iter(short)).row_splits.dtype == tf.int32
    assert lists(counted().apply(tf.data.experimental.dense_to_ragged_batch(2))) == expected
    # Parts of one shape stay tensors.
    number, row = next(iter(D.range(5).map(lambda n: (n, tf.range(n))).ragged_batch(3)))
    assert number.numpy().tolist() == [0, 1, 2] and row.to_list() == [[], [0], [0, 1]]


def test_generators():
    ds = D.from_generator(lambda: iter([A, A[:2]]), output_signature=tf.RaggedTensorSpec([None, None]))
    assert lists(ds) == [ROWS, ROWS[:2]]
    wrong = D.from_generator(lambda: iter([B]), output_signature=tf.RaggedTensorSpec([None, None]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="did not match"):
        list(wrong)


def test_unsupported_batches():
    with pytest.raises(TypeError, match="only supported for datasets that produce tensor elements"):
        D.from_tensor_slices(A).padded_batch(2)
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(counted().batch(2))
