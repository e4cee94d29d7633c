"""Progress of long work, as a bar of tqdm if it is installed and the output is interactive; otherwise nothing is shown.

Work in many steps reports them to a `Progress`, at the cost of a look at the clock for each. In a terminal or a
notebook, a bar appears at the first step that ends more than a second after the start, and disappears at the end.
There is only one: work inside work that has a bar shows none. GRADTAPE_PROGRESS=1 (or 0) and
`tf.config.show_progress` turn bars on everywhere (or off).
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from gradtape._src.base import settings

_PATIENCE = 1.0  # seconds before a bar appears
_INTERVAL = 0.1  # seconds between updates of a bar
_shown: Progress | None = None  # the work that has a bar


class Progress:
    """Work of `total` steps (None: unknown): a context manager with a method `step`."""

    def __init__(self, what: str, total: int | None = None, unit: str = "steps") -> None:
        self.what, self.total, self.unit = what, total, unit
        self.done = 0
        self._bar: Any = None
        self._began = time.monotonic()
        self._due = self._began + _PATIENCE  # when a bar is due; infinity: never

    @property
    def is_shown(self) -> bool:
        """Whether there is a bar."""
        return self._bar is not None

    def step(self, count: int = 1, note: str = "") -> None:
        """Reports that `count` more steps are done, with a note to show."""
        self.done += count
        if self._bar is None:
            if time.monotonic() < self._due:
                return
            self._begin()
            if self._bar is None:
                return
        with self._unharmed():
            if note:
                self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(self.done - self._bar.n)

    def _begin(self) -> None:
        global _shown
        if _shown is not None or not _is_wanted():
            self._due = time.monotonic() + _PATIENCE
            return
        kind = _kind_of_bar()
        if kind is None:
            self._due = float("inf")
            return
        is_bytes = self.unit == "B"
        with self._unharmed():
            self._bar = kind(
                desc=self.what, total=self.total, unit="B" if is_bytes else f" {self.unit}", unit_scale=is_bytes,
                unit_divisor=1024, miniters=1, mininterval=_INTERVAL, smoothing=0, leave=False, dynamic_ncols=True,
            )  # fmt: skip
            self._bar.start_t -= time.monotonic() - self._began  # time and speed include the steps before
            _shown = self

    @contextlib.contextmanager
    def _unharmed(self) -> Iterator[None]:
        """Work goes on without a bar where a bar cannot be drawn: the output is closed, a widget is not supported."""
        try:
            yield
        except Exception:
            global _shown
            self._due = float("inf")
            if self._bar is not None:
                _abandon(self._bar)
            self._bar = None
            if _shown is self:
                _shown = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        global _shown
        if self._bar is not None:
            with self._unharmed():
                self._bar.close()
            self._bar = None
        if _shown is self:
            _shown = None


def _is_wanted() -> bool:
    if sys.stderr is None or getattr(sys.stderr, "closed", False):
        return False
    asked = os.environ.get("GRADTAPE_PROGRESS") if settings.progress is None else settings.progress
    if asked is not None:
        return asked in (True, "1")
    return _is_notebook() or sys.stderr.isatty()


def _is_notebook() -> bool:
    python = sys.modules.get("IPython")
    return python is not None and hasattr(python.get_ipython(), "kernel")


def _kind_of_bar() -> Any:
    """The class of bars: with widgets if available; None without tqdm."""
    if importlib.util.find_spec("tqdm") is None:
        return None
    if _is_notebook() and importlib.util.find_spec("ipywidgets") is not None:
        from tqdm.notebook import tqdm
    else:
        from tqdm import tqdm

    class Bar(tqdm):
        monitor_interval = 0  # tqdm's monitor thread, which updates idle bars, would interfere with forking

        def __init__(self, **options: Any) -> None:
            try:
                super().__init__(**options)
            except Exception:
                _abandon(self)
                raise

    return Bar


def _abandon(bar: Any) -> None:
    """Has tqdm forget a bar that cannot be drawn; it would draw later ones in the line below."""
    with contextlib.suppress(Exception):
        bar.close()
