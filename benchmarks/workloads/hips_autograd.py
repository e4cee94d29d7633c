"""The workloads in autograd, on NumPy: mode "numpy". It has no convolution (W5), and W7 and W8b are left out:
its batch Jacobian would be a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cases import Case, repeat

from workloads import data

NAMES = ("W1", "W2", "W3", "W4", "W6", "W8a", "W9", "W10", "W11", "W12")


def _dense(anp: Any, weights: Any, x: Any, activation: Any) -> Any:
    layers = (len(weights) + 1) // 2
    for k in range(layers):
        x = anp.dot(x, weights[2 * k])
        if 2 * k + 1 < len(weights):
            x = x + weights[2 * k + 1]
        if k < layers - 1:
            x = activation(x)
    return x


def _loss(autograd: Any, anp: Any, name: str) -> Callable[..., Any]:
    one = np.float32(1)

    def relu(x: Any) -> Any:
        return anp.maximum(x, np.float32(0))

    def sigmoid(x: Any) -> Any:
        return one / (one + anp.exp(-x))

    def crossentropy(logits: Any, labels: Any) -> Any:
        s = logits - anp.max(logits, axis=1, keepdims=True)
        return anp.mean(anp.log(anp.sum(anp.exp(s), axis=1)) - s[np.arange(len(labels)), labels])

    def lstm(w: Any, x: Any, y: Any) -> Any:
        wx, wh, bias = w
        h = c = np.zeros((32, 128), np.float32)
        for row in x:
            z = anp.dot(row, wx) + anp.dot(h, wh) + bias
            i, f, g, o = z[:, :128], z[:, 128:256], z[:, 256:384], z[:, 384:]
            c = sigmoid(f) * c + sigmoid(i) * anp.tanh(g)
            h = sigmoid(o) * anp.tanh(c)
        return anp.mean((h - y) ** 2)

    def pinn(w: Any, x: Any, t: Any) -> Any:
        def total(xt: Any) -> Any:
            return anp.sum(_dense(anp, w, anp.concatenate([xt[0], xt[1]], 1), anp.tanh))

        uxx = autograd.grad(lambda x: anp.sum(autograd.grad(total)((x, t))[0]))(x)
        # The first derivative cannot be returned from the pass that differentiates it, so it is computed again.
        ut = autograd.grad(lambda t: total((x, t)))(t)
        return anp.mean((ut - uxx) ** 2)

    def elements(x: Any) -> Any:
        inner = anp.tanh(x * np.float32(data.SCALE) + np.float32(data.SHIFT)) * sigmoid(x)
        return anp.sum(inner + anp.exp(-x * x))

    def chain(x: Any) -> Any:
        y = x
        for k in range(data.CHAIN):
            y = anp.sin(y) * x if k % 2 == 0 else anp.sin(y) + x
        return y

    return {
        "W1": chain,
        "W2": lambda w, x, y: anp.mean((_dense(anp, w, x, anp.tanh) - y) ** 2),
        "W3": lambda w, x, y: anp.mean((_dense(anp, w, x, relu) - y) ** 2),
        "W4": lambda w, x, y: crossentropy(_dense(anp, w, x, relu), y),
        "W6": lstm,
        "W10": pinn,
        "W11": elements,
        "W12": lambda table, ids, y: anp.mean((anp.mean(table[ids], axis=1) - y) ** 2),
    }[name]


def _training(both: Any, weights: data.Arrays, inputs: data.Arrays) -> Callable[[], float]:
    means, squares = [np.zeros_like(w) for w in weights], [np.zeros_like(w) for w in weights]
    n = 0

    def step() -> float:
        nonlocal n
        n += 1
        loss, gradients = both(weights, *inputs)
        rate = np.float32(data.RATE * (1 - data.BETA2**n) ** 0.5 / (1 - data.BETA1**n))
        for w, m, s, g in zip(weights, means, squares, gradients, strict=True):
            m += np.float32(1 - data.BETA1) * (g - m)
            s += np.float32(1 - data.BETA2) * (g * g - s)
            w -= rate * m / (np.sqrt(s) + np.float32(data.EPSILON))
        return float(loss)

    return step


def build(autograd: Any, name: str, mode: str) -> Case | None:
    import autograd.numpy as anp

    if name not in NAMES:
        return None
    weights, inputs = data.make(name)
    if name in data.ADAM:
        call = _training(autograd.value_and_grad(_loss(autograd, anp, name)), weights, inputs)
    elif name == "W12":
        both, table = autograd.value_and_grad(_loss(autograd, anp, name)), weights[0]

        def call() -> float:
            loss, g = both(table, *inputs)
            np.subtract(table, np.float32(data.SGD_RATE) * g, out=table)
            return float(loss)
    elif name in ("W8a", "W9"):

        def rosenbrock(x: Any) -> Any:
            a, b = x[:-1], x[1:]
            return anp.sum(np.float32(100) * (b - a * a) ** 2 + (np.float32(1) - a) ** 2)

        def network(x: Any) -> Any:
            return anp.tanh(_dense(anp, weights, x, anp.tanh))

        f = autograd.jacobian(network) if name == "W8a" else autograd.hessian(rosenbrock)
        call = lambda: f(inputs[0])  # noqa: E731
    else:
        both = autograd.value_and_grad(_loss(autograd, anp, name))
        x = inputs[0] if inputs[0].ndim else np.float32(inputs[0])
        call = lambda: both(x)  # noqa: E731

    def check() -> list[float]:
        if name == "W11":
            y, g = call()
            return [float(y), float(np.abs(g, dtype=np.float64).sum())]
        if name in ("W1", "W8a", "W9"):
            out = call()
            return data.fingerprint(out[1] if name == "W1" else out)
        return [call() for _ in range(3)]

    return Case(repeat(call), check=check)
