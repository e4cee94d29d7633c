"""`tf.linalg.experimental`: the conjugate gradient method."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradtape._src import ops
from gradtape._src.functions.control_flow import while_loop
from gradtape._src.public import absent as _absent


class CGState(NamedTuple):
    """The result of `conjugate_gradient`.

    Attributes:
      i: the number of steps.
      x: the solution so far.
      r: the residual, `rhs - operator @ x`.
      p: the direction of the next step.
      gamma: the inner product of `r` and the preconditioned `r`.
    """

    i: Any
    x: Any
    r: Any
    p: Any
    gamma: Any


def conjugate_gradient(
    operator: Any,
    rhs: Any,
    preconditioner: Any = None,
    x: Any = None,
    tol: Any = 1e-5,
    max_iter: Any = 20,
    name: str = "conjugate_gradient",
) -> CGState:
    """Solves `operator @ x = rhs` for a self-adjoint positive definite operator, using only products.

    Args:
      operator: a `LinearOperator` with the hints `is_self_adjoint` and `is_positive_definite`.
      rhs: a vector, or a batch of vectors.
      preconditioner: another such operator, an approximate inverse of the first.
      x: the initial guess, 0 by default.
      tol: stop when the norm of the residual is at most `tol` times that of `rhs`.
      max_iter: stop after this many steps.
    """
    if not (operator.is_self_adjoint and operator.is_positive_definite):
        raise ValueError("Expected a self-adjoint, positive definite operator.")
    rhs = ops.convert_to_tensor(rhs)
    limit = ops.cast(tol, rhs.dtype) * ops.norm(rhs, axis=-1)

    def inner(u: Any, v: Any) -> Any:
        return ops.reduce_sum((ops.conj(u) if u.dtype.is_complex else u) * v, -1)

    def better(r: Any) -> Any:
        return r if preconditioner is None else preconditioner.matvec(r)

    def go_on(state: CGState) -> Any:
        far = ops.reduce_any(ops.norm(state.r, axis=-1) > limit)
        return ops.logical_and(state.i < max_iter, far)

    def step(state: CGState) -> list[CGState]:
        z = operator.matvec(state.p)
        alpha = ops.expand_dims(ops.divide_no_nan(state.gamma, inner(state.p, z)), -1)
        r = state.r - alpha * z
        q = better(r)
        gamma = inner(r, q)
        beta = ops.expand_dims(ops.divide_no_nan(gamma, state.gamma), -1)
        return [CGState(state.i + 1, state.x + alpha * state.p, r, q + beta * state.p, gamma)]

    if x is None:
        x = ops.zeros_like(rhs)
        r = rhs
    else:
        x = ops.convert_to_tensor(x, dtype=rhs.dtype)
        r = rhs - operator.matvec(x)
    p = better(r)
    state = CGState(ops.constant(0), x, r, p, inner(r, p))
    return while_loop(go_on, step, [state])[0]


__getattr__, __dir__ = _absent.of("linalg.experimental")
