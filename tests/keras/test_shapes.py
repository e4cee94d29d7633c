"""Shapes of Keras layers, found without computing; with zeros where they depend on values."""

import math

import numpy as np

import gradtape as tf

keras = tf.keras


def test_a_batch_of_unknown_size_stays_unknown():
    spec = keras.ops.mean(keras.KerasTensor((None, 3)), axis=-1)
    assert spec.shape == (None,)


def test_shapes_that_depend_on_values_are_found_with_zeros():
    class Counts(keras.layers.Layer):
        def call(self, x):
            n = tf.reduce_max(x) + 1
            sums = tf.math.unsorted_segment_sum(tf.ones_like(x), x, num_segments=n)
            return tf.cast(tf.gather(sums, x), "float32")

    x = keras.Input((), dtype="int32")
    model = keras.Model(x, Counts()(x))
    assert model.output_shape == (None,)
    assert model.predict(np.array([0, 2, 2], "int32"), verbose=0).tolist() == [1.0, 2.0, 2.0]


def test_the_reason_for_an_eager_step_is_logged_once(caplog):
    class Largest(keras.layers.Layer):
        def call(self, x):
            return x * math.exp(tf.reduce_max(x))

    model = keras.Sequential([Largest()])
    model.compile(loss="mse")
    x = np.full((4, 1), 3.0, "float32")
    model.evaluate(x, x, verbose=0)
    model.evaluate(x[:3], x[:3], verbose=0)
    said = [r.getMessage() for r in caplog.records if "runs eagerly" in r.getMessage()]
    assert len(said) == 1 and "test_shapes.py:" in said[0] and "Arguments received" not in said[0]
