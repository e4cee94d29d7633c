"""`tf.compat.v1.logging`: Python's logging, with the logger "gradtape"."""

from __future__ import annotations

import logging as _logging
from typing import Any

from gradtape._src.public import absent as _absent

DEBUG, INFO, WARN, ERROR, FATAL = 10, 20, 30, 40, 50

_log = _logging.getLogger("gradtape")
debug, info, warning, error, fatal, log = (
    _log.debug, _log.info, _log.warning, _log.error, _log.critical, _log.log,
)  # fmt: skip
warn = warning


def set_verbosity(v: Any) -> None:
    """Sets the lowest level that is logged."""
    _log.setLevel(v)


def get_verbosity() -> int:
    """The lowest level that is logged."""
    return _log.getEffectiveLevel()


def flush() -> None:
    """Flushes the handlers."""
    for handler in _log.handlers:
        handler.flush()


def TaskLevelStatusMessage(msg: str) -> None:
    """The same as `error`."""
    _log.error(msg)


def vlog(level: int, msg: str, *args: Any) -> None:
    """The same as `debug`."""
    _log.debug(msg, *args)


def log_first_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Logs a message only the first `n` times."""
    _told[msg] = _told.get(msg, 0) + 1
    if _told[msg] <= n:
        _log.log(level, msg, *args)


def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Logs a message the first time, and every `n` times."""
    if _told.get(msg, 0) % n == 0:
        _log.log(level, msg, *args)
    _told[msg] = _told.get(msg, 0) + 1


def log_if(level: int, msg: str, condition: Any, *args: Any) -> None:
    """Logs a message if a condition holds."""
    if condition:
        _log.log(level, msg, *args)


_told: dict[str, int] = {}


def __dir__() -> list[str]:
    return _absent.names_beside(globals())
