"""Normalisation by moments: batch, layer, root mean square, group and local response normalisation.

`layer_norm`, `rms_norm` and `batch_norm` are native, two passes over memory at most, and so are their
gradients. The gradients have rules made of plain ops, so derivatives of every order exist. TensorFlow has these
functions in Keras only; here they are in `tf.nn`.
"""

from __future__ import annotations

import numpy as np

from gradtape import _core
from gradtape._src.ops import movement
from gradtape._src.ops.arithmetic import rsqrt, square
from gradtape._src.ops.moments import sum_of
from gradtape._src.ops.reduction import reduce_mean, reduce_sum
from gradtape._src.ops.samples import call, inside
from gradtape._src.ops.table import TABLE, WIDE, opaque

__all__ = ["batch_norm_op", "layer_norm_op", "rms_norm_op"]

# ---- each row normalised by its own moments --------------------------------------------------------------


def _second_order(cot, g, x, scale, mean, rstd, axes, sums):
    """The rules of the gradient of a normalisation, with respect to (g, x, scale, mean, rstd), in shapes that broadcast.

    With y = (x - mean) rstd, h = g scale and means over `axes`, the gradient is
    gx = rstd (h - mean(h) - y mean(h y)), gscale = Σ g y, goffset = Σ g, with sums over `sums`. Without centering
    (`mean` is None) the term mean(h) is missing.
    """
    u, v, w = cot
    away = x if mean is None else x - mean
    y, h = away * rstd, g * scale

    def average(t):
        return reduce_mean(t, axes, True)

    by_g, by_y, by_scale, by_rstd = [], [], None, None
    if u is not None:
        uy, hy = average(u * y), average(h * y)
        flat_u, flat_h = u - y * uy, h - y * hy
        if mean is not None:
            flat_u, flat_h = flat_u - average(u), flat_h - average(h)
        by_g.append(scale * rstd * flat_u)
        by_scale = reduce_sum(g * rstd * flat_u, sums)
        by_y.append(-rstd * (u * hy + h * uy))
        by_rstd = reduce_sum(u * flat_h, axes, True)
    if v is not None:
        by_g.append(v * y)
        by_y.append(g * v)
    if w is not None:
        by_g.append(movement.broadcast_to(w, g.shape))
    through = sum_of(*by_y)
    if through is None:
        return sum_of(*by_g), None, by_scale, None, by_rstd
    by_rstd = sum_of(by_rstd, reduce_sum(through * away, axes, True))
    by_mean = None if mean is None else -rstd * reduce_sum(through, axes, True)
    return sum_of(*by_g), through * rstd, by_scale, by_mean, by_rstd


def _leading(x):
    return list(range(x.ndim - 1))


def _row_grad_rule(cot, g, x, scale, mean, rstd, out):
    return _second_order(cot, g, x, scale, mean, rstd, [-1], _leading(x))


def _rms_grad_rule(cot, g, x, scale, rstd, out):
    by_g, by_x, by_scale, _, by_rstd = _second_order((*cot, None), g, x, scale, None, rstd, [-1], _leading(x))
    return by_g, by_x, by_scale, by_rstd


def _np_row_grad(g, x, scale, mean, rstd):
    y, h = (x - mean) * rstd, g * scale
    gx = rstd * (h - h.mean(-1, keepdims=True) - y * (h * y).mean(-1, keepdims=True))
    over = tuple(range(x.ndim - 1))
    return gx, (g * y).sum(over), g.sum(over)


def _np_rms_grad(g, x, scale, rstd):
    y, h = x * rstd, g * scale
    return rstd * (h - y * (h * y).mean(-1, keepdims=True)), (g * y).sum(tuple(range(x.ndim - 1)))


def _batched_rows(name):
    """The batching rule: `x` may have any number of leading axes."""

    def batch(size, batched, operands, attrs):
        return (
            tuple(_core.apply(TABLE[name].op, operands, attrs))
            if batched[0] and not any(batched[1:])
            else None
        )

    return batch


def _batched_row_grad(name):
    """The batching rule of the gradients: that of `x` has any number of leading axes, those of the parameters are summed."""

    def batch(size, batched, operands, attrs):
        if batched[2]:
            return None
        operands = [
            x if b or k == 2 else movement.broadcast_to(x, [size, *x.shape])
            for k, (x, b) in enumerate(zip(operands, batched, strict=True))
        ]
        gx = _core.apply(TABLE[name].op, operands, attrs)[0]
        g, x, _, *stats = operands
        away = x - stats[0] if len(stats) == 2 else x
        sums = list(range(1, g.ndim - 1))
        gscale = reduce_sum(g * (away * stats[-1]), sums)
        return (gx, gscale) if len(stats) == 1 else (gx, gscale, reduce_sum(g, sums))

    return batch


