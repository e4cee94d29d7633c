"""The ways to run a program of `programs`, and their comparison with eager mode.

Each way starts from the same values of the variables and returns results, final values of the variables, and
gradients with respect to inputs and variables. Ways that are compiled when they are repeated run several times.
"""

from __future__ import annotations

import linecache
import os
import random
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gradtape as tf
from gradtape import _core
from tools.fuzz.harness import Bad

_LIMITS = {
    "float64": 1e-8,
    "complex128": 1e-8,
    "float32": 2e-3,
    "complex64": 2e-3,
    "float16": 0.05,
    "bfloat16": 0.25,
}
_PRECISION = list(_LIMITS)  # from the best to the worst


class Outcome(NamedTuple):
    """The results of one run."""

    results: list
    variables: list
    gradients: list


class _Program:
    """A program that was read, and its random directions."""

    def __init__(self, text: str, number: int) -> None:
        self.file = Path(tempfile.gettempdir()) / f"program{os.getpid()}_{number}.py"  # read by autograph
        self.file.write_text(text)
        names: dict[str, Any] = {"tf": tf, "np": np, "__name__": "program"}
        exec(compile(text, str(self.file), "exec"), names)
        self.body: Callable = names["body"]
        self.inputs: list = names["inputs"]
        self.variables: list = names["variables"]
        self.free = "FREE" in names
        # In eager code, forward mode differentiates the body of a function with a custom gradient, as in TensorFlow.
        self.own_rules = "custom_gradient" in text
        self.start = [v.numpy() for v in self.variables]
        self.sources = [*self.inputs, *self.variables]
        self.limit = _LIMITS[
            max((s.dtype.name for s in self.sources if s.dtype.name in _LIMITS), key=_PRECISION.index)
        ]
        for low in ("bfloat16", "float32", "complex64"):
            if f"tf.{low}" in text:
                self.limit = max(self.limit, _LIMITS[low])
        rng = np.random.default_rng(number)
        self.directions = [
            tf.constant(rng.uniform(-1, 1, s.shape), s.dtype)
            if differentiable(s) and getattr(s, "trainable", True)
            else None
            for s in self.sources
        ]

    def reset(self) -> None:
        for v, value in zip(self.variables, self.start, strict=True):
            v.assign(value)

    def close(self) -> None:
        linecache.cache.pop(str(self.file), None)
        self.file.unlink()


def differentiable(x: Any) -> bool:
    return x.dtype.is_floating or x.dtype.is_complex


def _numbers(values: list) -> list:
    return [None if v is None else np.asarray(tf.cast(v, tf.float32) if v.dtype == tf.bfloat16 else v) for v in
            (tf.convert_to_tensor(v) if v is not None else None for v in values)]  # fmt: skip


# ---- ways to run a program --------------------------------------------------------------------


def _taped(p: _Program, body: Callable, orders: int) -> Callable:
    """Results, and gradients of the first order or of the second, with respect to all sources."""

    def run(*inputs: Any) -> Any:
        sources = [*inputs, *p.variables]
        if orders == 1:
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                results = body(*inputs)
            return results, tape.gradient(results, sources)
        with tf.GradientTape() as outer:
            outer.watch(inputs)
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                results = body(*inputs)
            first = [g for g in tape.gradient(results, sources) if g is not None]
        return results, outer.gradient(first, sources) if first else [None] * len(sources)

    return run


def _outcome(p: _Program, run: Callable) -> Outcome:
    p.reset()
    results, gradients = run(*p.inputs)
    return Outcome(_numbers(results), _numbers(p.variables), _numbers(gradients))


def _eagerly(p: _Program, run: Callable) -> Outcome:
    """The reference: eager, without compiled passes."""
    tf.config.run_functions_eagerly(True)
    _core.set_compile(False)
    try:
        return _outcome(p, run)
    finally:
        _core.set_compile(True)
        tf.config.run_functions_eagerly(False)


