"""Gradients of tf.image against central differences, of first order and through functions."""

import numpy as np
import pytest

import gradtape as tf
from gradtape import testing
from gradtape._src.ops.table import TABLE
from gradtape.image import filters
from gradtape.image.crops import sampled

RNG = np.random.default_rng(7)
RGB = RNG.uniform(0.1, 0.9, (2, 4, 5, 3))
OTHER = RNG.uniform(0.1, 0.9, (2, 4, 5, 3))
LARGE = RNG.uniform(0.1, 0.9, (1, 12, 12, 1))


def gradient_and_differences(f, x, dtype):
    """The tape's gradient of a weighted sum of f(x), and central differences."""
    t = tf.constant(x, dtype)
    with tf.GradientTape() as tape:
        tape.watch(t)
        y = f(t)
    weights = np.random.default_rng(1).uniform(0.5, 1.5, tuple(y.shape))
    gradient = tape.gradient(y, t, output_gradients=tf.constant(weights, y.dtype))
    step = 1e-5 if dtype == "float64" else 1e-2

    def total(a):
        return float(np.sum(np.asarray(f(tf.constant(a, dtype)), np.float64) * weights))

    return gradient.numpy(), testing.central_differences(total, x, step)


ROWS = ("resample", "sample_grid", "unsample_grid")


@pytest.mark.parametrize(("name", "check"), [(n, c) for n in ROWS for c in testing.checks_of(TABLE[n])])
def test_ops_keep_the_contract(name, check):
    testing.check_op(TABLE[name], [check])


# Functions that compute in float64 when their operands are.
DOUBLE = {
    "flip": tf.image.flip_left_right,
    "rot90": tf.image.rot90,
    "pad": lambda x: tf.image.pad_to_bounding_box(x, 1, 1, 7, 8),
    "crop": lambda x: tf.image.crop_to_bounding_box(x, 1, 1, 2, 3),
    "central_crop": lambda x: tf.image.central_crop(x, 0.6),
    "extract_patches": lambda x: tf.image.extract_patches(
        x, [1, 2, 3, 1], [1, 1, 2, 1], [1, 2, 1, 1], "SAME"
    ),
    "nearest": lambda x: tf.image.resize(x, [3, 7], "nearest"),
    "rgb_to_hsv": tf.image.rgb_to_hsv,
    "hsv_to_rgb": tf.image.hsv_to_rgb,
    "rgb_to_yiq": tf.image.rgb_to_yiq,
    "yuv_to_rgb": tf.image.yuv_to_rgb,
    "rgb_to_grayscale": tf.image.rgb_to_grayscale,
    "adjust_brightness": lambda x: tf.image.adjust_brightness(x, 0.2),
    "adjust_contrast": lambda x: tf.image.adjust_contrast(x, 1.7),
    "adjust_gamma": lambda x: tf.image.adjust_gamma(x, 0.6, 1.2),
    "adjust_hue": lambda x: tf.image.adjust_hue(x, 0.23),
    "adjust_saturation": lambda x: tf.image.adjust_saturation(x, 0.7),
    "total_variation": tf.image.total_variation,
    "sobel_edges": tf.image.sobel_edges,
    "image_gradients": lambda x: tf.stack(tf.image.image_gradients(x)),
}
# Functions that always compute in float32, as in TensorFlow.
SINGLE = {
    **{m: lambda x, m=m: tf.image.resize(x, [3, 7], m) for m in filters.METHODS},
    **{
        f"{m} antialias": lambda x, m=m: tf.image.resize(x, [2, 8], m, antialias=True)
        for m in filters.METHODS
    },
    "resize_with_pad": lambda x: tf.image.resize_with_pad(x, 9, 6),
    "crop_and_resize": lambda x: tf.image.crop_and_resize(x, [[0.1, 0.2, 0.8, 1.2]], [1], [3, 4]),
    "per_image_standardization": tf.image.per_image_standardization,
    "psnr": lambda x: tf.image.psnr(x, OTHER.astype("f"), 1.0) / 10,
}


@pytest.mark.parametrize("name", DOUBLE)
def test_gradient(name):
    mine, numerical = gradient_and_differences(DOUBLE[name], RGB, "float64")
    np.testing.assert_allclose(mine, numerical, 1e-6, 1e-6)


@pytest.mark.parametrize("name", SINGLE)
def test_gradient_in_float32(name):
    mine, numerical = gradient_and_differences(SINGLE[name], RGB, "float32")
    np.testing.assert_allclose(mine, numerical, 1e-2, 5e-3)


