"""Restoring what does not exist yet: an object that misses parts a checkpoint has is watched.

A Python object is watched by giving it, for as long as it waits, a subclass of its own class whose
`__setattr__` (and `build`, for optimizers) looks at what comes in. Nothing is hooked into objects
that wait for nothing. Lists and dictionaries are replaced, where they stand, by subclasses.
"""

from __future__ import annotations

import functools
from typing import Any

from gradtape.train import trackable

WAITING = "__gradtape_waiting"


def watch(obj: Any, restoration: Any, path: str, parent: Any, edge: str) -> None:
    """Makes `restoration.bind` be called for what `obj` gets later and the checkpoint has at `path`."""
    if isinstance(obj, (list, dict)):
        obj = _replaced(obj, parent, edge)
    elif not hasattr(type(obj), "_checkpoint_late"):
        try:
            obj.__class__ = _watched(type(obj))  # type: ignore[arg-type]
        except (TypeError, AttributeError):  # an object without room for it: what comes later is not restored
            return
    if obj is None:
        return
    # A newer checkpoint of the same root takes the place of an older one.
    kept = [w for w in waiting(obj) if w[0].root is not restoration.root]
    obj.__dict__[WAITING] = [*kept, (restoration, path)]


def waiting(obj: Any) -> list[tuple[Any, str]]:
    """What an object waits for: pairs of a restoration and the path it was saved at."""
    return getattr(obj, "__dict__", {}).get(WAITING, [])


def arrived(obj: Any, name: str, part: Any) -> None:
    """Restores a part that an object has got just now."""
    if not waiting(obj) or not trackable.may_be_given(part):
        return
    for restoration, path in waiting(obj):
        target = restoration.target(path, name)
        if target is not None:
            restoration.bind(part, target, path, name)
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
    """A subclass of `cls` that looks at its new attributes."""

    def __setattr__(self: Any, name: str, value: Any) -> None:
        super(made, self).__setattr__(name, value)  # type: ignore[arg-type]
        # A library may keep something else than it was given, a list of its own for instance.
        arrived(self, name, self.__dict__.get(name, value))

    def build(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = super(made, self).build(*args, **kwargs)  # type: ignore[arg-type, misc]
        for restoration, path in waiting(self):
            restoration.bind(self, path)
        _rest_if_done(self)
        return out

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        # Copies and pickles are of the plain class, and wait for nothing.
        self.__class__ = cls
        try:
            parts = self.__reduce_ex__(protocol)
        finally:
            self.__class__ = made
        if isinstance(parts, tuple) and len(parts) > 2 and isinstance(parts[2], dict):
            state = {k: v for k, v in parts[2].items() if k != WAITING}
            parts = (*parts[:2], state, *parts[3:])
        # What pickle would compare the class with is the class of the moment.
        return (_made, *parts[1:]) if isinstance(parts, tuple) and parts[0] is _NEW else parts

    body: dict[str, Any] = {
        "__setattr__": __setattr__, "__reduce_ex__": __reduce_ex__, "_checkpoint_late": _watched,
        "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__,
    }  # fmt: skip
    if trackable.is_optimizer_class(cls):
        body["build"] = build
    made = type(cls)(cls.__name__, (cls,), body)
    return made


# ---- containers -----------------------------------------------------------------------------------


class _LateList(list):
    """A list that restores what is appended to it."""

    def append(self, value: Any) -> None:
        super().append(value)
        arrived(self, str(len(self) - 1), value)

    def extend(self, values: Any) -> None:
        for value in values:
            self.append(value)

    def __iadd__(self, values: Any) -> Any:  # type: ignore[misc]
        self.extend(values)
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return list, (list(self),)


class _LateDict(dict):
    """A dictionary that restores what is put into it."""

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        arrived(self, str(key), value)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *args: Any, **kwargs: Any) -> None:
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(self),)


def _replaced(obj: Any, parent: Any, edge: str) -> Any:
    """A watching copy of a list or dictionary, put where it stood; None if that is not possible."""
    if isinstance(obj, (_LateList, _LateDict)):
        return obj
    if type(obj) not in (list, dict) or parent is None:
        return None
    copy = _LateList(obj) if isinstance(obj, list) else _LateDict(obj)
    if isinstance(parent, list):
        list.__setitem__(parent, int(edge), copy)
    elif isinstance(parent, dict):
        dict.__setitem__(parent, next(k for k in parent if str(k) == edge), copy)
    elif edge in getattr(parent, "__dict__", {}):
        object.__setattr__(parent, edge, copy)
    else:
        return None
    return copy
