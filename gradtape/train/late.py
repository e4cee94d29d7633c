"""Restores objects that do not exist yet: an object that lacks parts of the checkpoint is watched.

A Python object is watched by changing its class, while it waits, to a subclass of its class whose `__setattr__`
(and `build`, for optimizers) checks new attributes. Objects that wait for nothing are not changed. A list or
dictionary is replaced by one of a subclass that shows the same items: it changes together with the original, and
notices items put into the original.
"""

from __future__ import annotations

import functools
import operator
from collections import OrderedDict
from collections.abc import Callable
from itertools import chain
from typing import Any

from gradtape.train import trackable

WAITING = "__gradtape_waiting"


def watch(obj: Any, restoration: Any, path: str) -> None:
    """Makes new parts of `obj`, which the checkpoint has at `path`, restored by `restoration.bind`."""
    if not isinstance(obj, (_LateList, _LateDict)) and not hasattr(type(obj), "_checkpoint_late"):
        try:
            obj.__class__ = _watched(type(obj))  # type: ignore[arg-type]
        except (TypeError, AttributeError):  # the class cannot be changed: later parts are not restored
            return
    # A newer checkpoint of the same root replaces an older one.
    others = [w for w in waiting(obj) if w[0].root is not restoration.root]
    obj.__dict__[WAITING] = [*others, (restoration, path)]


def waiting(obj: Any) -> list[tuple[Any, str]]:
    """What an object waits for: pairs of a restoration and the path where the object was saved."""
    return getattr(obj, "__dict__", {}).get(WAITING, [])


def arrived(obj: Any, parts: dict[str, Any]) -> None:
    """Restores the parts, by name, that an object has just received."""
    new = {name: part for name, part in parts.items() if trackable.may_be_given(part)} if waiting(obj) else {}
    for restoration, path in waiting(obj) if new else ():
        for name, part in new.items():
            target = restoration.target(path, name)
            if target is not None:
                restoration.arrive(obj, path, name, part, target)
    if new:
        _rest_if_done(obj)


def _rest_if_done(obj: Any) -> None:
    """Stops watching an object that has all its parts."""
    if any(r.is_waiting(obj, path) for r, path in waiting(obj)):
        return
    obj.__dict__.pop(WAITING, None)
    if getattr(type(obj), "_checkpoint_late", None) is _watched:
        obj.__class__ = type(obj).__mro__[1]


_NEW = object().__reduce_ex__(4)[0]


def _made(cls: type, *args: Any) -> Any:
    return cls.__new__(cls, *args)


