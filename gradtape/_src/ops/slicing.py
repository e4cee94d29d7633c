"""Parts of tensors: `x[...]`, tf.slice, tf.strided_slice, and their transposes.

`x[key]` itself is native: the core turns the key into a region (`begin`, `step` and `size` of
each axis) and the `shape` of the result, and calls the row `index`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops import batching
from gradtape._src.ops.arithmetic import zero
from gradtape._src.ops.samples import call
from gradtape._src.ops.static import ints_of
from gradtape._src.ops.table import ALL, ANY, composite, movement
from gradtape._src.tensors.conversion import as_tensor

__all__ = ["index", "index_update", "slice_", "strided_slice", "unindex"]


def _region(begin, step, size):
    return np.ix_(*[b + s * np.arange(n) for b, s, n in zip(begin, step, size, strict=True)]) if begin else ()


def _numpy_unindex(g, begin, step, size, shape):
    out = np.zeros(shape, g.dtype)
    out[_region(begin, step, size)] = np.reshape(g, size)
    return out


def _numpy_update(x, value, begin, step, size):
    out = np.array(x)
    out[_region(begin, step, size)] = np.reshape(value, size)
    return out


index = movement(
    "index", ALL, "x begin:Ints step:Ints size:Ints shape:Ints", xla="slicing.index",
    batch=batching.index,
    transpose=lambda g, x, out, begin, step, size, shape: unindex(g, begin, step, size, x.shape),
    numpy=lambda x, begin, step, size, shape: np.reshape(x[_region(begin, step, size)], shape),
    samples=[
        call((), begin=[], step=[], size=[], shape=[1]),
        call((4,), begin=[1], step=[1], size=[2], shape=[2]),
        call((5,), begin=[4], step=[-2], size=[3], shape=[3]),
        call((3, 4), begin=[1, 0], step=[1, 1], size=[1, 4], shape=[4]),
        call((3, 4), begin=[0, 1], step=[2, 1], size=[2, 2], shape=[2, 1, 2]),
        call((3, 4), begin=[0, 0], step=[1, 1], size=[0, 4], shape=[0, 4]),
    ],
    bad=[
        (call((3,), begin=[2], step=[1], size=[2], shape=[2]), "InvalidArgumentError", "out of bounds"),
        (
            call((3,), begin=[0], step=[1], size=[2], shape=[3]), "InvalidArgumentError",
            "cannot have the shape",
        ),
    ],
    doc="The elements at `begin + i * step` for i < `size` along each axis, in the given shape.",
)  # fmt: skip

unindex = movement(
    "unindex", ANY, "g begin:Ints step:Ints size:Ints shape:Ints", xla="slicing.unindex",
    batch=batching.unindex,
    transpose=lambda g, x, out, begin, step, size, shape: index(g, begin, step, size, x.shape),
    numpy=_numpy_unindex,
    samples=[
        call((1,), begin=[], step=[], size=[], shape=[]),
        call((2,), begin=[1], step=[1], size=[2], shape=[4]),
        call((3,), begin=[4], step=[-2], size=[3], shape=[5]),
        call((4,), begin=[1, 0], step=[1, 1], size=[1, 4], shape=[3, 4]),
        call((0, 4), begin=[0, 0], step=[1, 1], size=[0, 4], shape=[3, 4]),
    ],
    bad=[(call((3,), begin=[0], step=[1], size=[2], shape=[4]), "InvalidArgumentError", "cannot be filled")],
    doc="Zeros of `shape` with `g` in the region that `index` reads.",
)  # fmt: skip

index_update = movement(
    "index_update", ALL, "x value begin:Ints step:Ints size:Ints", xla="slicing.index_update",
    batch=batching.index_update,
    transpose=(
        lambda g, x, v, out, begin, step,
        size: index_update(g, zero(index(g, begin, step, size, v.shape)), begin, step, size),
        lambda g, x, v, out, begin, step, size: index(g, begin, step, size, v.shape),
    ),
    numpy=_numpy_update,
    samples=[
        call((4,), (2,), begin=[1], step=[1], size=[2]),
        call((3, 4), (4,), begin=[1, 0], step=[1, 1], size=[1, 4]),
        call((3, 4), (2, 2), begin=[2, 1], step=[-2, 2], size=[2, 2]),
        call((3,), (0,), begin=[0], step=[1], size=[0]),
    ],
    bad=[(call((3,), (1,), begin=[0], step=[1], size=[2]), "InvalidArgumentError", "cannot be assigned")],
    doc="`x` with `value` written into a region of it.",
)  # fmt: skip


@composite("slice")
def slice_(input_: Any, begin: Any, size: Any, name: str | None = None) -> Any:
    """The block of `input_` that starts at `begin` and has `size`; -1 in `size` means up to the end."""
    x = as_tensor(input_)
    shape, begin, size = list(x.shape), ints_of(begin), ints_of(size)
    if len(begin) != x.ndim or len(size) != x.ndim:
        raise InvalidArgumentError(
            f"slice: Expected begin and size arguments to be 1-D tensors of size {x.ndim}, but got sizes "
            f"{len(begin)} and "
            f"{len(size)}; got input_: {x.dtype.name}{shape}."
        )
    for i, (b, n, d) in enumerate(zip(begin, size, shape, strict=True)):
        if not 0 <= b <= d:
            raise InvalidArgumentError(
                f"slice: Expected begin[{i}] in [0, {d}], but got {b}; got input_: {x.dtype.name}{shape}."
            )
        if n == -1:
            size[i] = d - b
        elif not 0 <= n <= d - b:
            raise InvalidArgumentError(
                f"slice: Expected size[{i}] in [0, {d - b}], but got {n}; got input_: {x.dtype.name}{shape}."
            )
    return index(x, begin, [1] * x.ndim, size, size)


@composite("strided_slice")
def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Any:
    """`input_[begin[0]:end[0]:strides[0], ...]`, the function behind `x[...]` in TensorFlow.

    Bit i of a mask changes entry i: `begin_mask` and `end_mask` ignore that limit, `ellipsis_mask` makes it
    `...`, `new_axis_mask` a new axis, and `shrink_axis_mask` the single index `begin[i]`.
    """
    begin, end = ints_of(begin), ints_of(end)
    steps = [1] * len(begin) if strides is None else ints_of(strides)
    if not len(begin) == len(end) == len(steps):
        raise InvalidArgumentError(
            f"strided_slice: Expected begin, end, and strides to be 1D equal size tensors, but got sizes "
            f"{len(begin)}, "
            f"{len(end)} and {len(steps)}."
        )
    key: list[Any] = []
    for i, (b, e, s) in enumerate(zip(begin, end, steps, strict=True)):
        bit = 1 << i
        if ellipsis_mask & bit:
            key.append(...)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            if s <= 0:
                raise InvalidArgumentError(
                    f"strided_slice: only stride 1 allowed on non-range indexing; got strides[{i}] = {s}."
                )
            key.append(b)
        else:
            key.append(slice(None if begin_mask & bit else b, None if end_mask & bit else e, s))
    return as_tensor(input_)[tuple(key)]
