"""Checks of derivatives: against central differences, in every precision, to second order, as
transposes of each other, and where there is no derivative."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.dtypes import DType
from gradtape._src.contract.cases import Case, allowed, array_of, cases, has_common_type, tensor
from gradtape._src.contract.compare import NUMERICAL, TOLERANCES, differences, each, spec, tolerance
from gradtape._src.ops.samples import Matrices, Sample
from gradtape._src.ops.table import NO_RULE, Row
from gradtape._src.tapes.tape import GradientTape
from gradtape._src.tensors import conversion

# The step of central differences, by the element type of the results.
_STEP = {
    "float64": 1e-5,
    "complex128": 1e-5,
    "float32": 1e-2,
    "complex64": 1e-2,
    "float16": 0.1,
    "bfloat16": 0.25,
}
_MOST_ELEMENTS = 48  # limit on the elements of an operand that are perturbed one by one


def central_differences(
    function: Callable[[np.ndarray], float], x: np.ndarray, step: float = 1e-5
) -> np.ndarray:
    """The gradient of a real function of an array; for complex elements d/d(re) + i d/d(im).

    >>> central_differences(lambda x: float(np.sum(x**2)), np.array([1.0, 2.0])).round(6)
    array([2., 4.])
    """
    return _differences_at(function, x, range(x.size), step).reshape(x.shape)


def _differences_at(
    function: Callable, x: np.ndarray, places: Iterable[int], step: float, self_adjoint: bool = False
) -> np.ndarray:
    directions = (1, 1j) if x.dtype.kind == "c" else (1,)
    slopes = []
    for i in places:
        slope: Any = 0
        for d in directions:
            moved = []
            for sign in (1, -1):
                change = np.zeros_like(x)
                change.reshape(-1)[i] = sign * step * d
                if self_adjoint:
                    change = _self_adjoint(change)
                moved.append(function(np.asarray(x + change)))
            slope += d * (moved[0] - moved[1]) / (2 * step)
        slopes.append(slope)
    return np.array(slopes, dtype=x.dtype)


def _stays_self_adjoint(given: Any) -> bool:
    return isinstance(given, Matrices) and given.definite


def _self_adjoint(x: np.ndarray) -> np.ndarray:
    return (x + np.conj(np.swapaxes(x, -1, -2))) / 2


def _inner(u: Iterable[Any], v: Iterable[Any]) -> float:
    """The real inner product of two lists of arrays: Re Σ conj(u) v."""
    return float(sum(np.sum(np.real(np.conj(a) * b)) for a, b in zip(u, v, strict=True)))


def _floats(values: Iterable[Any]) -> list[Any]:
    return [v for v in values if v.dtype.is_floating or v.dtype.is_complex]


def sources_of(case: Case) -> list[int]:
    """The operands that have a gradient."""
    row = case.row
    sources = []
    for k, (param, dtype) in enumerate(zip(case.params, case.dtypes, strict=True)):
        at = 0 if row.joint else row.operands.index(param)
        if (dtype.is_floating or dtype.is_complex) and row.rules[at][0] != NO_RULE:
            sources.append(k)
    return sources


def gradients(case: Case, operands: list, weights: list, sources: list[int]) -> list:
    """The gradients of the weighted results by a tape; None where there is none."""
    with GradientTape() as tape:
        tape.watch([operands[k] for k in sources])
        outs = _floats(case.call(operands))
    grads = tape.gradient(outs, [operands[k] for k in sources], output_gradients=weights)
    return [_dense(g) for g in grads]


def _dense(g: Any) -> Any:
    return None if g is None else conversion.densify(g)


def _random_like(values: Iterable[Any], rng: Any) -> list[Any]:
    """Random tensors with the shapes and types of given ones."""
    tensors = []
    for v in values:
        shape = tuple(v.shape)
        array = rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape)
        if v.dtype.is_complex:
            array = array + 1j * rng.uniform(-1, 1, shape)
        tensors.append(tensor(np.asarray(array), v.dtype))
    return tensors


def _arrays(values: Iterable[Any], like: Iterable[Any]) -> list[np.ndarray]:
    return [np.zeros(tuple(x.shape)) if v is None else array_of(v) for v, x in zip(values, like, strict=True)]


class _Setting:
    """The common start of all checks of derivatives: operands, results and random weights."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.operands = case.tensors()
        self.sources = sources_of(case)
        self.xs = [self.operands[k] for k in self.sources]
        self.names = [case.names[k] for k in self.sources]
        self.outs = _floats(case.call(self.operands))
        self.weights = _random_like(self.outs, case.rng(1))
        self.direction = _random_like(self.xs, case.rng(2))
        for i, (k, x) in enumerate(zip(self.sources, self.xs, strict=True)):
            if _stays_self_adjoint(case.given[k]):
                self.direction[i] = tensor(_self_adjoint(array_of(self.direction[i])), x.dtype)
        types = [o.dtype for o in self.outs]
        self.step = max((_STEP[d.name] for d in types), default=0.0)
        self.numerical = tolerance(NUMERICAL, *types) * case.row.tolerance
        self.exact = tolerance(TOLERANCES, *types)

    def moved(self, source: int, array: np.ndarray) -> list:
        """The operands, one of them with another value."""
        k = self.sources[source]
        return [*self.operands[:k], tensor(array, self.case.dtypes[k]), *self.operands[k + 1 :]]

    def compare(self, order: str, grads: list, function: Callable[[list], float]) -> Iterator[str]:
        """Compares gradients of `function`, a real function of the operands, with central differences."""
        for k, (name, x, g) in enumerate(zip(self.names, self.xs, grads, strict=True)):
            what = f"{order}gradient of {name}"
            if g is not None and (tuple(g.shape) != tuple(x.shape) or g.dtype is not x.dtype):
                yield f"{self.case.row.name}: {what} in {self.case.where}: expected {spec(x)}, got {spec(g)}"
                continue
            array = array_of(x)
            places = np.arange(array.size)
            if array.size > _MOST_ELEMENTS:
                places = np.sort(self.case.rng(3).permutation(array.size)[:_MOST_ELEMENTS])
            self_adjoint = _stays_self_adjoint(self.case.given[self.sources[k]])
            numeric = _differences_at(
                lambda a, k=k: function(self.moved(k, a)), array, places, self.step, self_adjoint
            )
            actual = np.zeros_like(array) if g is None else array_of(g)
            expected = np.array(actual)
            expected.reshape(-1)[places] = numeric
            yield from differences(what, self.case, actual, expected, self.numerical)


