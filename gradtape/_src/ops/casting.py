"""Element types and shapes: cast, bitcast, real and imaginary parts, shape, size, rank."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.shape import TensorShape
from gradtape._src.ops import arithmetic, exponential, movement, rewriting
from gradtape._src.ops.comparison import less, select
from gradtape._src.ops.samples import bools, call, ints
from gradtape._src.ops.static import array_of
from gradtape._src.ops.table import ALL, ANY, composite, opaque
from gradtape._src.ops.table import movement as movement_row
from gradtape._src.tensors.conversion import as_tensor
from gradtape._src.tensors.indexed_slices import IndexedSlices

__all__ = [
    "bitcast",
    "broadcast_dynamic_shape",
    "cast",
    "ensure_shape",
    "rank",
    "saturate_cast",
    "shape",
    "shape_n",
    "size",
]

# ---- element types ----


def _numpy_cast(x, dtype):
    to = np.dtype(dtype)
    return (x.real if x.dtype.kind == "c" and to.kind != "c" else x).astype(to)


converted = movement_row(
    "cast", ALL, "x dtype:Dtype", pattern="aligned", fuses=True, simplify=rewriting.cast, xla="casting.cast",
    transpose=lambda g, x, out, dtype: converted(g, x.dtype),
    numpy=_numpy_cast,
    samples=[
        call((), dtype="float64"), call((2, 3), dtype="float32"), call((0, 3), dtype="float64"),
        call((3,), dtype="complex128"),
    ],
    bad=[(call((2,), dtype="string"), "UnimplementedError", "to string is not supported")],
    doc="`x` in another element type: floats are truncated towards zero, of complex numbers the real part is "
        "taken.",
)  # fmt: skip


def _numpy_bitcast(x, type):
    to = np.dtype(type)
    flat = np.ascontiguousarray(x).view(np.uint8).reshape(-1).view(to)
    if to.itemsize < x.itemsize:
        return flat.reshape(*x.shape, x.itemsize // to.itemsize)
    return flat.reshape(x.shape if to.itemsize == x.itemsize else x.shape[:-1])


bitcast = opaque(
    "bitcast", ANY, "input:Free type:Dtype", rule=None, xla="casting.bitcast",
    numpy=_numpy_bitcast,
    samples=[
        call(ints([1, 513]), type="uint8"), call(ints([[1, 2], [3, -4]], "int32"), type="int64"),
        call(ints([1, -2], "int16"), type="uint16"),
        call(ints(7, "int64"), type="int32"), call(ints(np.zeros([0, 2], int), "int32"), type="int64"),
    ],
    bad=[
        (
            call(ints([1, 2, 3]), type="float64"), "InvalidArgumentError",
            "Cannot bitcast from int32 to float64",
        ),
        (call(bools([True]), type="uint8"), "InvalidArgumentError", "bitcast is not defined for bool"),
    ],
    names="bitcast",
    doc="The bytes of `input` as another type. A smaller type adds a last axis, a larger one removes it. "
        "No gradient.",
)  # fmt: skip


@composite("cast dtypes.cast")
def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """`x` converted to the element type `dtype`; a tensor that already has it is returned as it is.

    The gradient passes between float and complex types; integers and bool have none.

    Args:
      x: a tensor, variable, IndexedSlices, number or list.
      dtype: the type, or its name.
    """
    if isinstance(x, _core.Tensor):
        if x.dtype is dtype:
            return x
    elif isinstance(x, IndexedSlices):
        return IndexedSlices(cast(x.values, dtype), x.indices, x._dense_shape)
    else:
        x = as_tensor(x)
    dtype = dtypes.as_dtype(dtype)
    return x if x.dtype is dtype else converted(x, dtype)


@composite("saturate_cast dtypes.saturate_cast")
def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Any:
    """`value` converted to `dtype`; numbers outside the range of that type become its nearest limit.

    Real and imaginary parts are clipped separately. Infinities of real numbers are clipped too, as in TensorFlow.
    """
    x, dtype = as_tensor(value), dtypes.as_dtype(dtype)
    if x.dtype.is_complex:
        real, limit = arithmetic.real(x), dtype.real_dtype
        if not dtype.is_complex:
            return saturate_cast(real, dtype)
        if limit.max < real.dtype.max:
            x = arithmetic.complex_(saturate_cast(real, limit), saturate_cast(arithmetic.imag(x), limit))
        return cast(x, dtype)
    if dtype.is_bool or x.dtype.is_bool:
        return cast(x, dtype)
    lo, hi, limit = x.dtype.min, x.dtype.max, dtype.real_dtype
    if x.dtype.is_floating or float(lo) < float(limit.min) or float(hi) > float(limit.max):
        lo, hi = max(lo, limit.min, key=float), min(hi, limit.max, key=float)
        x = arithmetic.clip(x, _within(lo, x.dtype), _within(hi, x.dtype))
    return cast(x, dtype)


def _within(limit: Any, dtype: dtypes.DType) -> Any:
    """The limit of a type as a number of `dtype` that does not exceed it."""
    if not dtype.is_floating:
        return int(limit)
    if dtype is dtypes.bfloat16:
        return float(limit)
    near = np.asarray(limit).astype(dtype.as_numpy_dtype)
    beyond = abs(int(near)) > abs(int(limit)) if np.isfinite(near) else True
    return float(np.nextafter(near, near.dtype.type(0)) if beyond else near)


# ---- real and imaginary parts, also of real tensors ----


def _number(name: str, value: Any) -> Any:
    x = as_tensor(value)
    if not x.dtype.is_numeric:
        raise TypeError(
            f"{name}: input must be a numeric tensor; got {x.dtype.name}. Hint: tf.cast(x, tf.float32)."
        )
    return x


@composite("math.real")
def _real(input: Any, name: str | None = None) -> Any:
    """The real part of each element; a real tensor is returned as it is."""
    x = _number("real", input)
    return arithmetic.real(x) if x.dtype.is_complex else x


def _constant_zero(x: Any) -> Any:
    """Zeros that no gradient goes through, as in TensorFlow."""
    return arithmetic.zero(movement.stop_gradient(x))


@composite("math.imag")
def _imag(input: Any, name: str | None = None) -> Any:
    """The imaginary part of each element; zeros for a real tensor."""
    x = as_tensor(input)
    return arithmetic.imag(x) if x.dtype.is_complex else _constant_zero(x)


@composite("math.conj")
def _conj(x: Any, name: str | None = None) -> Any:
    """The complex conjugate of each element; a real tensor is returned as it is."""
    x = _number("conj", x)
    return arithmetic.conj(x) if x.dtype.is_complex else x


@composite("math.angle")
def _angle(input: Any, name: str | None = None) -> Any:
    """The angle of each element in the complex plane: 0 or pi for real numbers."""
    x = as_tensor(input)
    if x.dtype.is_complex:
        return exponential.atan2(arithmetic.imag(x), arithmetic.real(x))
    zeros = _constant_zero(x)
    return select(less(x, 0), zeros + pi if x.dtype.is_floating else zeros, zeros)


# ---- shapes as tensors ----

_ANYWHERE = [call(()), call((2, 3)), call((0, 3))]

shape_as = opaque(
    "shape_as", ALL, "input out_type:Dtype", rule=None, native="shape", xla="casting.shape",
    numpy=lambda x, out_type: np.array(x.shape, int),
    samples=[call((2, 3), out_type="int64"), call((), out_type="int32")],
    bad=[(call((2,), out_type="float32"), "InvalidArgumentError", "out_type must be int32 or int64")],
    doc="The shape of `input` as a tensor of the given type.",
)  # fmt: skip

shape = opaque(
    "shape", ALL, "input out_type:Extra=None", rule=None, fallback=shape_as, xla="casting.shape",
    numpy=lambda x: np.array(x.shape, int), samples=_ANYWHERE, names="shape",
    doc="The shape of `input` as a tensor, int32 by default.",
)  # fmt: skip

size_as = opaque(
    "size_as", ALL, "input out_type:Dtype", rule=None, native="size", xla="casting.size",
    numpy=lambda x, out_type: x.size, samples=[call((2, 3), out_type="int64"), call((), out_type="int32")],
    doc="The number of elements of `input` as a tensor of the given type.",
)  # fmt: skip

size = opaque(
    "size", ALL, "input out_type:Extra=None", rule=None, fallback=size_as, xla="casting.size",
    numpy=lambda x: x.size, samples=_ANYWHERE, names="size",
    doc="The number of elements of `input` as a tensor, int32 by default.",
)  # fmt: skip

rank = opaque(
    "rank", ALL, "input", rule=None, numpy=lambda x: x.ndim, samples=_ANYWHERE, names="rank", xla="jnp.ndim",
    doc="The number of dimensions of `input` as an int32 tensor.",
)  # fmt: skip


@composite("shape_n")
def shape_n(input: Any, out_type: Any = dtypes.int32, name: str | None = None) -> list:
    """The shape of each tensor of a list."""
    return [shape_as(x, out_type) for x in input]


@composite("ensure_shape")
def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Any:
    """`x`, which must have the given shape; None in it stands for any size.

    Raises:
      InvalidArgumentError: if it has another shape.
    """
    x = as_tensor(x)
    if not TensorShape(shape).is_compatible_with(x.shape):
        raise InvalidArgumentError(
            f"ensure_shape: Shape of tensor x {list(x.shape)} is not compatible with expected shape "
            f"{shape}; got x: "
            f"{x.dtype.name}{list(x.shape)}."
        )
    return movement.identity(x)


@composite("broadcast_dynamic_shape")
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Any:
    """The shape that tensors of two shapes broadcast to, as a tensor."""
    x = as_tensor(shape_x)
    try:
        both = np.broadcast_shapes(*(tuple(array_of(s).tolist()) for s in (x, shape_y)))
    except ValueError:
        raise InvalidArgumentError(
            f"broadcast_dynamic_shape: Incompatible shapes: {array_of(shape_x).tolist()} vs. "
            f"{array_of(shape_y).tolist()}"
        ) from None
    return cast(as_tensor(np.array(both, np.int64)), x.dtype if x.dtype.is_integer else dtypes.int32)
