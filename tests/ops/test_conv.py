"""Convolutions: TensorFlow's numbers, the engines against a plain sum, gradients, formats, errors."""

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.ops.table import TABLE

conv, conv_input, conv_filter = (TABLE[name].op for name in ("conv", "conv_input", "conv_filter"))

X = np.arange(1, 81, dtype=np.float32).reshape(2, 5, 4, 2) % 7 - 3
W = np.arange(36, dtype=np.float32).reshape(3, 2, 2, 3) % 5 - 2


def sums(x):
    """Two numbers that identify a tensor: its sum, and the sum of its elements times their positions."""
    x = np.asarray(x, np.float64).ravel()
    return [x.sum(), (x * np.arange(x.size)).sum()]


def gradients(f, *xs):
    xs = [tf.convert_to_tensor(x) for x in xs]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return tape.gradient(y, xs)


@pytest.mark.parametrize(
    ("strides", "padding", "dilations", "shape", "expected"),
    [
        (1, "SAME", 1, [2, 5, 4, 3], ([-17, -888], [24, 5462], [334, -7410])),
        (2, "SAME", 1, [2, 3, 2, 3], ([-54, -798], [-24, -342], [20, 2258])),
        ([1, 2], "VALID", 1, [2, 3, 2, 3], ([18, 404], [48, 2960], [350, -1124])),
        (1, "SAME", 2, [2, 5, 4, 3], ([20, 933], [-52, -4226], [12, -180])),
        (2, [[0, 0], [2, 1], [0, 3], [0, 0]], 1, [2, 3, 3, 3], ([54, 1080], [110, 5742], [264, -5676])),
    ],
)
def test_tensorflow_has_the_same_numbers(strides, padding, dilations, shape, expected):
    def run(x, w):
        return tf.nn.conv2d(x, w, strides, padding, dilations=dilations)

    y = run(X, W)
    assert y.shape == shape
    for actual, e in zip(
        (y, *gradients(lambda x, w: tf.reduce_sum(run(x, w) ** 2), X, W)), expected, strict=True
    ):
        np.testing.assert_allclose(sums(actual), e, rtol=1e-6)


def test_transposed():
    g = np.arange(36, dtype=np.float32).reshape(2, 3, 2, 3) % 5 - 2
    cases = [
        (2, "SAME", [2, 5, 4, 2], [6, 323]),
        (2, "VALID", [2, 7, 4, 2], [6, 351]),
        (1, "SAME", [2, 3, 2, 2], [0, 151]),
    ]
    for strides, padding, shape, expected in cases:
        y = tf.nn.conv2d_transpose(g, W, shape, strides, padding)
        assert y.shape == shape
        np.testing.assert_allclose(sums(y), expected)
        np.testing.assert_array_equal(tf.nn.conv2d_transpose(g, W, shape[1:3], strides, padding), y)
        np.testing.assert_array_equal(tf.nn.conv_transpose(g, W, tf.constant(shape), strides, padding), y)


def test_depthwise():
    d = np.arange(24, dtype=np.float32).reshape(3, 2, 2, 2) % 5 - 2
    for strides, padding, dilations, shape, expected in [
        ([1, 1, 1, 1], "SAME", None, [2, 5, 4, 4], [-17, -1265]),
        ([1, 2, 2, 1], "VALID", None, [2, 2, 2, 4], [47, 767]),
        ([1, 1, 1, 1], "SAME", [2, 1], [2, 5, 4, 4], [24, 873]),
    ]:
        y = tf.nn.depthwise_conv2d(X, d, strides, padding, dilations=dilations)
        assert y.shape == shape
        np.testing.assert_allclose(sums(y), expected)
    gx, gd = gradients(lambda x, d: tf.nn.depthwise_conv2d(x, d, [1, 1, 1, 1], "SAME"), X, d)
    ones = np.ones([2, 5, 4, 4], np.float32)
    back = tf.nn.depthwise_conv2d_backprop_input(X.shape, d, ones, [1, 1, 1, 1], "SAME")
    np.testing.assert_allclose(gx, back)
    back = tf.nn.depthwise_conv2d_backprop_filter(X, d.shape, ones, [1, 1, 1, 1], "SAME")
    np.testing.assert_allclose(gd, back)


def test_separable():
    rng = np.random.default_rng(0)
    d, p = rng.standard_normal((3, 3, 2, 2), np.float32), rng.standard_normal((1, 1, 4, 5), np.float32)
    y = tf.nn.separable_conv2d(X, d, p, [1, 1, 1, 1], "SAME")
    between = tf.nn.depthwise_conv2d(X, d, [1, 1, 1, 1], "SAME")
    np.testing.assert_allclose(y, between.numpy() @ p[0, 0], rtol=1e-5, atol=1e-5)


