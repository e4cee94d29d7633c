"""Losses, normalisation, dropout and other functions of neural networks (`tf.nn`)."""

from __future__ import annotations

import math
import numbers

import numpy as np

from gradtape import _core, errors
from gradtape.ops.activations import relu, sigmoid, softplus
from gradtape.ops.arithmetic import divide_no_nan, maximum, rsqrt
from gradtape.ops.comparison import greater_equal, select
from gradtape.ops.exponential import exp, log
from gradtape.ops.samples import at, pairs
from gradtape.ops.softmax import softmax_xent, sparse_softmax_xent
from gradtape.ops.table import FLOAT, composite, elementwise

__all__ = [
    "batch_normalization", "bias_add", "compute_average_loss", "crelu", "dropout", "l2_loss", "l2_normalize",
    "log_poisson_loss", "log_sigmoid", "normalize_moments", "polyval", "scale_regularization_loss",
    "sigmoid_cross_entropy_with_logits", "sigmoid_xent", "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits", "sufficient_statistics", "weighted_cross_entropy_with_logits",
]  # fmt: skip

# ---- cross-entropies ----------------------------------------------------------------------------

sigmoid_xent = elementwise(
    "sigmoid_xent", FLOAT, "logits labels",
    deriv=(lambda x, z, out: sigmoid(x) - z, lambda x, z, out: -x),
    numpy=lambda x, z: np.logaddexp(x, 0) - x * z, samples=pairs(-4, 4, 0, 1),
    edges=[((at(0.0), at(1.0)), (-0.5, 0.0))],
    doc="`max(x, 0) - x·z + log(1 + exp(-|x|))`: the cross-entropy of sigmoid(x) with the label z.",
)  # fmt: skip


def _tensors(first, second):
    from gradtape import ops

    x = ops.convert_to_tensor(first)
    return x, ops.convert_to_tensor(second, dtype_hint=x.dtype)


def _want_same_shape(a, x, b, y):
    if tuple(x.shape) != tuple(y.shape):
        raise ValueError(f"`{a}` and `{b}` must have the same shape, received ({x.shape} vs {y.shape}).")


