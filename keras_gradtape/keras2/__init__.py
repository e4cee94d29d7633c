"""Keras as programs for TensorFlow know it: `tf.keras`, with what Keras 3 took out of Keras 2.

Keras 3 ships the public modules that TensorFlow shows as `tf.keras` (`keras._tf_keras.keras`). They are
handed out here, and old names and methods are added to them: `names` (modules and functions), `backend`
(`K.mean` and the like), `optimizers`, `layers`, `tracking` (a `tf.Variable` in a layer), `models`,
`saving`, `symbolic` (tf ops on `keras.Input`), `losses`. Each adds to the modules in memory; none changes
what Keras 3 itself accepts.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import keras_gradtape  # noqa: F401  before Keras

_PUBLIC = "keras._tf_keras.keras"
_PARTS = ("names", "backend", "optimizers", "losses", "tracking", "layers", "models", "saving", "symbolic")
_made: list[ModuleType] = []


def module() -> ModuleType:
    """`tf.keras`, made when it is first asked for."""
    if not _made:
        public = importlib.import_module(_PUBLIC)
        for name in _PARTS:
            importlib.import_module(f"{__name__}.{name}").install(public)
        _made.append(public)
    return _made[0]


def replace(name: str) -> None:
    """Puts `tf.keras` and its submodules in the place of a module that is being imported."""
    _alias(name, module())


def _alias(name: str, module: ModuleType) -> None:
    sys.modules[name] = module
    for part, inner in list(vars(module).items()):
        if not isinstance(inner, ModuleType) or part[0] == "_" or inner.__name__.split(".")[-1] != part:
            continue
        if inner.__name__.startswith("keras.") and inner.__name__.count(".") < 6:
            _alias(f"{name}.{part}", inner)


def submodule(parent: ModuleType, name: str, **contents: object) -> ModuleType:
    """A module `name` of `parent`, made if it is not there, with these names added to it."""
    module = getattr(parent, name, None)
    if not isinstance(module, ModuleType):
        full = f"{parent.__name__}.{name}"
        module = sys.modules[full] = ModuleType(full)
        module.__path__ = []  # its own submodules are there when it is
        setattr(parent, name, module)
    for key, value in contents.items():
        setattr(module, key, value)
    return module
