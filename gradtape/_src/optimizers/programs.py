"""The native programs of optimizer steps, for gradtape's own optimizers and Keras'.

A step is tensor arithmetic that reads and assigns variables. It is traced once for a list of variables
and kinds of gradients; later steps run the program, which writes the new values over the old ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape import _core
from gradtape._src import engines
from gradtape._src.base.contexts import aside
from gradtape._src.graph.ir import symbolic
from gradtape._src.graph.trace import Trace
from gradtape._src.tensors.conversion import as_tensor, leaf_of
from gradtape._src.tensors.indexed_slices import IndexedSlices

# Cached programs, for different variables and numbers of rows of sparse gradients.
_MOST_PROGRAMS = 64


def held(variable: Any) -> Any:
    """The `tf.Variable` of a variable: Keras' variables contain one."""
    leaf = leaf_of(variable)
    return variable if leaf is None else leaf


def flattened(grads: Sequence[Any]) -> list[Any]:
    """The tensors of gradients: of sparse ones, values and indices."""
    flat: list[Any] = []
    for g in grads:
        flat += (as_tensor(g._values), as_tensor(g._indices)) if isinstance(g, IndexedSlices) else (g,)
    return flat


class Programs:
    """The programs of an optimizer. Copies and pickles of the optimizer start without any."""

    def __init__(self) -> None:
        self._updates = _core.Cache(_MOST_PROGRAMS)
        self._last: Any = None
        self._engine: Any = None  # the engine of the last step

    @property
    def last(self) -> Any:
        """The program of the last step, if there was nothing to do besides it, and the engine is still the same.

        `last.step(pairs)` takes the next step in a single native call, or returns that it cannot.
        """
        return self._last if self._engine is engines.current() else None

    @last.setter
    def last(self, update: Any) -> None:
        self._last, self._engine = update, engines.current()

    def __len__(self) -> int:
        return len(self._updates)

    def __reduce__(self) -> tuple:
        return Programs, ()

    def find(self, variables: Sequence[Any], flat: Sequence[Any], option: Any = None) -> Any:
        """The program for these variables, kinds of gradients, and this option; None if there is none."""
        return self._updates.find((option, engines.current(), [held(v) for v in variables], flat))

    def make(
        self, step: Callable[[list[Any]], Any], grads: Sequence[Any], variables: Sequence[Any], option: Any = None
    ) -> Any:  # fmt: skip
        """The program of `step`, traced with symbols for the gradients."""
        update = _traced(step, grads, variables)
        self.keep(update, variables, flattened(grads), option)
        return update

    def keep(self, update: Any, variables: Sequence[Any], flat: Sequence[Any], option: Any = None) -> None:
        """Stores the program that `find` returns from now on."""
        self._updates.add((option, engines.current(), [held(v) for v in variables], flat), update)

    def run(self, update: Any, flat: Sequence[Any], alone: bool) -> bool:
        """Takes a step: all variables have their new values then, or none of them.

        Args:
          alone: whether the next step may be `last.step(pairs)`.

        Returns:
          False if a gradient or a variable does not have the shape that the program is for.
        """
        done = update.run(flat)
        self.last = update if done and alone else None
        return done


def _traced(step: Callable[[list[Any]], Any], grads: Sequence[Any], variables: Sequence[Any]) -> Any:
    trace = Trace()

    def symbol_of(t: Any) -> Any:
        return symbolic(trace.input(t._dims, t.dtype._code))

    symbols: list[Any] = []
    rows: list[tuple[int, int]] = []  # of sparse gradients: where the indices are, and their limit
    for g, v in zip(grads, variables, strict=True):
        if isinstance(g, IndexedSlices):
            shape = tuple(held(v)._value_shape)
            symbols.append(IndexedSlices(symbol_of(g.values), symbol_of(g.indices), shape))
            rows.append((len(trace.inputs) - 1, shape[0]))
        else:
            symbols.append(symbol_of(g))
    n = len(trace.inputs)
    with aside(trace):
        step(symbols)
        trace.outputs = [trace.value_of(trace.state[key]) for key in trace.assigned]
    read = {id(e): n + i for i, e in enumerate(trace.externals)}
    updates = [read.get(key, -1) for key in trace.assigned]
    assigned = tuple(trace.assigned.values())
    return engines.current().step(
        trace, updates, tuple(variables), tuple(trace.externals), assigned, tuple(rows)
    )
