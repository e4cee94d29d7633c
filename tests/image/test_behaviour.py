"""tf.image beyond TensorFlow's numbers: functions, randomness, files, memory, messages."""

import numpy as np
import pytest

import gradtape as tf
from gradtape import errors
from gradtape.image import boxes, filters

X = np.random.default_rng(0).uniform(0, 1, (9, 8, 3)).astype(np.float32)


def matrix_of(band, width):
    out = np.zeros((len(band.first), width))
    for line, first, weights in zip(out, band.first, band.weights, strict=True):
        line[first : first + len(weights)] = weights
    return out


@pytest.mark.parametrize("method", filters.METHODS)
@pytest.mark.parametrize("antialias", [False, True])
def test_weights_add_up_to_one(method, antialias):
    for size_in in (1, 2, 5, 17, 64):
        for size_out in (1, 2, 3, 16, 41):
            band, back = filters.bands(method, antialias, size_in, size_out)
            matrix = matrix_of(band, size_in)
            np.testing.assert_allclose(matrix.sum(1), 1, 1e-5)
            np.testing.assert_array_equal(matrix_of(back, size_out), matrix.T)
            assert (np.diff(band.first) >= 0).all() and (np.diff(back.first) >= 0).all()


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 16, 67])
@pytest.mark.parametrize("size", [(3, 20), (20, 3), (40, 41), (2, 2)])
@pytest.mark.parametrize("method", ["bilinear", "bicubic", "lanczos5"])
def test_every_loop_of_the_kernel(channels, size, method):
    x = np.random.default_rng(channels).normal(size=(2, 11, 13, channels)).astype(np.float32)
    rows, columns = (
        matrix_of(filters.bands(method, True, n, m)[0], n) for n, m in zip((11, 13), size, strict=True)
    )
    expected = np.einsum("nhwc,oh,pw->nopc", x, rows, columns)
    np.testing.assert_allclose(tf.image.resize(x, size, method, antialias=True), expected, 1e-4, 1e-5)


def test_resize_does_not_depend_on_threads():
    x = np.random.default_rng(0).normal(size=(3, 90, 70, 3)).astype(np.float32)
    before = tf.config.threading.get_intra_op_parallelism_threads()
    try:
        results = []
        for threads in (1, 2):
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            results.append([tf.image.resize(x, size, "bicubic").numpy() for size in ((200, 31), (31, 200))])
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(before)
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


def test_every_run_of_a_function_draws_anew():
    @tf.function
    def augmented(x):
        x = tf.image.random_crop(x, [5, 5, 3])
        x = tf.image.random_flip_left_right(x)
        return tf.image.random_brightness(x, 0.3)

    runs = [augmented(X).numpy() for _ in range(6)]
    assert all(r.shape == (5, 5, 3) for r in runs)
    assert len({r.tobytes() for r in runs}) > 1
    tf.random.set_seed(4)
    first = augmented(X).numpy()
    tf.random.set_seed(4)
    np.testing.assert_array_equal(augmented(X), first)


def test_random_crop_in_a_function_has_a_gradient():
    @tf.function
    def crop(x):
        return tf.image.random_crop(x, [4, 8, 3])

    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = crop(x)
    assert float(tf.reduce_sum(tape.gradient(y, x))) == 4 * 8 * 3


def test_a_batch_is_flipped_image_by_image():
    x = np.broadcast_to(np.arange(3, dtype=np.float32)[:, None], (64, 1, 3, 1))
    tf.random.set_seed(0)
    first = tf.image.random_flip_left_right(x).numpy()[:, 0, 0, 0]
    assert set(first.tolist()) == {0.0, 2.0}


def test_nothing_is_lost_of_integers_by_flips():
    x = np.random.default_rng(0).integers(0, 256, (5, 4, 3)).astype(np.uint8)
    assert tf.image.random_flip_up_down(x).dtype is tf.uint8
    assert sorted(tf.image.random_flip_up_down(x).numpy().reshape(-1)) == sorted(x.reshape(-1))


def test_adjusting_takes_tensors_with_gradients():
    delta = tf.Variable(0.1)
    with tf.GradientTape() as tape:
        y = tf.image.adjust_brightness(X, delta)
    assert float(tape.gradient(y, delta)) == X.size
    factor = tf.Variable(1.5)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.image.adjust_contrast(X, factor) ** 2)
    assert float(tape.gradient(y, factor)) > 0


