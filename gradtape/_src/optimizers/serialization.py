"""Optimizers by name, as dictionaries, and back."""

from __future__ import annotations

from typing import Any

from gradtape._src.optimizers.base import Optimizer
from gradtape._src.optimizers.rules import (
    SGD,
    Adadelta,
    Adafactor,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Ftrl,
    Lamb,
    Lion,
    Nadam,
    RMSprop,
)

_CLASSES = {c.__name__.lower(): c for c in (
    SGD, Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Ftrl, Lamb, Lion, Nadam, RMSprop
)}  # fmt: skip


def get(identifier: Any) -> Optimizer:
    """An optimizer by name (`"adam"`), from a configuration, or the one given.

    Raises:
      ValueError: if there is no optimizer of that name.
    """
    if isinstance(identifier, Optimizer):
        return identifier
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str) and identifier.lower() in _CLASSES:
        return _CLASSES[identifier.lower()]()
    raise ValueError(
        f"Could not interpret optimizer identifier: {identifier}. Hint: one of {sorted(_CLASSES)}, or "
        "an optimizer."
    )


def serialize(optimizer: Optimizer) -> dict[str, Any]:
    """A dictionary from which `deserialize` recreates the optimizer, without its state."""
    return {
        "module": "keras.optimizers", "class_name": type(optimizer).__name__,
        "config": optimizer.get_config(),
        "registered_name": None,
    }  # fmt: skip


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Optimizer:
    """The optimizer that a dictionary describes."""
    name = config["class_name"]
    cls = (custom_objects or {}).get(name) or _CLASSES.get(name.lower())
    if cls is None:
        raise ValueError(
            f"Could not interpret optimizer identifier: {name}. Hint: pass it in `custom_objects`."
        )
    return cls.from_config(config["config"], custom_objects)
