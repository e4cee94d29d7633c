"""Cross-entropies, CTC, one-hot coding and PSNR of `keras.ops.nn`."""

from __future__ import annotations

import math
import warnings
from typing import Any

from keras.src.backend import config

import gradtape as tf
from gradtape.backend import op, users_level
from keras_gradtape.src.ops import sparse_codes
from keras_gradtape.src.ops.core import convert_to_tensor, dtype_of
from keras_gradtape.src.ops.types import Tensor, floating, floats, result_type

_beam_search = op("ctc_beam_search")
_clip = op("clip")
_sigmoid_xent = op("sigmoid_xent")
_softmax_xent = op("softmax_xent")
_sparse_softmax_xent = op("sparse_softmax_xent")

__all__ = [
    "binary_crossentropy", "categorical_crossentropy", "ctc_decode", "ctc_loss", "multi_hot", "one_hot", "psnr",
    "sparse_categorical_crossentropy",
]  # fmt: skip

# ---- classes ----------------------------------------------------------------------------------------


def one_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> Any:
    if sparse:
        return sparse_codes.one_hot(x, num_classes, axis, dtype)
    x = convert_to_tensor(x)
    if x.dtype.name not in ("int32", "int64"):
        x = tf.cast(x, "int32")
    return tf.one_hot(x, num_classes, axis=axis, dtype=dtype_of(dtype or "float32"))


def multi_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> Any:
    x = convert_to_tensor(x)
    if sparse:
        return sparse_codes.multi_hot(x, num_classes, axis, dtype)
    codes = one_hot(x, num_classes, axis, dtype)
    over = 1 if x.ndim > 1 else 0
    return tf.reduce_any(codes, over) if codes.dtype.is_bool else tf.reduce_max(codes, over)


# ---- cross-entropies ----------------------------------------------------------------------------------


def _logits_of(output: Any, from_logits: bool, made_by: str, name: str) -> tuple[Any, bool]:
    """The logits of probabilities that came out of a softmax or sigmoid: from them the loss is exact."""
    logits = getattr(output, "_keras_logits", None)
    if logits is None:
        return output, from_logits
    if from_logits:
        warnings.warn(
            f"`{name}` received `from_logits=True`, but the `output` argument was produced by a {made_by} "
            "activation and thus does not represent logits. Was this intended?",
            stacklevel=users_level(),
        )
    return logits, True


def _want_same_shape(target: Any, output: Any) -> None:
    if target.shape == output.shape:
        return
    what = "shape" if target.ndim == output.ndim else "rank (ndim)"
    raise ValueError(
        f"Arguments `target` and `output` must have the same {what}. Received: "
        f"target.shape={tuple(target.shape)}, output.shape={tuple(output.shape)}"
    )


def _operands(target: Any, output: Any) -> tuple[Any, Any]:
    """Both as tensors, the target in the type of the output."""
    if not (type(output) is Tensor and output.dtype.is_floating):
        output = floating(output)
    return convert_to_tensor(target, output.dtype.name), output


def _probabilities(x: Any) -> Any:
    """Away from 0 and 1, so that there is a logarithm."""
    epsilon = config.epsilon()
    return _clip(x, epsilon, 1 - epsilon)


def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    target, output = _operands(target, output)
    if not target.ndim:
        raise ValueError(
            "Arguments `target` and `output` must be at least rank 1. Received: "
            f"target.shape={tuple(target.shape)}, output.shape={tuple(output.shape)}"
        )
    _want_same_shape(target, output)
    output, from_logits = _logits_of(output, from_logits, "Softmax", "categorical_crossentropy")
    if from_logits:
        if axis == -1:
            return _softmax_xent(output, target)[0]
        return tf.nn.softmax_cross_entropy_with_logits(target, output, axis)
    output = output / tf.reduce_sum(output, axis, True)
    return -tf.reduce_sum(target * tf.math.log(_probabilities(output)), axis)


