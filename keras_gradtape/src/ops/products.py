"""The functions of `keras.ops.numpy` that multiply and add up: products of vectors, matrices and tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src.backend.common.backend_utils import vectorize_impl

import gradtape as tf
from gradtape.backend import einsum_of_bytes
from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.shapes import moveaxis
from keras_gradtape.src.ops.types import INTEGERS, Tensor, common, floating, operand, together

# ---- types --------------------------------------------------------------------------------------


def _factors(*xs: Any) -> tuple[list, Any]:
    """Factors in the type they are multiplied in, and the type of the result.

    Products of int8 do not fit into int8, so they are int32. Booleans are multiplied as integers.
    """
    operands = [operand(x) for x in xs]
    if all(type(x) is Tensor and x.dtype is tf.int8 for x in operands):
        return [tf.cast(x, tf.int32) for x in operands], tf.int32
    operands = common(*operands)
    dtype = operands[0].dtype
    return ([tf.cast(x, tf.int32) for x in operands] if dtype.is_bool else operands), dtype


def _product(op: Callable, *xs: Any) -> Any:
    factors, dtype = _factors(*xs)
    out = op(*factors)
    return out if out.dtype is dtype else tf.cast(out, dtype)


def _in_own_type(op: Callable, x1: Any, x2: Any) -> Any:
    """For products that keep int8."""
    x1, x2 = together(x1, x2)
    if x1.dtype.is_bool:
        return tf.cast(op(tf.cast(x1, tf.int32), tf.cast(x2, tf.int32)), tf.bool)
    return op(x1, x2)


# ---- products -----------------------------------------------------------------------------------


def matmul(x1: Any, x2: Any) -> Any:
    if type(x2) is not Tensor:  # the kernel of a layer
        x2 = convert_to_tensor(x2)
    if type(x1) is Tensor and x1.dtype is x2.dtype and x1.dtype.is_floating:
        return _matmul(x1, x2)
    if type(x1) is Tensor and x1.dtype is x2.dtype is tf.int8 and x1.ndim > 1 and x2.ndim > 1:
        return tf.matmul(x1, x2, output_type=tf.int32)  # quantized layers: no copies of the kernel
    return _product(_matmul, x1, x2)


def _matmul(x1: Any, x2: Any) -> Any:
    if x1.ndim > 1 and x2.ndim > 1:
        return tf.matmul(x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        raise ValueError(
            "matmul: operands must have axes; got shapes "
            f"{tuple(x1.shape)} and {tuple(x2.shape)}. Hint: multiply."
        )
    left = x1 if x1.ndim > 1 else tf.expand_dims(x1, 0)
    right = x2 if x2.ndim > 1 else tf.expand_dims(x2, 1)
    out = tf.matmul(left, right)
    gone = ([-2] if x1.ndim == 1 else []) + ([-1] if x2.ndim == 1 else [])
    return tf.squeeze(out, gone)


def _dot(x1: Any, x2: Any) -> Any:
    if not x1.ndim or not x2.ndim:
        return x1 * x2
    return tf.tensordot(x1, x2, [[-1], [-1 if x2.ndim == 1 else -2]])


def _inner(x1: Any, x2: Any) -> Any:
    if not x1.ndim or not x2.ndim:
        return x1 * x2
    return tf.tensordot(x1, x2, [[-1], [-1]])


def _outer(x1: Any, x2: Any) -> Any:
    return tf.reshape(x1, [-1, 1]) * tf.reshape(x2, [1, -1])


def _vdot(x1: Any, x2: Any) -> Any:
    return tf.reduce_sum(tf.math.conj(tf.reshape(x1, [-1])) * tf.reshape(x2, [-1]))


def dot(x1: Any, x2: Any) -> Any:
    return _in_own_type(_dot, x1, x2)


def inner(x1: Any, x2: Any) -> Any:
    return _in_own_type(_inner, x1, x2)


def outer(x1: Any, x2: Any) -> Any:
    return _in_own_type(_outer, x1, x2)


def vdot(x1: Any, x2: Any) -> Any:
    return _in_own_type(_vdot, x1, x2)


def tensordot(x1: Any, x2: Any, axes: Any = 2) -> Any:
    return _in_own_type(lambda a, b: tf.tensordot(a, b, axes), x1, x2)


def kron(x1: Any, x2: Any) -> Any:
    return _in_own_type(_kron, x1, x2)


def _kron(x1: Any, x2: Any) -> Any:
    rank = max(x1.ndim, x2.ndim)
    a = [1] * (rank - x1.ndim) + list(x1.shape)
    b = [1] * (rank - x2.ndim) + list(x2.shape)
    pairs = [d for n in a for d in (n, 1)], [d for n in b for d in (1, n)]
    blocks = tf.reshape(x1, pairs[0]) * tf.reshape(x2, pairs[1])
    return tf.reshape(blocks, [m * n for m, n in zip(a, b, strict=True)])


def einsum(subscripts: str, *operands: Any, **kwargs: Any) -> Any:
    factors = [operand(x) for x in operands]
    if all(type(x) is Tensor and x.dtype is tf.int8 for x in factors):
        return einsum_of_bytes(subscripts, *factors)  # quantized layers: no copies of the kernel
    return _product(lambda *xs: tf.einsum(subscripts, *xs), *factors)


# ---- vectors in space -----------------------------------------------------------------------------


def cross(
    x1: Any, x2: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    x1, x2 = together(x1, x2)
    a, b = moveaxis(x1, axisa, -1), moveaxis(x2, axisb, -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError(
            "`x1`'s dim on `axis=axisa` and `x2`'s dim on `axis=axisb` must be either 2 or 3. "
            f"Received: x1.shape={tuple(x1.shape)}, x2.shape={tuple(x2.shape)}"
        )
    flat = a.shape[-1] == 2 and b.shape[-1] == 2
    (ax, ay, az), (bx, by, bz) = _in_space(a), _in_space(b)
    last = ax * by - ay * bx
    if flat:
        return last
    return moveaxis(tf.stack([ay * bz - az * by, az * bx - ax * bz, last], -1), -1, axisc)


def _in_space(x: Any) -> list:
    parts = tf.unstack(x, axis=-1)
    return [*parts, tf.zeros_like(parts[0])] if len(parts) == 2 else parts


# ---- others ---------------------------------------------------------------------------------------


def correlate(x1: Any, x2: Any, mode: str = "valid") -> Any:
    """The sums of products of `x2` with the windows of `x1` of its length."""
    x1, x2 = together(x1, x2)
    if x1.dtype.name in INTEGERS:
        x1, x2 = floating(x1), floating(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(
            "`x1` and `x2` must have one axis each. "
            f"Received: x1.shape={tuple(x1.shape)}, x2.shape={tuple(x2.shape)}"
        )
    if mode not in ("valid", "same", "full"):
        raise ValueError(f"`mode` must be one of 'valid', 'same' and 'full'. Received: mode={mode}")
    n, m = x1.shape[0], x2.shape[0]
    if n < m:  # the shorter one slides along the longer one, which reverses the result
        return tf.reverse(tf.math.conj(correlate(x2, x1, mode)), [0])
    before = {"valid": 0, "same": m // 2, "full": m - 1}[mode]
    length = {"valid": n - m + 1, "same": n, "full": n + m - 1}[mode]
    padded = tf.pad(x1, [[before, length + m - 1 - n - before]])
    windows = tf.gather(padded, np.arange(length)[:, None] + np.arange(m)[None, :])
    return tf.linalg.matvec(windows, tf.math.conj(x2))


def slogdet(x: Any) -> tuple:
    return tuple(tf.linalg.slogdet(floating(convert_to_tensor(x))))


def vectorize(pyfunc: Callable, *, excluded: Any = None, signature: str | None = None) -> Callable:
    return vectorize_impl(pyfunc, _over_axis, excluded=excluded, signature=signature)


def _over_axis(function: Callable, in_axes: Any = 0, out_axes: int = 0) -> Callable:
    """A function over one more axis of those operands whose place in `in_axes` is not None."""

    def mapped(*args: Any) -> Any:
        axes = in_axes if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
        moved = {i: moveaxis(args[i], a, 0) for i, a in enumerate(axes) if a is not None}

        def one(rows: tuple) -> Any:
            new = dict(zip(moved, rows, strict=True))
            return function(*[new.get(i, a) for i, a in enumerate(args)])

        return tf.vectorized_map(one, tuple(moved.values()))

    return mapped
