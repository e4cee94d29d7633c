"""`gradtape.export`: reads and writes functions exported by `concrete.export(path)`, one or several in a folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any

from gradtape._src import engines
from gradtape._src.base import errors, nest
from gradtape._src.base.dtypes import as_dtype
from gradtape._src.base.reading import reading
from gradtape._src.public import absent as _absent
from gradtape._src.tensors import conversion

__all__ = ["load"]

FOLDER = "stablehlo"  # in a saved model: a folder for each function
_DESCRIPTION = "description.json"


def load(path: Any) -> Any:
    """Loads the function in a folder, as a function of arrays; `load.py` in the folder does the same without gradtape.

    Args:
      path: what `ConcreteFunction.export` was given.

    Returns:
      A function of arrays that returns JAX arrays; its attribute `variables` is a dictionary of arrays if the
      function was exported with `variables="inputs"`.

    Raises:
      ImportError: if JAX is not installed.
      NotFoundError: if nothing was exported there.
      DataLossError: if it is damaged.
    """
    engines.need_jax("export.load")
    folder = os.fspath(path)
    if not os.path.isfile(os.path.join(folder, _DESCRIPTION)):
        raise errors.NotFoundError(
            None,
            None,
            f"export.load: there is no exported function in {folder}. Hint: concrete.export(path).",
        )
    from gradtape._src.engines.xla.load import load as load_from

    with reading(f"export.load: {folder} is damaged: "):
        return load_from(folder)


def write(folder: str, functions: Mapping[str, Any], options: Mapping[str, dict] | None = None) -> None:
    """Exports concrete functions to `folder/stablehlo/<name>`: all of them or none."""
    engines.need_jax("export")
    parent = os.path.join(folder, FOLDER)
    is_new = not os.path.exists(folder)
    if os.path.exists(parent):
        raise errors.AlreadyExistsError(None, None, f"export: {parent} exists already. Hint: another path.")
    try:
        for name, function in functions.items():
            function.export(os.path.join(parent, name), **(options or {}).get(name, {}))
    except BaseException:
        shutil.rmtree(folder if is_new else parent, ignore_errors=True)
        raise


def has_functions(folder: str) -> bool:
    """Whether `write` has written to a folder."""
    return bool(_names(folder))


def _names(folder: str) -> list[str]:
    parent = os.path.join(folder, FOLDER)
    entries = sorted(os.listdir(parent)) if os.path.isdir(parent) else []
    return [n for n in entries if os.path.isfile(os.path.join(parent, n, _DESCRIPTION))]


class Endpoints:
    """The functions that `write` has written, as methods that take tensors; `signatures` is a dictionary of them."""

    def __init__(self, folder: str) -> None:
        self.signatures = {n: _on_tensors(load(os.path.join(folder, FOLDER, n))) for n in _names(folder)}
        vars(self).update({n: f for n, f in self.signatures.items() if n != "signatures"})


def _on_tensors(function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = nest.map_structure(_array, (args, kwargs))
        return nest.map_structure(_tensor, function(*args, **kwargs))

    return call


def _array(x: Any) -> Any:
    return x.numpy() if hasattr(x, "numpy") else x


def _tensor(x: Any) -> Any:
    return conversion.convert(x, as_dtype(x.dtype.name)._code) if hasattr(x, "dtype") else x


__getattr__, __dir__ = _absent.of("export")
