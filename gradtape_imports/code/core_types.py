"""`tf.__internal__.types`: base classes for types that count as tensors."""

from __future__ import annotations


class Tensor:
    """A mark of classes."""

    __slots__ = ()