layer_norm_grad = opaque(
    "layer_norm_grad", WIDE, "g x scale mean rstd", many=True, gaps=True, joint=True, rule=_row_grad_rule,
    xla="batchnorm.layer_norm_grad",
    linear="g",
    batch=_batched_row_grad("layer_norm_grad"),
    numpy=_np_row_grad,
    samples=[
        call((3,), (3,), (3,), (1,), (1,)), call((2, 3), (2, 3), (3,), (2, 1), (2, 1)),
        call((2, 2, 70), (2, 2, 70), (70,), (2, 2, 1), (2, 2, 1)), call((0, 3), (0, 3), (3,), (0, 1), (0, 1)),
    ],
    bad=[(call((2, 3), (3, 3), (3,), (2, 1), (2, 1)), "InvalidArgumentError", "same shape")],
    doc="The gradients of `layer_norm` with respect to x, scale and offset.",
)  # fmt: skip


def _row_rule(g, x, scale, offset, out, epsilon):
    _, mean, rstd = out
    gx = gscale = goffset = None
    if g[0] is not None:
        gx, gscale, goffset = layer_norm_grad(g[0], x, scale, mean, rstd)
    n = max(x.shape[-1], 1)
    by_mean = None if g[1] is None else movement.broadcast_to(g[1] / n, x.shape)
    by_rstd = None if g[2] is None else (x - mean) * (g[2] * rstd * square(rstd) * (-1 / n))
    return sum_of(gx, by_mean, by_rstd), gscale, goffset


def _np_rows(x, scale, offset, epsilon):
    mean = x.mean(-1, keepdims=True)
    rstd = 1 / np.sqrt(x.var(-1, keepdims=True) + epsilon)
    return (x - mean) * rstd * scale + offset, mean, rstd


layer_norm_op = opaque(
    "layer_norm", WIDE, "x scale offset epsilon:Float", many=True, gaps=True, joint=True, rule=_row_rule,
    xla="batchnorm.layer_norm",
    batch=_batched_rows("layer_norm"),
    numpy=_np_rows,
    samples=[
        call((3,), (3,), (3,), epsilon=1e-3), call((2, 3), (3,), (3,), epsilon=0.1),
        call((2, 2, 70), (70,), (70,), epsilon=1e-3), call((0, 3), (3,), (3,), epsilon=0.1),
    ],
    bad=[(call((2, 3), (2,), (3,), epsilon=0.1), "InvalidArgumentError", "as long as the last axis")],
    doc="`(x - mean) rstd scale + offset` over the last axis, with the means and `rstd = 1/sqrt(variance + epsilon)`.",
)  # fmt: skip

rms_norm_grad = opaque(
    "rms_norm_grad", WIDE, "g x scale rstd", many=True, gaps=True, joint=True, rule=_rms_grad_rule,
    xla="batchnorm.rms_norm_grad",
    linear="g",
    batch=_batched_row_grad("rms_norm_grad"), numpy=_np_rms_grad,
    samples=[
        call((3,), (3,), (3,), (1,)), call((2, 3), (2, 3), (3,), (2, 1)),
        call((2, 2, 70), (2, 2, 70), (70,), (2, 2, 1)), call((0, 3), (0, 3), (3,), (0, 1)),
    ],
    bad=[(call((2, 3), (3, 3), (3,), (2, 1)), "InvalidArgumentError", "same shape")],
    doc="The gradients of `rms_norm` with respect to x and scale.",
)  # fmt: skip


def _rms_rule(g, x, scale, out, epsilon):
    gx = gscale = None
    rstd = out[1]
    if g[0] is not None:
        gx, gscale = rms_norm_grad(g[0], x, scale, rstd)
    by_rstd = None if g[1] is None else x * (g[1] * rstd * square(rstd) * (-1 / max(x.shape[-1], 1)))
    return sum_of(gx, by_rstd), gscale


def _np_rms(x, scale, epsilon):
    rstd = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)
    return x * rstd * scale, rstd


rms_norm_op = opaque(
    "rms_norm", WIDE, "x scale epsilon:Float", many=True, gaps=True, joint=True, rule=_rms_rule,
    xla="batchnorm.rms_norm",
    batch=_batched_rows("rms_norm"),
    numpy=_np_rms,
    samples=[
        call((3,), (3,), epsilon=1e-3), call((2, 3), (3,), epsilon=0.1), call((2, 2, 70), (70,), epsilon=1e-3),
        call((0, 3), (3,), epsilon=0.1),
    ],
    bad=[(call((2, 3), (2,), epsilon=0.1), "InvalidArgumentError", "as long as the last axis")],
    doc="`x rstd scale` over the last axis, with `rstd = 1/sqrt(mean(x²) + epsilon)`.",
)  # fmt: skip


# ---- channels normalised over the batch ---------------------------------------------------------


def _channel(y, x, axis):
    """A parameter with one number per channel, in a shape that broadcasts with `x`."""
    return movement.reshape(y, [-1 if i == axis else 1 for i in range(x.ndim)]) if axis < x.ndim - 1 else y