# ---- the engines ------------------------------------------------------------------------------------


def check(n, sizes, c, kernel, o, groups=1, strides=1, dilations=1, pads=0, dtype=np.float32, limit=2e-6):
    """The three rows against a plain sum."""
    rng = np.random.default_rng(len(sizes) * 100 + c)
    dims = len(sizes)
    window = ([strides] * dims, [dilations] * dims, [pads] * (2 * dims) if isinstance(pads, int) else pads)
    x, w = rng.standard_normal((n, *sizes, groups * c)), rng.standard_normal((*kernel, c, groups * o))
    y = TABLE["conv"].numpy(x, w, *window)
    g = rng.standard_normal(y.shape)
    gx = TABLE["conv_input"].numpy(g, w, [*sizes, groups * c], *window)
    gw = TABLE["conv_filter"].numpy(x, g, [*kernel, c], *window)
    x, w, g = (v.astype(dtype) for v in (x, w, g))
    for actual, e in (
        (conv(x, w, *window), y),
        (conv_input(g, w, [*sizes, groups * c], *window), gx),
        (conv_filter(x, g, [*kernel, c], *window), gw),
    ):
        assert np.abs(actual.numpy() - e).max() <= limit * np.abs(e).max()


@pytest.mark.parametrize(
    ("n", "h", "w", "c", "o"), [(2, 8, 8, 32, 32), (1, 9, 13, 33, 50), (3, 14, 7, 64, 40), (1, 6, 40, 16, 96)]
)
@pytest.mark.parametrize("pad", [0, 1, 2])
def test_three_by_three(n, h, w, c, o, pad):  # Winograd's way, in float32
    check(n, (h, w), c, (3, 3), o, pads=pad)


def test_winograd_is_exact_for_small_integers():
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (2, 12, 12, 64)).astype(np.float32)
    w = rng.integers(-4, 5, (3, 3, 64, 64)).astype(np.float32)
    np.testing.assert_array_equal(
        tf.nn.conv2d(x, w, 1, "SAME"), tf.nn.conv2d(x.astype("f8"), w.astype("f8"), 1, "SAME")
    )


