"""Checks, before anything else is imported, whether this installation can run; the errors say how to repair it."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence

OLDEST = (3, 11)
OLDEST_NUMPY = (1, 26)  # as pyproject.toml says
_NUMPY = (
    'Hint: python -m pip install --upgrade "numpy>={}.{}", with the Python that runs your program.'.format(
        *OLDEST_NUMPY
    )
)
_AGAIN = "Hint: python -m pip install --force-reinstall gradtape, with the Python that runs your program."


def check(version: str, python: Sequence[int] = tuple(sys.version_info[:2])) -> None:
    """Imports NumPy and the native core, which is to be of this version of gradtape.

    Raises:
      ImportError: if Python or NumPy is too old or missing, or if the core is missing, damaged, belongs to another
        Python or another version of gradtape, or cannot be loaded.
    """
    if tuple(python[:2]) < OLDEST:
        raise ImportError(
            f"gradtape needs Python {OLDEST[0]}.{OLDEST[1]} or newer, and this is {python[0]}.{python[1]} "
            f"({sys.executable}). Hint: make an environment with a newer Python, and install gradtape there."
        )
    try:
        path = path_of_core()
        core = importlib.import_module("gradtape._core")
    except ModuleNotFoundError as e:
        if e.name != "gradtape._core":
            raise
        raise ImportError(_without_core(importlib.import_module("gradtape").__path__), name=e.name) from None
    except ImportError as e:
        if not e.path:
            raise  # the core was loaded, and its own error says what is missing
        raise ImportError(
            f"gradtape's native core cannot be loaded: {e}. {hint(str(e))}", name=e.name, path=e.path
        ) from e
    built = getattr(core, "VERSION", "an older version")
    if built != version:
        raise ImportError(
            f"gradtape's files are of different versions: {version} in Python, and the native core {path} is "
            f"of {built}. {_again()}",
            name="gradtape._core",
            path=path,
        )
    _check_numpy()  # after the core, which refuses a subinterpreter: NumPy says less about that


def _check_numpy() -> None:
    try:
        numpy = importlib.import_module("numpy")
    except ModuleNotFoundError as e:
        if e.name != "numpy":
            raise
        raise ModuleNotFoundError(
            f"gradtape needs NumPy, which is not installed. {_NUMPY}", name="numpy"
        ) from None
    found = numpy.__version__.split(".")[:2]
    if tuple(int(part) for part in found if part.isdigit()) < OLDEST_NUMPY:
        raise ImportError(
            "gradtape needs NumPy {}.{} or newer, and this is {} ({}). {}".format(
                *OLDEST_NUMPY, numpy.__version__, os.path.dirname(numpy.__file__ or ""), _NUMPY
            ),
            name="numpy",
        )


def path_of_core() -> str | None:
    """Where the core is.

    Raises:
      ImportError: if only a part of the file is there, which might be loaded, and end the process when it is used.
    """
    spec = importlib.util.find_spec("gradtape._core")
    if spec is None or spec.origin is None:
        return None
    with open(spec.origin, "rb") as file:
        head = file.read(64)
        size = os.fstat(file.fileno()).st_size
    if head[:6] == b"\x7fELF\x02\x01" and len(head) == 64:  # as 64-bit Linux has it
        # The last thing in such a file is the table of its sections: where it begins, and how long it is.
        start = int.from_bytes(head[40:48], "little")
        end = start + int.from_bytes(head[58:60], "little") * int.from_bytes(head[60:62], "little")
    else:
        end = 64
    if size < end:
        raise ImportError(
            f"{spec.origin} has {size:,} bytes, and should have at least {end:,}",
            name=spec.name,
            path=spec.origin,
        )
    return spec.origin


def _again() -> str:
    """What to do about a core that does not fit: build it again, or install it."""
    if _of_sources(importlib.import_module("gradtape").__path__):
        return "Hint: build it again with `make dev`."
    return _AGAIN


def hint(why: str) -> str:
    """What to do about a core that the system's loader refuses, for the reason that it gives."""
    if "GLIBC" in why:  # GLIBC_2.34, GLIBCXX_3.4.29: of the C and the C++ library
        return (
            "Hint: the C library of this system is older than the one it was built for. Build gradtape here, with a C++ "
            "compiler: python -m pip install --force-reinstall --no-binary gradtape gradtape"
        )
    return _again()


def _of_sources(folders: Sequence[str]) -> bool:
    return any(os.path.exists(os.path.join(folder, "..", "CMakeLists.txt")) for folder in folders)


def _without_core(folders: Sequence[str]) -> str:
    """The message if Python does not find the core."""
    files = [name for folder in folders if os.path.isdir(folder) for name in sorted(os.listdir(folder))]
    others = [name for name in files if name.startswith("_core.") and name.endswith((".so", ".pyd"))]
    if others:
        return (
            f"gradtape's native core was built for another Python: {others[0]} is there, and this Python looks for "
            f"_core{importlib.machinery.EXTENSION_SUFFIXES[0]}. {_AGAIN}"
        )
    if _of_sources(folders):
        return (
            "gradtape's native core is missing: this is a folder of its sources. Hint: run Python elsewhere, or build "
            "the core with `make dev`, and use .venv/bin/python."
        )
    return f"gradtape's native core is missing: the installation in {folders[0]} is not complete. {_AGAIN}"
