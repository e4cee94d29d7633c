"""`tensorflow.tools.docs.doc_controls`: marks for a generator of documentation, which changes nothing of what they mark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def _same(marked: T) -> T:
    """The decorated object, unchanged."""
    return marked


do_not_doc_inheritable = do_not_doc = do_not_generate_docs = doc_private = _same
doc_in_current_and_subclasses = for_subclass_implementers = set_deprecated = _same


def inheritable_header(text: str) -> Callable[[T], T]:
    """A decorator that notes a header of the page of a class."""
    return _same
