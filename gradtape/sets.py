"""`tf.sets`: treats rows along the last axis of tensors as sets, without order and repetitions."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src.base import errors
from gradtape._src.base.calls import one_call_each
from gradtape._src.base.room import want_room
from gradtape._src.ops.static import array_of
from gradtape._src.public import absent as _absent
from gradtape._src.tensors.conversion import as_tensor
from gradtape.sparse.ordering import check_inside
from gradtape.sparse.tensor import SparseTensor


def _rows(value: Any) -> tuple[dict, tuple[int, ...], Any]:
    """The set of values of each row that has any; the shape of the rows; the type."""
    if isinstance(value, SparseTensor):
        shape = tuple(int(d) for d in array_of(value.dense_shape))[:-1]
        sets: dict = {}
        check_inside("sets", array_of(value.indices), array_of(value.dense_shape).tolist())
        for place, v in zip(array_of(value.indices).tolist(), array_of(value.values).tolist(), strict=True):
            sets.setdefault(tuple(place[:-1]), set()).add(v)
        return sets, shape, value.dtype
    x = as_tensor(value)
    if x.ndim == 0:
        raise ValueError("sets: a set is the last axis of a tensor; got a scalar.")
    if not x.dtype.is_integer:
        raise TypeError(f"sets: expected integers; got {x.dtype.name}.")
    values = array_of(x)
    return (
        {place: set(values[place].tolist()) for place in np.ndindex(*values.shape[:-1])},
        values.shape[:-1],
        x.dtype,
    )


def _combined(a: Any, b: Any, how: Any) -> SparseTensor:
    first, shape, dtype = _rows(a)
    second, other, _ = _rows(b)
    if not shape:
        raise errors.InvalidArgumentError("sets: Shape has rank 1 < 2; expected rows of sets.")
    if shape != other:
        raise errors.InvalidArgumentError(f"sets: Mismatched group shape {list(shape)} vs {list(other)}.")
    nothing: set = set()
    places = sorted({*first, *second})
    out = {place: sorted(how(first.get(place, nothing), second.get(place, nothing))) for place in places}
    indices = [(*place, i) for place, row in out.items() for i in range(len(row))]
    values = [v for row in out.values() for v in row]
    most = max((len(row) for row in out.values()), default=0)
    return SparseTensor(
        np.array(indices, np.int64).reshape(len(indices), len(shape) + 1),
        np.array(values, dtype.as_numpy_dtype),
        np.array([*shape, most], np.int64),
    )


def intersection(a: Any, b: Any, validate_indices: Any = True) -> Any:
    """The elements that are in both sets, for each pair of rows."""
    return _combined(a, b, lambda x, y: x & y)


def union(a: Any, b: Any, validate_indices: Any = True) -> Any:
    """The elements that are in at least one of the sets, for each pair of rows."""
    return _combined(a, b, lambda x, y: x | y)


def difference(a: Any, b: Any, aminusb: Any = True, validate_indices: Any = True) -> Any:
    """The elements that are in `a` but not in `b` (or, with `aminusb=False`, in `b` but not in `a`), for each pair
    of rows."""
    return _combined(a, b, (lambda x, y: x - y) if aminusb else (lambda x, y: y - x))


def size(a: Any, validate_indices: Any = True) -> Any:
    """The number of distinct values in each row of a sparse tensor."""
    if not isinstance(a, SparseTensor):
        raise TypeError(f"Expected `SparseTensor`, got {a!r}.")
    sets, shape, _ = _rows(a)
    want_room(*shape, item=4)
    sizes = np.zeros(shape, np.int32)
    for place, values in sets.items():
        sizes[place] = len(values)
    return as_tensor(sizes)


one_call_each(globals())

__getattr__, __dir__ = _absent.of("sets")