def test_winograd_keeps_nan_where_it_belongs():
    x, w = np.zeros((1, 12, 12, 32), np.float32), np.ones((3, 3, 32, 32), np.float32)
    x[0, 5, 6, 3] = np.nan
    expected = np.zeros((12, 12), bool)
    expected[4:7, 5:8] = True
    np.testing.assert_array_equal(np.isnan(tf.nn.conv2d(x, w, 1, "SAME")[0, :, :, 0]), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("c", [1, 3, 8])
def test_few_channels(c, dtype):
    limit = 2e-6 if dtype == np.float32 else 1e-13
    check(2, (20, 23), c, (5, 4), 24, strides=2, pads=2, dtype=dtype, limit=limit)
    check(2, (20, 23), c, (3, 3), 40, pads=1, dtype=dtype, limit=limit)
    check(2, (20, 23), 24, (3, 3), c, pads=1, dtype=dtype, limit=limit)
    check(1, (6, 9, 18), 16, (2, 3, 3), c, pads=1, dilations=2, dtype=dtype, limit=limit)
    check(3, (40,), c, (7,), 33, strides=3, pads=3, dtype=dtype, limit=limit)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_channels(dtype):
    limit = 2e-6 if dtype == np.float32 else 1e-13
    check(1, (9, 10), 70, (3, 3), 100, strides=2, pads=[0, 1, 1, 0], dtype=dtype, limit=limit)
    check(1, (5, 5), 600, (2, 2), 33, dtype=dtype, limit=limit)  # a panel in several blocks
    check(2, (7, 7), 16, (1, 1), 64, strides=2, dtype=dtype, limit=limit)  # pixels that no window reaches
    check(2, (12, 11), 20, (3, 3), 20, groups=3, pads=1, dtype=dtype, limit=limit)
    check(2, (12, 11), 1, (3, 3), 1, groups=37, strides=2, pads=1, dtype=dtype, limit=limit)
    check(2, (12, 11), 1, (5, 5), 3, groups=20, pads=2, dilations=2, dtype=dtype, limit=limit)
    check(1, (4, 5, 6), 17, (3, 2, 3), 18, strides=2, pads=1, dtype=dtype, limit=limit)


def test_large_sums_are_cut_into_parts():
    check(4, (40, 41), 20, (5, 5), 40, strides=3, pads=2)
    check(8, (30, 30), 1, (3, 3), 1, groups=24, pads=1)
    check(6, (28, 28), 32, (3, 3), 64, pads=1, limit=4e-6)
    check(2, (3001,), 3, (5,), 20, strides=2, pads=2, limit=4e-6)  # lines that are cut
    check(1, (4000,), 20, (3,), 33, dilations=4, pads=4, limit=4e-6)


def test_small_groups_side_by_side():
    check(2, (9, 10), 4, (3, 3), 4, groups=12, pads=1)
    check(2, (9, 10), 3, (3, 2), 5, groups=6, strides=2, pads=1)
    check(1, (9, 10), 2, (3, 3), 16, groups=8, pads=1, dtype=np.float64, limit=1e-13)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("size", "taps", "groups", "c", "o", "stride", "dilation"),
    [
        ((9, 11), (3, 3), 1, 17, 35, 1, 1),
        ((8, 7), (3, 2), 1, 3, 20, 2, 1),  # the taps of a row are one run, of odd length
        ((12, 10), (3, 3), 1, 32, 64, 1, 2),
        ((10, 9), (1, 1), 1, 24, 48, 1, 1),
        ((9, 8), (3, 3), 2, 20, 33, 1, 1),
        ((9, 8), (3, 3), 4, 3, 5, 2, 1),
        ((1000,), (5,), 1, 2, 16, 1, 1),  # lines that are cut
        ((5, 6, 7), (2, 3, 2), 1, 18, 19, 1, 1),
    ],
)
def test_sums_of_16_bit_floats_are_rounded_once(dtype, size, taps, groups, c, o, stride, dilation):
    rng = np.random.default_rng(3)

    def random(*shape):
        x = tf.cast(tf.constant(rng.standard_normal(shape, np.float32)), dtype)
        return x, tf.cast(x, "float64")

    about = ((stride,) * len(size), (dilation,) * len(size), (-1,))
    (x, x64), (w, w64) = random(2, *size, c * groups), random(*taps, c, o * groups)
    y64 = conv(x64, w64, *about)
    g, g64 = random(*y64.shape)
    for found, wanted in (
        (conv(x, w, *about), y64),
        (conv_input(g, w, x.shape[1:], *about), conv_input(g64, w64, x.shape[1:], *about)),
        (conv_filter(x, g, w.shape[:-1], *about), conv_filter(x64, g64, w.shape[:-1], *about)),
    ):
        found, wanted = np.asarray(tf.cast(found, "float64")), np.asarray(wanted)
        rounding = 2.0**-8 if dtype == "bfloat16" else 2.0**-11
        np.testing.assert_array_less(abs(found - wanted), rounding * abs(wanted) + 1e-5 * abs(wanted).max())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_summed_in_float(dtype):
    x, w = tf.cast(X, dtype), tf.cast(W, dtype)
    y = tf.nn.conv2d(x, w, 1, "SAME")
    assert y.dtype.name == dtype
    np.testing.assert_array_equal(
        tf.cast(y, "float32"), tf.cast(tf.nn.conv2d(X, W, 1, "SAME"), dtype).numpy().astype("f4")
    )


def test_integers():
    y = tf.nn.conv2d(X.astype(np.int32), W.astype(np.int32), 1, "SAME")
    assert y.dtype is tf.int32
    np.testing.assert_array_equal(y, tf.nn.conv2d(X, W, 1, "SAME"))


# ---- forms of a call --------------------------------------------------------------------------------


def test_channels_first():
    y = tf.nn.conv2d(X, W, [1, 2, 1, 1], "SAME")
    first = tf.nn.conv2d(X.transpose(0, 3, 1, 2), W, [1, 1, 2, 1], "SAME", "NCHW")
    np.testing.assert_array_equal(first.numpy().transpose(0, 2, 3, 1), y)
    back = tf.nn.conv2d_transpose(first, W, [2, 2, 5, 4], [1, 1, 2, 1], data_format="NCHW")
    last = tf.nn.conv2d_transpose(y, W, [2, 5, 4, 2], [1, 2, 1, 1])
    np.testing.assert_array_equal(back.numpy().transpose(0, 2, 3, 1), last)
    pads = [[0, 0], [0, 0], [1, 1], [0, 2]]
    explicit = tf.nn.conv2d(X.transpose(0, 3, 1, 2), W, 1, pads, "NCHW")
    assert explicit.shape == [2, 3, 5, 5]


