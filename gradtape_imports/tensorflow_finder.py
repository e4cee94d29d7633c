"""The finder that answers for `tensorflow`, and how it is put in place and taken away.

The file uses the standard library only, and gradtape is imported with the first `import tensorflow`: `start.py` may
install the finder in a Python that never needs either.
"""

from __future__ import annotations

import importlib
import importlib.abc
import os
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

ROOT = "tensorflow"
_OURS = ("gradtape", "keras_gradtape", "gradtape_imports")
_INTERNAL = frozenset(("__internal__", "__operators__", "compiler", "core", "python", "tools"))


class Finder(importlib.abc.MetaPathFinder):
    """Stands in front of the finders of Python."""

    def __init__(self) -> None:
        self.before = frozenset(sys.modules)  # modules imported before the alias

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        root, *parts = name.split(".")
        if root != ROOT:
            return None
        try:
            from gradtape._src.public import modules
        except ImportError as e:
            raise ImportError(
                f"`{ROOT}` is gradtape here, which could not be imported: {e}. Hint: install gradtape again, or do "
                "without the alias (GRADTAPE_AS_TENSORFLOW=0).",
                name=name,
            ) from e
        try:
            return modules.spec_of(name, self._module(parts))
        except AttributeError as e:
            raise ModuleNotFoundError(_words(name, e), name=name) from None

    def _module(self, parts: list[str]) -> ModuleType:
        from gradtape._src.public import modules

        if parts and parts[0] in _INTERNAL:
            from gradtape_imports import internals

            return internals.module(parts)
        if any(part.startswith("_") for part in parts):
            raise AttributeError("it is an internal module of TensorFlow")
        return modules.at(parts)

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        """Lets `importlib.metadata.version("tensorflow")` know which TensorFlow this is like."""
        from gradtape_imports import metadata

        return metadata.find(context)


def _words(name: str, error: AttributeError) -> str:
    said = str(error).partition(": ")[2] or "gradtape has no such module."
    if name.split(".")[1] in _INTERNAL:
        said = "it is internal to TensorFlow, and gradtape has a few such modules only (docs/ecosystem.md)."
    return f"No module named {name!r}, where `{ROOT}` is gradtape: {said}"


def installed() -> Finder | None:
    """The finder, if the alias is in place."""
    return next((finder for finder in sys.meta_path if isinstance(finder, Finder)), None)


def wants_keras2() -> bool:
    """Whether `tf.keras` is to be Keras 2, as TensorFlow's users ask for it; it needs the alias itself."""
    return installed() is not None and os.environ.get("TF_USE_LEGACY_KERAS") in ("1", "true", "True")


def install() -> None:
    """Makes `import tensorflow` mean gradtape, in this process, from now on.

    Every public TensorFlow module that gradtape has is then the same object under both names, so classes,
    exceptions and pickles agree. Call it before anything imports TensorFlow, in a program rather than in a library:
    every package imported afterwards uses gradtape as TensorFlow. A second call has no effect.

    >>> import gradtape
    >>> gradtape.install_as_tensorflow()
    >>> import tensorflow as tf
    >>> tf is gradtape
    True
    >>> gradtape.uninstall_as_tensorflow()

    Raises:
      ImportError: if TensorFlow itself has been imported already. Nothing is changed then.
    """
    if installed():
        return
    there = sys.modules.get(ROOT)
    if there is not None and getattr(there, "__name__", "") != "gradtape":
        raise ImportError(
            f"TensorFlow itself was imported already ({getattr(there, '__file__', None) or there!r}), and one process can "
            "have one `tensorflow`. Hint: install the alias first, or start the program with `python -m gradtape run`."
        )
    sys.meta_path.insert(0, Finder())
    if "gradtape" in sys.modules:
        # Libraries for several frameworks, such as einops, ask which of them has been imported.
        importlib.import_module(ROOT)


def uninstall(force: bool = False) -> None:
    """Takes the alias away again: `import tensorflow` means TensorFlow, or nothing.

    Args:
      force: do so even if modules hold objects imported under that name, which they keep.

    Raises:
      RuntimeError: if modules imported under the alias use it, because their later imports would fail.
    """
    finder = installed()
    if finder is None:
        return
    users = _users(finder)
    if users and not force:
        some = ", ".join(users[:5]) + (", ..." if len(users) > 5 else "")
        raise RuntimeError(
            f"{len(users)} modules were imported while `{ROOT}` meant gradtape, and may import more of it: {some}. "
            "Hint: start a new process, or uninstall_as_tensorflow(force=True)."
        )
    sys.meta_path.remove(finder)
    for name in [name for name in sys.modules if name.split(".")[0] == ROOT]:
        del sys.modules[name]
    for part in _INTERNAL:
        vars(sys.modules.get("gradtape", ModuleType(ROOT))).pop(part, None)


def _users(finder: Finder) -> list[str]:
    """Modules of others that were imported under the alias and hold a module of gradtape's."""
    served = {id(module) for name, module in sys.modules.items() if name.split(".")[0] == ROOT}
    others = [
        (name, module)
        for name, module in list(sys.modules.items())
        if name not in finder.before
        and name.split(".")[0] not in (*_OURS, ROOT, "__main__", "__mp_main__", "keras")
    ]
    return [name for name, module in others if any(id(v) in served for v in list(vars(module).values()))]
