"""Puts the ops under TensorFlow's names: `tf.tanh`, `tf.math.tanh`, `tf.nn.tanh` are one row.

The table knows every public name, and imports the family it belongs to when it is asked for. So a name comes into its
namespace when it is first used there. A namespace is a module of that name (`gradtape.math`), which is made here
unless a file of ours already is that module.
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
    """The namespaces of public names, and those around them."""
    paths = (name.split(".") for name in PUBLIC.names())
    return frozenset(".".join(path[:i]) for path in paths for i in range(1, len(path)))


def has(full: str) -> bool:
    """Whether the table has a name (`math.tanh`), or names in a namespace of that name."""
    return full in PUBLIC or full in _spaces()


def names(space: str) -> list[str]:
    """The names of the table in a namespace."""
    return [name.rpartition(".")[2] for name in PUBLIC.names() if name.rpartition(".")[0] == space]


def inner(space: str) -> list[str]:
    """The namespaces of the table in a namespace."""
    return [name.rpartition(".")[2] for name in _spaces() if name.rpartition(".")[0] == space]


def put(space: str, name: str, of: Callable[[str], tuple]) -> Any:
    """Enters what the table has of that name into a namespace, and returns it."""
    full = f"{space}.{name}" if space else name
    value = PUBLIC[full] if full in PUBLIC else _made(full, of)
    setattr(sys.modules[f"gradtape.{space}" if space else "gradtape"], name, value)
    return value


def _made(full: str, of: Callable[[str], tuple]) -> types.ModuleType:
    """A namespace that is no file. What is not there yet is looked for."""
    module = types.ModuleType(f"gradtape.{full}", f"TensorFlow's namespace `tf.{full}`.")
    module.__path__ = []  # `import gradtape.experimental.numpy`: see `modules`
    vars(module)["__getattr__"], vars(module)["__dir__"] = of(full)
    sys.modules[module.__name__] = module
    return module
