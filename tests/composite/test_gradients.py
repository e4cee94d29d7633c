"""Gradients of and with respect to composite tensors."""

import pytest

import gradtape as tf
from gradtape._src.tensors.composite import CompositeTensorGradient, WithValuesCompositeTensorGradient
from tests.composite.test_type_spec import Pair, PairSpec


class Weighted(Pair):
    """A pair whose first tensor has a gradient."""

    class _First(CompositeTensorGradient):
        def get_gradient_components(self, value):
            return value.x

        def replace_gradient_components(self, value, component_grads):
            return Weighted(component_grads, value.y, value.color)

    __composite_gradient__ = _First()

    @property
    def _type_spec(self):
        return WeightedSpec(*super()._type_spec._serialize())


class WeightedSpec(PairSpec):
    value_type = property(lambda self: Weighted)

    def _from_components(self, components):
        return Weighted(*components, self.color)


class Scaled(Pair):
    __composite_gradient__ = WithValuesCompositeTensorGradient()
    values = property(lambda self: (self.x, self.y))

    def with_values(self, values):
        return None if None in values else Scaled(*values, self.color)


def test_with_respect_to_a_composite():
    value, x = Weighted([1.0, 2.0], [True, False]), tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([value, x])
        y = value.x * x
    gradient, gx = tape.gradient(y, [value, x])
    assert isinstance(gradient, Weighted) and gradient.x.numpy().tolist() == [3, 3] and gx.numpy() == 3
    assert gradient.y is value.y
    assert tape.gradient(x, value) is None
    zero = tape.gradient(x, value, unconnected_gradients="zero")
    assert zero.x.numpy().tolist() == [0, 0]
    assert tape.jacobian(y, value).x.numpy().tolist() == [[3, 0], [0, 3]]


def test_of_a_composite():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = Weighted(x * x, [True, False])
    assert tape.gradient(y, x).numpy().tolist() == [2, 4]
    weights = Weighted(tf.constant([10.0, 1.0]), [True, False])
    assert tape.gradient(y, x, output_gradients=weights).numpy().tolist() == [20, 4]


def test_nests_of_components():
    value = Scaled([1.0, 2.0], [3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(value)
        y = value.x * value.y
        z = value.x * 2.0
    gradient = tape.gradient(y, {"v": value})["v"]
    assert gradient.x.numpy().tolist() == [3, 4] and gradient.y.numpy().tolist() == [1, 2]
    assert tape.gradient(z, value) is None


def test_composites_without_the_protocol_are_refused():
    value = Pair([1.0], [2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(value)
        y = value.x * value.y
    with pytest.raises(ValueError, match="Pair is not supported as a gradient source or gradient target"):
        tape.gradient(y, value)
    with pytest.raises(ValueError, match="Pair is not supported"):
        tape.gradient(value, value.x)
    assert tape.gradient(y, value.x).numpy() == [2]


def test_in_a_function():
    @tf.function
    def f(value):
        with tf.GradientTape() as tape:
            tape.watch(value)
            y = value.x * value.x
        return tape.gradient(y, value)

    gradient = f(Weighted([1.0, 2.0], [True, False]))
    assert isinstance(gradient, Weighted) and gradient.x.numpy().tolist() == [2, 4]


def test_through_a_function():
    f = tf.function(lambda value: Weighted(value.x * value.x, value.y))
    value = Weighted([1.0, 2.0], [True, False])
    with tf.GradientTape() as tape:
        tape.watch(value)
        y = f(value)
    assert tape.gradient(y.x, value).x.numpy().tolist() == [2, 4]


def test_indexed_slices():
    slices = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([2]), tf.constant([4, 2]))
    with tf.GradientTape() as tape:
        tape.watch(slices.values)
        y = slices.values**2
    gradient = tape.gradient(y, slices)
    assert gradient.values.numpy().tolist() == [[2, 4]] and gradient.shape == (4, 2)


def test_custom_gradients():
    seen = []

    @tf.custom_gradient
    def f(value):
        def grad(upstream):
            seen.append(type(upstream))
            return Weighted(upstream.x * 10.0, value.y)

        return Weighted(value.x * 2.0, value.y), grad

    value = Weighted([1.0, 2.0], [True, False])
    with tf.GradientTape() as tape:
        tape.watch(value)
        y = f(value).x * 3.0
    assert tape.gradient(y, value).x.numpy().tolist() == [30, 30] and seen == [Weighted]


def test_printing_sparse_gradients(capsys):
    slices = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([1]), tf.constant([2, 2]))
    tf.function(lambda s: tf.print(s, tf.IndexedSlices(s.values, s.indices)))(slices)
    assert capsys.readouterr().err == "[[0 0]\n [1 1]] IndexedSlices([[1 1]], [1])\n"
