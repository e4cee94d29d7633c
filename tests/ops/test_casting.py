"""Casts, complex parts, shapes as tensors, and operators as functions. Values are TensorFlow's."""

import numpy as np
import pytest

import gradtape as tf

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
InvalidArgument = tf.errors.InvalidArgumentError


def gradient(f, x=X):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


# ---- cast ----


def test_cast_to_its_own_type_is_the_tensor_itself():
    x = tf.constant(X)
    assert tf.cast(x, tf.float32) is x
    assert tf.cast(x, "float32") is x
    assert tf.dtypes.cast(x, np.float32) is x


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ([1, 2], "float64", [1.0, 2.0]),
        (3.7, tf.int32, 3),
        (-3.7, tf.int32, -3),
        (True, tf.float32, 1.0),
        (1 + 2j, tf.float32, 1.0),
        ([0.0, 0.5], tf.bool, [False, True]),
        (np.float64([1.5]), tf.bfloat16, [1.5]),
    ],
)
def test_cast(value, dtype, expected):
    out = tf.cast(value, dtype)
    assert out.dtype == dtype
    np.testing.assert_array_equal(tf.cast(out, tf.float64), np.float64(expected))


def test_cast_of_a_variable_is_a_tensor():
    v = tf.Variable(X)
    with tf.GradientTape() as tape:
        y = tf.cast(v, tf.float32) + tf.cast(tf.cast(v, tf.float64), tf.float32)
    assert isinstance(y, tf.Tensor)
    np.testing.assert_array_equal(tape.gradient(y, v), np.full_like(X, 2))


def test_cast_of_indexed_slices_stays_sparse():
    g = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([1]), tf.constant([3, 1]))
    assert isinstance(tf.cast(g, tf.float64), tf.IndexedSlices)


def test_cast_gradients():
    g = gradient(lambda x: tf.cast(x, tf.float64))
    assert g.dtype is tf.float32
    g = gradient(lambda x: tf.cast(tf.cast(x, tf.complex64) * (1 + 2j), tf.float32))
    np.testing.assert_array_equal(g, np.ones_like(X))
    assert gradient(lambda x: tf.cast(tf.cast(x, tf.int32), tf.float32)) is None


def test_cast_refuses_text_and_none():
    with pytest.raises(tf.errors.UnimplementedError, match="Cast string to float32 is not supported"):
        tf.cast("a", tf.float32)
    with pytest.raises(ValueError, match="None"):
        tf.cast(None, tf.float32)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ([-5.0, 300.0], "uint8", [0, 255]),
        ([-5, 300], "int8", [-5, 127]),
        (np.array([1e300, 1.0]), "float32", [np.finfo(np.float32).max, 1]),
        (np.float32([1e30, -1e30]), "int32", [2147483520, -(2**31)]),
        ([-1], "uint64", [0]),
        ([1 + 2j], "float32", [1]),
        ([3.0], "float64", [3]),
    ],
)
def test_saturate_cast(value, dtype, expected):
    np.testing.assert_array_equal(tf.saturate_cast(value, dtype), np.array(expected, dtype))


def test_bitcast():
    np.testing.assert_array_equal(tf.bitcast(X, tf.int32), X.view(np.int32))
    assert tf.bitcast(X, tf.uint8).shape == (2, 3, 4)
    np.testing.assert_array_equal(
        tf.bitcast(X[:, :2].copy(), tf.float64), X[:, :2].copy().view(np.float64)[:, 0]
    )


# ---- complex parts ----


def test_parts_of_real_tensors():
    x = tf.constant(X)
    assert tf.math.real(x) is x
    assert tf.math.conj(x) is x
    np.testing.assert_array_equal(tf.math.imag(x), np.zeros_like(X))
    np.testing.assert_allclose(tf.math.angle([-1.0, 2.0]), [np.pi, 0])


def test_parts_of_complex_tensors():
    z = np.array([1 + 2j, -3 - 1j])
    np.testing.assert_array_equal(tf.math.real(z), z.real)
    np.testing.assert_array_equal(tf.math.imag(z), z.imag)
    np.testing.assert_array_equal(tf.math.conj(z), z.conj())
    np.testing.assert_allclose(tf.math.angle(z), np.angle(z))


# ---- shapes ----


