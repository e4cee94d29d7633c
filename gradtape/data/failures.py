"""Errors that do not end an iteration: after catching one, a caller may ask for the next element, as in TensorFlow.

A Python generator ends once an exception has passed through it. So steps written as generators never see one:
`resumable` gives them a *failure* in place of the element that could not be made. They pass it on in sequence, and
it is raised at the end of the pipeline. Ctrl-C takes the same path, so that nothing after it is lost; but it
`interrupts`: no step may hold it back, or react by trying something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any


class Failure:
    """Stands for an element that could not be made."""

    __slots__ = ("error", "interrupts")

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.interrupts = not isinstance(error, Exception)


class Guarded:
    """The elements of a source, with failures in place of errors."""

    __slots__ = ("_source",)

    def __init__(self, source: Iterator[Any]) -> None:
        self._source = source

    def __iter__(self) -> Guarded:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._source)
        except StopIteration:
            raise
        except BaseException as e:
            return Failure(e)


class Raising:
    """The elements of a source, with errors in place of failures."""

    __slots__ = ("_source",)

    def __init__(self, source: Iterator[Any]) -> None:
        self._source = source

    def __iter__(self) -> Raising:
        return self

    def __next__(self) -> Any:
        element = next(self._source)
        if type(element) is Failure:
            try:
                raise element.error
            finally:
                del element
        return element


def resumable(step: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """A generator function over `source`, its first argument, that continues after errors of the source.

    It gets failures, and yields them (or others) where errors are to be raised.
    """

    @wraps(step)
    def begin(source: Iterator[Any], *args: Any) -> Iterator[Any]:
        return Raising(step(Guarded(source), *args))

    return begin


@resumable
def sliced(source: Iterator[Any], start: int, stop: int | None, step: int = 1) -> Iterator[Any]:
    """`itertools.islice`; failures are not counted."""
    at = 0
    while stop is None or at < stop:
        try:
            element = next(source)
        except StopIteration:
            return
        if type(element) is Failure:
            yield element
            continue
        if at >= start and (at - start) % step == 0:
            yield element
        at += 1


@resumable
def flattened(source: Iterator[Any], begin: Callable[[Any], Iterator[Any]]) -> Iterator[Any]:
    """The elements of `begin(x)` for every x of the source, one after the other."""
    for x in source:
        begun: Any = x if type(x) is Failure else attempt(begin, x)
        if type(begun) is Failure:
            yield begun
        else:
            yield from Guarded(begun)


def gathered(source: Guarded, count: int) -> Any:
    """The next elements: a list of `count`, or as many as there are; the failure if one could not be made."""
    out: list = []
    while len(out) < count:
        try:
            element = next(source)
        except StopIteration:
            break
        if type(element) is Failure:
            return element
        out.append(element)
    return out


def filled(out: list, count: int, source: Guarded) -> Iterator[Failure]:
    """Appends elements and failures to a list until it has `count`, or the source ends. Yields interrupts."""
    while len(out) < count:
        try:
            element = next(source)
        except StopIteration:
            return
        if type(element) is Failure and element.interrupts:
            yield element
        else:
            out.append(element)


def attempt(function: Callable, *args: Any) -> Any:
    """The result of a call, or its failure."""
    try:
        return function(*args)
    except BaseException as e:
        return Failure(e)