def test_jpeg_quality():
    pytest.importorskip("PIL")
    smooth = np.linspace(0, 255, 32 * 32).reshape(32, 32, 1).repeat(3, 2).astype(np.uint8)
    good, poor = (
        np.abs(tf.image.adjust_jpeg_quality(smooth, q).numpy().astype(int) - smooth) for q in (95, 5)
    )
    assert good.mean() < 2 < poor.mean()
    out = tf.image.random_jpeg_quality(X, 80, 90)
    assert out.dtype is tf.float32 and out.shape == X.shape
    np.testing.assert_array_equal(
        tf.image.stateless_random_jpeg_quality(X, 20, 90, (1, 2)),
        tf.image.stateless_random_jpeg_quality(X, 20, 90, (1, 2)),
    )


def test_sizes_that_depend_on_values_in_a_function(caplog):
    @tf.function
    def best(boxes, scores):
        return tf.image.non_max_suppression(boxes, scores, 2)

    boxes = np.array([[0, 0, 1, 1], [0, 0, 0.9, 1], [2, 2, 3, 3]], np.float32)
    assert best(boxes, np.array([0.5, 0.9, 0.1], np.float32)).numpy().tolist() == [1, 2]
    assert "runs eagerly" not in caplog.text


def test_noise_of_a_glimpse():
    x = np.zeros((1, 4, 4, 1), np.float32)
    out = tf.image.extract_glimpse(x, [8, 8], [[0.0, 0.0]]).numpy()[0, :, :, 0]
    assert (out[2:6, 2:6] == 0).all() and out[:2].min() >= 0 and out[:2].max() > 0
    with pytest.raises(ValueError, match="noise"):
        tf.image.extract_glimpse(x, [2, 2], [[0.0, 0.0]], noise="pink")


def test_words():
    with pytest.raises(errors.InvalidArgumentError, match="images must be numbers"):
        tf.image.resize(X > 0.5, [2, 2])
    with pytest.raises(errors.UnimplementedError, match="non_max_suppression"):
        tf.image.generate_bounding_box_proposals()
    with pytest.raises(errors.InvalidArgumentError, match="convert_image_dtype"):
        tf.image.total_variation(tf.constant(X, tf.float32) > 0.5)


def test_all_names_of_tensorflow_exist():
    names = """ResizeMethod adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_jpeg_quality
        adjust_saturation central_crop combined_non_max_suppression convert_image_dtype crop_and_resize
        crop_to_bounding_box decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_jxl decode_png
        decode_webp draw_bounding_boxes encode_jpeg encode_png extract_glimpse extract_jpeg_shape extract_patches
        flip_left_right flip_up_down generate_bounding_box_proposals grayscale_to_rgb hsv_to_rgb image_gradients is_jpeg
        non_max_suppression non_max_suppression_overlaps non_max_suppression_padded non_max_suppression_with_scores
        pad_to_bounding_box per_image_standardization psnr random_brightness random_contrast random_crop
        random_flip_left_right random_flip_up_down random_hue random_jpeg_quality random_saturation resize
        resize_with_crop_or_pad resize_with_pad rgb_to_grayscale rgb_to_hsv rgb_to_yiq rgb_to_yuv rot90
        sample_distorted_bounding_box sobel_edges ssim ssim_multiscale stateless_random_brightness
        stateless_random_contrast stateless_random_crop stateless_random_flip_left_right stateless_random_flip_up_down
        stateless_random_hue stateless_random_jpeg_quality stateless_random_saturation
        stateless_sample_distorted_bounding_box total_variation transpose yiq_to_rgb yuv_to_rgb"""
    assert set(names.split()) <= set(tf.image.__all__)
    assert tf.image.ResizeMethod.NEAREST_NEIGHBOR == "nearest"


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 200])
@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.5, 1.0])
def test_the_best_boxes_are_those_of_comparing_all(n, threshold):
    """Corners in any order, boxes without an area, equal scores, and NaN."""
    rng = np.random.default_rng(n)
    found = rng.random((n, 4)).astype(np.float32) * [1, 1, 0.6, 0.6]
    found[::7, 2] = found[::7, 0]
    found[3::31] = np.nan
    scores = rng.integers(-20, 20, n).astype(np.float32) / 8
    scores[5::40] = np.nan
    b = found.astype(np.float32)
    for most in (0, 3, 1000):
        for least in (-np.inf, -1.0, 0.0):
            got = tf.image.non_max_suppression(b, scores, most, threshold, least).numpy()
            with np.errstate(invalid="ignore"):
                expected = boxes._hard(boxes._iou(b), scores, most, threshold, least)
            np.testing.assert_array_equal(got, expected)
            assert got.dtype == np.int32


def test_boxes_of_halves_are_compared_in_float32():
    b = tf.cast([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.9], [2.0, 2.0, 3.0, 3.0]], tf.float16)
    assert tf.image.non_max_suppression(b, tf.cast([0.5, 0.6, 0.7], tf.float16), 3).numpy().tolist() == [2, 1]
