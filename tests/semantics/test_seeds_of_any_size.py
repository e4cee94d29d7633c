"""Cotangents and tangents of known size for values of unknown size, and the reverse."""

import pytest

from tests.semantics.lib import assert_close, tf

X = [[1.0, 2.0], [3.0, 4.0]]
D = [[1.0, 0.0], [0.0, 1.0]]


def any_size(f):
    function = tf.function(f, input_signature=[tf.TensorSpec([None, None])])
    return lambda: [function(tf.constant(X)) for _ in range(2)]


def test_a_known_tangent():
    def f(x):
        with tf.autodiff.ForwardAccumulator(x, tf.constant(D)) as acc:
            y = x * x
        return acc.jvp(y)

    for found in any_size(f)():
        assert_close(found, [[2.0, 0.0], [0.0, 8.0]])


def test_a_tangent_for_each_of_several_primals():
    w = tf.Variable(3.0)

    def f(x):
        with tf.autodiff.ForwardAccumulator([x, w], [tf.constant(D), tf.constant(1.0)]) as acc:
            y = x * w
        return acc.jvp(y), acc.jvp(x)

    for product, own in any_size(f)():
        assert_close(product, [[4.0, 2.0], [3.0, 7.0]])
        assert_close(own, D)


def test_a_tangent_of_unknown_size():
    w = tf.Variable(D)

    def f(x):
        with tf.autodiff.ForwardAccumulator(w, x) as acc:
            y = w * w
        return acc.jvp(y)

    for found in any_size(f)():
        assert_close(found, [[2.0, 0.0], [0.0, 8.0]])


@pytest.mark.parametrize("keyword", [True, False])
def test_a_known_cotangent(keyword):
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        seed = tf.constant(D)
        return tape.gradient(y, x, output_gradients=seed) if keyword else tape.gradient([y], x, [seed])

    for found in any_size(f)():
        assert_close(found, [[2.0, 0.0], [0.0, 8.0]])


def test_a_cotangent_for_a_size_that_depends_on_values():
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.boolean_mask(x * x, x > 1.0)
        return tape.gradient(y, x, output_gradients=tf.constant([1.0, 2.0, 3.0]))

    for found in any_size(f)():
        assert_close(found, [[0.0, 4.0], [12.0, 24.0]])
