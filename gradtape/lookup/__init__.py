"""`tf.lookup`: tables from keys to values.

In reading order: `initializers` (the initial contents of a table), `static` (tables that do not change), `mutable`
(tables that programs write to, in `tf.lookup.experimental`).
"""

from __future__ import annotations

from gradtape._src.public import absent as _absent
from gradtape.lookup import experimental as experimental
from gradtape.lookup.initializers import KeyValueTensorInitializer, TextFileIndex, TextFileInitializer
from gradtape.lookup.static import StaticHashTable, StaticVocabularyTable

__all__ = [
    "KeyValueTensorInitializer", "StaticHashTable", "StaticVocabularyTable", "TextFileIndex", "TextFileInitializer",
    "experimental",
]  # fmt: skip

__getattr__, __dir__ = _absent.of("lookup")
