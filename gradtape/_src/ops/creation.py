"""Creating tensors: constant, convert_to_tensor, zeros, ones, fill, eye, range, linspace."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes, errors
from gradtape._src.base.room import want_room
from gradtape._src.base.shape import TensorShape
from gradtape._src.ops import batching
from gradtape._src.ops.casting import cast
from gradtape._src.ops.join import concat
from gradtape._src.ops.movement import broadcast_to, expand_dims, identity, reshape
from gradtape._src.ops.reduction import reduce_sum
from gradtape._src.ops.samples import call, floats
from gradtape._src.ops.static import array_of, ints_of
from gradtape._src.ops.table import ALL, ANY, composite, elementwise, opaque
from gradtape._src.tensors import conversion
from gradtape._src.tensors.composite import CompositeTensor
from gradtape._src.tensors.indexed_slices import IndexedSlices

__all__ = [
    "constant", "convert_to_tensor", "eye", "eye_op", "fill", "is_symbolic_tensor", "is_tensor", "linspace", "ones",
    "ones_like", "range_", "zeros", "zeros_like",
]  # fmt: skip


# ---- from values --------------------------------------------------------------------------------


def _shown(value):
    return value.numpy() if isinstance(value, _core.Tensor) and value._symbol is None else value


def _from_value(value, dtype):
    """A tensor of `dtype` (None: whatever fits) from what is neither Tensor nor Variable."""
    if type(value) in _NUMBERS:
        if dtype is None:
            return identity(value)
        # During a trace, `ones` of the core would be a captured tensor, not a constant.
        if dtype in _ONES and _core.current_trace() is None:
            return _ONES[dtype] * value
    if dtype is None:
        return _core.to_tensor(value)
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
        # Arrays are cast, as in TensorFlow; only Python numbers must fit.
        if dtype is dtypes.bfloat16:
            value = value.astype(np.float32)
        elif not (value.dtype.kind == "c" and not dtype.is_complex):
            value = value.astype(dtype.as_numpy_dtype)
    return _core.to_tensor(value, dtype._code)


def _wanted(dtype):
    if dtype is None or type(dtype) is dtypes.DType and dtype._code >= 0:
        return dtype
    return dtypes.BY_CODE[conversion.dtype_code(dtype)]


@composite("constant")
def constant(value, dtype=None, shape=None, name="Const"):
    """Creates a tensor from values.

    Args:
      value: a number, a nest of lists of numbers, an array, or a tensor.
      dtype: the element type; by default int32, float32 or bool for Python values, and that of an array.
      shape: the shape of the result; a single value fills it.

    Raises:
      TypeError: if `value` does not fit `dtype` or `shape`.

    >>> import gradtape as tf
    >>> tf.constant([1, 2], tf.float32).numpy()
    array([1., 2.], dtype=float32)
    """
    dtype = _wanted(dtype)
    if isinstance(value, _core.Tensor):
        if dtype is not None and value.dtype is not dtype:
            raise TypeError(
                f"constant: Expected tensor {_shown(value)} with dtype {dtype!r}, but got dtype {value.dtype!r}."
            )
        x = value
    elif isinstance(value, _core.Variable):
        value._touch()
        x = value._peek()
        if dtype is not None and x.dtype is not dtype:
            x = cast(x, dtype)
    else:
        x = _from_value(value, dtype)
    if shape is None:
        return x
    shape_ = TensorShape(shape)
    if shape_.as_list() == list(x.shape):
        return x
    if shape_.num_elements() == x._numel:
        return reshape(x, shape_)
    if x._numel == 1 and x.ndim <= 1:
        return fill(shape_, reshape(x, []))
    raise TypeError(
        f"Eager execution of tf.constant with unsupported shape. Tensor {_shown(x)} (converted from "
        f"{value!r}) has {x._numel} elements, but got `shape` {shape_} with {shape_.num_elements()} "
        "elements)."
    )


@composite("convert_to_tensor")
def convert_to_tensor(value, dtype=None, dtype_hint=None, name=None):
    """Converts `value` to a tensor. A tensor is returned as it is, a variable is read, IndexedSlices become dense.

    Args:
      value: a number, list, array, tensor, variable or IndexedSlices.
      dtype: the element type of the result.
      dtype_hint: the element type of a Python value, if it fits.

    Raises:
      ValueError: if a tensor or variable has another type than `dtype`.
      TypeError: if another value does not fit `dtype`.
    """
    if isinstance(value, _core.Tensor):
        if dtype is None or value.dtype is dtype or value.dtype is _wanted(dtype):
            return value
        return conversion.convert(value, _wanted(dtype)._code)
    dtype = _wanted(dtype)
    if isinstance(value, _core.Variable):
        if dtype is not None and value.dtype is not dtype:
            raise ValueError(
                f"convert_to_tensor: Incompatible type conversion requested to type {dtype.name} for `tf.Variable of type "
                f"{value.dtype.name}. (Variable: {value!r})"
            )
        # Recorded as an op: the gradient with respect to this tensor is separate from that of other reads of the variable.
        return identity(value)
    if dtype is None and dtype_hint is not None and not isinstance(value, IndexedSlices):
        try:
            return _from_value(value, _wanted(dtype_hint))
        except (TypeError, ValueError):
            pass
    return _from_value(value, dtype)


@composite("is_tensor", noted=False)
def is_tensor(x):
    """Whether `x` is a tensor, a variable, a sparse or ragged tensor, or an object with `is_tensor_like`."""
    if isinstance(x, (_core.Tensor, _core.Variable)):
        return True
    is_one = x._is_tensor if isinstance(x, CompositeTensor) else hasattr(type(x), "__tf_tensor__")
    return is_one or hasattr(x, "is_tensor_like")


@composite("is_symbolic_tensor", noted=False)
def is_symbolic_tensor(tensor):
    """Whether `tensor` is symbolic: it has no value, as while a function is traced."""
    return isinstance(tensor, _core.Tensor) and tensor._symbol is not None


# The core converts Python numbers faster than NumPy does, as operands of ops that do not change them.
_NUMBERS = frozenset((float, int))
_ONES = {
    dtype: _core.from_buffer(np.ones((), dtype.as_numpy_dtype), dtype._code)
    for dtype in (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64)
}


# ---- from a shape -------------------------------------------------------------------------------

_SHAPES = [call(shape=[2, 3]), call(shape=[]), call(shape=[0, 3], dtype="int64"), call(shape=4, dtype="bool")]

zeros = opaque(
    "zeros", ANY, "shape:Shape dtype:Dtype=float32 layout:Ignored=None", xla="creation.zeros",
    numpy=lambda shape, dtype="float32": np.zeros(shape, dtype), samples=_SHAPES, names="zeros",
    bad=[(call(shape=[-1]), "InvalidArgumentError", "must be >= 0")],
    doc="A tensor of `shape` filled with zeros.",
)  # fmt: skip

ones = opaque(
    "ones", ANY, "shape:Shape dtype:Dtype=float32 layout:Ignored=None", xla="creation.ones",
    numpy=lambda shape, dtype="float32": np.ones(shape, dtype), samples=_SHAPES, names="ones",
    bad=[(call(shape=[-1]), "InvalidArgumentError", "must be >= 0")],
    doc="A tensor of `shape` filled with ones.",
)  # fmt: skip


def _sum_all(g, value, out, dims):
    return reduce_sum(g)


fill = opaque(
    "fill", ALL, "dims:Shape value layout:Ignored=None", xla="creation.fill",
    rule=_sum_all, linear="value", pattern="moves",
    batch=batching.fill,
    numpy=lambda value, dims: np.full(dims, value),
    samples=[call((), dims=[2, 3]), call((), dims=[]), call((), dims=[0]), call((), dims=[2, 1, 2])],
    bad=[
        (call((2,), dims=[2]), "InvalidArgumentError", "must be a scalar"),
        (call((), dims=[-1]), "InvalidArgumentError", ">= 0"),
    ],
    names="fill",
    doc="A tensor of shape `dims` filled with the scalar `value`.",
)  # fmt: skip


def _zeros_like(input, dtype=None, layout=None, name=None):  # noqa: A002
    x = convert_to_tensor(input)
    return zeros(x.shape, dtype)


zeros_like = elementwise(
    "zeros_like", ALL, "input dtype:Extra=None layout:Ignored=None", xla="jnp.zeros_like",
    deriv=None, native="zero", fallback=_zeros_like,
    linear="input", pattern="nothing",
    numpy=np.zeros_like, samples=floats(), names="zeros_like",
    doc="Zeros of the shape of `input`, and of its type unless `dtype` is given. It has no gradient.",
)  # fmt: skip


@composite("ones_like")
def ones_like(input, dtype=None, name=None, layout=None):  # noqa: A002
    """Ones of the shape of `input`, and of its type unless `dtype` is given. It has no gradient."""
    x = input if isinstance(input, _core.Tensor) else convert_to_tensor(input)
    if dtype is None and x._numel <= _SMALL and x.dtype is not dtypes.bool:
        return zeros_like(x) + 1  # two small passes are faster than reading the shape
    return ones(x.shape, x.dtype if dtype is None else dtype)


_SMALL = 4096


eye_op = opaque(
    "eye", ANY, "num_rows:Int num_columns:Int dtype:Dtype=float32", xla="creation.eye",
    numpy=lambda num_rows, num_columns, dtype="float32": np.eye(num_rows, num_columns, dtype=dtype),
    samples=[
        call(num_rows=3, num_columns=3), call(num_rows=2, num_columns=3, dtype="int32"),
        call(num_rows=0, num_columns=2),
    ],
    bad=[(call(num_rows=-1, num_columns=1), "InvalidArgumentError", "non-negative")],
    doc="A matrix with ones on its diagonal.",
)  # fmt: skip


@composite("eye linalg.eye")
def eye(num_rows, num_columns=None, batch_shape=None, dtype=dtypes.float32, name=None):
    """An identity matrix, square or `[num_rows, num_columns]`, or a batch of them."""
    one = eye_op(num_rows, num_rows if num_columns is None else num_columns, dtype)
    if batch_shape is None:
        return one
    return broadcast_to(one, [*ints_of(batch_shape), *one.shape])


# ---- sequences ----------------------------------------------------------------------------------

_RANGE_TYPES = (dtypes.int32, dtypes.int64, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
_RANGE_ALLOWED = (*_RANGE_TYPES, dtypes.int8, dtypes.int16, dtypes.uint16, dtypes.uint32, dtypes.uint64)


@composite("range")
def range_(start, limit=None, delta=1, dtype=None, name="range"):
    """The numbers `start, start + delta, ...` below `limit`; `range(n)` is 0 to n - 1.

    Args:
      dtype: the type of the result; by default the widest type of the arguments.

    Raises:
      InvalidArgumentError: if `delta` is 0 or leads away from `limit`.

    >>> import gradtape as tf
    >>> tf.range(3, 18, 3).numpy()
    array([ 3,  6,  9, 12, 15], dtype=int32)
    """
    if limit is None:
        start, limit = 0, start
    dtype = _wanted(dtype)
    if type(start) is type(limit) is type(delta) is int and delta and (limit - start) * delta >= 0:
        fits = min(start, limit) >= -(2**31) and max(start, limit) < 2**31 and abs(delta) < 2**31
        if (dtype is None or dtype is dtypes.int32) and fits:
            return _core.from_buffer(np.arange(start, limit, delta, np.int32), dtypes.int32._code)
    arguments = []
    for argument, value in (("start", start), ("limit", limit), ("delta", delta)):
        if dtype is not None and not isinstance(value, (_core.Tensor, _core.Variable)):
            x = _from_value(value, dtype)
        else:
            x = convert_to_tensor(value)
        if x.ndim:
            raise errors.InvalidArgumentError(
                f"range: {argument} must be a scalar, not shape {x.shape.as_list()}"
            )
        arguments.append(x)
    if dtype is None:
        kinds = [x.dtype for x in arguments]
        for kind in kinds:
            if kind not in _RANGE_TYPES:
                raise errors.InvalidArgumentError(
                    f"range: not defined for {kind.name}; expected an int or float type"
                )
        dtype = max(kinds, key=_RANGE_TYPES.index)
    elif dtype not in _RANGE_ALLOWED:
        raise errors.InvalidArgumentError(
            f"range: not defined for {dtype.name}; expected an int or float type"
        )
    # Rounded to the type of the result first: 0.1 is another number in float32.
    kind = np.float32 if dtype is dtypes.bfloat16 else dtype.as_numpy_dtype
    first, last, step = (np.asarray(array_of(x)).astype(kind) for x in arguments)
    if step == 0:
        raise errors.InvalidArgumentError(f"range: Requires delta != 0: {step}")
    if step > 0 and first > last:
        raise errors.InvalidArgumentError(f"range: Requires start <= limit when delta > 0: {first}/{last}")
    if step < 0 and first < last:
        raise errors.InvalidArgumentError(f"range: Requires start >= limit when delta < 0: {first}/{last}")
    if dtype.is_floating:
        size = max(0, math.ceil(abs((float(last) - float(first)) / float(step))))
    else:
        size = -((int(first) - int(last)) // int(step))
    if size > 1 << 20:
        want_room(size, item=dtype.size)
    numbers = first + np.arange(size, dtype=kind) * step
    return _from_value(numbers.astype(kind, copy=False), dtype)


@composite("linspace")
def linspace(start, stop, num, name=None, axis=0):
    """`num` numbers from `start` to `stop`, both included, along a new axis.

    Differentiable with respect to `start` and `stop`. Integers give float64, those of 8 and 16 bits float32.

    >>> import gradtape as tf
    >>> tf.linspace(0.0, 1.0, 5).numpy()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    start = convert_to_tensor(start)
    stop = convert_to_tensor(stop, start.dtype)
    if not (start.dtype.is_floating or start.dtype.is_complex):
        small = start.dtype.size <= 2
        start, stop = (cast(x, dtypes.float32 if small else dtypes.float64) for x in (start, stop))
    if isinstance(num, float):
        raise TypeError(
            f"linspace: Argument `tensor` (name: num) must be of type integer. Received `tensor` = {num}"
        )
    num = int(num)
    if start.shape != stop.shape:
        try:
            shape = np.broadcast_shapes(tuple(start.shape), tuple(stop.shape))
        except ValueError:
            raise errors.InvalidArgumentError(
                f"linspace: Incompatible shapes: {list(start.shape)} vs. {list(stop.shape)}"
            ) from None
        start, stop = broadcast_to(start, shape), broadcast_to(stop, shape)
    rank = start.ndim
    if not -rank - 1 <= axis <= rank:
        raise errors.InvalidArgumentError(
            f"linspace: Tried to expand dim index {axis} for tensor with {rank} dimensions."
        )
    axis = axis + rank + 1 if axis < 0 else axis
    first, last = expand_dims(start, axis), expand_dims(stop, axis)
    if num <= 0:
        return zeros([*start.shape[:axis], 0, *start.shape[axis:]], start.dtype)
    if num == 1:
        return first
    if num == 2:
        return concat([first, last], axis)
    steps = np.arange(1, num - 1).reshape([-1 if i == axis else 1 for i in range(rank + 1)])
    inner = first + (last - first) / (num - 1) * _from_value(steps, start.dtype)
    return concat([first, inner, last], axis)


@composite("timestamp")
def timestamp(name: str | None = None) -> Any:
    """The time in seconds since 1970, a float64 scalar."""
    return constant(time.time(), dtype=dtypes.float64)
