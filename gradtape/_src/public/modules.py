"""Namespaces as modules: `import gradtape.experimental.numpy` returns `tf.experimental.numpy`.

Some namespaces have no file: they are created from the op table, or are another module under TensorFlow's name. A finder
at the end of `sys.meta_path` looks them up as attributes and returns the existing module, so there is one object however
it is imported. `gradtape_imports` does the same for `tensorflow`. Loader and finder have no base class: importing
`importlib.abc` takes 7 ms.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

_ROOT = "gradtape"


class ExistingModule:
    """A loader that returns an existing module under another name."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = getattr(module, "__spec__", None)

    def create_module(self, spec: Any) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # importlib has replaced it


def spec_of(name: str, module: ModuleType) -> importlib.machinery.ModuleSpec:
    """The spec with which `find_spec` makes `name` an alias of `module`."""
    if not hasattr(module, "__path__"):
        module.__path__ = []  # so that names inside are looked up, too: tf.config.experimental
    loader: Any = ExistingModule(module)
    return importlib.machinery.ModuleSpec(name, loader, is_package=hasattr(module, "__path__"))


def at(path: Sequence[str], root: str = _ROOT) -> ModuleType:
    """The module `tf.<path>`.

    Raises:
      AttributeError: if there is no such module; the message says what to use instead, where that is known.
    """
    module = importlib.import_module(root)
    for part in path:
        inner = getattr(module, part)
        if not _is_namespace(inner):
            raise AttributeError(f"{module.__name__}.{part} is not a module")
        module = inner
    return module


def _is_namespace(value: Any) -> bool:
    """Whether `value` is a module, or a class that serves as a namespace: `tf.config.experimental`."""
    return isinstance(value, (ModuleType, SimpleNamespace)) or (
        isinstance(value, type) and value.__name__.islower()
    )


class Finder:
    """Finds modules of gradtape that have no file."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        root, *parts = name.split(".")
        if root != _ROOT or not parts or parts[0] == "_src":
            return None
        try:
            return spec_of(name, at(parts))
        except AttributeError:
            return None


def install() -> None:
    """Adds the finder after all others, once."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.append(Finder())
