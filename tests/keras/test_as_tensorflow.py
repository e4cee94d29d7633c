"""Details that programs written for Keras on TensorFlow rely on: shapes of variables, seeds of initializers."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as tf
import keras_gradtape  # noqa: F401  before Keras

keras = pytest.importorskip("keras")


def test_shapes_of_variables():
    layer = keras.layers.Dense(2)
    layer.build((None, 3))
    shape = layer.kernel.shape
    assert shape.as_list() == [3, 2] and shape.rank == 2 and shape.num_elements() == 6
    assert shape == (3, 2) and tuple(shape) == (3, 2) and len(shape) == 2
    assert keras.Variable([1.0, 2.0]).shape == (2,)


# The first number that TensorFlow 2.21 draws for [2, 2] after set_random_seed(7), one after the other.
DRAWN = {
    "GlorotUniform": -0.44723016023635864, "HeNormal": -0.30139344930648804, "Orthogonal": 0.2520298957824707,
    "RandomNormal": None,
}  # fmt: skip


def test_initializers_draw_the_numbers_of_keras():
    keras.utils.set_random_seed(7)
    ours = [np.asarray(getattr(tf.initializers, name)()([2, 2])) for name in DRAWN]
    keras.utils.set_random_seed(7)
    theirs = [np.asarray(getattr(keras.initializers, name)()([2, 2])) for name in DRAWN]
    for mine, other, first in zip(ours, theirs, DRAWN.values(), strict=True):
        np.testing.assert_array_equal(mine, other)
        assert first is None or abs(float(mine[0, 0]) - first) < 1e-6


def test_an_initializer_of_keras_family_gives_the_same_again():
    keras.utils.set_random_seed(7)
    initializer = tf.initializers.GlorotUniform()
    np.testing.assert_array_equal(initializer([3]), initializer([3]))
    # Initializers of the core API continue the sequence of tf.random's seed.
    other = tf.random_normal_initializer()
    assert not np.array_equal(other([3]), other([3]))
