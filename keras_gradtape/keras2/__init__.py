"""Keras as programs for TensorFlow know it: `tf.keras`, with what Keras 3 took out of Keras 2.

Keras 3 ships the public modules of TensorFlow's `tf.keras` (`keras._tf_keras.keras`). They are exposed here, and
old names and methods are added to them: `names` (modules and functions), `backend` (`K.mean` and so on),
`optimizers`, `layers`, `tracking` (a `tf.Variable` in a layer), `models`, `saving`, `symbolic` (tf ops on
`keras.Input`), `losses`. They change the modules in memory; everything that Keras 3 accepts still works.
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
    """`tf.keras`, created on first use."""
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
    """The module `name` of `parent`, created if missing, with these names added to it."""
    module = getattr(parent, name, None)
    if not isinstance(module, ModuleType):
        full = f"{parent.__name__}.{name}"
        module = sys.modules[full] = ModuleType(full)
        module.__path__ = []  # its submodules are created together with it
        setattr(parent, name, module)
    for key, value in contents.items():
        setattr(module, key, value)
    return module
