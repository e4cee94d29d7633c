"""`tf.gradients` and `tf.hessians`: derivatives of a graph while it is traced, without a tape.

The trace of a function holds every op that was called. So the part between `xs` and `ys` is replayed
on a new tape, call by call, and the tape is requested the gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import NeedsConstants, more
from gradtape._src.graph.ir import Callback, Node, Value, symbolic
from gradtape._src.graph.trace import Trace
from gradtape._src.tapes.tape import GradientTape, UnconnectedGradients
from gradtape._src.tensors import conversion, hooks

_EAGER = "tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead."


@one_call
def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list:
    """The gradients of the sum of `ys` with respect to each of `xs`, inside a `tf.function`.

    Args:
      ys: a tensor or a list of them.
      xs: a tensor, a variable, or a list of them.
      grad_ys: weights of `ys`, one for each; None stands for ones.
      name, gate_gradients, aggregation_method: accepted, without effect.
      stop_gradients: tensors that count as constants.
      unconnected_gradients: "none" or "zero": the gradient of an x on which `ys` does not depend.

    Returns:
      A list with one gradient for each of `xs`.

    Raises:
      RuntimeError: outside of a `tf.function`, where `tf.GradientTape` does this.

    >>> import gradtape as tf
    >>> @tf.function
    ... def example():
    ...     a = tf.constant(0.0)
    ...     b = 2 * a
    ...     return tf.gradients(a + b, [a, b], stop_gradients=[a, b])
    >>> [g.numpy() for g in example()]
    [np.float32(1.0), np.float32(1.0)]
    """
    traces = _traces()
    try:
        unconnected = UnconnectedGradients(unconnected_gradients)
    except ValueError:
        raise ValueError(f"Unknown value for unconnected_gradients: {unconnected_gradients!r}") from None
    targets, sources = [_target(y) for y in _as_list(ys)], _as_list(xs)
    seeds = _as_list(grad_ys) if grad_ys is not None else [None] * len(targets)
    if len(seeds) != len(targets):
        raise ValueError(f"Length mismatch. Passed {len(seeds)} grad_ys for {len(targets)} ys")
    for y, g in zip(targets, seeds, strict=True):
        if g is None and y.dtype.is_complex:
            raise TypeError(
                f"Gradients of complex tensors ({y}) must set grad_ys (y.dtype = {y.dtype.name})"
                + more("complex-losses")
            )
    stops = _as_list(stop_gradients) if stop_gradients is not None else []
    walk = _Walk(traces, sources, stops, targets)
    grads = walk.gradients(targets, seeds)
    if unconnected is UnconnectedGradients.ZERO:
        grads = [ops.zeros_like(x) if g is None else g for g, x in zip(grads, sources, strict=True)]
    return grads


@one_call
def hessians(
    ys: Any,
    xs: Any,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    name: str = "hessians",
) -> list:
    """The Hessians of the sum of `ys` with respect to each of `xs`, inside a `tf.function`.

    Returns:
      For each of `xs` a tensor of shape `[*x.shape, *x.shape]`; zeros where `ys` is linear in it.

    >>> import gradtape as tf
    >>> f = tf.function(lambda x: tf.hessians(tf.reduce_sum(x**3), x))
    >>> f(tf.constant([1.0, 2.0]))[0].numpy()
    array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)
    """
    results = []
    for x, g in zip(_as_list(xs), gradients(ys, xs), strict=True):
        h = None
        if g is not None:
            g = conversion.densify(g)
            h = _Walk(_traces(), [x], [], [g]).jacobian(g)
        results.append(ops.zeros([*x.shape, *x.shape], x.dtype) if h is None else h)
    return results


def _as_list(values: Any) -> list:
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _target(y: Any) -> Any:
    return y._read() if isinstance(y, _core.Variable) else ops.convert_to_tensor(y)


def _traces() -> list[Trace]:
    """The open traces, outermost first."""
    trace = _core.current_trace()
    if not isinstance(trace, Trace):
        raise RuntimeError(_EAGER)
    traces: list[Trace] = []
    while trace is not None:
        traces.insert(0, trace)
        trace = trace.outer
    return traces


class _Walk:
    """The ops between sources and targets, replayed on a tape."""

    def __init__(
        self, traces: list[Trace], xs: Sequence[Any], stops: Sequence[Any], ys: Sequence[Any]
    ) -> None:
        for t in (*xs, *stops, *ys):
            self._check_constant(traces[0], t)
        self.traces = traces
        self.wanted = [self._values(x) for x in xs]
        self.sources = {v for of in self.wanted for v in of}
        self.stops = {v for t in stops for v in self._values(t)} | self._assigned(xs)
        self.recorded = {t._symbol: t for t in _core.recorded_symbols()}  # by tapes around this call
        self.reached: dict[Value, Any] = {}  # tensors that depend on a source, as the tape knows them
        self.tape = GradientTape()
        with self.tape:
            for trace in traces:
                self._enter(trace)
                for node in list(trace.nodes):
                    self._pass(node)

    @staticmethod
    def _check_constant(trace: Trace, t: Any) -> None:
        """Constants created in the function, and values computed from them, must be part of its graph."""
        if (
            isinstance(t, _core.Tensor)
            and t._symbol is None
            and t._born > trace.start
            and not trace.keeps_constants
            and (t.dtype.is_floating or t.dtype.is_complex)
        ):
            raise NeedsConstants

    # ---- which values of the graph a tensor or variable is ------------------------------------

    def _values(self, x: Any) -> list[Value]:
        if isinstance(x, _core.Tensor) and x._symbol is not None:
            return [x._symbol]
        return [v for trace in self.traces for v in self._values_in(trace, x)]

    @staticmethod
    def _values_in(trace: Trace, x: Any) -> Iterable[Value]:
        if isinstance(x, _core.Variable):
            read = [v for v, e in _inputs_from_outside(trace) if e is x]
            current = trace.state.get(id(x))
            if id(x) in trace.assigned and current is not None and current._symbol is not None:
                read.append(current._symbol)
            return read
        if not isinstance(x, _core.Tensor):
            return []
        if x._symbol is not None:
            return [x._symbol] if x._symbol.graph is trace else []
        return [of[id(x)] for of in (trace._captured, trace._kept_constants) if id(x) in of]

    def _assigned(self, xs: Sequence[Any]) -> set[Value]:
        """The values of variables after assignments, which count as constants for the gradient."""
        variables = [x for x in xs if isinstance(x, _core.Variable)]
        current = [t.state[id(v)] for t in self.traces for v in variables if id(v) in t.assigned]
        return {t._symbol for t in current if t._symbol is not None}

    # ---- the walk -----------------------------------------------------------------------------

    def _tensor(self, v: Value) -> Any:
        if v in self.reached:
            return self.reached[v]
        if v in self.recorded:
            return self.recorded[v]
        return v.constant if v.constant is not None else symbolic(v)

    def _start(self, v: Value) -> None:
        """Watches a source."""
        t = self.recorded.get(v)
        if t is None:
            t = symbolic(v)
        elif v in self.stops:
            # Outer tapes differentiate through to where it comes from; this one does not.
            with self.tape.stop_recording():
                t = ops.identity(t)
        if t.dtype.is_floating or t.dtype.is_complex:
            self.tape._watch(t)
            self.reached[v] = t

    def _enter(self, trace: Trace) -> None:
        for v, e in _inputs_from_outside(trace):
            # A value of the outer trace, under another name.
            for w in [w for outer in self.traces for w in self._values_in(outer, e) if w is not v]:
                if w in self.reached:
                    self.reached[v] = self.reached[w]
        for v in (*trace.inputs, *trace._kept_constants.values()):
            if v in self.sources and v not in self.reached:
                self._start(v)

    def _pass(self, node: Node) -> None:
        results: Sequence[Any] = [None] * len(node.results)
        if node.results and any(v in self.reached for v in node.operands):
            operands = [self._tensor(v) for v in node.operands]
            if isinstance(node.op, Callback):
                results = node.op(operands, [(r.shape, r.dtype) for r in node.results])
            else:
                results = [symbolic(r) for r in node.results]
                _core.record_op(node.op, operands, results, node.attrs)
        for r, t in zip(node.results, results, strict=True):
            if t is not None and self.tape._tracks(t) and r not in self.stops:
                self.reached[r] = t
            elif r in self.sources:
                self._start(r)

    # ---- results ------------------------------------------------------------------------------

    def _ends(self) -> list[Any]:
        return [self.reached[v] for of in self.wanted for v in of if v in self.reached]

    def gradients(self, ys: Sequence[Any], seeds: Sequence[Any]) -> list:
        pairs = [(self._reached(y), g) for y, g in zip(ys, seeds, strict=True)]
        pairs = [(y, g) for y, g in pairs if y is not None]
        flat = iter(
            self.tape.gradient(
                [y for y, _ in pairs], self._ends(), output_gradients=[_seed(g, y) for y, g in pairs]
            )
        )
        grads = []
        for of in self.wanted:
            total = None
            for g in [next(flat) for v in of if v in self.reached]:
                total = g if total is None else total if g is None else hooks.accumulate(total, g)
            grads.append(total)
        return grads

    def jacobian(self, y: Any) -> Any:
        """The derivative of one target with respect to the only source."""
        target, ends = self._reached(y), self._ends()
        if target is None or not ends:
            return None
        parts = [j for j in self.tape.jacobian(target, ends) if j is not None]
        return ops.add_n(parts) if parts else None

    def _reached(self, y: Any) -> Any:
        return next((self.reached[v] for v in self._values(y) if v in self.reached), None)


def _seed(g: Any, y: Any) -> Any:
    return ops.ones_like(y) if g is None else g


def _inputs_from_outside(trace: Trace) -> list[tuple[Value, Any]]:
    first = len(trace.inputs) - len(trace.externals)
    return list(zip(trace.inputs[first:], trace.externals, strict=True))