@pytest.mark.parametrize("similarity", [
    lambda x: tf.image.ssim(x, LARGE[:, ::-1].astype("f"), 1.0, 5),
    lambda x: tf.image.ssim_multiscale(x, (0.5 * x + 0.5 * LARGE.mean()), 1.0, (0.5, 0.5), 5),
])  # fmt: skip
def test_gradient_of_similarity(similarity):
    mine, numerical = gradient_and_differences(similarity, LARGE, "float32")
    np.testing.assert_allclose(mine, numerical, 2e-2, 2e-3)


def test_boxes_have_a_gradient():
    x, at = tf.constant(RGB), tf.constant([0, 1])
    boxes = np.array([[0.11, 0.23, 0.81, 0.93], [0.87, 0.09, 0.2, 0.77]])
    mine, numerical = gradient_and_differences(
        lambda b: sampled(x, b, at, 3, 4, "bilinear", 0.0), boxes, "float64"
    )
    np.testing.assert_allclose(mine, numerical, 1e-6, 1e-6)


def test_gray_and_black_pixels_have_finite_gradients():
    x = tf.constant([[[0.0, 0, 0], [0.5, 0.5, 0.5], [1, 1, 1]]])
    for f in (
        tf.image.rgb_to_hsv,
        lambda x: tf.image.adjust_saturation(x, 0.5),
        lambda x: tf.image.adjust_hue(x, 0.1),
    ):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        assert np.isfinite(tape.gradient(y, x)).all()


def test_second_order_through_resize():
    x = tf.constant(RGB, tf.float32)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(tf.image.resize(x, [3, 3], "bicubic") ** 3)
        g = inner.gradient(y, x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        small = tf.image.resize(x, [3, 3], "bicubic")
    # d/dx sum(g) = R' (6 r * (R 1)), and R 1 = 1
    expected = tape.gradient(small, x, output_gradients=6 * small)
    np.testing.assert_allclose(outer.gradient(g, x), expected, 1e-3, 1e-4)


def test_functions_give_the_same_numbers():
    def many(x):
        x = tf.image.resize(x, [6, 6], "lanczos3", antialias=True)
        x = tf.image.adjust_hue(tf.image.adjust_contrast(x, 1.2), 0.1)
        return tf.reduce_sum(tf.image.sobel_edges(x) ** 2) + tf.reduce_mean(tf.image.ssim(x, 1 - x, 1.0, 3))

    x = tf.constant(RGB, tf.float32)
    gradients = []
    for f in (many, tf.function(many)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        gradients.append(tape.gradient(y, x).numpy())
    np.testing.assert_allclose(*gradients, 1e-3, 1e-4)


def test_jacobian_of_resize_runs_in_one_batch():
    x = tf.constant(RGB[:1], tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.image.resize(x, [2, 3])
    jacobian = tape.jacobian(y, x).numpy()
    assert jacobian.shape == (*y.shape, *x.shape)
    np.testing.assert_allclose(np.tensordot(jacobian, x.numpy(), 4), y, 1e-4, 1e-5)


def test_jacobians_of_crop_and_resize():
    x, boxes = tf.constant(RGB), tf.constant([[0.11, 0.23, 0.81, 0.93], [0.87, 0.09, 0.2, 0.77]], tf.float64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, boxes])
        y = sampled(x, boxes, tf.constant([1, 0]), 2, 2, "bilinear", 0.0)
    fast, slow = (tape.jacobian(y, [x, boxes], experimental_use_pfor=use) for use in (True, False))
    for a, b in zip(fast, slow, strict=True):
        np.testing.assert_allclose(a, b, 1e-9, 1e-12)
    np.testing.assert_allclose(np.tensordot(fast[0].numpy(), RGB, 4), y, 1e-9)


def test_batches_of_images_under_vectorized_map():
    images = tf.constant(RNG.normal(size=(3, 2, 4, 5, 3)))
    boxes, at = tf.constant([[0.1, 0.2, 0.8, 0.9]], tf.float64), tf.constant([1])
    out = tf.vectorized_map(lambda x: sampled(x, boxes, at, 2, 3, "bilinear", 0.0), images)
    for one, x in zip(out, images, strict=True):
        np.testing.assert_allclose(one, sampled(x, boxes, at, 2, 3, "bilinear", 0.0), 1e-12)
    small = tf.vectorized_map(lambda x: tf.image.resize(x, [2, 2]), images)
    np.testing.assert_allclose(small[2], tf.image.resize(images[2], [2, 2]), 1e-6)
