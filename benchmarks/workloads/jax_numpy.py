"""The workloads in JAX. Modes: eager (op by op); jit (the whole step, parameters and optimizer state donated);
"jit, rows" (W12 by hand: the gradient with respect to the rows read, added to the table)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cases import Case, repeat

from workloads import data
from workloads.data import BATCH, HEADS, SEQUENCE, WIDTH


def mlp(weights: Any, x: Any, activation: Any) -> Any:
    layers = (len(weights) + 1) // 2
    for k in range(layers):
        x = x @ weights[2 * k]
        if 2 * k + 1 < len(weights):
            x = x + weights[2 * k + 1]
        if k < layers - 1:
            x = activation(x)
    return x


def layer_norm(jax: Any, x: Any, scale: Any, shift: Any) -> Any:
    d = x - x.mean(-1, keepdims=True)
    return d * jax.lax.rsqrt((d * d).mean(-1, keepdims=True) + 1e-5) * scale + shift


def _block(jax: Any, x: Any, weights: Any) -> Any:
    g1, b1, w_qkv, b_qkv, w_out, b_out, g2, b2, w_up, b_up, w_down, b_down = weights
    rows, each = BATCH * SEQUENCE, WIDTH // HEADS
    h = layer_norm(jax, x, g1, b1).reshape(rows, WIDTH)
    q, k, v = (h @ w_qkv + b_qkv).reshape(BATCH, SEQUENCE, 3, HEADS, each).transpose(2, 0, 3, 1, 4)
    a = jax.nn.softmax(q @ k.swapaxes(-1, -2) * each**-0.5)
    o = (a @ v).transpose(0, 2, 1, 3).reshape(rows, WIDTH)
    x = x + (o @ w_out + b_out).reshape(BATCH, SEQUENCE, WIDTH)
    h = layer_norm(jax, x, g2, b2).reshape(rows, WIDTH)
    h = jax.nn.gelu(h @ w_up + b_up, approximate=False) @ w_down + b_down
    return x + h.reshape(BATCH, SEQUENCE, WIDTH)


def _loss(jax: Any, name: str) -> Callable[..., Any]:
    jnp, lax, relu = jax.numpy, jax.lax, jax.nn.relu

    def crossentropy(logits: Any, labels: Any) -> Any:
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))

    def cnn(w: Any, x: Any, y: Any) -> Any:
        for k in (0, 2):
            x = lax.conv_general_dilated(x, w[k], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = relu(x + w[k + 1])
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return crossentropy(mlp(w[4:], x.reshape(64, 3136), relu), y)

    def lstm(w: Any, x: Any, y: Any) -> Any:
        wx, wh, bias = w
        h = c = jnp.zeros((32, 128))
        for k in range(50):
            i, f, g, o = jnp.split(x[k] @ wx + h @ wh + bias, 4, 1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return jnp.mean(jnp.square(h - y))

    def transformer(w: Any, x: Any) -> Any:
        for k in range(0, len(w), 12):
            x = _block(jax, x, w[k : k + 12])
        return jnp.mean(jnp.square(x))

    def pinn(w: Any, x: Any, t: Any) -> Any:
        def total(x: Any, t: Any) -> Any:
            return mlp(w, jnp.concatenate([x, t], 1), jnp.tanh).sum()

        def slopes(x: Any) -> Any:
            ux, ut = jax.grad(total, (0, 1))(x, t)
            return ux.sum(), ut

        uxx, ut = jax.grad(slopes, has_aux=True)(x)
        return jnp.mean(jnp.square(ut - uxx))

    return {
        "W2": lambda w, x, y: jnp.mean(jnp.square(mlp(w, x, jnp.tanh) - y)),
        "W3": lambda w, x, y: jnp.mean(jnp.square(mlp(w, x, relu) - y)),
        "W4": lambda w, x, y: crossentropy(mlp(w, x, relu), y),
        "W5": cnn,
        "W6": lstm,
        "W7": transformer,
        "W10": pinn,
    }[name]


def adam(jnp: Any, weights: Any, state: Any, gradients: Any) -> Any:
    """Adam written by hand, since JAX itself has no optimizers."""
    means, squares, n = state
    n = n + 1
    rate = data.RATE * jnp.sqrt(1 - data.BETA2**n) / (1 - data.BETA1**n)
    means = [data.BETA1 * m + (1 - data.BETA1) * g for m, g in zip(means, gradients, strict=True)]
    squares = [data.BETA2 * s + (1 - data.BETA2) * g * g for s, g in zip(squares, gradients, strict=True)]
    moved = [
        w - rate * m / (jnp.sqrt(s) + data.EPSILON) for w, m, s in zip(weights, means, squares, strict=True)
    ]
    return moved, (means, squares, n)


def adam_state(jnp: Any, weights: Any) -> Any:
    return [jnp.zeros_like(w) for w in weights], [jnp.zeros_like(w) for w in weights], jnp.zeros(())


def _training(jax: Any, name: str, jit: Any, weights: Any, inputs: Any) -> Callable[[], float]:
    jnp, both = jax.numpy, jax.value_and_grad(_loss(jax, name))

    def update(weights: Any, state: Any, *inputs: Any) -> Any:
        loss, gradients = both(weights, *inputs)
        return *adam(jnp, weights, state, gradients), loss

    update = jit(update, donate_argnums=(0, 1))
    current = [weights, adam_state(jnp, weights)]

    def step() -> float:
        current[0], current[1], loss = jax.block_until_ready(update(*current, *inputs))
        return float(loss)

    return step


def _embedding(jax: Any, mode: str, jit: Any, table: Any, ids: Any, y: Any) -> Callable[[], float]:
    jnp = jax.numpy

    def by_rows(table: Any, ids: Any, y: Any) -> Any:
        loss, g = jax.value_and_grad(lambda rows: jnp.mean(jnp.square(rows.mean(1) - y)))(table[ids])
        return table.at[ids].add(-data.SGD_RATE * g), loss

    def by_table(table: Any, ids: Any, y: Any) -> Any:
        loss, g = jax.value_and_grad(lambda t: jnp.mean(jnp.square(t[ids].mean(1) - y)))(table)
        return table - data.SGD_RATE * g, loss

    update = jit(by_rows if mode == "jit, rows" else by_table, donate_argnums=0)
    state = [table]

    def step() -> float:
        state[0], loss = jax.block_until_ready(update(state[0], ids, y))
        return float(loss)

    return step


def _derivative(jax: Any, name: str, jit: Any, weights: Any, x: Any) -> Callable[[], Any]:
    jnp = jax.numpy

    def chain(x: Any) -> Any:
        y = x
        for k in range(data.CHAIN):
            y = jnp.sin(y) * x if k % 2 == 0 else jnp.sin(y) + x
        return y

    def elements(x: Any) -> Any:
        return (jnp.tanh(x * data.SCALE + data.SHIFT) * jax.nn.sigmoid(x) + jnp.exp(-x * x)).sum()

    def rosenbrock(x: Any) -> Any:
        a, b = x[:-1], x[1:]
        return (100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2).sum()

    if name in ("W8a", "W8b"):
        f = jax.jacrev(lambda w, x: jnp.tanh(mlp(w, x, jnp.tanh)), 1)
        f = jit(jax.vmap(f, (None, 0)) if name == "W8b" else f)
        return lambda: jax.block_until_ready(f(weights, x))
    f = {
        "W1": lambda: jax.value_and_grad(chain),
        "W9": lambda: jax.hessian(rosenbrock),
        "W11": lambda: jax.value_and_grad(elements),
    }[name]()
    f = jit(f)
    return lambda: jax.block_until_ready(f(x))


def build(jax: Any, name: str, mode: str) -> Case:
    parameters, arrays = data.make(name)
    weights = [jax.numpy.array(p) for p in parameters]
    inputs = [jax.numpy.array(a) for a in arrays]
    jit = (lambda f, **_: f) if mode == "eager" else jax.jit
    if name in data.ADAM:
        call = _training(jax, name, jit, weights, inputs)
    elif name == "W12":
        call = _embedding(jax, mode, jit, weights.pop(), *inputs)
    else:
        call = _derivative(jax, name, jit, weights, *inputs)

    def check() -> list[float]:
        if name == "W11":
            y, g = call()
            return [float(y), float(np.abs(np.asarray(g), dtype=np.float64).sum())]
        if name in ("W1", "W8a", "W8b", "W9"):
            out = call()
            return data.fingerprint(out[1] if name == "W1" else out)
        return [call() for _ in range(3)]

    return Case(repeat(call), check=check)
