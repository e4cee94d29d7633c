"""Namespaces as modules: `import gradtape.experimental.numpy` finds what `tf.experimental.numpy` is.

Some namespaces are no files: they are made from the op table, or are another module under TensorFlow's name. A finder
at the end of `sys.meta_path` looks them up as attributes, and hands out the module that is there: one object, whichever
way it was imported. `gradtape_imports` serves `tensorflow` in the same way. Loader and finder have no base class:
`importlib.abc` costs 7 ms of every import.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

_ROOT = "gradtape"


class Same:
    """Loads a module that is there already, under one more name."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = getattr(module, "__spec__", None)

    def create_module(self, spec: Any) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # importlib has put that of the other name there


def spec_of(name: str, module: ModuleType) -> importlib.machinery.ModuleSpec:
    """What `find_spec` gives for `name`, which is to be `module`."""
    if not hasattr(module, "__path__"):
        module.__path__ = []  # what is in it is looked up, too: tf.config.experimental
    loader: Any = Same(module)
    return importlib.machinery.ModuleSpec(name, loader, is_package=hasattr(module, "__path__"))


def at(path: Sequence[str], root: str = _ROOT) -> ModuleType:
    """The module that `tf.<path>` is.

    Raises:
      AttributeError: if there is none, with words about it if there are any.
    """
    found = importlib.import_module(root)
    for part in path:
        inner = getattr(found, part)
        if not _is_namespace(inner):
            raise AttributeError(f"{found.__name__}.{part} is no module")
        found = inner
    return found


def _is_namespace(value: Any) -> bool:
    """Whether something is a module, or one of the classes that have its place: `tf.config.experimental`."""
    return isinstance(value, (ModuleType, SimpleNamespace)) or (
        isinstance(value, type) and value.__name__.islower()
    )


class Finder:
    """Looks for modules of gradtape that are no files."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        root, *parts = name.split(".")
        if root != _ROOT or not parts or parts[0] == "_src":
            return None
        try:
            return spec_of(name, at(parts))
        except AttributeError:
            return None


def install() -> None:
    """Puts the finder behind all others, once."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.append(Finder())
