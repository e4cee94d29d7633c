"""Reductions: sums, means, products, minima, maxima, any, all, log-sum-exp, argmin, argmax.

Functions that combine several of them (variances, norms, counts) are in `statistics` and `norms`.
"""

from __future__ import annotations

from math import prod as _prod

import numpy as np

from gradtape._src.ops import batching, casting, movement, rewriting
from gradtape._src.ops.arithmetic import conjugate
from gradtape._src.ops.comparison import equal
from gradtape._src.ops.exponential import exp
from gradtape._src.ops.samples import at, bools, call, ints
from gradtape._src.ops.table import BOOL, FLOAT, NUMBER, REAL, reduction
from gradtape._src.tensors import above

__all__ = [
    "argmax", "argmin", "reduce_all", "reduce_any", "reduce_logsumexp", "reduce_max", "reduce_mean",
    "reduce_min",
    "reduce_prod", "reduce_sum", "sum_squares", "sum_to",
]  # fmt: skip

# ---- what rules and samples share ----


def _keep(y, x, axes, keepdims):
    """Reshapes the result of a reduction (or its cotangent) so that it broadcasts to the operand."""
    if keepdims or axes == tuple(range(len(axes))):
        return y  # broadcasting restores leading axes by itself
    return movement.reshape(y, [1 if i in axes else n for i, n in enumerate(x.shape)])


def _broadcast(g, x, axes, keepdims):
    return movement.broadcast_to(_keep(g, x, axes, keepdims), x.shape)


def _count(x, axes):
    return _prod(x.shape[i] for i in axes)


def _reference(function):
    def reduce(x, axis=None, keepdims=False):
        return function(x, axis=tuple(axis) if isinstance(axis, list) else axis, keepdims=keepdims)

    return reduce


_SOME = [
    call(()), call((3,)), call((2, 3)), call((2, 3), axis=0), call((2, 3), axis=-1, keepdims=True),
    call((2, 3), axis=[]), call((2, 3, 4), axis=[0, -1]), call((2, 3, 4), axis=(1, 2)),
    call((2, 3, 4), axis=[2, 0], keepdims=True), call((2, 3, 2, 2), axis=[1, 3]), call((0, 3), axis=1),
    call((2, 1, 3), axis=1),
]  # fmt: skip
_EMPTY = [call((0,)), call((0, 3)), call((0, 3), axis=0), call((2, 0), axis=1, keepdims=True)]
_BAD = [
    (call((2, 3), axis=2), "InvalidArgumentError", "out of range"),
    (call((), axis=0), "InvalidArgumentError", "out of range"),
    (call((2, 3), axis=[0, -2]), "InvalidArgumentError", "duplicate"),
    (call((2, 3), axis="x"), "TypeError", "expected an integer"),
]
_BAD_BOOL = (call(bools([True, False])), "InvalidArgumentError", "not defined for bool")

# ---- sums ----

reduce_sum = reduction(
    "sum", NUMBER, rule=lambda g, x, out, axes, keepdims: _broadcast(g, x, axes, keepdims), xla="jnp.sum",
    linear="input_tensor", pattern="adds", epilogue="sum", second="sum", simplify=rewriting.sum_,
    numpy=_reference(np.sum), samples=[*_SOME, *_EMPTY], bad=[*_BAD, _BAD_BOOL],
    names="reduce_sum math.reduce_sum",
    doc="The sum of the elements of `input_tensor` over `axis`; over all axes if that is None.",
)  # fmt: skip


def _numpy_mean(x, axis, keepdims):
    mean = np.mean(x, axis=axis, keepdims=keepdims)
    return np.trunc(mean).astype(x.dtype) if x.dtype.kind in "iu" else mean


reduce_mean = reduction(
    "mean", NUMBER, xla="reduction.mean",
    rule=lambda g, x, out, axes, keepdims: _broadcast(g / _count(x, axes), x, axes, keepdims),
    linear="input_tensor", pattern="adds", simplify=rewriting.mean,
    numpy=_reference(_numpy_mean), samples=_SOME, bad=[*_BAD, _BAD_BOOL],
    names="reduce_mean math.reduce_mean",
    doc="The mean of the elements of `input_tensor` over `axis`; for integers an integer, rounded towards zero.",
)  # fmt: skip

