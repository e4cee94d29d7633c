"""Creating arrays, and the promotion of their types."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

import gradtape as tf
from gradtape import _core
from gradtape._src.base import dtypes

ndarray = _core.Tensor
newaxis, pi, e, inf = None, np.pi, np.e, np.inf
bool_, int8, int16, int32, int64 = np.bool_, np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float16, float32, float64, complex64, complex128 = (
    np.float16, np.float32, np.float64, np.complex64, np.complex128,
)  # fmt: skip
int_, float_, complex_, inexact = np.int64, np.float64, np.complex128, np.inexact
finfo, iinfo, issubdtype, promote_types = np.finfo, np.iinfo, np.issubdtype, np.promote_types
object_, string_, unicode_ = np.object_, np.bytes_, np.str_


class settings:
    """Settings of `experimental_enable_numpy_behavior`."""

    prefer_float32 = False  # Python's floats become float32


# ---- arrays and types -----------------------------------------------------------------------------


def _dtype(x: Any) -> np.dtype:
    return np.dtype(dtypes.as_dtype(x.dtype).as_numpy_dtype)


def _is_tensor(x: Any) -> bool:
    """Whether a value is a tensor, or has `__tf_tensor__`."""
    return isinstance(x, (_core.Tensor, _core.Variable)) or hasattr(type(x), "__tf_tensor__")


def result_type(*arrays_and_dtypes: Any) -> dtypes.DType:
    """The type to which values are promoted."""
    types = (_dtype(array(a)) if _is_tensor(a) else a for a in arrays_and_dtypes)
    types = (a.as_numpy_dtype if isinstance(a, dtypes.DType) else a for a in types)
    return dtypes.from_numpy(np.result_type(*types))


def array(val: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Any:
    """A tensor; Python floats become float64, integers int64."""
    if _is_tensor(val):
        out = tf.convert_to_tensor(val)
    elif isinstance(val, (list, tuple)) and builtins.any(map(_is_tensor, tf.nest.flatten(val))):
        out = tf.stack(meet(*map(array, val)))
    else:
        plain = np.asarray(val)
        narrow = settings.prefer_float32 and plain.dtype == np.float64 and not hasattr(val, "dtype")
        out = tf.constant(plain.astype(np.float32) if narrow else plain)
    if dtype is not None:
        out = tf.cast(out, dtype)
    return tf.reshape(out, [1] * builtins.max(0, ndmin - len(out.shape)) + list(out.shape)) if ndmin else out


def asarray(a: Any, dtype: Any = None) -> Any:
    """A tensor; `a` itself if it is one."""
    return array(a, dtype)


asanyarray = ascontiguousarray = asarray


def copy(a: Any) -> Any:
    """A tensor with the same values."""
    return tf.identity(array(a))


def meet(*values: Any) -> list[Any]:
    """Values as tensors, promoted to one type; Python numbers take the type of the others."""
    parts = [v if isinstance(v, (builtins.bool, int, float, complex)) else array(v) for v in values]
    types = [_dtype(p) for p in parts if isinstance(p, _core.Tensor)]
    kind = np.result_type(*(types or ()), *(p for p in parts if not isinstance(p, _core.Tensor)))
    return [
        tf.cast(p, kind) if isinstance(p, _core.Tensor) else tf.constant(np.asarray(p, kind)) for p in parts
    ]


def as_inexact(*values: Any) -> list[Any]:
    """Like `meet`, but integers become float64."""
    parts = meet(*values)
    return [tf.cast(p, tf.float64) if not (p.dtype.is_floating or p.dtype.is_complex) else p for p in parts]


def axes_of(a: Any, axis: Any) -> Any:
    return list(range(a.shape.rank)) if axis is None and a.shape.rank is not None else axis


# ---- making arrays ----------------------------------------------------------------------------------


def zeros(shape: Any, dtype: Any = float) -> Any:
    """Zeros, float64 by default."""
    return tf.zeros(shape, np.dtype(dtype))


def ones(shape: Any, dtype: Any = float) -> Any:
    """Ones, float64 by default."""
    return tf.ones(shape, np.dtype(dtype))


empty = zeros


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """An array filled with one value."""
    return tf.broadcast_to(array(fill_value, dtype), [shape] if isinstance(shape, int) else shape)


def zeros_like(a: Any, dtype: Any = None) -> Any:
    """Zeros with the shape and type of `a`."""
    return tf.zeros_like(array(a), dtype)


empty_like = zeros_like


def ones_like(a: Any, dtype: Any = None) -> Any:
    """Ones with the shape and type of `a`."""
    return tf.ones_like(array(a), dtype)


def full_like(a: Any, fill_value: Any, dtype: Any = None) -> Any:
    """An array with the shape and type of `a`, filled with one value."""
    a = array(a)
    return tf.broadcast_to(tf.cast(array(fill_value), dtype or a.dtype), a.shape)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    """Evenly spaced numbers, without the end."""
    return tf.constant(np.arange(*((start,) if stop is None else (start, stop, step)), dtype=dtype))


def linspace(start: Any, stop: Any, num: int = 50, endpoint: builtins.bool = True, dtype: Any = None) -> Any:
    """`num` evenly spaced numbers, with the end unless `endpoint` is False."""
    start, stop = as_inexact(start, stop)
    out = tf.linspace(start, stop, num) if endpoint else tf.linspace(start, stop, num + 1)[:-1]
    return out if dtype is None else tf.cast(out, dtype)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Any:  # noqa: N803
    """A matrix with ones on the `k`-th diagonal."""
    return tf.eye(N, M, dtype=np.dtype(dtype)) if k == 0 else tf.constant(np.eye(N, M, k, dtype))


def identity(n: int, dtype: Any = float) -> Any:
    """The identity matrix."""
    return eye(n, dtype=dtype)


def meshgrid(*xi: Any, indexing: str = "xy") -> list[Any]:
    """The coordinates of a grid, one array per axis."""
    return tf.meshgrid(*map(array, xi), indexing=indexing)


def diag(v: Any, k: int = 0) -> Any:
    """A matrix with the diagonal `v`, or the diagonal of the matrix `v`."""
    v = array(v)
    return tf.linalg.diag(v, k=k) if len(v.shape) == 1 else tf.linalg.diag_part(v, k=k)
