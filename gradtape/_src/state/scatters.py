"""Updates of parts of a variable: rows of an IndexedSlices, elements at coordinates; counting.

`Variable` inherits from this class. In a trace, and where a tape tracks assignments, they are ops on the whole value.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes, errors
from gradtape._src.base.contexts import unrecorded
from gradtape._src.base.trackable import Trackable
from gradtape._src.tensors import conversion
from gradtape._src.tensors.indexed_slices import IndexedSlices

# The order of the native core's `Combine` (core/ops/indices.h).
UPDATE, ADD, SUB, MAX, MIN, MUL, DIV = range(7)


class Scatters(Trackable):
    """The scatter methods of `Variable`."""

    __slots__ = ()
    _incoming: Any
    _read: Any
    _scatter: Any
    _set: Any
    _value_shape: Any
    assign: Any
    assign_add: Any
    value: Any

    def _scattered(self, mode: int, delta: Any, method: str) -> Any:
        if not isinstance(delta, IndexedSlices):
            raise TypeError(f"{method}: sparse_delta is not IndexedSlices: {delta!r}")
        updates, indices = self._incoming(delta.values), indices_of(delta.indices)
        shape = (*indices.shape, *tuple(self._value_shape)[1:])
        if updates.shape == () and shape:
            updates = ops.broadcast_to(updates, shape)
        self._combine(mode, indices, updates, True)
        return self

    def _combine(self, mode: int, indices: Any, updates: Any, rows: bool) -> None:
        """Combines slices of the value with updates: in place, or in a trace by ops."""
        if _core.current_trace() is None and _core.assign_tracker() is None:
            self._scatter(mode, indices, updates, rows)
            return
        with unrecorded() if _core.assign_tracker() is None else nullcontext():
            value = self._read()
            places = ops.expand_dims(indices, -1) if rows else indices
            if mode in (MUL, DIV):
                current = ops.gather_nd(value, places)
                mode, updates = UPDATE, current * updates if mode == MUL else current / updates
            combine = {
                UPDATE: ops.tensor_scatter_update, ADD: ops.tensor_scatter_add, SUB: ops.tensor_scatter_sub,
                MAX: ops.tensor_scatter_max, MIN: ops.tensor_scatter_min,
            }[mode]  # fmt: skip
            self._set(combine(value, places, updates))

    def load(self, value: Any, session: Any = None) -> None:
        """The same as `assign`, without a result."""
        self.assign(value)

    def count_up_to(self, limit: int) -> _core.Tensor:
        """Adds 1 while the value is below `limit`, and returns the value from before.

        Raises:
          OutOfRangeError: if the value has reached the limit.
        """
        before = self.value()
        if int(before) >= limit:
            raise errors.OutOfRangeError(None, None, f"count_up_to: Reached limit of {limit}")
        self.assign_add(1)
        return before

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Replaces the rows that an IndexedSlices names."""
        return self._scattered(UPDATE, sparse_delta, "scatter_update")

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Adds an IndexedSlices; a row named twice is added twice."""
        return self._scattered(ADD, sparse_delta, "scatter_add")

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Subtracts an IndexedSlices."""
        return self._scattered(SUB, sparse_delta, "scatter_sub")

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Multiplies the rows that an IndexedSlices names."""
        return self._scattered(MUL, sparse_delta, "scatter_mul")

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Divides the rows that an IndexedSlices names."""
        return self._scattered(DIV, sparse_delta, "scatter_div")

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Takes the smaller of the present rows and those of an IndexedSlices."""
        return self._scattered(MIN, sparse_delta, "scatter_min")

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Takes the larger of the present rows and those of an IndexedSlices."""
        return self._scattered(MAX, sparse_delta, "scatter_max")

    def batch_scatter_update(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Replaces rows in each entry of a batch: `indices` have shape `[batch..., n]`."""
        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError(f"batch_scatter_update: sparse_delta is not IndexedSlices: {sparse_delta!r}")
        rows = np.asarray(indices_of(sparse_delta.indices))
        *batch, rows_axis = np.indices(rows.shape, rows.dtype)
        del rows_axis
        return self._scatter_nd(UPDATE, np.stack([*batch, rows], -1), sparse_delta.values)

    def _scatter_nd(self, mode: int, indices: Any, updates: Any) -> Any:
        updates = self._incoming(updates)
        self._combine(mode, indices_of(indices), updates, False)
        return self

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Replaces the elements or slices at coordinates `indices`."""
        return self._scatter_nd(UPDATE, indices, updates)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Adds to the elements or slices at coordinates `indices`."""
        return self._scatter_nd(ADD, indices, updates)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtracts from the elements or slices at coordinates `indices`."""
        return self._scatter_nd(SUB, indices, updates)

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Takes the larger at coordinates `indices`."""
        return self._scatter_nd(MAX, indices, updates)

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Takes the smaller at coordinates `indices`."""
        return self._scatter_nd(MIN, indices, updates)


def tensor_of(value: Any, code: int) -> _core.Tensor:
    """`value` as a tensor of type number `code` (-1: its own), not recorded by tapes."""
    if isinstance(value, _core.Variable):
        value = value._peek()
    if isinstance(value, _core.Tensor) and code in (-1, value.dtype._code):
        return value
    return conversion.convert(value, code)


def indices_of(value: Any) -> _core.Tensor:
    t = tensor_of(value, -1)
    if t.dtype not in (dtypes.int32, dtypes.int64):
        raise errors.InvalidArgumentError(
            None,
            None,
            "scatter: `indices` must hold integers; expected int32 or int64; got "
            f"{t.dtype.name}{list(t.shape)}.",
        )
    return t
