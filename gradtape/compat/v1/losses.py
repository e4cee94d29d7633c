"""`tf.compat.v1.losses`: weighted losses, reduced to a number.

As in TensorFlow's eager mode, nothing is collected: `loss_collection` has no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradtape as _tf
from gradtape._src.public import absent as _absent


class Reduction:
    """How element-wise losses are reduced."""

    NONE = "none"
    SUM = "weighted_sum"
    MEAN = "weighted_mean"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    SUM_BY_NONZERO_WEIGHTS = SUM_OVER_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All of them."""
        return (
            cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_OVER_NONZERO_WEIGHTS,
            cls.SUM_BY_NONZERO_WEIGHTS,
        )  # fmt: skip

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises ValueError for another name."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}. Key should be one of {cls.all()}.")


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = "losses",
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """The losses times their weights, reduced."""
    Reduction.validate(reduction)
    losses = _tf.convert_to_tensor(losses)
    kind = losses.dtype
    losses, weights = _tf.cast(losses, _tf.float32), _tf.cast(weights, _tf.float32)
    rank, shape = len(weights.shape), tuple(losses.shape)
    fits = rank == len(shape) and all(w in (1, d) for w, d in zip(weights.shape, shape, strict=True))
    if rank and not fits:
        raise ValueError(
            f"weights can not be broadcast to values. values.shape={shape}. weights.shape={tuple(weights.shape)}."
        )
    weighted = losses * weights
    if reduction == Reduction.NONE:
        return _tf.cast(weighted, kind)
    total = _tf.reduce_sum(weighted)
    if reduction == Reduction.MEAN:
        total = _tf.math.divide_no_nan(total, _tf.reduce_sum(_tf.ones_like(losses) * weights))
    elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
        total = _tf.math.divide_no_nan(total, _tf.cast(_tf.size(losses), _tf.float32))
    elif reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
        present = _tf.cast(_tf.not_equal(_tf.ones_like(losses) * weights, 0.0), _tf.float32)
        total = _tf.math.divide_no_nan(total, _tf.reduce_sum(present))
    return _tf.cast(total, kind)


def _pair(labels: Any, predictions: Any, name: str = "predictions") -> tuple[Any, Any]:
    """Both as float32 tensors of the same shape."""
    for word, value in (("labels", labels), (name, predictions)):
        if value is None:
            raise ValueError(f"Argument `{word}` must not be None.")
    labels, predictions = _tf.cast(labels, _tf.float32), _tf.cast(predictions, _tf.float32)
    if labels.shape != predictions.shape:
        raise ValueError(f"Shapes {predictions.shape} and {labels.shape} are incompatible")
    return labels, predictions


def _of_pairs(
    function: Callable[[Any, Any], Any], name: str, doc: str, second: str = "predictions"
) -> Callable:
    """A loss of two tensors of the same shape."""

    def loss(
        labels: Any,
        predictions: Any = None,
        weights: Any = 1.0,
        scope: str | None = None,
        loss_collection: Any = "losses",
        reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
        **logits: Any,
    ) -> Any:
        labels, predictions = _pair(labels, logits.get("logits", predictions), second)
        return compute_weighted_loss(
            function(labels, predictions), weights, scope, loss_collection, reduction
        )

    loss.__name__ = loss.__qualname__ = name
    loss.__doc__ = doc
    return loss


mean_squared_error = _of_pairs(lambda y, p: (p - y) ** 2, "mean_squared_error", "Squared differences.")
absolute_difference = _of_pairs(lambda y, p: _tf.abs(p - y), "absolute_difference", "Absolute differences.")
hinge_loss = _of_pairs(
    lambda y, p: _tf.nn.relu(1.0 - (2.0 * y - 1.0) * p),
    "hinge_loss",
    "The hinge loss of labels 0 and 1.",
    "logits",
)


def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: Any = "losses",
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """The Huber loss: quadratic up to a difference of `delta`, then linear."""
    labels, predictions = _pair(labels, predictions)
    size = _tf.abs(predictions - labels)
    inside = _tf.minimum(size, delta)
    return compute_weighted_loss(
        0.5 * inside * inside + delta * (size - inside), weights, scope, loss_collection, reduction
    )


def log_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: Any = "losses",
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """The cross-entropy of probabilities."""
    y, p = _pair(labels, predictions)
    losses = -y * _tf.math.log(p + epsilon) - (1.0 - y) * _tf.math.log(1.0 - p + epsilon)
    return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = "losses",
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    dim: int | None = None,
) -> Any:
    """One minus the dot product along an axis; both arguments must be unit vectors."""
    axis = dim if axis is None else axis
    if axis is None:
        raise ValueError("You must specify argument `axis`.")
    labels, predictions = _pair(labels, predictions)
    losses = 1.0 - _tf.reduce_sum(predictions * labels, axis=axis, keepdims=True)
    return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: Any = "losses",
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """The cross-entropy of classes that exclude each other, with one-hot labels."""
    labels, logits = _pair(onehot_labels, logits, "logits")
    if label_smoothing:
        labels = labels * (1.0 - label_smoothing) + label_smoothing / labels.shape[1]
    losses = _tf.nn.softmax_cross_entropy_with_logits(_tf.stop_gradient(labels), logits)
    return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = "losses",
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """The cross-entropy of classes that exclude each other, with integer labels."""
    labels, logits = _tf.convert_to_tensor(labels), _tf.convert_to_tensor(logits)
    if len(labels.shape) == len(logits.shape):
        labels = _tf.squeeze(labels, [-1])
    losses = _tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: Any = "losses",
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """The cross-entropy of classes that do not exclude each other."""
    labels, logits = _pair(multi_class_labels, logits, "logits")
    if label_smoothing:
        labels = labels * (1.0 - label_smoothing) + 0.5 * label_smoothing
    losses = _tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
    return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def get_losses(scope: str | None = None, loss_collection: Any = "losses") -> list:
    """An empty list: only graphs collect losses."""
    return []


get_regularization_losses = get_losses


def __dir__() -> list[str]:
    return _absent.names_beside(globals())
