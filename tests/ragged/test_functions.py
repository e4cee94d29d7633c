"""Ragged tensors as arguments and results of functions, in branches and loops: rows may have other lengths at each call."""

import numpy as np
import pytest

import gradtape as tf

rc = tf.ragged.constant
ROWS = ([[1.0, 2], [3]], [[1.0], [3]], [[1.0, 2, 3, 4], []], [[], []], [[5.0, 4], [3, 2]])


def ragged(rows):
    return rc(rows, dtype=tf.float32)


def test_one_trace_for_rows_of_any_length():
    traces = []

    @tf.function
    def f(x):
        traces.append(x.shape)
        return tf.reduce_sum(x * 2.0, 1), x + 1.0

    for rows in ROWS:
        total, more = f(ragged(rows))
        np.testing.assert_array_equal(total, [2 * sum(r) for r in rows])
        assert more.to_list() == [[v + 1 for v in r] for r in rows]
    assert traces == [[2, None]]
    f(ragged([[1.0]]))
    assert traces == [[2, None], [1, None]]


CALLS = {
    "mul": lambda x: x * x,
    "sum of columns": lambda x: tf.reduce_sum(x, 0),
    "mean": lambda x: tf.reduce_mean(x + 1.0),
    "slices": lambda x: x[1:, :1],
    "reversed": lambda x: x[:, ::-1],
    "row": lambda x: x[0],
    "dense": lambda x: x.to_tensor(-1.0),
    "shape": lambda x: x.to_tensor(shape=[None, 2]),
    "concat": lambda x: tf.concat([x, x], 1),
    "stack": lambda x: tf.stack([x, x], 1),
    "softmax": lambda x: tf.nn.softmax(x),
    "new axis": lambda x: x[:, tf.newaxis] * x[:, tf.newaxis],
    "column": lambda x: x * tf.constant([[2.0], [3.0]]),
    "gather": lambda x: tf.gather(x, [1, 0, 1]),
    "where": lambda x: tf.where(x > 1.0, x, -x),
    "mask": lambda x: tf.ragged.boolean_mask(x, x > 1.0),
    "tile": lambda x: tf.tile(x, [2, 2]),
    "expand": lambda x: tf.expand_dims(x, 1),
    "lengths": lambda x: x.row_lengths(),
    "row ids": lambda x: x.value_rowids(),
    "box": lambda x: x.bounding_shape(),
    "cumsum": lambda x: tf.cumsum(x, 1),
    "made of lengths": lambda x: tf.RaggedTensor.from_row_lengths(x.flat_values, x.row_lengths()),
    "made of ids": lambda x: tf.RaggedTensor.from_value_rowids(x.flat_values, x.value_rowids(), x.nrows()),
    "there and back": lambda x: tf.RaggedTensor.from_tensor(x.to_tensor(), lengths=x.row_lengths()),
    "number of rows": lambda x: tf.shape(x)[0],
    "zeros": lambda x: tf.zeros(tf.shape(x)),
    "reshaped": lambda x: tf.reshape(x.flat_values * 2, tf.shape(x)),
    "broadcast": lambda x: tf.broadcast_to(5.0, tf.shape(x)),
    "mapped": lambda x: tf.map_fn(tf.reduce_sum, x, fn_output_signature=tf.float32),
    "last row": lambda x: x[x.nrows() - 1],
    "one-hot": lambda x: tf.one_hot(tf.cast(x, tf.int32), 3),
    "of other rows": lambda x: x + tf.RaggedTensor.from_row_splits(x.flat_values, x.row_splits + 0),
}


@pytest.mark.parametrize("name", CALLS)
def test_as_in_eager_mode(name):
    f = tf.function(CALLS[name], input_signature=[tf.RaggedTensorSpec([None, None], tf.float32)])
    for rows in ROWS:
        found, expected = f(ragged(rows)), CALLS[name](ragged(rows))
        assert found.dtype == expected.dtype
        if isinstance(expected, tf.RaggedTensor):
            assert found.to_list() == expected.to_list()
            assert found.ragged_rank == expected.ragged_rank
        else:
            np.testing.assert_array_equal(found, expected)


def test_static_shapes():
    shapes = []

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None, 3], tf.float32, ragged_rank=1)])
    def f(x):
        shapes.extend(
            [
                x.shape,
                tf.reduce_sum(x, 1).shape,
                x[:, :1].shape,
                x.to_tensor().shape,
                x[0].shape,
                (x * 2).shape,
            ]
        )
        return x

    f(rc([[[1.0, 2, 3]], []], ragged_rank=1, inner_shape=(3,)))
    assert [s.as_list() for s in shapes] == [
        [None, None, 3], [None, 3], [None, None, 3], [None, None, 3], [None, 3], [None, None, 3],
    ]  # fmt: skip


def test_gradients_inside_and_outside():
    @tf.function
    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x.flat_values)
            y = tf.reduce_sum(tf.reduce_sum(x * x, 1) ** 2)
        return tape.gradient(y, x.flat_values)

    outside = tf.function(lambda x: tf.reduce_sum(tf.reduce_sum(x * x, 1) ** 2))
    for rows in ROWS[:3]:
        x = ragged(rows)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = outside(x)
        expected = [4 * v * sum(w * w for w in r) for r in rows for v in r]
        np.testing.assert_allclose(inside(x), expected, rtol=1e-6)
        np.testing.assert_allclose(tape.gradient(y, x).flat_values, expected, rtol=1e-6)


def test_branches_and_loops():
    x = ragged(ROWS[0])

    @tf.function
    def branch(p, x):
        return tf.cond(p, lambda: x + 1.0, lambda: x[:, :1])

    @tf.function
    def loop(x):
        return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), [0, x])[1]

    assert branch(tf.constant(True), x).to_list() == [[2.0, 3.0], [4.0]]
    assert branch(tf.constant(False), x).to_list() == [[1.0], [3.0]]
    assert loop(x).to_list() == [[8.0, 16.0], [24.0]]
    assert tf.cond(tf.constant(True), lambda: x, lambda: x * 2.0).to_list() == ROWS[0]


def test_wrong_rows_are_refused_when_they_are_there():
    @tf.function
    def f(values, splits):
        return tf.RaggedTensor.from_row_splits(values, splits)

    assert f(tf.constant([1, 2, 3]), tf.constant([0, 1, 3])).to_list() == [[1], [2, 3]]
    for wrong in ([0, 2, 1], [1, 2, 3], [0, 1, 4]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="valid RaggedTensor"):
            f(tf.constant([1, 2, 3]), tf.constant(wrong))


def test_signatures():
    f = tf.function(lambda x: x * 2, input_signature=[tf.RaggedTensorSpec([2, None], tf.int32)])
    assert f(rc([[1], [2, 3]])).to_list() == [[2], [4, 6]]
    for wrong in (rc([[1]]), rc([[1.0], [2.0]]), tf.constant([[1], [2]])):
        with pytest.raises(TypeError):
            f(wrong)
    concrete = tf.function(lambda x: x * 2).get_concrete_function(tf.RaggedTensorSpec([None, None], tf.int32))
    assert concrete(rc([[1], [2, 3], []])).to_list() == [[2], [4, 6], []]
    assert concrete.structured_outputs.shape == [None, None]
