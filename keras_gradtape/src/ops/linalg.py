"""`keras.ops.linalg`: factorisations, solutions, norms, and derivatives in a direction.

Integers are converted to floats; 16-bit floats are computed in float32.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src import tree

import gradtape as tf
from gradtape.backend import array_of, one_call_each
from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.types import floating, floats

__all__ = [
    "cholesky", "cholesky_inverse", "det", "eig", "eigh", "inv", "jvp", "lstsq", "lu_factor", "matrix_power",
    "matrix_rank", "norm", "pinv", "qr", "solve", "solve_triangular", "svd",
]  # fmt: skip

_NARROW = ("float16", "bfloat16")


def _in_wide(function: Callable) -> Callable:
    """Computes with matrices of at least 32 bits; results have the type of the first operand."""

    @functools.wraps(function)
    def wide(x: Any, *args: Any, **kwargs: Any) -> Any:
        x = floating(x)
        if x.dtype.name not in _NARROW:
            return function(x, *args, **kwargs)
        out = function(tf.cast(x, "float32"), *args, **kwargs)
        return tree.map_structure(lambda y: tf.cast(y, x.dtype) if y.dtype.is_floating else y, out)

    return wide


# ---- factorisations -------------------------------------------------------------------------------------


@_in_wide
def cholesky(a: Any, upper: bool = False) -> Any:
    factor = tf.linalg.cholesky(a)
    return tf.linalg.adjoint(factor) if upper else factor


@_in_wide
def cholesky_inverse(a: Any, upper: bool = False) -> Any:
    """The inverse of a matrix whose Cholesky factor is `a`."""
    root = tf.linalg.triangular_solve(a, tf.eye(a.shape[-1], dtype=a.dtype), lower=not upper)
    return tf.matmul(root, root, adjoint_b=True) if upper else tf.matmul(root, root, adjoint_a=True)


@_in_wide
def det(a: Any) -> Any:
    return tf.linalg.det(a)


@_in_wide
def eig(a: Any) -> tuple:
    return tuple(tf.linalg.eig(a))


@_in_wide
def eigh(a: Any) -> tuple:
    return tuple(tf.linalg.eigh(a))


@_in_wide
def inv(a: Any) -> Any:
    return tf.linalg.inv(a)


@_in_wide
def qr(x: Any, mode: str = "reduced") -> tuple:
    if mode not in ("reduced", "complete"):
        raise ValueError(
            "`mode` argument value not supported. "
            f"Expected one of {{'reduced', 'complete'}}. Received: mode={mode}"
        )
    return tuple(tf.linalg.qr(x, full_matrices=mode == "complete"))


@_in_wide
def svd(x: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    if not compute_uv:
        return tf.linalg.svd(x, compute_uv=False)
    s, u, v = tf.linalg.svd(x, full_matrices=full_matrices)
    return u, s, tf.linalg.adjoint(v)


@_in_wide
def lu_factor(a: Any) -> tuple[Any, Any]:
    """Both factors in one matrix, and LAPACK's pivots: row i was exchanged with row `pivots[i]`."""
    if a.shape[-1] == a.shape[-2] and a._symbol is None:
        try:
            lu, order = tf.linalg.lu(a)
            return lu, tf.constant(_exchanges(array_of(order)))
        except tf.errors.InvalidArgumentError:
            pass  # singular: the factors still exist
    return _eliminated(a)


def _exchanges(orders: np.ndarray) -> np.ndarray:
    """The exchanges that make each permutation."""
    out = np.empty(orders.shape, np.int32)
    for order, pivots in zip(
        orders.reshape(-1, orders.shape[-1]), out.reshape(-1, orders.shape[-1]), strict=True
    ):
        rows = np.arange(order.size)
        for i, row in enumerate(order):
            pivots[i] = at = i + int(np.argmax(rows[i:] == row))
            rows[i], rows[at] = rows[at], rows[i]
    return out


def _eliminated(a: Any) -> tuple[Any, Any]:
    """Gauss' elimination with partial pivoting, for matrices of any shape."""
    rows, columns = a.shape[-2:]
    batch = a.ndim - 2
    numbers = tf.range(rows)
    pivots = []
    for k in range(min(rows, columns)):
        best = k + tf.argmax(tf.abs(a[..., k:, k]), -1, output_type="int32")
        pivots.append(best)
        swap = tf.expand_dims(best, -1)
        order = tf.where(numbers == k, swap, tf.where(numbers == swap, k, numbers))
        a = tf.gather(a, order, axis=batch, batch_dims=batch)
        done, rest = a[..., : k + 1, :], a[..., k + 1 :, :]
        factors = tf.math.divide_no_nan(rest[..., k : k + 1], a[..., k : k + 1, k : k + 1])
        rest = tf.concat(
            [rest[..., :k], factors, rest[..., k + 1 :] - factors * a[..., k : k + 1, k + 1 :]], -1
        )
        a = tf.concat([done, rest], -2)
    return a, tf.stack(pivots, -1)


# ---- solutions ------------------------------------------------------------------------------------------


def _solved(op: Callable, a: Any, b: Any) -> Any:
    """Treats vectors as right-hand sides of one column."""
    a, b = floats(a, b)
    if b.ndim == a.ndim - 1:
        return tf.squeeze(op(a, tf.expand_dims(b, -1)), -1)
    return op(a, b)


