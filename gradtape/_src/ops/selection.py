"""Choosing elements: where, masks, one_hot, unique."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops import batching, casting
from gradtape._src.ops.comparison import less, select
from gradtape._src.ops.movement import expand_dims
from gradtape._src.ops.samples import at, bools, call, ints
from gradtape._src.ops.static import array_of, axis_of
from gradtape._src.ops.table import ALL, ANY, composite, indexed, opaque
from gradtape._src.tensors import conversion
from gradtape._src.tensors.conversion import as_tensor

__all__ = [
    "boolean_mask", "boolean_unmask", "invert_permutation", "one_hot", "sequence_mask", "unique",
    "unique_with_counts",
    "where", "where_indices",
]  # fmt: skip

# ---- conditions ----

where_indices = opaque(
    "where_indices", ANY, "condition", rule=None, shape_from_values=True,
    numpy=lambda x: np.argwhere(x) if x.ndim else np.zeros((int(bool(x)), 0), np.int64),
    samples=[
        call(bools([True, False, True])), call(at([[0.0, 2.0], [3.0, 0.0]])), call((0, 2)), call((2, 2, 2)),
    ],
    doc="The coordinates of the nonzero elements, one per row, int64.",
)  # fmt: skip


@composite("where")
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """Elements of `x` where `condition` is true and of `y` elsewhere, with broadcasting.

    With `condition` alone: the coordinates of its true or nonzero elements, int64.

    The gradient of the branch that is not taken is zero times its derivative, which is NaN where the derivative
    is infinite. In that case, replace the operand of the branch as well: `where(x > 0, log(where(x > 0, x, 1)), 0)`.

    Raises:
      ValueError: if only one of `x` and `y` is given.
    """
    if x is None and y is None:
        return where_indices(condition)
    if x is None or y is None:
        raise ValueError("where: x and y must both be non-None or both be None.")
    return select(condition, x, y)


def _numpy_mask(x, mask, axis=0, count=-1):
    flat = np.reshape(x, (*x.shape[:axis], mask.size, *x.shape[axis + mask.ndim :]))
    return np.compress(mask.reshape(-1), flat, axis)


def _numpy_unmask(g, mask, axis, shape):
    flat = np.zeros((*shape[:axis], mask.size, *shape[axis + mask.ndim :]), g.dtype)
    flat[(slice(None),) * axis + (mask.reshape(-1),)] = g
    return flat.reshape(shape)


masked = indexed(
    "boolean_mask", ALL, "tensor mask:Condition axis:Axis=0 count:Int=-1", linear="tensor", pattern="moves",
    xla="selection.boolean_mask",
    shape_from_values=lambda axis, count: count < 0,
    rule=(lambda g, x, mask, out, axis, count: boolean_unmask(g, mask, axis, x.shape), None),
    numpy=_numpy_mask,
    samples=[
        call((3,), bools([True, False, True])), call((2, 3), bools([False, True])),
        call((2, 3), bools([[True, False, True]] * 2)),
        call((2, 3), bools([True, False, True]), axis=1), call((3,), bools([False] * 3)),
        call((3,), bools([True, False, True]), count=2),
    ],
    bad=[
        (call((2, 3), bools([True] * 3)), "ValueError", "incompatible"),
        (call((2, 3), bools(True)), "ValueError", "mask cannot be scalar."),
        (call((3,), bools([True, False, True]), count=1), "InvalidArgumentError", "selects 2 places, not 1"),
    ],
    doc="The elements or slices of `tensor` where `mask` is true: `count` of them, unless that is -1.",
)  # fmt: skip

boolean_unmask = indexed(
    "boolean_unmask", ANY, "g mask:Condition axis:Int shape:Shape", linear="g", pattern="moves",
    xla="selection.boolean_unmask",
    batch=batching.boolean_unmask,
    # `g` has the number of true elements, which makes the shape static in a graph.
    rule=(lambda g, x, mask, out, axis, shape: masked(g, mask, axis, x.shape[axis]), None),
    numpy=_numpy_unmask,
    samples=[
        call((2,), bools([True, False, True]), axis=0, shape=[3]),
        call((2, 2), bools([True, False, True]), axis=1, shape=[2, 3]),
        call((0,), bools([False] * 3), axis=0, shape=[3]),
    ],
    bad=[(call((2,), bools([True] * 3), axis=0, shape=[3]), "InvalidArgumentError", "selects 3 places")],
    doc="The transpose of boolean_mask: zeros of `shape` with `g` where `mask` is true.",
)  # fmt: skip


@composite("boolean_mask")
def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: str = "boolean_mask") -> Any:
    """The elements or slices of `tensor` where `mask` is true.

    Args:
      mask: booleans in the shape of the axes of `tensor` from `axis` on.
      axis: the first axis of `tensor` that the mask covers.
    """
    x, mask = as_tensor(tensor), as_tensor(mask)
    if mask.dtype is not dtypes.bool:
        mask = casting.cast(mask, dtypes.bool)
    return masked(x, mask, 0 if axis is None else axis_of("boolean_mask", axis, x.ndim))


@composite("sequence_mask")
def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool, name: str | None = None) -> Any:
    """A mask for each length: a row that is true in its first `length` places.

    Args:
      maxlen: the length of the rows; by default the largest of `lengths`.
    """
    lengths = as_tensor(lengths)
    if maxlen is not None and np.ndim(array_of(maxlen)):
        raise ValueError(
            f"sequence_mask: Argument `maxlen` must be scalar for sequence_mask, received `maxlen` = {maxlen}"
        )
    longest = max(int(array_of(lengths).max(initial=0)), 0) if maxlen is None else int(array_of(maxlen))
    places = conversion.convert(np.arange(longest), lengths.dtype._code)
    return casting.cast(less(places, expand_dims(lengths, -1)), dtype)


# ---- one_hot ----


def _numpy_one_hot(indices, on_value, off_value, depth, axis):
    hot = np.where(np.arange(depth) == indices[..., None], on_value, off_value)
    return np.moveaxis(hot, -1, axis)


hot = opaque(
    "one_hot", ALL, "indices:Index on_value off_value depth:Int axis:NewAxis", rule=None,
    xla="selection.one_hot",
    batch=batching.one_hot,
    numpy=_numpy_one_hot,
    samples=[
        call(ints([0, 2, -1, 5]), at(1), at(0), depth=3, axis=-1),
        call(ints([[0], [1]]), at(1), at(0), depth=2, axis=0),
        call(ints(1), at(1), at(0), depth=3, axis=0),
        call(ints(np.zeros([0], int)), at(1), at(0), depth=2, axis=1),
        call(ints([0, 1]), at(1), at(0), depth=0, axis=-1),
    ],
    bad=[
        (
            call(ints([0]), at(1), at(0), depth=-3, axis=-1), "InvalidArgumentError",
            "depth must be non-negative, got: -3",
        ),
        (call(ints([0]), at(1), at(0), depth=3, axis=4), "InvalidArgumentError", "out of range"),
    ],
    doc="`on_value` at each index along a new axis of size `depth`, `off_value` elsewhere.",
)  # fmt: skip

_VALUES: dict[Any, tuple[_core.Tensor, _core.Tensor]] = {}


def _on_and_off(dtype: dtypes.DType) -> tuple[_core.Tensor, _core.Tensor]:
    """One and zero of a type, cached."""
    pair = _VALUES.get(dtype)
    if pair is None:
        off, on = (conversion.convert(np.array(v, bool), dtypes.bool._code) for v in (0, 1))
        pair = _VALUES[dtype] = (casting.cast(on, dtype), casting.cast(off, dtype))
    return pair


def _value_of(v, dtype):
    """`on_value` or `off_value` as a tensor: a Python value gets the type `dtype` if it fits."""
    if v is not None and dtype is not None and not isinstance(v, (_core.Tensor, _core.Variable)):
        try:
            return conversion.convert(v, dtype._code)
        except TypeError:
            pass
    return None if v is None else as_tensor(v)


@composite("one_hot")
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Any:
    """Vectors of `depth` elements that are `on_value` at the index and `off_value` elsewhere.

    An index out of range gives a vector of `off_value` only.

    Args:
      on_value, off_value: 1 and 0 by default.
      axis: where the new axis goes; last by default.
      dtype: the element type, by default that of `on_value` and `off_value`, or else float32.
    """
    axis = -1 if axis is None else axis
    if on_value is None and off_value is None:
        return hot(
            indices, *_on_and_off(dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)), depth, axis
        )
    dtype = None if dtype is None else dtypes.as_dtype(dtype)
    values = [_value_of(v, dtype) for v in (on_value, off_value)]
    for v, role in zip(values, ("on_value", "off_value"), strict=True):
        if v is not None and dtype is not None and v.dtype is not dtype:
            raise TypeError(
                f"one_hot: dtype {v.dtype.name} of {role} does not match dtype parameter {dtype.name}"
            )
        if v is not None and values[0] is not None and v.dtype is not values[0].dtype:
            raise TypeError(
                f"one_hot: dtype {values[0].dtype.name} of on_value does not match dtype {v.dtype.name} of "
                f"off_value"
            )
    if any(v is None for v in values):
        default = _on_and_off(next(v for v in values if v is not None).dtype)
        values = [d if v is None else v for v, d in zip(values, default, strict=True)]
    return hot(indices, *values, depth, axis)


# ---- distinct elements, permutations ----


def _numpy_unique(x):
    _, first, inverse = np.unique(x, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return x[first[order]], np.argsort(order)[inverse.reshape(-1)]


distinct = opaque(
    "unique", ALL, "x", rule=None, many=True, shape_from_values=True,
    numpy=_numpy_unique, samples=[call(at([1, 0, 1, 1, 0])), call((4,)), call((0,))],
    bad=[(call((2, 2)), "InvalidArgumentError", "unique expects a 1D vector.")],
    doc="The distinct elements in order of appearance, and for each element of `x` its index among them.",
)  # fmt: skip

invert_permutation = opaque(
    "invert_permutation", ANY, "x:Index", rule=None, xla="selection.invert_permutation",
    numpy=np.argsort, samples=[call(ints([2, 0, 1])), call(ints(np.zeros([0], int)))],
    bad=[
        (call(ints([2, 0, 2])), "InvalidArgumentError", "2 is duplicated in the input."),
        (call(ints([3, 0, 1])), "InvalidArgumentError", "3 is not between 0 and 3"),
        (call(ints([[0]])), "InvalidArgumentError", "1D vector"),
    ],
    names="math.invert_permutation", doc="The permutation that undoes `x`: `out[x[i]] = i`.",
)  # fmt: skip


class Unique(NamedTuple):
    """The result of `unique`."""

    y: Any
    idx: Any


class UniqueWithCounts(NamedTuple):
    """The result of `unique_with_counts`."""

    y: Any
    idx: Any
    count: Any


def _index_type(op: str, out_idx: Any) -> dtypes.DType:
    dtype = dtypes.as_dtype(out_idx)
    if dtype not in (dtypes.int32, dtypes.int64):
        raise InvalidArgumentError(f"{op}: out_idx must be tf.int32 or tf.int64; got {dtype.name}.")
    return dtype


@composite("unique")
def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Unique:
    """The distinct elements of a vector in order of appearance, and the index of each element among them."""
    y, idx = distinct(x)
    return Unique(y, casting.cast(idx, _index_type("unique", out_idx)))


@composite("unique_with_counts")
def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> UniqueWithCounts:
    """As `unique`, with the number of occurrences of each distinct element."""
    dtype = _index_type("unique_with_counts", out_idx)
    y, idx = distinct(x)
    counts = np.bincount(idx.numpy(), minlength=y.shape[0])
    return UniqueWithCounts(y, casting.cast(idx, dtype), conversion.convert(counts, dtype._code))
