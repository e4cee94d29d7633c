"""Engines: what turns a graph into a program that runs.

There are two. The native one fuses, plans and lowers to the core (`native/`); the XLA one translates to JAX (`xla/`, the
extra `gradtape[xla]`). Code that needs a program asks an engine for it, and does not depend on which engines exist. A
traced function keeps the engine that was current when it was traced, and its derivatives run on the same one.

    tf.config.set_engine("xla")             all functions
    tf.function(jit_compile=True)           this one
    with tf.device("/GPU:0"): f(x)          what is called in the block

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
    device: str  # where results are

    def program(self, graph: Graph, updates: list[int] | None = None, checked: bool = False) -> Any:
        """The program that computes the outputs of `graph` from its inputs.

        `program.run(inputs)` gives the outputs for tensors and variables; `program.update(inputs, variables)` gives them
        without the last ones, which are the new values of the variables.

        Args:
          updates: for each output the input it is a new value of, or -1: it may be written over that.
          checked: no index is out of range.
        """
        raise NotImplementedError

    def step(
        self, graph: Graph, updates: list[int], variables: tuple, externals: tuple, assigned: tuple, rows: tuple
    ) -> Any:  # fmt: skip
        """The step of an optimizer: `run(gradients)` and `step(pairs)` as those of `_core.Update`."""
        raise NotImplementedError

    def over(self, numbers: Sequence[int]) -> Engine | None:
        """The engine that runs one graph on the devices with these numbers at once, a replica on each.

        None if there are no such devices of its kind, or only one: then replicas take turns, in one graph.
        """
        return None

    def runs(self, graph: Graph) -> bool:
        """Whether it runs all of a graph itself, without native code in between."""
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
        """Like `Engine.program`; `local`: nothing else refers to the inputs that are written over, as in a loop."""
        return module_of("native.lower").compile_graph(graph, updates, local, checked)

    def step(
        self, graph: Graph, updates: list[int], variables: tuple, externals: tuple, assigned: tuple, rows: tuple
    ) -> Any:  # fmt: skip
        """Like `Engine.step`."""
        return _core.Update(self.program(graph, updates, checked=True), variables, externals, assigned, rows)


NATIVE = Native()
EXTRA = 'pip install "gradtape[xla]"'


def need_jax(what: str) -> None:
    """Raises an ImportError that names what needs JAX, if it is not installed."""
    if find_spec("jax") is None:
        raise ImportError(f"{what} needs JAX, which is not installed. Hint: {EXTRA}.")


def xla_on(device: Any = None) -> Engine:
    """The XLA engine, on a device of JAX's, or "cpu"; without one, on the first of the best kind.

    Raises:
      ImportError: if JAX is not installed.
    """
    need_jax("The XLA engine")
    return module_of("xla.engine").engine_on(device)


_default: Engine | None = None if os.environ.get("GRADTAPE_ENGINE") == "xla" else NATIVE
_placed = _core.Setting(None)  # the engine of the innermost `tf.device` that names an accelerator
_HOST: Any = object()  # instead of an engine: host code called from a program


def current() -> Engine:
    """The engine of what is traced now, outside of any function."""
    placed = _placed.now()
    return NATIVE if placed is _HOST else placed or _default or default()


def set_default(engine: Engine) -> None:
    """The engine wherever no `tf.device` says otherwise."""
    global _default
    _default = engine
    _core.new_generation()


def default() -> Engine:
    """What `set_default` or the environment variable GRADTAPE_ENGINE has set; the native one."""
    if _default is None:
        set_default(xla_on())
    assert _default is not None
    return _default


_jit: Engine | None = None  # of functions with jit_compile=True, once it was asked for


def jit() -> Engine:
    """The engine of functions with `jit_compile=True`: the current one unless that is native, or XLA if it is there."""
    global _jit
    now = current()
    if now is not NATIVE or _placed.now() is _HOST:
        return now
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