def solve(a: Any, b: Any) -> Any:
    return _solved(tf.linalg.solve, a, b)


def solve_triangular(a: Any, b: Any, lower: bool = False) -> Any:
    return _solved(lambda a, b: tf.linalg.triangular_solve(a, b, lower=lower), a, b)


def lstsq(a: Any, b: Any, rcond: float | None = None) -> Any:
    a, b = floats(a, b)
    if a.shape[0] != b.shape[0]:
        raise ValueError("Leading dimensions of input arrays must match")
    if a.ndim != 2:
        raise TypeError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")
    if b.ndim not in (1, 2):
        raise TypeError(f"{b.ndim}-dimensional array given. Array must be one or two-dimensional")
    eps = float(np.finfo(a.dtype.real_dtype.as_numpy_dtype).eps)
    if rcond is None:
        rcond = eps * max(a.shape)
    elif rcond < 0:
        rcond = eps
    inverse = tf.linalg.pinv(a, rcond)
    return tf.linalg.matvec(inverse, b) if b.ndim == 1 else tf.matmul(inverse, b)


@_in_wide
def pinv(x: Any, rcond: Any = None) -> Any:
    return tf.linalg.pinv(x, rcond)


@_in_wide
def matrix_rank(x: Any, tol: Any = None) -> Any:
    return tf.linalg.matrix_rank(x, tol)


def matrix_power(a: Any, n: int) -> Any:
    """By repeated squaring. Keras has it from 3.16 on."""
    a = convert_to_tensor(a)
    if n < 0:
        a, n = inv(a), -n
    if n == 0:
        return tf.eye(a.shape[-1], batch_shape=a.shape[:-2], dtype=a.dtype)
    out = None
    while n:
        if n & 1:
            out = a if out is None else tf.matmul(out, a)
        n >>= 1
        if n:
            a = tf.matmul(a, a)
    return out


# ---- norms ----------------------------------------------------------------------------------------------


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = floating(x)
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if any(not -x.ndim <= a < x.ndim for a in axes):
        raise ValueError(
            "All `axis` values must be in the range [-ndim, ndim). "
            f"Received inputs with ndim={x.ndim}, while axis={axis}"
        )
    axes = tuple(a % x.ndim for a in axes)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes[0], keepdims)
    if ord is None and axis is None:
        return tf.norm(x, axis=None, keepdims=keepdims)
    if len(axes) != 2:
        raise ValueError(f"Invalid axis values. Received: axis={axis}")
    return _matrix_norm(x, ord, axes, keepdims)


def _vector_norm(x: Any, ord: Any, axis: int, keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise ValueError(f"Invalid `ord` argument for vector norm. Received: ord={ord}")
    if ord is None:
        return tf.norm(x, axis=axis, keepdims=keepdims)
    if ord == 0:
        return tf.reduce_sum(tf.cast(tf.not_equal(x, 0), x.dtype.real_dtype), axis, keepdims)
    if ord > 0:
        return tf.norm(x, ord, axis, keepdims)
    if ord == -math.inf:
        return tf.reduce_min(tf.abs(x), axis, keepdims)
    return tf.reduce_sum(tf.abs(x) ** ord, axis, keepdims) ** (1 / ord)


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, int], keepdims: bool) -> Any:
    if ord in (None, "fro"):
        return tf.norm(x, "fro", axes, keepdims)
    if ord in (1, math.inf):
        return tf.norm(x, ord, axes, keepdims)
    if ord in (-1, -math.inf):
        first, second = axes if ord == -1 else axes[::-1]
        out = tf.reduce_min(tf.reduce_sum(tf.abs(x), first, True), second, True)
        return out if keepdims else tf.squeeze(out, axes)
    if ord not in ("nuc", 2, -2):
        raise ValueError(f"Invalid `ord` argument for matrix norm. Received: ord={ord}")
    others = [a for a in range(x.ndim) if a not in axes]
    values = tf.linalg.svd(tf.transpose(x, [*others, *axes]), compute_uv=False)
    reduce = {"nuc": tf.reduce_sum, 2: tf.reduce_max, -2: tf.reduce_min}[ord]
    out = reduce(values, -1)
    return tf.reshape(out, [1 if a in axes else n for a, n in enumerate(x.shape)]) if keepdims else out


# ---- derivatives ----------------------------------------------------------------------------------------


def jvp(fun: Callable, primals: Any, tangents: Any, has_aux: bool = False) -> tuple:
    xs = tree.map_structure(convert_to_tensor, tuple(primals))
    ts = [
        convert_to_tensor(t, x.dtype.name)
        for t, x in zip(tree.flatten(tangents), tree.flatten(xs), strict=True)
    ]
    with tf.autodiff.ForwardAccumulator(tree.flatten(xs), ts) as accumulator:
        out = fun(*xs)
    out, *aux = out if has_aux else (out,)
    moved = [accumulator.jvp(y, unconnected_gradients="zero") for y in tree.flatten(out)]
    return (out, tree.pack_sequence_as(out, moved), *aux)


one_call_each(globals())
