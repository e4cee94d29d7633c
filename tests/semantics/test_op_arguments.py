"""What ops take for their arguments, and which class of error says that they do not."""

import numpy as np
import pytest

from .lib import assert_close, tf

Invalid = tf.errors.InvalidArgumentError


def in_function(f, *args):
    return tf.function(f)(*args)


# ---- classes of errors ----


@pytest.mark.parametrize(
    "f",
    [
        lambda: tf.matmul(tf.ones([2, 3]), tf.ones([2, 3])),
        lambda: tf.ones([2]) + tf.ones([3]),
        lambda: tf.concat([tf.ones([2, 1]), tf.ones([3])], 0),
        lambda: tf.reshape(tf.ones([4]), [3]),
        lambda: tf.linalg.cholesky(tf.ones([2, 3])),
        lambda: tf.ones([2, 3])[0, 0, 0],
    ],
)
def test_shapes_that_do_not_fit(f):
    with pytest.raises(Invalid):
        f()
    with pytest.raises(ValueError):
        tf.function(f)()


@pytest.mark.parametrize(
    "f",
    [
        lambda: tf.add(tf.ones([2]), tf.ones([2], tf.int32)),
        lambda: tf.ones([2]) * tf.ones([2], tf.float64),
        lambda: tf.matmul(tf.ones([2, 2]), tf.ones([2, 2], tf.float64)),
        lambda: tf.concat([tf.ones([2]), tf.ones([2], tf.int32)], 0),
        lambda: tf.bitwise.bitwise_and(tf.constant([True]), tf.constant([True])),
        lambda: tf.less(tf.constant([True]), tf.constant([False])),
    ],
)
def test_types_that_do_not_fit(f):
    with pytest.raises(Invalid):
        f()
    with pytest.raises(TypeError):
        tf.function(f)()


@pytest.mark.parametrize("x", ["uint8", "int32", "int64", "float16", "float32", "complex64"])
@pytest.mark.parametrize("y", ["int8", "int32", "float32", "float64", "complex128"])
def test_divide_no_nan_of_two_types(x, y):
    a, b = tf.cast([1, 2], x), tf.cast([0, 2], y)
    if x != y:
        with pytest.raises(TypeError, match="must have the same dtype, got"):
            tf.math.divide_no_nan(a, b)
    if x != "complex64":  # an array has no type beside a tensor
        assert tf.math.divide_no_nan(np.array([1, 2], x), b).dtype == (b / b).dtype


@pytest.mark.parametrize("dtype, result", [("int8", "float32"), ("uint16", "float32"), ("int32", "float64")])
def test_divide_no_nan_of_integers(dtype, result):
    out = tf.math.divide_no_nan(tf.constant([1, 3], dtype), tf.constant([0, 2], dtype))
    assert out.dtype == result
    assert_close(out, [0.0, 1.5])
    assert_close(tf.math.divide_no_nan(1, 2), 0.5)


def test_integers_to_negative_powers():
    two, power = tf.constant([2, 3]), tf.constant([1, -1])
    with pytest.raises(Invalid, match="Integers to negative integer powers are not allowed"):
        tf.pow(two, power)
    with pytest.raises(Invalid, match="Integers to negative integer powers are not allowed"):
        in_function(tf.pow, two, power)
    assert_close(in_function(tf.pow, two, tf.constant([3, 0])), [8, 1])


# ---- lists and numbers as tensors ----


def test_lists_of_tensors_take_the_type_that_is_asked_for():
    one = tf.constant([1.0, 2.0])
    for out in (
        tf.convert_to_tensor([one, [3.0, 4.0]], tf.float64),
        tf.convert_to_tensor([tf.constant([1, 2]), tf.constant([3.0, 4.0])], tf.float64),
        tf.convert_to_tensor([[1, tf.constant(2)], [tf.constant(3.0), 4]], tf.float64),
    ):
        assert out.dtype == tf.float64
        assert_close(out, [[1.0, 2.0], [3.0, 4.0]])
    joined = tf.concat((tf.constant([1, 2]), [tf.constant(3, tf.int64)]), 0)
    assert joined.dtype == tf.int32
    assert_close(joined, [1, 2, 3])
    with pytest.raises(Invalid):
        tf.concat([tf.constant([1, 2]), tf.constant([3], tf.int64)], 0)


@pytest.mark.parametrize(
    "value, dtype, expected",
    [
        ([[0, -1]], "uint8", [[0, 255]]),
        (300, "uint8", 44),
        ([300], "int8", [44]),
        (-1, "uint32", 2**32 - 1),
        (2**40, "int32", 0),
    ],
)
def test_integers_wrap_around_in_small_types(value, dtype, expected):
    out = tf.constant(value, dtype)
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, expected)


