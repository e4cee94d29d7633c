"""Custom gradients in graphs, and barriers.

A `CustomGradient` is an identity with its own gradient: a graph made by tracing the user's function
once, with the values it captured as further operands. So a tape outside of a function, and a second
derivative, use it too. Lowering removes it. Variables that the gradient reads are read when it runs,
as in eager mode: the backward half of a derivative has a `CurrentValue` for each.

A `barrier` is an identity, too. Simplification never merges values computed from its results with values
computed from its operands, and nothing after it runs before all operands are computed. So the forward pass
that `recompute_grad` repeats stays separate from the first one, and starts only when its cotangent is
available. Lowering removes it too; the order of the steps remains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base.contexts import aside
from gradtape._src.base.errors import SIGNALS, UnimplementedError
from gradtape._src.base.replicas import NeedsOthers
from gradtape._src.graph.callable import GraphFunction, pack, unpack
from gradtape._src.graph.ir import Callback, symbolic
from gradtape._src.graph.trace import Trace
from gradtape._src.tensors.conversion import as_tensor, read
from gradtape._src.tensors.indexed_slices import IndexedSlices


class CurrentValue(Callback):
    """The value, at the time of the backward pass, of a variable that a custom gradient reads.

    The operand is the value of the forward pass (or a batch of it); gradients flow to that.
    """

    runs_late = True

    def __init__(self, variable: Any) -> None:
        super().__init__("current_value", lambda before: [_over_batch(variable._read()._detach(), before)])
        self.variable = variable

    def __call__(self, operands: Sequence[Any], specs: Sequence[tuple]) -> list:
        if isinstance(_core.current_trace(), Trace):
            return [_over_batch(self.variable._read(), operands[0])]
        results = super().__call__(operands, specs)
        _core.record(tuple(results), tuple(operands), lambda g: [g])
        return results


def _over_batch(x: Any, like: Any) -> Any:
    return x if tuple(x.shape) == tuple(like.shape) else ops.broadcast_to(x, like.shape)


class CustomGradient(Callback):
    """The node: results, then inputs, then what the gradient captured."""

    passes_on = True

    def __init__(
        self,
        backward: GraphFunction,
        n_outputs: int,
        n_inputs: int,
        wanted: list[int],
        places: list,
        variables: list[Any],
    ) -> None:
        super().__init__("custom_gradient", lambda *tensors: [t._detach() for t in tensors[:n_outputs]])
        self.backward = backward
        self.n_outputs = n_outputs
        self.n_inputs = n_inputs
        self.wanted = wanted  # the results that have a cotangent
        self.places = places
        self.variables = variables  # for each captured tensor the variable that it was read from, or None
        self.error: Exception | None = None  # raised by the user's function while it was traced

    def __call__(self, operands: Sequence[Any], specs: Sequence[tuple]) -> list:
        results = super().__call__(operands, specs)
        inputs = operands[self.n_outputs : self.n_outputs + self.n_inputs]
        captured = list(operands[self.n_outputs + self.n_inputs :])

        def gradients(*gs: Any) -> list:
            if self.error is not None:
                raise self.error
            current = [
                x if v is None else CurrentValue(v)([x], [(tuple(x.shape), x.dtype._code)])[0]
                for x, v in zip(captured, self.variables, strict=True)
            ]
            return unpack(self.places, self.backward([*(gs[k] for k in self.wanted), *current]))

        _core.record(tuple(results), tuple(inputs), gradients)
        return results


def with_gradient(outputs: Sequence[Any], inputs: Sequence[Any], gradients: Callable[..., list]) -> list:
    """In a trace: the outputs, with `gradients(*cotangents)` as their gradient."""
    trace = _core.current_trace()
    sub = Trace(outer=trace)
    targets = [k for k, y in enumerate(outputs) if y.dtype.is_floating or y.dtype.is_complex]
    seeds = {k: symbolic(sub.input(tuple(outputs[k].shape), outputs[k].dtype._code)) for k in targets}
    sub.gradient_of = getattr(getattr(gradients, "f", None), "__code__", None)
    error: Exception | None = _too_often(sub)
    with aside(sub):
        try:
            given = [None for _ in inputs]
            if error is None:
                given = gradients(*(seeds.get(k) for k in range(len(outputs))))
        except (*SIGNALS, NeedsOthers):
            raise
        except Exception as e:  # the error matters only if the gradient is used
            if not getattr(trace, "is_kept", False):
                raise  # vectorized_map calls it row by row, where it has values
            error, given = e, [None for _ in inputs]
        places, flat = pack([_tensor(g, x) for g, x in zip(given, inputs, strict=True)])
        sub.outputs = [sub.value_of(t) for t in flat]
    captured = [read(e) for e in sub.externals]
    # Which variable an argument was is not known later, so its value in the forward pass counts.
    variables = [
        e if isinstance(e, _core.Variable) and not getattr(e, "is_proxy", False) else None
        for e in sub.externals
    ]
    sub.externals.clear()  # they would keep the outer trace alive: a cycle that Python's collector cannot see
    reads = [read(x) for x in inputs]
    op = CustomGradient(
        GraphFunction(sub, "custom gradient"), len(outputs), len(reads), targets, places, variables
    )
    op.error = error
    results = Callback.__call__(
        op, [*outputs, *reads, *captured], [(tuple(y.shape), y.dtype._code) for y in outputs]
    )
    # A tape inside the function records the user's code itself, on the tensors that it tracks.
    _core.record(tuple(results), tuple(reads), gradients)
    return results


def _too_often(sub: Any) -> Exception | None:
    """Stops the infinite recursion of tracing a custom gradient that calls its own function."""
    if sub.gradient_of is None:
        return None
    depth, trace = 0, sub.outer
    while trace is not None:
        depth += getattr(trace, "gradient_of", None) is sub.gradient_of
        trace = getattr(trace, "outer", None)
    if depth < _MOST_ORDERS:
        return None
    return UnimplementedError(
        f"In a function, {sub.gradient_of.co_qualname} can be differentiated {_MOST_ORDERS} times: its gradient calls it "
        "again. Hint: differentiate outside of tf.function, or with a tape inside of it."
    )


_MOST_ORDERS = 2


def _tensor(g: Any, x: Any) -> Any:
    return g if g is None or isinstance(g, IndexedSlices) else as_tensor(g, x)


# ---- barriers -------------------------------------------------------------------------------


class Barrier(Callback):
    """The node: as many results as operands, the same values."""

    is_barrier = True
    xla = "control.barrier"

    def __init__(self) -> None:
        super().__init__("barrier", lambda *tensors: [t._detach() for t in tensors])

    def __call__(self, operands: Sequence[Any], specs: Sequence[tuple]) -> list:
        results = super().__call__(operands, specs)
        # One record for each: to a tape, each result depends only on its own operand.
        for result, operand in zip(results, operands, strict=True):
            _core.record((result,), (operand,), lambda g: [g])
        return results


_BARRIER = Barrier()


def barrier(tensors: Sequence[Any]) -> list:
    """The same tensors, hidden from simplification, and available only once all of them are."""
    return _BARRIER(tensors, [(tuple(t.shape), t.dtype._code) for t in tensors])