def _batch_grad_rule(cot, g, x, scale, mean, variance, out, epsilon, axis):
    axes = [i for i in range(x.ndim) if i != axis]
    rstd = rsqrt(variance + epsilon)
    u, v, w = (c if c is None or k == 0 else _channel(c, x, axis) for k, c in enumerate(cot))
    s, m, r = (_channel(t, x, axis) for t in (scale, mean, rstd))
    by_g, by_x, by_scale, by_mean, by_rstd = _second_order((u, v, w), g, x, s, m, r, axes, axes)

    def flat(t):
        return None if t is None else movement.reshape(t, scale.shape)

    by_rstd = flat(by_rstd)
    by_variance = None if by_rstd is None else by_rstd * (rstd * square(rstd)) * -0.5
    return by_g, by_x, flat(by_scale), flat(by_mean), by_variance


def _np_batch_grad(g, x, scale, mean, variance, epsilon, axis=-1):
    axis %= x.ndim
    over, shape = (
        tuple(i for i in range(x.ndim) if i != axis),
        [-1 if i == axis else 1 for i in range(x.ndim)],
    )
    s, m, r = (t.reshape(shape) for t in (scale, mean, 1 / np.sqrt(variance + epsilon)))
    y, h, n = (x - m) * r, g * s, max(x.size // max(x.shape[axis], 1), 1)
    gx = r * (h - h.sum(over, keepdims=True) / n - y * (h * y).sum(over, keepdims=True) / n)
    return gx, (g * y).sum(over), g.sum(over)


_CHANNELS = [
    ((4, 3), {"axis": -1}), ((2, 3, 3), {"axis": 1}), ((2, 2, 2, 70), {}), ((90, 2), {}), ((0, 3), {}),
]  # fmt: skip

batch_norm_grad = opaque(
    "batch_norm_grad", WIDE, "g x scale mean variance epsilon:Float axis:Axis=-1", many=True, gaps=True, joint=True,
    xla="batchnorm.batch_norm_grad",
    linear="g",
    rule=_batch_grad_rule, numpy=_np_batch_grad,
    samples=[
        call(s, s, *[(s[a.get("axis", -1)],)] * 2, inside(0.5, 2, s[a.get("axis", -1)]), epsilon=0.1, **a)
        for s, a in _CHANNELS
    ],
    bad=[
        (call((2, 3), (3, 3), (3,), (3,), (3,), epsilon=0.1), "InvalidArgumentError", "same shape"),
        (call((2, 3), (2, 3), (2,), (3,), (3,), epsilon=0.1), "InvalidArgumentError", "each of the 3 channels"),
    ],
    doc="The gradients of `batch_norm` with respect to x, scale and offset.",
)  # fmt: skip


def _batch_rule(g, x, scale, offset, out, epsilon, axis):
    _, mean, variance = out
    gx = gscale = goffset = None
    if g[0] is not None:
        gx, gscale, goffset = batch_norm_grad(g[0], x, scale, mean, variance, epsilon, axis)
    n = max(x._numel // max(x.shape[axis], 1), 1)
    by_mean = None if g[1] is None else movement.broadcast_to(_channel(g[1] / n, x, axis), x.shape)
    by_variance = None if g[2] is None else (x - _channel(mean, x, axis)) * _channel(g[2] * (2 / n), x, axis)
    return sum_of(gx, by_mean, by_variance), gscale, goffset


def _np_batch(x, scale, offset, epsilon, axis=-1):
    axis %= x.ndim
    over, shape = (
        tuple(i for i in range(x.ndim) if i != axis),
        [-1 if i == axis else 1 for i in range(x.ndim)],
    )
    n = np.float64(x.size // max(x.shape[axis], 1))
    with np.errstate(all="ignore"):
        mean = x.sum(over) / n
        variance = ((x - mean.reshape(shape)) ** 2).sum(over) / n
    r = 1 / np.sqrt(variance + epsilon)
    return (x - mean.reshape(shape)) * (r * scale).reshape(shape) + offset.reshape(shape), mean, variance


_BATCHES = [call(s, *[(s[a.get("axis", -1)],)] * 2, epsilon=0.1, **a) for s, a in _CHANNELS]

batch_norm_op = opaque(
    "batch_norm", WIDE, "x scale offset epsilon:Float axis:Axis=-1", many=True, gaps=True, joint=True,
    xla="batchnorm.batch_norm",
    rule=_batch_rule, numpy=_np_batch,
    samples=_BATCHES, gradient_samples=_BATCHES[:-1],  # without the sample whose moments are NaN
    bad=[(call((2, 3), (2,), (3,), epsilon=0.1), "InvalidArgumentError", "one number for each of the 3 channels")],
    doc="`(x - mean) / sqrt(variance + epsilon) · scale + offset` per channel, and the mean and variance used.",
)  # fmt: skip
