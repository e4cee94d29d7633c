"""The functions of `keras.ops.numpy` about order: sorting, searching, sets."""

from __future__ import annotations

from typing import Any

import gradtape as tf
from keras_gradtape.src.ops.core import convert_to_tensor
from keras_gradtape.src.ops.shapes import moveaxis
from keras_gradtape.src.ops.types import countable, numbers, together


def sort(x: Any, axis: int | None = -1) -> Any:
    x = convert_to_tensor(x)
    return tf.sort(tf.reshape(x, [-1]), 0) if axis is None else tf.sort(x, axis)


def argsort(x: Any, axis: int | None = -1) -> Any:
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = tf.reshape(x, [-1]), 0
    return tf.argsort(x, axis, stable=True) if x.ndim else tf.zeros([], tf.int32)


def argpartition(x: Any, kth: Any, axis: int | None = -1) -> Any:
    """A full sort, since elements before and after `kth` may be in any order."""
    return argsort(countable(x), axis)


def searchsorted(sorted_sequence: Any, values: Any, side: str = "left") -> Any:
    sequence, values = numbers(sorted_sequence, values)
    if sequence.ndim != 1:
        raise ValueError(
            "`searchsorted` only supports 1-D sorted sequences. "
            f"Received: sorted_sequence.shape={tuple(sequence.shape)}"
        )
    places = tf.searchsorted(sequence, tf.reshape(values, [-1]), side=side)
    return tf.reshape(places, values.shape)


def digitize(x: Any, bins: Any) -> Any:
    return searchsorted(bins, x, side="right")


def isin(x1: Any, x2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    x1, x2 = together(x1, x2)
    if x1.dtype.is_bool:
        x1, x2 = tf.cast(x1, tf.int32), tf.cast(x2, tf.int32)
    members = tf.sort(tf.reshape(x2, [-1]))
    count = members.shape[0]
    if not count:
        return tf.fill(x1.shape, invert)
    place = tf.minimum(searchsorted(members, x1), count - 1)
    is_member = tf.equal(tf.gather(members, place), x1)
    return tf.logical_not(is_member) if invert else is_member


# ---- unique -------------------------------------------------------------------------------------


def _order_of_rows(rows: Any) -> Any:
    """The places of rows in lexical order: sorted by each column, the first one last."""
    order = tf.range(rows.shape[0])
    for column in reversed(tf.unstack(rows, axis=1)):
        order = tf.gather(order, tf.argsort(tf.gather(column, order), stable=True))
    return order


def unique(
    x: Any, sorted: bool = True, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False, axis: int | None = None, size: int | None = None, fill_value: Any = None,
) -> Any:  # fmt: skip
    """The different elements, or subtensors along `axis`, in order.

    With `size` the shapes do not depend on the values, so it works on symbolic tensors too.
    """
    x = convert_to_tensor(x)
    moved = tf.reshape(x, [-1]) if axis is None else moveaxis(x, axis, 0)
    length, rest = moved.shape[0], list(moved.shape[1:])
    rows = tf.reshape(tf.cast(moved, tf.int32) if x.dtype.is_bool else moved, [length, -1])
    order = _order_of_rows(rows)
    arranged = tf.gather(rows, order)
    # The index of the group of each sorted row.
    new = tf.reduce_any(tf.not_equal(arranged[1:], arranged[:-1]), 1)
    group = tf.cumsum(tf.concat([tf.zeros([min(length, 1)], tf.int32), tf.cast(new, tf.int32)], 0))
    count = size
    if count is None:
        count = int(group[-1]) + 1 if length else 0
    segment = tf.where(group < count, group, tf.constant(-1))  # negative ids are dropped
    counts = tf.math.unsorted_segment_sum(tf.ones_like(order), segment, count)
    first = tf.math.unsorted_segment_min(order, segment, count)
    there = counts > 0
    first = tf.where(there, first, first[:1])
    values = tf.gather(moved, first) if length else tf.zeros([count, *rest], x.dtype)
    if size is not None:
        filling = convert_to_tensor(0 if fill_value is None else fill_value, x.dtype.name)
        values = tf.where(tf.reshape(there, [count] + [1] * len(rest)), values, filling)
    if axis is not None:
        values = moveaxis(values, 0, axis)
    out = [values]
    if return_index:
        out.append(first)
    if return_inverse:
        inverse = tf.scatter_nd(tf.expand_dims(order, 1), group, [length])
        out.append(tf.reshape(inverse, x.shape) if axis is None else inverse)
    if return_counts:
        out.append(counts)
    return out[0] if len(out) == 1 else tuple(out)
