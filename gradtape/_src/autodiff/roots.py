"""Implicit differentiation: gradients through a solver that no tape recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import nest
from gradtape._src.base.calls import one_call
from gradtape._src.base.contexts import unrecorded
from gradtape._src.base.errors import Untraceable
from gradtape._src.ops.table import PUBLIC
from gradtape._src.tapes.tape import GradientTape
from gradtape._src.tensors.conversion import leaf_of, read

_EVERYTHING = (1 << 64) - 1

LinearSolve = Callable[[Callable[[Any], Any], Any], Any]


def implicit(
    solver: Callable,
    *,
    root: Callable | None = None,
    minimum: Callable | None = None,
    linear_solve: str | LinearSolve = "direct",
) -> Callable:
    """Makes the result of a solver differentiable with respect to the arguments of the equation that it solves.

    `solver(*args)` may be anything: SciPy, a loop with a tolerance, another program. What it
    returns, `y`, must be a root, `root(y, *args) = 0`, or a minimiser of `minimum(y, *args)` over
    `y`. By the implicit function theorem the derivative then depends only on the solution: it
    takes one linear system, and no step of the solver is differentiated.

    >>> import gradtape as tf
    >>> def newton(a):  # the square root, without a tape
    ...     y = 1.0
    ...     for _ in range(20):
    ...         y = 0.5 * (y + a.numpy() / y)
    ...     return y
    >>> sqrt = tf.autodiff.implicit(newton, root=lambda y, a: y * y - a)
    >>> a = tf.constant(9.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(a)
    ...     y = sqrt(a)
    >>> round(float(y), 4), round(float(tape.gradient(y, a)), 4)
    (3.0, 0.1667)

    Args:
      solver: returns `y`, a tensor, array or number, or a nest of them, for the arguments.
      root: the function that is zero at `y`, of the structure and shapes of `y`.
      minimum: instead of `root`: the function that `y` minimises, one number.
      linear_solve: "direct" (the matrix is built and solved), "cg" (conjugate gradients, without building
        the matrix, which must be symmetric positive definite, as at a minimum), or a function of
        `(matrix_times_vector, right_hand_side)`.

    Returns:
      A function of the same arguments as `solver`: tensors, Variables, or nests of them, which it can
      be differentiated with respect to, to any order. Variables that only `root` or `minimum` reads are constants:
      pass them as arguments.
    """
    if (root is None) == (minimum is None):
        raise ValueError("autodiff.implicit: give either `root` or `minimum`.")
    if not callable(linear_solve) and linear_solve not in ("direct", "cg"):
        raise ValueError(
            f"autodiff.implicit: linear_solve must be 'direct', 'cg' or a function; got {linear_solve!r}."
        )
    condition = root if root is not None else _stationary(minimum)

    @one_call
    def solve(*args: Any) -> Any:
        leaves = [ops.convert_to_tensor(a) if leaf_of(a) is None else leaf_of(a) for a in nest.flatten(args)]
        operands = [read(a) for a in leaves]
        if any(a._symbol is not None for a in operands):
            raise Untraceable("autodiff.implicit: the solver looks at values")
        with unrecorded():
            result = solver(*nest.pack_sequence_as(args, operands))
            ys = [ops.identity(ops.convert_to_tensor(y)) for y in nest.flatten(result)]
        if not ys or not all(y.dtype.is_floating for y in ys):
            raise TypeError("autodiff.implicit: the solver must return floating numbers or tensors of them.")
        problem = _Problem(condition, linear_solve, args, result)
        _core.record(tuple(ys), tuple(operands), problem.gradients, _EVERYTHING)
        return nest.pack_sequence_as(result, ys)

    return solve


def _stationary(minimum: Any) -> Callable:
    """The gradient of the function that is minimised: zero at the minimum."""

    def gradient(y: Any, *args: Any) -> Any:
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(y)
            value = minimum(y, *args)
        return tape.gradient(value, y, unconnected_gradients="zero")

    return gradient


class _Problem:
    """The equation that a solution satisfies, and the gradient that follows from it."""

    def __init__(self, condition: Callable, linear_solve: Any, args: Any, result: Any) -> None:
        self.condition = condition
        self.linear_solve = linear_solve
        self.args = args
        self.result = result

    def _residual(self, ys: Sequence[Any], xs: Sequence[Any]) -> Any:
        """The condition as one vector."""
        y, args = nest.pack_sequence_as(self.result, ys), nest.pack_sequence_as(self.args, xs)
        residuals = [ops.convert_to_tensor(r) for r in nest.flatten(self.condition(y, *args))]
        if [tuple(r.shape) for r in residuals] != [tuple(y.shape) for y in ys]:
            raise ValueError(
                "autodiff.implicit: the condition must have the shapes of the solution; expected "
                f"{[tuple(y.shape) for y in ys]}; got {[tuple(r.shape) for r in residuals]}."
            )
        return _flat(residuals)

    def gradients(self, gs: tuple, ins: tuple, outs: tuple) -> list:
        """With F(y, x) = 0: solves (dF/dy)' w = g; the gradient is -(dF/dx)' w."""
        g = _flat([ops.zeros_like(y) if g is None else g for g, y in zip(gs, outs, strict=True)])
        floating = [x.dtype.is_floating for x in ins]
        sources = [x for x, w in zip(ins, floating, strict=True) if w]
        with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            flat = _flat(outs)
            tape.watch([flat, *sources])
            residual = self._residual(_unflat(flat, outs), ins)
        if self.linear_solve == "direct":
            matrix = tape.jacobian(residual, flat, unconnected_gradients="zero")
            w = ops.reshape(_solve(ops.transpose(matrix), ops.reshape(g, [-1, 1])), [-1])
        else:

            def times(v: Any) -> Any:
                return tape.gradient(residual, flat, output_gradients=v, unconnected_gradients="zero")

            w = conjugate_gradients(times, g) if self.linear_solve == "cg" else self.linear_solve(times, g)
        grads = iter(tape.gradient(residual, sources, output_gradients=-w, unconnected_gradients="zero"))
        return [next(grads) if w else None for w in floating]


def _solve(matrix: Any, right: Any) -> Any:
    return PUBLIC["linalg.solve"](matrix, right)


def _flat(tensors: Sequence[Any]) -> Any:
    return ops.concat([ops.reshape(t, [-1]) for t in tensors], 0)


def _unflat(flat: Any, like: Sequence[Any]) -> list:
    parts = ops.split(flat, [y._numel for y in like], 0)
    return [ops.reshape(p, y.shape) for p, y in zip(parts, like, strict=True)]


def conjugate_gradients(times: Callable[[Any], Any], b: Any, tolerance: float = 1e-6) -> Any:
    """Solves `times(x) = b` for a symmetric positive definite matrix, given only its products with vectors."""
    x = ops.zeros_like(b)
    r = p = b
    norm = float(ops.reduce_sum(b * b))
    rr = ops.reduce_sum(r * r)
    for _ in range(10 * max(1, b._numel)):
        if float(rr) <= tolerance**2 * norm:
            break
        ap = times(p)
        a = rr / ops.reduce_sum(p * ap)
        x, r = x + a * p, r - a * ap
        before, rr = rr, ops.reduce_sum(r * r)
        p = r + rr / before * p
    return x
