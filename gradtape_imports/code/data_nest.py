"""`tensorflow.python.data.util.nest`: structures as datasets see them, in which a list is one value."""

from __future__ import annotations

from typing import Any

from gradtape._src.base import nest


def is_nested(structure: Any) -> bool:
    """Whether something is a container, and no list."""
    return nest.is_nested(structure) and not isinstance(structure, list)


def flatten(structure: Any) -> list:
    """The values of a structure, without going into lists."""
    kind = nest._kind(structure)
    if kind is None or isinstance(structure, list):
        return [structure]
    return [value for part in kind.children(structure) for value in flatten(part)]
