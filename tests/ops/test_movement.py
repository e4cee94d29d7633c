"""Moving elements: public signatures, composites and what a tape keeps; values are TensorFlow's."""

import numpy as np
import pytest

import gradtape as tf

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
InvalidArgument = tf.errors.InvalidArgumentError


def gradient(f, x=X):
    """The gradient of `f(x)`, with a different weight for each element."""
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    weights = np.arange(1, int(np.prod(y.shape)) + 1, dtype=np.float32).reshape(y.shape)
    return tape.gradient(y, x, output_gradients=tf.constant(weights))


@pytest.mark.parametrize(
    "shape", [[3, 2], (3, -1), tf.constant([3, 2]), np.array([3, 2]), tf.TensorShape([3, 2])]
)
def test_reshape_takes_any_kind_of_shape(shape):
    assert tf.reshape(X, shape).shape == (3, 2)


def test_reshape_with_sizes_that_are_tensors():
    x = tf.constant(X)
    assert tf.reshape(x, [tf.shape(x)[1], -1]).shape == (3, 2)


def test_squeeze():
    x = tf.zeros([1, 2, 1])
    assert tf.squeeze(x).shape == (2,)
    assert tf.squeeze(x, []).shape == (2,)
    assert tf.squeeze(x, axis=-1).shape == (1, 2)
    assert tf.squeeze(x, [0, -1]).shape == (2,)
    with pytest.raises(InvalidArgument, match="Can not squeeze dim"):
        tf.squeeze(tf.zeros([3]), 0)


def test_transpose_conjugates():
    z = tf.constant([[1 + 2j, 3.0]])
    np.testing.assert_array_equal(tf.transpose(z, conjugate=True), [[1 - 2j], [3]])
    np.testing.assert_array_equal(tf.linalg.adjoint(z), [[1 - 2j], [3]])
    np.testing.assert_array_equal(tf.transpose(X, conjugate=True), X.T)


def test_matrix_transpose_needs_a_matrix():
    assert tf.linalg.matrix_transpose(tf.zeros([4, 2, 3])).shape == (4, 3, 2)
    with pytest.raises(ValueError, match="rank >= 2"):
        tf.linalg.matrix_transpose([1.0])


def test_roll():
    np.testing.assert_array_equal(tf.roll(X, 1, -1), np.roll(X, 1, -1))
    np.testing.assert_array_equal(tf.roll(X, [1, 1], [1, 1]), np.roll(X, 2, 1))
    with pytest.raises(InvalidArgument, match="out of range"):
        tf.roll(X, 1, 2)


@pytest.mark.parametrize(
    ("repeats", "axis"), [(2, None), ([1, 2], 0), ([2], 0), (3, -1), (tf.constant([0, 2, 1]), 1), (0, 0)]
)
def test_repeat(repeats, axis):
    expected = np.repeat(X, np.asarray(repeats), axis)
    np.testing.assert_array_equal(tf.repeat(X, repeats, axis), expected)


def test_repeat_of_each_element_has_a_dense_gradient():
    g = gradient(lambda x: tf.repeat(x, [2, 3], axis=0))
    np.testing.assert_array_equal(g, [[1 + 4, 2 + 5, 3 + 6], [7 + 10 + 13, 8 + 11 + 14, 9 + 12 + 15]])


def test_repeat_with_wrong_shapes():
    with pytest.raises(ValueError, match="not compatible"):
        tf.repeat(X, [1, 2, 3], 0)
    with pytest.raises(InvalidArgument):
        tf.repeat(X, [1, -2], 0)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("vectors", [[[1, 2]], [[1, 2], [3, 4, 5]], [[1, 2], [3, 4, 5], [6, 7]]])
def test_meshgrid(indexing, vectors):
    for actual, expected in zip(
        tf.meshgrid(*vectors, indexing=indexing), np.meshgrid(*vectors, indexing=indexing), strict=True
    ):
        np.testing.assert_array_equal(actual, expected)


def test_meshgrid_names_a_wrong_argument():
    with pytest.raises(ValueError, match="'xy' or 'ij'"):
        tf.meshgrid([1], indexing="x")
    with pytest.raises(TypeError, match="foo"):
        tf.meshgrid([1], foo=1)


