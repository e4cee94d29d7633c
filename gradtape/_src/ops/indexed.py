"""Elements at indices: gather and scatter, which are transposes of each other.

The gradient of `gather` along the first axis is an IndexedSlices, all others are dense.
Segments are in `segments`; masks, one_hot and where in `selection`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops import arithmetic, batching, casting, join, movement
from gradtape._src.ops.comparison import equal, select
from gradtape._src.ops.reduction import reduce_all
from gradtape._src.ops.samples import call, ints
from gradtape._src.ops.static import ints_of
from gradtape._src.ops.table import ALL, NUMBER, REAL, composite, indexed
from gradtape._src.tensors import conversion
from gradtape._src.tensors.conversion import as_tensor
from gradtape._src.tensors.conversion import as_tensor as convert
from gradtape._src.tensors.indexed_slices import IndexedSlices

__all__ = [
    "batch_gather", "gather", "gather_grad", "gather_nd", "put_along_add", "scatter_nd",
    "scatter_rows_add", "take_along", "tensor_scatter_add", "tensor_scatter_max", "tensor_scatter_min",
    "tensor_scatter_sub", "tensor_scatter_update",
]  # fmt: skip

# ---- along an axis ----


def _ungather(g, x, indices, out, axis):
    if axis:
        return gather_grad(g, indices, axis, 0, x.shape)
    shape = tuple(x.shape)
    return IndexedSlices(
        movement.reshape(g, [indices._numel, *shape[1:]]), movement.reshape(indices, [indices._numel]), shape
    )


def _numpy_gather(x, indices, axis, batch_dims):
    axis, batch = axis % x.ndim, batch_dims + indices.ndim * (batch_dims < 0)
    if batch == 0:
        return np.take(x, indices, axis)
    return np.stack([_numpy_gather(a, i, axis - 1, batch - 1) for a, i in zip(x, indices, strict=True)])


def _numpy_ungather(g, indices, axis, batch_dims, shape):
    if batch_dims:
        return np.stack(
            [
                _numpy_ungather(a, i, axis - 1, batch_dims - 1, shape[1:])
                for a, i in zip(g, indices, strict=True)
            ]
        )
    out = np.zeros(shape, g.dtype)
    np.add.at(out, (slice(None),) * axis + (indices,), g)
    return out


def _gather_in_batches(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None):
    """A call of `gather` with `batch_dims`. As in TensorFlow, `axis` is `batch_dims` by default, and a gather along
    axis 0, which comes before all batch axes, ignores `batch_dims`."""
    (batch,) = ints_of(batch_dims or 0)
    (along,) = ints_of(batch if axis is None else axis)
    return gather_batched(params, indices, along, batch) if along else gather(params, indices)


gather_batched = indexed(
    "gather_batched", ALL, "params indices:Index axis:Axis batch_dims:Int", batch=batching.gather_batched,
    xla="indexed.gather",
    linear="params", pattern="moves",
    rule=(
        lambda g, x, indices, out, axis, batch_dims: gather_grad(g, indices, axis, batch_dims, x.shape), None,
    ),
    numpy=_numpy_gather,
    samples=[
        call((2, 3), ints([[0], [2]]), axis=1, batch_dims=1), call((2, 3), ints([[0], [2]]), axis=1, batch_dims=-1),
        call((2, 2, 3), ints([[0, 2], [1, 1]]), axis=2, batch_dims=1),
    ],
    bad=[
        (
            call((2, 3), ints([0]), axis=1, batch_dims=1), "InvalidArgumentError",
            "should be equal to indices.shape[0]",
        ),
        (
            call((2, 3), ints(0), axis=1, batch_dims=1), "InvalidArgumentError",
            "Expected batch_dims in the range [0, 0], but got 1",
        ),
        (
            call((2, 3), ints([[0], [1]]), axis=-2, batch_dims=1), "InvalidArgumentError",
            "batch_dims (1) must be less than or equal to axis (0)",
        ),
    ],
    doc="`gather` within each element of a batch: the first `batch_dims` axes of `params` and `indices` are batch axes.",
)  # fmt: skip

gather = indexed(
    "gather", ALL, "params indices:Index validate_indices:Ignored=None axis:Axis=None batch_dims:Extra=0",
    xla="indexed.gather",
    linear="params", pattern="moves",
    batch=batching.gather, fallback=_gather_in_batches,
    rule=(_ungather, None), numpy=lambda x, indices, axis=0: np.take(x, indices, axis),
    samples=[
        call((4, 2), ints([2, 0, 2])), call((4,), ints(1)), call((4, 2), ints([[1, 3], [0, 0]])),
        call((2, 3), ints([2, 2, 0]), axis=1),
        call((2, 3, 2), ints([[1], [0]]), axis=-2),
        call((3, 2), ints(np.zeros([0], int))), call((3, 0), ints([1, 1])),
    ],
    bad=[
        (call((2, 3), ints([0, 5])), "InvalidArgumentError", "indices[1] = 5 is not in [0, 2)"),
        (call((2, 3), ints([-1])), "InvalidArgumentError", "indices[0] = -1 is not in [0, 2)"),
        (call((2, 3), ints([0]), axis=2), "InvalidArgumentError", "out of range"),
        (call((), ints(0)), "InvalidArgumentError", "out of range"),
    ],
    names="gather", doc="The slices of `params` at `indices` along `axis`, which by default is `batch_dims`.",
)  # fmt: skip

gather_grad = indexed(
    "gather_grad", NUMBER, "g indices:Index axis:Int batch_dims:Int shape:Shape", linear="g", pattern="adds",
    xla="indexed.gather_grad",
    batch=batching.gather_grad,
    rule=(
        lambda g, x, indices, out, axis, batch_dims,
        shape: gather(g, indices, axis=axis, batch_dims=batch_dims), None,
    ),
    numpy=_numpy_ungather,
    samples=[
        call((2, 3), ints([2, 2, 0]), axis=1, batch_dims=0, shape=[2, 4]),
        call((2, 1), ints([[0], [2]]), axis=1, batch_dims=1, shape=[2, 3]),
        call((2, 0), ints(np.zeros([0], int)), axis=1, batch_dims=0, shape=[2, 4]),
    ],
    bad=[
        (
            call((2, 3), ints([0]), axis=1, batch_dims=0, shape=[2, 4]), "InvalidArgumentError",
            "the gradient of a gather",
        ),
        (
            call((2, 1), ints([9]), axis=1, batch_dims=0, shape=[2, 4]), "InvalidArgumentError",
            "is not in [0, 4)",
        ),
    ],
    doc="The transpose of gather: zeros of `shape` with the slices of `g` added at `indices`.",
)  # fmt: skip


def _numpy_add_rows(values, indices, shape):
    out = np.zeros(shape, values.dtype)
    np.add.at(out, indices, values)
    return out


scatter_rows_add = indexed(
    "scatter_rows_add", NUMBER, "values indices:Index shape:Shape", linear="values", pattern="adds",
    xla="indexed.scatter_rows_add",
    batch=batching.scatter_rows_add,
    rule=(lambda g, values, indices, out, shape: gather(g, indices), None),
    numpy=_numpy_add_rows,
    samples=[
        call((3, 2), ints([1, 0, 1]), shape=[4, 2]), call((3,), ints([1, 0, 1]), shape=[2]),
        call((0, 2), ints(np.zeros([0], int)), shape=[3, 2]),
    ],
    bad=[
        (call((1, 2), ints([4]), shape=[4, 2]), "InvalidArgumentError", "indices[0] = 4 is not in [0, 4)"),
        (call((1, 2), ints([1]), shape=[4, 3]), "InvalidArgumentError", "values must have shape [1,3]"),
    ],
    doc="Zeros of `shape` with each row of `values` added at its index: the dense form of an IndexedSlices.",
)  # fmt: skip

take_along = indexed(
    "take_along", ALL, "x indices:Index axis:Axis", linear="x", pattern="moves", xla="indexed.take_along",
    batch="leading",
    rule=(lambda g, x, indices, out, axis: put_along_add(g, indices, axis, x.shape), None),
    numpy=np.take_along_axis,
    samples=[
        call((4,), ints([3, 3]), axis=0), call((2, 3), ints([[0, 2], [1, 1]]), axis=-1),
        call((2, 3), ints([[0, 1, 1]]), axis=0),
        call((0, 3), ints(np.zeros([0, 1], int)), axis=1),
    ],
    bad=[
        (
            call((2, 3), ints([[0]]), axis=1), "InvalidArgumentError",
            "must have the shape of the operand except along axis 1",
        ),
        (call((2,), ints([2]), axis=0), "InvalidArgumentError", "indices[0] = 2 is not in [0, 2)"),
    ],
    doc="The elements of `x` at the positions of `indices`, with the index along `axis` taken "
        "from it.",
)  # fmt: skip


def _numpy_put_along(g, indices, axis, shape):
    out = np.zeros(shape, g.dtype)
    places = list(np.indices(indices.shape))
    places[axis] = indices
    np.add.at(out, tuple(places), g)
    return out


put_along_add = indexed(
    "put_along_add", NUMBER, "g indices:Index axis:Axis shape:Shape", linear="g", pattern="adds",
    xla="indexed.put_along_add",
    batch="leading",
    rule=(lambda g, x, indices, out, axis, shape: take_along(g, indices, axis), None),
    numpy=_numpy_put_along,
    samples=[
        call((2,), ints([3, 3]), axis=0, shape=[4]),
        call((2, 2), ints([[0, 2], [1, 1]]), axis=1, shape=[2, 3]),
    ],
    doc="The transpose of take_along: zeros of `shape` with the elements of `g` added at their positions.",
)  # fmt: skip


@composite("batch_gather")
def batch_gather(params: Any, indices: Any, name: str | None = None) -> Any:
    """`gather` with all axes of `indices` but the last as batch axes."""
    indices = as_tensor(indices)
    return gather(params, indices, batch_dims=indices.ndim - 1)


# ---- by coordinates ----


def _absolute(indices, batch_dims):
    """Converts coordinates within batches to coordinates into the whole tensor: the batch index is put in front."""
    shape = list(indices.shape)
    grid = np.indices(shape[:batch_dims]).reshape(
        [batch_dims, *shape[:batch_dims], *[1] * (len(shape) - batch_dims - 1)]
    )
    grid = np.broadcast_to(np.moveaxis(grid, 0, -1), [*shape[:-1], batch_dims])
    return join.concat([conversion.convert(np.array(grid), indices.dtype._code), indices], len(shape) - 1)


def _ungather_nd(g, x, indices, out, batch_dims):
    if not batch_dims and indices.ndim == 2 and indices.shape[1] == 1:
        return _ungather(g, x, movement.reshape(indices, [indices.shape[0]]), out, 0)
    return scatter_nd(_absolute(indices, batch_dims) if batch_dims else indices, g, x.shape)


def _numpy_gather_nd(x, indices, batch_dims=0):
    if batch_dims:
        return np.stack([_numpy_gather_nd(a, i, batch_dims - 1) for a, i in zip(x, indices, strict=True)])
    return x[tuple(np.moveaxis(indices, -1, 0))]


def _ignores(policy):
    """Whether a `bad_indices_policy` ignores coordinates out of range; the others make them an error."""
    if policy not in (None, "", "DEFAULT", "ERROR", "IGNORE"):
        raise InvalidArgumentError(f"Unknown bad indices handling attribute: {policy}")
    return policy == "IGNORE"


def _inside(indices, shape, rank):
    """Which coordinates are inside `shape` (with axes of size 1 up to `rank`), and the coordinates with 0 for the others."""
    limits = conversion.convert(np.array(shape[: indices.shape[-1]], np.int64), indices.dtype._code)
    inside = reduce_all((indices >= 0) & (indices < limits), -1, True)
    mask = movement.reshape(inside, [*indices.shape[:-1], *[1] * (rank + 1 - indices.ndim)])
    return mask, select(inside, indices, arithmetic.zero(indices))


def _gather_nd_by_policy(params, indices, batch_dims=0, bad_indices_policy=None, name=None):
    """`gather_nd` with a `bad_indices_policy`: "IGNORE" gives zeros for coordinates out of range."""
    if not _ignores(bad_indices_policy):
        return gather_nd(params, indices, batch_dims)
    x, indices = as_tensor(params), as_tensor(indices)
    shape = list(x.shape)[batch_dims:]
    mask, safe = _inside(indices, shape, indices.ndim - 1 + len(shape) - indices.shape[-1])
    out = gather_nd(x, safe, batch_dims)
    return select(mask, out, arithmetic.zero(out))


def _scatter_by_policy(scatter, nothing):
    """A scatter with a `bad_indices_policy`: "IGNORE" ignores updates at coordinates out of range.

    They are replaced by `nothing`, a value that changes nothing, at position 0.
    """

    def updated(tensor, indices, updates, bad_indices_policy=None, name=None):
        if not _ignores(bad_indices_policy):
            return scatter(tensor, indices, updates)
        x, indices = as_tensor(tensor), as_tensor(indices)
        updates = convert(updates, x)
        mask, safe = _inside(indices, list(x.shape), updates.ndim)
        return scatter(x, safe, select(mask, updates, nothing(x.dtype)))

    return updated


def _scatter_nd_by_policy(indices, updates, shape, bad_indices_policy=None, name=None):
    if not _ignores(bad_indices_policy):
        return scatter_nd(indices, updates, shape)
    indices, updates = as_tensor(indices), as_tensor(updates)
    mask, safe = _inside(indices, ints_of(shape), updates.ndim)
    return scatter_nd(safe, select(mask, updates, arithmetic.zero(updates)), shape)


gather_nd = indexed(
    "gather_nd", ALL, "params indices:Index batch_dims:Int=0 bad_indices_policy:Extra=None",
    xla="indexed.gather_nd",
    linear="params", pattern="moves",
    batch=batching.gather_nd, fallback=_gather_nd_by_policy,
    rule=(_ungather_nd, None), numpy=_numpy_gather_nd,
    samples=[
        call((2, 3), ints([[0, 1], [1, 2], [0, 1]])), call((2, 3), ints([[1], [0]])),
        call((2, 3), ints([1, 2])),
        call((2, 3), ints([[0], [2]]), batch_dims=1),
        call((2, 2, 3), ints([[[0, 1]], [[1, 2]]]), batch_dims=1),
        call((2, 3), ints(np.zeros([0, 2], int))),
    ],
    bad=[
        (
            call((2, 3), ints([[0, 5]])), "InvalidArgumentError",
            "indices[0] = [0, 5] does not index into param shape [2,3]",
        ),
        (call((2, 3), ints([[0, 0, 0]])), "InvalidArgumentError", "must be <= params rank; saw: 3 vs. 2"),
    ],
    names="gather_nd", doc="The elements or slices of `params` at the coordinates in the last axis of "
        "`indices`.",
)  # fmt: skip


def _numpy_scatter_nd(indices, updates, shape):
    out = np.zeros(shape, updates.dtype)
    np.add.at(out, tuple(np.moveaxis(indices, -1, 0)), updates)
    return out


scatter_nd = indexed(
    "scatter_nd", ALL, "indices:Index updates shape:Shape bad_indices_policy:Extra=None",
    xla="indexed.scatter_nd",
    linear="updates", pattern="adds",
    batch=batching.scatter_nd, fallback=_scatter_nd_by_policy,
    rule=(None, lambda g, indices, updates, out, shape: gather_nd(g, indices)),
    numpy=_numpy_scatter_nd,
    samples=[
        call(ints([[1], [3], [1]]), (3,), shape=[5]), call(ints([[0, 1]]), (1, 2), shape=[2, 3, 2]),
        call(ints(np.zeros([0, 1], int)), (0, 2), shape=[3, 2]),
    ],
    bad=[
        (
            call(ints([[7]]), (1,), shape=[5]), "InvalidArgumentError",
            "indices[0] = [7] does not index into shape [5]",
        ),
        (
            call(ints([[1]]), (2,), shape=[5]), "InvalidArgumentError",
            "Dimensions of updates must be those of indices",
        ),
    ],
    names="scatter_nd", doc="Zeros of `shape` with `updates` added at the coordinates in the last axis of "
        "`indices`.",
)  # fmt: skip


def _numpy_scatter(function):
    def scatter(x, indices, updates):
        out = np.array(x)
        places = tuple(np.moveaxis(indices, -1, 0))
        if function is None:
            out[places] = updates
        else:
            function.at(out, places, updates)
        return out

    return scatter


def _scatter_extremum(g, x, indices, updates, out):
    """Divides the cotangent equally among the elements that equal the result."""
    from_x = casting.cast(equal(x, out), g.dtype)
    from_updates = casting.cast(equal(updates, gather_nd(out, indices)), g.dtype)
    share = g / (from_x + scatter_nd(indices, from_updates, x.shape))
    return share * from_x, None, gather_nd(share, indices) * from_updates


_SCATTER = "tensor indices:Index updates bad_indices_policy:Extra=None"
_ONCE = [
    call((4,), ints([[1], [3]]), (2,)), call((2, 3), ints([[1]]), (1, 3)),
    call((2, 3), ints([[0, 1], [1, 2]]), (2,)),
    call((2, 3), ints(np.zeros([0, 1], int)), (0, 3)),
]  # fmt: skip
_TWICE = [*_ONCE, call((4,), ints([[1], [1]]), (2,))]
_BAD = [
    (
        call((2, 3), ints([[5]]), (1, 3)),
        "InvalidArgumentError",
        "indices[0] = [5] does not index into shape [2,3]",
    ),
    (
        call((2, 3), ints([[1]]), (1, 2)),
        "InvalidArgumentError",
        "Dimensions of updates must be those of indices",
    ),
]

tensor_scatter_update = indexed(
    "tensor_scatter_update", ALL, "tensor indices:Index updates", xla="indexed.tensor_scatter_update",
    linear="tensor+updates", pattern="moves", in_place="tensor",
    batch=batching.tensor_scatter("tensor_scatter_update"),
    rule=(
        lambda g, x, indices, updates,
        out: tensor_scatter_update(g, indices, arithmetic.zero(gather_nd(g, indices))),
        None,
        lambda g, x, indices, updates, out: gather_nd(g, indices),
    ),
    numpy=_numpy_scatter(None), samples=_ONCE, bad=_BAD, names="tensor_scatter_nd_update",
    doc="`tensor` with `updates` at the coordinates in the last axis of `indices`; of two at one position the "
        "last stays.",
)  # fmt: skip

tensor_scatter_add = indexed(
    "tensor_scatter_add", NUMBER, _SCATTER, linear="tensor+updates", pattern="adds", in_place="tensor",
    xla="indexed.tensor_scatter_add",
    batch=batching.tensor_scatter("tensor_scatter_add"),
    fallback=_scatter_by_policy(lambda *a: tensor_scatter_add(*a), lambda dtype: 0),
    rule=(
        lambda g, x, indices, updates, out: g, None, lambda g, x, indices, updates,
        out: gather_nd(g, indices),
    ),
    numpy=_numpy_scatter(np.add), samples=_TWICE, bad=_BAD, names="tensor_scatter_nd_add",
    doc="`tensor` with `updates` added at the coordinates in the last axis of `indices`.",
)  # fmt: skip

tensor_scatter_sub = indexed(
    "tensor_scatter_sub", NUMBER, _SCATTER, linear="tensor+updates", pattern="adds", in_place="tensor",
    xla="indexed.tensor_scatter_sub",
    batch=batching.tensor_scatter("tensor_scatter_sub"),
    fallback=_scatter_by_policy(lambda *a: tensor_scatter_sub(*a), lambda dtype: 0),
    rule=(
        lambda g, x, indices, updates, out: g, None, lambda g, x, indices, updates,
        out: -gather_nd(g, indices),
    ),
    numpy=_numpy_scatter(np.subtract), samples=_TWICE, bad=_BAD, names="tensor_scatter_nd_sub",
    doc="`tensor` with `updates` subtracted at the coordinates in the last axis of `indices`.",
)  # fmt: skip

tensor_scatter_max = indexed(
    "tensor_scatter_max", REAL, _SCATTER, rule=_scatter_extremum, joint=True, in_place="tensor",
    xla="indexed.tensor_scatter_max",
    batch=batching.tensor_scatter("tensor_scatter_max"),
    fallback=_scatter_by_policy(
        lambda *a: tensor_scatter_max(*a), lambda dtype: dtype.min if dtype.is_integer else -np.inf
    ),
    numpy=_numpy_scatter(np.maximum), samples=_TWICE, bad=_BAD, names="tensor_scatter_nd_max",
    doc="The larger of `tensor` and `updates` at the coordinates in the last axis of `indices`; ties share "
        "the gradient.",
)  # fmt: skip

tensor_scatter_min = indexed(
    "tensor_scatter_min", REAL, _SCATTER, rule=_scatter_extremum, joint=True, in_place="tensor",
    xla="indexed.tensor_scatter_min",
    batch=batching.tensor_scatter("tensor_scatter_min"),
    fallback=_scatter_by_policy(
        lambda *a: tensor_scatter_min(*a), lambda dtype: dtype.max if dtype.is_integer else np.inf
    ),
    numpy=_numpy_scatter(np.minimum), samples=_TWICE, bad=_BAD, names="tensor_scatter_nd_min",
    doc="The smaller of `tensor` and `updates` at the coordinates in the last axis of `indices`; ties share "
        "the gradient.",
)  # fmt: skip
