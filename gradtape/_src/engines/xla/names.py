"""JAX names that have moved, or may move: the only place to change when they do."""

from __future__ import annotations

from typing import Any

from jax import enable_x64, pure_callback
from jax.errors import JaxRuntimeError
from jax.experimental import io_callback

__all__ = ["JaxRuntimeError", "direct_call", "enable_x64", "io_callback", "is_started", "pure_callback"]


def direct_call(compiled: Any) -> Any:
    """A compiled function without the Python frame around it."""
    executable = getattr(compiled, "_executable", None)
    make = getattr(executable, "create_cpp_call", None)
    direct = None if make is None else make(compiled._params)
    return compiled if direct is None else direct


def is_started() -> bool:
    """Whether JAX has looked for its devices; then the number of CPUs cannot be changed any more."""
    from jax._src import xla_bridge

    return xla_bridge.backends_are_initialized()
