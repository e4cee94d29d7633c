"""`RaggedTensor`: values, and their partition into rows; its properties and its text.

Its constructors are in `making.py`; its operators, slices, conversions and reductions are in other modules of this
folder, and `methods.py` adds them to the class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as tf
from gradtape._src.base import dtypes
from gradtape._src.base.shape import TensorShape
from gradtape._src.tensors.composite import CompositeTensor, WithValuesCompositeTensorGradient
from gradtape.ragged import rows
from gradtape.ragged.making import MadeOfRows, as_values
from gradtape.ragged.partitions import INTEGERS, INTERNAL, RowPartition


class RaggedTensor(MadeOfRows, CompositeTensor):
    """A tensor whose rows may have different lengths.

    It is made by `tf.ragged.constant` or one of its `from_...` methods, and consists of a tensor with the values of
    all rows, one after the other (`values`), and the positions at which rows begin and end (`row_splits`). If
    `values` is ragged itself, there are several ragged dimensions. Element-wise functions, operators, reductions,
    and functions that move elements (`tf.concat`, `tf.gather`, ...) accept it like a tensor, and tapes follow the
    values.

    >>> import gradtape as tf
    >>> rt = tf.RaggedTensor.from_row_splits([3, 1, 4, 1, 5], [0, 2, 2, 5])
    >>> rt
    <tf.RaggedTensor [[3, 1], [], [4, 1, 5]]>
    >>> tf.reduce_sum(rt * 10, axis=1).numpy().tolist()
    [40, 0, 100]
    >>> rt.to_tensor().numpy().tolist()
    [[3, 1, 0], [0, 0, 0], [4, 1, 5]]
    """

    _is_tensor = True

    __slots__ = ("_values", "_row_partition", "__weakref__")

    # Otherwise NumPy would treat it as an object array and add it to each element.
    __array_ufunc__ = None
    __array_priority__ = 200

    # Gradients are those of the values, in the same rows.
    __composite_gradient__ = WithValuesCompositeTensorGradient()

    # Added by `methods.py`.
    to_tensor: Callable[..., Any]
    to_sparse: Callable[..., Any]
    __getitem__: Callable[..., Any]

    def __init__(self, values: Any, row_partition: RowPartition, internal: Any = None) -> None:
        if internal is not INTERNAL:
            raise ValueError(
                "RaggedTensor constructor is private; please use one of the factory methods instead "
                "(e.g., RaggedTensor.from_row_lengths())"
            )
        self._values = values
        self._row_partition = row_partition

    # ---- properties ------------------------------------------------------------------------------

    @property
    def dtype(self) -> dtypes.DType:
        """The type of the values."""
        return self._values.dtype

    @property
    def shape(self) -> TensorShape:
        """The sizes; None for a ragged dimension."""
        partition = self._row_partition
        shape = TensorShape([partition.static_nrows, partition.static_uniform_row_length])
        return shape.concatenate(self._values.shape[1:])

    def get_shape(self) -> TensorShape:
        """The same as `shape`."""
        return self.shape

    @property
    def ragged_rank(self) -> int:
        """The number of ragged partitions."""
        values = self._values
        return 1 + (values.ragged_rank if isinstance(values, RaggedTensor) else 0)

    @property
    def values(self) -> Any:
        """All rows, concatenated: a tensor, or a ragged tensor with one ragged dimension less."""
        return self._values

    @property
    def flat_values(self) -> Any:
        """The innermost values, a dense tensor."""
        values = self._values
        while isinstance(values, RaggedTensor):
            values = values._values
        return values

    @property
    def _nested_row_partitions(self) -> tuple[RowPartition, ...]:
        partitions, values = [], self
        while isinstance(values, RaggedTensor):
            partitions.append(values._row_partition)
            values = values._values
        return tuple(partitions)

    @property
    def row_splits(self) -> Any:
        """The positions at which rows begin and end: row i is `values[row_splits[i]:row_splits[i + 1]]`."""
        return self._row_partition.row_splits()

    @property
    def nested_row_splits(self) -> tuple:
        """The splits of all ragged dimensions, outermost first."""
        return tuple([p.row_splits() for p in self._nested_row_partitions])

    @property
    def uniform_row_length(self) -> Any:
        """The length of all rows if the dimension is uniform, otherwise None."""
        return self._row_partition.uniform_row_length()

    def value_rowids(self, name: str | None = None) -> Any:
        """The row of each value."""
        return self._row_partition.value_rowids()

    def nested_value_rowids(self, name: str | None = None) -> tuple:
        """The row ids of all ragged dimensions, outermost first."""
        return tuple([p.value_rowids() for p in self._nested_row_partitions])

    def nrows(self, out_type: Any = None, name: str | None = None) -> Any:
        """The number of rows."""
        count = self._row_partition.nrows()
        return count if out_type is None else tf.cast(count, out_type)

    def row_starts(self, name: str | None = None) -> Any:
        """The position at which each row begins."""
        return self._row_partition.row_starts()

    def row_limits(self, name: str | None = None) -> Any:
        """The position at which each row ends."""
        return self._row_partition.row_limits()

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """The number of values in each row.

        Args:
          axis: the dimension; for an inner one the result is ragged.
        """
        if axis not in (0, 1):
            axis = positive_axis(axis, self.shape.rank, bound="rank(self)")
        if axis == 0:
            return self._row_partition.nrows()
        if axis == 1:
            return self._row_partition.row_lengths()
        if isinstance(self._values, RaggedTensor):
            return self.with_values(self._values.row_lengths(axis - 1))
        shape = tf.shape(self._values, out_type=self._row_partition.dtype)
        return self.with_values(tf.ones(shape[: axis - 1], self._row_partition.dtype) * shape[axis - 1])

    def nested_row_lengths(self, name: str | None = None) -> tuple:
        """The row lengths of all ragged dimensions, outermost first."""
        return tuple([p.row_lengths() for p in self._nested_row_partitions])

    def bounding_shape(self, axis: Any = None, name: str | None = None, out_type: Any = None) -> Any:
        """The smallest shape of a dense tensor that can hold all rows.

        Args:
          axis: an axis, or several, instead of all of them.
        """
        dtype = self._row_partition.dtype
        lengths = [tf.maximum(_largest(p.row_lengths()), 0) for p in self._nested_row_partitions]
        ragged = tf.stack([tf.cast(self._row_partition.nrows(), dtype), *lengths])
        box = tf.concat([ragged, tf.shape(self.flat_values, out_type=dtype)[1:]], 0)
        box = box if out_type is None else tf.cast(box, out_type)
        return box if axis is None else tf.gather(box, axis)

    # ---- other values, other splits ---------------------------------------------------------------

    def with_values(self, new_values: Any) -> RaggedTensor:
        """The same rows with other values, of the same number."""
        new_values = as_values(new_values)
        new_values.shape.with_rank_at_least(1)
        self._values.shape[:1].assert_is_compatible_with(new_values.shape[:1])
        if (
            isinstance(new_values, RaggedTensor)
            and new_values._row_partition.dtype != self._row_partition.dtype
        ):
            raise ValueError(
                "self and new_values have mismatched row_splits dtypes; use RaggedTensor.with_row_splits_dtype() to convert "
                "them to compatible dtypes."
            )
        return RaggedTensor(new_values, self._row_partition, internal=INTERNAL)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """The same rows with other innermost values."""
        if isinstance(self._values, RaggedTensor):
            return RaggedTensor(
                self._values.with_flat_values(new_values), self._row_partition, internal=INTERNAL
            )
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        """The same with splits of int32 or int64."""
        dtype = dtypes.as_dtype(dtype)
        if dtype not in INTEGERS:
            raise ValueError(f"Argument `row_splits` dtype must be int32 or int64. Received {dtype!r}.")
        if dtype == self._row_partition.dtype:
            return self
        values = self._values
        if isinstance(values, RaggedTensor):
            values = values.with_row_splits_dtype(dtype)
        return RaggedTensor(values, self._row_partition.with_dtype(dtype), internal=INTERNAL)

    def consumers(self) -> list:
        """The ops that use it: none in eager mode."""
        return []

    # ---- as Python values ---------------------------------------------------------------------------

    def _is_known(self) -> bool:
        return all(map(rows.is_known, (self.flat_values, *self.nested_row_splits)))

    def numpy(self) -> np.ndarray:
        """The values as an array; if row lengths differ, an object array with an array for each row."""
        if not self._is_known():
            raise ValueError("RaggedTensor.numpy() is only supported in eager mode.")
        values = self._values.numpy()
        splits = self._row_partition.array()
        parts = [values[a:b] for a, b in zip(splits[:-1], splits[1:], strict=True)]
        if not parts:
            return np.zeros((0, 0, *values.shape[1:]), values.dtype)
        if all(len(part) == len(parts[0]) for part in parts):
            return np.array(parts)
        out = np.empty(len(parts), object)
        out[:] = parts
        return out

    def to_list(self) -> list:
        """The values as nested lists."""
        if not self._is_known():
            raise ValueError("to_list can only be used in eager mode.")
        values = self._values
        flat = values.to_list() if isinstance(values, RaggedTensor) else values.numpy().tolist()
        splits = self._row_partition.array().tolist()
        return [flat[a:b] for a, b in zip(splits[:-1], splits[1:], strict=True)]

    def __repr__(self) -> str:
        if not self._is_known():
            return f"tf.RaggedTensor(values={self._values}, row_splits={self.row_splits})"
        return f"<tf.RaggedTensor {_text(self.numpy())}>"

    def _printed(self, summarize: int, text: Callable[[Any], str]) -> str:
        return _shortened(self.to_list(), summarize)

    def __bool__(self) -> bool:
        raise TypeError("RaggedTensor may not be used as a boolean.")

    def __hash__(self) -> int:
        raise TypeError("RaggedTensor is unhashable.")


def _text(x: Any) -> str:
    if not isinstance(x, np.ndarray):
        return str(x)
    if not x.size:
        return repr(x.tolist())
    return np.array2string(x, separator=", ", formatter={"all": _text})  # type: ignore[arg-type]


def _shortened(x: Any, most: int) -> str:
    """Nested lists in the form of `tf.print`: the first and last `most` items of each; all if it is negative."""
    if isinstance(x, list):
        inside = [_shortened(item, most) for item in x]
        if most >= 0 and len(x) > 2 * most:
            inside = [*inside[:most], "...", *inside[len(x) - most :]]
        return f"[{', '.join(inside)}]"
    if isinstance(x, bool):
        return "true" if x else "false"
    if isinstance(x, bytes):
        escaped = x.decode(errors="replace").replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    return f"{x:f}" if isinstance(x, float) else str(x)


def is_ragged(value: Any) -> bool:
    """Whether a value is a ragged tensor."""
    return isinstance(value, RaggedTensor)


def make(values: Any, splits: np.ndarray, dtype: Any = None) -> RaggedTensor:
    """A ragged tensor from values and an array of splits that are known to fit."""
    return RaggedTensor(
        values, RowPartition(rows.tensor_of(splits, dtype), internal=INTERNAL), internal=INTERNAL
    )


def rank_of(value: Any) -> int:
    """The number of dimensions, which must be known."""
    rank = value.shape.rank
    assert rank is not None
    return rank


def positive_axis(axis: Any, rank: int | None, name: str = "axis", bound: str = "ndims") -> int:
    """The index of an axis, counted from the first.

    Raises:
      ValueError: if there is no such axis.
    """
    if not isinstance(axis, (int, np.integer)):
        raise TypeError(f"{name} must be an int; got {type(axis).__name__}")
    axis = int(axis)
    if rank is None:
        if axis < 0:
            raise ValueError(f"{name}={axis} may only be negative if {bound} is statically known.")
        return axis
    if not -rank <= axis < rank:
        raise ValueError(f"{name}={axis} out of bounds: expected {-rank}<={name}<{rank}")
    return axis % rank


def match_splits(*tensors: Any) -> tuple:
    """Raises if ragged tensors have splits of different integer types."""
    types = {t._row_partition.dtype for t in tensors if isinstance(t, RaggedTensor)}
    if len(types) > 1:
        raise ValueError(
            "Input RaggedTensors have mismatched row_splits dtypes; use RaggedTensor.with_row_splits_dtype() to convert "
            "them to compatible dtypes."
        )
    return tensors


def splits_dtype(*tensors: Any) -> dtypes.DType:
    """The type of the splits of the ragged tensors among these."""
    match_splits(*tensors)
    return next((t._row_partition.dtype for t in tensors if isinstance(t, RaggedTensor)), dtypes.int64)


def _largest(lengths: Any) -> Any:
    """The largest of a list of lengths, 0 if there are none."""
    return tf.reduce_max(tf.concat([lengths, tf.zeros([1], lengths.dtype)], 0))