def _forward(p: _Program, body: Callable) -> Callable:
    """Results, and their derivatives along the directions, from one accumulator."""

    def run(*inputs: Any) -> Any:
        pairs = [(s, d) for s, d in zip([*inputs, *p.variables], p.directions, strict=True) if d is not None]
        with tf.autodiff.ForwardAccumulator([s for s, _ in pairs], [d for _, d in pairs]) as acc:
            results = body(*inputs)
        return results, [acc.jvp(r) if differentiable(r) else None for r in results]

    return run


def _jacobian(p: _Program, body: Callable) -> Callable:
    """Gradients of the last result, as sums of rows of its Jacobian."""

    def run(*inputs: Any) -> Any:
        sources = [*inputs, *p.variables]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            results = body(*inputs)
        jacobians = tape.jacobian(results[-1], sources)
        rank = len(results[-1].shape)
        return results, [None if j is None else tf.reduce_sum(j, list(range(rank))) for j in jacobians]

    return run


# ---- comparison -------------------------------------------------------------------------------


def _differ(actual: list, expected: list, limit: float, none_is_zero: bool) -> tuple[str, str] | None:
    for k, (a, e) in enumerate(zip(actual, expected, strict=True)):
        if none_is_zero:
            a = np.zeros_like(e) if a is None and e is not None else a
            e = np.zeros_like(a) if e is None and a is not None else e
        detail = f"number {k} is {_shown(a)}, eager {_shown(e)}"
        if (a is None) != (e is None):
            return f"{'None' if a is None else 'not None'}", detail
        if a is None:
            continue
        if a.shape != e.shape or a.dtype != e.dtype:
            return "type", f"number {k} is {a.dtype}{a.shape}, eager {e.dtype}{e.shape}"
        scale = max(1.0, float(np.abs(e).max(initial=0)))
        if not np.all(np.abs(a - e) <= limit * scale):
            return "values", detail
    return None


def _shown(x: Any) -> str:
    return "None" if x is None else np.array2string(np.asarray(x), precision=6, threshold=8).replace("\n", "")


def _check(way: str, p: _Program, actual: Outcome, expected: Outcome) -> None:
    for what, mine, theirs, free in zip(
        Outcome._fields, actual, expected, (False, False, p.free), strict=True
    ):
        difference = _differ(mine, theirs, p.limit, free)
        if difference:
            raise Bad(f"{way}: {what}: {difference[0]}", difference[1])


def _check_forward(way: str, p: _Program, run: Callable, expected: Outcome) -> None:
    """The derivative along a direction is the gradient times the direction."""
    actual = _outcome(p, run)
    _check(way, p, actual._replace(gradients=[]), expected._replace(gradients=[]))
    pairs = [(g, np.asarray(tf.cast(d, tf.float64) if d.dtype.is_floating else d)) for g, d in
             zip(expected.gradients, p.directions, strict=True) if d is not None and g is not None]  # fmt: skip
    slopes = [np.real(np.sum(j)) for j in actual.gradients if j is not None]
    if not p.free and bool(pairs) != bool(slopes):
        raise Bad(
            f"{way}: {'not ' * bool(slopes)}None",
            f"{len(slopes)} results have a derivative, eager {len(pairs)} sources a gradient",
        )
    slope, by_gradients = float(sum(slopes)), float(sum(np.real(np.sum(np.conj(g) * d)) for g, d in pairs))
    size = 1.0 + sum(float(np.abs(g).sum()) for g, _ in pairs)
    if not abs(slope - by_gradients) <= p.limit * size:
        raise Bad(f"{way}: values", f"the derivative along a direction is {slope}, eager {by_gradients}")


