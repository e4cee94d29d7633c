"""Tells the core where OpenBLAS is: in the wheel scipy-openblas32, loaded at the first product."""

import importlib.util
import os
import sys

from gradtape import _core


def library_path() -> str:
    """The OpenBLAS library of the installed wheel, found without importing the wheel: "" if it is not installed."""
    spec = importlib.util.find_spec("scipy_openblas32")
    if spec is None or not spec.submodule_search_locations:
        return ""
    folder = os.path.join(spec.submodule_search_locations[0], "lib")
    ending = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
    try:
        names = [n for n in os.listdir(folder) if n.startswith("libscipy_openblas") and n.endswith(ending)]
    except OSError:
        names = []
    # Of a damaged wheel the name of what is missing, for the error of the first product.
    return os.path.join(folder, names[0] if names else f"libscipy_openblas{ending}")


_core.set_blas_path(library_path())
