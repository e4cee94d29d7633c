"""CTC: losses and gradients of TensorFlow 2.21, second order, sequences of any length, decoders."""

import math

import numpy as np
import pytest

import gradtape as tf

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 3, 5))
LABELS = np.array([[1, 2, 2], [3, 0, 0], [1, 1, 1]])


def gradients(x, *args, **options):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.ctc_loss(LABELS, x, *args, **options)
    return y, tape.gradient(y, x)


def test_values_and_gradients_of_tensorflow():
    loss, g = gradients(tf.constant(X, tf.float32), [3, 1, 3], [6, 4, 5])
    np.testing.assert_allclose(loss[:2], [8.255633, 4.5253825], rtol=1e-6)
    np.testing.assert_allclose(g[0, 0], [-0.0793066, -0.5619415, 0.3385958, 0.1982016, 0.1044507], atol=1e-6)
    np.testing.assert_array_equal(g[4:, 1], 0)
    np.testing.assert_allclose(tf.reduce_sum(g, -1), 0, atol=1e-6)


def test_labels_that_do_not_fit_have_no_path():
    loss, g = gradients(tf.constant(X), [3, 1, 3], [6, 4, 4])
    assert np.isinf(loss[2]) and np.isfinite(loss[:2]).all()
    np.testing.assert_array_equal(g[:, 2], 0)
    loss, _ = gradients(tf.constant(X), [3, 0, 0], [6, 0, 1])
    np.testing.assert_allclose(loss[1:], [0, -(X[0, 2, 0] - np.log(np.exp(X[0, 2]).sum()))])


def test_extreme_logits():
    x = np.full((30, 1, 4), -200.0)
    x[:, :, 3] = 200.0  # almost certain of the wrong class
    for dtype, tolerance in ((tf.float32, 1e-6), (tf.float64, 1e-13)):
        loss = tf.nn.ctc_loss([[1, 2]], tf.constant(x, dtype), [2], [30])
        # Every path through the labels is equally unlikely.
        np.testing.assert_allclose(loss, [30 * 400 - math.log(math.comb(32, 4))], rtol=tolerance)
    assert np.isnan(tf.nn.ctc_loss([[1]], tf.fill([2, 1, 3], np.nan), [1], [2])).all()


def test_second_order():
    x, u = tf.constant(X), tf.constant(RNG.normal(size=X.shape))
    args = [3, 1, 3], [6, 4, 5]
    with tf.GradientTape() as outer:
        outer.watch(x)
        _, g = gradients(x, *args)
    exact = outer.gradient(g, x, output_gradients=u)
    step = 1e-5
    numerical = (gradients(x + step * u, *args)[1] - gradients(x - step * u, *args)[1]) / (2 * step)
    np.testing.assert_allclose(exact, numerical, atol=1e-8)


def test_batch_major_blank_and_lengths():
    a = tf.nn.ctc_loss(LABELS, tf.constant(X), [3, 1, 3], [6, 4, 5], blank_index=-1)
    b = tf.nn.ctc_loss(
        LABELS, tf.transpose(X, [1, 0, 2]), [3, 1, 3], [6, 4, 5], logits_time_major=False, blank_index=4
    )
    np.testing.assert_array_equal(a, b)
    half = tf.nn.ctc_loss(LABELS, tf.constant(X, tf.float16), [3, 1, 3], [6, 4, 5])
    assert half.dtype is tf.float16


def test_sparse_labels():
    sparse = tf.sparse.from_dense(LABELS)
    dense = tf.nn.ctc_loss(LABELS, X, [3, 1, 3], [6, 4, 5])
    np.testing.assert_array_equal(tf.nn.ctc_loss(sparse, X, None, [6, 4, 5], blank_index=0), dense)
    with pytest.raises(ValueError, match="blank_index"):
        tf.nn.ctc_loss(sparse, X, None, [6, 4, 5])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [[7, 0, 0]] * 3}, "labels[0,0] = 7"),
        ({"label_length": [4, 1, 1]}, "label_length[0] = 4"),
        ({"logit_length": [9, 1, 1]}, "logit_length[0] = 9"),
        ({"blank_index": 9}, "blank_index"),
        ({"logits": X[0]}, "three axes"),
    ],
)
def test_wrong_arguments(change, message):
    args = {"labels": LABELS, "logits": X, "label_length": [3, 1, 3], "logit_length": [6, 4, 5]} | change
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        tf.nn.ctc_loss(**args)
    assert message in str(e.value)


# ---- decoders -----------------------------------------------------------------------------------


def test_greedy_decoder():
    x = np.log(
        np.array(
            [[[0.1, 0.2, 0.7]], [[0.6, 0.3, 0.1]], [[0.6, 0.3, 0.1]], [[0.2, 0.7, 0.1]], [[0.1, 0.1, 0.8]]]
        )
    )
    (decoded,), score = tf.nn.ctc_greedy_decoder(x, [5])
    np.testing.assert_array_equal(tf.sparse.to_dense(decoded), [[0, 1]])
    np.testing.assert_allclose(score, [[-np.log(0.7 * 0.6 * 0.6 * 0.7 * 0.8)]])
    (decoded,), _ = tf.nn.ctc_greedy_decoder(x, [5], merge_repeated=False, blank_index=0)
    np.testing.assert_array_equal(decoded.values, [2, 1, 2])
    np.testing.assert_array_equal(decoded.dense_shape, [1, 3])


def test_beam_search_decoder():
    x = tf.constant(X, tf.float32)
    paths, scores = tf.nn.ctc_beam_search_decoder(x, [6, 4, 4], beam_width=10, top_paths=2)
    expected = [[-2.7101145, -3.2513824], [-2.2651114, -2.7177904], [-3.0173135, -3.6396158]]
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
    np.testing.assert_array_equal(paths[0].values, [2, 3, 2, 1, 3, 1, 2])
    np.testing.assert_array_equal(paths[1].indices, [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1], [2, 2]])


def test_labels_without_repetitions():
    labels = tf.constant([[1, 2, 2], [3, 0, 0], [1, 1, 1]])
    unique, place = tf.nn.ctc_unique_labels(labels)
    np.testing.assert_array_equal(unique, [[1, 2, 0], [3, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(place, [[0, 1, 1], [0, 1, 1], [0, 0, 0]])
    short, length = tf.nn.collapse_repeated(labels, [3, 2, 3])
    np.testing.assert_array_equal(short, [[1, 2], [3, 0], [1, 0]])
    np.testing.assert_array_equal(length, [2, 2, 1])
