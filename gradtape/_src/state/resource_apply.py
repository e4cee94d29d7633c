"""Optimizer updates with the arguments of TensorFlow's kernels: `tf.raw_ops.ResourceApplyAdam` and its like.

A rule computes new values of the variables from old ones; with `indices` it is for rows of them, which must differ (as
Keras 2 gives them). gradtape's own optimizers (`tf.optimizers`) do not use these.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import gradtape as tf


def _op(names: str, rule: Callable[..., tuple]) -> Callable[..., None]:
    """The op of a rule, whose first arguments are the values of the variables `names`."""

    def step(indices: Any = None, **arguments: Any) -> None:
        variables = [arguments.pop(name) for name in names.split()]
        if indices is None:
            for variable, value in zip(variables, rule(*variables, **arguments), strict=True):
                variable.assign(value)
            return
        rows = [tf.gather(variable, indices) for variable in variables]
        for variable, value in zip(variables, rule(*rows, **arguments), strict=True):
            variable.scatter_update(tf.IndexedSlices(value, indices))

    own = inspect.signature(rule)
    rows_of = inspect.Parameter("indices", inspect.Parameter.KEYWORD_ONLY, default=None)
    step.__signature__ = own.replace(parameters=[*own.parameters.values(), rows_of])  # type: ignore[attr-defined]
    return step


def _gradient_descent(var: Any, alpha: Any, delta: Any) -> tuple:
    return (var - alpha * delta,)


def _momentum(
    var: Any, accum: Any, lr: Any, grad: Any, momentum: Any, use_nesterov: bool = False
) -> tuple[Any, Any]:
    accum = accum * momentum + grad
    return var - lr * (grad + momentum * accum if use_nesterov else accum), accum


def _keras_momentum(
    var: Any, accum: Any, lr: Any, grad: Any, momentum: Any, use_nesterov: bool = False
) -> tuple[Any, Any]:
    accum = accum * momentum - lr * grad
    return var + (momentum * accum - lr * grad if use_nesterov else accum), accum


def _adam(
    var: Any, m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any,
    grad: Any, use_nesterov: bool = False,
) -> tuple[Any, Any, Any]:  # fmt: skip
    lr = lr * tf.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (grad * grad - v) * (1 - beta2)
    ahead = m * beta1 + grad * (1 - beta1) if use_nesterov else m
    return var - lr * ahead / (tf.sqrt(v) + epsilon), m, v


def _amsgrad(
    var: Any, m: Any, v: Any, vhat: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any,
    epsilon: Any, grad: Any,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    lr = lr * tf.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (grad * grad - v) * (1 - beta2)
    vhat = tf.maximum(vhat, v)
    return var - lr * m / (tf.sqrt(vhat) + epsilon), m, v, vhat


def _adamax(
    var: Any, m: Any, v: Any, beta1_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, grad: Any
) -> tuple[Any, Any, Any]:
    m = m + (grad - m) * (1 - beta1)
    v = tf.maximum(beta2 * v, tf.abs(grad))
    return var - lr / (1 - beta1_power) * m / (v + epsilon), m, v


def _rmsprop(
    var: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> tuple[Any, Any, Any]:
    ms = ms + (grad * grad - ms) * (1 - rho)
    mom = momentum * mom + lr * grad * tf.math.rsqrt(ms + epsilon)
    return var - mom, ms, mom


def _centered_rmsprop(
    var: Any, mg: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> tuple[Any, Any, Any, Any]:
    ms = ms + (grad * grad - ms) * (1 - rho)
    mg = mg + (grad - mg) * (1 - rho)
    mom = momentum * mom + lr * grad * tf.math.rsqrt(ms - mg * mg + epsilon)
    return var - mom, mg, ms, mom


def _adadelta(
    var: Any, accum: Any, accum_update: Any, lr: Any, rho: Any, epsilon: Any, grad: Any
) -> tuple[Any, Any, Any]:
    accum = rho * accum + (1 - rho) * grad * grad
    update = tf.sqrt(accum_update + epsilon) * tf.math.rsqrt(accum + epsilon) * grad
    return var - lr * update, accum, rho * accum_update + (1 - rho) * update * update


def _adagrad(
    var: Any, accum: Any, lr: Any, grad: Any, epsilon: Any = 0.0, update_slots: bool = True
) -> tuple[Any, Any]:
    accum = accum + grad * grad if update_slots else tf.convert_to_tensor(accum)
    return var - lr * grad / (tf.sqrt(accum) + epsilon), accum


def _ftrl(
    var: Any,
    accum: Any,
    linear: Any,
    grad: Any,
    lr: Any,
    l1: Any,
    l2: Any,
    lr_power: Any,
    l2_shrinkage: Any = 0.0,
) -> tuple[Any, Any, Any]:
    squares = accum + grad * grad
    power = tf.pow(squares, -lr_power)
    linear = linear + grad + 2 * l2_shrinkage * var - (power - tf.pow(accum, -lr_power)) / lr * var
    shrunk = tf.clip_by_value(linear, -l1, l1) - linear
    return shrunk / (power / lr + 2 * l2), squares, linear


gradient_descent = _op("var", _gradient_descent)
momentum = _op("var accum", _momentum)
keras_momentum = _op("var accum", _keras_momentum)
adam = _op("var m v", _adam)
amsgrad = _op("var m v vhat", _amsgrad)
adamax = _op("var m v", _adamax)
rmsprop = _op("var ms mom", _rmsprop)
centered_rmsprop = _op("var mg ms mom", _centered_rmsprop)
adadelta = _op("var accum accum_update", _adadelta)
adagrad = _op("var accum", _adagrad)
ftrl = _op("var accum linear", _ftrl)


def _scatter(method: str) -> Callable[[Any, Any, Any], None]:
    def op(resource: Any, indices: Any, updates: Any) -> None:
        getattr(resource, method)(tf.IndexedSlices(tf.convert_to_tensor(updates), indices))

    return op


scatter_add, scatter_sub, scatter_update, scatter_max, scatter_min, scatter_mul, scatter_div = (
    _scatter(f"scatter_{what}") for what in ("add", "sub", "update", "max", "min", "mul", "div")
)
