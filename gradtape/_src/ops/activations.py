"""Activation functions: each is one pass forward and at most a few backward."""

from __future__ import annotations

import math

import numpy as np

from gradtape._src.base.dtypes import float32
from gradtape._src.ops.arithmetic import conjugate, reciprocal, square
from gradtape._src.ops.casting import cast
from gradtape._src.ops.comparison import select
from gradtape._src.ops.exponential import exp
from gradtape._src.ops.samples import at, call, floats, pairs
from gradtape._src.ops.table import COMPLEX, FLOAT, REAL, composite, elementwise
from gradtape._src.tensors.conversion import as_tensor

_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772
_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)


def _erf(x):
    return np.vectorize(math.erf, otypes=[float])(x)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


relu_grad = elementwise(
    "relu_grad", FLOAT, args="out g", linear="g", xla="activations.relu_grad",
    vjp=(0, lambda h, out, g, dx: relu_grad(out, h)),
    numpy=lambda out, g: np.where(out > 0, g, 0), samples=pairs(),
    doc="`g` where `out > 0`, else 0: the gradient of relu in one pass.",
)  # fmt: skip

relu = elementwise(
    "relu", REAL, args="features", vjp=lambda g, x, out: relu_grad(out, g), xla="jax.nn.relu",
    numpy=lambda x: np.maximum(x, 0), samples=floats(), names="nn.relu", edges=[((at(0.0),), (0.0,))],
    doc="`max(x, 0)`, element-wise. Its derivative at 0 is 0.",
)  # fmt: skip

relu6 = elementwise(
    "relu6", REAL, args="features", xla="jax.nn.relu6",
    vjp=lambda g, x, out: relu_grad(out, select(out < 6, g, 0)),
    numpy=lambda x: np.clip(x, 0, 6), samples=floats(-3, 9), names="nn.relu6",
    edges=[((at(0.0),), (0.0,)), ((at(6.0),), (0.0,))],
    doc="`min(max(x, 0), 6)`, element-wise. Its derivative at 0 and 6 is 0.",
)  # fmt: skip

leaky_relu_grad = elementwise(
    "leaky_relu_grad", FLOAT, args="x alpha g", linear="g", xla="activations.leaky_relu_grad",
    vjp=(
        0, lambda h, x, alpha, g, dx: select(x > 0, 0, g * h),
        lambda h, x, alpha, g, dx: leaky_relu_grad(x, alpha, h),
    ),
    numpy=lambda x, alpha, g: np.where(x > 0, g, alpha * g),
    samples=[call((2, 3), at(0.2), (2, 3)), call((), at(0.1), ()), call((0, 3), at(0.2), (0, 3)), call((3,), (3,), (2, 3))],
    doc="`g` where `x > 0`, else `alpha * g`: the gradient of leaky_relu in one pass.",
)  # fmt: skip

leaky_relu_op = elementwise(
    "leaky_relu", FLOAT, args="features alpha", xla="jax.nn.leaky_relu",
    vjp=(lambda g, x, alpha, out: leaky_relu_grad(x, alpha, g), lambda g, x, alpha, out: select(x > 0, 0, x * g)),
    numpy=lambda x, alpha: np.where(x > 0, x, alpha * x), samples=pairs(-2, 2, 0.1, 0.4),
    doc="`x` where positive, `alpha * x` elsewhere.",
)  # fmt: skip


@composite("nn.leaky_relu")
def leaky_relu(features, alpha=0.2, name=None):
    """`features` where positive, `alpha * features` elsewhere. The derivative at 0 is `alpha`."""
    x = as_tensor(features)
    return leaky_relu_op(cast(x, float32) if x.dtype.is_integer else x, alpha)


elu = elementwise(
    "elu", FLOAT, args="features", deriv=lambda x, out: select(x < 0, exp(x), 1), xla="jax.nn.elu",
    numpy=lambda x: np.where(x < 0, np.expm1(x), x), samples=floats(), names="nn.elu",
    edges=[((at(0.0),), (1.0,))], doc="`x` where positive, `exp(x) - 1` elsewhere.",
)  # fmt: skip

selu = elementwise(
    "selu", FLOAT, args="features", xla="jax.nn.selu",
    deriv=lambda x, out: select(x < 0, _SELU_SCALE * _SELU_ALPHA * exp(x), _SELU_SCALE),
    numpy=lambda x: _SELU_SCALE * np.where(x < 0, _SELU_ALPHA * np.expm1(x), x), samples=floats(), names="nn.selu",
    edges=[((at(0.0),), (_SELU_SCALE,))], doc="`scale * x` where positive, `scale * alpha * (exp(x) - 1)` elsewhere.",
)  # fmt: skip

