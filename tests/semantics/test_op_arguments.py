"""Arguments that ops accept, and the error classes for those that they do not."""

import contextlib

import numpy as np
import pytest

from .lib import ON_TENSORFLOW, assert_close, tf

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
    if x != "complex64":  # an array takes the type of the tensor
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


@pytest.mark.parametrize(
    "f, error, words",
    [
        (lambda: tf.constant(1) + 1.5, Invalid, None),
        (lambda: tf.constant(1) == 1.5, TypeError, "Cannot convert 1.5 to EagerTensor of dtype int32"),
        (lambda: tf.complex(tf.ones([2]), tf.ones([2], tf.float64)), TypeError, None),
        (lambda: tf.complex(1, 2), TypeError, None),
        (lambda: tf.truediv(tf.constant([True]), tf.constant([True])), TypeError, None),
        (lambda: tf.math.logical_not([1]), TypeError, None),
        (lambda: tf.cumsum([1, 2], axis=[0]), Invalid, None),
        (lambda: tf.cumsum([1, 2], axis=[0, 1]), Invalid, None),
        (lambda: tf.reshape([1.0], [1.0]), Invalid, None),
        (lambda: tf.tile([1.0], [[1]]), Invalid, None),
        (lambda: tf.math.top_k([1, 2], [1]), Invalid, None),
        (lambda: tf.stack([[1], [2]], axis=2), ValueError, None),
        (lambda: tf.repeat([1, 2], 2, axis=1), ValueError, None),
        (
            lambda: tf.reduce_sum([1.0], axis=2),
            Invalid,
            r"Invalid reduction dimension \(2 for input with 1 dimension",
        ),
        (
            lambda: tf.expand_dims([1.0], 4),
            Invalid,
            "Tried to expand dim index 4 for tensor with 1 dimensions",
        ),
        (lambda: tf.argmax([1.0], 3), Invalid, r"Expected dimension in the range \[-1, 1\), but got 3"),
        (lambda: tf.constant(1)[0:1], Invalid, "Attempting to slice scalar input"),
        (lambda: tf.constant([1])[:1.5], TypeError, "Only integers"),
    ],
)
def test_arguments_of_a_kind_that_does_not_fit(f, error, words):
    with pytest.raises(error, match=words):
        f()


def test_mixed_types_say_which_operand():
    with pytest.raises(
        Invalid, match=r"as input #1\(zero-based\) was expected to be a int32 tensor but is a float"
    ):
        tf.add(tf.constant(1), tf.constant(1.0))


def test_tensors_are_equal_or_of_another_type_in_functions_too():
    different = tf.function(lambda x, y: x == y)
    assert not bool(different(tf.ones([2]), tf.ones([3])))
    with pytest.raises(TypeError):
        tf.function(lambda x: x == 1.5)(tf.constant(1))


def test_default_types_and_real_parts():
    assert tf.argmax([1, 3, 2], output_type=None).dtype == tf.int64
    with pytest.warns() if ON_TENSORFLOW else contextlib.nullcontext():
        assert int(tf.constant(1 + 2j)) == 1


# ---- lists and numbers as tensors ----


def test_lists_of_tensors_take_the_given_type():
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


def test_pad_with_wrong_paddings():
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


# ---- sizes, axes and diagonals that do not fit ----


@pytest.mark.parametrize(
    "sizes, words",
    [
        ([-1, -1, 3], "There can only be one -1 in the input"),
        ([7, -7, 6], "Split size at index 1 must be >= 0. Got: -7"),
        ([1, 2], "Determined shape must either match input shape along split_dim exactly"),
        ([7, -1], "Determined shape must either match input shape along split_dim exactly"),
        (0, "must be at least minimum 1"),
        (4, "Number of ways to split should evenly divide the split dimension"),
        ([[3, 3]], "size of the split_tensor must be 1-D"),
    ],
)
def test_split_into_wrong_sizes(sizes, words):
    with pytest.raises(Invalid, match=words.replace("[", r"\[")):
        tf.split(tf.range(6), sizes)


