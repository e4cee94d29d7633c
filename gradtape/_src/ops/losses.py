"""The losses of `tf.nn`: cross-entropies, Poisson and squared losses, and their average over a batch."""

from __future__ import annotations

import math
import numbers

import numpy as np

from gradtape import _core
from gradtape._src.base import errors, replicas
from gradtape._src.ops.activations import sigmoid, softplus
from gradtape._src.ops.arithmetic import divide_no_nan
from gradtape._src.ops.casting import cast
from gradtape._src.ops.comparison import select
from gradtape._src.ops.creation import convert_to_tensor
from gradtape._src.ops.exponential import exp, log
from gradtape._src.ops.movement import broadcast_to, expand_dims, transpose
from gradtape._src.ops.reduction import reduce_sum, sum_squares
from gradtape._src.ops.samples import at, pairs
from gradtape._src.ops.softmax import softmax_xent, sparse_softmax_xent
from gradtape._src.ops.table import FLOAT, composite, elementwise

__all__ = [
    "compute_average_loss", "l2_loss", "log_poisson_loss", "scale_regularization_loss",
    "sigmoid_cross_entropy_with_logits", "sigmoid_xent", "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits", "weighted_cross_entropy_with_logits",
]  # fmt: skip

sigmoid_xent = elementwise(
    "sigmoid_xent", FLOAT, "logits labels", xla="losses.sigmoid_xent",
    deriv=(lambda x, z, out: sigmoid(x) - z, lambda x, z, out: -x),
    numpy=lambda x, z: np.logaddexp(x, 0) - x * z, samples=pairs(-4, 4, 0, 1),
    edges=[((at(0.0), at(1.0)), (-0.5, 0.0))],
    doc="`max(x, 0) - x·z + log(1 + exp(-|x|))`: the cross-entropy of sigmoid(x) with the label z.",
)  # fmt: skip


def _tensors(first, second):
    x = convert_to_tensor(first)
    return x, convert_to_tensor(second, dtype_hint=x.dtype)


def _want_same_shape(op, a, x, b, y):
    if tuple(x.shape) != tuple(y.shape):
        raise ValueError(
            f"{op}: `{a}` and `{b}` must have the same shape, received ({x.shape} vs {y.shape})."
        )


