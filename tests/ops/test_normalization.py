"""Normalisation and moments: against NumPy, in every layout, and as TensorFlow names them."""

import numpy as np
import pytest

import gradtape as tf

RNG = np.random.default_rng(3)


def normal(*shape, dtype=np.float64):
    return RNG.normal(size=shape).astype(dtype)


def standardised(x, axes, epsilon):
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(var + epsilon)


@pytest.mark.parametrize("axis", [-1, 1, [1, 2], [0, 2], (0, 1, 2)])
def test_layer_norm_over_any_axes(axis):
    x = normal(3, 4, 5)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    sizes = [x.shape[a] for a in axes]
    scale, offset = normal(*sizes), normal(*sizes)
    shape = [x.shape[i] if i in [a % 3 for a in axes] else 1 for i in range(3)]
    out = tf.nn.layer_norm(x, scale, offset, axis, epsilon=0.01)
    expected = standardised(x, axes, 0.01) * scale.reshape(shape) + offset.reshape(shape)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        tf.nn.layer_norm(x, axis=axis), standardised(x, axes, 1e-3), rtol=1e-12, atol=1e-12
    )


def test_rms_norm():
    x, scale = normal(3, 5), normal(5)
    expected = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale
    np.testing.assert_allclose(tf.nn.rms_norm(x, scale), expected, rtol=1e-12)
    np.testing.assert_allclose(tf.nn.rms_norm(x, axis=0), x / np.sqrt((x * x).mean(0) + 1e-6), rtol=1e-12)


@pytest.mark.parametrize(("shape", "axis"), [((4, 6), -1), ((2, 3, 4, 6), -1), ((2, 6, 3, 4), 1)])
def test_group_norm(shape, axis):
    x, scale, offset = normal(*shape), normal(6), normal(6)
    moved = np.moveaxis(x, axis, -1)
    grouped = moved.reshape(*moved.shape[:-1], 3, 2)
    axes = (*range(1, grouped.ndim - 2), grouped.ndim - 1)
    expected = np.moveaxis(standardised(grouped, axes, 1e-3).reshape(moved.shape) * scale + offset, -1, axis)
    np.testing.assert_allclose(tf.nn.group_norm(x, 3, scale, offset, axis), expected, rtol=1e-10, atol=1e-12)
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot be divided into 4 groups"):
        tf.nn.group_norm(x, 4, axis=axis)


