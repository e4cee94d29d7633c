"""Joining and splitting tensors: concat, stack, split, unstack, add_n."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops import batching
from gradtape._src.ops.samples import call
from gradtape._src.ops.static import axis_of, ints_of
from gradtape._src.ops.table import ALL, NUMBER, composite, movement
from gradtape._src.tensors.conversion import as_tensor

__all__ = ["add_n", "concat", "parallel_stack", "split", "stack", "unstack"]

concat = movement(
    "concat", ALL, "values:Operands axis:Axis", one_is_all=True, xla="jnp.concatenate",
    by_rows=lambda shapes, attrs: (True,) * len(shapes) if attrs[0] else None,
    batch="leading",
    transpose=lambda g, xs, out, axis: chunks(g, axis, [x.shape[axis] for x in xs]),
    numpy=lambda xs, axis: np.concatenate(xs, axis),
    samples=[
        call((2,), (3,), axis=0), call((2, 3), axis=0), call((2, 3), (2, 1), (2, 2), axis=-1),
        call((0, 3), (2, 3), axis=0),
        call((2, 0), (2, 0), axis=1), call((2, 3, 2), (2, 1, 2), axis=1),
    ],
    bad=[
        (call((2, 3), (2, 3), axis=2), "InvalidArgumentError", "out of range"),
        (call((2, 3), (2,), axis=0), "InvalidArgumentError", "Ranks of all input tensors should match"),
        (call((2, 3), (2, 4), axis=0), "InvalidArgumentError", "Dimension 1 in both shapes must be equal"),
        (call((), (), axis=0), "InvalidArgumentError", "out of range"),
    ],
    names="concat", doc="The tensors `values` joined along `axis`.",
)  # fmt: skip

stack = movement(
    "stack", ALL, "values:Operands axis:NewAxis=0", xla="jnp.stack",
    batch="leading",
    transpose=lambda g, xs, out, axis: slices(g, axis),
    numpy=lambda xs, axis=0: np.stack(xs, axis),
    samples=[
        call((), ()), call((2,), (2,), (2,)), call((2, 3), (2, 3), axis=1), call((2, 3), (2, 3), axis=-1),
        call((0, 2), (0, 2)),
        call((3,)),
    ],
    bad=[
        (call((2,), (3,)), "InvalidArgumentError", "Shapes of all inputs must match"),
        (call((2,), (2,), axis=2), "InvalidArgumentError", "out of range"),
    ],
    names="stack", doc="The tensors `values`, all of one shape, stacked along a new axis.",
)  # fmt: skip

chunks = movement(
    "split", ALL, "value axis:Axis sizes:Ints", many=True, xla="join.split",
    by_rows=lambda shapes, attrs: (True,) if attrs[0] else None,
    batch=batching.split,
    transpose=lambda g, x, out, axis, sizes: concat(g, axis),
    numpy=lambda x, axis, sizes: np.split(x, np.cumsum(sizes)[:-1], axis),
    samples=[
        call((4,), axis=0, sizes=[1, 3]), call((2, 6), axis=-1, sizes=[2, 2, 2]),
        call((3, 2), axis=0, sizes=[3]),
        call((3, 2), axis=0, sizes=[0, 3]), call((0, 2), axis=1, sizes=[1, 1]),
    ],
    bad=[
        (call((4,), axis=0, sizes=[1, 2]), "InvalidArgumentError", "the sizes sum to 3"),
        (call((4,), axis=0, sizes=[5, -1]), "InvalidArgumentError", "must be non-negative"),
    ],
    doc="`value` split into parts of the given sizes along `axis`.",
)  # fmt: skip

slices = movement(
    "unstack", ALL, "value axis:Axis=0", many=True, xla="join.unstack",
    transpose=lambda g, x, out, axis: stack(g, axis),
    numpy=lambda x, axis=0: [np.take(x, i, axis) for i in range(x.shape[axis])],
    samples=[call((3,)), call((2, 3)), call((2, 3), axis=-1), call((2, 0))],
    bad=[(call(()), "InvalidArgumentError", "out of range")],
    doc="The slices of `value` along `axis`, without that axis.",
)  # fmt: skip

add_n = movement(
    "add_n", NUMBER, "inputs:Operands", pattern="aligned", xla="join.add_n",
    batch="leading",
    transpose=lambda g, xs, out: (g,) * len(xs),
    numpy=lambda xs: sum(xs[1:], xs[0]),
    samples=[call((2, 3)), call((2, 3), (2, 3), (2, 3)), call((), ()), call((0,), (0,))],
    bad=[(call((2,), (3,)), "InvalidArgumentError", "must have the same shape")],
    names="add_n math.add_n", doc="The sum of tensors of one shape; IndexedSlices among them become dense.",
)  # fmt: skip


@composite("split")
def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list:
    """Splits `value` into parts along `axis`.

    Args:
      num_or_size_splits: the number of parts, all of the same size; or a list of their sizes, one of which
        may be -1 and follows from the others.
      num: the number of parts, when it cannot be inferred from the sizes.

    Raises:
      InvalidArgumentError: if the parts do not fill the axis.
    """
    x = as_tensor(value)
    axis = axis_of("split", axis if isinstance(axis, int) else index(axis), x.ndim)
    total = x.shape[axis]
    parts = num_or_size_splits
    if isinstance(parts, (int, np.integer)):
        count = int(parts)
        if count < 1:
            raise InvalidArgumentError(
                f"split: Value for attr 'num_split' of {count} must be at least minimum 1"
            )
        if total % count:
            raise InvalidArgumentError(
                "split: Number of ways to split should evenly divide the split dimension, but got split_dim "
                f"{axis} (size = {total}) and num_split {count}; got value: {x.dtype.name}{list(x.shape)}."
            )
        sizes = [total // count] * count
    else:
        sizes = _sizes_of(parts, total, axis)
    if num is not None and num != len(sizes):
        raise InvalidArgumentError(
            "split: size of the split_tensor must be 1-D and have the same elements as outputs; expected "
            f"{num} sizes; got {sizes}."
        )
    return list(chunks(x, axis, sizes))


def _sizes_of(parts: Any, total: int, axis: int) -> list[int]:
    """The sizes of the parts, with -1 replaced by the size that is left."""
    if isinstance(parts, (list, tuple)):  # may contain symbols
        rank = 1 + any(isinstance(size, (list, tuple)) for size in parts)
    else:
        rank = len(parts.shape) if isinstance(parts, (_core.Tensor, _core.Variable)) else np.ndim(parts)
    if rank == 0:
        raise ValueError(
            "split: Rank-0 tensors are not supported as the num_or_size_splits argument to split. Argument provided: "
            f"{parts}"
        )
    if rank > 1:
        raise InvalidArgumentError(f"split: size of the split_tensor must be 1-D; got {parts}.")
    sizes = ints_of(parts)
    if sizes.count(-1) > 1:
        raise InvalidArgumentError(f"split: There can only be one -1 in the input; got sizes {sizes}.")
    for i, size in enumerate(sizes):
        if size < -1:
            raise InvalidArgumentError(f"split: Split size at index {i} must be >= 0. Got: {size}")
    rest = total - sum(size for size in sizes if size != -1)
    if rest and (rest < 0 or -1 not in sizes):
        raise InvalidArgumentError(
            "split: Determined shape must either match input shape along split_dim exactly if fully specified, or be "
            f"less than the size of the input along split_dim if not fully specified. Got: {total - rest} of {total} "
            f"along axis {axis}."
        )
    return [rest if size == -1 else size for size in sizes]


@composite("unstack")
def unstack(value: Any, num: int | None = None, axis: Any = 0, name: str = "unstack") -> list:
    """The slices of `value` along `axis`, without that axis.

    Args:
      num: the expected number of slices; by default that of the shape.

    Raises:
      ValueError: if there is no such axis.
      InvalidArgumentError: if there are not `num` slices.
    """
    x = value if isinstance(value, _core.Tensor) else as_tensor(value)
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"unstack: Argument `axis` = {axis} not in range [{-x.ndim}, {x.ndim})")
    if num is not None and num != x.shape[axis]:
        raise InvalidArgumentError(
            f"unstack: Input shape axis {axis} must equal {num}, got shape {list(x.shape)}"
        )
    return list(slices(x, axis)) if x.shape[axis] else []


@composite("parallel_stack")
def parallel_stack(values: Any, name: str = "parallel_stack") -> Any:
    """The tensors `values` stacked along a new first axis; the same as `stack`."""
    return stack(values, 0)
