"""Processing of gradients between the tape and the update."""

import numpy as np
import pytest

from .lib import assert_close, gradient, tf

NAN, INF = np.nan, np.inf


def test_P1_clip_by_value():
    assert_close(tf.clip_by_value([-3.0, 0.5, 3.0], -1.0, 2.0), [-1.0, 0.5, 2.0])


def test_P1_clip_by_value_with_tensor_bounds():
    low, high = tf.constant([0.0, 1.0]), tf.constant([1.0, 2.0])
    assert_close(tf.clip_by_value([3.0, 0.0], low, high), [1.0, 1.0])


def test_P1_clip_by_value_passes_nan_and_clips_inf():
    assert_close(tf.clip_by_value([NAN, INF, -INF], -1.0, 2.0), [NAN, 2.0, -1.0])


def test_P1_clip_by_norm():
    assert_close(tf.clip_by_norm([3.0, 4.0], 2.5), [1.5, 2.0])


def test_P1_clip_by_norm_leaves_small_ones_alone():
    assert_close(tf.clip_by_norm([3.0, 4.0], 10.0), [3.0, 4.0])


def test_P1_clip_by_norm_along_axes():
    x = [[3.0, 4.0], [0.3, 0.4]]
    assert_close(tf.clip_by_norm(x, 1.0, axes=[1]), [[0.6, 0.8], [0.3, 0.4]])


def test_P1_clip_by_norm_of_zeros():
    assert_close(tf.clip_by_norm(tf.zeros([2]), 1.0), [0.0, 0.0])


def test_P1_clip_by_norm_has_a_gradient():
    g = gradient(lambda x: tf.clip_by_norm(x, 2.5)[0], tf.constant([3.0, 4.0]))
    assert_close(g, [0.5 * 0.64, -0.5 * 0.48])


def test_P1_clip_by_global_norm():
    clipped, norm = tf.clip_by_global_norm([tf.constant([3.0]), tf.constant([[4.0]])], 2.5)
    assert isinstance(clipped, list)
    assert_close(norm, 5.0)
    assert_close(clipped[0], [1.5])
    assert_close(clipped[1], [[2.0]])


def test_P1_clip_by_global_norm_leaves_small_ones_alone():
    (clipped,), norm = tf.clip_by_global_norm([tf.constant([3.0, 4.0])], 10.0)
    assert_close(clipped, [3.0, 4.0])
    assert_close(norm, 5.0)


def test_P1_clip_by_global_norm_keeps_none():
    clipped, norm = tf.clip_by_global_norm([None, tf.constant([3.0, 4.0]), None], 2.5)
    assert clipped[0] is None and clipped[2] is None
    assert_close(clipped[1], [1.5, 2.0])
    assert_close(norm, 5.0)


def test_P1_clip_by_global_norm_with_a_given_norm():
    (clipped,), norm = tf.clip_by_global_norm([tf.constant([3.0, 4.0])], 5.0, tf.constant(10.0))
    assert_close(clipped, [1.5, 2.0])
    assert_close(norm, 10.0)


def test_P1_clip_by_global_norm_of_inf_is_nan():
    clipped, norm = tf.clip_by_global_norm([tf.constant([INF, 1.0]), tf.constant(2.0)], 1.0)
    assert_close(clipped[0], [NAN, NAN])
    assert_close(clipped[1], NAN)
    assert_close(norm, INF)


@pytest.mark.parametrize("value", [lambda: tf.constant([1.0]), lambda: 3.0, lambda: {"a": 1.0}])
def test_P1_clip_by_global_norm_wants_a_sequence(value):
    with pytest.raises(TypeError, match="sequence"):
        tf.clip_by_global_norm(value(), 1.0)


def test_P1_global_norm_skips_none():
    assert_close(tf.linalg.global_norm([tf.constant([3.0]), None, tf.constant(4.0)]), 5.0)


def test_P1_global_norm_wants_a_sequence():
    with pytest.raises(TypeError, match="sequence"):
        tf.linalg.global_norm(tf.constant([1.0]))


def test_P2_add_n():
    assert_close(tf.add_n([tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])]), [4.0, 6.0])


def test_P2_add_n_is_differentiable():
    a, b = gradient(lambda a, b: tf.add_n([a, b, a]), tf.constant(1.0), tf.constant(2.0))
    assert_close(a, 2.0)
    assert_close(b, 1.0)


def test_P2_add_n_of_different_shapes_is_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.add_n([tf.ones([2]), tf.ones([3])])


def test_P2_add_n_of_nothing_is_an_error():
    with pytest.raises(ValueError):
        tf.add_n([])


def test_P2_mean_of_gradients_of_several_batches():
    v, w = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    batches = []
    for scale in (1.0, 2.0, 3.0):
        with tf.GradientTape() as tape:
            y = scale * tf.reduce_sum(v * v) * w
        batches.append(tape.gradient(y, [v, w]))
    mean_v, mean_w = [tf.add_n(list(gs)) / float(len(gs)) for gs in zip(*batches, strict=True)]
    assert_close(mean_v, [12.0, 24.0])
    assert_close(mean_w, 10.0)


def test_P2_accumulators_of_zeros_like():
    v = tf.Variable([1.0, 2.0])
    total = tf.Variable(tf.zeros_like(v), trainable=False)
    for _ in range(3):
        with tf.GradientTape() as tape:
            y = v * v
        total.assign_add(tape.gradient(y, v))
    assert_close(total, [6.0, 12.0])


def test_P2_map_structure_over_gradients():
    v, w = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = v * w
    grads = tape.gradient(y, {"v": v, "w": w})
    halved = tf.nest.map_structure(lambda g: g / 2.0, grads)
    assert_close(halved["v"], [1.5, 1.5])
    assert_close(halved["w"], 1.5)


def test_P2_gradients_of_a_lookup_made_dense():
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        y = tf.gather(v, [2, 0, 2])
    assert_close(tf.convert_to_tensor(tape.gradient(y, v)), [1.0, 0.0, 2.0])