@pytest.mark.parametrize(
    ("shape", "axis"), [((64, 3), -1), ((7, 300), 1), ((2, 5, 6, 70), 3), ((4, 3, 5, 6), 1), ((5,), 0)]
)
def test_batch_norm(shape, axis):
    x, scale, offset = normal(*shape), normal(shape[axis]), normal(shape[axis])
    axes = tuple(i for i in range(len(shape)) if i != axis % len(shape))
    out, mean, variance = tf.nn.batch_norm(x, scale, offset, axis)
    at = [-1 if i == axis % len(shape) else 1 for i in range(len(shape))]
    np.testing.assert_allclose(mean, x.mean(axes), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(variance, x.var(axes), rtol=1e-12, atol=1e-14)
    expected = standardised(x, axes, 1e-3) * scale.reshape(at) + offset.reshape(at)
    np.testing.assert_allclose(out, expected, rtol=1e-11, atol=1e-12)


def test_half_precision_is_normalised_in_float():
    x = normal(4, 300, dtype=np.float16)
    out = tf.nn.layer_norm(x + np.float16(100))
    assert out.dtype is tf.float16
    np.testing.assert_allclose(out, standardised((x + np.float16(100)).astype(float), (-1,), 1e-3), atol=4e-3)
    out, mean, variance = tf.nn.batch_norm(x)
    assert (out.dtype, mean.dtype, variance.dtype) == (tf.float16, tf.float32, tf.float32)
    assert tf.nn.moments(x, [0])[0].dtype is tf.float16


def test_moments_far_from_zero():
    """A formula with squares of the elements would lose all digits."""
    x = (1e4 + normal(1000, 40)).astype(np.float32)
    wide = x.astype(float)
    for axes in ([0], [1], [0, 1]):
        mean, variance = tf.nn.moments(x, axes)
        np.testing.assert_allclose(mean, wide.mean(tuple(axes)), rtol=1e-6)
        np.testing.assert_allclose(variance, wide.var(tuple(axes)), rtol=2e-5)


def test_moments_of_integers_and_nothing():
    mean, variance = tf.nn.moments(tf.constant([[1, 2], [4, 4]]), [0])
    assert (mean.dtype, mean.numpy().tolist(), variance.numpy().tolist()) == (tf.int32, [2, 3], [2, 1])
    mean, variance = tf.nn.moments(tf.zeros([0, 2]), [0])
    assert np.isnan(mean).all() and np.isnan(variance).all()


def test_results_do_not_depend_on_threads():
    x, g = tf.constant(normal(700, 900, dtype=np.float32)), tf.constant(normal(700, 900, dtype=np.float32))
    scale, offset = tf.constant(normal(900, dtype=np.float32)), tf.constant(normal(900, dtype=np.float32))

    def run():
        results = []
        for norm in (
            lambda: tf.nn.layer_norm(x, scale, offset),
            lambda: tf.nn.batch_norm(x, scale, offset)[0],
        ):
            with tf.GradientTape() as tape:
                tape.watch([x, scale, offset])
                y = norm()
            results += [y, *tape.gradient(y, [x, scale, offset], output_gradients=g)]
        return [r.numpy().tobytes() for r in results]

    before = tf.config.threading.get_intra_op_parallelism_threads()
    try:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        one = run()
        tf.config.threading.set_intra_op_parallelism_threads(3)
        assert run() == one
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(before)


def test_batch_normalization_with_given_moments():
    x, mean, var, offset, scale = normal(5, 3), normal(3), np.abs(normal(3)), normal(3), normal(3)
    expected = (x - mean) / np.sqrt(var + 0.01)
    np.testing.assert_allclose(
        tf.nn.batch_normalization(x, mean, var, None, None, 0.01), expected, rtol=1e-12
    )
    out = tf.nn.batch_normalization(x, mean, var, offset, scale, 0.01)
    np.testing.assert_allclose(out, expected * scale + offset, rtol=1e-12)
    out = tf.nn.batch_norm_with_global_normalization(x, mean, var, offset, scale, 0.01, False)
    np.testing.assert_allclose(out, expected + offset, rtol=1e-12)


def test_fused_batch_norm_of_tensorflow_1():
    x, scale, offset = normal(2, 3, 3, 4), normal(4), normal(4)
    out, mean, variance = tf.compat.v1.nn.fused_batch_norm(x, scale, offset)
    np.testing.assert_allclose(variance, x.reshape(-1, 4).var(0, ddof=1), rtol=1e-12)
    np.testing.assert_allclose(out, standardised(x, (0, 1, 2), 1e-3) * scale + offset, rtol=1e-10, atol=1e-12)
    again, _, _ = tf.compat.v1.nn.fused_batch_norm(
        np.moveaxis(x, -1, 1),
        scale,
        offset,
        mean=mean,
        variance=variance,
        is_training=False,
        data_format="NCHW",
    )
    assert again.shape == (2, 4, 3, 3)


def test_local_response_normalization():
    x = normal(2, 2, 2, 6)
    total = np.stack([(x[..., max(0, c - 2) : c + 3] ** 2).sum(-1) for c in range(6)], -1)
    out = tf.nn.local_response_normalization(x, 2, 1.5, 0.7, 0.6)
    np.testing.assert_allclose(out, x / (1.5 + 0.7 * total) ** 0.6, rtol=1e-12)
    with pytest.raises(tf.errors.InvalidArgumentError, match="4-dimensional"):
        tf.nn.lrn(x[0])


def test_jacobian_of_layer_norm_is_batched():
    x = tf.constant(normal(2, 3))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.layer_norm(x, tf.ones(3, tf.float64), tf.zeros(3, tf.float64))
    jacobian = tape.jacobian(y, x)
    assert jacobian.shape == (2, 3, 2, 3)
    np.testing.assert_allclose(jacobian[0, :, 1], 0, atol=1e-15)
    np.testing.assert_allclose(tf.reduce_sum(jacobian, [2, 3]), 0, atol=1e-12)  # a constant changes nothing
