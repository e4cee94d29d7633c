"""Engines: they turn a graph into a program that runs.

There are two. The native one fuses, plans and lowers to the core (`native/`); the XLA one translates to JAX
(`xla/`, the extra `gradtape[xla]`). Code that needs a program asks an engine for it, and does not depend on which
engines exist. A traced function keeps the engine that was current when it was traced, and its derivatives run on
the same one.

    tf.config.set_engine("xla")             all functions
    tf.function(jit_compile=True)           this one
    with tf.device("/GPU:0"): f(x)          calls in the block

Eager ops always run natively.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from gradtape import _core
from gradtape._src.base import log

if TYPE_CHECKING:
    from gradtape._src.graph.ir import Graph


class Engine:
    """Makes programs; the base of all engines."""

    name: str
    device: str  # the device of the results

    def program(self, graph: Graph, updates: list[int] | None = None, checked: bool = False) -> Any:
        """The program that computes the outputs of `graph` from its inputs.

        `program.run(inputs)` returns the outputs for tensors and variables; `program.update(inputs, variables)`
        returns them without the last ones, which become the new values of the variables.

        Args:
          updates: for each output, the input whose new value it is and that it may overwrite, or -1.
          checked: the caller guarantees that no index is out of range.
        """
        raise NotImplementedError

    def step(
        self, graph: Graph, updates: list[int], variables: tuple, externals: tuple, assigned: tuple, rows: tuple
    ) -> Any:  # fmt: skip
        """The step of an optimizer, with `run(gradients)` and `step(pairs)` like those of `_core.Update`."""
        raise NotImplementedError

    def over(self, numbers: Sequence[int]) -> Engine | None:
        """The engine that runs one graph on the devices with these numbers at once, one replica on each.

        None if there are no such devices of its kind, or only one; then replicas take turns, in one graph.
        """
        return None

    def runs(self, graph: Graph) -> bool:
        """Whether it runs the whole graph itself, without native code in between."""
        return True


def module_of(name: str) -> Any:
    """Imports a module of an engine by name: engines import graphs, so graphs cannot import engines."""
    return importlib.import_module(f"{__name__}.{name}")


class Native(Engine):
    """The engine of the core."""

    name = "native"
    device = "/job:localhost/replica:0/task:0/device:CPU:0"

    def program(
        self, graph: Graph, updates: list[int] | None = None, checked: bool = False, local: bool = False
    ) -> Any:
        """Like `Engine.program`; `local`: nothing else refers to the inputs that are overwritten, as in a loop."""
        return module_of("native.lower").compile_graph(graph, updates, local, checked)

    def step(
        self, graph: Graph, updates: list[int], variables: tuple, externals: tuple, assigned: tuple, rows: tuple
    ) -> Any:  # fmt: skip
        """Like `Engine.step`."""
        return _core.Update(self.program(graph, updates, checked=True), variables, externals, assigned, rows)


NATIVE = Native()
EXTRA = 'pip install "gradtape[xla]"'


def need_jax(what: str) -> None:
    """Raises an ImportError that says what needs JAX, if it is not installed."""
    if find_spec("jax") is None:
        raise ImportError(f"{what} needs JAX, which is not installed. Hint: {EXTRA}.")


def xla_on(device: Any = None) -> Engine:
    """The XLA engine, on a JAX device or "cpu"; by default on the first device of the best kind.

    Raises:
      ImportError: if JAX is not installed.
    """
    need_jax("The XLA engine")
    return module_of("xla.engine").engine_on(device)


_default: Engine | None = None if os.environ.get("GRADTAPE_ENGINE") == "xla" else NATIVE
_placed = _core.Setting(None)  # the engine of the innermost `tf.device` that names an accelerator
_HOST: Any = object()  # instead of an engine: host code called from a program


def current() -> Engine:
    """The engine for traces that start now, outside of any function."""
    placed = _placed.now()
    return NATIVE if placed is _HOST else placed or _default or default()


def set_default(engine: Engine) -> None:
    """Sets the engine that is used outside of `tf.device`."""
    global _default
    _default = engine
    _core.new_generation()


def default() -> Engine:
    """The engine set by `set_default` or the environment variable GRADTAPE_ENGINE; the native one by default."""
    if _default is None:
        set_default(xla_on())
    assert _default is not None
    return _default


_jit: Engine | None = None  # of functions with jit_compile=True, once needed


def jit() -> Engine:
    """The engine of functions with `jit_compile=True`: the current one unless it is native, else XLA if installed."""
    global _jit
    engine = current()
    if engine is not NATIVE or _placed.now() is _HOST:
        return engine
    if _jit is None:
        try:
            _jit = xla_on()
        except ImportError as e:
            log.warning("tf.function(jit_compile=True) runs natively: %s", e)
            _jit = NATIVE
    return _jit


def placed(engine: Engine) -> _core.Scope:
    """A scope whose functions run on `engine`."""
    return _placed.to(engine)


def on_host() -> _core.Scope:
    """A scope for host code that a program calls and waits for: all functions run natively."""
    return _placed.to(_HOST)
