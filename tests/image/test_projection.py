"""tf.raw_ops.ImageProjectiveTransformV2 and V3: values, gradients and errors, those of TensorFlow 2.21."""

import numpy as np
import pytest

import gradtape as tf

X = np.arange(12, dtype=np.float32).reshape(1, 3, 4, 1) ** 1.5
TURN = [[0.81, -0.57, 0.93, 0.62, 0.79, -0.71, 0.013, -0.021]]
VALUES = {
    ("NEAREST", "CONSTANT"): [-1, 2.8284, 14.6969, 18.5203, -1, 0, 11.1803, 14.6969, 36.4829, 36.4829],
    ("NEAREST", "REFLECT"): [1, 2.8284, 14.6969, 18.5203, 36.4829, 0, 11.1803, 14.6969, 36.4829, 36.4829],
    ("NEAREST", "WRAP"): [27, 31.6228, 14.6969, 8, 22.6274, 0, 11.1803, 14.6969, 36.4829, 0],
    ("NEAREST", "NEAREST"): [1, 2.8284, 14.6969, 18.5203, 36.4829, 0, 11.1803, 14.6969, 36.4829, 36.4829],
    ("BILINEAR", "CONSTANT"): [-0.4403, 2.0179, 10.4735, 15.4251, 0.1479, 1.087, 8.7255, 19.8867, 33.5539, 8.8486],
    ("BILINEAR", "REFLECT"): [0.93, 2.3122, 10.4735, 20.4393, 30.7799, 1.087, 8.7255, 19.8867, 33.5539, 36.4829],
    ("BILINEAR", "WRAP"): [26.6939, 30.3176, 10.4735, 9.5627, 17.9833, 1.087, 8.7255, 19.8867, 33.5539, 0],
    ("BILINEAR", "NEAREST"): [0.93, 2.3122, 10.4735, 20.4393, 30.7799, 1.087, 8.7255, 19.8867, 33.5539, 36.4829],
}  # fmt: skip


def transform(images=X, transforms=TURN, output_shape=(2, 5), **kwargs):
    given = {"fill_value": -1.0, "interpolation": "BILINEAR", **kwargs}
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=images, transforms=transforms, output_shape=output_shape, **given
    )


@pytest.mark.parametrize(("interpolation", "fill_mode"), VALUES)
def test_values(interpolation, fill_mode):
    y = transform(interpolation=interpolation, fill_mode=fill_mode)
    assert y.shape == (1, 2, 5, 1)
    np.testing.assert_allclose(
        np.ravel(y), VALUES[interpolation, fill_mode], atol=6e-5
    )  # rounded to 4 places


def test_integers_are_cut_off():
    y = tf.raw_ops.ImageProjectiveTransformV2(
        images=tf.cast(X, tf.uint8), transforms=TURN, output_shape=[2, 3], interpolation="BILINEAR"
    )
    assert y.dtype == tf.uint8 and np.ravel(y).tolist() == [0, 1, 9, 1, 8, 19]


def test_a_projection_for_each_image_and_halves_away_from_zero():
    x = tf.concat([X, -X], 0)
    shift = [[1.0, 0, -0.5, 0, 1, 0, 0, 0], [1.0, 0, 1, 0, 1, 0, 0, 0]]
    y = transform(x, shift, (1, 3), interpolation="NEAREST")
    np.testing.assert_allclose(y[:, 0, :, 0], [[-1, 1, 2**1.5], [-1, -(2**1.5), -(3**1.5)]], rtol=1e-6)


def test_places_at_infinity_are_filled():
    away = [[1.0, 0, 0, 0, 1, 0, -0.5, 0]]
    y = transform(transforms=away, output_shape=(1, 3), fill_mode="NEAREST", fill_value=9.0)
    np.testing.assert_allclose(np.ravel(y), [0, 2**1.5, 9], rtol=1e-6)


def test_gradient_is_the_inverse_projection():
    x, matrix = tf.constant(X), tf.constant(TURN)
    upstream = tf.reshape(tf.range(10.0) + 1, [1, 2, 5, 1])
    with tf.GradientTape() as outer:
        outer.watch(upstream)
        with tf.GradientTape() as tape:
            tape.watch([x, matrix])
            y = transform(x, matrix)
        gx, none = tape.gradient(y, [x, matrix], upstream)
    expected = [3.3677, 4.152, 2.0307, 0.6416, 0.3485, 4.5756, 6.4651, 4.0603, 0, 0, 3.852, 8.8455]
    np.testing.assert_allclose(np.ravel(gx), expected, atol=6e-5)
    assert none is None
    # The gradient of the gradient is the projection itself.
    np.testing.assert_allclose(
        outer.gradient(gx, upstream), transform(np.ones_like(X), fill_value=0.0), atol=1e-5
    )


def test_in_functions_of_unknown_sizes():
    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 1]), tf.TensorSpec([None, 8])])
    def f(x, matrix):
        return transform(x, matrix, tf.shape(x)[1:3])

    np.testing.assert_allclose(f(X, TURN), transform(output_shape=(3, 4)), rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"images": X[0]}, "Input images must have rank 4"),
        ({"images": X.astype(np.int16)}, "is not in the list of allowed values"),
        ({"transforms": TURN[0]}, "Input transform should be num_images x 8 or 1 x 8"),
        ({"transforms": TURN * 3}, "Input transform should be num_images x 8 or 1 x 8"),
        ({"output_shape": [3]}, "output shape must have two elements"),
        ({"output_shape": [0, 3]}, "output dimensions must be positive"),
        ({"fill_value": [0.0]}, "fill_value must be a scalar"),
        ({"interpolation": "BICUBIC"}, "Invalid interpolation BICUBIC"),
        ({"fill_mode": "MIRROR"}, "Invalid mode MIRROR"),
    ],
)
def test_wrong_calls(given, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        transform(**given)
