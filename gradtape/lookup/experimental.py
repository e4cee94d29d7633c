"""`tf.lookup.experimental`: tables that programs write to."""

from __future__ import annotations

from gradtape._src.public import absent as _absent
from gradtape.lookup.mutable import DenseHashTable, MutableHashTable

__all__ = ["DenseHashTable", "MutableHashTable"]

__getattr__, __dir__ = _absent.of("lookup.experimental")