sum_squares = reduction(
    "sum_squares", NUMBER, xla="reduction.sum_squares", each_row="sum_squares",
    rule=lambda g, x, out, axes, keepdims: conjugate(x + x) * _keep(g, x, axes, keepdims),
    numpy=lambda x, axis=None, keepdims=False: _reference(np.sum)(x * x, axis, keepdims),
    samples=[*_SOME, *_EMPTY], bad=_BAD, doc="The sum of `x * x` over `axis`, in one pass.",
)  # fmt: skip


def _numpy_sum_to(x, shape):
    lead = x.ndim - len(shape)
    axes = [*range(lead), *(lead + i for i, n in enumerate(shape) if n != x.shape[lead + i])]
    return np.sum(x, axis=tuple(axes), keepdims=True).reshape(shape)


sum_to = reduction(
    "sum_to", NUMBER, "x shape:Shape", xla="reduction.sum_to",
    rule=lambda g, x, out, shape: movement.broadcast_to(g, x.shape),
    linear="x", pattern="adds", epilogue="sum", second="sum", simplify=rewriting.sum_to,
    batch=batching.sum_to,
    numpy=_numpy_sum_to,
    samples=[
        call((2, 3), shape=[3]), call((2, 3), shape=[2, 1]), call((2, 3), shape=[]),
        call((2, 3), shape=[2, 3]),
        call((2, 3, 4), shape=[1, 3, 1]), call((), shape=[]), call((0, 3), shape=[3]),
        call((0, 3), shape=[0, 1]),
    ],
    bad=[(call((2, 3), shape=[2]), "InvalidArgumentError", "Incompatible shapes")],
    doc="`x` summed down to a `shape` that broadcasts to its own: the transpose of broadcasting.",
)  # fmt: skip

# ---- products ----


def _merged(x, axes):
    """`x` with `axes` merged into one, that axis, and the inverse."""
    shape, others = list(x.shape), [i for i in range(len(x.shape)) if i not in axes]
    size = _count(x, axes)
    if axes and axes[-1] - axes[0] + 1 == len(axes):  # adjacent
        y = movement.reshape(x, [*shape[: axes[0]], size, *shape[axes[-1] + 1 :]])
        return y, axes[0], lambda z: movement.reshape(z, shape)
    perm = [*others, *axes]
    y = movement.reshape(movement.transpose(x, perm), [*(shape[i] for i in others), size])

    def restore(z):
        return movement.transpose(
            movement.reshape(z, [shape[i] for i in perm]), [perm.index(i) for i in range(len(perm))]
        )

    return y, len(others), restore


def _product_rule(g, x, out, axes, keepdims):
    """The product of all *other* elements, as the products before and after each: correct where elements are 0."""
    g = _keep(g, x, axes, keepdims)
    if len(axes) == 1:
        y, axis, restore = x, axes[0], lambda z: z
    else:
        y, axis, restore = _merged(x, axes)
    cumprod = above.ops.cumprod
    others = cumprod(y, axis, exclusive=True) * cumprod(y, axis, exclusive=True, reverse=True)
    return conjugate(restore(others)) * g


reduce_prod = reduction(
    "prod", NUMBER, rule=_product_rule, epilogue="prod", xla="jnp.prod",
    numpy=_reference(np.prod),
    samples=[
        *_SOME, *_EMPTY, call(at([2.0, 0.0, 3.0])), call(at([[2.0, 0.0, 3.0], [0.0, 0.0, 1.0]]), axis=1),
    ],
    edges=[((at([2.0, 0.0, 3.0]),), ([0.0, 6.0, 0.0],)), ((at([0.0, 0.0, 3.0]),), ([0.0, 0.0, 0.0],))],
    bad=[*_BAD, _BAD_BOOL], names="reduce_prod math.reduce_prod",
    doc="The product of the elements of `input_tensor` over `axis`.",
)  # fmt: skip

# ---- extrema ----


def _extremum_rule(g, x, out, axes, keepdims):
    """Divides the cotangent equally among all elements that equal the extremum."""
    reached = casting.cast(equal(x, _keep(out, x, axes, keepdims)), x.dtype)
    return reached * (_keep(g, x, axes, keepdims) / reduce_sum(reached, axes, True))


reduce_max = reduction(
    "max", REAL, rule=_extremum_rule, epilogue="max", xla="reduction.largest",
    numpy=_reference(np.max), samples=_SOME, bad=[*_BAD, _BAD_BOOL], names="reduce_max math.reduce_max",
    edges=[
        ((at([1.0, 3.0, 3.0]),), ([0.0, 0.5, 0.5],)),
        ((at([[2.0, 2.0], [2.0, 2.0]]),), ([[0.25, 0.25], [0.25, 0.25]],)),
    ],
    doc="The largest element of `input_tensor` over `axis`. Ties share the gradient equally.",
)  # fmt: skip

