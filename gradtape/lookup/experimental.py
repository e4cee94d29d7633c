"""`tf.lookup.experimental`: tables that programs write to."""

from __future__ import annotations

from gradtape.lookup.mutable import DenseHashTable, MutableHashTable

__all__ = ["DenseHashTable", "MutableHashTable"]
