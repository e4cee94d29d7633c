"""`tf.__internal__.FuncGraph`: a graph in which Keras 2 computes the output shapes of layers."""

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
    """A recording that never runs; `tf.compat.v1.placeholder` creates its arguments."""

    __slots__ = ("__weakref__",)
    takes_placeholders = True


# One recording per thread for all graphs, as long as one of its tensors exists, because the output of one layer,
# such as a distribution, is used in the graph of the next.
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
