"""Losses, normalisation, dropout: values of TensorFlow, gradients, errors."""

import numpy as np
import pytest

import gradtape as tf


def gradients(f, *xs):
    xs = [tf.convert_to_tensor(x) for x in xs]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return tape.gradient(y, xs)


def test_sigmoid_cross_entropy():
    z, x = np.array([1.0, 0.0, 0.3], np.float32), np.array([2.0, -20.0, 0.0], np.float32)
    loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x)
    np.testing.assert_allclose(loss, [0.12692805, 2.0611537e-09, 0.6931472], rtol=1e-5)
    gz, gx = gradients(tf.nn.sigmoid_cross_entropy_with_logits, z, x)
    np.testing.assert_allclose(gz, -x)
    np.testing.assert_allclose(gx, 1 / (1 + np.exp(-x)) - z, rtol=1e-5)


def test_sigmoid_cross_entropy_errors():
    with pytest.raises(ValueError, match=r"must have the same shape, received \(\(2,\) vs \(1,\)\)"):
        tf.nn.sigmoid_cross_entropy_with_logits([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="must have the same shape"):
        tf.nn.sigmoid_cross_entropy_with_logits(tf.zeros([2, 1]), tf.zeros([1, 2]))
    with pytest.raises(ValueError, match="must be provided"):
        tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0])


