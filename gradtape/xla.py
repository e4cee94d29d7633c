"""`tf.xla.experimental`: compiled calls."""

from __future__ import annotations

import contextlib as _contextlib
import sys as _sys
import types as _types
from collections.abc import Callable, Iterator
from typing import Any

from gradtape._src.base import nest as _nest
from gradtape._src.functions.function import function as _function
from gradtape._src.public import absent as _absent


def compile(computation: Callable, inputs: Any = None) -> Any:  # noqa: A001
    """Runs `computation(*inputs)` as one compiled program.

    Returns:
      The results of the computation as a list: one tensor is a list of one, None an empty list.

    >>> import gradtape as tf
    >>> tf.xla.experimental.compile(lambda x: x + 1.0, [tf.constant(1.0)])[0].numpy()
    np.float32(2.0)
    """
    result = _function(computation, jit_compile=True)(*(inputs or []))
    if result is None:
        return []
    if isinstance(result, (list, tuple)):
        return list(result)
    return result if _nest.is_nested(result) else [result]


@_contextlib.contextmanager
def jit_scope(compile_ops: Any = True, separate_compiled_gradients: bool = False) -> Iterator[None]:
    """A block without effect: functions are compiled as a whole anyway."""
    yield


experimental = _types.ModuleType("gradtape.xla.experimental", "TensorFlow's namespace `tf.xla.experimental`.")
vars(experimental).update(compile=compile, jit_scope=jit_scope)
_sys.modules[experimental.__name__] = experimental

__getattr__, __dir__ = _absent.of("xla")
