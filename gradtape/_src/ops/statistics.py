"""Variances, counts and histograms: composites of reductions."""

from __future__ import annotations

from math import prod as _prod

import numpy as np

from gradtape._src.base import dtypes
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops import casting, indexed, movement
from gradtape._src.ops.arithmetic import conj, multiply, real, sqrt
from gradtape._src.ops.comparison import equal, not_equal, select
from gradtape._src.ops.moments import as_type, in_float, moments_op
from gradtape._src.ops.reduction import reduce_mean, reduce_sum
from gradtape._src.ops.static import array_of
from gradtape._src.ops.table import composite
from gradtape._src.tensors.conversion import as_tensor

__all__ = [
    "bincount", "confusion_matrix", "count_nonzero", "histogram_fixed_width", "histogram_fixed_width_bins",
    "reduce_std", "reduce_variance", "zero_fraction",
]  # fmt: skip

# ---- variances ----


@composite("math.reduce_variance")
def reduce_variance(input_tensor, axis=None, keepdims=False, name=None):
    """The variance of the elements over `axis`. It is real for complex input, too."""
    return _variance("reduce_variance", input_tensor, axis, keepdims)


def _variance(op, input_tensor, axis, keepdims):
    x = as_tensor(input_tensor)
    if not (x.dtype.is_floating or x.dtype.is_complex):
        error, kind = (TypeError, "integer type") if x.dtype.is_integer else (InvalidArgumentError, "type")
        raise error(
            f"{op}: Input must be either real or complex. Received {kind} {x.dtype}. Hint: tf.cast(x, tf.float32)."
        )
    if x.dtype.is_complex:
        away = x - reduce_mean(x, axis, True)
        return reduce_mean(real(away * conj(away)), axis, keepdims)
    return as_type(moments_op(in_float(x), axis, keepdims)[1], x.dtype)


@composite("math.reduce_std")
def reduce_std(input_tensor, axis=None, keepdims=False, name=None):
    """The standard deviation over `axis`. As in TensorFlow, its gradient is NaN where all elements are equal."""
    return sqrt(_variance("reduce_std", input_tensor, axis, keepdims))


# ---- counts ----


@composite("math.count_nonzero")
def count_nonzero(input, axis=None, keepdims=None, dtype=dtypes.int64, name=None):
    """The number of nonzero (or true) elements over `axis`."""
    x = as_tensor(input)
    some = x if x.dtype.is_bool else not_equal(x, "" if x.dtype is dtypes.string else 0)
    return as_type(reduce_sum(casting.cast(some, dtypes.int64), axis, bool(keepdims)), dtypes.as_dtype(dtype))


@composite("math.zero_fraction nn.zero_fraction")
def zero_fraction(value, name=None):
    """The fraction of the elements of `value` that are zero, as a float32; NaN if it has no elements."""
    x = as_tensor(value)
    return reduce_mean(casting.cast(equal(x, 0), dtypes.float32))


def _bins_of(arr, minlength, maxlength):
    """The number of bins for the values of `arr`."""
    values = array_of(arr)
    if values.size and values.min() < 0:
        raise InvalidArgumentError(f"bincount: Input arr must be non-negative! got {values.min()}.")
    n = int(values.max()) + 1 if values.size else 0
    for bound, pick, name in ((minlength, max, "minlength"), (maxlength, min, "maxlength")):
        if bound is not None:
            if int(bound) < 0:
                raise InvalidArgumentError(f"bincount: {name} must be non-negative; got {int(bound)}.")
            n = pick(n, int(bound))
    return n


@composite("math.bincount")
def bincount(
    arr, weights=None, minlength=None, maxlength=None, dtype=dtypes.int32, name=None, axis=None,
    binary_output=False
):  # fmt: skip
    """Counts the occurrences of each integer in `arr`, or sums the weights at its occurrences.

    Args:
      minlength, maxlength: the least and the largest number of bins; larger integers are not counted.
      axis: None or 0 to count all of `arr`, -1 to count each row of a matrix.
      binary_output: 1 for integers that occur, else 0, instead of counts.
    """
    arr = as_tensor(arr)
    if arr.dtype.is_floating:
        arr = casting.cast(arr, dtypes.int32)
    elif not arr.dtype.is_integer:
        raise TypeError(f"bincount: `arr` must hold integers; got {arr.dtype.name}.")
    if weights is not None and binary_output:
        raise ValueError("bincount: Arguments `binary_output` and `weights` are mutually exclusive.")
    if axis not in (None, 0, -1):
        raise ValueError(
            f"bincount: Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported."
        )
    rows = axis == -1 and len(arr.shape) == 2
    n = _bins_of(arr, minlength, maxlength)
    dtype = dtypes.as_dtype(dtype)
    if weights is None:
        counted = casting.cast(equal(arr, arr), dtype)
    else:
        counted = as_tensor(weights)
        if counted.shape != arr.shape:
            raise InvalidArgumentError(
                f"bincount: weights must have the shape of arr {arr.shape}; got {counted.shape}."
            )
    # One more bin for integers that are not counted, so that every index is valid.
    arr = casting.cast(arr, dtypes.int64)
    place = select(arr < n, arr, n)
    lines = arr.shape[0] if rows else 1
    if rows:
        place = place + (n + 1) * np.arange(lines, dtype=np.int64)[:, None]
    size = _prod(arr.shape)
    sums = indexed.scatter_rows_add(
        movement.reshape(counted, [size]), movement.reshape(place, [size]), [lines * (n + 1)]
    )
    out = movement.reshape(sums, [lines, n + 1])[:, :n]
    if not rows:
        out = movement.reshape(out, [n])
    return casting.cast(not_equal(out, 0), dtype) if binary_output else out


