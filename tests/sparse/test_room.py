"""Sizes given by the user: too large ones raise an error before memory is allocated, unless none is needed."""

import numpy as np
import pytest

import gradtape as tf

MANY = 2**44  # more numbers than any machine has room for
rc = tf.ragged.constant


def sparse(shape, dtype=tf.int64):
    places = [[0] * len(shape), [0] * (len(shape) - 1) + [1]]
    return tf.SparseTensor(places, tf.constant([1, 2], dtype), shape)


SHAPES = ([2**44, 2**10], [2**44, 4], [2**44, 2**44])
REFUSED = {
    "to_dense": lambda x: tf.sparse.to_dense(x),
    "to_dense with a default": lambda x: tf.sparse.to_dense(x, 5),
    "to_indicator": lambda x: tf.sparse.to_indicator(x, 7),
    "reduce_sum": lambda x: tf.sparse.reduce_sum(x, 1),
    "reduce_sum of nothing": lambda x: tf.sparse.reduce_sum(x, []),
    "reduce_max": lambda x: tf.sparse.reduce_max(x, 1),
    "fill_empty_rows": lambda x: tf.sparse.fill_empty_rows(x, 0),
    "from_sparse": lambda x: tf.RaggedTensor.from_sparse(x),
    "edit_distance": lambda x: tf.edit_distance(x, x),
    "embedding": lambda x: tf.nn.safe_embedding_lookup_sparse(tf.ones([4, 2]), x),
    "embedding with a default": lambda x: tf.nn.safe_embedding_lookup_sparse(tf.ones([4, 2]), x, default_id=0),
    "math.bincount": lambda x: tf.math.bincount(x, axis=-1),
    "sizes of sets": lambda x: tf.sets.size(x),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", REFUSED)
def test_sparse_refused(name, shape):
    with pytest.raises(tf.errors.ResourceExhaustedError):
        REFUSED[name](sparse(shape))


LONG = {
    "sparse.eye": lambda: tf.sparse.eye(MANY),
    "segment_mean": lambda: tf.sparse.segment_mean(tf.ones([2, 1]), [0, 1], [0, 1], num_segments=MANY),
    "range": lambda: tf.range(MANY),
    "from_value_rowids": lambda: tf.RaggedTensor.from_value_rowids([1, 2], [0, 1], nrows=MANY),
    "from_value_rowids without a number": lambda: tf.RaggedTensor.from_value_rowids([1, 2], [0, MANY]),
    "from_uniform_row_length": lambda: tf.RaggedTensor.from_uniform_row_length(tf.zeros([0]), 0, nrows=MANY),
    "ragged.range": lambda: tf.ragged.range([MANY]),
    "ragged.range of floats": lambda: tf.ragged.range([2.0**44]),
    "tile of rows": lambda: tf.tile(rc([[1, 2], [3]]), [MANY, 1]),
    "tile of values": lambda: tf.tile(rc([[1, 2], [3]]), [1, MANY]),
    "to_tensor": lambda: rc([[1, 2], [3]]).to_tensor(shape=[MANY, 4]),
    "to_tensor, not to be counted": lambda: rc([[1, 2], [3]]).to_tensor(7, shape=[MANY, MANY]),
    "to_tensor of strings": lambda: rc([["a"], ["b", "c"]]).to_tensor(shape=[MANY, 4]),
    "stack_dynamic_partitions": lambda: tf.ragged.stack_dynamic_partitions([1, 2], [0, 1], MANY),
    "segment_ids_to_row_splits": lambda: tf.ragged.segment_ids_to_row_splits([0, 1], MANY),
    "unsorted_segment_sum": lambda: tf.math.unsorted_segment_sum(rc([[1, 2], [3]]), [0, 1], MANY),
    "bincount": lambda: tf.math.bincount(rc([[1, 2], [3]]), minlength=MANY, axis=-1),
    "row ids": lambda: tf.experimental.RowPartition.from_row_lengths([MANY]).value_rowids(),
    "splits not checked": lambda: tf.reduce_sum(
        tf.RaggedTensor.from_row_splits([1, 2], [0, MANY], validate=False), 1
    ),
    "zeros": lambda: tf.zeros([MANY], tf.string),
    "unsorted_segment_join": lambda: tf.strings.unsorted_segment_join(["a", "b"], [0, 1], MANY),
    "ngrams": lambda: tf.strings.ngrams(["a", "b"], 2**31 - 1, pad_values="x"),
    "decode_raw": lambda: tf.io.decode_raw(["ab"], tf.uint8, fixed_length=MANY),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_lengths_refused(name):
    with pytest.raises(tf.errors.ResourceExhaustedError):
        LONG[name]()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_memory_is_that_of_the_elements(shape):
    x = sparse(shape)
    assert int(tf.sparse.reduce_sum(x)) == 3 and int(tf.sparse.reduce_max(x)) == 2
    assert tf.sparse.reduce_sum(x, 1, output_is_sparse=True).values.numpy().tolist() == [3]
    for y in (
        tf.sparse.reorder(x),
        tf.sparse.transpose(x),
        tf.sparse.maximum(x, x),
        tf.sparse.slice(x, [0, 0], shape),
    ):
        assert y.values.numpy().tolist() == [1, 2]
    assert tf.sparse.add(x, x).values.numpy().tolist() == [2, 4]
    crossed = tf.sparse.cross([x, x])
    assert crossed.dense_shape.numpy().tolist() == [shape[0], 4] and len(crossed.values) == 4
    union = tf.sets.union(x, x)
    assert union.values.numpy().tolist() == [1, 2] and union.dense_shape.numpy().tolist() == [shape[0], 2]
    assert len(tf.sparse.bincount(x, axis=-1).values) == 2


def test_shapes_that_offsets_just_fit():
    far = 2**31 - 1
    x = tf.SparseTensor([[0, 1], [far, far - 4]], [1, 2], [2**31, 2**31])
    assert tf.sparse.reshape(x, [-1]).indices.numpy().tolist() == [[1], [2**62 - 5]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than can be counted"):
        tf.sparse.reshape(sparse([2**44, 2**44]), [-1])


def test_maxima_without_elements():
    x = tf.SparseTensor([[0, 0], [0, 1], [2, 1]], [-4.0, -7.0, 3.0], [4, 2])
    np.testing.assert_array_equal(tf.sparse.reduce_max(x, 1), [-4, 0, 3, 0])
    np.testing.assert_array_equal(tf.sparse.reduce_max(x, 0, keepdims=True), [[-4, 3]])
    with tf.GradientTape() as tape:
        tape.watch(x.values)
        y = tf.sparse.reduce_max(x, 1)
    np.testing.assert_array_equal(tape.gradient(y, x.values), [1, 0, 1])


def test_places_out_of_range():
    x = tf.SparseTensor([[5, 0]], tf.constant([1], tf.int64), [2, 2])
    for call in (tf.sets.size, lambda x: tf.edit_distance(x, x), lambda x: tf.sparse.cross([x])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="indices"):
            call(x)
