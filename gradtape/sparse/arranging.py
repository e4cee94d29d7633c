"""Creates, splits, joins and reshapes sparse tensors: elements move, values stay the same."""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.room import want_room
from gradtape._src.ops.casting import cast
from gradtape._src.ops.creation import convert_to_tensor, fill, ones, zeros
from gradtape._src.ops.indexed import gather, gather_nd, scatter_nd, tensor_scatter_update
from gradtape._src.ops.join import concat as join
from gradtape._src.ops.movement import reshape as reshape_dense
from gradtape._src.ops.static import array_of
from gradtape._src.tensors.conversion import as_tensor
from gradtape._src.tensors.indexed_slices import IndexedSlices
from gradtape.sparse.ordering import check_order, keys_of, order_of, places_at
from gradtape.sparse.tensor import SparseTensor, as_sparse, make_sparse, places_of, sizes_of

# ---- from dense tensors, and back -----------------------------------------------------------------


def from_dense(tensor: Any, name: str | None = None) -> Any:
    """A sparse tensor with the nonzero elements of a dense one."""
    x = as_tensor(tensor)
    if x.ndim == 0:
        raise InvalidArgumentError("from_dense: WhereOp : Unhandled input dimensions: 0")
    places = np.argwhere(array_of(x))
    return make_sparse(places, gather_nd(x, as_tensor(places)), x.shape)


def to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: Any = True, name: str | None = None
) -> Any:
    """A dense tensor from a sparse one, with `default_value` (0) where there is no element.

    Raises:
      InvalidArgumentError: if an index is out of range and, with `validate_indices`, if one is repeated or not in
        row-major order.
    """
    x = as_sparse(sp_input)
    sizes = sizes_of(x)
    if validate_indices:
        check_order("to_dense", places_of(x), sizes)
    if default_value is None and validate_indices and x.dtype != dtypes.bool:
        return scatter_nd(x.indices, x.values, sizes)
    default = zeros([], x.dtype) if default_value is None else convert_to_tensor(default_value, x.dtype)
    if default.ndim:
        raise InvalidArgumentError(f"to_dense: default_value should be a scalar; got shape {default.shape}.")
    return tensor_scatter_update(fill(sizes, default), x.indices, x.values)


def to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Any:
    """Booleans [..., vocab_size]: whether each number is among the values of a row of a sparse tensor."""
    x = as_sparse(sp_input)
    sizes = [*sizes_of(x)[:-1], int(array_of(vocab_size))]
    places = np.column_stack([places_of(x)[:, :-1], array_of(cast(x.values, dtypes.int64))])
    return to_dense(
        make_sparse(places, ones([len(places)], dtypes.bool), sizes), False, validate_indices=False
    )


def eye(num_rows: Any, num_columns: Any = None, dtype: Any = dtypes.float32, name: str | None = None) -> Any:
    """A sparse matrix with ones on its diagonal."""
    rows = _integer(num_rows, "num_rows")
    columns = rows if num_columns is None else _integer(num_columns, "num_columns")
    n = min(rows, columns)
    want_room(n, 2)
    if n < 0:
        raise InvalidArgumentError(f"eye: sizes must not be negative; got {rows} and {columns}.")
    return make_sparse(np.repeat(np.arange(n), 2), ones([n], dtype), [rows, columns])


def _integer(value: Any, name: str) -> int:
    if not isinstance(value, (int, np.integer, _core.Tensor)):
        raise TypeError(f"{name} must be an integer value")
    return int(array_of(value))


# ---- order and shape ------------------------------------------------------------------------------


def _taken(x: SparseTensor, places: np.ndarray, order: np.ndarray | None, sizes: Any) -> SparseTensor:
    """The elements of `x` at new positions, in another order."""
    if order is None:
        return make_sparse(places, x.values, sizes)
    return make_sparse(places[order], gather(x.values, order), sizes)