@pytest.mark.parametrize("mode", ["CONSTANT", "REFLECT", "SYMMETRIC", "reflect"])
def test_pad(mode):
    widths = [[1, 0], [0, 2]]
    expected = np.pad(X, widths, mode=mode.lower())
    np.testing.assert_array_equal(tf.pad(X, widths, mode), expected)
    np.testing.assert_array_equal(tf.pad(X, tf.constant(widths), mode), expected)


def test_pad_constant_values_take_the_type_of_the_tensor():
    np.testing.assert_array_equal(tf.pad([1, 2], [(1, 0)], constant_values=9), [9, 1, 2])
    assert tf.pad(X, [[1, 1], [0, 0]], constant_values=9).dtype is tf.float32


def test_pad_gradient():
    np.testing.assert_array_equal(gradient(lambda x: tf.pad(x, [[1, 0], [0, 1]])), [[5, 6, 7], [9, 10, 11]])
    g = gradient(lambda x: tf.pad(x, [[0, 0], [0, 1]], "SYMMETRIC"))
    np.testing.assert_array_equal(g, [[1, 2, 3 + 4], [5, 6, 7 + 8]])
    g = gradient(lambda x: tf.pad(x, [[0, 0], [1, 0]], "REFLECT"))
    np.testing.assert_array_equal(g, [[2, 3 + 1, 4], [6, 7 + 5, 8]])


def test_pad_errors():
    with pytest.raises(ValueError, match="CONSTANT"):
        tf.pad(X, [[1, 1], [0, 0]], "FOO")
    with pytest.raises(InvalidArgument, match="2 columns"):
        tf.pad(X, [1, 1])
    with pytest.raises(InvalidArgument, match="rank of inputs"):
        tf.pad(X, [[1, 1]])


# ---- stop_gradient ----


def test_stop_gradient_is_a_constant():
    np.testing.assert_array_equal(
        gradient(lambda x: x * tf.stop_gradient(x)), X * np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    )
    assert gradient(tf.stop_gradient) is None


def test_stop_gradient_packs_a_list():
    x = tf.constant(2.0)
    np.testing.assert_array_equal(tf.stop_gradient([x, x]), [2, 2])


def test_stop_gradient_of_a_variable_counts_as_access():
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.stop_gradient(v) * 3.0
    assert tape.watched_variables() == (v,)
    assert tape.gradient(y, v) is None


# ---- diagonals ----


def test_diag():
    np.testing.assert_array_equal(tf.linalg.diag([1.0, 2.0], k=1), np.diag([1.0, 2.0], 1))
    np.testing.assert_array_equal(tf.linalg.diag([1.0, 2.0], num_rows=3), [[1, 0], [0, 2], [0, 0]])
    banded = tf.linalg.diag([[1.0, 2.0], [3.0, 4.0]], k=(0, 1), num_rows=2, num_cols=2)
    np.testing.assert_array_equal(banded, [[3, 2], [0, 4]])
    filled = tf.linalg.diag([1.0, 2.0], k=-1, num_rows=3, num_cols=4, padding_value=9)
    np.testing.assert_array_equal(filled, [[9, 9, 9, 9], [1, 9, 9, 9], [9, 2, 9, 9]])


@pytest.mark.parametrize(
    ("k", "align", "expected"),
    [
        (2, "RIGHT_LEFT", [3]),
        ((-1, 1), "RIGHT_LEFT", [[2, 6], [1, 5], [4, 7]]),
        ((-1, 1), "LEFT_RIGHT", [[2, 6], [1, 5], [7, 4]]),
        ((-1, 2), "LEFT_LEFT", [[3, 7], [2, 6], [1, 5], [4, 7]]),
        ((-1, 2), "RIGHT_RIGHT", [[7, 3], [2, 6], [1, 5], [7, 4]]),
    ],
)
def test_diag_part(k, align, expected):
    np.testing.assert_array_equal(tf.linalg.diag_part(X, k=k, align=align, padding_value=7), expected)


