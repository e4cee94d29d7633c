"""Connectionist temporal classification on XLA: the forward algorithm, in logarithms, over all examples at once.

Native code uses the backward algorithm for the derivative of the loss with respect to the logits, and dual numbers
for the derivative of that. Here JAX derives both from the forward algorithm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

_NEVER = -1e30  # stands for the logarithm of 0, but is finite


def ctc_loss(
    logits: Any, labels: Any, label_length: Any, logit_length: Any, blank: int, *, check: Callable
) -> tuple[Any, Any]:
    """The loss of each example (infinite without a path), and its derivative with respect to the logits."""
    _check(logits, labels, label_length, logit_length, check)
    examples = labels, label_length, logit_length
    total, back = _total_and_slope(logits, *examples, blank)
    return jnp.where(_possible(total), -total, jnp.inf), back


def ctc_loss_grad(
    logits: Any,
    labels: Any,
    label_length: Any,
    logit_length: Any,
    direction: Any,
    blank: int,
    *,
    check: Callable,
) -> Any:
    """The derivative of the second result of `ctc_loss` in a direction."""
    _check(logits, labels, label_length, logit_length, check)

    def slope(x: Any) -> Any:
        return _total_and_slope(x, labels, label_length, logit_length, blank)[1]

    return jax.jvp(slope, (logits,), (direction,))[1]


def _check(logits: Any, labels: Any, label_length: Any, logit_length: Any, check: Callable) -> None:
    check((label_length >= 0) & (label_length <= labels.shape[1]))
    check((logit_length >= 0) & (logit_length <= logits.shape[0]))
    past = jnp.arange(labels.shape[1]) >= label_length[:, None]
    check(past | ((labels >= 0) & (labels < logits.shape[2])))


def _possible(total: Any) -> Any:
    """Whether there is a path; also where the logits are NaN."""
    return ~(total <= _NEVER / 2)


def _total_and_slope(
    x: Any, labels: Any, label_length: Any, logit_length: Any, blank: int
) -> tuple[Any, Any]:
    """The logarithm of the probability of all paths, and minus its derivative, 0 where there is none."""

    def negative(logits: Any) -> tuple[Any, Any]:
        total = _forward(logits, labels, label_length, logit_length, blank)
        return -jnp.sum(total), total

    if x.size == 0:
        return negative(x)[1], jnp.zeros_like(x)
    back, total = jax.grad(negative, has_aux=True)(x)
    counts = _possible(total) & (jnp.arange(x.shape[0])[:, None] < logit_length)
    return total, jnp.where(counts[..., None], back, 0)


def _forward(x: Any, labels: Any, label_length: Any, logit_length: Any, blank: int) -> Any:
    """The logarithm of the probability of all paths of each example, in float64."""
    steps, batch, _ = x.shape
    states = jnp.arange(2 * labels.shape[1] + 1)  # the labels with blanks around them
    used = states <= 2 * label_length[:, None]
    spelled = jnp.pad(labels, ((0, 0), (0, 1)))[:, states // 2]
    label = jnp.where(used & (states % 2 == 1), spelled, blank).astype(jnp.int32)
    # A path may skip the blank between two labels unless they are equal.
    jumps = (states % 2 == 1) & (label != _shifted(label, 2, -1)) & (states >= 3)
    emitted = jnp.take_along_axis(jax.nn.log_softmax(x), jnp.broadcast_to(label, (steps, *label.shape)), 2)
    emitted = jnp.maximum(jnp.where(used, emitted, _NEVER), _NEVER)

    def advance(carry: tuple[Any, Any], frame: tuple[Any, Any]) -> tuple[tuple[Any, Any], None]:
        (a, total), (t, emit) = carry, frame
        jumped = jnp.where(jumps, _shifted(a, 2, _NEVER), _NEVER)
        reached = _log_sum(jnp.stack([a, _shifted(a, 1, _NEVER), jumped]), 0) + emit
        reached = jnp.maximum(reached, _NEVER)
        # The largest becomes 0. It is added to the total, so the derivative can ignore it.
        most = lax.stop_gradient(jnp.max(reached, 1))
        inside = t < logit_length
        a = jnp.where(inside[:, None], jnp.maximum(reached - most[:, None], _NEVER), a)
        return (a, jnp.where(inside, total + most, total)), None

    start = jnp.where(states == 0, 0, jnp.full((batch, len(states)), _NEVER, x.dtype))
    (a, total), _ = lax.scan(advance, (start, jnp.zeros(batch, jnp.float64)), (jnp.arange(steps), emitted))
    last = 2 * label_length.astype(jnp.int32)[:, None]
    ends = (states == last) | (states == last - 1)
    return total + _log_sum(jnp.where(ends, a, _NEVER), 1)


def _log_sum(x: Any, axis: int) -> Any:
    """The logarithm of a sum of exponentials, none of which is 0."""
    most = lax.stop_gradient(jnp.max(x, axis, keepdims=True))
    return jnp.squeeze(most, axis) + jnp.log(jnp.sum(jnp.exp(x - most), axis))


def _shifted(x: Any, by: int, value: float) -> Any:
    """The value `by` states before each one."""
    return jnp.pad(x, ((0, 0), (by, 0)), constant_values=value)[:, : x.shape[1]]
