"""`keras.ops.image` on gradtape: values, compiled as eager, gradients as differences, bad input."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as tf
import keras_gradtape  # noqa: F401  before Keras

keras = pytest.importorskip("keras")
from keras_gradtape.src.ops import image as backend  # noqa: E402  this needs Keras

image = keras.ops.image
_rng = np.random.default_rng(5)

X = _rng.uniform(0.05, 1, (2, 5, 6, 3))
FIRST = X.transpose(0, 3, 1, 2)
GRAY = X[..., :1]
PLANE = _rng.uniform(size=(4, 5))
PLACES = _rng.uniform(-2.4, 6.4, (2, 3, 4))
TURN = np.array(
    [[1.113, 0.117, 0.31, -0.113, 0.91, -0.717, 0.01, 0.003], [0.91, -0.21, 1.33, 0.12, 1.12, 0.7, 0, 0]]
)
CORNERS = np.array([[0.0, 0], [5, 0], [0, 4], [5, 4]])
START, END = CORNERS + _rng.uniform(0, 0.9, (2, 4, 2)), CORNERS + _rng.uniform(0, 0.9, (2, 4, 2))
FILLS = ("constant", "nearest", "wrap", "mirror", "reflect")
LAST = {"data_format": "channels_last"}

# Differentiable functions, and with respect to which operands.
CASES = {
    "rgb_to_grayscale": (lambda x: image.rgb_to_grayscale(x, **LAST), X),
    "rgb_to_hsv": (lambda x: image.rgb_to_hsv(x, **LAST), X),
    "rgb_to_hsv first": (lambda x: image.rgb_to_hsv(x, "channels_first"), FIRST),
    "hsv_to_rgb": (lambda x: image.hsv_to_rgb(2.3 * x - 0.4, **LAST), X),
    "gaussian_blur": (lambda x, s: image.gaussian_blur(x, (3, 5), s, **LAST), X, np.array([0.7, 1.4])),
    "gaussian_blur even": (lambda x, s: image.gaussian_blur(x, (4, 2), s, **LAST), X[0], np.array([0.7, 1.4])),
    "sobel_edges": (lambda x: image.sobel_edges(x, **LAST), X),
    "perspective_transform": (lambda x, a, b: image.perspective_transform(x, a, b, **LAST), X, START, END),
    "compute_homography_matrix": (backend.compute_homography_matrix, START, END),
    "ssim": (lambda x: image.ssim(x, x[::-1], filter_size=3, **LAST), X),
    "resize crop": (lambda x: image.resize(x, (2, 5), crop_to_aspect_ratio=True, **LAST), X),
    "resize pad": (lambda x: image.resize(x, (2, 7), pad_to_aspect_ratio=True, fill_value=0.4, **LAST), X[0]),
    "extract_patches": (lambda x: image.extract_patches(x, (2, 3), **LAST), X),
    "elastic_transform": (lambda x, a: image.elastic_transform(x, a, 0.9, seed=3, **LAST), X, np.array(1.7)),
    **{
        f"map_coordinates {order} {fill}": (
            lambda x, at, o=order, f=fill: image.map_coordinates(x, at, o, f, 0.3), PLANE, PLACES,
        ) for order in (0, 1) for fill in FILLS
    },
    **{
        f"affine_transform {fill}": (lambda x, t, f=fill: image.affine_transform(x, t, fill_mode=f, **LAST), X, TURN)
        for fill in FILLS
    },
    **{
        f"resize {how} {antialias}": (
            lambda x, h=how, a=antialias: image.resize(x, (3, 8), h, a, data_format="channels_first"), FIRST,
        ) for how in backend.RESIZE_INTERPOLATIONS for antialias in (False, True)
    },
    **{
        f"scale_and_translate {how} {antialias}": (
            lambda x, s, t, h=how, a=antialias: image.scale_and_translate(x, (2, 4, 7, 3), s, t, (1, 2), h, a),
            X, np.array([0.61, 1.27]), np.array([0.31, -0.43]),
        ) for how in ("linear", "cubic", "lanczos3", "lanczos5") for antialias in (False, True)
    },
}  # fmt: skip


@pytest.fixture(params=CASES)
def case(request):
    function, *operands = CASES[request.param]
    return function, [tf.constant(x) for x in operands]


def test_compiled_as_eager_and_in_float32(case):
    function, operands = case
    expected = function(*operands).numpy()
    np.testing.assert_allclose(
        tf.function(function, autograph=False)(*operands).numpy(), expected, rtol=1e-12
    )
    narrow = function(*[tf.cast(x, tf.float32) for x in operands])
    assert narrow.dtype == tf.float32
    np.testing.assert_allclose(narrow.numpy(), expected, rtol=2e-3, atol=2e-4)


def test_gradients_are_differences(case):
    function, operands = case
    weights = tf.constant(_rng.uniform(-1, 1, function(*operands).shape))

    def loss(*xs):
        return tf.reduce_sum(weights * function(*xs))

    with tf.GradientTape() as tape:
        tape.watch(operands)
        value = loss(*operands)
    gradients = tape.gradient(value, operands, unconnected_gradients="zero")
    for i, (x, g) in enumerate(zip(operands, gradients, strict=True)):
        direction = _rng.uniform(-1, 1, x.shape)
        there, back = (
            loss(*[v + s * direction if j == i else v for j, v in enumerate(operands)]) for s in (1e-6, -1e-6)
        )
        slope = float(there - back) / 2e-6
        assert float(tf.reduce_sum(g * direction)) == pytest.approx(slope, rel=1e-5, abs=1e-7)


# ---- values -------------------------------------------------------------------------------------


def test_colours():
    rgb = np.array([[[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0.5], [0, 0, 0]]], "float32")
    hsv = np.array([[[0, 1, 1], [1 / 3, 1, 1], [2 / 3, 1, 1], [0, 0, 0.5], [0, 0, 0]]], "float32")
    np.testing.assert_allclose(image.rgb_to_hsv(rgb), hsv, atol=1e-6)
    np.testing.assert_allclose(image.hsv_to_rgb(hsv), rgb, atol=1e-6)
    np.testing.assert_allclose(image.hsv_to_rgb(hsv + np.array([1, 0, 0], "float32")), rgb, atol=1e-6)
    np.testing.assert_allclose(
        image.rgb_to_grayscale(rgb)[0, :, 0], [0.2989, 0.587, 0.114, 0.49995, 0], atol=1e-6
    )
    assert image.rgb_to_grayscale(GRAY).shape == GRAY.shape


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        ("constant", [9, 9, 0, 1, 2, 9, 9]),
        ("nearest", [0, 0, 0, 1, 2, 2, 2]),
        ("wrap", [1, 2, 0, 1, 2, 0, 1]),
        ("mirror", [2, 1, 0, 1, 2, 1, 0]),
        ("reflect", [1, 0, 0, 1, 2, 2, 1]),
    ],
)
def test_coordinates_outside_of_the_image(fill, expected):
    places = np.arange(-2.0, 5)[None]
    for order in (0, 1):
        out = image.map_coordinates(np.arange(3.0), places, order, fill, 9)
        np.testing.assert_array_equal(out, expected)
    single = image.map_coordinates(np.array([4.0]), places, 1, fill, 9)
    np.testing.assert_array_equal(single, [9, 9, 4, 9, 9, 9, 9] if fill == "constant" else [4] * 7)


def test_integers_are_rounded_away_from_zero():
    out = image.map_coordinates(np.array([0, 1, -1, 2], "int32"), np.array([[0.5, 1.25, 2.5, 1.75]]), 1)
    assert out.dtype == tf.int32
    np.testing.assert_array_equal(out, [1, 1, 1, -1])


def test_places_that_are_no_numbers_lie_outside():
    places = np.array([[np.nan, np.inf, -np.inf, 1e30, 0]])
    np.testing.assert_array_equal(
        image.map_coordinates(np.ones(3), places, 1, "constant", 7), [7, 7, 7, 7, 1]
    )
    for fill in FILLS[1:]:
        assert np.all(np.isfinite(image.map_coordinates(np.ones(3), places, 1, fill)))


def test_one_image_and_a_batch_and_both_orders_of_axes():
    whole = image.affine_transform(X, TURN, **LAST).numpy()
    np.testing.assert_allclose(image.affine_transform(X[1], TURN[1], **LAST), whole[1])
    first = image.affine_transform(FIRST, TURN, data_format="channels_first")
    np.testing.assert_allclose(first, whole.transpose(0, 3, 1, 2))
    np.testing.assert_allclose(
        image.perspective_transform(X[0], START[0], END[0], **LAST),
        image.perspective_transform(X, START, END, **LAST)[0],
    )


def test_one_transform_for_all_images():
    np.testing.assert_allclose(
        image.affine_transform(X, TURN[0], **LAST)[1], image.affine_transform(X[1], TURN[0], **LAST)
    )


def test_a_shift_by_whole_pixels_is_exact():
    shift = np.array([1.0, 0, 1, 0, 1, 2, 0, 0])
    out = image.affine_transform(X, shift, fill_mode="constant", fill_value=-1, **LAST).numpy()
    np.testing.assert_array_equal(out[:, :3, :5], X[:, 2:, 1:])
    assert np.all(out[:, 3:] == -1)
    assert np.all(out[:, :, 5:] == -1)


def test_corners_go_where_they_are_sent():
    transform = backend.compute_homography_matrix(tf.constant(START), tf.constant(END)).numpy()
    for t, start, end in zip(transform, START, END, strict=True):
        there = np.append(t, 1).reshape(3, 3) @ np.append(end, np.ones((4, 1)), 1).T
        np.testing.assert_allclose((there[:2] / there[2]).T, start, atol=1e-9)


def test_resizing_integers_rounds_and_keeps_the_type():
    x = np.array([[0, 1], [254, 255]], "uint8")[None, :, :, None]
    out = image.resize(x, (3, 3), **LAST)
    assert out.dtype == tf.uint8
    np.testing.assert_array_equal(out[0, :, :, 0], [[0, 0, 1], [127, 128, 128], [254, 254, 255]])
    large = np.array([[2**24 + 1, 5]], "int32")[None, :, :, None]
    np.testing.assert_array_equal(
        image.resize(large, (1, 4), "nearest", **LAST)[0, 0, :, 0], [2**24 + 1] * 2 + [5] * 2
    )


def test_padding_to_proportions():
    out = image.resize(
        np.zeros((1, 4, 4, 1), "float32"), (4, 8), pad_to_aspect_ratio=True, fill_value=0.5, **LAST
    )
    np.testing.assert_array_equal(out[0, 0, :, 0], [0.5] * 2 + [0] * 4 + [0.5] * 2)


def test_edges():
    x = np.zeros((1, 5, 6, 1), "float32")
    x[:, :, 3:] = 1
    down, right = image.sobel_edges(x, **LAST).numpy()[0, 2, :, 0].T
    np.testing.assert_array_equal(down, 0)
    np.testing.assert_array_equal(right, [0, 0, 4, 4, 0, -4])


def test_elastic_transforms_follow_their_seed_and_take_tensors():
    once, again, other = (image.elastic_transform(X, 3.0, 1.0, seed=s, **LAST).numpy() for s in (1, 1, 2))
    np.testing.assert_array_equal(once, again)
    assert np.abs(once - other).max() > 0.01
    sigma = tf.function(lambda s: image.elastic_transform(X, 3.0, s, seed=1, **LAST))(tf.constant(1.0))
    np.testing.assert_allclose(sigma, once, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_keep_their_type(dtype):
    x = keras.ops.cast(X, dtype)
    for name in (
        "rgb_to_hsv",
        "hsv_to_rgb",
        "rgb_to_grayscale",
        "gaussian_blur",
        "sobel_edges",
        "elastic_transform",
    ):
        out = getattr(image, name)(x, **LAST)
        assert keras.backend.standardize_dtype(out.dtype) == dtype, name
    out = image.affine_transform(x, keras.ops.cast(TURN, dtype), **LAST)
    assert keras.backend.standardize_dtype(out.dtype) == dtype


# ---- bad input ----------------------------------------------------------------------------------

BAD = [
    (lambda: image.rgb_to_grayscale(X[..., :2]), "expected 3 \\(RGB\\) or 1"),
    (lambda: image.rgb_to_hsv(X[0, 0]), "Invalid images rank"),
    (lambda: image.rgb_to_hsv(X.astype("int32")), "expected float dtype"),
    (lambda: image.hsv_to_rgb(FIRST, "channels_last"), "3 channels"),
    (lambda: image.resize(X, (2, 3), "cubic"), "`interpolation`"),
    (lambda: image.resize(X, (2, 0)), "positive height and width"),
    (lambda: image.resize(X, (2, 3), fill_mode="wrap"), "`fill_mode`"),
    (lambda: image.affine_transform(X, TURN, "cubic"), "`interpolation`"),
    (lambda: image.affine_transform(X, TURN, fill_mode="edge"), "`fill_mode`"),
    (lambda: image.affine_transform(X, TURN[None]), "Invalid transform rank"),
    (lambda: image.perspective_transform(X, START[:, :3], END), "Invalid start_points shape"),
    (lambda: image.map_coordinates(PLANE, PLACES, 2), "order"),
    (lambda: image.map_coordinates(PLANE, PLACES[:1], 1), "First dim of `coordinates`"),
    (lambda: image.gaussian_blur(X[0, 0]), "Invalid images rank"),
    (lambda: image.scale_and_translate(X, (2, 4, 7, 3), [1.0, 1], [0.0, 0], (1, 2), "area"), "`method`"),
]


@pytest.mark.parametrize(("call", "words"), BAD)
def test_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
