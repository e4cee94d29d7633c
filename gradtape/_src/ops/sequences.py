"""Sequences: monotonicity, reversal, isotonic regression, approximate top k."""

from __future__ import annotations

import numpy as np

from gradtape._src.base import dtypes, errors
from gradtape._src.ops import casting, movement
from gradtape._src.ops.comparison import greater, greater_equal, less, select
from gradtape._src.ops.indexed import gather
from gradtape._src.ops.movement import transpose
from gradtape._src.ops.reduction import reduce_all
from gradtape._src.ops.segments import unsorted_segment_mean
from gradtape._src.ops.sort import top_k
from gradtape._src.ops.static import array_of, axis_of
from gradtape._src.ops.table import composite
from gradtape._src.tensors.conversion import as_tensor

__all__ = ["reverse_sequence"]


@composite("math.is_non_decreasing debugging.is_non_decreasing")
def is_non_decreasing(x, name=None):
    """Whether no element of `x`, in row-major order, is less than the one before it."""
    x = movement.reshape(as_tensor(x), [-1])
    return reduce_all(greater_equal(x[1:], x[:-1]))


@composite("math.is_strictly_increasing debugging.is_strictly_increasing")
def is_strictly_increasing(x, name=None):
    """Whether each element of `x`, in row-major order, is greater than the one before it."""
    x = movement.reshape(as_tensor(x), [-1])
    return reduce_all(greater(x[1:], x[:-1]))


@composite("reverse_sequence")
def reverse_sequence(input, seq_lengths, seq_axis=None, batch_axis=None, name=None):
    """Reverses the first `seq_lengths[i]` elements along `seq_axis` of each slice i along `batch_axis`."""
    x, lengths = as_tensor(input), as_tensor(seq_lengths)
    if seq_axis is None:
        raise TypeError(
            "reverse_sequence: `seq_axis` must be given: Expected int for argument 'seq_dim' not None."
        )
    for argument, axis in (("seq_dim", seq_axis), ("batch_dim", batch_axis or 0)):
        if axis >= x.ndim:
            raise errors.InvalidArgumentError(
                f"reverse_sequence: {argument} must be < input rank ({axis} vs. {x.ndim})"
            )
    if lengths.ndim != 1:
        raise errors.InvalidArgumentError(f"reverse_sequence: seq_lengths must be 1-dim, not {lengths.ndim}")
    time = axis_of("reverse_sequence", seq_axis, x.ndim)
    batch = axis_of("reverse_sequence", 0 if batch_axis is None else batch_axis, x.ndim)
    if time == batch:
        raise errors.InvalidArgumentError(f"reverse_sequence: batch_dim == seq_dim == {time}.")
    if lengths.shape[0] != x.shape[batch]:
        raise errors.InvalidArgumentError(
            f"reverse_sequence: Length of seq_lengths != input.dims({batch}), ({lengths.shape[0]} vs. {x.shape[batch]})."
        )
    for i, length in enumerate(lengths.numpy() if lengths._symbol is None else ()):
        if not 0 <= length <= x.shape[time]:
            wrong = "< 0" if length < 0 else f"> input.dims({time})"
            raise errors.InvalidArgumentError(f"reverse_sequence: seq_lens({i}) {wrong}; got {length}.")
    # [batch, time] come first; each row is then gathered by itself.
    perm = [batch, time, *(i for i in range(x.ndim) if i not in (batch, time))]
    rows = x if perm == sorted(perm) else movement.transpose(x, perm)
    steps = as_tensor(np.arange(x.shape[time])[None, :])
    ends = movement.expand_dims(casting.cast(lengths, dtypes.int64), 1)
    indices = select(less(steps, ends), ends - 1 - steps, steps)
    out = gather(rows, indices, axis=1, batch_dims=1)
    return out if rows is x else transpose(out, np.argsort(perm).tolist())


@composite("nn.isotonic_regression")
def isotonic_regression(inputs, decreasing=True, axis=-1):
    """The nearest sequences, by least squares, that do not increase (do not decrease), and the segment of each element.

    All elements of a segment are the mean of its inputs; gradients pass through the means.
    """
    x = as_tensor(inputs)
    if not x.dtype.is_floating:
        x = casting.cast(x, dtypes.float32 if x.dtype in (dtypes.int8, dtypes.int16) else dtypes.float64)
    if x.ndim == 0:
        return x, as_tensor(np.int32(0))
    axis = axis_of("isotonic_regression", axis, x.ndim)
    perm = [*(i for i in range(x.ndim) if i != axis), axis]
    last = x if axis == x.ndim - 1 else movement.transpose(x, perm)
    n = x.shape[axis]
    rows = movement.reshape(last, [last._numel // max(n, 1), n])
    values = array_of(rows).astype(np.float64)
    ids = np.array([_pooled(row if decreasing else -row) for row in values], np.int32).reshape(values.shape)
    flat = as_tensor((ids + n * np.arange(len(ids))[:, None]).reshape(-1))
    means = unsorted_segment_mean(movement.reshape(rows, [-1]), flat, rows._numel)

    def back(t):
        t = movement.reshape(t, last.shape)
        return t if last is x else transpose(t, np.argsort(perm).tolist())

    return back(gather(means, flat)), back(as_tensor(ids))


def _pooled(row):
    """The segments of the nearest decreasing sequence, by pooling adjacent violators (Ayer et al. 1955)."""
    sums: list[float] = []
    counts: list[int] = []
    for value in row.tolist():
        total, count = value, 1
        while sums and sums[-1] / counts[-1] < total / count:
            total, count = total + sums.pop(), count + counts.pop()
        sums.append(total)
        counts.append(count)
    return np.repeat(np.arange(len(counts)), counts)


def _approximate(operand, k, reduction_dimension, largest):
    x = as_tensor(operand)
    axis = axis_of("approx_max_k" if largest else "approx_min_k", reduction_dimension, x.ndim)
    perm = [*(i for i in range(x.ndim) if i != axis), axis]
    last = x if axis == x.ndim - 1 else movement.transpose(x, perm)
    values, indices = top_k(last if largest else -last, k)
    if not largest:
        values = -values
    if last is x:
        return values, indices
    inverse = np.argsort(perm).tolist()
    return movement.transpose(values, inverse), movement.transpose(indices, inverse)


@composite("math.approx_max_k nn.approx_max_k")
def approx_max_k(
    operand, k, reduction_dimension=-1, recall_target=0.95, reduction_input_size_override=-1, aggregate_to_topk=True,
    name=None,
):  # fmt: skip
    """The `k` largest elements along an axis and their indices; computed exactly, whatever `recall_target` is."""
    return _approximate(operand, k, reduction_dimension, True)


@composite("math.approx_min_k nn.approx_min_k")
def approx_min_k(
    operand, k, reduction_dimension=-1, recall_target=0.95, reduction_input_size_override=-1, aggregate_to_topk=True,
    name=None,
):  # fmt: skip
    """The `k` smallest elements along an axis and their indices; computed exactly, whatever `recall_target` is."""
    return _approximate(operand, k, reduction_dimension, False)


@composite("approx_top_k")
def approx_top_k(
    input, k, reduction_dimension=-1, recall_target=0.95, is_max_k=True, reduction_input_size_override=-1,
    aggregate_to_topk=True, name=None,
):  # fmt: skip
    """The `k` largest (smallest) elements along an axis and their indices, computed exactly."""
    return _approximate(input, k, reduction_dimension, is_max_k)