def test_set_diag():
    np.testing.assert_array_equal(tf.linalg.set_diag(X, [8.0, 9.0]), [[8, 2, 3], [4, 9, 6]])
    np.testing.assert_array_equal(tf.linalg.set_diag(X, [8.0, 9.0], k=1), [[1, 8, 3], [4, 5, 9]])
    banded = tf.linalg.set_diag(X, [[8.0, 9.0], [7.0, 6.0]], k=(-1, 0))
    np.testing.assert_array_equal(banded, [[8, 2, 3], [7, 9, 6]])
    batch = tf.linalg.set_diag(tf.zeros([2, 2, 2]), tf.ones([2, 2]))
    np.testing.assert_array_equal(batch, [np.eye(2)] * 2)
    with pytest.raises(InvalidArgument, match="does not fit"):
        tf.linalg.set_diag(X, [8.0])


def test_set_diag_gradient_goes_to_both():
    g = gradient(lambda x: tf.linalg.set_diag(x, x[0, :2] * 2.0))
    np.testing.assert_array_equal(g, [[2 * 1, 2 + 2 * 5, 3], [4, 0, 6]])


def test_diag_errors():
    with pytest.raises(InvalidArgument, match="out of bound"):
        tf.linalg.diag_part(X, k=(0, 3))
    with pytest.raises(InvalidArgument, match="not consistent"):
        tf.linalg.diag([1.0, 2.0], num_rows=4, num_cols=4)
    with pytest.raises(InvalidArgument, match="align"):
        tf.linalg.diag_part(X, k=(0, 1), align="LEFT")


def test_tensor_diag():
    diag = tf.linalg.tensor_diag(X)
    assert diag.shape == (2, 3, 2, 3)
    np.testing.assert_array_equal(tf.linalg.tensor_diag_part(diag), X)
    with pytest.raises(InvalidArgument, match="dimensions 0 and 1 do not match"):
        tf.linalg.tensor_diag_part(X)


# ---- what a tape keeps ----

MOVED = {
    "reshape": lambda x: tf.reshape(x, [-1]),
    "transpose": tf.transpose,
    "index": lambda x: x[:, 1],
    "pad": lambda x: tf.pad(x, [[1, 1], [0, 0]]),
    "tile": lambda x: tf.tile(x, [1, 2]),
    "broadcast_to": lambda x: tf.broadcast_to(x, [2, *x.shape]),
    "reverse": lambda x: tf.reverse(x, [0]),
    "roll": lambda x: tf.roll(x, 1, 0),
    "concat": lambda x: tf.concat([x, x], 0),
    "stack": lambda x: tf.stack([x, x]),
    "split": lambda x: tf.split(x, 2, axis=1)[0],
    "cast": lambda x: tf.cast(x, tf.float64),
    "band_part": lambda x: tf.linalg.band_part(x, 0, 0),
    "scatter_nd": lambda x: tf.scatter_nd([[i] for i in range(64)], x, [64, 64]),
}


@pytest.mark.parametrize("name", MOVED)
def test_T56_a_tape_keeps_no_operand_of_a_movement(name, counted_memory):
    x = tf.ones([64, 64])
    with tf.GradientTape() as tape:
        tape.watch(x)
        # All but the final scalar is temporary and must be freed.
        before = tf.config.memory_info()["live_bytes"]
        y = tf.reduce_sum(MOVED[name](x + 1.0))
        kept = tf.config.memory_info()["live_bytes"] - before
    assert kept < 64 * 64 * 4
    assert tape.gradient(y, x).shape == (64, 64)


def test_a_float_tensor_in_a_list_of_sizes_is_cast():
    """As TensorFlow, which packs the list into one tensor of integers; a tensor or list of floats is refused."""
    x, two = tf.constant([[1.0, 2.0]]), tf.constant(2.7)
    assert tf.tile(x, [two, 1]).shape == (2, 2) and tf.tile(x, [1, tf.Variable(2.0)]).shape == (1, 4)
    assert tf.reshape(x, [two, 1]).shape == (2, 1) and tf.zeros([tf.constant(3.0, tf.float64), 2]).shape == (
        3,
        2,
    )
    assert tf.function(lambda n: tf.tile(x, [n, 1]))(tf.constant(3.0)).shape == (3, 2)
    for wrong in (
        tf.constant([2.0, 1.0]),
        [2.0, 1.0],
        [tf.constant([2.0]), 1],
        [tf.constant(float("nan")), 1],
        ["2", 1],
    ):
        with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError), match="multiples"):
            tf.tile(x, wrong)
