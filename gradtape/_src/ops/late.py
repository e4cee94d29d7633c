"""Families of ops that are imported when one of their names is first used: most programs need few of them.

`late_names.py`, which `make stubs` writes, lists the names of each family. `ops.softmax`, `TABLE["softmax"]` and
`PUBLIC["nn.softmax"]` import the family on first use; iterating over a table imports all of them.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import Any, Generic, TypeVar

from gradtape._src.ops.late_names import FAMILIES

V = TypeVar("V")


@functools.cache
def _homes(kind: str) -> dict[str, str]:
    """The family of each name in `ops`, of each row, or of each public name."""
    return {name: family for family, names in FAMILIES.items() for name in names[kind].split()}


def load(family: str) -> Any:
    """The module of a family."""
    return importlib.import_module(f"gradtape._src.ops.{family}")


def inside(name: str) -> Any:
    """The value of `ops.<name>`: a name of a late family, or a family.

    Raises:
      AttributeError: if no late family has the name.
    """
    home = _homes("ops").get(name)
    if home is None and name in FAMILIES:
        return load(name)
    if home is None:
        raise AttributeError(f"module 'gradtape._src.ops' has no attribute {name!r}")
    value = getattr(load(home), name)
    setattr(sys.modules["gradtape._src.ops"], name, value)
    return value


class Names(dict[str, V], Generic[V]):
    """A dictionary of what was imported so far, which imports late families on lookup and iteration."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __missing__(self, name: str) -> V:
        home = _homes(self._kind).get(name)
        if home is not None:
            load(home)
        if home is None or not dict.__contains__(self, name):
            raise KeyError(name)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or name in _homes(self._kind)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401  dict.get would not import

    def is_late(self, name: str) -> bool:
        """Whether a late family has this name."""
        return name in _homes(self._kind)

    def names(self) -> list[str]:
        """All names; nothing is imported."""
        return list(dict.fromkeys((*dict.keys(self), *_homes(self._kind))))

    def _complete(self) -> None:
        for family in FAMILIES:
            load(family)

    def __iter__(self) -> Iterator[str]:
        self._complete()
        return dict.__iter__(self)

    def __len__(self) -> int:
        self._complete()
        return dict.__len__(self)

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        self._complete()
        return dict.keys(self)  # type: ignore[return-value]

    def values(self) -> ValuesView[V]:  # type: ignore[override]
        self._complete()
        return dict.values(self)  # type: ignore[return-value]

    def items(self) -> ItemsView[str, V]:  # type: ignore[override]
        self._complete()
        return dict.items(self)  # type: ignore[return-value]
