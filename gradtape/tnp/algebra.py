"""Products, cumulative sums, sorting, selection and random numbers."""

from __future__ import annotations

import sys as _sys
import types as _types
from typing import Any

import numpy as np

import gradtape as tf
from gradtape.tnp import elementwise as _elementwise
from gradtape.tnp.arrays import array, as_inexact, meet
from gradtape.tnp.elementwise import _wide
from gradtape.tnp.shapes import moveaxis, ravel

# ---- products, sums, order ----------------------------------------------------------------------------


def matmul(x1: Any, x2: Any) -> Any:
    """The product of matrices and vectors."""
    x, y = meet(x1, x2)
    if len(x.shape) == 1 and len(y.shape) == 1:
        return tf.tensordot(x, y, 1)
    if len(x.shape) == 1:
        return tf.squeeze(tf.matmul(x[None, :], y), -2)
    if len(y.shape) == 1:
        return tf.squeeze(tf.matmul(x, y[:, None]), -1)
    return tf.matmul(x, y)


def dot(a: Any, b: Any) -> Any:
    """The product along the last axis of `a` and the last but one of `b`."""
    a, b = meet(a, b)
    if not len(a.shape) or not len(b.shape):
        return a * b
    return tf.tensordot(a, b, [[-1], [-1 if len(b.shape) == 1 else -2]])


def inner(a: Any, b: Any) -> Any:
    """The product along the last axes."""
    a, b = meet(a, b)
    return a * b if not len(a.shape) or not len(b.shape) else tf.tensordot(a, b, [[-1], [-1]])


def outer(a: Any, b: Any) -> Any:
    """The outer product of two vectors."""
    a, b = meet(a, b)
    return ravel(a)[:, None] * ravel(b)[None, :]


def vdot(a: Any, b: Any) -> Any:
    """The dot product of all elements."""
    a, b = meet(a, b)
    return tf.reduce_sum(ravel(tf.math.conj(a)) * ravel(b))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """The sum of products over chosen axes."""
    a, b = meet(a, b)
    return tf.tensordot(a, b, axes)


def einsum(subscripts: str, *operands: Any, **kwargs: Any) -> Any:
    """Sums of products, written with subscripts."""
    return tf.einsum(subscripts, *meet(*operands))


def trace(a: Any) -> Any:
    """The sum of the diagonal."""
    return tf.linalg.trace(_wide(array(a)))


def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Cumulative sums."""
    a = _wide(array(a, dtype))
    return tf.cumsum(ravel(a) if axis is None else a, axis or 0)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Cumulative products."""
    a = _wide(array(a, dtype))
    return tf.math.cumprod(ravel(a) if axis is None else a, axis or 0)


def diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    """Differences of adjacent elements."""
    a = moveaxis(a, axis, -1)
    for _ in range(min(int(n), a.shape[-1])):  # after that no elements are left
        a = a[..., 1:] - a[..., :-1]
    return moveaxis(a, -1, axis)


def argmax(a: Any, axis: int | None = None) -> Any:
    """The index of the largest element."""
    a = array(a)
    return tf.argmax(ravel(a) if axis is None else a, axis or 0)


def argmin(a: Any, axis: int | None = None) -> Any:
    """The index of the smallest element."""
    a = array(a)
    return tf.argmin(ravel(a) if axis is None else a, axis or 0)


def sort(a: Any, axis: int | None = -1, kind: str = "quicksort", order: None = None) -> Any:
    """The elements in ascending order."""
    a = array(a)
    return tf.sort(ravel(a) if axis is None else a, -1 if axis is None else axis)


def argsort(a: Any, axis: int | None = -1, kind: str = "quicksort", order: None = None) -> Any:
    """The indices that sort an array."""
    a = array(a)
    return tf.cast(
        tf.argsort(ravel(a) if axis is None else a, -1 if axis is None else axis, stable=True), tf.int64
    )


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Elements of `x` or `y`, by a condition; with only the condition, the indices where it holds, one tensor per axis."""
    condition = tf.cast(array(condition), tf.bool)
    if x is None:
        return list(tf.unstack(tf.transpose(tf.where(condition)), len(condition.shape)))
    return tf.where(condition, *meet(x, y))


def nonzero(a: Any) -> Any:
    """The indices of nonzero elements, one tensor per axis."""
    return where(tf.cast(array(a), tf.bool))


def clip(a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    """Elements limited to an interval."""
    if a_min is not None:
        a = vars(_elementwise)["maximum"](a, a_min)
    return a if a_max is None else vars(_elementwise)["minimum"](a, a_max)


def around(a: Any, decimals: int = 0) -> Any:
    """Rounds to `decimals` digits, halves to even."""
    a = array(a)
    if a.dtype.is_integer:
        return a
    return tf.round(a * 10.0**decimals) / 10.0**decimals if decimals else tf.round(a)


round = around


def take(a: Any, indices: Any, axis: int | None = None) -> Any:
    """The elements at given indices."""
    a = array(a)
    return tf.gather(ravel(a) if axis is None else a, array(indices), axis=axis or 0)


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether all elements are nearly equal."""
    return tf.reduce_all(isclose(a, b, rtol, atol, equal_nan))


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether elements are nearly equal."""
    a, b = as_inexact(a, b)
    near = tf.logical_or(tf.equal(a, b), tf.abs(a - b) <= atol + rtol * tf.abs(b))
    return near | tf.math.is_nan(a) & tf.math.is_nan(b) if equal_nan else near


def array_equal(a1: Any, a2: Any) -> Any:
    """Whether shapes and elements are the same."""
    a, b = meet(a1, a2)
    return tf.reduce_all(tf.equal(a, b)) if a.shape == b.shape else tf.constant(False)


# ---- random numbers -----------------------------------------------------------------------------------


_random: Any = tf.random


def _sizes(size: Any) -> Any:
    return [] if size is None else [size] if isinstance(size, int) else size


def _randn(*args: int) -> Any:
    """Standard normal numbers, float64."""
    return _random.normal(args, dtype=tf.float64)


def _standard_normal(size: Any = None) -> Any:
    """Standard normal numbers, float64."""
    return _randn(*_sizes(size))


def _uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    """Uniform numbers from `low` to `high`, float64."""
    return _random.uniform(_sizes(size), low, high, tf.float64)


def _rand(*size: int) -> Any:
    """Uniform numbers from 0 to 1, float64."""
    return _uniform(size=list(size))


def _random_sample(size: Any = None) -> Any:
    """Uniform numbers from 0 to 1, float64."""
    return _uniform(size=size)


def _randint(low: int, high: int | None = None, size: Any = None, dtype: Any = np.int64) -> Any:
    """Uniform integers from `low` to `high - 1`."""
    low, high = (0, low) if high is None else (low, high)
    return tf.cast(_random.uniform(_sizes(size), low, high, tf.int64), np.dtype(dtype))


def _poisson(lam: Any = 1.0, size: Any = None) -> Any:
    """Poisson numbers, int64."""
    return _random.poisson(_sizes(size), lam, tf.int64)


def _seed(s: int) -> None:
    """Sets the seed of all random numbers, like `tf.random.set_seed`."""
    _random.set_seed(s)


random = _types.ModuleType("gradtape.tnp.random", "TensorFlow's namespace `tf.experimental.numpy.random`.")
vars(random).update(
    randn=_randn, rand=_rand, random=_random_sample, uniform=_uniform, randint=_randint, seed=_seed,
    standard_normal=_standard_normal, poisson=_poisson,
)  # fmt: skip
_sys.modules[random.__name__] = random
