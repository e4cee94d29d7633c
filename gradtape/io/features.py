"""What to look for in examples (FixedLenFeature and its relatives), and what gradtape does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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
    """A feature with any number of values. There are no sparse tensors here: the values come as a dense
    tensor, in a batch filled up with zeros (or empty strings) to the longest."""

    dtype: Any


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


_NO_SPARSE = "gradtape has no sparse tensors. Hint: tf.io.VarLenFeature gives dense ones."
SparseFeature = _refused("SparseFeature", _NO_SPARSE)
RaggedFeature = _refused(
    "RaggedFeature", "gradtape has no ragged tensors. Hint: tf.io.VarLenFeature gives dense ones."
)
serialize_sparse = _refused("serialize_sparse", _NO_SPARSE)
serialize_many_sparse = _refused("serialize_many_sparse", _NO_SPARSE)
deserialize_many_sparse = _refused("deserialize_many_sparse", _NO_SPARSE)
_NO_PROTO = (
    "messages need their descriptions. Hint: Python's package protobuf, and tf.train.Example for examples."
)
decode_proto = _refused("decode_proto", _NO_PROTO)
encode_proto = _refused("encode_proto", _NO_PROTO)
write_graph = _refused("write_graph", "gradtape has no graph files. Hint: tf.saved_model.")