def _double(row: Row) -> list[DType]:
    """The most precise element types in which a row can be differentiated."""
    if not has_common_type(row):
        return [dtypes.float64]
    types = [d for d in allowed(row) if d.is_floating or d.is_complex]
    return [d for d in types if d.size == (16 if d.is_complex else 8)] or types[-1:]


def smooth(row: Row, types: list[DType] | None = None) -> Iterator[Case]:
    """Cases in which derivatives make sense."""
    for case in cases(row, types or _double(row), row.gradient_samples):
        if case.finite and sources_of(case):
            yield case


# ---- the checks -------------------------------------------------------------------------------


def _check_gradient(case: Case) -> Iterator[str]:
    s = _Setting(case)
    weights = [array_of(w) for w in s.weights]

    def weighted(operands: list) -> float:
        return _inner(weights, [array_of(o) for o in _floats(case.call(operands))])

    yield from s.compare("", gradients(case, s.operands, s.weights, s.sources), weighted)


def _check_partial(case: Case) -> Iterator[str]:
    """Checks that a gradient is the same if it is the only one requested: for one operand, from one result."""
    s = _Setting(case)
    if len(s.sources) > 1:
        together = gradients(case, s.operands, s.weights, s.sources)
        for k, (name, g) in enumerate(zip(s.names, together, strict=True)):
            (alone,) = gradients(case, s.operands, s.weights, s.sources[k : k + 1])
            yield from _same(f"gradient of {name} alone", case, alone, g, s.xs[k], s.exact)
    if len(s.outs) > 1:
        for k in range(len(s.outs)):
            with GradientTape() as tape:
                tape.watch(s.xs)
                out = _floats(case.call(s.operands))[k]
            grads = tape.gradient(out, s.xs, output_gradients=s.weights[k])
            zeroed = [w if i == k else tensor(0 * array_of(w), w.dtype) for i, w in enumerate(s.weights)]
            expected = gradients(case, s.operands, zeroed, s.sources)
            for name, g, e, x in zip(s.names, grads, expected, s.xs, strict=True):
                yield from _same(f"gradient of {name} from result {k}", case, g, e, x, s.exact)