def compare(text: str, number: int) -> Counter[str]:
    """Runs a program in all ways; raises Bad where they differ."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    tf.get_logger().setLevel("CRITICAL")
    p = _Program(text, number)
    try:
        return _compared(p, number)
    finally:
        p.close()


def _compared(p: _Program, number: int) -> Counter[str]:
    rng = random.Random(number)
    try:
        expected = _eagerly(p, _taped(p, p.body, 1))
    except Exception as e:
        return _refused(e)
    if not all(np.isfinite(x).all() for part in expected for x in part if x is not None):
        return Counter({"not finite": 1})
    _core.clear_compiled()
    runs = Counter({"programs": 1, "runs": 1})

    def tried(way: str, times: int, run: Callable, wanted: Outcome = expected) -> None:
        for time in range(times):
            runs["runs"] += 1
            try:
                if "forward" in way:
                    _check_forward(way, p, run, wanted)
                else:
                    _check(way if time == 0 else f"{way}, again", p, _outcome(p, run), wanted)
            except Bad:
                raise
            except Exception as e:
                raise Bad(f"{way}: {type(e).__name__}", str(e)[:300]) from e

    tried("compiled", 3, _taped(p, p.body, 1))
    compiled = _core.compile_info()
    if compiled["failures"]:
        raise Bad("compiled: a pass could not be compiled", str(compiled))
    runs["passes compiled"] += compiled["programs"]
    tried("function, tape inside", 2, tf.function(_taped(p, p.body, 1)))
    function = tf.function(p.body)
    tried("function, tape outside", 3, _taped(p, function, 1))
    unknown = [tf.TensorSpec([None] * x.shape.rank, x.dtype) for x in p.inputs]

    def of_any_size(body: Callable) -> Callable:
        return tf.function(body, input_signature=unknown)

    sizeless = of_any_size(p.body)
    tried("sizes unknown, tape inside", 3, of_any_size(_taped(p, p.body, 1)))
    tried("sizes unknown, tape outside", 3, _taped(p, sizeless, 1))
    tried("function that checks itself", 1, _taped(p, tf.function(p.body, check=True), 1))
    if not p.own_rules:
        tried("forward", 1, _forward(p, p.body))
        tried("function, forward inside", 1, tf.function(_forward(p, p.body)))
        tried("function, forward outside", 1, _forward(p, function))
        tried("sizes unknown, forward inside", 2, of_any_size(_forward(p, p.body)))
        tried("sizes unknown, forward outside", 2, _forward(p, sizeless))
    pick = rng.randrange(3)
    if pick == 0:
        try:
            second = _eagerly(p, _taped(p, p.body, 2))
        except Exception as e:
            raise Bad(f"second order: {type(e).__name__}", str(e)[:300]) from e
        if all(np.isfinite(g).all() for g in second.gradients if g is not None):
            tried("second order, compiled", 3, _taped(p, p.body, 2), second)
            tried("second order, tapes inside", 1, tf.function(_taped(p, p.body, 2)), second)
            tried("second order, tapes outside", 2, _taped(p, function, 2), second)
            tried("sizes unknown, second order, tapes inside", 2, of_any_size(_taped(p, p.body, 2)), second)
            tried("sizes unknown, second order, tapes outside", 2, _taped(p, sizeless, 2), second)
    elif pick == 1:
        last = _eagerly(p, _taped(p, lambda *xs: p.body(*xs)[-1:], 1))
        if differentiable(tf.constant(last.results[-1])):
            several = len(expected.results) > 1
            wanted = expected._replace(gradients=last.gradients)
            tried("jacobian", 1, _jacobian(p, p.body), wanted)
            # A record with several results gives zeros to sources on which only the others depend, as in TensorFlow.
            p.free = p.free or several
            tried("jacobian of a function", 1, _jacobian(p, function), wanted)
            tried("sizes unknown, jacobian inside", 2, of_any_size(_jacobian(p, p.body)), wanted)
            tried("sizes unknown, jacobian outside", 2, _jacobian(p, sizeless), wanted)
    return runs


def _refused(e: Exception) -> Counter[str]:
    decent = (TypeError, ValueError, tf.errors.OpError, NotImplementedError, AttributeError, LookupError)
    if isinstance(e, decent):
        return Counter({"refused": 1})
    raise Bad(f"eager: {type(e).__name__}", str(e)[:300]) from e
