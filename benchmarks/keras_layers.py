"""Training steps written with Keras layers: W2-W7 in a GradientTape loop and under `function`, and `fit`.

`python benchmarks/keras_layers.py [tensorflow] [W2 W3 ...]` prints microseconds per step, the minimum over
single steps: the same code on gradtape, or on TensorFlow in its own environment. The workloads are those
of `cases.py`, with layers in place of ops.
"""

from __future__ import annotations

import importlib
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
LIBRARY = "tensorflow" if "tensorflow" in sys.argv[1:] else "gradtape"

import numpy as np  # noqa: E402

tf = importlib.import_module(LIBRARY)
keras = tf.keras
layers = keras.layers
RANDOM = np.random.default_rng(0)


def normal(*shape):
    return RANDOM.normal(size=shape).astype("float32")


class Block(layers.Layer):
    """A transformer block, norms first."""

    def __init__(self, width=256, heads=4, inner=1024):
        super().__init__()
        self.first, self.second = layers.LayerNormalization(), layers.LayerNormalization()
        self.attend = layers.MultiHeadAttention(heads, width // heads)
        self.grow, self.shrink = layers.Dense(inner, activation="gelu"), layers.Dense(width)

    def build(self, shape):
        self.first.build(shape)
        self.second.build(shape)
        self.attend.build(shape, shape)
        self.grow.build(shape)
        self.shrink.build((*shape[:-1], 1024))

    def call(self, x):
        h = self.first(x)
        x = x + self.attend(h, h)
        return x + self.shrink(self.grow(self.second(x)))


def mlp(*widths, activation):
    hidden = [layers.Dense(n, activation=activation) for n in widths[1:-1]]
    return keras.Sequential([keras.Input((widths[0],)), *hidden, layers.Dense(widths[-1])])


def cnn():
    parts = []
    for n in (32, 64):
        parts += [layers.Conv2D(n, 3, padding="same", activation="relu"), layers.MaxPooling2D(padding="same")]
    dense = [layers.Flatten(), layers.Dense(128, activation="relu"), layers.Dense(10)]
    return keras.Sequential([keras.Input((28, 28, 1)), *parts, *dense])


def crossentropy():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


MSE = keras.losses.MeanSquaredError
CASES = {
    "W2": lambda: (mlp(4, 64, 64, 2, activation="tanh"), MSE(), normal(1, 4), normal(1, 2)),
    "W3": lambda: (mlp(32, 64, 64, 1, activation="relu"), MSE(), normal(32, 32), normal(32, 1)),
    "W4": lambda: (
        mlp(784, 512, 512, 10, activation="relu"), crossentropy(), normal(128, 784), RANDOM.integers(0, 10, 128),
    ),
    "W5": lambda: (cnn(), crossentropy(), normal(64, 28, 28, 1), RANDOM.integers(0, 10, 64)),
    "W6": lambda: (
        keras.Sequential([keras.Input((50, 64)), layers.LSTM(128)]), MSE(), normal(32, 50, 64), normal(32, 128),
    ),
    "W7": lambda: (
        keras.Sequential([keras.Input((128, 256)), Block(), Block()]), MSE(), normal(8, 128, 256), normal(8, 128, 256),
    ),
}  # fmt: skip


def best(step, seconds):
    """The shortest time of a step, in microseconds."""
    for _ in range(3):
        step()
    least, end = 1e9, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        step()
        least = min(least, time.perf_counter() - begin)
    return least * 1e6


def loop(name, compiled):
    model, loss, x, y = CASES[name]()
    x, y = tf.constant(x), tf.constant(y)
    optimizer = keras.optimizers.Adam(1e-3)

    def step():
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))
        return value

    run = tf.function(step) if compiled else step
    return best(lambda: run().numpy(), 3.0)


def fit(name, batches=50, epochs=5):
    """A step of `fit`, everything included, and the step alone."""
    model, loss, x, y = CASES[name]()
    model.compile(keras.optimizers.Adam(1e-3), loss)
    x, y = np.concatenate([x] * batches), np.concatenate([y] * batches)
    size = len(x) // batches
    model.fit(x, y, batch_size=size, epochs=1, verbose=0)
    least = 1e9
    for _ in range(5):
        begin = time.perf_counter()
        model.fit(x, y, batch_size=size, epochs=epochs, verbose=0)
        least = min(least, (time.perf_counter() - begin) / batches / epochs)
    return least * 1e6


def main():
    chosen = [a for a in sys.argv[1:] if a in CASES] or list(CASES)
    print(f"{LIBRARY}: microseconds per step\n{'':4}{'eager':>10}{'function':>10}{'fit':>10}")
    for name in chosen:
        fitted = f"{fit(name):10.0f}" if name in ("W2", "W3") else ""
        print(f"{name:4}{loop(name, False):10.0f}{loop(name, True):10.0f}{fitted}", flush=True)


if __name__ == "__main__":
    main()
