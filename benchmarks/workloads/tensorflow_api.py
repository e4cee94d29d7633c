"""The workloads in TensorFlow's API, for TensorFlow and for gradtape alike.

Modes: eager, function, xla; "function, raw Adam" takes TensorFlow's one-kernel Adam, which is faster than the
optimizer that its guides use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cases import Case, repeat

from workloads import data
from workloads.data import BATCH, HEADS, SEQUENCE, WIDTH


def mlp(tf: Any, weights: Any, x: Any, activation: Any) -> Any:
    layers = (len(weights) + 1) // 2
    for k in range(layers):
        x = tf.matmul(x, weights[2 * k])
        if 2 * k + 1 < len(weights):
            x = x + weights[2 * k + 1]
        if k < layers - 1:
            x = activation(x)
    return x


def _crossentropy(tf: Any, logits: Any, labels: Any) -> Any:
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def layer_norm(tf: Any, x: Any, scale: Any, shift: Any) -> Any:
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, shift, scale, 1e-5)


def _block(tf: Any, x: Any, weights: Any, batch: Any = BATCH, sequence: Any = SEQUENCE) -> Any:
    g1, b1, w_qkv, b_qkv, w_out, b_out, g2, b2, w_up, b_up, w_down, b_down = weights
    rows, each = batch * sequence, WIDTH // HEADS
    h = tf.reshape(layer_norm(tf, x, g1, b1), [rows, WIDTH])
    qkv = tf.reshape(tf.matmul(h, w_qkv) + b_qkv, [batch, sequence, 3, HEADS, each])
    q, k, v = tf.unstack(tf.transpose(qkv, [2, 0, 3, 1, 4]))
    a = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * each**-0.5)
    o = tf.reshape(tf.transpose(tf.matmul(a, v), [0, 2, 1, 3]), [rows, WIDTH])
    x = x + tf.reshape(tf.matmul(o, w_out) + b_out, [batch, sequence, WIDTH])
    h = tf.reshape(layer_norm(tf, x, g2, b2), [rows, WIDTH])
    h = tf.matmul(tf.nn.gelu(tf.matmul(h, w_up) + b_up), w_down) + b_down
    return x + tf.reshape(h, [batch, sequence, WIDTH])


def _cnn(tf: Any, weights: Any, x: Any, labels: Any) -> Any:
    for k in (0, 2):
        x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, weights[k], 1, "SAME"), weights[k + 1]))
        x = tf.nn.max_pool2d(x, 2, 2, "SAME")
    return _crossentropy(tf, mlp(tf, weights[4:], tf.reshape(x, [64, 3136]), tf.nn.relu), labels)


def _lstm(tf: Any, weights: Any, x: Any, y: Any) -> Any:
    wx, wh, bias = weights
    h = c = tf.zeros([32, 128])
    for row in tf.unstack(x, num=50):
        i, f, g, o = tf.split(tf.matmul(row, wx) + tf.matmul(h, wh) + bias, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
    return tf.reduce_mean(tf.square(h - y))


def _transformer(tf: Any, weights: Any, x: Any, *sizes: Any) -> Any:
    for k in range(0, len(weights), 12):
        x = _block(tf, x, weights[k : k + 12], *sizes)
    return tf.reduce_mean(tf.square(x))


def _transformer_of_any_size(tf: Any, weights: Any, x: Any) -> Any:
    shape = tf.shape(x)
    return _transformer(tf, weights, x, shape[0], shape[1])


def _masked(tf: Any, weights: Any, x: Any, labels: Any, mask: Any) -> Any:
    logits = mlp(tf, weights, x, tf.nn.relu)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(tf.boolean_mask(loss, mask))


def _pinn(tf: Any, weights: Any, x: Any, t: Any) -> Any:
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch([x, t])
            u = mlp(tf, weights, tf.concat([x, t], 1), tf.tanh)
        ux, ut = inner.gradient(u, [x, t])
    uxx = outer.gradient(ux, x)
    return tf.reduce_mean(tf.square(ut - uxx))


LOSSES: dict[str, Callable[..., Any]] = {
    "W2": lambda tf, w, x, y: tf.reduce_mean(tf.square(mlp(tf, w, x, tf.tanh) - y)),
    "W3": lambda tf, w, x, y: tf.reduce_mean(tf.square(mlp(tf, w, x, tf.nn.relu) - y)),
    "W4": lambda tf, w, x, y: _crossentropy(tf, mlp(tf, w, x, tf.nn.relu), y),
    "W5": _cnn,
    "W6": _lstm,
    "W7": _transformer,
    "W10": _pinn,
    "W4, masked": _masked,  # the last two: sizes.py
    "W7, any size": _transformer_of_any_size,
}


def _raw_adam(tf: Any, variables: Any) -> Callable[[Any], None]:
    """Adam by TensorFlow's fused kernel."""
    means = [tf.Variable(tf.zeros_like(v)) for v in variables]
    squares = [tf.Variable(tf.zeros_like(v)) for v in variables]
    powers = tf.Variable(data.BETA1), tf.Variable(data.BETA2)

    def apply(gradients: Any) -> None:
        p1, p2 = (p.read_value() for p in powers)
        for v, m, s, g in zip(variables, means, squares, gradients, strict=True):
            tf.raw_ops.ResourceApplyAdam(
                var=v.handle, m=m.handle, v=s.handle, beta1_power=p1, beta2_power=p2, lr=data.RATE,
                beta1=data.BETA1, beta2=data.BETA2, epsilon=data.EPSILON, grad=g,
            )  # fmt: skip
        powers[0].assign(p1 * data.BETA1, read_value=False)
        powers[1].assign(p2 * data.BETA2, read_value=False)

    return apply


