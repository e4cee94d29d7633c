"""Specifications of features in examples (FixedLenFeature and its relatives), and functions that gradtape does not
have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gradtape._src.base import dtypes
from gradtape._src.base.errors import UnimplementedError


class FixedLenFeature(NamedTuple):
    """A feature with the same number of values in every example.

    Attributes:
      shape: the shape of the values; `[]` for a single one.
      dtype: int64, float32 or string.
      default_value: the value for examples without it; None if it is required.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature with any number of values, parsed to a `tf.SparseTensor`."""

    dtype: Any


class SparseFeature(NamedTuple):
    """A `tf.SparseTensor` stored as two or more features: its values, and their positions along each axis.

    Attributes:
      index_key: the feature with the positions; a list of them if there are several axes. value_key: the feature
      with the values. dtype: the type of the values. size: the size of the axis, or of all of them. already_sorted:
      whether positions are sorted.
    """

    index_key: Any
    value_key: Any
    dtype: Any
    size: Any
    already_sorted: bool = False


class RowSplits(NamedTuple):
    """Rows defined by a feature with the positions where they begin, and where the last one ends."""

    key: str


class RowLengths(NamedTuple):
    """Rows defined by a feature with their lengths."""

    key: str


class RowStarts(NamedTuple):
    """Rows defined by a feature with the positions where they begin."""

    key: str


class RowLimits(NamedTuple):
    """Rows defined by a feature with the positions where they end."""

    key: str


class ValueRowIds(NamedTuple):
    """Rows defined by a feature with the row of each value."""

    key: str


class UniformRowLength(NamedTuple):
    """Rows of equal length."""

    length: int


class _RaggedFeature(NamedTuple):
    dtype: Any
    value_key: Any = None
    partitions: Any = ()
    row_splits_dtype: Any = dtypes.int32
    validate: bool = False


class RaggedFeature(_RaggedFeature):
    """A feature parsed to a `tf.RaggedTensor`.

    Attributes:
      dtype: int64, float32 or string.
      value_key: the feature with the values; by default the one of the same name. partitions: the partitions into
      rows, outermost first: `RaggedFeature.RowSplits(key)` and so on. row_splits_dtype: int32 or int64. validate:
      whether to check partitions.
    """

    RowSplits, RowLengths, RowStarts, RowLimits = RowSplits, RowLengths, RowStarts, RowLimits
    ValueRowIds, UniformRowLength = ValueRowIds, UniformRowLength


class FixedLenSequenceFeature(NamedTuple):
    """A feature with any number of blocks of one shape; batches are padded to the longest.

    Attributes:
      shape: the shape of a block.
      dtype: int64, float32 or string.
      allow_missing: whether the feature may be missing. default_value: the padding value of a batch; zeros by default.
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