def test_leading_axes_are_a_batch():
    y = tf.nn.conv2d(X[None], W, 1, "SAME")
    assert y.shape == [1, 2, 5, 4, 3]
    np.testing.assert_array_equal(y[0], tf.nn.conv2d(X, W, 1, "SAME"))


def test_one_and_three_dimensions():
    line = tf.nn.conv1d(X[:, :, 0], W[:, 0], 2, "SAME")
    image = tf.nn.conv2d(X[:, :, :1], W[:, :1], [2, 1], "SAME")
    np.testing.assert_array_equal(line, image[:, :, 0])
    volume = tf.nn.conv3d(X[:, None], W[None], [1, 1, 2, 1, 1], "SAME")
    np.testing.assert_array_equal(volume[:, 0], tf.nn.conv2d(X, W, [2, 1], "SAME"))
    for x, w in ((X[:, :, 0], W[:, 0]), (X, W), (X[:, None], W[None])):
        dims = x.ndim - 2
        same = (tf.nn.conv1d, tf.nn.conv2d, tf.nn.conv3d)[dims - 1](x, w, [1] * (dims + 2), "VALID")
        np.testing.assert_array_equal(tf.nn.convolution(x, w), same)
    back = tf.nn.conv1d_transpose(line, W[:, 0], [2, 5, 2], 2)
    assert back.shape == [2, 5, 2]


def test_atrous():
    y = tf.nn.atrous_conv2d(X, W, 2, "SAME")
    np.testing.assert_array_equal(y, tf.nn.conv2d(X, W, 1, "SAME", dilations=2))
    back = tf.nn.atrous_conv2d_transpose(y, W, X.shape, 2, "SAME")
    assert back.shape == X.shape


def test_groups():
    x, w = np.concatenate([X, -2 * X], -1), np.concatenate([W, W + 1], -1)
    y = tf.nn.conv2d(x, w, 1, "SAME")
    np.testing.assert_array_equal(y[..., :3], tf.nn.conv2d(X, W, 1, "SAME"))
    np.testing.assert_array_equal(y[..., 3:], tf.nn.conv2d(-2 * X, W + 1, 1, "SAME"))


def test_variables_lists_and_functions():
    v = tf.Variable(W)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.nn.conv2d(x, v, 2, "SAME") ** 2)
        return tape.gradient(y, v)

    (expected,) = gradients(lambda w: tf.reduce_sum(tf.nn.conv2d(X, w, 2, "SAME") ** 2), W)
    np.testing.assert_allclose(step(tf.constant(X)), expected)
    np.testing.assert_array_equal(
        tf.nn.conv2d(X.tolist(), W.tolist(), 2, "SAME"), tf.nn.conv2d(X, W, 2, "SAME")
    )


def test_third_derivative():
    """Σ y³ of a convolution y: each derivative consists of convolutions."""

    def f(t):
        x = tf.constant(X, tf.float64) * t
        return tf.reduce_sum(tf.nn.conv2d(x, tf.constant(W, tf.float64) * t, [2, 1], "SAME") ** 3)

    t = tf.constant(1.0, tf.float64)
    value = f(t)
    with tf.GradientTape() as t3:
        t3.watch(t)
        with tf.GradientTape() as t2:
            t2.watch(t)
            with tf.GradientTape() as t1:
                t1.watch(t)
                y = f(t)
            g = t1.gradient(y, t)
        gg = t2.gradient(g, t)
    ggg = t3.gradient(gg, t)
    # f is homogeneous of degree 6
    np.testing.assert_allclose([g, gg, ggg], [6 * value, 30 * value, 120 * value], rtol=1e-12)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("batched", [(1, 0), (0, 1), (1, 1)])
def test_batches_of_images_and_filters(groups, batched):
    rng = np.random.default_rng(0)
    x = tf.constant(rng.standard_normal((3,) * batched[0] + (2, 5, 4, 2 * groups)))
    w = tf.constant(rng.standard_normal((3,) * batched[1] + (3, 2, 2, 3 * groups)))

    def row(k, x, w):
        xk, wk = (tf.gather(v, k) if b else v for v, b in zip((x, w), batched, strict=True))
        return tf.nn.conv2d(xk, wk, 2, "SAME")

    def mapped(x, w):
        return tf.vectorized_map(lambda k: row(k, x, w), tf.range(3))

    def stacked(x, w):
        return tf.stack([row(k, x, w) for k in range(3)])

    np.testing.assert_allclose(mapped(x, w), stacked(x, w), rtol=1e-12)
    grads = [gradients(lambda x, w, f=f: tf.reduce_sum(f(x, w) ** 2), x, w) for f in (mapped, stacked)]
    for a, e in zip(*grads, strict=True):
        np.testing.assert_allclose(tf.convert_to_tensor(a), tf.convert_to_tensor(e), rtol=1e-10)