reduce_min = reduction(
    "min", REAL, rule=_extremum_rule, epilogue="min", xla="reduction.smallest",
    numpy=_reference(np.min), samples=_SOME, bad=[*_BAD, _BAD_BOOL], names="reduce_min math.reduce_min",
    edges=[((at([1.0, 1.0, 3.0]),), ([0.5, 0.5, 0.0],))],
    doc="The smallest element of `input_tensor` over `axis`. Ties share the gradient equally.",
)  # fmt: skip


def _numpy_arg(function):
    def arg(x, axis=None, output_type="int64"):
        return function(x, axis=0 if axis is None else axis).astype(getattr(output_type, "name", output_type))

    return arg


_ARG = [
    call((3,)), call((2, 3)), call((2, 3), axis=-1), call((2, 3, 4), axis=1, output_type="int32"),
    call((0, 3), axis=1),
    call(at([1.0, 3.0, 3.0, 1.0])), call(ints([[4, 2], [1, 7]]), axis=1),
]  # fmt: skip
_BAD_ARG = [
    (call((2, 3), axis=2), "InvalidArgumentError", "out of range"),
    (call((0, 3), axis=0), "InvalidArgumentError", "is empty"),
    (call((3,), output_type="float32"), "InvalidArgumentError", "output_type must be"),
]

argmax = reduction(
    "argmax", REAL | BOOL, "input axis:Axis=None output_type:Dtype=int64", rule=None, xla="reduction.argmax",
    numpy=_numpy_arg(np.argmax), samples=_ARG, bad=_BAD_ARG, names="argmax math.argmax",
    doc="The index of the largest element along `axis` (axis 0 if None), the first of equal ones.",
)  # fmt: skip

argmin = reduction(
    "argmin", REAL | BOOL, "input axis:Axis=None output_type:Dtype=int64", rule=None, xla="reduction.argmin",
    numpy=_numpy_arg(np.argmin), samples=_ARG, bad=_BAD_ARG, names="argmin math.argmin",
    doc="The index of the smallest element along `axis` (axis 0 if None), the first of equal ones.",
)  # fmt: skip

# ---- any, all ----

_TRUTH = [
    call(bools(True)), call(bools([True, False])), call(bools([[True, False], [True, True]]), axis=1),
    call(bools([[True, False], [True, True]]), axis=[0], keepdims=True), call(bools([])),
]  # fmt: skip
_NOT_BOOL = [(call(at([1.0, 0.0], "float32")), "InvalidArgumentError", "expected one of bool")]

reduce_any = reduction(
    "any", BOOL, rule=None, numpy=_reference(np.any), samples=_TRUTH, bad=_NOT_BOOL, epilogue="any", xla="jnp.any",
    names="reduce_any math.reduce_any",
    doc="Whether any element over `axis` is true.",
)  # fmt: skip

reduce_all = reduction(
    "all", BOOL, rule=None, numpy=_reference(np.all), samples=_TRUTH, bad=_NOT_BOOL, epilogue="all", xla="jnp.all",
    names="reduce_all math.reduce_all",
    doc="Whether all elements over `axis` are true.",
)  # fmt: skip

# ---- log-sum-exp ----


def _numpy_logsumexp(x, axis=None, keepdims=False):
    top = _reference(np.max)(x, axis, True)
    out = np.log(_reference(np.sum)(np.exp(x - top), axis, True)) + top
    return out if keepdims else out.reshape(_reference(np.sum)(x, axis).shape)


def _logsumexp_rule(g, x, out, axes, keepdims):
    return _keep(g, x, axes, keepdims) * exp(x - _keep(out, x, axes, keepdims))


reduce_logsumexp = reduction(
    "logsumexp", FLOAT, rule=_logsumexp_rule, xla="reduction.logsumexp",
    numpy=_numpy_logsumexp, samples=_SOME, bad=_BAD, names="reduce_logsumexp math.reduce_logsumexp",
    edges=[((at([-np.inf, -np.inf]),), ([np.nan, np.nan],)), ((at([0.0, -np.inf]),), ([1.0, 0.0],))],
    doc="`log(sum(exp(x)))` over `axis`, without overflow.",
)  # fmt: skip
