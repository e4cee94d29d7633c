"""Puts the ops under TensorFlow's names: `tf.tanh`, `tf.math.tanh`, `tf.nn.tanh` are one row.

The table knows every public name. A name with a dot goes into a namespace module of that name
(`gradtape.math`), which is made here unless a file of ours already is that module.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

# Namespaces that are files of their own; the table adds its names to them.
_FILES = frozenset(
    ("random", "nest", "config", "errors", "dtypes", "initializers", "debugging", "test", "autodiff")
)


def _namespace(root: dict[str, Any], path: list[str]) -> dict[str, Any]:
    where, full = root, "gradtape"
    for part in path:
        full += "." + part
        module = where.get(part)
        if not isinstance(module, types.ModuleType):
            if part in _FILES and full == f"gradtape.{part}":
                module = importlib.import_module(full)
            else:
                module = sys.modules[full] = types.ModuleType(full, f"TensorFlow's namespace `tf{full[8:]}`.")
            where[part] = module
        where = vars(module)
    return where


def fill(root: dict[str, Any], public: dict[str, Any]) -> None:
    """Enters every public name into `root`, the namespace of the package."""
    for name, value in public.items():
        *path, last = name.split(".")
        _namespace(root, path)[last] = value