def reorder(sp_input: Any, name: str | None = None) -> Any:
    """A sparse tensor with its elements in row-major order."""
    x = as_sparse(sp_input)
    places, sizes = places_of(x), sizes_of(x)
    return _taken(x, places, order_of(places, sizes), sizes)


def reshape(sp_input: Any, shape: Any, name: str | None = None) -> Any:
    """A sparse tensor in another shape, in which one size may be -1, which is inferred."""
    x = as_sparse(sp_input)
    old, new = sizes_of(x), array_of(cast(shape, dtypes.int64))
    if new.ndim != 1:
        raise InvalidArgumentError(
            f"reshape: Target shape should be a vector but received shape {list(new.shape)}"
        )
    total, new = prod(old), new.tolist()
    unknown = [axis for axis, n in enumerate(new) if n == -1]
    if len(unknown) > 1:
        raise InvalidArgumentError(
            f"reshape: only one output dimension may be -1, not both {unknown[0]} and {unknown[1]}"
        )
    for axis, n in enumerate(new):
        if n < -1:
            raise InvalidArgumentError(f"reshape: size {axis} must be non-negative, not {n}")
    shapes = f"input_shape={old} output_shape={new}"
    if unknown:
        rest = prod(n for n in new if n != -1)
        if rest == 0:
            raise InvalidArgumentError(
                "reshape cannot infer the missing input size for an empty tensor unless all specified input sizes "
                "are non-zero"
            )
        if total % rest:
            raise InvalidArgumentError(
                f"reshape: Input to reshape is a SparseTensor with {total} dense values, but the requested shape "
                f"requires a multiple of {rest}. {shapes}"
            )
        new[unknown[0]] = total // rest
    if prod(new) != total:
        raise InvalidArgumentError(
            f"reshape: Input to reshape is a tensor with {total} dense values, but the requested shape has "
            f"{prod(new)}. {shapes}"
        )
    if total >= 2**63:
        raise InvalidArgumentError(
            f"reshape: a shape with {total} elements, more than can be counted. {shapes}"
        )
    places = places_of(x)
    return make_sparse(places_at(keys_of(places, old), new) if len(places) else places, x.values, new)


def transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> Any:
    """A sparse tensor with its axes in the order `perm`, by default reversed."""
    x = as_sparse(sp_input)
    sizes = sizes_of(x)
    rank = len(sizes)
    axes = list(range(rank))[::-1] if perm is None else array_of(as_tensor(perm)).tolist()
    if len(axes) != rank:
        raise ValueError(f"Dimensions {len(axes)} and {rank} are not compatible")
    for k, axis in enumerate(axes):
        if not 0 <= axis < rank:
            raise InvalidArgumentError(f"transpose: perm: indices[{k}] = {axis} is not in [0, {rank})")
    places, new = places_of(x)[:, axes], [sizes[axis] for axis in axes]
    return _taken(x, places, order_of(places, new), new)


def expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> Any:
    """A sparse tensor with a new axis of size 1, by default the last."""
    x = as_sparse(sp_input)
    sizes = sizes_of(x)
    if axis is not None and not isinstance(axis, (int, np.integer, _core.Tensor)):
        raise TypeError("axis must be an integer value in range [-rank(sp_input) - 1, rank(sp_input)]")
    at = -1 if axis is None else int(array_of(axis))
    if not -len(sizes) - 1 <= at <= len(sizes):
        raise InvalidArgumentError(f"expand_dims: axis {at} is not in [{-len(sizes) - 1}, {len(sizes)}]")
    at += len(sizes) + 1 if at < 0 else 0
    return make_sparse(np.insert(places_of(x), at, 0, axis=1), x.values, [*sizes[:at], 1, *sizes[at:]])


