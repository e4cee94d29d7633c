"""Signals as rows: Fourier transforms, complex ones over some axes and real ones along the last axis, and
overlapping frames.

`gradtape.signal` gives them TensorFlow's names. `scale` multiplies the result, so that inverse transforms and
adjoints are single ops too.
"""

from __future__ import annotations

import numpy as np

from gradtape._src.ops.samples import call
from gradtape._src.ops.table import ANY, COMPLEX, NUMBER, WIDE, movement, opaque

__all__ = ["fft_of", "frames_of", "irfft_of", "overlap_add", "rfft_of"]


def _numpy_fft(x, axes, inverse=False, scale=1.0):
    size = np.prod([x.shape[a] for a in axes], initial=1.0)
    return np.fft.ifftn(x, axes=axes) * size * scale if inverse else np.fft.fftn(x, axes=axes) * scale


fft_of = opaque(
    "fft", COMPLEX, "input axes:Axes inverse:Bool=False scale:Float=1.0", xla="fft.fft",
    batch="leading", numpy=_numpy_fft,
    linear="input",
    rule=lambda g, x, out, axes, inverse, scale: fft_of(g, axes, not inverse, scale),
    samples=[
        call((4,), axes=[0]), call((1,), axes=[0]), call((3, 5), axes=[1], inverse=True, scale=0.2),
        call((2, 3), axes=[0, 1]), call((2, 6, 2), axes=[1]), call((2, 3, 4), axes=[0, 1, 2], inverse=True),
        call((17,), axes=[0]), call((0, 4), axes=[1]), call((16, 4), axes=[0]), call((70,), axes=[0]),
    ],
    bad=[(call((2, 3), axes=[2]), "InvalidArgumentError", "out of range")],
    tolerance=10, doc="The discrete Fourier transform over `axes`, times `scale`.",
)  # fmt: skip


def _weights(length, once, twice, dtype):
    """Factors for the first half of a spectrum: `twice` for elements with a mirror image in the other half, else `once`."""
    weights = np.full(length // 2 + 1 if length else 0, twice, dtype.as_numpy_dtype)
    weights[:1] = once
    if length % 2 == 0:
        weights[-1:] = once
    return weights


def _rfft_rule(g, x, out, scale):
    n = x.shape[-1]
    return irfft_of(g * _weights(n, 1.0, 0.5, g.dtype), n, scale)


def _irfft_rule(g, x, out, length, scale):
    return rfft_of(g, scale) * _weights(length, 1.0, 2.0, x.dtype)


def _numpy_rfft(x, scale=1.0):
    n = x.shape[-1]
    return np.fft.rfft(x) * scale if x.size else np.zeros((*x.shape[:-1], n // 2 + 1 if n else 0), complex)


rfft_of = opaque(
    "rfft", WIDE, "input scale:Float=1.0", rule=_rfft_rule, batch="leading", linear="input", xla="fft.rfft",
    numpy=_numpy_rfft,
    samples=[
        call((4,)), call((5,)), call((1,)), call((2,)), call((2, 6), scale=0.5), call((3, 2, 7)), call((0, 4)),
        call((17, 8)), call((34,)), call((140,)), call((2, 0)),
    ],
    bad=[(call(()), "InvalidArgumentError", "rank of at least 1")],
    tolerance=10, doc="The first half of the Fourier transform of real numbers along the last axis, times `scale`.",
)  # fmt: skip


def _numpy_irfft(x, length, scale=1.0):
    return np.fft.irfft(x, length) * length * scale if x.size else np.zeros((*x.shape[:-1], length))


irfft_of = opaque(
    "irfft", COMPLEX, "input length:Int scale:Float=1.0", xla="fft.irfft",
    rule=_irfft_rule, batch="leading", numpy=_numpy_irfft,
    linear="input",
    samples=[
        call((3,), length=4), call((3,), length=5), call((1,), length=1), call((2,), length=2),
        call((2, 4), length=6, scale=0.5), call((3, 2, 4), length=7), call((0, 3), length=4), call((17, 5), length=8),
        call((18,), length=34), call((2, 0), length=0),
    ],
    bad=[(call((3,), length=6), "InvalidArgumentError", "has 4 elements")],
    tolerance=10, doc="Real numbers whose Fourier transform begins with `input`, times `length * scale`.",
)  # fmt: skip


# ---- frames ----


def _numpy_frames(x, length, step, count):
    places = np.arange(count)[:, None] * step + np.arange(length)
    return x[..., places]


def _numpy_overlap(x, step, size):
    out = np.zeros((*x.shape[:-2], size), x.dtype)
    for i in range(x.shape[-2]):
        out[..., i * step : i * step + x.shape[-1]] += x[..., i, :]
    return out


frames_of = movement(
    "frames", ANY, "signal length:Int step:Int count:Int", batch="leading", numpy=_numpy_frames, xla="fft.frames",
    transpose=lambda g, x, out, length, step, count: overlap_add(g, step, x.shape[-1]),
    samples=[
        call((7,), length=3, step=2, count=3), call((2, 8), length=4, step=4, count=2),
        call((5,), length=2, step=3, count=2), call((2, 5), length=6, step=1, count=0),
        call((0, 5), length=3, step=1, count=3),
    ],
    bad=[(call((5,), length=3, step=2, count=3), "InvalidArgumentError", "do not fit into [5]")],
    doc="`count` frames of `length` elements of the last axis, `step` elements apart.",
)  # fmt: skip

overlap_add = movement(
    "overlap_add", NUMBER, "frames step:Int size:Int", xla="fft.overlap_add",
    batch="leading", numpy=_numpy_overlap, pattern="adds",
    transpose=lambda g, x, out, step, size: frames_of(g, x.shape[-1], step, x.shape[-2]),
    samples=[
        call((3, 4), step=2, size=8), call((2, 2, 3), step=3, size=7), call((3, 2), step=3, size=8),
        call((0, 3), step=1, size=2),
    ],
    bad=[(call((3, 4), step=2, size=7), "InvalidArgumentError", "do not fit into 7")],
    doc="The sum of overlapping frames, `step` elements apart.",
)  # fmt: skip