def test_empty():
    y = tf.nn.conv2d(np.zeros((0, 5, 4, 2), np.float32), W, 1, "SAME")
    assert y.shape == [0, 5, 4, 3]
    gx, gw = gradients(lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), np.zeros((0, 5, 4, 2), np.float32), W)
    assert gx.shape == [0, 5, 4, 2]
    np.testing.assert_array_equal(gw, np.zeros_like(W))


# ---- errors -----------------------------------------------------------------------------------------

INVALID, UNIMPLEMENTED = tf.errors.InvalidArgumentError, tf.errors.UnimplementedError


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (INVALID, "divisible by filter depth: 2 vs 3", lambda: tf.nn.conv2d(X, W[:, :, [0, 1, 1]], 1, "SAME")),
        (INVALID, "filter must be 4-dimensional", lambda: tf.nn.conv2d(X, W[0], 1, "SAME")),
        (INVALID, "input must be 4-dimensional", lambda: tf.nn.conv2d(X[0], W, 1, "SAME")),
        (INVALID, "attr 'padding' of \"same\"", lambda: tf.nn.conv2d(X, W, 1, "same")),
        (INVALID, "`data_format` must be 'NHWC' or 'NCHW'", lambda: tf.nn.conv2d(X, W, 1, "SAME", "NWC")),
        (ValueError, "strides should be of length 1, 2 or 4", lambda: tf.nn.conv2d(X, W, [1, 1, 1], "SAME")),
        (UNIMPLEMENTED, "strides in the batch and depth", lambda: tf.nn.conv2d(X, W, [2, 1, 1, 1], "SAME")),
        (ValueError, "it must be of size 4", lambda: tf.nn.conv2d(X, W, 1, [[1, 1], [1, 1]])),
        (INVALID, "batch or depth", lambda: tf.nn.conv2d(X, W, 1, [[0, 0], [1, 1], [1, 1], [1, 0]])),
        (INVALID, "Stride must be > 0", lambda: tf.nn.conv2d(X, W, 0, "SAME")),
        (INVALID, "larger than 0", lambda: tf.nn.conv2d(X, W, 1, "SAME", dilations=0)),
        (INVALID, "negative: -1", lambda: tf.nn.conv2d(X[:, :1], W, 1, "VALID")),
        (INVALID, "dtype|float64", lambda: tf.nn.conv2d(tf.constant(X), tf.constant(W, tf.float64), 1, "SAME")),
        (INVALID, "complex64", lambda: tf.nn.conv2d(tf.cast(X, tf.complex64), tf.cast(W, tf.complex64), 1, "SAME")),
        (ValueError, "`data_format` must be 'NWC' or 'NCW'", lambda: tf.nn.conv1d(X[0], W[0], 1, "SAME", "NHWC")),
        (ValueError, "must be 1, 2, or 3", lambda: tf.nn.convolution(X, W[0, 0])),
        (INVALID, "actual = 5, computed = 6", lambda: tf.nn.conv2d_transpose(X, W.swapaxes(2, 3), [2, 11, 8, 3], 2)),
        (INVALID, "same batch size: 2 vs 3", lambda: tf.nn.conv2d_transpose(X, W.swapaxes(2, 3), [3, 10, 8, 3], 2)),
        (ValueError, "length 2 or 4", lambda: tf.nn.conv2d_transpose(X, W.swapaxes(2, 3), [3], 2)),
        (TypeError, "Expected list for 'strides'", lambda: tf.nn.depthwise_conv2d(X, W, 1, "SAME")),
        (INVALID, "depth: 2 vs 3", lambda: tf.nn.depthwise_conv2d(X, W.swapaxes(2, 3), [1, 1, 1, 1], "SAME")),
        (ValueError, "pointwise_filter", lambda: tf.nn.separable_conv2d(X, W, W, [1, 1, 1, 1], "SAME")),
        (ValueError, "less than one", lambda: tf.nn.atrous_conv2d(X, W, 0, "SAME")),
    ],
)  # fmt: skip
def test_errors(error, text, call):
    with pytest.raises(error, match=text):
        call()
