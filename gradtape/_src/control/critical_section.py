"""`tf.CriticalSection`: runs one function at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import gradtape as tf


class CriticalSection:
    """Runs functions one after the other, whichever threads call it.

    Inside a `tf.function` the function becomes part of the graph, whose steps keep their order; graphs that
    run in several threads at the same time do not wait for each other.

    >>> import gradtape as tf
    >>> section, count = tf.CriticalSection(), tf.Variable(0)
    >>> section.execute(lambda: count.assign_add(1)).numpy()
    np.int32(1)
    """

    def __init__(
        self, name: str | None = None, shared_name: str | None = None, critical_section_def: Any = None,
        import_scope: Any = None,
    ) -> None:  # fmt: skip
        if critical_section_def is not None:
            raise ValueError("critical_section_def is not supported.")
        self._name = name or shared_name or "critical_section"
        self._lock = threading.Lock()
        self._holder: int | None = None

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    def execute(
        self, fn: Callable[[], Any], exclusive_resource_access: bool = True, name: str | None = None
    ) -> Any:
        """The result of `fn()`; no other function runs in this section in the meantime.

        Raises:
          ValueError: if it is called by a function that runs in this section.
        """
        if self._holder == threading.get_ident():
            raise ValueError(
                f"Attempting to lock a CriticalSection ({self._name}) in which we are already running. This is illegal and "
                "may cause deadlocks."
            )
        with self._lock:
            self._holder = threading.get_ident()
            try:
                return tf.nest.map_structure(lambda x: None if x is None else tf.identity(x), fn())
            finally:
                self._holder = None
