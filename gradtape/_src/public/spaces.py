"""Puts the ops under TensorFlow's names: `tf.tanh`, `tf.math.tanh`, `tf.nn.tanh` are one row.

The table lists every public name, and imports its family on first use; only then is the name set in its namespace. A
namespace is a module (`gradtape.math`), which is created here unless it has a file.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from gradtape._src.ops.table import PUBLIC


@functools.cache
def _spaces() -> frozenset[str]:
    """The namespaces of all public names, and the namespaces that contain them."""
    paths = (name.split(".") for name in PUBLIC.names())
    return frozenset(".".join(path[:i]) for path in paths for i in range(1, len(path)))


def has(full: str) -> bool:
    """Whether the table has this public name (`math.tanh`), or names in a namespace of this name."""
    return full in PUBLIC or full in _spaces()


def names(space: str) -> list[str]:
    """The public names of the table in a namespace."""
    return [name.rpartition(".")[2] for name in PUBLIC.names() if name.rpartition(".")[0] == space]


def inner(space: str) -> list[str]:
    """The namespaces inside a namespace."""
    return [name.rpartition(".")[2] for name in _spaces() if name.rpartition(".")[0] == space]


def put(space: str, name: str, of: Callable[[str], tuple]) -> Any:
    """Sets a name of the table in its namespace, and returns its value."""
    full = f"{space}.{name}" if space else name
    value = PUBLIC[full] if full in PUBLIC else _new_module(full, of)
    setattr(sys.modules[f"gradtape.{space}" if space else "gradtape"], name, value)
    return value


def _new_module(full: str, of: Callable[[str], tuple]) -> types.ModuleType:
    """Creates the module of a namespace without a file; missing names are looked up by `of`."""
    module = types.ModuleType(f"gradtape.{full}", f"TensorFlow's namespace `tf.{full}`.")
    module.__path__ = []  # `import gradtape.experimental.numpy`: see `modules`
    vars(module)["__getattr__"], vars(module)["__dir__"] = of(full)
    sys.modules[module.__name__] = module
    return module
