"""A program with types, as tests/test_types.py gives it to mypy; it runs as well."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import gradtape as tf


class Dense(tf.Module):
    """A layer."""

    def __init__(self, inputs: int, outputs: int, activation: Callable[[tf.Tensor], tf.Tensor]) -> None:
        super().__init__()
        self.w: tf.Variable = tf.Variable(tf.random.normal([inputs, outputs], stddev=0.1), name="w")
        self.b: tf.Variable = tf.Variable(tf.zeros([outputs]), name="b")
        self.activation = activation

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return self.activation(tf.matmul(x, self.w) + self.b)


def mean_squared(y: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(tf.square(y - target), axis=None)


def train(steps: int) -> float:
    tf.random.set_seed(1)
    x = tf.constant(np.linspace(-1, 1, 32)[:, None], dtype=tf.float32)
    target = tf.math.sin(3.0 * x)
    layers = [Dense(1, 16, tf.nn.tanh), Dense(16, 1, tf.identity)]
    variables: list[tf.Variable] = [v for layer in layers for v in (layer.w, layer.b)]
    optimizer = tf.optimizers.Adam(0.05)
    loss = tf.constant(0.0)
    for _ in range(steps):
        with tf.GradientTape() as tape:
            y: tf.Tensor = x
            for layer in layers:
                y = layer(y)
            loss = mean_squared(y, target)
        grads = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(grads, variables, strict=True))
    shape: tf.TensorShape = loss.shape
    assert shape.rank == 0 and loss.dtype is tf.float32
    return float(loss)


def explained() -> str:
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.round(v)
    why: tf.debug.Explanation = tape.explain(y, v)
    kept: int = tape.memory().total
    return f"{why.cause}, {kept} bytes"


if __name__ == "__main__":
    print(train(20), explained())
