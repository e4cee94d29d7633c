"""Functions that Keras 2 registers with TensorFlow when it is imported. Nothing here calls them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from gradtape_imports.code.func_graph import FuncGraph as FuncGraph

registered: dict[str, Any] = {}


def register_call_context_function(function: Callable) -> None:
    """Registers the function that returns the context of the layer that is being called."""
    registered["call_context"] = function


def register_clear_session_function(function: Callable) -> None:
    """Notes the function that forgets the names of layers."""
    registered["clear_session"] = function


def register_get_session_function(function: Callable) -> None:
    """Registers the function that returns Keras' session; there are none."""
    registered["get_session"] = function


def register_session_provider(function: Callable) -> None:
    """Registers the function that gives checkpoints a session; there are none."""
    registered["session_provider"] = function


def register_load_model_function(function: Callable) -> None:
    """Notes the function that reads a model."""
    registered["load_model"] = function


def register_loss_scale_wrapper(optimizer: type, wrapper: Callable, wrapped: type | None = None) -> None:
    """Notes how optimizers of Keras 2 are wrapped for mixed precision."""
    registered["loss_scale"] = (optimizer, wrapper, wrapped)


@contextlib.contextmanager
def load_context(options: Any) -> Iterator[None]:
    """A context in which a model is read with options, which have no effect here."""
    yield
