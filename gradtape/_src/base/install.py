"""Checks, before anything else is imported, whether this installation can run; the errors say how to repair it."""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
from collections.abc import Sequence

OLDEST = (3, 11)
_AGAIN = "Hint: python -m pip install --force-reinstall gradtape, with the Python that runs your program."


def check(version: Sequence[int] = tuple(sys.version_info[:2])) -> None:
    """Imports the native core.

    Raises:
      ImportError: if Python is too old, or if the core is missing, belongs to another Python or cannot be loaded.
    """
    if tuple(version[:2]) < OLDEST:
        raise ImportError(
            f"gradtape needs Python {OLDEST[0]}.{OLDEST[1]} or newer, and this is {version[0]}.{version[1]} "
            f"({sys.executable}). Hint: make an environment with a newer Python, and install gradtape there."
        )
    try:
        importlib.import_module("gradtape._core")
    except ModuleNotFoundError as e:
        if e.name != "gradtape._core":
            raise
        raise ImportError(_without_core(importlib.import_module("gradtape").__path__), name=e.name) from None
    except ImportError as e:
        if not e.path:
            raise  # the core was loaded, and its own error says what is missing
        raise ImportError(
            f"gradtape's native core cannot be loaded: {e}. {_AGAIN}", name=e.name, path=e.path
        ) from e


def _without_core(folders: Sequence[str]) -> str:
    """The message if Python does not find the core."""
    files = [name for folder in folders if os.path.isdir(folder) for name in sorted(os.listdir(folder))]
    others = [name for name in files if name.startswith("_core.") and name.endswith((".so", ".pyd"))]
    if others:
        return (
            f"gradtape's native core was built for another Python: {others[0]} is there, and this Python looks for "
            f"_core{importlib.machinery.EXTENSION_SUFFIXES[0]}. {_AGAIN}"
        )
    if any(os.path.exists(os.path.join(folder, "..", "CMakeLists.txt")) for folder in folders):
        return (
            "gradtape's native core is missing: this is a folder of its sources. Hint: run Python elsewhere, or build "
            "the core with `make dev`, and use .venv/bin/python."
        )
    return f"gradtape's native core is missing: the installation in {folders[0]} is not complete. {_AGAIN}"
