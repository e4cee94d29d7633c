"""Values of several replicas as arguments and results of functions, and as values of loops and conditions in them.

To programs they are leaves of a nest; to a trace each of the values is an argument or result of its own. So they are
taken apart on the way in and out: a `Spread` is a nest of the values. `gradtape/distribute/values.py` has the class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape._src.base import nest


class Spread(tuple):
    """The values of one such leaf, as a nest."""


join: Callable[[Any], Any] | None = None  # makes the leaf from its values; None as long as there is none


def apart(structure: Any) -> Any:
    """A nest in which such leaves are nests of their values."""
    if not has_leaf(structure):
        return structure
    if not nest.is_nested(structure):
        return Spread(structure.values)
    return nest.map_structure(lambda x: Spread(x.values) if _is_leaf(x) else x, structure)


def together(structure: Any) -> Any:
    """The opposite of `apart`."""
    return _joined(structure) if has_spread(structure) else structure


def has_spread(structure: Any) -> bool:
    """Whether a nest has such nests in it."""
    if join is None or not nest.is_nested(structure):
        return False
    return isinstance(structure, Spread) or any(map(has_spread, _children(structure)))


def has_leaf(structure: Any) -> bool:
    """Whether a nest has such leaves."""
    return join is not None and any(_is_leaf(x) for x in nest.flatten(structure))


def _is_leaf(x: Any) -> bool:
    return getattr(type(x), "is_spread", False)


def _children(structure: Any) -> list:
    return [structure[k] for k in structure] if isinstance(structure, dict) else list(structure)


def _joined(structure: Any) -> Any:
    if isinstance(structure, Spread):
        return None if join is None else join(structure)
    if not has_spread(structure):
        return structure
    # One level at a time: a Spread is a leaf here.
    kind = nest._kind(structure)
    assert kind is not None
    return kind.rebuild(structure, [_joined(x) for x in kind.children(structure)])