def test_a_large_shape_is_a_tensor_of_int64():
    assert tf.convert_to_tensor(tf.TensorShape([2**31, 2])).dtype == tf.int64
    assert tf.convert_to_tensor(tf.TensorShape([2**31 - 1, 2])).dtype == tf.int32


def test_pad_with_what_does_not_fit():
    assert_close(tf.pad(tf.constant([1, 2], tf.uint8), [[1, 0]], constant_values=-1), [255, 1, 2])
    np.testing.assert_array_equal(tf.pad([True, True], [[1, 1]]), [False, True, True, False])


def test_one_hot_takes_numbers_for_any_type():
    out = tf.one_hot([0, 2], 3, on_value=1.0, off_value=0.0, dtype=tf.float16)
    assert out.dtype == tf.float16
    assert_close(out, [[1, 0, 0], [0, 0, 1]])
    assert tf.one_hot([0], 2, on_value=5, dtype=tf.int64).dtype == tf.int64
    with pytest.raises(TypeError, match="does not match dtype parameter"):
        tf.one_hot([0], 2, on_value=tf.constant(5), dtype=tf.int64)


def test_set_seed_of_none():
    tf.random.set_seed(None)
    tf.random.normal([2])
    tf.random.set_seed(1)


# ---- types and shapes that were refused ----


@pytest.mark.parametrize("bands, rhs", [((2, 1, 2, 4), (3, 4, 2)), ((2, 4), (3, 4, 1)), ((3, 2, 4), (4, 2))])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_banded_triangular_solve_broadcasts(bands, rhs, lower, adjoint):
    rng = np.random.default_rng(0)
    a, b = rng.uniform(1, 2, bands), rng.normal(size=rhs)
    batch = np.broadcast_shapes(bands[:-2], rhs[:-2])
    full = [np.broadcast_to(x, batch + x.shape[-2:]) for x in (a, b)]
    x = tf.linalg.banded_triangular_solve(a, b, lower=lower, adjoint=adjoint)
    assert_close(x, tf.linalg.banded_triangular_solve(*full, lower=lower, adjoint=adjoint))
    with tf.GradientTape() as tape:
        a = tf.constant(a)
        tape.watch(a)
        y = tf.reduce_sum(tf.linalg.banded_triangular_solve(a, b, lower=lower, adjoint=adjoint))
    assert tape.gradient(y, a).shape == bands


def test_banded_triangular_solve_of_batches_that_do_not_fit():
    with pytest.raises(Invalid, match="must have compatible batch dimensions"):
        tf.linalg.banded_triangular_solve(tf.ones([2, 2, 4]), tf.ones([3, 4, 1]))


def test_half_precision_in_linear_algebra():
    x = tf.constant([[4.0, 1.0], [1.0, 3.0]], tf.float16)
    out = tf.linalg.inv(x)
    assert out.dtype == tf.float16
    assert_close(out, np.linalg.inv(np.asarray(x, np.float64)), rtol=2e-3)
    q, r = tf.linalg.qr(x)
    assert q.dtype == r.dtype == tf.float16
    assert_close(tf.matmul(q, r), x, rtol=5e-3)


def test_transposed_convolution_of_integers():
    x, w = tf.reshape(tf.range(4), [1, 2, 2, 1]), tf.constant([[1, 2], [3, 4]])[:, :, None, None]
    out = tf.nn.conv2d_transpose(x, w, [1, 4, 4, 1], 2)
    assert out.dtype == tf.int32
    expected = tf.nn.conv2d_transpose(tf.cast(x, tf.float32), tf.cast(w, tf.float32), [1, 4, 4, 1], 2)
    np.testing.assert_array_equal(out, expected)


def test_global_norm_of_several_types():
    t = [tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0], tf.bfloat16), tf.constant([5.0], tf.float64)]
    out, norm = tf.clip_by_global_norm(t, 1.0, use_norm=tf.constant(2.0))
    assert [x.dtype for x in out] == [x.dtype for x in t]
    assert_close(out[0], [0.5, 1.0])
    assert_close(tf.cast(out[1], tf.float32), [1.5, 2.0])
    assert_close(out[2], [2.5])


def test_results_with_names():
    out = tf.nn.max_pool_with_argmax(tf.reshape(tf.range(4.0), [1, 2, 2, 1]), 2, 2, "VALID")
    assert_close(out.output, [[[[3.0]]]])
    assert_close(out.argmax, [[[[3]]]])


def test_swish_of_a_list():
    assert_close(tf.nn.silu([-1.0, 3.0], beta=2.0), [-0.11920291, 2.9925821])
