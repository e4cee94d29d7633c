"""`tensorflow.python.framework.test_util`: decorators of tests. Tests only run eagerly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable)


def _same(test: T) -> T:
    """The test, unchanged."""
    return test


disable_cudnn_autotune = enable_control_flow_v2 = _same
run_all_in_graph_and_eager_modes = _same


def run_in_graph_and_eager_modes(
    func: Any = None, config: Any = None, use_gpu: bool = True, assert_no_eager_garbage: bool = False
) -> Any:
    """The test, unchanged; or a decorator that returns it unchanged."""
    return _same if func is None else func


def InstallStackTraceHandler() -> None:
    """Nothing to do: Python's faulthandler shows where a process ended."""


def disable_xla(description: str) -> Callable[[T], T]:
    """A decorator of tests that XLA does not run."""
    return _same


def is_xla_enabled() -> bool:
    """False: not for whole programs."""
    return False


def IsMklEnabled() -> bool:
    """False."""
    return False


def is_gpu_available(*args: Any, **kwargs: Any) -> bool:
    """False: the native core is for processors."""
    return False