def _same(what: str, case: Case, actual: Any, expected: Any, x: Any, limit: float) -> Iterator[str]:
    """Compares gradients; None counts as zeros."""
    actual, expected = _arrays([_dense(actual), _dense(expected)], [x, x])
    yield from differences(what, case, actual, expected, limit * case.row.tolerance)


def _check_compiled(case: Case) -> Iterator[str]:
    """Checks that the program that a tape compiles for a repeated structure computes the same as the rules."""
    s, before = _Setting(case), _core.is_compiling()
    rng = case.rng(4)
    # Other numbers of the same shapes, so that a value that became part of the program would be found.
    other = list(s.operands)
    for k, x in zip(s.sources, s.xs, strict=True):
        other[k] = tensor(array_of(x) * (1 - 0.01 * rng.uniform(0, 1, tuple(x.shape))), x.dtype)

    def both_orders(operands: list) -> list:
        return [*gradients(case, operands, s.weights, s.sources), *_second_gradients(s, operands)[1]]

    try:
        _core.set_compile(False)
        expected = [both_orders(s.operands), both_orders(other)]
        _core.set_compile(True)
        _core.clear_compiled()
        both_orders(s.operands)
        both_orders(s.operands)
        got = [both_orders(s.operands), both_orders(other)]
    finally:
        _core.set_compile(before)
    names = [*(f"gradient of {n}" for n in s.names), *(f"second-order gradient of {n}" for n in s.names)]
    for order, mine, true in zip(("third", "fourth"), got, expected, strict=True):
        for name, g, e, x in zip(names, mine, true, [*s.xs, *s.xs], strict=True):
            what = f"compiled {name} (the {order} call)"
            yield from _same(what, case, g, e, x, 4 * tolerance(TOLERANCES, x.dtype))


def _check_precision(case: Case) -> Iterator[str]:
    """Checks that rules work in every element type: gradients equal those of the same numbers in double precision."""
    s, wide = _Setting(case), _Setting(case.widened())
    wide.weights = [tensor(array_of(w), o.dtype) for w, o in zip(s.weights, wide.outs, strict=True)]
    got = gradients(case, s.operands, s.weights, s.sources)
    expected = gradients(wide.case, wide.operands, wide.weights, wide.sources)
    for name, g, e, x in zip(s.names, got, expected, s.xs, strict=True):
        what = f"gradient of {name}"
        if g is None or e is None:
            if g is not e:
                yield f"{case.row.name}: {what} in {case.where}: there is a gradient in one precision only"
        elif g.dtype is not x.dtype or tuple(g.shape) != tuple(x.shape):
            yield f"{case.row.name}: {what} in {case.where}: expected {spec(x)}, got {spec(g)}"
        else:
            limit = 4 * tolerance(TOLERANCES, x.dtype) * case.row.tolerance
            yield from differences(what, case, array_of(g), array_of(e), limit)


def _second_gradients(s: _Setting, operands: list) -> tuple[list[int], list]:
    """The gradients of ⟨direction, gradients⟩, and which of the latter exist."""
    xs = [operands[k] for k in s.sources]
    with GradientTape() as tape:
        tape.watch(xs)
        inner = gradients(s.case, operands, s.weights, s.sources)
    present = [k for k, g in enumerate(inner) if g is not None]
    if not present:
        return present, [None] * len(xs)
    direction = [s.direction[k] for k in present]
    seconds = tape.gradient([inner[k] for k in present], xs, output_gradients=direction)
    return present, [_dense(g) for g in seconds]


