"""Pooling, patches, space and depth: TensorFlow's numbers, ties, formats, errors."""

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.ops.table import TABLE

X = np.arange(1, 81, dtype=np.float32).reshape(2, 5, 4, 2) * 5 % 7 - 3
TIES = np.array([[1.0, 2, 2, 1], [2, 2, 0, 0], [3, 1, 1, 3], [1, 3, 3, 1]], np.float32)[None, :, :, None]


def gradient(f, x):
    x = tf.convert_to_tensor(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def windows(x, size, stride, reduce):
    """Windows inside and over the end of x, of all its spatial axes."""
    n, h, w, c = x.shape
    rows = [
        [reduce(x[:, i : i + size, j : j + size].reshape(n, -1, c), 1) for j in range(0, w, stride)]
        for i in range(0, h, stride)
    ]
    return np.moveaxis(np.array(rows), 2, 0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int8", "uint8", "int64"])
def test_max(dtype):
    x = (X + 3).astype(dtype)
    y = tf.nn.max_pool2d(x, 2, 2, "SAME")
    assert y.dtype.name == dtype
    np.testing.assert_array_equal(y, windows(x, 2, 2, np.max))


def test_means_do_not_count_padding():
    np.testing.assert_allclose(tf.nn.avg_pool2d(X, 2, 2, "SAME"), windows(X, 2, 2, np.mean), rtol=1e-6)
    y = tf.nn.avg_pool2d(X, 3, 1, "VALID")
    np.testing.assert_allclose(y[0, 0, 0], X[0, :3, :3].mean((0, 1)), rtol=1e-6)


def test_the_first_of_equals_has_the_gradient():
    def at(*window):
        return gradient(lambda x: tf.nn.max_pool2d(x, *window), TIES)[0, :, :, 0].numpy().tolist()

    assert at(2, 2, "SAME") == [[0, 1, 1, 0], [0, 0, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0]]
    assert at(3, 1, "SAME") == [[0, 3, 1, 0], [0, 0, 0, 0], [6, 0, 0, 6], [0, 0, 0, 0]]
    assert at(2, 1, "VALID") == [[0, 2, 1, 0], [0, 1, 0, 0], [2, 0, 0, 2], [0, 1, 0, 0]]
    explicit = [[0, 0], [1, 1], [1, 1], [0, 0]]
    assert at(2, 2, explicit) == [[1, 1, 0, 1], [0, 1, 0, 0], [1, 0, 0, 1], [1, 1, 0, 1]]


def test_nan_is_the_largest():
    x = np.array(TIES)
    x[0, 1, 1] = np.nan
    y = tf.nn.max_pool2d(x, 2, 2, "VALID").numpy().ravel()
    assert np.isnan(y[0]) and y[1:].tolist() == [2, 3, 3]
    assert gradient(lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), x)[0, 1, 1, 0] == 1
    low = np.full((1, 2, 2, 1), -np.inf, np.float32)
    assert tf.nn.max_pool2d(low, 2, 2, "SAME").numpy().item() == -np.inf


def test_argmax():
    y, places = tf.nn.max_pool_with_argmax(TIES, 2, 2, "SAME")
    assert y.numpy().ravel().tolist() == [2, 2, 3, 3]
    assert places.dtype is tf.int64 and places.numpy().ravel().tolist() == [1, 2, 8, 11]
    two = np.concatenate([TIES, TIES])
    _, places = tf.nn.max_pool_with_argmax(
        two, 2, 2, "SAME", include_batch_in_index=True, output_dtype=tf.int32
    )
    assert places.dtype is tf.int32 and places.numpy().ravel().tolist() == [1, 2, 8, 11, 17, 18, 24, 27]
    _, places = tf.nn.max_pool_with_argmax(X, 3, 1, "SAME")
    flat = X.reshape(2, -1)
    taken = np.stack([flat[i][places[i].numpy()] for i in range(2)])
    np.testing.assert_array_equal(taken, tf.nn.max_pool2d(X, 3, 1, "SAME"))


def test_dimensions_and_formats():
    y = tf.nn.max_pool2d(X, [1, 2, 3, 1], [1, 2, 1, 1], "VALID")
    first = tf.nn.max_pool2d(X.transpose(0, 3, 1, 2), [1, 1, 2, 3], [1, 1, 2, 1], "VALID", "NCHW")
    np.testing.assert_array_equal(first.numpy().transpose(0, 2, 3, 1), y)
    for mean, pools in enumerate(
        [
            (tf.nn.max_pool1d, tf.nn.max_pool2d, tf.nn.max_pool3d),
            (tf.nn.avg_pool1d, tf.nn.avg_pool2d, tf.nn.avg_pool3d),
        ]
    ):
        for dims, x in ((1, X[:, :, 0]), (2, X), (3, X[:, None])):
            y = pools[dims - 1](x, 2, 2, "SAME")
            assert y.shape == [2, *(-(-n // 2) for n in x.shape[1:-1]), 2]
            general = (tf.nn.avg_pool if mean else tf.nn.max_pool)(x, 2, 2, "SAME")
            np.testing.assert_array_equal(general, y)
            kind = "AVG" if mean else "MAX"
            np.testing.assert_array_equal(tf.nn.pool(x, [2] * dims, kind, [2] * dims, "SAME"), y)


def test_windows_with_gaps():
    y = tf.nn.pool(X, [2, 2], "MAX", dilations=[3, 2])
    corners = np.stack([X[:, i : i + 2, j : j + 2] for i in (0, 3) for j in (0, 2)])
    np.testing.assert_array_equal(y, corners.max(0))
    np.testing.assert_allclose(tf.nn.pool(X, [2, 2], "AVG", dilations=[3, 2]), corners.mean(0))


def test_maximum_over_channels():
    x = np.concatenate([X, X[:, ::-1]], -1)
    y = tf.nn.max_pool2d(x, [1, 1, 1, 2], [1, 1, 1, 2], "SAME")
    np.testing.assert_array_equal(y, x.reshape(2, 5, 4, 2, 2).max(-1))


def test_gradients_of_overlapping_windows_are_sums():
    rng = np.random.default_rng(0)
    for shape in ((3, 9, 8, 5), (1, 12, 11, 200), (9, 6, 6, 3)):
        x = rng.standard_normal(shape)
        for f in (tf.nn.max_pool2d, tf.nn.avg_pool2d):
            g = gradient(lambda x, f=f: f(x, 3, 2, "SAME"), x)
            count = f(x, 3, 2, "SAME").numpy().size
            np.testing.assert_allclose(np.sum(g), count, rtol=1e-12)  # each window contributes one
        g = gradient(lambda x: tf.reduce_sum(tf.nn.max_pool2d(x, 3, 2, "SAME") ** 2) / 2, x).numpy()
        y = tf.nn.max_pool2d(x, 3, 2, "SAME").numpy()
        np.testing.assert_allclose((g * x).sum(), (y * y).sum(), rtol=1e-12)


def test_second_derivative():
    x = tf.constant(np.random.default_rng(0).standard_normal((2, 5, 6, 3)))
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.nn.max_pool2d(tf.nn.avg_pool2d(x, 2, 1, "SAME"), 2, 2, "SAME") ** 3)
        g = tape.gradient(y, x)
    gg = outer.gradient(g, x, output_gradients=x)
    np.testing.assert_allclose(gg, 2 * g, rtol=1e-12)  # g is homogeneous of degree 2


def test_compiled():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.avg_pool2d(tf.nn.max_pool2d(x, 3, 1, "SAME"), 2, 2, "VALID") ** 2
        return tape.gradient(y, x)

    def eager(x):
        return tf.nn.avg_pool2d(tf.nn.max_pool2d(x, 3, 1, "SAME"), 2, 2, "VALID") ** 2

    np.testing.assert_allclose(f(tf.constant(X)), gradient(eager, X), rtol=1e-6)


@pytest.mark.parametrize("pseudo_random", [False, True])
@pytest.mark.parametrize("overlapping", [False, True])
def test_fractional(pseudo_random, overlapping):
    x = np.random.default_rng(0).standard_normal((2, 10, 13, 3)).astype(np.float32)
    y, rows, columns = tf.nn.fractional_max_pool(x, [1, 1.44, 1.73, 1], pseudo_random, overlapping, seed=5)
    assert y.shape == [2, 6, 7, 3]
    for borders, size in ((rows.numpy(), 10), (columns.numpy(), 13)):
        assert borders[0] == 0 and borders[-1] == size and set(np.diff(borders)) <= {1, 2}
    means, again, _ = tf.nn.fractional_avg_pool(x, [1, 1.44, 1.73, 1], pseudo_random, overlapping, seed=5)
    np.testing.assert_array_equal(again, rows)
    rows, columns = rows.numpy(), columns.numpy()
    cell = x[:, rows[2] : rows[3] + overlapping, columns[4] : columns[5] + overlapping]
    np.testing.assert_array_equal(y[:, 2, 4], cell.max((1, 2)))
    np.testing.assert_allclose(means[:, 2, 4], cell.mean((1, 2)), rtol=1e-5, atol=1e-6)


# ---- blocks -----------------------------------------------------------------------------------------


def test_space_and_depth():
    x = np.arange(16).reshape(1, 4, 4, 1)
    order = [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]
    assert tf.nn.space_to_depth(x, 2).numpy().ravel().tolist() == order
    assert tf.nn.depth_to_space(x.reshape(1, 2, 2, 4), 2).numpy().ravel().tolist() == order
    y = np.random.default_rng(0).standard_normal((2, 6, 4, 3))
    np.testing.assert_array_equal(tf.nn.depth_to_space(tf.nn.space_to_depth(y, 2), 2), y)
    first = tf.nn.space_to_depth(y.transpose(0, 3, 1, 2), 2, "NCHW")
    np.testing.assert_array_equal(first.numpy().transpose(0, 2, 3, 1), tf.nn.space_to_depth(y, 2))
    np.testing.assert_array_equal(tf.nn.depth_to_space(first, 2, "NCHW").numpy().transpose(0, 2, 3, 1), y)


def test_space_and_batch():
    x = np.arange(12).reshape(1, 3, 4, 1)
    y = tf.space_to_batch(x, [2, 2], [[0, 1], [0, 0]])
    assert y.numpy().ravel().tolist() == [0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 0, 0, 5, 7, 0, 0]
    np.testing.assert_array_equal(tf.batch_to_space(y, [2, 2], [[0, 1], [0, 0]]), x)
    np.testing.assert_array_equal(tf.batch_to_space(y, 2, [[0, 1], [0, 0]]), x)
    np.testing.assert_array_equal(tf.space_to_batch_nd(x, [2], [[1, 0]]).shape, [2, 2, 4, 1])


def test_convolutions_over_dilated_images():
    w = np.random.default_rng(0).standard_normal((3, 3, 2, 4)).astype(np.float32)
    for padding in ("SAME", "VALID"):
        y = tf.nn.with_space_to_batch(
            X, [2, 1], padding, lambda x, dims, padding: tf.nn.conv2d(x, w, 1, padding), filter_shape=[3, 3]
        )
        np.testing.assert_allclose(y, tf.nn.conv2d(X, w, 1, padding, dilations=[2, 1]), rtol=1e-5, atol=1e-5)


def test_morphology():
    x = np.arange(1, 81, dtype=np.float32).reshape(2, 5, 4, 2) % 7 - 3
    f = np.arange(8, dtype=np.float32).reshape(2, 2, 2) % 3 - 1
    arguments = ([1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1])
    for op, expected in ((tf.nn.dilation2d, [134, 4910]), (tf.nn.erosion2d, [-144, -5442])):
        y = op(x, f, *arguments).numpy().ravel()
        assert [y.sum(), (y * np.arange(y.size)).sum()] == expected
        whole = op(x.astype(np.int32), f.astype(np.int32), *arguments)
        np.testing.assert_array_equal(whole.numpy().ravel(), y)


# ---- errors -----------------------------------------------------------------------------------------

INVALID, UNIMPLEMENTED = tf.errors.InvalidArgumentError, tf.errors.UnimplementedError
ONES = np.ones((2, 5, 5, 3), np.float32)


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (INVALID, "attr 'padding'", lambda: tf.nn.max_pool2d(ONES, 2, 2, "same")),
        (INVALID, "smaller than the window", lambda: tf.nn.max_pool2d(ONES, 2, 1, [[0, 0], [3, 1], [1, 1], [0, 0]])),
        (UNIMPLEMENTED, "batch dimension", lambda: tf.nn.max_pool2d(ONES, [2, 2, 2, 1], 1, "SAME")),
        (UNIMPLEMENTED, "exactly one", lambda: tf.nn.max_pool2d(ONES, [1, 2, 2, 3], [1, 1, 1, 3], "SAME")),
        (UNIMPLEMENTED, "evenly divide", lambda: tf.nn.max_pool2d(ONES, [1, 1, 1, 2], [1, 1, 1, 2], "SAME")),
        (INVALID, "ksize must be positive", lambda: tf.nn.max_pool2d(ONES, 0, 1, "SAME")),
        (INVALID, "Stride must be > 0", lambda: tf.nn.max_pool2d(ONES, 2, 0, "SAME")),
        (INVALID, "negative", lambda: tf.nn.avg_pool2d(ONES, 7, 1, "VALID")),
        (INVALID, "4-dimensional", lambda: tf.nn.max_pool2d(ONES[0], 2, 1, "VALID")),
        (INVALID, "bool", lambda: tf.nn.max_pool2d(ONES > 0, 2, 1, "VALID")),
        (INVALID, "int32", lambda: tf.nn.avg_pool2d(ONES.astype(np.int32), 2, 1, "VALID")),
        (INVALID, "data_format", lambda: tf.nn.max_pool2d(ONES, 2, 1, "VALID", "X")),
        (ValueError, "length 1, 2 or 4", lambda: tf.nn.max_pool2d(ONES, [1, 2, 2], 1, "VALID")),
        (ValueError, "must be 3, 4 or 5", lambda: tf.nn.max_pool(ONES[0, 0], 2, 2, "SAME")),
        (ValueError, "FOO pooling", lambda: tf.nn.pool(ONES, [2, 2], "FOO")),
        (ValueError, "'SAME' padding", lambda: tf.nn.pool(ONES, [2, 2], "MAX", dilations=[2, 2], padding="SAME")),
        (ValueError, "other than 'NHWC'", lambda: tf.nn.max_pool_with_argmax(ONES, 2, 2, "SAME", "NCHW")),
        (INVALID, "divisible by block_size: 2", lambda: tf.nn.space_to_depth(ONES, 2)),
        (INVALID, "at least minimum 2", lambda: tf.nn.space_to_depth(ONES, 1)),
        (INVALID, "rank should be 4", lambda: tf.nn.depth_to_space(ONES[0], 2)),
        (INVALID, "divisible by: 4", lambda: tf.nn.depth_to_space(ONES, 2)),
        (INVALID, r"padded_shape\[0\]=5 is not divisible", lambda: tf.space_to_batch(ONES, [2, 5], [[0, 0], [0, 0]])),
        (INVALID, r"shape \[2, 2\]", lambda: tf.space_to_batch(ONES, [2, 5], [[0, 0]])),
        (INVALID, "non-negative", lambda: tf.space_to_batch(ONES, [5], [[-1, 1]])),
        (INVALID, "rank should be 1", lambda: tf.space_to_batch(ONES, 5, [[0, 0]])),
        (INVALID, "not divisible by product", lambda: tf.batch_to_space(ONES, [3, 1], [[0, 0], [0, 0]])),
        (INVALID, "must be non-negative", lambda: tf.batch_to_space(ONES, [2], [[6, 6]])),
        (ValueError, "NHWC", lambda: tf.nn.dilation2d(ONES, ONES[0], [1] * 4, "SAME", "NCHW", [1] * 4)),
        (INVALID, "expected images", lambda: tf.nn.dilation2d(ONES, ONES[0, 0], [1] * 4, "SAME", "NHWC", [1] * 4)),
        (ValueError, "at least 1", lambda: tf.nn.fractional_max_pool(ONES, 0.5)),
    ],
)  # fmt: skip
def test_errors(error, text, call):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("seed", range(40))
def test_patches_of_any_window(seed):
    """One to three axes, rates, strides, padding on each side, windows that reach beyond both ends of the image."""
    rng = np.random.default_rng(seed)
    dims = int(rng.integers(1, 4))
    shape = (2, *rng.integers(1, 9, dims), int(rng.integers(1, 4)))
    sizes, strides, rates = (rng.integers(1, most, dims).tolist() for most in (6, 4, 3))
    pads = [] if seed % 4 == 0 else rng.integers(0, 7, 2 * dims).tolist()
    x = rng.normal(size=shape)
    window = (sizes, strides, rates, pads)
    expected = TABLE["patches"].numpy(x, *window)
    np.testing.assert_array_equal(TABLE["patches"].op(x, *window), expected)
    if expected.size:
        g = rng.normal(size=expected.shape)
        back = TABLE["unpatches"].op(g, list(shape), *window)
        np.testing.assert_allclose(back, TABLE["unpatches"].numpy(g, shape, *window), rtol=1e-12, atol=1e-12)