@composite("nn.sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy_with_logits(labels=None, logits=None, name=None):
    """The cross-entropy of `sigmoid(logits)` with `labels` in [0, 1], element by element.

    Differentiable with respect to both: the gradient with respect to the labels is `-logits`.

    Raises:
      ValueError: if an argument is missing or the shapes differ.
    """
    if labels is None or logits is None:
        raise ValueError(
            "sigmoid_cross_entropy_with_logits: Both `labels` and `logits` must be provided. Received: "
            f"labels={labels} and logits={logits}"
        )
    x = logits if isinstance(logits, _core.Tensor) else _tensors(logits, labels)[0]
    z = labels if isinstance(labels, _core.Tensor) else _tensors(x, labels)[1]
    if x.ndim != z.ndim or x._numel != z._numel:
        _want_same_shape("sigmoid_cross_entropy_with_logits", "logits", x, "labels", z)
    out = sigmoid_xent(x, z)
    if out._numel != x._numel:  # [2, 1] and [1, 2]
        _want_same_shape("sigmoid_cross_entropy_with_logits", "logits", x, "labels", z)
    return out


@composite("nn.weighted_cross_entropy_with_logits")
def weighted_cross_entropy_with_logits(labels, logits, pos_weight, name=None):
    """As `sigmoid_cross_entropy_with_logits`, with the loss of positive labels multiplied by `pos_weight`."""
    x, z = _tensors(logits, labels)
    _want_same_shape("sigmoid_cross_entropy_with_logits", "logits", x, "labels", z)
    weight = 1 + (pos_weight - 1) * z
    return (1 - z) * x + weight * softplus(-x)


@composite("nn.softmax_cross_entropy_with_logits")
def softmax_cross_entropy_with_logits(labels, logits, axis=-1, name=None):
    """The cross-entropy of `softmax(logits)` with the probabilities `labels` along `axis`.

    Differentiable with respect to both. The gradient with respect to the logits assumes that the labels add up to
    1, as in TensorFlow.

    Returns:
      A tensor without the axis `axis`.
    """
    if axis == -1 and type(logits) is type(labels) is _core.Tensor and logits.dtype is labels.dtype:
        try:
            return softmax_xent(logits, labels)[0]
        except errors.InvalidArgumentError:
            pass  # the shapes may still broadcast
    x = convert_to_tensor(logits)
    z = convert_to_tensor(labels, dtype_hint=x.dtype)
    if z.dtype is not x.dtype:
        z = cast(z, x.dtype)
    if axis not in (-1, x.ndim - 1):
        if not -x.ndim <= axis < x.ndim:
            raise errors.InvalidArgumentError(
                f"softmax_cross_entropy_with_logits: `axis` must be in [{-x.ndim}, {x.ndim}); got {axis}."
            )
        perm = [i for i in range(x.ndim) if i != axis % x.ndim] + [axis % x.ndim]
        x, z = transpose(x, perm), transpose(z, perm)
    if x.shape != z.shape:
        x, z = _broadcast_labels(x, z)
    return softmax_xent(x, z)[0]


def _broadcast_labels(x, z):
    try:
        shape = np.broadcast_shapes(tuple(x.shape), tuple(z.shape))
    except ValueError:
        raise errors.InvalidArgumentError(
            "softmax_cross_entropy_with_logits: logits and labels must be broadcastable: "
            f"logits_size={x.shape.as_list()} labels_size={z.shape.as_list()}"
            + (
                ". Hint: labels are a probability for each class; for the numbers of classes take "
                "tf.nn.sparse_softmax_cross_entropy_with_logits, or tf.one_hot(labels, classes)."
                if z.ndim < x.ndim
                else ""
            )
        ) from None
    return broadcast_to(x, shape), broadcast_to(z, shape)


@composite("nn.sparse_softmax_cross_entropy_with_logits")
def sparse_softmax_cross_entropy_with_logits(labels, logits, name=None):
    """The cross-entropy of `softmax(logits)` with class indices `labels`, over the last axis.

    Args:
      labels: integers of the shape of `logits` without its last axis, each in [0, classes).
      logits: a float tensor `[..., classes]`.

    Raises:
      ValueError: if the shapes do not match.
      InvalidArgumentError: if a label is out of range.
    """
    try:
        return sparse_softmax_xent(logits, labels)[0]
    except errors.InvalidArgumentError:
        _check_sparse(logits, labels)
        raise


def _check_sparse(logits, labels):
    """Raises TensorFlow's error if the shapes do not match."""
    op = "sparse_softmax_cross_entropy_with_logits"
    x = convert_to_tensor(logits)
    z = convert_to_tensor(labels)
    if x.ndim == 0:
        raise ValueError(f"{op}: `logits` cannot be a scalar. Received logits={logits}")
    if z.ndim != x.ndim - 1:
        raise ValueError(
            f"{op}: `labels.shape.rank` must equal `logits.shape.rank - 1`. Received: labels.shape={z.shape} of "
            f"rank {z.ndim} and logits.shape={x.shape} of rank {x.ndim}"
        )
    if z.shape != x.shape[:-1]:
        raise ValueError(
            f"{op}: `labels.shape` must equal `logits.shape` except for the last dimension. Received: "
            f"labels.shape={z.shape} and logits.shape={x.shape}"
        )


@composite("nn.log_poisson_loss")
def log_poisson_loss(targets, log_input, compute_full_loss=False, name=None):
    """`exp(c) - z·c`: the negative log-likelihood of counts z under a Poisson rate exp(c).

    Args:
      targets: the counts z.
      log_input: the logarithm c of the predicted rate.
      compute_full_loss: add Stirling's approximation of log(z!), for z > 1.
    """
    c, z = _tensors(log_input, targets)
    _want_same_shape("log_poisson_loss", "log_input", c, "targets", z)
    loss = exp(c) - z * c
    if not compute_full_loss:
        return loss
    safe = select(z > 1, z, 1)
    stirling = safe * log(safe) - safe + 0.5 * log(2 * math.pi * safe)
    return loss + select((z >= 0) & (z <= 1), 0, stirling)


@composite("nn.compute_average_loss")
def compute_average_loss(per_example_loss, sample_weight=None, global_batch_size=None):
    """The sum of the losses of a batch divided by its size; in a replica, by the size of the global batch.

    Args:
      per_example_loss: a tensor of at least one axis.
      sample_weight: factors that the losses are multiplied with.
      global_batch_size: the number to divide by; by default the length of the first axis, times the number of replicas.

    Raises:
      RuntimeError: in the cross-replica context of a strategy.
    """
    count = _replicas("compute_average_loss")
    losses = convert_to_tensor(per_example_loss)
    if losses.dtype.is_integer:
        losses = cast(losses, "float64")
    if losses.ndim == 0:
        raise ValueError(
            "compute_average_loss: Invalid value passed for `per_example_loss`. Expected a tensor with "
            f"at least rank 1. Received per_example_loss={per_example_loss} with rank 0"
        )
    if sample_weight is not None:
        weight = cast(convert_to_tensor(sample_weight, dtype_hint=losses.dtype), losses.dtype)
        while weight.ndim < losses.ndim:
            weight = expand_dims(weight, -1)
        losses = losses * weight
    size = losses.shape[0] * count if global_batch_size is None else global_batch_size
    if isinstance(size, (_core.Tensor, _core.Variable)):
        size = cast(size, losses.dtype)
    elif isinstance(size, bool) or not isinstance(size, numbers.Integral):
        raise TypeError(
            f"compute_average_loss: Invalid value passed for `global_batch_size`; expected an integer; got {size!r}."
        )
    elif size < 0:
        raise ValueError(f"compute_average_loss: `global_batch_size` must be non-negative; got {size}.")
    # The loss of an empty batch is 0, not NaN.
    return divide_no_nan(reduce_sum(losses), size)


@composite("nn.scale_regularization_loss")
def scale_regularization_loss(regularization_loss):
    """The sum of a regularisation loss; in a replica, divided by the number of replicas, over which losses are summed.

    Raises:
      RuntimeError: in the cross-replica context of a strategy.
    """
    count = _replicas("scale_regularization_loss")
    total = reduce_sum(regularization_loss)
    return total if count == 1 else total * (1.0 / count)


def _replicas(function):
    """The number of replicas that share a loss."""
    place = replicas.place.now()
    if place is None:
        return 1
    strategy, context = place
    if context is None:
        raise RuntimeError(
            f"{function}: You are calling `{function}` in cross replica context, while it was expected to be called "
            "in replica context."
        )
    return strategy.num_replicas_in_sync


@composite("nn.l2_loss")
def l2_loss(t, name=None):
    """`sum(t²) / 2` over all elements."""
    t = convert_to_tensor(t)
    if not t.dtype.is_floating:
        raise errors.InvalidArgumentError(f"l2_loss: expected floats; got t: {t.dtype.name}{list(t.shape)}.")
    return 0.5 * sum_squares(t)