def test_split_by_a_tensor_without_axes():
    with pytest.raises(ValueError, match="Rank-0 tensors are not supported as the num_or_size_splits"):
        tf.split(tf.range(6), tf.constant(2))
    assert [x.shape for x in tf.split(tf.range(6), np.int64(2))] == [[3], [3]]
    assert [x.shape for x in tf.split(tf.range(6), tf.constant([1, -1]))] == [[1], [5]]


def test_reverse_sequence_of_lengths_that_do_not_fit():
    x = [[1, 2, 3], [4, 5, 6]]
    for lengths, words in (
        ([2, -1], r"seq_lens\(1\) < 0"),
        ([2, 4], r"seq_lens\(1\) > input.dims\(1\)"),
        ([[2, 2]], "seq_lengths must be 1-dim, not 2"),
        ([2], r"Length of seq_lengths != input.dims\(0\)"),
    ):
        with pytest.raises(Invalid, match=words):
            tf.reverse_sequence(x, lengths, seq_axis=1)
    with pytest.raises(Invalid, match="seq_dim must be < input rank"):
        tf.reverse_sequence(x, [1, 1], seq_axis=3)


def test_diagonals_that_do_not_fit():
    with pytest.raises(Invalid, match="lower_diag_index must not be larger than upper_diag_index: 1 > 0"):
        tf.linalg.diag_part(tf.ones([2, 2]), k=(1, 0))
    with pytest.raises(Invalid, match="is not in the list of allowed values"):
        tf.linalg.diag([1, 2], align="MIDDLE")
    with pytest.raises(Invalid, match=r"diagonal must be at least 1-dim, received shape: \[\]"):
        tf.linalg.set_diag(tf.ones([2, 2]), 9.0)
    out = tf.linalg.set_diag([[True, False], [True, True]], [False, True])
    np.testing.assert_array_equal(out, [[False, False], [True, True]])


def test_factors_of_another_type():
    with pytest.raises(ValueError, match="Tensor conversion requested dtype"):
        tf.math.scalar_mul(tf.constant(2.0, tf.float64), tf.ones([2]))
    with pytest.raises(ValueError, match="Tensor conversion requested dtype"):
        tf.math.multiply_no_nan(tf.ones([2]), tf.ones([2], tf.float64))
    assert_close(tf.math.multiply_no_nan([np.nan, 2.0], [0.0, 3.0]), [0.0, 6.0])


def test_weights_of_another_shape():
    with pytest.raises(ValueError, match="incompatible"):
        tf.math.confusion_matrix([1, 2], [2, 2], weights=[1, 2, 3])
    with pytest.raises(ValueError, match="not compatible"):
        tf.math.accumulate_n([tf.constant([1, 2])], shape=[3])


def test_more_bands_than_rows():
    rng = np.random.default_rng(0)
    bands, rhs = rng.uniform(1, 2, [5, 3]), rng.normal(size=[3, 2])
    for lower, used in ((True, bands[:3]), (False, bands[-3:])):
        out = tf.linalg.banded_triangular_solve(bands, rhs, lower=lower)
        assert_close(out, tf.linalg.banded_triangular_solve(used, rhs, lower=lower))


@pytest.mark.parametrize("dtype, result", [("uint8", "float32"), ("int16", "float32"), ("int32", "float64")])
def test_linspace_of_integers(dtype, result):
    out = tf.linspace(tf.constant(0, dtype), tf.constant(4, dtype), 5)
    assert out.dtype == result
    assert_close(out, [0, 1, 2, 3, 4])


def test_where_of_version_1_chooses_rows():
    where = tf.compat.v1.where
    assert_close(where([True, False], [[1, 2], [3, 4]], [[5, 6], [7, 8]]), [[1, 2], [7, 8]])
    assert_close(where([[True, False]], [[1, 2]], [[5, 6]]), [[1, 6]])
    assert_close(where([False, True]), [[1]])


# ---- convolutions in one form ----


def images(*shape):
    return tf.constant(np.random.default_rng(0).normal(size=shape), tf.float32)


