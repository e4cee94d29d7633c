"""Keeping gradients in bounds: clip_by_value, clip_by_norm, clip_by_global_norm, global_norm."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gradtape import _core
from gradtape._src.ops.arithmetic import clip, maximum, minimum, sqrt
from gradtape._src.ops.casting import cast
from gradtape._src.ops.comparison import select
from gradtape._src.ops.creation import convert_to_tensor, zeros
from gradtape._src.ops.join import add_n
from gradtape._src.ops.reduction import sum_squares
from gradtape._src.ops.table import composite
from gradtape._src.tensors.indexed_slices import IndexedSlices

__all__ = ["clip_by_average_norm", "clip_by_global_norm", "clip_by_norm", "clip_by_value", "global_norm"]


def _like(t, values):
    """`values` in the form of `t`: a tensor, or IndexedSlices with the indices of `t`."""
    return IndexedSlices(values, t.indices, t._dense_shape) if isinstance(t, IndexedSlices) else values


def _values(t):
    return convert_to_tensor(t.values if isinstance(t, IndexedSlices) else t)


@composite("clip_by_value")
def clip_by_value(t, clip_value_min, clip_value_max, name=None):
    """`t` with every element clipped to `[clip_value_min, clip_value_max]`.

    The gradient passes inside and at the bounds and is 0 outside; NaN stays NaN. IndexedSlices
    give IndexedSlices.

    Raises:
      ValueError: if the bounds have a larger shape than `t`.
    """
    if isinstance(t, IndexedSlices):
        return _like(t, clip(t.values, clip_value_min, clip_value_max))
    out = clip(t, clip_value_min, clip_value_max)
    if isinstance(t, (_core.Tensor, _core.Variable)) and out.ndim and tuple(out.shape) != tuple(t.shape):
        raise ValueError(
            f"clip_by_value: Shapes {tuple(t.shape)} and {tuple(out.shape)} are incompatible; expected "
            "bounds that broadcast to the shape of `t`."
        )
    return out


@composite("clip_by_norm")
def clip_by_norm(t, clip_norm, axes=None, name=None):
    """`t` scaled down so that its L2 norm (over `axes`) is at most `clip_norm`.

    The gradient at zero is that of the identity, not NaN.
    """
    x = _values(t)
    clip_norm = max(clip_norm, 0) if isinstance(clip_norm, (int, float)) else maximum(clip_norm, 0)
    total = sum_squares(x, axes, True)
    positive = total > 0
    # sqrt sees a 1 where the sum is 0, so that its infinite derivative does not become NaN.
    norm = select(positive, sqrt(select(positive, total, 1)), total)
    return _like(t, x * clip_norm / maximum(norm, clip_norm))


@composite("linalg.global_norm")
def global_norm(t_list, name=None):
    """The L2 norm of all elements of a list of tensors; None entries are skipped.

    Raises:
      TypeError: if `t_list` is not a sequence.
    """
    _want_sequence("global_norm", t_list)
    squares = [sum_squares(_values(t)) for t in t_list if t is not None]
    if not squares:
        return zeros([])
    return sqrt(squares[0] if len(squares) == 1 else add_n(squares))


@composite("clip_by_global_norm")
def clip_by_global_norm(t_list, clip_norm, use_norm=None, name=None):
    """The tensors of a list, scaled by one factor so that their global L2 norm is at most `clip_norm`.

    Args:
      t_list: tensors, IndexedSlices or None.
      clip_norm: the largest norm.
      use_norm: the global norm, if already computed; `tf.linalg.global_norm(t_list)` by default.

    Returns:
      The list of scaled tensors, and the global norm. If that is infinite or NaN, every element becomes NaN.

    >>> import gradtape as tf
    >>> grads, norm = tf.clip_by_global_norm([tf.constant([3.0, 4.0]), None], 1.0)
    >>> grads[0].numpy(), grads[1], norm.numpy()
    (array([0.6, 0.8], dtype=float32), None, np.float32(5.0))
    """
    _want_sequence("clip_by_global_norm", t_list)
    hint = next((t.dtype for t in t_list if hasattr(t, "dtype")), None)
    norm = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm, dtype_hint=hint)
    # The difference is 0, or NaN if the norm is infinite or NaN: then every element becomes NaN.
    if isinstance(clip_norm, (int, float)):
        most, inverse = clip_norm, 1 / clip_norm if clip_norm else math.inf
    else:
        most = convert_to_tensor(clip_norm, norm.dtype)
        inverse = 1 / most
    scale = minimum(1 / norm, inverse) * most + (norm - norm)
    scales = {norm.dtype: scale}  # the factor in each type

    def scaled(t):
        x = _values(t)
        if x.dtype not in scales:
            scales[x.dtype] = cast(scale, x.dtype)
        return _like(t, x * scales[x.dtype])

    return [None if t is None else scaled(t) for t in t_list], norm


@composite("compat.v1.clip_by_average_norm")
def clip_by_average_norm(t, clip_norm, name=None):
    """`t` scaled down so that its L2 norm divided by its number of elements is at most `clip_norm`."""
    x = convert_to_tensor(t)
    inverse = x._numel / sqrt(sum_squares(x))
    return x * (clip_norm * minimum(inverse, 1 / convert_to_tensor(clip_norm, x.dtype)))


def _want_sequence(op, t_list):
    if not isinstance(t_list, Sequence) or isinstance(t_list, str):
        raise TypeError(f"{op}: `t_list` should be a sequence of tensors. Received {type(t_list)}.")