def sparse_categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> Any:
    if not (type(output) is Tensor and output.dtype.is_floating):
        output = floating(output)
    target = convert_to_tensor(target, "int32")
    if axis != -1 and axis != output.ndim - 1:
        raise ValueError(f"Only axis=-1 is currently supported. Received: axis={axis}")
    output, from_logits = _logits_of(output, from_logits, "Softmax", "sparse_categorical_crossentropy")
    if output.ndim < 1:
        raise ValueError(
            f"Argument `output` must be at least rank 1. Received: output.shape={tuple(output.shape)}"
        )
    if target.ndim == output.ndim and target.shape[-1] == 1:
        target = tf.squeeze(target, -1)
    if target.ndim != output.ndim - 1:
        raise ValueError(
            "Argument `output` must have rank (ndim) `target.ndim - 1`. Received: "
            f"target.shape={tuple(target.shape)}, output.shape={tuple(output.shape)}"
        )
    if target.shape != output.shape[:-1]:
        raise ValueError(
            "Arguments `target` and `output` must have the same shape up until the last dimension: "
            f"target.shape={tuple(target.shape)}, output.shape={tuple(output.shape)}"
        )
    if not from_logits:
        output = tf.math.log(_probabilities(output))
    return _sparse_softmax_xent(output, target)[0]


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Any:
    target, output = _operands(target, output)
    _want_same_shape(target, output)
    output, from_logits = _logits_of(output, from_logits, "Sigmoid", "binary_crossentropy")
    if from_logits:
        return _sigmoid_xent(output, target)
    output = _probabilities(output)
    return -(target * tf.math.log(output) + (1 - target) * tf.math.log(1 - output))


# ---- sequences ----------------------------------------------------------------------------------------


def _in_single(x: Any) -> Any:
    """At least float32."""
    x = convert_to_tensor(x)
    return convert_to_tensor(x, result_type(x.dtype.name, "float32"))


def ctc_loss(target: Any, output: Any, target_length: Any, output_length: Any, mask_index: int = 0) -> Any:
    return tf.nn.ctc_loss(
        convert_to_tensor(target, "int32"),
        _in_single(output),
        convert_to_tensor(target_length, "int32"),
        convert_to_tensor(output_length, "int32"),
        logits_time_major=False,
        blank_index=mask_index,
    )


def ctc_decode(
    inputs: Any,
    sequence_lengths: Any,
    strategy: str = "greedy",
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
    mask_index: int | None = 0,
) -> tuple[Any, Any]:
    """Labels `[paths, batch, time]`, with -1 past their end, and a score for each path."""
    x = _in_single(inputs)
    lengths = convert_to_tensor(sequence_lengths, "int32")
    classes = x.shape[-1]
    blank = classes - 1 if mask_index is None else mask_index % classes
    if strategy == "greedy":
        return _best_path(x, lengths, merge_repeated, blank)
    if strategy != "beam_search":
        raise ValueError(f"Invalid strategy {strategy}. Supported values are 'greedy' and 'beam_search'.")
    # The search uses the last class as the blank.
    order = [*(c for c in range(classes) if c != blank), blank]
    if order[blank] != blank:
        x = tf.gather(x, order, axis=-1)
    labels, scores = _beam_search(tf.transpose(x, [1, 0, 2]), lengths, beam_width, top_paths)
    labels = tf.cast(labels, "int32")
    return tf.where(labels >= blank, labels + 1, labels), scores


def _best_path(x: Any, lengths: Any, merge_repeated: bool, blank: int) -> tuple[Any, Any]:
    """The most likely class of each step, without blanks and repetitions."""
    batch, steps, _ = x.shape
    inside = tf.range(steps) < tf.reshape(lengths, [batch, 1])
    best = tf.argmax(x, -1, output_type="int32")
    scores = -tf.reduce_sum(tf.where(inside, tf.reduce_max(x, -1), tf.zeros([], x.dtype)), 1, True)
    mask = tf.logical_and(inside, tf.not_equal(best, blank))
    if merge_repeated and steps > 1:
        fresh = tf.not_equal(best[:, 1:], best[:, :-1])
        mask = tf.logical_and(mask, tf.concat([tf.fill([batch, 1], True), fresh], 1))
    labels = tf.where(mask, best, -1)
    # Kept elements move to the front, in order.
    order = tf.argsort(tf.cast(tf.logical_not(mask), "int32"), axis=1, stable=True)
    return tf.expand_dims(tf.gather(labels, order, axis=1, batch_dims=1), 0), scores


# ---- images -------------------------------------------------------------------------------------------


def psnr(x1: Any, x2: Any, max_val: Any) -> Any:
    """The ratio of the largest value to the root of the mean squared error, in decibels."""
    x1, x2 = floats(x1, x2)
    if tuple(x1.shape) != tuple(x2.shape):
        raise ValueError(
            f"Input shapes {tuple(x1.shape)} and {tuple(x2.shape)} must match for PSNR calculation. "
        )
    error = tf.reduce_mean(tf.square(x1 - x2))
    largest = convert_to_tensor(max_val, x1.dtype.name)
    return (20 * tf.math.log(largest) - 10 * tf.math.log(error)) * (1 / math.log(10))
