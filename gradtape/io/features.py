"""What to look for in examples (FixedLenFeature and its relatives), and what gradtape does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gradtape._src.base import dtypes
from gradtape._src.base.errors import UnimplementedError


class FixedLenFeature(NamedTuple):
    """A feature with the same number of values in every example.

    Attributes:
      shape: of the values; `[]` for one.
      dtype: int64, float32 or string.
      default_value: for examples without it; None if it must be there.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature with any number of values, which comes as a `tf.SparseTensor`."""

    dtype: Any


class SparseFeature(NamedTuple):
    """A `tf.SparseTensor` that is stored as two features, or more: its values, and their places along each axis.

    Attributes:
      index_key: the feature that holds the places; a list of them if there are several axes.
      value_key: the feature that holds the values.
      dtype: of the values.
      size: of the axis, or of all of them.
      already_sorted: whether places are in order.
    """

    index_key: Any
    value_key: Any
    dtype: Any
    size: Any
    already_sorted: bool = False


class RowSplits(NamedTuple):
    """Rows by the feature that holds where they begin, and where the last one ends."""

    key: str


class RowLengths(NamedTuple):
    """Rows by the feature that holds their lengths."""

    key: str


class RowStarts(NamedTuple):
    """Rows by the feature that holds where they begin."""

    key: str


class RowLimits(NamedTuple):
    """Rows by the feature that holds where they end."""

    key: str


class ValueRowIds(NamedTuple):
    """Rows by the feature that holds the row of each value."""

    key: str


class UniformRowLength(NamedTuple):
    """Rows of one length."""

    length: int


class _RaggedFeature(NamedTuple):
    dtype: Any
    value_key: Any = None
    partitions: Any = ()
    row_splits_dtype: Any = dtypes.int32
    validate: bool = False


class RaggedFeature(_RaggedFeature):
    """A feature that comes as a `tf.RaggedTensor`.

    Attributes:
      dtype: int64, float32 or string.
      value_key: the feature that holds the values; that of the same name by default.
      partitions: how values are rows, and rows are rows, from the outside: `RaggedFeature.RowSplits(key)` and so on.
      row_splits_dtype: int32 or int64.
      validate: whether partitions are looked at.
    """

    RowSplits, RowLengths, RowStarts, RowLimits = RowSplits, RowLengths, RowStarts, RowLimits
    ValueRowIds, UniformRowLength = ValueRowIds, UniformRowLength


class FixedLenSequenceFeature(NamedTuple):
    """A feature with any number of blocks of one shape; a batch is filled up to the longest.

    Attributes:
      shape: of a block.
      dtype: int64, float32 or string.
      allow_missing: whether an example may be without it.
      default_value: what a batch is filled up with; zeros by default.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


def _refused(name: str, why: str) -> Callable:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise UnimplementedError(f"tf.io.{name}: {why}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Not part of gradtape: {why}"
    return refuse


_NO_PROTO = (
    "messages need their descriptions. Hint: Python's package protobuf, and tf.train.Example for examples."
)
decode_proto = _refused("decode_proto", _NO_PROTO)
encode_proto = _refused("encode_proto", _NO_PROTO)
write_graph = _refused("write_graph", "gradtape has no graph files. Hint: tf.saved_model.")