@composite("nn.sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy_with_logits(labels=None, logits=None, name=None):
    """The cross-entropy of `sigmoid(logits)` with `labels` in [0, 1], element by element.

    Differentiable by both: the gradient by the labels is `-logits`.

    Raises:
      ValueError: if one is missing or the shapes differ.
    """
    if labels is None or logits is None:
        raise ValueError(
            "Both `labels` and `logits` must be provided for sigmoid_cross_entropy_with_logits. "
            f"Received: labels={labels} and logits={logits}"
        )
    x = logits if isinstance(logits, _core.Tensor) else _tensors(logits, labels)[0]
    z = labels if isinstance(labels, _core.Tensor) else _tensors(x, labels)[1]
    if x.ndim != z.ndim or x._numel != z._numel:
        _want_same_shape("logits", x, "labels", z)
    out = sigmoid_xent(x, z)
    if out._numel != x._numel:  # [2, 1] and [1, 2]
        _want_same_shape("logits", x, "labels", z)
    return out


@composite("nn.weighted_cross_entropy_with_logits")
def weighted_cross_entropy_with_logits(labels, logits, pos_weight, name=None):
    """As `sigmoid_cross_entropy_with_logits`, with the positive examples weighted by `pos_weight`."""
    x, z = _tensors(logits, labels)
    _want_same_shape("logits", x, "labels", z)
    weight = 1 + (pos_weight - 1) * z
    return (1 - z) * x + weight * softplus(-x)


@composite("nn.softmax_cross_entropy_with_logits")
def softmax_cross_entropy_with_logits(labels, logits, axis=-1, name=None):
    """The cross-entropy of `softmax(logits)` with the probabilities `labels` along `axis`.

    Differentiable by both. The gradient by the logits takes the labels to add up to 1, as in TensorFlow.

    Returns:
      A tensor without that axis.
    """
    from gradtape import ops

    if axis == -1 and type(logits) is type(labels) is _core.Tensor and logits.dtype is labels.dtype:
        try:
            return softmax_xent(logits, labels)[0]
        except errors.InvalidArgumentError:
            pass  # what does not fit as it is may still broadcast
    x = ops.convert_to_tensor(logits)
    z = ops.convert_to_tensor(labels, dtype_hint=x.dtype)
    if z.dtype is not x.dtype:
        z = ops.cast(z, x.dtype)
    if axis not in (-1, x.ndim - 1):
        if not -x.ndim <= axis < x.ndim:
            raise errors.InvalidArgumentError(
                f"softmax_cross_entropy_with_logits: `axis` must be in [{-x.ndim}, {x.ndim}); got {axis}."
            )
        perm = [i for i in range(x.ndim) if i != axis % x.ndim] + [axis % x.ndim]
        x, z = ops.transpose(x, perm), ops.transpose(z, perm)
    if x.shape != z.shape:
        x, z = _broadcast_labels(x, z)
    return softmax_xent(x, z)[0]


def _broadcast_labels(x, z):
    from gradtape import ops

    try:
        shape = np.broadcast_shapes(tuple(x.shape), tuple(z.shape))
    except ValueError:
        raise errors.InvalidArgumentError(
            "softmax_cross_entropy_with_logits: logits and labels must be broadcastable: "
            f"logits_size={x.shape.as_list()} labels_size={z.shape.as_list()}"
        ) from None
    return ops.broadcast_to(x, shape), ops.broadcast_to(z, shape)


@composite("nn.sparse_softmax_cross_entropy_with_logits")
def sparse_softmax_cross_entropy_with_logits(labels, logits, name=None):
    """The cross-entropy of `softmax(logits)` with class numbers `labels`, over the last axis.

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
    """Says in TensorFlow's words what is wrong with the shapes, if anything is."""
    from gradtape import ops

    x = ops.convert_to_tensor(logits)
    z = ops.convert_to_tensor(labels)
    if x.ndim == 0:
        raise ValueError(f"`logits` cannot be a scalar. Received logits={logits}")
    if z.ndim != x.ndim - 1:
        raise ValueError(
            f"`labels.shape.rank` must equal `logits.shape.rank - 1`. Received: labels.shape={z.shape} of "
            f"rank {z.ndim} and logits.shape={x.shape} of rank {x.ndim}"
        )
    if z.shape != x.shape[:-1]:
        raise ValueError(
            "`labels.shape` must equal `logits.shape` except for the last dimension. Received: "
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
    _want_same_shape("log_input", c, "targets", z)
    loss = exp(c) - z * c
    if not compute_full_loss:
        return loss
    safe = select(z > 1, z, 1)
    stirling = safe * log(safe) - safe + 0.5 * log(2 * math.pi * safe)
    return loss + select((z >= 0) & (z <= 1), 0, stirling)


@composite("nn.compute_average_loss")
def compute_average_loss(per_example_loss, sample_weight=None, global_batch_size=None):
    """The sum of the losses of a batch divided by its size.

    Args:
      per_example_loss: a tensor of at least one axis.
      sample_weight: factors of the losses.
      global_batch_size: the number to divide by; the length of the first axis by default.
    """
    from gradtape import ops

    losses = ops.convert_to_tensor(per_example_loss)
    if losses.ndim == 0:
        raise ValueError(
            "Invalid value passed for `per_example_loss`. Expected a tensor with at least rank 1. Received "
            f"per_example_loss={per_example_loss} with rank 0"
        )
    if sample_weight is not None:
        weight = ops.cast(ops.convert_to_tensor(sample_weight, dtype_hint=losses.dtype), losses.dtype)
        while weight.ndim < losses.ndim:
            weight = ops.expand_dims(weight, -1)
        losses = losses * weight
    size = losses.shape[0] if global_batch_size is None else global_batch_size
    if isinstance(size, (_core.Tensor, _core.Variable)):
        size = ops.cast(size, losses.dtype)
    elif isinstance(size, bool) or not isinstance(size, numbers.Integral):
        raise TypeError(f"Invalid value passed for `global_batch_size`; expected an integer; got {size!r}.")
    elif size < 0:
        raise ValueError(f"compute_average_loss: `global_batch_size` must be non-negative; got {size}.")
    # An empty batch has no loss, rather than a NaN.
    return divide_no_nan(ops.reduce_sum(losses), size)


@composite("nn.scale_regularization_loss")
def scale_regularization_loss(regularization_loss):
    """The sum of a regularisation loss over this process, the only replica there is."""
    from gradtape import ops

    return ops.reduce_sum(regularization_loss)


# ---- norms and normalisation --------------------------------------------------------------------


@composite("nn.l2_loss")
def l2_loss(t, name=None):
    """Half the sum of the squares of all elements."""
    from gradtape import ops

    return 0.5 * ops.sum_squares(t)


@composite("nn.l2_normalize math.l2_normalize linalg.l2_normalize")
def l2_normalize(x, axis=None, epsilon=1e-12, name=None, dim=None):
    """`x / sqrt(max(Σ x², epsilon))` over `axis`: vectors of length 1, and 0 where `x` is 0."""
    from gradtape import ops

    x = ops.convert_to_tensor(x)
    axis = dim if axis is None else axis
    if x.dtype.is_complex:
        total = ops.reduce_sum(ops.square(ops.real(x)) + ops.square(ops.imag(x)), axis, True)
        inverse = rsqrt(maximum(total, epsilon))
        return ops.complex_(ops.real(x) * inverse, ops.imag(x) * inverse)
    return x * rsqrt(maximum(ops.sum_squares(x, axis, True), epsilon))


@composite("nn.batch_normalization")
def batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name=None):
    """`scale · (x - mean) / sqrt(variance + variance_epsilon) + offset`; offset and scale may be None."""
    from gradtape import ops

    x = ops.convert_to_tensor(x)
    inverse = rsqrt(ops.convert_to_tensor(variance, dtype_hint=x.dtype) + variance_epsilon)
    if scale is not None:
        inverse = inverse * scale
    shift = -mean * inverse if offset is None else offset - mean * inverse
    if inverse.dtype is not x.dtype:
        inverse, shift = ops.cast(inverse, x.dtype), ops.cast(shift, x.dtype)
    return x * inverse + shift


@composite("nn.sufficient_statistics")
def sufficient_statistics(x, axes, shift=None, keepdims=False, name=None):
    """Number of elements, sum and sum of squares over `axes`, of `x - shift`; and `shift` itself."""
    from gradtape import ops

    x = ops.convert_to_tensor(x)
    count = math.prod(x.shape[a] for a in np.atleast_1d(np.asarray(axes)).tolist())
    if shift is not None:
        shift = ops.convert_to_tensor(shift, dtype_hint=x.dtype)
        x = x - shift
    counts = ops.constant(count, x.dtype)
    return counts, ops.reduce_sum(x, axes, keepdims), ops.sum_squares(x, axes, keepdims), shift


@composite("nn.normalize_moments")
def normalize_moments(counts, mean_ss, variance_ss, shift, name=None):
    """Mean and variance from the result of `sufficient_statistics`."""
    from gradtape import ops

    inverse = ops.reciprocal(counts)
    shifted = mean_ss * inverse
    mean = shifted if shift is None else shifted + shift
    return mean, variance_ss * inverse - ops.square(shifted)


# ---- layers -------------------------------------------------------------------------------------


@composite("nn.dropout")
def dropout(x, rate, noise_shape=None, seed=None, name=None):
    """`x` with a share `rate` of its elements set to 0 and the others scaled up by `1 / (1 - rate)`.

    Args:
      rate: the probability of an element to be dropped, in [0, 1).
      noise_shape: the shape of the random choices, which broadcast to `x`; None: that of `x`.
      seed: the op seed, see `tf.random.set_seed`.

    Raises:
      ValueError: for another rate, or if `x` is not floating.
    """
    from gradtape import ops
    from gradtape.ops.random import uniform

    def sample(shape, dtype):
        return uniform(shape, dtype=dtype, seed=seed)

    return _dropout(ops.convert_to_tensor(x), rate, noise_shape, sample, seed)


@composite("nn.experimental.stateless_dropout")
def stateless_dropout(x, rate, seed, rng_alg=None, noise_shape=None, name=None):
    """As `dropout`, with the numbers of `tf.random.stateless_uniform(seed=seed)`."""
    from gradtape import ops
    from gradtape.ops.random import stateless_uniform

    return _dropout(
        ops.convert_to_tensor(x),
        rate,
        noise_shape,
        lambda shape, dtype: stateless_uniform(shape, seed, dtype=dtype),
    )


def _dropout(x, rate, noise_shape, sample, seed=None):
    from gradtape import random as state

    if isinstance(rate, numbers.Real) and not isinstance(rate, _core.Tensor):
        if not 0 <= rate < 1:
            raise ValueError(
                f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}"
            )
    elif not isinstance(rate, (_core.Tensor, _core.Variable)):
        raise ValueError(f"`rate` must be a scalar or scalar tensor. Received: rate={rate}")
    if not x.dtype.is_floating:
        raise ValueError(
            f"`x.dtype` must be a floating point tensor as `x` will be scaled. Received: x_dtype={x.dtype}"
        )
    if isinstance(rate, numbers.Real) and rate == 0:
        state.next_seeds(seed)  # as in TensorFlow: the rate does not change what is drawn later
        return x
    shape = x.shape if noise_shape is None else _noise_shape(x, noise_shape)
    keep = greater_equal(sample(shape, x.dtype), rate)
    scaled = x * (1 / (1 - rate)) if isinstance(rate, numbers.Real) else x / (1 - rate)
    return select(keep, scaled, 0)


