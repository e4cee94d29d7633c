"""Constructors of ragged tensors: from values and splits, lengths, row ids, starts, limits or one length; and nested."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradtape as tf
from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape.ragged import rows
from gradtape.ragged.partitions import INTERNAL, RowPartition, as_partition, check_flag


class MadeOfRows:
    """The constructors of `RaggedTensor`, its only subclass."""

    __slots__ = ()

    _values: Any
    _row_partition: RowPartition
    nrows: Callable[..., Any]

    @classmethod
    def _from_row_partition(cls, values: Any, partition: RowPartition, validate: bool = True) -> Any:
        check_flag(validate)
        if not isinstance(partition, RowPartition):
            raise TypeError(f"Argument `row_partition` must be a RowPartition. Received {partition}.")
        values = as_values(values)
        if isinstance(values, MadeOfRows) and values._row_partition.dtype != partition.dtype:
            raise ValueError(
                f"Argument `row_partition` of RaggedTensor with name: partition must have same dtype as Argument `values`. "
                f"({partition.dtype!r} vs. {values._row_partition.dtype!r})."
            )
        if partition._value_rowids is not None:
            values.shape[:1].assert_is_compatible_with(partition._value_rowids.shape)
        if validate:
            _check_number_of_values(values, partition)
        return cls(values, partition, internal=INTERNAL)  # type: ignore[call-arg]

    @classmethod
    def _made(cls, values: Any, validate: bool, how: Callable, *arguments: Any) -> Any:
        """Values in a partition made by one of the constructors of partitions."""
        check_flag(validate)
        values = as_values(values)
        partition = how(*arguments, validate=validate, dtype_hint=_hint(values))
        return cls._from_row_partition(values, partition, validate)

    @classmethod
    def _nested(cls, values: Any, validate: bool, how: Callable, *levels: Any) -> Any:
        """Values in several partitions; `levels` are the arguments of each, outermost first."""
        for arguments in reversed(list(zip(*levels, strict=True))):
            values = how(values, *arguments, validate=validate)
        return values

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """Row i is `values[row_splits[i]:row_splits[i + 1]]`.

        Args:
          values: a tensor, or a ragged tensor.
          row_splits: integers that start with 0, do not decrease, and end with the number of values.
          validate: whether to check this.

        >>> import gradtape as tf
        >>> tf.RaggedTensor.from_row_splits([3, 1, 4], [0, 2, 2, 3])
        <tf.RaggedTensor [[3, 1], [], [4]]>
        """
        return cls._made(values, validate, RowPartition.from_row_splits, row_splits)

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """Row i consists of the next `row_lengths[i]` values.

        >>> import gradtape as tf
        >>> tf.RaggedTensor.from_row_lengths([3, 1, 4], [2, 0, 1])
        <tf.RaggedTensor [[3, 1], [], [4]]>
        """
        return cls._made(values, validate, RowPartition.from_row_lengths, row_lengths)

    @classmethod
    def from_value_rowids(
        cls,
        values: Any,
        value_rowids: Any,
        nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Value i is in row `value_rowids[i]`; row ids must not decrease.

        Args:
          nrows: the number of rows, if the last ones are empty.

        >>> import gradtape as tf
        >>> tf.RaggedTensor.from_value_rowids([3, 1, 4], [0, 0, 2], nrows=4)
        <tf.RaggedTensor [[3, 1], [], [4], []]>
        """
        return cls._made(values, validate, RowPartition.from_value_rowids, value_rowids, nrows)

    @classmethod
    def from_row_starts(
        cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """Row i starts at `row_starts[i]` and ends where the next one starts.

        >>> import gradtape as tf
        >>> tf.RaggedTensor.from_row_starts([3, 1, 4], [0, 2])
        <tf.RaggedTensor [[3, 1], [4]]>
        """
        check_flag(validate)
        values = as_values(values)
        return cls._made(values, validate, RowPartition.from_row_starts, row_starts, number_of_rows(values))

    @classmethod
    def from_row_limits(
        cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """Row i ends at `row_limits[i]`, where the next one starts.

        >>> import gradtape as tf
        >>> tf.RaggedTensor.from_row_limits([3, 1, 4], [2, 3])
        <tf.RaggedTensor [[3, 1], [4]]>
        """
        return cls._made(values, validate, RowPartition.from_row_limits, row_limits)

    @classmethod
    def from_uniform_row_length(
        cls,
        values: Any,
        uniform_row_length: Any,
        nrows: Any = None,
        validate: bool = True,
        name: str | None = None,
    ) -> Any:
        """All rows have the same length, which is part of the shape.

        Args:
          nrows: the number of rows; needed if their length is 0.

        >>> import gradtape as tf
        >>> tf.RaggedTensor.from_uniform_row_length([3, 1, 4, 1], 2).shape
        TensorShape([2, 2])
        """
        check_flag(validate)
        values = as_values(values)
        length = as_partition(uniform_row_length, "UniformRowLength", hint=_hint(values))
        count = number_of_rows(values, length.dtype)
        return cls._made(values, validate, RowPartition.from_uniform_row_length, length, count, nrows)

    @classmethod
    def from_nested_row_splits(
        cls, flat_values: Any, nested_row_splits: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """Several ragged dimensions, by splits, outermost first."""
        _check_list(nested_row_splits, "nested_row_splits")
        return cls._nested(flat_values, validate, cls.from_row_splits, nested_row_splits)

    @classmethod
    def from_nested_row_lengths(
        cls, flat_values: Any, nested_row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """Several ragged dimensions, by row lengths, outermost first."""
        _check_list(nested_row_lengths, "nested_row_lengths")
        return cls._nested(flat_values, validate, cls.from_row_lengths, nested_row_lengths)

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values: Any,
        nested_value_rowids: Any,
        nested_nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Several ragged dimensions, by row ids, outermost first."""
        _check_list(nested_value_rowids, "nested_value_rowids")
        if nested_nrows is None:
            nested_nrows = [None] * len(nested_value_rowids)
        _check_list(nested_nrows, "nested_nrows")
        if len(nested_nrows) != len(nested_value_rowids):
            raise ValueError(
                "Argument `nested_nrows` must have the same length as argument `nested_value_rowids`. "
                f"len(nested_nrows) = {len(nested_nrows)} vs. len(nested_values_rowids) = {len(nested_value_rowids)}."
            )
        return cls._nested(flat_values, validate, cls.from_value_rowids, nested_value_rowids, nested_nrows)

    @classmethod
    def _from_nested_row_partitions(cls, flat_values: Any, partitions: Any, validate: bool = True) -> Any:
        return cls._nested(flat_values, validate, cls._from_row_partition, partitions)


def as_values(value: Any, dtype: Any = None) -> Any:
    """A ragged tensor unchanged, anything else as a tensor."""
    return value if isinstance(value, MadeOfRows) else tf.convert_to_tensor(value, dtype)


def number_of_rows(value: Any, dtype: Any = dtypes.int64) -> Any:
    """The size of the first dimension."""
    if isinstance(value, MadeOfRows):
        return value.nrows(out_type=dtype)
    if not value.shape.rank and value.shape.rank is not None:
        raise InvalidArgumentError(
            "RaggedTensor: slice index 0 of dimension 0 out of bounds: the values of a ragged tensor have at least one "
            f"dimension; got {value}."
        )
    return tf.shape(value, out_type=dtype)[0]


def _hint(values: Any) -> Any:
    return values._row_partition.dtype if isinstance(values, MadeOfRows) else None


def _check_list(value: Any, name: str) -> None:
    if isinstance(value, tf.Tensor):
        raise TypeError(f"Argument `{name}` must be a list of Tensors. Received {value}.")


def _check_number_of_values(values: Any, partition: RowPartition) -> None:
    message = "Arguments to _from_row_partition do not form a valid RaggedTensor"
    count, splits = number_of_rows(values, partition.dtype), partition.row_splits()
    if not (rows.is_known(splits) and rows.is_known(count)):
        tf.debugging.assert_equal(splits[-1], count, message=message)
        return
    last, n = int(rows.array_of(splits)[-1]), int(rows.array_of(count))
    if last != n:
        raise InvalidArgumentError(
            f"{message}\nCondition x == y did not hold: the rows have {last} values, and there are {n}."
        )