def test_softmax_cross_entropy():
    loss = tf.nn.softmax_cross_entropy_with_logits
    np.testing.assert_allclose(
        loss([[1.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]]), [1.3132616, 1.3132616], rtol=1e-6
    )
    np.testing.assert_allclose(loss([1, 0], [1.0, 2.0]), 1.3132616, rtol=1e-6)
    np.testing.assert_allclose(loss([[1.0], [0.0]], [[1.0], [2.0]], axis=0), [1.3132616], rtol=1e-6)
    g = gradients(loss, [[0.2, 0.8]], [[1.0, 2.0]])
    np.testing.assert_allclose(g[0], [[1.3132616, 0.31326166]], rtol=1e-6)
    np.testing.assert_allclose(g[1], [[0.06894142, -0.06894142]], rtol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be broadcastable"):
        loss([[1.0, 0.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_cross_entropies_of_halves(dtype):
    x = tf.constant([[1.0, 2.0]], dtype)
    assert tf.nn.sparse_softmax_cross_entropy_with_logits([1], x).dtype is dtype
    assert tf.nn.softmax_cross_entropy_with_logits([[1.0, 0.0]], x).dtype is dtype


def test_sparse_cross_entropy():
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits
    np.testing.assert_allclose(loss(labels=[1], logits=[[1.0, 2.0]]), [0.31326166], rtol=1e-6)
    assert loss(1, [1.0, 2.0]).shape == ()
    _, g = gradients(lambda z, x: loss(tf.constant([1, 0]), x), 0.0, [[1.0, 2.0], [0.0, 0.0]])
    np.testing.assert_allclose(g, [[0.26894143, -0.26894143], [-0.5, 0.5]], rtol=1e-6)


@pytest.mark.parametrize(
    ("labels", "logits", "error", "text"),
    [
        ([1], [[1.0, 2.0], [3.0, 4.0]], ValueError, "except for the last dimension"),
        (
            1,
            [[1.0, 2.0], [3.0, 4.0]],
            ValueError,
            r"`logits.shape.rank - 1`. Received: labels.shape=\(\) of rank 0",
        ),
        (1, 3.0, ValueError, "`logits` cannot be a scalar"),
        ([5], [[1.0, 2.0]], tf.errors.InvalidArgumentError, r"label value of 5 .* valid range of \[0, 2\)"),
        ([1.0], [[1.0, 2.0]], tf.errors.InvalidArgumentError, "must hold integers"),
    ],
)
def test_sparse_cross_entropy_errors(labels, logits, error, text):
    with pytest.raises(error, match=text):
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def test_gradient_penalty_through_the_loss():
    w = tf.Variable([[1.0, -1.0], [0.5, 2.0]])
    x = tf.constant([[1.0, 2.0], [0.0, 1.0]])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits([0, 1], tf.matmul(x, w)))
        penalty = tf.reduce_sum(tf.square(inner.gradient(loss, x)))
    np.testing.assert_allclose(
        outer.gradient(penalty, w), [[0.4742175, -0.4742175], [-4.956446, 4.956446]], rtol=1e-4
    )


def test_other_losses():
    w = tf.nn.weighted_cross_entropy_with_logits([1.0, 0.0], [1.0, 2.0], 2.0)
    np.testing.assert_allclose(w, [0.6265234, 2.126928], rtol=1e-6)
    np.testing.assert_allclose(
        tf.nn.log_poisson_loss([1.0, 3.0], [1.0, 2.0], True), [1.7182817, 3.1531377], rtol=1e-6
    )
    assert tf.nn.l2_loss([3.0, 4.0]).numpy() == 12.5
    np.testing.assert_allclose(tf.nn.compute_average_loss([1.0, 2.0, 4.0]), 7 / 3, rtol=1e-6)
    assert tf.nn.compute_average_loss([1.0, 2.0], [1.0, 0.5], 4).numpy() == 0.5
    with pytest.raises(ValueError, match="at least rank 1"):
        tf.nn.compute_average_loss(1.0)
    assert tf.nn.scale_regularization_loss([1.0, 2.0]).numpy() == 3.0


def test_normalisation():
    np.testing.assert_allclose(tf.nn.l2_normalize([3.0, 4.0]), [0.6, 0.8])
    np.testing.assert_array_equal(tf.math.l2_normalize([0.0, 0.0]), [0.0, 0.0])
    np.testing.assert_allclose(
        tf.linalg.l2_normalize([[3.0, 4.0], [0.0, 2.0]], axis=1), [[0.6, 0.8], [0.0, 1.0]]
    )
    x = tf.constant([[1.0, 2.0], [3.0, 6.0]])
    y = tf.nn.batch_normalization(x, [2.0, 4.0], [1.0, 4.0], [0.5, 0.0], [2.0, 1.0], 0.0)
    np.testing.assert_allclose(y, [[-1.5, -1.0], [2.5, 1.0]])
    np.testing.assert_allclose(
        tf.nn.batch_normalization(x, 2.0, 4.0, None, None, 0.0), [[-0.5, 0.0], [0.5, 2.0]]
    )
    counts, total, squares, shift = tf.nn.sufficient_statistics(x, [0])
    mean, variance = tf.nn.normalize_moments(counts, total, squares, shift)
    np.testing.assert_allclose(mean, [2.0, 4.0])
    np.testing.assert_allclose(variance, [1.0, 4.0])


def test_dropout_as_tensorflow():
    tf.random.set_seed(42)
    np.testing.assert_array_equal(tf.nn.dropout(tf.ones([8]), 0.5), [2, 0, 0, 0, 0, 2, 2, 2])
    x = tf.ones([8])
    assert tf.nn.dropout(x, 0) is x
    np.testing.assert_allclose(tf.random.normal([1]), [-0.55909735], rtol=1e-6)


def test_dropout_scales_and_masks_the_gradient():
    x = tf.ones([1000])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.dropout(x, 0.2)
    np.testing.assert_array_equal(tape.gradient(y, x), y)
    assert set(np.unique(y)) == {np.float32(0), np.float32(1.25)}
    rows = tf.nn.dropout(tf.ones([50, 3]), 0.5, noise_shape=[None, 1]).numpy()
    assert (rows == rows[:, :1]).all()


@pytest.mark.parametrize(
    ("rate", "text"), [(1.0, r"range \[0, 1\)"), (-0.1, r"range \[0, 1\)"), ("a", "scalar")]
)
def test_dropout_errors(rate, text):
    with pytest.raises(ValueError, match=text):
        tf.nn.dropout(tf.ones([2]), rate)
    with pytest.raises(ValueError, match="floating"):
        tf.nn.dropout([1, 2], 0.5)


def test_bias_add():
    np.testing.assert_array_equal(tf.nn.bias_add([[1.0, 2.0]], [1.0, 2.0]), [[2.0, 4.0]])
    image = tf.nn.bias_add(tf.zeros([1, 2, 3]), [1.0, 2.0], data_format="NCW")
    np.testing.assert_array_equal(image, [[[1.0] * 3, [2.0] * 3]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="as many biases"):
        tf.nn.bias_add([[1.0, 2.0]], [1.0])
    with pytest.raises(ValueError, match="data_format=XX"):
        tf.nn.bias_add([[1.0]], [1.0], data_format="XX")


def test_small_functions():
    np.testing.assert_array_equal(tf.nn.crelu([1.0, -2.0]), [1.0, 0.0, 0.0, 2.0])
    assert tf.math.polyval([1.0, 2.0, 3.0], 2.0).numpy() == 11.0
    np.testing.assert_allclose(tf.math.log_sigmoid([0.0, -100.0]), [-0.6931472, -100.0], rtol=1e-6)
    with pytest.raises(ValueError, match="must be list"):
        tf.math.polyval(1.0, 2.0)


@pytest.mark.parametrize(("dtype", "limit"), [("float16", 2e-3), ("bfloat16", 1.6e-2)])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_16_bit_floats_is_near_that_of_float64(dtype, limit, causal):
    rng = np.random.default_rng(5)
    shapes = (2, 3, 70, 20), (2, 3, 300, 20), (2, 3, 300, 17), (1, 3, 70, 300)

    def run(xs):
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = tf.nn.scaled_dot_product_attention(*xs, is_causal=causal)
            loss = tf.reduce_sum(tf.cast(y, "float64") * weights)
        return [y, *tape.gradient(loss, xs)]

    weights = rng.standard_normal((2, 3, 70, 17))
    narrow = [tf.cast(tf.constant(rng.standard_normal(shape)), dtype) for shape in shapes]
    for found, wanted in zip(run(narrow), run([tf.cast(x, "float64") for x in narrow]), strict=True):
        assert found.dtype == dtype
        np.testing.assert_allclose(
            tf.cast(found, "float64"), wanted, rtol=0, atol=limit * abs(wanted.numpy()).max()
        )
