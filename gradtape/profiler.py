"""`tf.profiler`: placeholders for TensorFlow's profiler. They profile nothing and warn that they do not.

Python's profilers (cProfile, py-spy) see every op as a call.
"""

from __future__ import annotations

import logging
import sys as _sys
import types as _types
from typing import Any, NamedTuple

from gradtape._src.public import absent as _absent

_log = logging.getLogger("gradtape")


class ProfilerOptions(NamedTuple):
    """Settings, without effect."""

    host_tracer_level: int = 2
    python_tracer_level: int = 0
    device_tracer_level: int = 1
    delay_ms: int | None = None


def start(logdir: Any, options: Any = None) -> None:
    """Profiles nothing, and warns about it."""
    _log.warning(
        "tf.profiler.experimental.start profiles nothing: gradtape has no profiler of its own. Hint: python -m "
        "cProfile, or py-spy."
    )


def stop(save: bool = True) -> None:
    """Nothing to stop."""


class Profile:
    """A context that profiles nothing, and warns about it."""

    def __init__(self, logdir: Any, options: Any = None) -> None:
        self._logdir = logdir

    def __enter__(self) -> None:
        start(self._logdir)

    def __exit__(self, *exc_info: Any) -> None:
        stop()


class Trace:
    """A named section of a profile: a context manager without effect."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        self.name = name

    def set_metadata(self, **kwargs: Any) -> None:
        """Without effect."""

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        pass


experimental = _types.ModuleType(
    "gradtape.profiler.experimental", "TensorFlow's namespace `tf.profiler.experimental`."
)
vars(experimental).update(
    Profile=Profile, ProfilerOptions=ProfilerOptions, Trace=Trace, start=start, stop=stop
)
_sys.modules[experimental.__name__] = experimental

__getattr__, __dir__ = _absent.of("profiler")