def reset_shape(sp_input: Any, new_shape: Any = None) -> Any:
    """A sparse tensor with the shape `new_shape`, by default the smallest that contains its elements."""
    x = as_sparse(sp_input)
    places, sizes = places_of(x), sizes_of(x)
    if new_shape is None:
        return make_sparse(places, x.values, places.max(0) + 1 if len(places) else [0] * len(sizes))
    new = convert_to_tensor(new_shape, dtypes.int64)
    if new.ndim != 1:
        raise ValueError(f"Shape {new.shape} must have rank 1")
    if new.shape[0] != len(sizes):
        raise ValueError(f"Dimensions {new.shape[0]} and {len(sizes)} are not compatible")
    if (array_of(new) < sizes).any():
        raise ValueError(
            "Requested new_shape should have dimension sizes >= sp_input.shape.  Found new_shape "
            f"({array_of(new)}), sp_input.shape ({np.array(sizes)})."
        )
    return make_sparse(places, x.values, array_of(new))


# ---- parts ----------------------------------------------------------------------------------------


def retain(sp_input: Any, to_retain: Any) -> Any:
    """The elements of a sparse tensor for which the vector `to_retain` is true."""
    x = as_sparse(sp_input)
    keep = array_of(convert_to_tensor(to_retain)).astype(bool)
    if keep.shape != tuple(x.values.shape):
        raise ValueError(f"Dimensions {x.values.shape[0]} and {keep.size} are not compatible")
    return _taken(x, places_of(x), np.flatnonzero(keep), sizes_of(x))


def slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> Any:
    """The elements between `start` and `start + size` (or the end), with positions relative to `start`."""
    x = as_sparse(sp_input)
    sizes = sizes_of(x)
    begin, length = (array_of(convert_to_tensor(v, dtypes.int64)) for v in (start, size))
    for what, v in (("start", begin), ("size", length)):
        if v.shape != (len(sizes),):
            raise InvalidArgumentError(
                f"slice: Expected {what} to be a vector of length {len(sizes)} but got length {v.size}"
            )
    if (length < 0).any():
        raise InvalidArgumentError(f"slice: Expected a non-negative size, got {length.min()}")
    return _cut(x, places_of(x), begin, np.clip(np.array(sizes) - begin, 0, length))


def _cut(x: SparseTensor, places: np.ndarray, begin: np.ndarray, length: np.ndarray) -> SparseTensor:
    keep = ((places >= begin) & (places < begin + length)).all(axis=1)
    return _taken(x, places - begin, np.flatnonzero(keep), length)


def split(sp_input: Any = None, num_split: Any = None, axis: Any = None, name: str | None = None) -> Any:
    """Splits a sparse tensor into `num_split` parts along `axis`; if sizes differ, the first ones are larger by 1.

    Returns:
      A list of sparse tensors.
    """
    for value, what in ((sp_input, "sp_input"), (num_split, "num_split"), (axis, "axis")):
        if value is None:
            raise ValueError(f"{what} is required")
    x = as_sparse(sp_input)
    sizes, n, at = sizes_of(x), index(num_split), int(array_of(axis))
    if not -len(sizes) <= at < len(sizes):
        raise InvalidArgumentError(
            f"split: Input axis should be in range [{-len(sizes)}, {len(sizes)}), got {at}"
        )
    at %= len(sizes)
    if not 1 <= n <= sizes[at]:
        raise InvalidArgumentError(
            "split: Input num_split should be between 1 and the splitting dimension size "
            f"({sizes[at]}), got {n}"
        )
    places, out, start = places_of(x), [], 0
    for k in range(n):
        begin, length = np.zeros(len(sizes), np.int64), np.array(sizes)
        begin[at], length[at] = start, sizes[at] // n + (k < sizes[at] % n)
        start += length[at]
        out.append(_cut(x, places, begin, length))
    return out


def mask(a: Any, mask_indices: Any, name: str | None = None) -> Any:
    """The rows of a `tf.IndexedSlices` whose indices are not in `mask_indices`."""
    if not isinstance(a, IndexedSlices):
        raise TypeError(f"mask: expected a tf.IndexedSlices; got {type(a).__name__}.")
    keep = np.flatnonzero(~np.isin(array_of(as_tensor(a.indices)), array_of(as_tensor(mask_indices))))
    return IndexedSlices(gather(a.values, keep), gather(a.indices, keep), a.dense_shape)


