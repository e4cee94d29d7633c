"""Keras' ops on sparse tensors, as on TensorFlow: which of them are sparse again, and how they are computed.

Calls of ops with a `tf.SparseTensor` among their arguments come here (`sparse_calls`); calls on tensors never look.
Ops that are not in the table at the end only accept dense tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as tf
from gradtape.backend import array_of, keys_of, make_sparse, places_at, places_of, sizes_of, sparse_calls
from keras_gradtape.src.ops import core, nn, numpy

_ZERO_STAYS = """abs absolute arcsin arcsinh arctan arctanh ceil conj conjugate copy expm1 fabs floor imag log1p negative
    nan_to_num real round sign sin sinh sqrt square tan tanh"""
_ZERO_CHANGES = (
    "arccos arccosh cos cosh exp exp2 isfinite log log10 log2 reciprocal signbit digitize mean max min"
)


def is_sparse(x: Any) -> bool:
    return isinstance(x, tf.SparseTensor)


def dense(x: Any) -> Any:
    """A sparse tensor as a dense one; anything else unchanged."""
    return tf.sparse.to_dense(tf.sparse.reorder(x)) if is_sparse(x) else x


# ---- of one operand -------------------------------------------------------------------------------


def _of_values(op: Callable) -> Callable:
    return lambda x, *args, **kwargs: x.with_values(op(x.values, *args, **kwargs))


def _of_dense(op: Callable) -> Callable:
    def apply(*args: Any, **kwargs: Any) -> Any:
        return op(*map(dense, args), **{k: dense(v) for k, v in kwargs.items()})

    return apply


def _cast(x: Any, dtype: Any) -> Any:
    return x.with_values(core.cast(x.values, dtype))


def _sum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return tf.sparse.reduce_sum(x, axis, keepdims, output_is_sparse=True)


def _transpose(x: Any, axes: Any = None) -> Any:
    return tf.sparse.transpose(x, axes)


def _reshape(x: Any, newshape: Any) -> Any:
    return tf.sparse.reshape(x, [newshape] if isinstance(newshape, int) else list(newshape))


def _expand_dims(x: Any, axis: Any) -> Any:
    # Several new axes: in ascending order of their final positions.
    rank = len(x.shape) + (len(axis) if isinstance(axis, (list, tuple)) else 1)
    for a in sorted(a % rank for a in (axis if isinstance(axis, (list, tuple)) else [axis])):
        x = tf.sparse.expand_dims(x, a)
    return x


def _squeeze(x: Any, axis: Any = None) -> Any:
    sizes = sizes_of(x)
    axes = [k for k, n in enumerate(sizes) if n == 1] if axis is None else np.reshape(axis, -1) % len(sizes)
    for a in axes:
        if sizes[a] != 1:
            raise ValueError(f"Cannot squeeze axis={a}, because the dimension is not 1.")
    return tf.sparse.reshape(x, [n for k, n in enumerate(sizes) if k not in list(axes)])


# ---- of two operands ------------------------------------------------------------------------------


def _alike(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Both in Keras' common type."""
    dtype = core.result_type(*(getattr(x, "dtype", type(x)) for x in (x1, x2)))
    return core.convert_to_tensor(x1, dtype), core.convert_to_tensor(x2, dtype)


def _union(op: Callable, of_sparse: Callable) -> Callable:
    def apply(x1: Any, x2: Any) -> Any:
        if is_sparse(x1) and is_sparse(x2) and x1.shape == x2.shape:
            return of_sparse(*_alike(x1, x2))
        return op(dense(x1), dense(x2))

    return apply


def _subtract(x1: Any, x2: Any) -> Any:
    return tf.sparse.add(x1, tf.negative(x2))


def _multiply(x1: Any, x2: Any) -> Any:
    x1, x2 = _alike(x1, x2)
    if not is_sparse(x1):
        x1, x2 = x2, x1
    if not is_sparse(x2):
        return _times(x1, x2)
    sizes = sizes_of(x1)
    first, second = (keys_of(places_of(x), sizes) for x in (x1, x2))
    _, at_1, at_2 = np.intersect1d(first, second, return_indices=True)
    return make_sparse(places_of(x1)[at_1], tf.gather(x1.values, at_1) * tf.gather(x2.values, at_2), sizes)


def _times(x: Any, y: Any) -> Any:
    fits = y.shape.rank <= x.shape.rank and all(
        m in (1, n) for m, n in zip(y.shape, x.shape[x.shape.rank - y.shape.rank :], strict=True)
    )
    return x * y if fits else numpy.multiply(dense(x), y)


def _divide(op: Callable) -> Callable:
    def apply(x1: Any, x2: Any) -> Any:
        if not is_sparse(x1) or is_sparse(x2):
            return op(dense(x1), dense(x2))
        x2 = core.convert_to_tensor(x2)
        if x2.shape.rank == 0:
            return x1.with_values(op(x1.values, x2))
        if x2.shape != x1.shape:
            return op(dense(x1), x2)
        # 0 / 0 and 0 / NaN are NaN, so such elements are stored, too.
        sizes, divisor = sizes_of(x1), array_of(x2).reshape(-1)
        mine = keys_of(places_of(x1), sizes)
        keys = np.union1d(mine, np.flatnonzero((divisor == 0) | (divisor != divisor)))
        values = tf.math.unsorted_segment_sum(x1.values, np.searchsorted(keys, mine), len(keys))
        return make_sparse(places_at(keys, sizes), op(values, tf.gather(tf.reshape(x2, [-1]), keys)), sizes)

    return apply


def _matmul(x1: Any, x2: Any) -> Any:
    if len(x1.shape) != 2 or len(x2.shape) != 2:
        return numpy.matmul(dense(x1), dense(x2))
    x1, x2 = _alike(x1, x2)
    if is_sparse(x1) and is_sparse(x2):
        return tf.sparse.from_dense(tf.sparse.sparse_dense_matmul(x1, dense(x2)))
    return tf.sparse.sparse_dense_matmul(x1, x2)


def _concatenate(xs: Any, axis: int = 0) -> Any:
    if not all(map(is_sparse, xs)):
        return numpy.concatenate([dense(x) for x in xs], axis)
    dtype = core.result_type(*(x.dtype for x in xs))
    return tf.sparse.concat(axis, [_cast(x, dtype) for x in xs])


def _take(x: Any, indices: Any, axis: Any = None) -> Any:
    return numpy.take(dense(x), dense(indices), axis)


sparse_calls.update(
    {
        **{getattr(numpy, name): _of_values(getattr(numpy, name)) for name in _ZERO_STAYS.split()},
        **{getattr(numpy, name): _of_dense(getattr(numpy, name)) for name in _ZERO_CHANGES.split()},
        numpy.add: _union(numpy.add, tf.sparse.add),
        numpy.subtract: _union(numpy.subtract, _subtract),
        numpy.maximum: _union(numpy.maximum, tf.sparse.maximum),
        numpy.minimum: _union(numpy.minimum, tf.sparse.minimum),
        numpy.multiply: _multiply,
        numpy.divide: _divide(numpy.divide),
        numpy.true_divide: _divide(numpy.true_divide),
        numpy.matmul: _matmul,
        numpy.concatenate: _concatenate,
        numpy.expand_dims: _expand_dims,
        numpy.reshape: _reshape,
        numpy.squeeze: _squeeze,
        numpy.sum: _sum,
        numpy.take: _take,
        numpy.transpose: _transpose,
        core.cast: _cast,
        nn.relu: _of_values(nn.relu),
    }
)
