"""The functions of `keras.ops.numpy` about distributions: quantiles, counts, covariance."""

from __future__ import annotations

import math
from typing import Any

import gradtape as tf
from gradtape.backend import op
from keras_gradtape.src.ops import sparse_codes
from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.creation import linspace
from keras_gradtape.src.ops.elementwise import isnan
from keras_gradtape.src.ops.shapes import moveaxis
from keras_gradtape.src.ops.sorting import searchsorted
from keras_gradtape.src.ops.types import common, countable, floating

_take_along = op("take_along")

# ---- quantiles ----------------------------------------------------------------------------------

METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def _last(x: Any, axis: Any) -> tuple[Any, list]:
    """`x` with the reduced axes as one at the end, and the shape that the result keeps."""
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    reduced = sorted(a % x.ndim for a in axes)
    rest = [a for a in range(x.ndim) if a not in reduced]
    whole = [1 if a in reduced else x.shape[a] for a in range(x.ndim)]
    return tf.reshape(tf.transpose(x, rest + reduced), [*(x.shape[a] for a in rest), -1]), whole


def _quantile(x: Any, q: Any, axis: Any, method: str, keepdims: bool, skip: bool) -> Any:
    if method not in METHODS:
        raise ValueError(f"`method` must be one of {METHODS}. Received: method={method}")
    x = floating(x)
    dtype = x.dtype
    wide = tf.float32 if dtype.size < 4 else dtype
    q = convert_to_tensor(q, wide.name)
    x, whole = _last(tf.cast(x, wide), axis)
    gaps = isnan(x)
    # NaN is sorted to the end.
    x = tf.sort(tf.where(gaps, tf.constant(math.inf, wide), x))
    counts = tf.reduce_sum(tf.cast(tf.logical_not(gaps), tf.int32), -1, keepdims=True)
    last = counts - 1 if skip else tf.fill(counts.shape, x.shape[-1] - 1)
    last = tf.cast(tf.maximum(last, 0), wide)
    place = tf.reshape(q, [-1]) * last
    low, high = tf.floor(place), tf.math.ceil(place)
    below, above = (_take_along(x, tf.cast(p, tf.int32), x.ndim - 1) for p in (low, high))
    if method == "linear":
        # The difference of equal values is zero, even if they are infinite.
        out = tf.where(tf.equal(below, above), below, below + (above - below) * (place - low))
    elif method == "midpoint":
        out = (below + above) / 2
    elif method == "nearest":
        out = tf.where(tf.round(place) <= low, below, above)
    else:
        out = below if method == "lower" else above
    unknown = tf.equal(counts, 0) if skip else counts < x.shape[-1]
    out = moveaxis(tf.where(unknown, tf.constant(math.nan, wide), out), -1, 0)
    shape = whole if keepdims else list(x.shape[:-1])
    return tf.cast(tf.reshape(out, [*q.shape, *shape]), dtype)


def quantile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Any:
    return _quantile(x, q, axis, method, keepdims, False)


def nanquantile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Any:
    return _quantile(x, q, axis, method, keepdims, True)


def _hundredth(q: Any) -> Any:
    return tf.cast(convert_to_tensor(q), tf.float64) / 100


def percentile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Any:
    return quantile(x, _hundredth(q), axis, method, keepdims)


def nanpercentile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Any:
    return nanquantile(x, _hundredth(q), axis, method, keepdims)


def median(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return quantile(x, 0.5, axis, keepdims=keepdims)


def nanmedian(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return nanquantile(x, 0.5, axis, keepdims=keepdims)


# ---- counts -------------------------------------------------------------------------------------


def bincount(x: Any, weights: Any = None, minlength: int = 0, sparse: bool = False) -> Any:
    """How often each integer appears, of a vector or of each row of a matrix."""
    if sparse:
        return sparse_codes.bincount(x, weights, minlength)
    x = convert_to_tensor(x, "int32")
    length = int(minlength or 0)
    if not x.dtype.is_integer:
        raise ValueError(f"bincount: expected integers; got {x.dtype.name}")
    if x._symbol is None:
        length = max(length, int(tf.reduce_max(x)) + 1 if all(x.shape) else 0)
    elif not length:
        raise ValueError("bincount: in a compiled function the length must be known. Hint: minlength=...")
    if weights is None:
        weights = tf.ones(x.shape, tf.int32)
    else:
        weights = tf.broadcast_to(countable(weights), x.shape)
    inside = tf.where(x < length, x, tf.constant(-1))
    if x.ndim < 2:
        return tf.math.unsorted_segment_sum(tf.reshape(weights, [-1]), tf.reshape(inside, [-1]), length)
    rows = x.shape[0]
    own = tf.where(inside < 0, inside, inside + tf.expand_dims(tf.range(rows) * length, 1))
    return tf.reshape(tf.math.unsorted_segment_sum(weights, own, rows * length), [rows, length])


def histogram(x: Any, bins: int = 10, range: Any = None) -> tuple:
    x = floating(x)
    low, high = (
        (convert_to_tensor(v, x.dtype.name) for v in range)
        if range is not None
        else (tf.reduce_min(x), tf.reduce_max(x))
    )
    # An empty interval is replaced by one of length one around it.
    flat = tf.equal(low, high)
    low, high = tf.where(flat, low - 0.5, low), tf.where(flat, high + 0.5, high)
    edges = linspace(low, high, bins + 1)
    flat_x = tf.reshape(x, [-1])
    place = tf.minimum(searchsorted(edges, flat_x, side="right") - 1, bins - 1)  # the last bin is closed
    place = tf.where((flat_x >= low) & (flat_x <= high), place, tf.constant(-1))
    counts = tf.math.unsorted_segment_sum(tf.ones_like(place), place, bins)
    return counts, edges


# ---- dependence ---------------------------------------------------------------------------------


def cov(x: Any, rowvar: bool = True, bias: bool = False, ddof: int | None = None) -> Any:
    """The covariances of the rows, which are the variables."""
    x = floating(x)
    rows = tf.reshape(x, [1, -1]) if x.ndim < 2 else x if rowvar else tf.transpose(x)
    free = rows.shape[1] - ((0 if bias else 1) if ddof is None else ddof)
    apart = rows - tf.reduce_mean(rows, 1, keepdims=True)
    out = tf.matmul(apart, apart, adjoint_b=True) / free
    return tf.reshape(out, []) if x.ndim < 2 else out


def corrcoef(x: Any) -> Any:
    x = common(x, also=(float,))[0]
    covariance = cov(x)
    if not covariance.ndim:
        return covariance / covariance
    stddev = tf.sqrt(tf.math.real(tf.linalg.diag_part(covariance)))
    if covariance.dtype.is_complex:
        stddev = tf.cast(stddev, covariance.dtype)
    out = covariance / tf.expand_dims(stddev, 0) / tf.expand_dims(stddev, 1)
    return out if out.dtype.is_complex else tf.clip_by_value(out, -1.0, 1.0)