def test_shape_size_rank():
    np.testing.assert_array_equal(tf.shape(X), [2, 3])
    assert tf.shape(X).dtype is tf.int32
    assert tf.shape(X, out_type=tf.int64).dtype is tf.int64
    assert tf.shape(1.0).shape == (0,)
    assert int(tf.size(X)) == 6
    assert tf.size([1, 2], tf.int64).dtype is tf.int64
    assert int(tf.rank(X)) == 2
    assert [s.numpy().tolist() for s in tf.shape_n([X, tf.Variable([1.0])])] == [[2, 3], [1]]
    assert gradient(tf.shape) is None


def test_ensure_shape():
    np.testing.assert_array_equal(tf.ensure_shape(X, [None, 3]), X)
    np.testing.assert_array_equal(gradient(lambda x: tf.ensure_shape(x, None)), np.ones_like(X))
    for wrong in ([None, 4], [6], [2, 3, None]):
        with pytest.raises(InvalidArgument, match="not compatible with expected shape"):
            tf.ensure_shape(X, wrong)


def test_broadcast_dynamic_shape():
    np.testing.assert_array_equal(tf.broadcast_dynamic_shape([2, 1], [3]), [2, 3])
    with pytest.raises(InvalidArgument, match="Incompatible"):
        tf.broadcast_dynamic_shape([2], [3])


# ---- operators as functions ----


@pytest.mark.parametrize(
    ("x", "y", "expected", "dtype"),
    [
        (6, 4, 1.5, "float64"),
        ([6, 3], [4, 2], [1.5, 1.5], "float64"),
        (6.0, 4, 1.5, "float32"),
        (tf.constant(6), 4, 1.5, "float64"),
        (tf.constant([6], tf.int8), tf.constant([4], tf.int8), [1.5], "float32"),
    ],
)
@pytest.mark.parametrize("divide", [tf.divide, tf.math.divide, tf.truediv, tf.math.truediv])
def test_divide(divide, x, y, expected, dtype):
    out = divide(x, y, name="quotient")
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, expected)


def test_pow_equal_and_realdiv():
    assert tf.pow(2, 3).numpy() == 8
    np.testing.assert_array_equal(tf.math.pow([2.0, 3.0], 2), [4, 9])
    np.testing.assert_array_equal(tf.equal(X, [1.0, 2.0, 9.0])[0], [True, True, False])
    np.testing.assert_array_equal(tf.math.not_equal(X, 1)[0], [False, True, True])
    assert bool(tf.equal(1, 1))
    assert tf.realdiv(6.0, 4.0).numpy() == 1.5
    with pytest.raises(InvalidArgument, match="Incompatible shapes"):
        tf.equal(X, [1.0, 2.0])


def test_saturate_cast_of_complex_numbers_and_infinities():
    """Real and imaginary parts separately; infinities of real numbers too. Values are TensorFlow's."""
    most = np.finfo(np.float32).max
    wide = tf.constant([1e300 - 1e300j, 3 + 1e39j, complex(np.inf, np.nan)])
    np.testing.assert_array_equal(
        tf.saturate_cast(wide, tf.complex64), [most - most * 1j, 3 + most * 1j, complex(most, np.nan)]
    )
    np.testing.assert_array_equal(tf.saturate_cast(wide, tf.float32), [most, 3, most])
    reals = tf.constant([1e300, -np.inf, np.nan], tf.float64)
    np.testing.assert_array_equal(tf.saturate_cast(reals, tf.complex64), [most, -most, np.nan])
    np.testing.assert_array_equal(tf.saturate_cast(reals, tf.float64), [1e300, np.finfo(float).min, np.nan])
    same = tf.constant([complex(np.inf, 1)])
    np.testing.assert_array_equal(tf.saturate_cast(same, tf.complex128), same)


@pytest.mark.parametrize("function", [tf.math.real, tf.math.conj])
@pytest.mark.parametrize("value", ["text", [True]])
def test_only_numbers_have_complex_parts(function, value):
    with pytest.raises(TypeError, match=r"(real|conj): input must be a numeric tensor; got (string|bool)"):
        function(value)


@pytest.mark.parametrize("value", ["text", [True]])
def test_only_numbers_have_a_variance(value):
    with pytest.raises(
        InvalidArgument, match="must be either real or complex. Received type <dtype: '(string|bool)'>"
    ):
        tf.math.reduce_std(value)
