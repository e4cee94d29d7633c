"""`tf.__internal__.FuncGraph`: a graph that Keras 2 writes to learn the shapes of what a layer gives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

from gradtape._src.base.contexts import aside
from gradtape._src.functions import recorded as _recorded  # noqa: F401  takes over tapes
from gradtape._src.graph.recording import Recording

_GAPS = 5  # sizes that a placeholder may leave open


class _Scratch(Recording):
    """A recording that nobody runs; `tf.compat.v1.placeholder` makes its arguments."""

    __slots__ = ("__weakref__",)
    takes_placeholders = True


# One recording a thread for all graphs, as long as somebody has a tensor of it: what one layer gives, a distribution
# say, goes into the graph of the next.
_recordings: WeakValueDictionary[int, _Scratch] = WeakValueDictionary()


class FuncGraph:
    """A graph that is written inside `with graph.as_default():`, and never run."""

    def __init__(self, name: str, *args: Any, **kwargs: Any) -> None:
        self.name = name
        self.outer_graph: Any = None
        self._recording: Any = None

    @contextmanager
    def as_default(self) -> Iterator[FuncGraph]:
        """A block whose ops are part of the graph."""
        if self._recording is None:
            self._recording = _recordings.setdefault(threading.get_ident(), _Scratch(gaps=_GAPS))
        with aside(self._recording):
            yield self
