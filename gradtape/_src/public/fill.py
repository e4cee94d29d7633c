"""Puts the ops under TensorFlow's names: `tf.tanh`, `tf.math.tanh`, `tf.nn.tanh` are one row.

The table knows every public name. A name with a dot goes into a namespace module of that name
(`gradtape.math`), which is made here unless a file of ours already is that module.
"""

from __future__ import annotations

import functools
import importlib
import sys
import types
from typing import Any

from gradtape._src.public import absent

# Namespaces that are files of their own; the table adds its names to them.
_FILES = frozenset(("random", "dtypes", "debugging"))


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
                module.__path__ = []  # `import gradtape.experimental.numpy`: see `modules`
                # What is missing there says so, or is imported now.
                vars(module)["__getattr__"] = functools.partial(
                    absent.lookup_in, full.removeprefix("gradtape.")
                )
            where[part] = module
        where = vars(module)
    return where


def fill(root: dict[str, Any], public: dict[str, Any]) -> None:
    """Enters every public name into `root`, the namespace of the package."""
    for name, value in public.items():
        *path, last = name.split(".")
        # A namespace that is imported late takes its names from the table itself.
        if not path or path[0] not in absent.LAZY:
            _namespace(root, path)[last] = value
