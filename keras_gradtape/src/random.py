"""Random numbers from the seeds that Keras passes around: two integers per call, no hidden state.

The numbers are those of Keras on TensorFlow, bit for bit: initial weights, dropout and shuffles are the same for
the same seed.
"""

from __future__ import annotations

from typing import Any

from keras.src.backend.common import global_state
from keras.src.backend.config import floatx
from keras.src.random.seed_generator import SeedGenerator, draw_seed, make_default_seed

import gradtape as tf
from gradtape.backend import one_call_each, seed_initializers_by
from keras_gradtape.src.ops.core import convert_to_tensor, dtype_of

__all__ = [
    "SeedGenerator", "beta", "binomial", "categorical", "draw_seed", "dropout", "gamma", "make_default_seed",
    "normal", "randint", "shuffle", "truncated_normal", "uniform",
]  # fmt: skip

_LARGEST = 2**31 - 2


def _seed_of_initializers() -> int | None:
    """What `tf.initializers` begin with after `keras.utils.set_random_seed`: the seeds that Keras' own draw."""
    return None if global_state.get_global_attribute("global_random_seed") is None else make_default_seed()


seed_initializers_by(_seed_of_initializers)


def _seed(seed: Any) -> Any:
    """The seed of a call as the two numbers that stateless random ops take, in the range of int32."""
    drawn = tf.cast(convert_to_tensor(draw_seed(seed)), "int64")
    return tf.cast(tf.math.floormod(drawn, _LARGEST), "int32")


def _cast(x: Any, dtype: Any) -> Any:
    return convert_to_tensor(x, dtype)


def normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    dtype = dtype or floatx()
    return tf.random.stateless_normal(shape, _seed(seed), _cast(mean, dtype), _cast(stddev, dtype), dtype)


def truncated_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None, seed: Any = None
) -> Any:
    dtype = dtype or floatx()
    return tf.random.stateless_truncated_normal(
        shape, _seed(seed), _cast(mean, dtype), _cast(stddev, dtype), dtype
    )


def uniform(shape: Any, minval: Any = 0.0, maxval: Any = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    dtype = dtype or floatx()
    return tf.random.stateless_uniform(shape, _seed(seed), _cast(minval, dtype), _cast(maxval, dtype), dtype)


def randint(shape: Any, minval: Any, maxval: Any, dtype: Any = "int32", seed: Any = None) -> Any:
    target = dtype_of(dtype)
    drawn = target.name if target.name in ("int32", "int64") else "int64"
    out = tf.random.stateless_uniform(shape, _seed(seed), _cast(minval, drawn), _cast(maxval, drawn), drawn)
    return tf.cast(out, target)


def categorical(logits: Any, num_samples: int, dtype: Any = "int64", seed: Any = None) -> Any:
    drawn = tf.random.stateless_categorical(convert_to_tensor(logits), num_samples, _seed(seed))
    return tf.cast(drawn, dtype_of(dtype))


def dropout(inputs: Any, rate: float, noise_shape: Any = None, seed: Any = None) -> Any:
    x = convert_to_tensor(inputs)
    if rate == 0:
        return x
    if rate == 1:
        return tf.zeros_like(x)
    if noise_shape is not None:
        noise_shape = [d if n is None else n for n, d in zip(noise_shape, x.shape, strict=True)]
    return tf.nn.experimental.stateless_dropout(x, rate, _seed(seed), noise_shape=noise_shape)


def shuffle(x: Any, axis: int = 0, seed: Any = None) -> Any:
    x = convert_to_tensor(x)
    order = tf.argsort(tf.random.stateless_uniform([x.shape[axis]], _seed(seed)))
    return tf.gather(x, order, axis=axis)


def _wide(dtype: Any) -> str:
    """The type to draw in."""
    name = dtype_of(dtype).name
    return "float32" if name == "bfloat16" else name


def _parameters(shape: Any, dtype: str, *values: Any) -> list:
    return [tf.broadcast_to(convert_to_tensor(v, dtype), shape) for v in values]


def gamma(shape: Any, alpha: Any, dtype: Any = None, seed: Any = None) -> Any:
    dtype = dtype or floatx()
    drawn = _wide(dtype)
    (alpha,) = _parameters(shape, drawn, alpha)
    return _cast(tf.random.stateless_gamma(shape, _seed(seed), alpha, dtype=drawn), dtype)


def binomial(shape: Any, counts: Any, probabilities: Any, dtype: Any = None, seed: Any = None) -> Any:
    dtype = dtype or floatx()
    counts, probabilities = _parameters(shape, "float32", counts, probabilities)
    return _cast(tf.random.stateless_binomial(shape, _seed(seed), counts, probabilities, _wide(dtype)), dtype)


def beta(shape: Any, alpha: Any, beta: Any, dtype: Any = None, seed: Any = None) -> Any:
    """A gamma variable by the sum of it and another, from the same seed, moved."""
    dtype = dtype or floatx()
    drawn = _wide(dtype)
    seed = _seed(seed)
    a, b = (
        _cast(tf.random.stateless_gamma(shape, s, p, dtype=drawn), dtype)
        for s, p in zip((seed, seed + 12), _parameters(shape, drawn, alpha, beta), strict=True)
    )
    return a / (a + b)


one_call_each(globals())