def training(tf: Any, name: str, mode: str, variables: Any) -> Callable[..., Any]:
    loss_of = LOSSES[name]
    if mode.endswith("raw Adam"):
        apply = _raw_adam(tf, variables)
    else:
        adam = tf.optimizers.Adam(
            learning_rate=data.RATE, beta_1=data.BETA1, beta_2=data.BETA2, epsilon=data.EPSILON
        )
        adam.build(variables)

        def apply(gradients: Any) -> None:
            adam.apply_gradients(zip(gradients, variables, strict=True))

    def step(*inputs: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(tf, variables, *inputs)
        apply(tape.gradient(loss, variables))
        return loss

    return step


def _embedding(tf: Any, table: Any) -> Callable[..., Any]:
    def step(ids: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.reduce_mean(tf.gather(table, ids), 1) - y))
        g = tape.gradient(loss, table)  # IndexedSlices: only the rows that were read
        table.scatter_sub(tf.IndexedSlices(data.SGD_RATE * g.values, g.indices))
        return loss

    return step


def _derivative(tf: Any, name: str, weights: Any) -> Callable[..., Any]:
    """W1, W8, W9 and W11: only a derivative, no update."""

    def chain(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for k in range(data.CHAIN):
                y = tf.sin(y) * x if k % 2 == 0 else tf.sin(y) + x
        return tape.gradient(y, x)

    def jacobian(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.tanh(mlp(tf, weights, tf.reshape(x, [1, 64]), tf.tanh))
            y = tf.reshape(y, [64])
        return tape.jacobian(y, x)

    def batch_jacobian(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.tanh(mlp(tf, weights, x, tf.tanh))
        return tape.batch_jacobian(y, x)

    def hessian(x: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                a, b = x[:-1], x[1:]
                y = tf.reduce_sum(100.0 * tf.square(b - tf.square(a)) + tf.square(1.0 - a))
            g = inner.gradient(y, x)
        return outer.jacobian(g, x)

    def elements(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            inner = tf.tanh(x * data.SCALE + data.SHIFT) * tf.sigmoid(x)
            y = tf.reduce_sum(inner + tf.exp(-x * x))
        return y, tape.gradient(y, x)

    return {"W1": chain, "W8a": jacobian, "W8b": batch_jacobian, "W9": hessian, "W11": elements}[name]


def build(tf: Any, name: str, mode: str) -> Case:
    parameters, arrays = data.make(name)
    variables, inputs = [tf.Variable(p) for p in parameters], [tf.constant(a) for a in arrays]
    if name in data.ADAM:
        step = training(tf, name, mode, variables)
    elif name == "W12":
        step = _embedding(tf, variables[0])
    else:
        step = _derivative(tf, name, variables)
    if mode != "eager":
        step = tf.function(step, jit_compile=True) if mode == "xla" else tf.function(step)

    def call() -> Any:
        out = step(*inputs)
        return out[0].numpy() if name == "W11" else out.numpy()

    def check() -> list[float]:
        if name == "W11":
            y, g = step(*inputs)
            return [float(y), float(np.abs(g.numpy(), dtype=np.float64).sum())]
        if name in ("W1", "W8a", "W8b", "W9"):
            return data.fingerprint(call())
        return [float(call()) for _ in range(3)]

    return Case(repeat(call), check=check)
