"""`tf.__internal__.types`: what classes inherit that want to be taken for tensors."""

from __future__ import annotations


class Tensor:
    """A mark of classes."""

    __slots__ = ()