# ---- together -------------------------------------------------------------------------------------


def concat(axis: Any, sp_inputs: Any, expand_nonconcat_dims: Any = False, name: str | None = None) -> Any:
    """Concatenates sparse tensors along `axis`.

    Args:
      expand_nonconcat_dims: whether the other sizes may differ; the result then has the largest ones.
    """
    if not isinstance(sp_inputs, (list, tuple)):
        raise TypeError("Inputs must be a list or tuple.")
    xs = [as_sparse(x) for x in sp_inputs]
    if not xs:
        raise InvalidArgumentError("concat: expected at least one sparse tensor; got none.")
    if len(xs) == 1:
        return xs[0]
    at, shapes = int(array_of(axis)), [sizes_of(x) for x in xs]
    rank = len(shapes[0])
    for k, (x, shape) in enumerate(zip(xs, shapes, strict=True)):
        if x.dtype != xs[0].dtype:
            raise InvalidArgumentError(
                f"cannot compute SparseConcat as input #{k} was expected to be a {xs[0].dtype.name} tensor but is a "
                f"{x.dtype.name} tensor"
            )
        if len(shape) != rank:
            raise InvalidArgumentError(
                f"concat: Ranks of all input tensors must match: expected {rank} but got {len(shape)} at position {k}"
            )
    if not -rank <= at < rank:
        raise InvalidArgumentError(f"concat: Concat dimension must be in range [{-rank}, {rank}), got {at}")
    at %= rank
    sizes = np.max(shapes, axis=0).tolist()
    if not expand_nonconcat_dims:
        for k, shape in enumerate(shapes):
            for d in range(rank):
                if d != at and shape[d] != shapes[0][d]:
                    raise InvalidArgumentError(
                        f"concat: Input shapes must match: expected {shapes[0][d]} for dimension {d} but got "
                        f"{shape[d]} at position {k}"
                    )
    starts = np.cumsum([0, *(shape[at] for shape in shapes)])
    sizes[at] = int(starts[-1])
    parts = []
    for x, begin in zip(xs, starts, strict=False):
        places = places_of(x).copy()
        places[:, at] += begin
        parts.append(places)
    together = np.concatenate(parts)
    order, values = order_of(together, sizes), join([x.values for x in xs], 0)
    if order is not None:
        together, values = together[order], gather(values, order)
    return make_sparse(together, values, sizes)


def fill_empty_rows(sp_input: Any, default_value: Any, name: str | None = None) -> Any:
    """Adds `default_value` at the beginning of each row without elements; also returns which rows these are.

    Returns:
      The sparse tensor, with elements in row order, and a vector of booleans.
    """
    x = as_sparse(sp_input)
    default = convert_to_tensor(default_value, x.dtype)
    if default.ndim:
        raise InvalidArgumentError(f"fill_empty_rows: default_value must be a scalar, saw: {default.shape}")
    places, sizes = places_of(x), sizes_of(x)
    rows = places[:, 0]
    if len(rows) and sizes[0] == 0:
        raise InvalidArgumentError(
            f"fill_empty_rows: Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = {len(rows)}"
        )
    outside = (rows < 0) | (rows >= sizes[0])
    if outside.any():
        k = int(outside.argmax())
        raise InvalidArgumentError(f"fill_empty_rows: indices({k}, 0) is invalid: {rows[k]} >= {sizes[0]}")
    empty = np.ones(want_room(sizes[0], item=8 * len(sizes)), bool)
    empty[rows] = False
    missing = np.flatnonzero(empty)
    new = np.zeros([len(missing), len(sizes)], np.int64)
    new[:, 0] = missing
    places = np.concatenate([places, new])
    order = np.argsort(places[:, 0], kind="stable")
    values = join([x.values, fill([len(missing)], reshape_dense(default, []))], 0)
    return make_sparse(places[order], gather(values, order), sizes), as_tensor(empty)