def _noise_shape(x, noise_shape):
    given = list(noise_shape)
    if len(given) == x.ndim:
        given = [size if d is None else int(d) for d, size in zip(given, x.shape, strict=True)]
    return given


@composite("nn.bias_add")
def bias_add(value, bias, data_format=None, name=None):
    """`value + bias` with a bias for each channel: the last axis, or axis 1 for data_format "NC...".

    Raises:
      ValueError: for another data_format.
      InvalidArgumentError: if there are not as many biases as channels.
    """
    from gradtape import ops

    x = ops.convert_to_tensor(value)
    b = ops.convert_to_tensor(bias, dtype_hint=x.dtype)
    first = data_format is not None and data_format.startswith("NC")
    if (
        data_format is not None
        and not first
        and not (data_format.startswith("N") and data_format.endswith("C"))
    ):
        raise ValueError(
            f"`data_format` must be of the form `N...C` or `NC...`. Received: data_format={data_format}"
        )
    if x.ndim < 2:
        raise errors.InvalidArgumentError(f"bias_add: Input tensor must be at least 2D: {x.shape.as_list()}")
    axis = 1 if first else x.ndim - 1
    if b.ndim != 1 or b.shape[0] != x.shape[axis]:
        which = "channel" if first else "last"
        raise errors.InvalidArgumentError(
            f"bias_add: Must provide as many biases as the {which} dimension of the input tensor: "
            f"{b.shape.as_list()} vs. {x.shape.as_list()}"
        )
    if axis != x.ndim - 1:
        b = ops.reshape(b, [-1] + [1] * (x.ndim - 2))
    return x + b


@composite("nn.crelu")
def crelu(features, axis=-1, name=None):
    """`relu(x)` and `relu(-x)`, joined along `axis`."""
    from gradtape import ops

    x = ops.convert_to_tensor(features)
    return relu(ops.concat([x, -x], axis))


@composite("math.log_sigmoid")
def log_sigmoid(x, name=None):
    """`log(sigmoid(x))`, without overflow."""
    from gradtape import ops

    return -softplus(-ops.convert_to_tensor(x))


@composite("math.polyval")
def polyval(coeffs, x, name=None):
    """The polynomial with the coefficients `coeffs`, highest power first, at `x` (Horner's scheme).

    Raises:
      ValueError: if `coeffs` is not a list.
    """
    from gradtape import ops

    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type. Received type {type(coeffs)}.")
    x = ops.convert_to_tensor(x)
    if not coeffs:
        return ops.zeros_like(x)
    total = ops.convert_to_tensor(coeffs[0], dtype_hint=x.dtype)
    for c in coeffs[1:]:
        total = c + total * x
    return total
