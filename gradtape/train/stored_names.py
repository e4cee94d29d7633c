"""The names that a folder of `tf.saved_model` may use: classes and functions defined by the program, not by the file."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

from gradtape._src.functions.function import Function
from gradtape._src.ops import PUBLIC
from gradtape._src.state.module import Module


def _modules(cls: type = Module) -> Iterator[type]:
    """`tf.Module` and its subclasses defined by the program, oldest first."""
    yield cls
    child: type
    for child in cls.__subclasses__():
        yield from _modules(child)


def allowed(name: str) -> Any:
    """The object that "module:name" in a folder refers to; None if it is not allowed, or does not exist.

    An op of gradtape, a subclass of `tf.Module`, or a function (Python, or `tf.function`) at the top level of a
    Python module that defines such a class.
    """
    module, _, path = name.partition(":")
    if module == "gradtape" and path in PUBLIC:
        return PUBLIC[path]
    result = None
    beside = False
    for cls in _modules():
        if cls.__module__ == module:
            beside = True
            # The newest class of a name, since a cell of a notebook may run again.
            result = cls if cls.__qualname__ == path and "<locals>" not in path else result
    if result is None and beside and not module.startswith("gradtape.") and not path.startswith("__"):
        value = vars(sys.modules.get(module, object)).get(path)
        python = value.python_function if type(value) is Function else value
        if isinstance(python, types.FunctionType) and python.__module__ == module:
            result = value
    return result


def class_of(name: str) -> type:
    """The class of a stored object.

    Raises:
      ImportError: if the program has no such subclass of `tf.Module`, or if creating an object could run code.
    """
    cls = allowed(name)
    if not isinstance(cls, type):
        raise unknown(name, "is not a subclass of tf.Module that this program has defined")
    if hasattr(cls, "__del__"):
        raise unknown(name, "has a method __del__, which would run with data from the file")
    return cls


def unknown(name: str, why: str) -> ImportError:
    return ImportError(
        f"saved_model.load: {name} {why}. Loading imports nothing and runs nothing: a stored module needs the code it "
        "was made of. Hint: import what defines the class before loading."
    )
