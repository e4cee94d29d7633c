"""Random numbers from the seeds that Keras hands around: two integers per call, no hidden state."""

from __future__ import annotations

from typing import Any

import gradtape as tf
from keras.src.backend.config import floatx
from keras.src.random.seed_generator import SeedGenerator, draw_seed, make_default_seed

from keras_gradtape.src.ops.core import convert_to_tensor

__all__ = [
    "SeedGenerator", "beta", "binomial", "categorical", "draw_seed", "dropout", "gamma", "make_default_seed",
    "normal", "randint", "shuffle", "truncated_normal", "uniform",
]  # fmt: skip


def _seed(seed: Any) -> Any:
    """The seed of a call, as the two 32-bit numbers that stateless random ops take."""
    return tf.bitcast(convert_to_tensor(draw_seed(seed), "uint32"), "int32")


def normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    dtype = dtype or floatx()
    return tf.random.stateless_normal(shape, _seed(seed), _cast(mean, dtype), _cast(stddev, dtype), dtype)


def uniform(shape: Any, minval: Any = 0.0, maxval: Any = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    dtype = dtype or floatx()
    return tf.random.stateless_uniform(shape, _seed(seed), _cast(minval, dtype), _cast(maxval, dtype), dtype)


def randint(shape: Any, minval: Any, maxval: Any, dtype: Any = "int32", seed: Any = None) -> Any:
    drawn = "int64" if dtype in ("int64", "uint64", "uint32") else "int32"
    out = tf.random.stateless_uniform(shape, _seed(seed), _cast(minval, drawn), _cast(maxval, drawn), drawn)
    return tf.cast(out, dtype)


def truncated_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None, seed: Any = None
) -> Any:
    dtype = dtype or floatx()
    return tf.random.stateless_truncated_normal(
        shape, _seed(seed), _cast(mean, dtype), _cast(stddev, dtype), dtype
    )


def categorical(logits: Any, num_samples: int, dtype: Any = "int32", seed: Any = None) -> Any:
    drawn = tf.random.stateless_categorical(convert_to_tensor(logits), num_samples, _seed(seed), "int32")
    return tf.cast(drawn, dtype)


def _cast(x: Any, dtype: Any) -> Any:
    return convert_to_tensor(x, dtype)


def _noise_shape(inputs: Any, noise_shape: Any) -> Any:
    if noise_shape is None:
        return inputs.shape
    return [d if n is None else n for n, d in zip(noise_shape, inputs.shape, strict=True)]


def dropout(inputs: Any, rate: float, noise_shape: Any = None, seed: Any = None) -> Any:
    x = convert_to_tensor(inputs)
    keep = 1.0 - rate
    drawn = tf.random.stateless_uniform(_noise_shape(x, noise_shape), _seed(seed), dtype="float32")
    return tf.where(drawn >= rate, x / tf.cast(keep, x.dtype), tf.zeros([], x.dtype))


def shuffle(x: Any, axis: int = 0, seed: Any = None) -> Any:
    x = convert_to_tensor(x)
    if axis == 0:
        return tf.random.experimental.stateless_shuffle(x, _seed(seed))
    order = [axis, *(d for d in range(x.ndim) if d != axis % x.ndim)]
    order[0] = axis % x.ndim
    moved = tf.random.experimental.stateless_shuffle(tf.transpose(x, order), _seed(seed))
    back = [order.index(d) for d in range(x.ndim)]
    return tf.transpose(moved, back)


def gamma(shape: Any, alpha: Any, dtype: Any = None, seed: Any = None) -> Any:
    dtype = dtype or floatx()
    return tf.random.stateless_gamma(shape, _seed(seed), alpha=_cast(alpha, dtype), dtype=dtype)


def binomial(shape: Any, counts: Any, probabilities: Any, dtype: Any = None, seed: Any = None) -> Any:
    dtype = dtype or floatx()
    drawn = tf.random.stateless_binomial(
        shape, _seed(seed), _cast(counts, "float32"), _cast(probabilities, "float32"), "float32"
    )
    return tf.cast(drawn, dtype)


def beta(shape: Any, alpha: Any, beta: Any, dtype: Any = None, seed: Any = None) -> Any:
    """A quotient of two gamma variables. One seed serves both: the second is a fold of it."""
    dtype = dtype or floatx()
    first = _seed(seed)
    second = first + tf.constant([12, 0], "int32")
    a = tf.random.stateless_gamma(shape, first, alpha=_cast(alpha, dtype), dtype=dtype)
    b = tf.random.stateless_gamma(shape, second, alpha=_cast(beta, dtype), dtype=dtype)
    return a / (a + b)