def test_conv_is_that_of_nn():
    x, w = images(2, 5, 6, 3), images(2, 3, 3, 4)
    assert_close(tf.conv(x, w, [1, 2, 1, 1], "SAME"), tf.nn.conv2d(x, w, [1, 2, 1, 1], "SAME"), atol=1e-5)
    pads = [[0, 0], [1, 0], [2, 1], [0, 0]]
    out = tf.conv(x, w, [1, 1, 1, 1], "EXPLICIT", sum(pads, []), dilations=[1, 2, 1, 1])
    assert_close(out, tf.nn.conv2d(x, w, 1, pads, dilations=[1, 2, 1, 1]), atol=1e-5)
    x, w = images(1, 3, 4, 5, 2), images(2, 2, 2, 2, 3)
    assert_close(
        tf.conv(x, w, [1, 1, 2, 2, 1], "VALID"), tf.nn.conv3d(x, w, [1, 1, 2, 2, 1], "VALID"), atol=1e-5
    )


def test_conv_of_batches():
    x, w = images(2, 3, 4, 4, 2), images(2, 2, 2, 3)
    flat = tf.nn.conv2d(tf.reshape(x, [6, 4, 4, 2]), w, 1, "SAME")
    out = tf.conv(x, w, [1, 1, 1, 1], "SAME", batch_dims=2)
    assert_close(out, tf.reshape(flat, [2, 3, 4, 4, 3]), atol=1e-5)
    assert_close(tf.conv(x[0, 0], w, [1, 1, 1, 1], "SAME", batch_dims=0), out[0, 0], atol=1e-5)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"strides": [1, 1]}, "Sliding window strides field must specify 4 dimensions"),
        ({"strides": [2, 1, 1, 1]}, "does not support strides in the batch and depth dimensions"),
        ({"strides": [1, 0, 1, 1]}, "Spatial strides should be larger than 0"),
        ({"padding": "FOO"}, "is not in the list of allowed values"),
        ({"padding": "EXPLICIT"}, "explicit_paddings attribute must contain 8 values, but got: 0"),
        ({"explicit_paddings": [0] * 8}, "explicit_paddings attribute must be empty"),
        ({"dilations": [2, 1, 1, 1]}, "does not support dilation rates in the batch and depth dimensions"),
        ({"data_format": "NHWC"}, "is not in the list of allowed values"),
        ({"batch_dims": 2}, "The input must have 2 or 3 spatial dimensions but got 1"),
        ({"filter": np.ones([2, 2, 3, 1], np.float32)}, "Input depth must be equal to filter depth: 2 vs 3"),
        ({"filter": np.ones([2, 2, 2], np.float32)}, "The filter must be rank 4 or 5 but got 3"),
    ],
)
def test_conv_of_wrong_shapes(change, words):
    fits = {
        "input": images(1, 4, 4, 2),
        "filter": images(2, 2, 2, 1),
        "strides": [1, 1, 1, 1],
        "padding": "SAME",
    }
    with pytest.raises(Invalid, match=words):
        tf.conv(**(fits | change))


def test_patches_of_volumes():
    x = tf.reshape(tf.range(2 * 2 * 4), [1, 2, 2, 4, 1])
    out = tf.extract_volume_patches(x, [1, 2, 2, 2, 1], [1, 1, 1, 2, 1], "VALID")
    assert_close(out, [[[[[0, 1, 4, 5, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11, 14, 15]]]]])
    out = tf.extract_volume_patches(x, [1, 3, 1, 1, 1], [1, 2, 1, 1, 1], "SAME")
    assert out.shape == [1, 1, 2, 4, 3]
    with pytest.raises(Invalid, match="must be at least minimum 5"):
        tf.extract_volume_patches(x, [1, 2, 2, 1], [1, 1, 1, 1, 1], "VALID")


def test_paddings_for_blocks():
    paddings, crops = tf.required_space_to_batch_paddings([5, 4], [2, 3], [[1, 0], [0, 2]])
    assert_close(paddings, [[1, 0], [0, 2]])
    assert_close(crops, [[0, 0], [0, 0]])
    paddings, crops = tf.required_space_to_batch_paddings([5, 4], [2, 3])
    assert_close(paddings, [[0, 1], [0, 2]])
    assert_close(crops, [[0, 1], [0, 2]])
