"""Dispatch of public functions on composite values: a class defines what the functions do for its instances.

Every public function, an op or a Python function, first looks for instances of registered classes among its
arguments, also in lists (`core/py/calls.cpp`). While no class is registered this costs one comparison, and calls
with only tensors never look.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape import _core


def register(cls: type, handler: Callable[[Any, tuple, dict], Any]) -> None:
    """Calls of public functions with instances of `cls` among their arguments become `handler(function, args, kwargs)`.

    `function` is the public object itself (`tf.add`, `tf.reduce_sum`); if the handler returns NotImplemented, the
    call goes on as usual. Of several classes, the one registered last is tried first. Operators of tensors with
    such a value on the other side call the handler, too, unless Python finds a method of the value.

    >>> import gradtape as tf
    >>> from gradtape._src.tensors import dispatch
    >>> class Metres:
    ...     def __init__(self, value):
    ...         self.value = value
    >>> def handler(function, args, kwargs):
    ...     return function(*(a.value if isinstance(a, Metres) else a for a in args), **kwargs)
    >>> dispatch.register(Metres, handler)
    >>> tf.reduce_sum(tf.add(Metres([1.0, 2.0]), 1.0)).numpy()
    np.float32(5.0)
    """
    _core.take_calls(cls, handler)
