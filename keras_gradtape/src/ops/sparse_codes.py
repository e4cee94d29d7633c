"""Codes of integers as sparse tensors: one-hot, multi-hot, and how often each occurs."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras.src.backend.common import standardize_dtype

import gradtape as tf
from gradtape.backend import array_of, make_sparse
from keras_gradtape.src.ops.core import convert_to_tensor


def one_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None) -> tf.SparseTensor:
    """A 1 at the place of each integer; those that are out of range have none."""
    x = array_of(convert_to_tensor(x, "int64", sparse=False))
    axis = axis % (x.ndim + 1)
    inside = (x >= 0) & (x < num_classes)
    places = np.insert(np.argwhere(inside), axis, x[inside], axis=1)
    sizes = [*x.shape[:axis], num_classes, *x.shape[axis:]]
    return tf.sparse.reorder(make_sparse(places, tf.ones([len(places)], standardize_dtype(dtype)), sizes))


def multi_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None) -> tf.SparseTensor:
    """A 1 for each integer that is among those of a row."""
    codes = one_hot(x, num_classes, axis, "int32")
    largest = tf.sparse.reduce_max(codes, 1 if len(x.shape) > 1 else 0, output_is_sparse=True)
    return tf.cast(largest, standardize_dtype(dtype))


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> tf.SparseTensor:
    """How often each integer occurs, in each row."""
    x = x if isinstance(x, tf.SparseTensor) else convert_to_tensor(x)
    return tf.sparse.bincount(x, weights, -1, minlength)
