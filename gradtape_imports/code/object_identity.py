"""`tensorflow.python.util.object_identity`: sets and dictionaries that compare with `is`."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, MutableMapping, MutableSet
from typing import Any


class Reference:
    """An object, compared by its identity."""

    __slots__ = ("_object", "__weakref__")

    def __init__(self, wrapped: Any) -> None:
        self._object = wrapped

    @property
    def unwrapped(self) -> Any:
        return self._object

    def deref(self) -> Any:
        """The object itself."""
        return self.unwrapped

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Reference) and self.unwrapped is other.unwrapped

    def __hash__(self) -> int:
        return id(self.unwrapped)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.unwrapped!r}>"


class WeakReference(Reference):
    """The same, without keeping the object."""

    __slots__ = ()

    def __init__(self, wrapped: Any) -> None:
        super().__init__(weakref.ref(wrapped))

    @property
    def unwrapped(self) -> Any:
        return self._object()


class ObjectIdentityDictionary(MutableMapping):
    """A dictionary with keys that need not be hashable."""

    _reference: type[Reference] = Reference

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._stored: dict[Reference, Any] = {}
        self.update(*args, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        return self._stored[self._reference(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._stored[self._reference(key)] = value

    def __delitem__(self, key: Any) -> None:
        del self._stored[self._reference(key)]

    def __iter__(self) -> Iterator[Any]:
        return (reference.unwrapped for reference in self._stored)

    def __len__(self) -> int:
        return len(self._stored)


class ObjectIdentitySet(MutableSet):
    """A set of objects that need not be hashable."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self._stored = {Reference(item): None for item in items}

    def __contains__(self, item: Any) -> bool:
        return Reference(item) in self._stored

    def add(self, item: Any) -> None:
        self._stored[Reference(item)] = None

    def discard(self, item: Any) -> None:
        self._stored.pop(Reference(item), None)

    def update(self, items: Iterable[Any]) -> None:
        for item in items:
            self.add(item)

    def __iter__(self) -> Iterator[Any]:
        return (reference.unwrapped for reference in self._stored)

    def __len__(self) -> int:
        return len(self._stored)
