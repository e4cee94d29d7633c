"""What TensorFlow has and gradtape does not (yet): the words of the error, and lazy modules."""

from __future__ import annotations

import importlib
from typing import Any

# Parts of the package that are imported when they are first used.
_LAZY = frozenset(("optimizers", "testing"))

_NO_SPARSE = (
    "gradtape has no sparse tensors; sparse gradients are tf.IndexedSlices. Hint: use dense tensors, tf.gather "
    "and tf.scatter_nd."
)
_NO_RAGGED = "gradtape has no ragged tensors. Hint: pad to a dense tensor and use tf.sequence_mask."
_LATER = "is not part of gradtape yet."

_WORDS = {
    "SparseTensor": _NO_SPARSE,
    "sparse": _NO_SPARSE,
    "RaggedTensor": _NO_RAGGED,
    "ragged": _NO_RAGGED,
    "strings": "gradtape has no string tensors. Hint: keep text in Python and convert it to integers with NumPy.",
    "Session": "gradtape has no sessions: operations run as they are called, or under tf.function.",
    "placeholder": "gradtape has no placeholders. Hint: arguments of a tf.function take their place.",
    "Graph": "gradtape has no explicit graphs. Hint: @tf.function makes one of a Python function.",
    "keras": f"tf.keras {_LATER}",
    "data": f"tf.data {_LATER} Hint: iterate over NumPy arrays.",
    "image": f"tf.image {_LATER}",
    "signal": f"tf.signal {_LATER}",
    "train": f"tf.train {_LATER}",
    "summary": f"tf.summary {_LATER}",
    "distribute": f"tf.distribute {_LATER}",
    "saved_model": f"tf.saved_model {_LATER}",
    "io": f"tf.io {_LATER} Hint: use NumPy or Python's own files.",
}


def lookup(name: str) -> Any:
    """A lazily imported part of the package, or an AttributeError that says what to do."""
    if name in _LAZY:
        return importlib.import_module(f"gradtape.{name}")
    words = _WORDS.get(name)
    raise AttributeError(f"module 'gradtape' has no attribute {name!r}" + (f": {words}" if words else ""))
