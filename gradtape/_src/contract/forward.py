"""Checks of forward mode and of Jacobians: tangents against central differences along a direction, many rows at
once against one after the other, and gradients through ops that run over a new axis."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradtape._src.autodiff.forward import ForwardAccumulator
from gradtape._src.base import errors
from gradtape._src.batching.jacobian import Seed, _all_rows, in_chunks, pullback, transposed
from gradtape._src.batching.linear import is_linear
from gradtape._src.batching.vectorize import vectorized
from gradtape._src.contract.batching import other_operands
from gradtape._src.contract.cases import Case, array_of, tensor
from gradtape._src.contract.compare import differences, each
from gradtape._src.contract.derivatives import _arrays, _dense, _double, _floats, _Setting, gradients, smooth
from gradtape._src.ops.table import Row
from gradtape._src.tapes.tape import GradientTape

_SIZE = 2
_MOST_ELEMENTS = 600  # limit for Jacobians that are computed as a whole


def _slopes(s: _Setting) -> list[np.ndarray]:
    """Central differences of the results along the direction of the setting."""
    moved = []
    for sign in (1, -1):
        operands = list(s.operands)
        for k, x, d in zip(s.sources, s.xs, s.direction, strict=True):
            operands[k] = tensor(array_of(x) + sign * s.step * array_of(d), x.dtype)
        moved.append([array_of(o) for o in _floats(s.case.call(operands))])
    return [(a - b) / (2 * s.step) for a, b in zip(*moved, strict=True)]


def _check_forward(case: Case) -> Iterator[str]:
    s = _Setting(case)
    with ForwardAccumulator(s.xs, s.direction) as acc:
        outs = _floats(case.call(s.operands))
    tangents = acc.jvp(outs)
    for k, (t, out, slope) in enumerate(zip(tangents, outs, _slopes(s), strict=True)):
        what = f"tangent of result {k}"
        if t is not None and (tuple(t.shape) != tuple(out.shape) or t.dtype is not out.dtype):
            yield f"{case.row.name}: {what} in {case.where}: expected the kind of {out!r}, got {t!r}"
            continue
        (got,) = _arrays([t], [out])
        # Along a direction, the errors of the differences of all operands add up.
        yield from differences(what, case, got, slope, max(1, len(s.xs)) * s.numerical)


def _rows_like(values: list, rng: Any) -> list[np.ndarray]:
    rows = []
    for v in values:
        shape = (_SIZE, *v.shape)
        row = rng.uniform(-1, 1, shape)
        rows.append(np.asarray(row + 1j * rng.uniform(-1, 1, shape) if v.dtype.is_complex else row))
    return rows


def _check_rows(case: Case) -> Iterator[str]:
    """Checks the building blocks of a Jacobian: the backward pass, and its transpose, over several rows at once."""
    s = _Setting(case)
    with GradientTape(persistent=True) as tape:
        tape.watch(s.xs)
        outs = _floats(case.call(s.operands))
    for k, out in enumerate(outs):
        pull = pullback(tape, out, s.xs)
        what = f"{case.row.name}: Jacobian of result {k} in {case.where}"
        if pull is None:
            yield f"{what}: the gradient cannot be traced"
        elif not is_linear(pull.function):
            yield f"{what}: the gradient does not look linear"
        else:
            yield from _rows_of(s, tape, pull, k, out)


def _always(rows: Any) -> Callable[[int, int], Any]:
    return lambda start, count: rows


def _rows_of(s: _Setting, tape: Any, pull: Any, k: int, out: Any) -> Iterator[str]:
    case, limit = s.case, 8 * s.exact * s.case.row.tolerance
    (cotangents,) = _rows_like([out], case.rng(5))
    tangents = _rows_like(s.xs, case.rng(6))
    seeds = tensor(cotangents, out.dtype)
    expected = [tape.gradient(out, s.xs, output_gradients=seeds[i]) for i in range(_SIZE)]
    connected = any(f is not None for f in pull.places)
    small = out._numel * max((x._numel for x in s.xs), default=0) <= _MOST_ELEMENTS
    chunked = in_chunks(pull.function, pull.residuals, _always(seeds), _SIZE) if connected else []
    whole = _all_rows(pull.function, pull.residuals, Seed.of(out)) if connected and small else []
    for i, (name, x, f) in enumerate(zip(s.names, s.xs, pull.places, strict=True)):
        one_by_one = np.stack([_arrays([_dense(e[i])], [x])[0] for e in expected])
        got = np.zeros_like(one_by_one) if f is None else array_of(chunked[f])
        what = f"gradient of {name} from result {k}"
        yield from differences(f"rows of the {what}", case, got, one_by_one, limit)
        if f is None:
            continue
        forward = transposed(pull.function, f)
        pushed = array_of(in_chunks(forward, pull.residuals, _always(tensor(tangents[i], x.dtype)), _SIZE)[0])
        # <u, Jv> = <J'u, v>, where both sides are computed for several rows at once.
        left = np.sum(np.real(np.conj(cotangents) * pushed))
        right = np.sum(np.real(np.conj(one_by_one) * tangents[i]))
        scale = max(1.0, float(np.sum(np.abs(one_by_one) * np.abs(tangents[i]))))
        if not abs(left - right) <= limit * scale:
            yield (
                f"{case.row.name}: rows of the tangent of {name} to result {k} in {case.where}: expected "
                f"<u, Jv> = <J'u, v>, got {left:.15g} and {right:.15g}"
            )
        if small and not (out.dtype.is_complex or x.dtype.is_complex):
            # All rows of the identity, backward and forward: two ways to compute the Jacobian.
            reverse = array_of(whole[f]).reshape(out._numel, x._numel)
            yield from differences(
                f"Jacobian of the {what}",
                case,
                (cotangents.reshape(_SIZE, -1) @ reverse).reshape(one_by_one.shape),
                one_by_one,
                limit,
            )
            columns = array_of(_all_rows(forward, pull.residuals, Seed.of(x))[0]).reshape(
                x._numel, out._numel
            )
            yield from differences(f"Jacobian in forward mode of the {what}", case, columns.T, reverse, limit)


def _check_batched_gradient(case: Case) -> Iterator[str]:
    """Checks that the gradient through an op over a new axis equals the gradients of its rows."""
    s = _Setting(case)
    different = other_operands(case)
    weights = _rows_like(s.outs, case.rng(7))
    limit = 8 * s.exact * case.row.tolerance
    n = len(case.arrays)
    masks = [m for m in itertools.product((False, True), repeat=n) if any(m)] if n <= 2 else [(True,) * n]
    for mask in masks:
        stacks = [np.stack([a, o]) if m else a for a, o, m in zip(case.arrays, different, mask, strict=True)]
        operands = [tensor(a, d) for a, d in zip(stacks, case.dtypes, strict=True)]
        fixed = [x for x, m in zip(operands, mask, strict=True) if not m]

        def one(rows: list, mask: tuple = mask, fixed: list = fixed) -> list:
            moving, still = iter(rows), iter(fixed)
            return _floats(case.call([next(moving) if m else next(still) for m in mask]))

        sources = [operands[k] for k in s.sources]
        with GradientTape() as tape:
            tape.watch(sources)
            try:
                outs = vectorized(one, [x for x, m in zip(operands, mask, strict=True) if m], _SIZE)
            except errors.Untraceable:
                return  # the shape of the result depends on values
        seeds = [tensor(w, o.dtype) for w, o in zip(weights, outs, strict=True)]
        grads = [_dense(g) for g in tape.gradient(outs, sources, output_gradients=seeds)]
        rows = [
            gradients(
                case,
                [x[i] if m else x._detach() for x, m in zip(operands, mask, strict=True)],
                [seed[i] for seed in seeds],
                s.sources,
            )
            for i in range(_SIZE)
        ]
        for j, (name, k) in enumerate(zip(s.names, s.sources, strict=True)):
            parts = np.stack([_arrays([row[j]], [s.operands[k]])[0] for row in rows])
            expected = parts if mask[k] else parts.sum(0)
            (got,) = _arrays([grads[j]], [operands[k]])
            yield from differences(f"gradient of {name} over rows with {mask}", case, got, expected, limit)


# ---- the checks -------------------------------------------------------------------------------


def forward(row: Row) -> Iterator[str]:
    """Jacobian-vector products by an accumulator, against differences along the vector."""
    return each("forward mode", _check_forward, smooth(row))


def rows(row: Row) -> Iterator[str]:
    """Backward passes and their transposes over several rows at once."""
    return each("rows of a Jacobian", _check_rows, smooth(row))


def batched_gradient(row: Row) -> Iterator[str]:
    """Gradients through the op over a new axis."""
    if row.shape_from_values is True:
        return
    yield from each("batched gradient", _check_batched_gradient, smooth(row, _double(row)[:1]))
