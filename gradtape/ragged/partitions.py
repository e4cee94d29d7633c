"""`RowPartition`: divides a list of values into rows; made from splits, lengths, row ids, starts or limits.

It has no values. A ragged tensor has one for each of its ragged dimensions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as tf
from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape.ragged import rows

INTEGERS = (dtypes.int32, dtypes.int64)
INTERNAL = object()  # the token that the private constructors require


def as_partition(value: Any, name: str, dtype: Any = None, hint: Any = None) -> Any:
    """An argument that gives positions of rows, as a tensor of int64, or int32 if it is one."""
    if dtype is None and not isinstance(value, (tf.Tensor, tf.Variable)):
        array = np.asarray(value)
        if array.dtype != np.int32 or not isinstance(value, np.ndarray):
            dtype = hint or dtypes.int64
            if array.dtype.kind not in "iu" and array.size:
                dtype = None
    tensor = tf.convert_to_tensor(value, dtype)
    if tensor.dtype not in INTEGERS:
        raise ValueError(f"{name} must have dtype int32 or int64; got {tensor.dtype.name}.")
    return tensor


def check_flag(validate: Any) -> None:
    """Raises if `validate` is not a bool."""
    if not isinstance(validate, bool):
        raise TypeError(f"Argument `validate` must have type bool. Received {validate}.")


def _vector(value: Any, name: str, validate: Any, dtype: Any, hint: Any) -> Any:
    """A vector argument of a partition."""
    check_flag(validate)
    tensor = as_partition(value, name, dtype, hint)
    _check_rank(tensor, 1)
    return tensor


def _check_rank(tensor: Any, rank: int) -> None:
    if tensor.shape.rank is not None and tensor.shape.rank != rank:
        raise ValueError(f"Shape {tensor.shape} must have rank {rank}")


def _ascending(tensor: Any, message: str) -> None:
    """Raises if the numbers decrease."""
    if not rows.is_known(tensor):
        tf.debugging.assert_non_negative(tensor[1:] - tensor[:-1], message=message)
        return
    steps = np.diff(rows.array_of(tensor))
    if (steps < 0).any():
        at = rows.first(steps < 0)
        pair = rows.array_of(tensor)[at : at + 2]
        raise InvalidArgumentError(
            f"{message}\nCondition x >= 0 did not hold: number {at + 1} is {pair[1]}, after {pair[0]}; "
            "they must not decrease."
        )


def _check(tensor: Any, relation: str, bound: Any, message: str) -> None:
    """Raises if a number does not have this relation to a bound."""
    if not (rows.is_known(tensor) and (not isinstance(bound, tf.Tensor) or rows.is_known(bound))):
        _ASSERTIONS[relation](tensor, bound, message=message)
        return
    array, limit = rows.array_of(tensor), rows.array_of(bound)
    wrong = ~_RELATIONS[relation](array, limit)
    if wrong.any():
        where = f" at {rows.first(wrong)}" if array.ndim else ""
        value = array[wrong][0] if array.ndim else array
        raise InvalidArgumentError(
            f"{message}\nCondition x {relation} y did not hold{where}: got x = {value}, y = {limit}."
        )


_RELATIONS = {"==": np.equal, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}
_ASSERTIONS = {
    "==": tf.debugging.assert_equal,
    ">=": tf.debugging.assert_greater_equal,
    "<": tf.debugging.assert_less,
    "<=": tf.debugging.assert_less_equal,
}


def _splits_of(lengths: Any) -> Any:
    if rows.is_known(lengths):
        return rows.tensor_of(rows.splits_of(rows.array_of(lengths)))
    return tf.concat([tf.zeros([1], lengths.dtype), tf.cumsum(lengths)], 0)


@one_call
def _splits_of_ids(ids: Any, nrows: Any) -> Any:
    lengths = rows.lengths_of(np.maximum(rows.array_of(ids), 0), int(rows.array_of(nrows)))
    return rows.tensor_of(rows.splits_of(lengths))


@one_call
def row_splits_to_ids(splits: Any) -> Any:
    """The row of each value."""
    return rows.tensor_of(rows.ids_of(rows.array_of(splits)))


@one_call
def row_splits_to_offsets(splits: Any) -> Any:
    """The position of each value in its row."""
    return rows.tensor_of(rows.offsets_of(rows.array_of(splits)))


class RowPartition:
    """Divides a list of values into rows.

    Use one of its `from_...` methods to make one.

    >>> import gradtape as tf
    >>> p = tf.experimental.RowPartition.from_row_lengths([2, 0, 3])
    >>> p.row_splits().numpy().tolist(), p.value_rowids().numpy().tolist()
    ([0, 2, 2, 5], [0, 0, 2, 2, 2])
    """

    __slots__ = (
        "_row_splits",
        "_row_lengths",
        "_value_rowids",
        "_nrows",
        "_uniform_row_length",
        "_nvals",
        "__weakref__",
    )

    def __init__(
        self,
        row_splits: Any,
        row_lengths: Any = None,
        value_rowids: Any = None,
        nrows: Any = None,
        uniform_row_length: Any = None,
        nvals: Any = None,
        internal: Any = None,
    ) -> None:
        if internal is not INTERNAL:
            raise ValueError(
                "RowPartition constructor is private; please use one of the factory methods instead "
                "(e.g., RowPartition.from_row_lengths())"
            )
        self._row_splits = row_splits
        self._row_lengths = row_lengths
        self._value_rowids = value_rowids
        self._nrows = nrows
        self._uniform_row_length = uniform_row_length
        self._nvals = nvals

    # ---- constructors -----------------------------------------------------------------------------

    @classmethod
    def from_row_splits(
        cls, row_splits: Any, validate: bool = True, dtype: Any = None, dtype_hint: Any = None
    ) -> RowPartition:
        """Row i consists of the values from `row_splits[i]` to `row_splits[i + 1]`."""
        if isinstance(row_splits, (list, tuple)) and not row_splits:
            raise ValueError("row_splits tensor may not be empty.")
        splits = _vector(row_splits, "row_splits", validate, dtype, dtype_hint)
        if validate:
            message = "Arguments to from_row_splits do not form a valid RaggedTensor:"
            if splits.shape[0] == 0:
                raise InvalidArgumentError(f"{message} row_splits may not be empty.")
            _check(splits[0], "==", 0, message + "zero")
            _ascending(splits, message + "monotonic")
        return cls(splits, internal=INTERNAL)

    @classmethod
    def from_row_lengths(
        cls, row_lengths: Any, validate: bool = True, dtype: Any = None, dtype_hint: Any = None
    ) -> RowPartition:
        """Row i consists of `row_lengths[i]` values."""
        lengths = _vector(row_lengths, "row_lengths", validate, dtype, dtype_hint)
        if validate:
            _check(lengths, ">=", 0, "Arguments to from_row_lengths do not form a valid RowPartition")
        return cls(_splits_of(lengths), row_lengths=lengths, internal=INTERNAL)

    @classmethod
    def from_value_rowids(
        cls,
        value_rowids: Any,
        nrows: Any = None,
        validate: bool = True,
        dtype: Any = None,
        dtype_hint: Any = None,
    ) -> RowPartition:
        """Value i is in row `value_rowids[i]`; row ids must not decrease."""
        check_flag(validate)
        ids = as_partition(value_rowids, "value_rowids", dtype, dtype_hint)
        given = None if nrows is None else tf.convert_to_tensor(nrows, ids.dtype)
        has_values = rows.is_known(ids)
        if given is not None and rows.is_known(given):
            number = int(rows.array_of(given)) if given.shape.rank == 0 else 0
            if number < 0:
                raise ValueError(f"Expected nrows >= 0; got {number}")
            if has_values and ids.shape.rank == 1 and ids.shape[0]:
                last = int(rows.array_of(ids)[-1])
                if number < last + 1:
                    raise ValueError(
                        f"Expected nrows >= value_rowids[-1] + 1; got nrows={number}, value_rowids[-1]={last}"
                    )
        _check_rank(ids, 1)
        if given is not None:
            _check_rank(given, 0)
        if validate:
            message = "Arguments to from_value_rowids do not form a valid RowPartition"
            _check(ids[:1], ">=", 0, message)
            _ascending(ids, message)
            if given is not None:
                _check(ids[-1:], "<", given, message)
        if given is None:
            given = tf.concat([ids[-1:], tf.convert_to_tensor([-1], ids.dtype)], 0)[0] + 1
        return cls(_splits_of_ids(ids, given), value_rowids=ids, nrows=given, internal=INTERNAL)

    @classmethod
    def from_row_starts(
        cls, row_starts: Any, nvals: Any, validate: bool = True, dtype: Any = None, dtype_hint: Any = None
    ) -> RowPartition:
        """Row i starts at `row_starts[i]` and ends where the next one starts, the last one at `nvals`."""
        starts = _vector(row_starts, "row_starts", validate, dtype, dtype_hint)
        count = tf.cast(nvals, starts.dtype)
        if validate:
            message = "Arguments to from_row_starts do not form a valid RaggedTensor"
            _check(starts[:1], "==", 0, message)
            _ascending(starts, message)
            _check(starts[-1:], "<=", count, message)
        return cls(tf.concat([starts, tf.reshape(count, [1])], 0), nvals=count, internal=INTERNAL)

    @classmethod
    def from_row_limits(
        cls, row_limits: Any, validate: bool = True, dtype: Any = None, dtype_hint: Any = None
    ) -> RowPartition:
        """Row i ends at `row_limits[i]`, where the next one starts."""
        limits = _vector(row_limits, "row_limits", validate, dtype, dtype_hint)
        if validate:
            message = "Arguments to from_row_limits do not form a valid RaggedTensor"
            _check(limits[:1], ">=", 0, message)
            _ascending(limits, message)
        return cls(tf.concat([tf.zeros([1], limits.dtype), limits], 0), internal=INTERNAL)

    @classmethod
    def from_uniform_row_length(
        cls,
        uniform_row_length: Any,
        nvals: Any = None,
        nrows: Any = None,
        validate: bool = True,
        dtype: Any = None,
        dtype_hint: Any = None,
    ) -> RowPartition:
        """All rows have the same length; given are `nvals` values, or `nrows` rows."""
        check_flag(validate)
        if nvals is None and nrows is None:
            raise ValueError("Either (or both) of nvals and nrows must be specified")
        arrays = [v for v in (uniform_row_length, nvals, nrows) if isinstance(v, (tf.Tensor, np.ndarray))]
        hint = next((dtypes.as_dtype(v.dtype) for v in arrays), dtype_hint) if dtype is None else dtype
        length: Any
        values: Any
        count: Any
        length, values, count = (
            None if v is None else as_partition(v, name, dtype, hint)
            for v, name in ((uniform_row_length, "uniform_row_length"), (nvals, "nvals"), (nrows, "nrows"))
        )
        _check_rank(length, 0)
        if count is None:
            if not rows.is_known(length):
                count = tf.math.floordiv(values, tf.maximum(length, 1))
            else:
                n = int(rows.array_of(length))
                count = tf.math.floordiv(values, n) if n > 0 else tf.convert_to_tensor(0, length.dtype)
        elif values is None:
            values = count * length
        if validate:
            if all(map(rows.is_known, (length, values, count))):
                n, v, c = (int(rows.array_of(t)) for t in (length, values, count))
                if n * c != v:
                    raise ValueError(f"uniform_row_length={n} times nrows={c} must equal nvals={v}")
                if n < 0:
                    raise ValueError("uniform_row_length must be >= 0.")
            else:
                tf.debugging.assert_equal(
                    count * length, values, message="uniform_row_length times nrows must equal nvals"
                )
                tf.debugging.assert_greater_equal(length, 0, message="uniform_row_length must be >= 0.")
        splits = tf.range(count + 1, dtype=length.dtype) * length
        return cls(splits, uniform_row_length=length, nrows=count, nvals=values, internal=INTERNAL)

    # ---- properties -------------------------------------------------------------------------------

    @property
    def dtype(self) -> dtypes.DType:
        """The integer type of the splits."""
        return dtypes.as_dtype(self._row_splits.dtype)

    def row_splits(self) -> Any:
        """The positions at which rows begin and end: one number more than there are rows."""
        return self._row_splits

    def value_rowids(self) -> Any:
        """The row of each value."""
        if self._value_rowids is None:
            ids = row_splits_to_ids(self._row_splits)
            if not rows.is_known(ids):
                return ids
            self._value_rowids = ids
        return self._value_rowids

    def nvals(self) -> Any:
        """The number of values."""
        return self._row_splits[-1]

    def nrows(self) -> Any:
        """The number of rows."""
        if self._nrows is None:
            n = self._row_splits.shape[0]
            if n is None:
                return tf.shape(self._row_splits, out_type=self.dtype)[0] - 1
            self._nrows = tf.convert_to_tensor(n - 1, self.dtype)
        return self._nrows

    def uniform_row_length(self) -> Any:
        """The length of all rows, or None if they may differ."""
        return self._uniform_row_length

    def row_starts(self) -> Any:
        """The position at which each row begins."""
        return self._row_splits[:-1]

    def row_limits(self) -> Any:
        """The position at which each row ends."""
        return self._row_splits[1:]

    def row_lengths(self) -> Any:
        """How many values each row has."""
        if self._row_lengths is not None:
            return self._row_lengths
        return self._row_splits[1:] - self._row_splits[:-1]

    def offsets_in_rows(self) -> Any:
        """The position of each value in its row."""
        return row_splits_to_offsets(self._row_splits)

    @property
    def static_nrows(self) -> int | None:
        """The number of rows, if it is known while a function is traced."""
        n = self._row_splits.shape[0]
        return None if n is None else n - 1

    @property
    def static_nvals(self) -> int | None:
        """The number of values, if it is known while a function is traced."""
        if self._nvals is not None and rows.is_known(self._nvals):
            return int(rows.array_of(self._nvals))
        return None if self._value_rowids is None else self._value_rowids.shape[0]

    @property
    def static_uniform_row_length(self) -> int | None:
        """The length of all rows, if they are uniform and it is known while a function is traced."""
        length = self._uniform_row_length
        return None if length is None or not rows.is_known(length) else int(rows.array_of(length))

    def is_uniform(self) -> bool:
        """Whether it was made from rows of equal length."""
        return self._uniform_row_length is not None

    def with_dtype(self, dtype: Any) -> RowPartition:
        """The same with splits of another integer type."""
        dtype = dtypes.as_dtype(dtype)
        if dtype not in INTEGERS:
            raise ValueError("dtype must be int32 or int64")
        if dtype == self.dtype:
            return self
        parts = {
            "row_lengths": self._row_lengths,
            "value_rowids": self._value_rowids,
            "nrows": self._nrows,
            "uniform_row_length": self._uniform_row_length,
            "nvals": self._nvals,
        }
        cast = {k: tf.cast(p, dtype) for k, p in parts.items() if p is not None}
        return RowPartition(tf.cast(self._row_splits, dtype), internal=INTERNAL, **cast)

    def array(self) -> np.ndarray:
        """The splits as an array; see `rows.array_of`."""
        return rows.array_of(self._row_splits)

    def __repr__(self) -> str:
        if self._uniform_row_length is not None:
            return f"tf.RowPartition(nrows={self._nrows}, uniform_row_length={self._uniform_row_length})"
        return f"tf.RowPartition(row_splits={self._row_splits})"
