"""tf.nest: lists, tuples and dicts of tensors, flattened and put together again."""

from gradtape._src.base.nest import (
    assert_same_structure,
    flatten,
    is_nested,
    is_sequence,
    map_structure,
    pack_sequence_as,
)
from gradtape._src.public import absent as _absent

__all__ = [
    "assert_same_structure",
    "flatten",
    "is_nested",
    "is_sequence",
    "map_structure",
    "pack_sequence_as",
]

__getattr__, __dir__ = _absent.of("nest")