sigmoid_grad = elementwise(
    "sigmoid_grad", FLOAT, args="out g", linear="g", xla="activations.sigmoid_grad",
    vjp=(lambda h, out, g, dx: h * (g * (1 - 2 * out)), lambda h, out, g, dx: sigmoid_grad(out, h)),
    numpy=lambda out, g: g * out * (1 - out), samples=pairs(0.1, 0.9),
    doc="`g * out * (1 - out)`: the gradient of sigmoid in one pass.",
)  # fmt: skip

sigmoid = elementwise(
    "sigmoid", FLOAT | COMPLEX, xla="jax.nn.sigmoid",
    vjp=lambda g, x, out: g * conjugate(out * (1 - out)) if out.dtype.is_complex else sigmoid_grad(out, g),
    numpy=_sigmoid, samples=floats(-4, 4), names="sigmoid math.sigmoid nn.sigmoid",
    doc="`1 / (1 + exp(-x))`, element-wise.",
)  # fmt: skip

softplus = elementwise(
    "softplus", FLOAT, args="features", deriv=lambda x, out: sigmoid(x), xla="jax.nn.softplus",
    numpy=lambda x: np.logaddexp(x, 0), samples=floats(-4, 4), names="math.softplus nn.softplus",
    edges=[((at(0.0),), (0.5,))], doc="`log(exp(x) + 1)`, without overflow.",
)  # fmt: skip

softsign = elementwise(
    "softsign", FLOAT, args="features", xla="jax.nn.soft_sign",
    deriv=lambda x, out: reciprocal(square(1 + abs(x))),
    numpy=lambda x: x / (1 + np.abs(x)), samples=floats(), names="nn.softsign", doc="`x / (1 + |x|)`, element-wise.",
)  # fmt: skip


def _silu_derivative(x, out):
    s = sigmoid(x)
    return s + out * (1 - s)


silu_op = elementwise(
    "silu", FLOAT, args="features", deriv=_silu_derivative, xla="jax.nn.silu",
    numpy=lambda x: x * _sigmoid(x), samples=floats(), doc="`x * sigmoid(x)`, element-wise.",
)  # fmt: skip


@composite("nn.silu nn.swish")
def silu(features, beta=1.0):
    """`features * sigmoid(beta * features)`, element-wise."""
    x = as_tensor(features)
    if isinstance(beta, (int, float)) and beta == 1:
        return x * sigmoid(x) if x.dtype.is_complex else silu_op(x)
    return x * sigmoid(beta * x)


gelu_slope = elementwise(
    "gelu_slope", FLOAT, args="features", xla="activations.gelu_slope",
    deriv=lambda x, out: (2.0 - square(x)) * exp(-0.5 * square(x)) * (1 / math.sqrt(2 * math.pi)),
    numpy=lambda x: 0.5 * (1 + _erf(x / math.sqrt(2))) + x * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi),
    samples=floats(), doc="The derivative of `gelu`.",
)  # fmt: skip

gelu_op = elementwise(
    "gelu", FLOAT, args="features", deriv=lambda x, out: gelu_slope(x), xla="activations.gelu",
    numpy=lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))), samples=floats(),
    doc="`x * P(X <= x)` for a standard normal X.",
)  # fmt: skip


def _gelu_tanh_derivative(x, out):
    s = sigmoid(2 * _SQRT_2_OVER_PI * (x + 0.044715 * x * square(x)))  # (1 + tanh) / 2, which cancels
    return s + out * (1 - s) * (2 * _SQRT_2_OVER_PI) * (1 + 0.134145 * square(x))


gelu_tanh_op = elementwise(
    "gelu_tanh", FLOAT, args="features", deriv=_gelu_tanh_derivative, xla="activations.gelu_tanh",
    numpy=lambda x: 0.5 * x * (1 + np.tanh(_SQRT_2_OVER_PI * (x + 0.044715 * x**3))), samples=floats(),
    doc="The approximation of `gelu` by tanh.",
)  # fmt: skip


@composite("nn.gelu")
def gelu(features, approximate=False, name=None):
    """The Gaussian error linear unit, exact or by its tanh approximation."""
    x = as_tensor(features)
    if not x.dtype.is_floating:
        raise ValueError(
            f"gelu: `features.dtype` must be a floating point tensor. Received: features.dtype={x.dtype}"
        )
    return gelu_tanh_op(x) if approximate else gelu_op(x)