def _check_second_order(case: Case) -> Iterator[str]:
    s = _Setting(case)
    present, seconds = _second_gradients(s, s.operands)
    flat = [array_of(s.direction[k]) for k in present]

    def slope(operands: list) -> float:
        grads = gradients(case, operands, s.weights, s.sources)
        return _inner(flat, [array_of(grads[k]) for k in present])

    if present:
        yield from s.compare("second-order ", seconds, slope)


def _check_transpose(case: Case) -> Iterator[str]:
    """⟨u, Jv⟩ = ⟨Jᵀu, v⟩: Jv is the gradient of ⟨v, Jᵀu⟩ with respect to u."""
    s = _Setting(case)
    with GradientTape() as tape:
        tape.watch(s.weights)
        pulled = gradients(case, s.operands, s.weights, s.sources)
    present = [k for k, g in enumerate(pulled) if g is not None]
    targets, direction = [pulled[k] for k in present], [s.direction[k] for k in present]
    pushed = (
        tape.gradient(targets, s.weights, output_gradients=direction) if present else [None] * len(s.weights)
    )
    pushed = [_dense(p) for p in pushed]
    u, jv = [array_of(w) for w in s.weights], _arrays(pushed, s.weights)
    ju, v = [array_of(g) for g in targets], [array_of(d) for d in direction]
    left, right = _inner(u, jv), _inner(ju, v)
    scale = max(1.0, sum(float(np.sum(np.abs(a) * np.abs(b))) for a, b in zip(ju, v, strict=True)))
    if not abs(left - right) <= s.exact * scale:
        yield (
            f"{case.row.name}: transpose in {case.where}: expected <u, Jv> = <J'u, v>, "
            f"got {left:.15g} and {right:.15g} (relative error {abs(left - right) / scale:.0e})"
        )


def _check_edge(case: Case, expected: tuple) -> Iterator[str]:
    operands = case.tensors()
    sources = [k for k, d in enumerate(case.dtypes) if d.is_floating or d.is_complex]
    outs = _floats(case.call(operands))
    ones = [tensor(np.ones(tuple(o.shape)), o.dtype) for o in outs]
    grads = gradients(case, operands, ones, sources)
    if len(expected) == len(operands):
        expected = tuple(expected[k] for k in sources)
    for k, g, e in zip(sources, grads, expected, strict=True):
        what = f"gradient at the edge of {case.names[k]}"
        if e is None or g is None:
            if g is not None or e is not None:
                yield f"{case.row.name}: {what} in {case.where}: expected {e}, got {g}"
            continue
        actual = np.asarray(g.numpy())
        yield from differences(what, case, actual, np.asarray(e, actual.dtype), 0.0)


def edges(row: Row) -> Iterator[str]:
    for number, (operands, expected) in enumerate(row.edges):
        sample = operands if isinstance(operands, Sample) else Sample(tuple(operands), {})
        for dtype in (dtypes.float64, dtypes.float32):
            if dtype in allowed(row) or not has_common_type(row):
                case = Case(row, number, sample, dtype)
                yield from each(
                    "gradient at the edge", functools.partial(_check_edge, expected=expected), [case]
                )


def _low(row: Row) -> list[DType]:
    types = [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.complex64]
    return [d for d in types if d in allowed(row)] if has_common_type(row) else [dtypes.float32]


def gradient(row: Row) -> Iterator[str]:
    some = list(smooth(row))
    if not any(np.size(a) for case in some for a in case.arrays):
        yield f"{row.name}: gradient: no sample has an operand to differentiate with respect to"
    yield from each("gradient", _check_gradient, some)


def partial(row: Row) -> Iterator[str]:
    return each("partial gradient", _check_partial, smooth(row, _double(row)[:1]))


def compiled(row: Row) -> Iterator[str]:
    types = [d for d in (dtypes.float32, dtypes.bfloat16) if d in _low(row)]
    return each("compiled gradient", _check_compiled, smooth(row, [*_double(row), *types]))


def precision(row: Row) -> Iterator[str]:
    return each("gradient", _check_precision, smooth(row, _low(row)))


def second_order(row: Row) -> Iterator[str]:
    return each("second-order gradient", _check_second_order, smooth(row))


def transpose(row: Row) -> Iterator[str]:
    return each("transpose", _check_transpose, smooth(row))
