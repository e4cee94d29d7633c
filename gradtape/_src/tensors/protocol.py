"""The interface between the native core and Python, in one place.

The core calls Python in rare cases, through functions registered once (`Hooks`) and through methods of the
objects that a thread has entered (`Trace`, `Tracker`, `Watcher`, `Tape`; see core/py/thread_state.h) or that a tensor
carries (`Symbol`). Names here are the names in core/py; `mypy` holds the classes to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypedDict

from gradtape import _core

Specs = Sequence[tuple[int, tuple[int, ...]]]  # number of the type, shape


class Hooks(TypedDict):
    """Functions and tables that `_core.set_hooks` gives to the core (`struct Hooks` in core/py/objects.h)."""

    convert: Callable[
        ..., _core.Tensor
    ]  # (value, type or -1): converts anything but a number, tensor or buffer
    shape: Callable[[tuple], Any]  # a tuple of ints as a TensorShape
    dtypes: Sequence[Any]  # DTypes by number
    reads: Callable[..., list[int]]  # (op, operands, results, attributes): bits of the values each rule reads
    index: Callable[[Any, Any], Any]  # x[key] for masks and other rare keys
    accumulate: Callable[[Any, Any], Any]  # the sum of gradients of which one is sparse
    densify: Callable[[Any], Any]  # an IndexedSlices as a tensor
    errors: Sequence[Callable[[str], Exception]]  # constructors, by Code in core/error.h
    argument_error: type[Exception]  # the class of Code::Argument
    graph_inputs: Callable[[Specs], tuple[Any, list]]  # a new graph, and a symbol for each input
    graph_program: Callable[
        [Any, list, bool], tuple[Any, list]
    ]  # (graph, gradients, dense): function, places
    not_compiled: Callable[
        [Exception, bool], None
    ]  # why a pass runs rule by rule; whether all rules are ours
    slices: Callable[..., Any]  # (values, indices, dense shape): an IndexedSlices
    dtype_code: Callable[[Any], int]  # anything that names a type, as its number
    np_empty: Callable[..., Any]
    np_dtypes: Sequence[Any]  # NumPy's types by number
    fetch: Callable[[Any], Any]  # an array on a device: its bytes on the host
    held: Callable[[Any, tuple, tuple], Any]  # an op on values that Python holds: (op, operands, attributes)
    stored: Callable[[Any, int], Any]  # (bits, type) of a type that is only stored: the result of numpy()
    times_bools: Callable[[Any, Any], Any]  # x * y, one of them a tensor of bools
    locate: Callable[[BaseException, Any], None]  # names the line of the user's program in an exception


class Symbol(Protocol):
    """The symbol of a tensor without a value: it is called for every op that has the tensor as an operand."""

    def trace(self, op: Any, operands: tuple, results: tuple, attrs: tuple) -> None: ...


class Trace(Protocol):
    """The graph that a thread is writing (`_core.Scope(trace=...)`)."""

    start: int  # tensors made before this count come from outside
    keeps_constants: bool  # tensors created during the trace are constants of the graph

    def read(self, variable: Any) -> _core.Tensor:
        """The value of a variable at this point."""
        ...

    def assign(self, variable: Any, tensor: _core.Tensor) -> None:
        """Assigns a value to a variable, from this point on."""
        ...

    def symbol_for(self, tensor: _core.Tensor) -> _core.Tensor:
        """The trace's tensor for a tensor from outside."""
        ...

    def ones_like(self, tensor: _core.Tensor) -> _core.Tensor:
        """The cotangent of a target when none is given."""
        ...


class Tracker(Protocol):
    """Is notified of assignments (`_core.Scope(tracker=...)`, `tape._follow`)."""

    def read(self, variable: Any) -> _core.Tensor | None:
        """The tensor that a variable was assigned, or None."""
        ...

    def assign(self, variable: Any, tensor: _core.Tensor) -> None:
        """A variable has been given a value."""
        ...


class Watcher(Protocol):
    """Is called with every op that runs eagerly (`_core.Scope(watcher=...)`); may raise."""

    def __call__(self, op: Any, operands: tuple, result: Any) -> None: ...


class Tape(Protocol):
    """A subclass of `_core.Tape` that tracks assignments."""

    def _entering(self) -> None:
        """Called before the tape records."""
        ...

    def _left(self) -> None:
        """Called when the tape has stopped recording."""
        ...


class GraphRule(Protocol):
    """The gradient function of a recorded graph (`_core.record` with values to keep).

    It is called with the cotangents (None where there is none, the number 0 where it is structurally zero), the
    operands and the results, and returns a gradient for each operand.
    """

    connected: tuple[bool, ...]  # the operands it has gradients for

    def __call__(self, gs: tuple, ins: tuple, outs: tuple) -> list: ...
