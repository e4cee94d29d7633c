"""The workloads W1 to W12: their parameters and inputs, equal in all libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

WORKLOADS = {
    "W1": "chain of 200 scalar ops, value and gradient",
    "W2": "tanh MLP 4-64-64-2, batch 1, MSE, Adam step",
    "W3": "relu MLP 32-64-64-1, batch 32, MSE, Adam step",
    "W4": "relu MLP 784-512-512-10, batch 128, cross-entropy, Adam step",
    "W5": "CNN on 28x28: conv 32, pool, conv 64, pool, dense 128, dense 10; batch 64, Adam step",
    "W6": "LSTM written by hand, 50 steps, hidden 128, input 64, batch 32, Adam step",
    "W7": "2 transformer blocks, width 256, 4 heads, inner 1024, sequence 128, batch 8, Adam step",
    "W8a": "Jacobian of a 64-128-64 MLP",
    "W8b": "batch Jacobian of a 64-128-64 MLP, batch 32",
    "W9": "Hessian of the Rosenbrock function of 100 variables",
    "W10": "PINN: MLP 2-32-32-32-1, 1024 points, u_t - u_xx by nested derivatives, Adam step",
    "W11": "4,000,000 elements: sum(tanh(ax + b) sigmoid(x) + exp(-x^2)), value and gradient",
    "W12": "embedding table 100,000 x 64, 4096 ids, SGD step",
}
SHORT = {
    "W1": "scalar chain", "W2": "tiny MLP", "W3": "small MLP", "W4": "MNIST MLP", "W5": "MNIST CNN", "W6": "LSTM",
    "W7": "transformer", "W8a": "Jacobian", "W8b": "batch Jacobian", "W9": "Hessian", "W10": "PINN",
    "W11": "4M elements", "W12": "embedding",
}  # fmt: skip
ADAM = ("W2", "W3", "W4", "W5", "W6", "W7", "W10")

CHAIN = 100  # W1: pairs of ops
HEADS, WIDTH, SEQUENCE, BATCH = 4, 256, 128, 8  # W7
SCALE, SHIFT = 1.3, 0.2  # W11
RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8  # Adam
SGD_RATE = 100.0  # W12: gradients there are tiny; a large rate makes the check see a wrong step

Arrays = list[np.ndarray[Any, Any]]


def make(name: str) -> tuple[Arrays, Arrays]:
    """Parameters and inputs of a workload."""
    rng = np.random.default_rng(1234)

    def normal(*shape: int, std: float = 1.0) -> np.ndarray[Any, Any]:
        return (std * rng.standard_normal(shape)).astype(np.float32)

    def uniform(*shape: int) -> np.ndarray[Any, Any]:
        return rng.random(shape).astype(np.float32)

    def digits(n: int) -> np.ndarray[Any, Any]:
        return rng.integers(0, 10, n).astype(np.int32)

    def dense(*widths: int, gain: float = 1.0) -> Arrays:
        weights = []
        for i, o in zip(widths, widths[1:], strict=False):
            weights += [normal(i, o, std=(gain / i) ** 0.5), normal(o, std=0.01)]
        return weights

    if name == "W1":
        return [], [np.float32(0.7).reshape(())]
    if name == "W2":
        return dense(4, 64, 64, 2), [normal(1, 4), normal(1, 2)]
    if name == "W3":
        return dense(32, 64, 64, 1, gain=2.0), [normal(32, 32), normal(32, 1)]
    if name == "W4":
        return dense(784, 512, 512, 10, gain=2.0), [uniform(128, 784), digits(128)]
    if name == "W5":  # kernels as height, width, in, out
        kernels = [normal(3, 3, 1, 32, std=(2 / 9) ** 0.5), normal(32, std=0.01)]
        kernels += [normal(3, 3, 32, 64, std=(2 / 288) ** 0.5), normal(64, std=0.01)]
        return kernels + dense(7 * 7 * 64, 128, 10, gain=2.0), [uniform(64, 28, 28, 1), digits(64)]
    if name == "W6":
        (wx, bias), (wh, _) = dense(64, 512), dense(128, 512)
        return [wx, wh, bias], [normal(50, 32, 64), normal(32, 128)]
    if name == "W7":
        weights = []
        for _ in range(2):
            for widths in (((WIDTH, 3 * WIDTH), (WIDTH, WIDTH)), ((WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH))):
                weights += [1 + normal(WIDTH, std=0.01), normal(WIDTH, std=0.01)]
                weights += dense(*widths[0]) + dense(*widths[1])
        return weights, [normal(BATCH, SEQUENCE, WIDTH)]
    if name in ("W8a", "W8b"):
        return dense(64, 128, 64), [normal(64) if name == "W8a" else normal(32, 64)]
    if name == "W9":
        return [], [1 + normal(100, std=0.5)]
    if name == "W10":  # the last bias does not affect the loss, which has only derivatives of u
        return dense(2, 32, 32, 32, 1)[:-1], [uniform(1024, 1), uniform(1024, 1)]
    if name == "W11":
        return [], [normal(4_000_000)]
    if name == "W12":
        return [normal(100_000, 64)], [rng.integers(0, 100_000, 4096).astype(np.int32), normal(4096)]
    raise KeyError(name)


def fingerprint(matrix: Any) -> list[float]:
    """Two numbers that identify a Jacobian, including the order of its elements."""
    m = np.asarray(matrix, np.float64)
    return [float(np.abs(m).sum()), float((m * np.arange(m.size).reshape(m.shape)).sum() / m.size)]
