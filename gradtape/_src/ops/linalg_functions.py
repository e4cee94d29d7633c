"""Functions of matrices: exponential, square root, logarithm.

The derivative of a function f at x in direction d is a block of f of a matrix twice as large,
f([[x, d], [0, x]]) = [[f(x), df], [0, f(x)]] (Mathias 1996). Its adjoint is the same at the adjoint of x,
so one line is the rule of all of them, to every order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src.ops.creation import zeros_like
from gradtape._src.ops.join import concat
from gradtape._src.ops.linalg_solve import LINEAR
from gradtape._src.ops.movement import adjoint
from gradtape._src.ops.samples import at, call, definite, inside, regular
from gradtape._src.ops.table import COMPLEX, opaque

__all__ = ["expm", "logm", "sqrtm"]


def _by_blocks(function: str) -> Any:
    def rule(g, x, out):
        from gradtape._src.ops.table import TABLE

        n = x.shape[-1]
        xh = adjoint(x)
        twice = concat([concat([xh, g], -1), concat([zeros_like(xh), xh], -1)], -2)
        return TABLE[function].op(twice)[..., :n, n:]

    return rule


def _numpy_of(function):
    """f of matrices that have a full set of eigenvectors."""

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
    "expm", LINEAR, "input", rule=_by_blocks("expm"), numpy=_numpy_of(np.exp), batch="leading", tolerance=10,
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
    "sqrtm", LINEAR, "input", rule=_by_blocks("sqrtm"), numpy=_numpy_of(np.sqrt), batch="leading",
    samples=[*_ROOTS, call((0, 0)), call(at([[0.0, 1.0], [-1.0, 0.0]]))],
    gradient_samples=[call(regular(3, 3)), call(regular(2, 2, 2)), call(at([[0.0, 1.0], [-1.0, 0.0]]))], bad=_BAD,
    names="linalg.sqrtm matrix_square_root",
    doc="The principal square root of square matrices; NaN where a real matrix has no real one.",
)  # fmt: skip

logm = opaque(
    "logm", COMPLEX, "input", rule=_by_blocks("logm"), numpy=_numpy_of(np.log), batch="leading", tolerance=10,
    samples=[*_ROOTS, call((0, 0))], gradient_samples=[call(regular(3, 3)), call(regular(2, 2, 2))], bad=_BAD,
    names="linalg.logm", doc="The principal logarithm of square complex matrices.",
)  # fmt: skip
