"""Methods of `RaggedTensor` defined in layers above the class: operators, slices, conversions, its spec."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradtape as tf
from gradtape._src.base.errors import InvalidArgumentError
from gradtape.ragged import conversion, moving, slicing
from gradtape.ragged.elementwise import binary, unary
from gradtape.ragged.spec import RaggedTensorSpec, spec_of
from gradtape.ragged.tensor import RaggedTensor


def _forward(function: Callable) -> Callable:
    def operator(self: Any, other: Any) -> Any:
        return binary(function, self, other)

    return operator


def _backward(function: Callable) -> Callable:
    def operator(self: Any, other: Any) -> Any:
        return binary(function, other, self)

    return operator


def _one(function: Callable) -> Callable:
    def operator(self: Any) -> Any:
        return unary(function, self)

    return operator


def _equals(self: Any, other: Any) -> Any:
    if other is None:
        return False
    try:
        return binary(tf.equal, self, other)
    except (InvalidArgumentError, ValueError):
        return False


def _differs(self: Any, other: Any) -> Any:
    if other is None:
        return True
    try:
        return binary(tf.not_equal, self, other)
    except (InvalidArgumentError, ValueError):
        return True


def _shape_invariant_to_type_spec(self: Any, shape: Any) -> RaggedTensorSpec:
    return RaggedTensorSpec(shape, self.dtype, self.ragged_rank, self.row_splits.dtype)


_TWO = {
    "add": tf.add,
    "sub": tf.subtract,
    "mul": tf.multiply,
    "truediv": tf.truediv,
    "floordiv": tf.math.floordiv,
    "mod": tf.math.floormod,
    "pow": tf.pow,
    "and": tf.logical_and,
    "or": tf.logical_or,
    "xor": tf.math.logical_xor,
}
_COMPARISONS = {"lt": tf.less, "le": tf.less_equal, "gt": tf.greater, "ge": tf.greater_equal}
_SINGLE = {"neg": tf.negative, "abs": tf.abs, "invert": tf.logical_not}

_METHODS: dict[str, Any] = {
    **{f"__{name}__": _forward(f) for name, f in (_TWO | _COMPARISONS).items()},
    **{f"__r{name}__": _backward(f) for name, f in _TWO.items()},
    **{f"__{name}__": _one(f) for name, f in _SINGLE.items()},
    "__eq__": _equals,
    "__ne__": _differs,
    "__getitem__": slicing.getitem,
    "to_tensor": conversion.to_tensor,
    "to_sparse": conversion.to_sparse,
    "from_tensor": staticmethod(conversion.from_tensor),
    "from_sparse": staticmethod(conversion.from_sparse),
    "merge_dims": moving.merge_dims,
    "_type_spec": property(spec_of),
    "_shape_invariant_to_type_spec": _shape_invariant_to_type_spec,
}


for _name, _method in _METHODS.items():
    setattr(RaggedTensor, _name, _method)