def _squeezed(labels, predictions):
    """Removes an axis of size 1 that only one of the two has."""
    extra = len(predictions.shape) - len(labels.shape)
    if extra == 1 and predictions.shape[-1] == 1:
        predictions = movement.squeeze(predictions, [-1])
    elif extra == -1 and labels.shape[-1] == 1:
        labels = movement.squeeze(labels, [-1])
    return labels, predictions


@composite("math.confusion_matrix")
def confusion_matrix(labels, predictions, num_classes=None, weights=None, dtype=dtypes.int32, name=None):
    """A matrix of counts: how often each class (row) was predicted as each class (column)."""
    labels, predictions = _squeezed(as_tensor(labels), as_tensor(predictions))
    if labels.shape != predictions.shape:
        raise InvalidArgumentError(
            f"confusion_matrix: Shapes of labels {labels.shape} and predictions {predictions.shape} must "
            f"match."
        )
    y, z = casting.cast(labels, dtypes.int64), casting.cast(predictions, dtypes.int64)
    size, most = _prod(y.shape), -1
    for values, name_ in ((array_of(y), "labels"), (array_of(z), "predictions")):
        if not size:
            break
        if values.min() < 0:
            raise InvalidArgumentError(f"confusion_matrix: `{name_}` contains negative values.")
        if num_classes is not None and values.max() >= int(num_classes):
            raise InvalidArgumentError(
                f"confusion_matrix: `{name_}` out of bound: {values.max()} is not below {int(num_classes)} "
                f"classes."
            )
        most = max(most, int(values.max()))
    n = most + 1 if num_classes is None else int(num_classes)
    dtype = dtypes.as_dtype(dtype)
    counted = casting.cast(equal(y, y), dtype)
    if weights is not None:
        factors = as_type(as_tensor(weights, counted), dtype)
        if factors.shape != y.shape:
            raise ValueError(
                f"confusion_matrix: Shapes {tuple(y.shape)} and {tuple(factors.shape)} are incompatible"
            )
        counted = multiply(counted, factors)
    place = movement.reshape(y * n + z, [size])
    return movement.reshape(
        indexed.scatter_rows_add(movement.reshape(counted, [size]), place, [n * n]), [n, n]
    )


@composite("histogram_fixed_width_bins")
def histogram_fixed_width_bins(values, value_range, nbins=100, dtype=dtypes.int32, name=None):
    """The index of the bin of each value; values outside of the range are in the first or the last bin."""
    x = as_tensor(values)
    lo, hi = (float(v) for v in array_of(as_tensor(value_range)))
    nbins = int(nbins)
    if nbins <= 0:
        raise InvalidArgumentError(
            f"histogram_fixed_width: nbins should be a positive number, but got '{nbins}'."
        )
    if not lo < hi:
        raise InvalidArgumentError(
            f"histogram_fixed_width: value_range should satisfy value_range[0] < value_range[1], but got "
            f"'[{lo}, {hi}]'."
        )
    x = in_float(x) if x.dtype.is_floating else casting.cast(x, dtypes.float64)
    scaled = (x - lo) / (hi - lo) * nbins
    last = as_tensor(float(nbins - 1), x)
    return casting.cast(select(scaled > 0, select(scaled < last, scaled, last), 0), dtype)


@composite("histogram_fixed_width")
def histogram_fixed_width(values, value_range, nbins=100, dtype=dtypes.int32, name=None):
    """The number of values in each of `nbins` bins of equal width."""
    bins = histogram_fixed_width_bins(values, value_range, nbins)
    return bincount(bins, minlength=int(nbins), maxlength=int(nbins), dtype=dtype)