@functools.lru_cache(256)
def _watched(cls: type) -> type:
    """A subclass of `cls` that checks new attributes."""

    def __setattr__(self: Any, name: str, value: Any) -> None:
        super(watched, self).__setattr__(name, value)  # type: ignore[arg-type]
        # A library may store something other than the given value, such as its own list.
        arrived(self, {name: self.__dict__.get(name, value)})

    def build(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = super(watched, self).build(*args, **kwargs)  # type: ignore[arg-type, misc]
        for restoration, path in waiting(self):
            restoration.bind(self, path)
        _rest_if_done(self)
        return out

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        # Copies and pickles have the plain class, and wait for nothing.
        try:
            self.__class__ = cls
            parts = self.__reduce_ex__(protocol)
        finally:
            self.__class__ = watched
        if isinstance(parts, tuple) and len(parts) > 2 and isinstance(parts[2], dict):
            state = {k: v for k, v in parts[2].items() if k != WAITING}
            parts = (*parts[:2], state, *parts[3:])
        # Pickle would compare the class with the temporary one.
        return (_made, *parts[1:]) if isinstance(parts, tuple) and parts[0] is _NEW else parts

    body: dict[str, Any] = {
        "__setattr__": __setattr__, "__reduce_ex__": __reduce_ex__, "_checkpoint_late": _watched,
        "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__,
    }  # fmt: skip
    if trackable.is_optimizer_class(cls):
        body["build"] = build
    watched = type(cls)(cls.__name__, (cls,), body)
    return watched


# ---- containers -----------------------------------------------------------------------------------


def _catch_up(self: Any) -> None:
    """Copies changes of the original list or dictionary, and restores new items."""
    base, before, current = type(self)._base, self._seen, self._origin
    if len(before) == len(current) and all(map(operator.is_, _flat(before), _flat(current))):
        return
    self._seen = current = base(current)
    base.clear(self)
    if base is list:
        list.extend(self, current)
    else:
        for key, part in current.items():
            base.__setitem__(self, key, part)
    old = dict(_pairs(before))
    arrived(self, {str(key): part for key, part in _pairs(current) if old.get(key, self) is not part})


def _pairs(container: Any) -> Any:
    return enumerate(container) if isinstance(container, list) else container.items()


def _flat(container: Any) -> Any:
    return container if isinstance(container, list) else chain(container, container.values())


def _following(base: type, name: str) -> Callable:
    method = getattr(base, name)

    @functools.wraps(method)
    def look(self: Any, *args: Any, **kwargs: Any) -> Any:
        _catch_up(self)
        return method(self, *args, **kwargs)

    return look


def _changing(base: type, name: str) -> Callable:
    method = getattr(base, name)

    @functools.wraps(method)
    def change(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = method(self._origin, *args, **kwargs)
        _catch_up(self)
        return self if out is self._origin else out

    return change


_READ = """__len__ __iter__ __getitem__ __contains__ __reversed__ __repr__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __add__
    __mul__ __rmul__ __or__ __ror__ copy count index get keys values items""".split()
_WRITE = """__setitem__ __delitem__ __iadd__ __imul__ __ior__ append extend insert pop remove clear sort reverse popitem
    setdefault update move_to_end""".split()


def _methods(base: type) -> dict[str, Any]:
    """The methods of lists or dictionaries, which also check the original for changes."""
    body: dict[str, Any] = {n: _following(base, n) for n in _READ if hasattr(base, n)}
    body.update({n: _changing(base, n) for n in _WRITE if hasattr(base, n)})
    body.update({"_base": base, "__hash__": None, "__module__": __name__})
    # Copies and pickles are plain containers, and wait for nothing.
    body["__reduce_ex__"] = lambda self, protocol: (base, (base(self._origin),))
    return body


class _LateList:
    """A list that restores what is put into it."""


class _LateDict:
    """A dictionary that restores what is put into it."""


def _late_class(mark: type, base: type) -> type:
    def __init__(self: Any, origin: Any = ()) -> None:
        self._origin = origin if type(origin) is base else base(origin)
        self._seen = base()
        _catch_up(self)

    return type(mark.__name__, (mark, base), {**_methods(base), "__init__": __init__})


_LATE: dict[type, type] = {
    list: _late_class(_LateList, list),
    dict: _late_class(_LateDict, dict),
    OrderedDict: _late_class(_LateDict, OrderedDict),
}


def watching(value: Any, copies: dict[int, Any]) -> Any:
    """A list, dictionary or tuple with watching copies in place of plain ones, at any depth; other values unchanged.

    Args:
      copies: the watching copies made so far, by the id of the plain ones; updated.
    """
    if id(value) in copies:
        return copies[id(value)]
    late = _LATE.get(type(value))
    if late is not None:
        copy = copies[id(value)] = late(value)
        for key in range(len(value)) if isinstance(value, list) else list(value):
            part = watching(value[key], copies)
            if part is not value[key]:
                _put_at(copy, key, part)
        return copy
    if isinstance(value, tuple):
        parts = [watching(part, copies) for part in value]
        if any(map(operator.is_not, parts, value)):
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def _put_at(late: Any, key: Any, value: Any) -> None:
    for container in (late._origin, late._seen):
        container[key] = value
    late._base.__setitem__(late, key, value)


def put(parent: Any, name: str, value: Any) -> bool:
    """Replaces a plain value by a watching one; returns whether that was possible."""
    if isinstance(parent, (_LateList, _LateDict)):
        origin = parent._origin  # type: ignore[union-attr]
        key = int(name) if isinstance(origin, list) else next(k for k in origin if str(k) == name)
        _put_at(parent, key, value)
        return True
    if isinstance(parent, (list, dict, tuple)) or name not in getattr(parent, "__dict__", {}):
        return False
    object.__setattr__(parent, name, value)
    return True
