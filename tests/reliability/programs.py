"""Computations that use every part of the core; each gives the same tensors every time, bit for bit.

`python -m tests.reliability.programs` prints a hash for each: results must not depend on the number of threads
(`GRADTAPE_NUM_THREADS`), nor on what other threads do meanwhile.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as tf
from gradtape._src.contract.cases import allowed, cases, tensor
from gradtape._src.ops.table import TABLE


def numbers(*shape: int, seed: int = 1, dtype: str = "float32") -> Any:
    return tf.constant(np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype))


def gradients(function: Callable, *operands: Any) -> list:
    """The value and the gradients with respect to all operands."""
    with tf.GradientTape() as tape:
        tape.watch(operands)
        out = function(*operands)
    return [out, *tape.gradient(out, operands)]


def mlp() -> list:
    def loss(x, w, b, u):
        h = tf.nn.relu(tf.matmul(x, w) + b)
        return tf.reduce_mean(tf.square(tf.matmul(tf.nn.gelu(h), u)))

    return gradients(
        loss, numbers(200, 70), numbers(70, 130, seed=2), numbers(130, seed=3), numbers(130, 9, seed=4)
    )


def wide_products() -> list:
    return gradients(
        lambda x, y: tf.reduce_sum(tf.matmul(x, y) ** 2), numbers(401, 333), numbers(333, 257, seed=2)
    )


def convolution() -> list:
    def loss(x, k, d):
        y = tf.nn.max_pool2d(tf.nn.conv2d(x, k, 1, "SAME"), 2, 2, "VALID")
        y = tf.nn.depthwise_conv2d(y, d, [1, 1, 1, 1], "SAME")
        y = tf.nn.avg_pool2d(tf.nn.conv2d(y, tf.transpose(k, [0, 1, 3, 2]), 2, "SAME"), 3, 2, "SAME")
        return tf.reduce_sum(y**2)

    return gradients(loss, numbers(6, 33, 31, 8), numbers(3, 3, 8, 12, seed=2), numbers(3, 3, 12, 1, seed=3))


def attention() -> list:
    def loss(q, k, v):
        return tf.reduce_sum(tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v) ** 2)

    return gradients(loss, numbers(8, 65, 32), numbers(8, 65, 32, seed=2), numbers(8, 65, 32, seed=3))


def matrices() -> list:
    def loss(a):
        spd = tf.matmul(a, a, transpose_b=True) + 5.0 * tf.eye(a.shape[-1], dtype=a.dtype)
        x = tf.linalg.solve(spd, a)
        e, v = tf.linalg.eigh(spd)
        return (
            tf.reduce_sum(tf.linalg.cholesky(spd))
            + tf.linalg.logdet(spd[0])
            + tf.reduce_sum(x * v)
            + tf.reduce_sum(e**2)
        )

    return gradients(loss, numbers(3, 40, 40, dtype="float64"))


def reductions() -> list:
    def loss(x):
        y = (
            tf.cumsum(tf.nn.log_softmax(x), 1)
            + tf.reduce_logsumexp(x, 0)
            + tf.math.reduce_std(x, 1, keepdims=True)
        )
        return (
            tf.reduce_sum(y)
            + tf.reduce_max(x)
            + tf.reduce_sum(tf.sort(x, 0)[:5])
            + tf.norm(x)
            + tf.reduce_prod(x[0])
        )

    return gradients(loss, numbers(1003, 257))


def rows() -> list:
    ids = tf.constant(np.random.default_rng(5).integers(0, 300, 5000))

    def loss(table):
        picked = tf.gather(table, ids)
        sums = tf.math.unsorted_segment_sum(tf.tanh(picked), ids % 17, 17)
        return tf.reduce_sum(sums**2) + tf.reduce_sum(tf.scatter_nd(ids[:, None], picked, table.shape))

    out, g = gradients(loss, numbers(300, 40))
    return [out, tf.convert_to_tensor(g)]


def spectra() -> list:
    def loss(x):
        return tf.reduce_sum(tf.abs(tf.signal.stft(x, 256, 100)) ** 2) + tf.reduce_sum(tf.signal.dct(x))

    return gradients(loss, numbers(7, 3000))


def randoms() -> list:
    drawn = [
        tf.random.stateless_normal([100_003], [1, 2]), tf.random.stateless_uniform([100_003], [3, 4]),
        tf.random.stateless_gamma([30_001], [5, 6], 0.7), tf.random.stateless_poisson([30_001], [7, 8], 4.0, tf.int32),
        tf.random.stateless_truncated_normal([50_001], [9, 1]),
        tf.random.stateless_binomial([20_001], [2, 3], 40.0, 0.3),
        tf.random.experimental.stateless_shuffle(tf.range(70_001), [4, 5]),
    ]  # fmt: skip
    return drawn + gradients(
        lambda x: tf.reduce_sum(tf.nn.experimental.stateless_dropout(x, 0.3, [1, 2])), numbers(300, 400)
    )


@tf.function
def _step(x, w):
    with tf.GradientTape() as tape:
        tape.watch(w)
        y = tf.tanh(tf.matmul(x, w))
        i = tf.constant(0)
        while i < 5:
            y = y * tf.sigmoid(tf.matmul(y, y, transpose_a=True)[:1])
            i += 1
        loss = tf.reduce_mean(y**2)
    return loss, tape.gradient(loss, w)


def function() -> list:
    """One function that all threads share."""
    return list(_step(numbers(150, 90), numbers(90, 90, seed=2) * 0.1))


def second_order() -> list:
    x = numbers(60, 30)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(tf.nn.softmax(tf.matmul(x, x, transpose_a=True)) ** 2)
        g = inner.gradient(y, x)
        n = tf.reduce_sum(g**2)
    return [g, outer.gradient(n, x)]


def jacobian() -> list:
    x, w = numbers(40), numbers(40, 40, seed=2)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.tanh(tf.linalg.matvec(w, tf.sin(tf.linalg.matvec(w, x))))
    return [tape.jacobian(y, x)]


def training() -> list:
    """Optimizers, each step of which is one program."""
    w, b = tf.Variable(numbers(70, 80)), tf.Variable(tf.zeros([80]))
    x = numbers(90, 70, seed=3)
    for optimizer in (tf.optimizers.Adam(0.01), tf.optimizers.SGD(0.01, momentum=0.9)):
        for _ in range(4):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.nn.relu(tf.matmul(x, w) + b) ** 2)
            optimizer.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b], strict=True))
    return [w.read_value(), b.read_value()]


PROGRAMS: dict[str, Callable[[], list]] = {
    f.__name__: f
    for f in (
        mlp, wide_products, convolution, attention, matrices, reductions, rows, spectra, randoms, function,
        second_order, jacobian, training,
    )
}  # fmt: skip


def hashed(tensors: list) -> str:
    """One number for the bits of tensors."""
    total = hashlib.blake2b(digest_size=8)
    for t in tensors:
        total.update(np.ascontiguousarray(t.numpy()).tobytes())
    return total.hexdigest()


def elementwise(name: str) -> list:
    """An element-wise op of the table on enough elements for several chunks, and its gradients."""
    row = TABLE[name]
    case = next(cases(row, [d for d in allowed(row) if d.name == "float32"] or allowed(row)[:1]))
    tensors = [tensor(np.resize(a, 20_011), d) for a, d in zip(case.arrays, case.dtypes, strict=True)]
    with tf.GradientTape() as tape:
        tape.watch([t for t in tensors if t.dtype.is_floating])
        out = case.call(tensors)
    return [*out, *(g for g in tape.gradient(out, tensors) if g is not None)]


def elementwise_names() -> list[str]:
    return [name for name, row in TABLE.items() if row.kind == "elementwise" and row.samples[0].operands]


if __name__ == "__main__":
    for name, program in PROGRAMS.items():
        for _ in range(2):  # on values, then compiled
            print(name, hashed(program()))
    for name in elementwise_names():
        print(name, hashed(elementwise(name)))
