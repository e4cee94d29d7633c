"""Functions of tf that support sparse tensors: exactly those that TensorFlow documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape._src.base import dtypes
from gradtape._src.ops import PUBLIC
from gradtape._src.ops.casting import cast
from gradtape._src.ops.creation import constant, zeros
from gradtape._src.ops.reduction import reduce_prod
from gradtape._src.tensors import dispatch
from gradtape.sparse.arithmetic import divided
from gradtape.sparse.reducing import dense_bincount
from gradtape.sparse.tensor import SparseTensor, SparseTensorValue, as_sparse, sizes_of

# Functions that map 0 to 0, so only the values change.
_OF_VALUES = (
    "abs negative asinh sin tan atan asin atanh sign square sqrt math.erf tanh math.bessel_i0e math.bessel_i1e"
).split()


def _on_values(function: Callable) -> Callable:
    def apply(*args: Any, **kwargs: Any) -> Any:
        x, *rest = args or (kwargs.pop(next(iter(kwargs))),)  # by any name
        if not isinstance(x, SparseTensor):
            return NotImplemented
        return x.with_values(function(x.values, *rest, **kwargs))

    return apply


def _cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    return x.with_values(cast(x.values, dtype))


def _shape(input: Any, out_type: Any = dtypes.int32, name: str | None = None) -> Any:
    return cast(as_sparse(input).dense_shape, out_type)


def _size(input: Any, out_type: Any = dtypes.int32, name: str | None = None) -> Any:
    return cast(reduce_prod(as_sparse(input).dense_shape), out_type)


def _rank(input: Any, name: str | None = None) -> Any:
    return constant(as_sparse(input).dense_shape.shape[0])


def _zeros_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Any:
    # TensorFlow returns a dense tensor if the type is given, and raises otherwise.
    return NotImplemented if dtype is None else zeros(sizes_of(input), dtype)


def _part_by_part(function: Callable) -> Callable:
    def apply(x: Any, name: str | None = None) -> Any:
        return SparseTensor(function(x.indices), function(x.values), function(x.dense_shape))

    return apply


# The implementation of each public function for sparse tensors. The Keras backend adds its own.
TABLE: dict[Any, Callable] = {
    **{PUBLIC[name]: _on_values(PUBLIC[name]) for name in _OF_VALUES},
    **{PUBLIC[name]: _part_by_part(PUBLIC[name]) for name in ("identity", "stop_gradient")},
    PUBLIC["cast"]: _cast,
    PUBLIC["divide"]: lambda x, y, name=None: (
        divided(x, y) if isinstance(x, SparseTensor) else NotImplemented
    ),
    PUBLIC["math.bincount"]: dense_bincount,
    PUBLIC["rank"]: _rank,
    PUBLIC["shape"]: _shape,
    PUBLIC["size"]: _size,
    PUBLIC["zeros_like"]: _zeros_like,
}


def _handle(function: Any, args: tuple, kwargs: dict) -> Any:
    implementation = TABLE.get(function)
    return NotImplemented if implementation is None else implementation(*args, **kwargs)


dispatch.register(SparseTensor, _handle)
dispatch.register(SparseTensorValue, _handle)
