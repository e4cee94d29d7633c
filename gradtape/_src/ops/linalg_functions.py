"""Functions of matrices: exponential, square root, logarithm.

The derivative of a function f at x in direction d is a block of f of a matrix twice as large,
f([[x, d], [0, x]]) = [[f(x), df], [0, f(x)]] (Mathias 1996). Its adjoint is the same at the adjoint of x,
so the rules of all of them, and its own, use one row, `matrix_function_tangent`. This gives every order.
"""

from __future__ import annotations

import numpy as np

from gradtape._src.ops.creation import zeros_like
from gradtape._src.ops.join import concat
from gradtape._src.ops.linalg_solve import LINEAR
from gradtape._src.ops.movement import adjoint
from gradtape._src.ops.samples import at, call, definite, inside, regular
from gradtape._src.ops.table import COMPLEX, TABLE, opaque

__all__ = ["expm", "logm", "sqrtm"]


def _blocks(a, b, c, d):
    return concat([concat([a, b], -1), concat([c, d], -1)], -2)


def _tangent(x, direction, function):
    if not isinstance(function, str) or function not in __all__:
        raise ValueError(
            f"matrix_function_tangent: expected function to be one of {__all__}; got {function!r}"
        )
    n = x.shape[-1]
    return TABLE[function].op(_blocks(x, direction, zeros_like(x), x))[..., :n, n:]


def _tangent_wrt_x(g, x, direction, out, function):
    n, zero = x.shape[-1], zeros_like(x)
    twice = _blocks(x, direction, zero, x)
    both = matrix_function_tangent(adjoint(twice), _blocks(zero, g, zero, zero), function)
    return both[..., :n, :n] + both[..., n:, n:]


def _numpy_tangent(x, direction, function):
    """By eigenvalues: the direction is multiplied with divided differences of f (Daleckii and Krein)."""
    f, slope = {
        "expm": (np.exp, np.exp),
        "sqrtm": (np.sqrt, lambda w: 0.5 / np.sqrt(w)),
        "logm": (np.log, lambda w: 1 / w),
    }[function]
    w, v = np.linalg.eig(x)
    w = w.astype(complex)
    apart = w[..., :, None] - w[..., None, :] + np.eye(w.shape[-1])
    quotients = (f(w)[..., :, None] - f(w)[..., None, :]) / apart + slope(w)[..., None, :] * np.eye(
        w.shape[-1]
    )
    out = v @ ((np.linalg.inv(v) @ direction @ v) * quotients) @ np.linalg.inv(v)
    return out if np.iscomplexobj(x) else out.real


_TANGENTS = [
    call(regular(3, 3), (3, 3), function="sqrtm"),
    call((2, 2, 2), (2, 2, 2), function="expm"),
]

matrix_function_tangent = opaque(
    "matrix_function_tangent", LINEAR, "x direction function:Object", linear="direction", python=_tangent,
    rule=(
        _tangent_wrt_x,
        lambda g, x, direction, out, function: matrix_function_tangent(adjoint(x), g, function),
    ),
    numpy=_numpy_tangent, batch="leading", tolerance=100, samples=_TANGENTS,
    doc="The derivative of the matrix function named `function` at `x` in a `direction`.",
)  # fmt: skip


def _rule(function):
    return lambda g, x, out: matrix_function_tangent(adjoint(x), g, function)


def _numpy_of(function):
    """f of diagonalisable matrices, by their eigenvalues."""

    def apply(x):
        w, v = np.linalg.eig(x)
        out = (v * function(w.astype(complex))[..., None, :]) @ np.linalg.inv(v)
        return out if np.iscomplexobj(x) else out.real

    return apply


_BAD = [
    (call((2, 3)), "InvalidArgumentError", "Input matrix must be square."),
    (call((3,)), "InvalidArgumentError", "must have rank >= 2, got 1"),
]
_SMALL = [call((3, 3)), call(inside(-0.1, 0.1, 2, 2)), call((2, 2, 2)), call((1, 1))]

expm = opaque(
    "expm", LINEAR, "input", rule=_rule("expm"), numpy=_numpy_of(np.exp), batch="leading", tolerance=10,
    xla="linalg_functions.expm",
    samples=[*_SMALL, call(inside(-8, 8, 3, 3)), call((0, 0)), call((0, 2, 2))], gradient_samples=_SMALL, bad=_BAD,
    names="linalg.expm", doc="The exponential of square matrices.",
)  # fmt: skip

_ROOTS = [
    call(regular(3, 3)),
    call(definite(2, 2)),
    call(regular(2, 2, 2)),
    call(at([[4.0, 1.0], [0.0, 9.0]])),
]

sqrtm = opaque(
    "sqrtm", LINEAR, "input", rule=_rule("sqrtm"), numpy=_numpy_of(np.sqrt), batch="leading",
    samples=[*_ROOTS, call((0, 0)), call(at([[0.0, 1.0], [-1.0, 0.0]]))],
    gradient_samples=[call(regular(3, 3)), call(regular(2, 2, 2)), call(at([[0.0, 1.0], [-1.0, 0.0]]))], bad=_BAD,
    names="linalg.sqrtm matrix_square_root",
    doc="The principal square root of square matrices; NaN for a real matrix without a real square root.",
)  # fmt: skip

logm = opaque(
    "logm", COMPLEX, "input", rule=_rule("logm"), numpy=_numpy_of(np.log), batch="leading", tolerance=10,
    samples=[*_ROOTS, call((0, 0))], gradient_samples=[call(regular(3, 3)), call(regular(2, 2, 2))], bad=_BAD,
    names="linalg.logm", doc="The principal logarithm of square complex matrices.",
)  # fmt: skip
