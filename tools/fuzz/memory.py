"""Ops and functions with little memory left: a Python exception or a result, and everything works afterwards.

A case is a piece of work, its size, and how many bytes of address space it may take beyond what the process has.
Every other process starts cold: threads and OpenBLAS are first used when memory is short.
"""

from __future__ import annotations

import gc
import os
import random
import resource
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gradtape as tf
from gradtape import _core, errors
from tools.fuzz import harness
from tools.fuzz.harness import Bad

_COLD = "GRADTAPE_FUZZ_COLD"


def _matrix(x: Any) -> Any:
    n = int(len(x) ** 0.5)
    return tf.reshape(x[: n * n], [n, n])


def _definite(x: Any) -> Any:
    m = _matrix(x[:40_000])
    return tf.matmul(m, m, transpose_b=True) + tf.eye(m.shape[0])


def _image(x: Any) -> Any:
    return _matrix(x)[None, :, :, None]


def _gradient(f: Callable) -> Callable:
    def run(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return run


def _function(f: Callable) -> Callable:
    return lambda x: tf.function(f)(x)


def _loop(x: Any) -> Any:
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.sort(y) + x), (0, x))[1]


def _step(x: Any) -> Any:
    """All variables change, or none: checked in `_whole`."""
    adam = tf.optimizers.Adam(0.5)
    adam.apply_gradients([(tf.ones_like(v) * x[0], v) for v in VARIABLES])


@tf.function
def _assigned(x: Any) -> Any:
    for v in VARIABLES:
        v.assign(tf.reverse(tf.sort(v + x[0]), [0]))
    return tf.sort(x)


WORK: dict[str, Callable] = {
    "sort": tf.sort,
    "argsort": tf.argsort,
    "top_k": lambda x: tf.math.top_k(x, len(x) // 2),
    "fft": lambda x: tf.signal.fft(tf.complex(x, x)),
    "rfft": tf.signal.rfft,
    "where": lambda x: tf.where(x > 0.5),
    "mask": lambda x: tf.boolean_mask(x, x > 0.5),
    "unique": lambda x: tf.unique(tf.cast(x * 1000, tf.int32)),
    "scatter": lambda x: tf.scatter_nd(tf.range(len(x))[:, None], x, [len(x)]),
    "resize": lambda x: tf.image.resize(_image(x), [int(len(x) ** 0.5) * 2] * 2),
    "matmul": lambda x: _matrix(x) @ _matrix(x),
    "conv": lambda x: tf.nn.conv2d(_image(x), tf.ones([3, 3, 1, 8]), 1, "SAME"),
    "cumsum": tf.cumsum,
    "pool": lambda x: tf.nn.max_pool2d(_image(x), 2, 2, "SAME"),
    "concat": lambda x: tf.concat([x, x, x], 0),
    "tile": lambda x: tf.tile(x, [5]),
    "gather": lambda x: tf.gather(x, tf.range(len(x))[::-1]),
    "softmax": tf.nn.softmax,
    "outer": lambda x: x[:, None] * x[None, :1000],
    "einsum": lambda x: tf.einsum("ij,kj->ik", _matrix(x), _matrix(x)),
    "segments": lambda x: tf.math.segment_sum(x, tf.range(len(x)) // 3),
    "cholesky": lambda x: tf.linalg.cholesky(_definite(x)),
    "svd": lambda x: tf.linalg.svd(_matrix(x[:40_000])),
    "eigh": lambda x: tf.linalg.eigh(_definite(x)),
    "qr": lambda x: tf.linalg.qr(_matrix(x[:90_000])),
    "solve": lambda x: tf.linalg.solve(_definite(x), _definite(x)),
    "random": lambda x: tf.random.normal([len(x)]),
    "shuffle": tf.random.shuffle,
    "numpy": lambda x: tf.constant(x.numpy() + 1),
    "stft": lambda x: tf.signal.stft(x, 256, 64),
    "cast": lambda x: tf.cast(x, tf.float64),
    "transpose": lambda x: tf.transpose(_matrix(x)),
    "percentile": lambda x: tf.reduce_max(tf.math.cumprod(x)),
    "stack": lambda x: tf.stack([x] * 4),
    "gradient": _gradient(lambda x: tf.sin(x) * tf.exp(-x)),
    "gradient of sort": _gradient(tf.sort),
    "gradient of matmul": _gradient(lambda x: _matrix(x) @ _matrix(x)),
    "function": _function(lambda x: tf.sin(x) * tf.cumsum(x)),
    "function of sort": _function(lambda x: tf.sort(x) + tf.argsort(x)[0].shape.rank),
    "loop in function": _function(_loop),
    "gradient of function": _gradient(tf.function(lambda x: tf.sort(tf.sin(x)))),
    "gradient of loop": _gradient(tf.function(_loop)),
    "jacobian": lambda x: tf.autodiff.jacobian(tf.sin, x[:3000]),
    "vectorized_map": lambda x: tf.vectorized_map(
        lambda r: tf.sort(r), tf.reshape(x[: len(x) // 4 * 4], [4, -1])
    ),
    "map_fn": lambda x: tf.map_fn(tf.sort, tf.reshape(x[: len(x) // 4 * 4], [4, -1])),
    "optimizer": _step,
    "assignments": _assigned,
    "assign": lambda x: tf.Variable(x).assign_add(x),
    "dataset": lambda x: list(tf.data.Dataset.from_tensor_slices(x[:2000]).batch(500)),
    "array": lambda x: tf.TensorArray(tf.float32, 3).write(0, x).write(1, x).write(2, x).stack(),
    "string": lambda x: str(x),
}
VARIABLES: list = []


def _vm() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _whole() -> None:
    """Checks that all variables have the same value: a step changes all of them or none."""
    values = [v.numpy() for v in VARIABLES]
    if np.ptp(np.concatenate(values)) > 1e-5:
        raise Bad("variables are not whole", str(values), spoiled=True)
    for v in VARIABLES:
        v.assign(tf.ones_like(v))


class Memory:
    """Runs work under a limit."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        warnings.simplefilter("ignore")
        np.seterr(all="ignore")
        tf.get_logger().setLevel("CRITICAL")
        VARIABLES[:] = [tf.Variable(tf.ones([n])) for n in (3, 50_000, 400_000)]
        if not os.environ.get(_COLD):
            for work in WORK.values():
                work(tf.random.stateless_uniform([10_000], [1, 2]))

    def text(self, number: int) -> str:
        rng = random.Random(f"{self.seed}:{number}")
        size = int(2 ** rng.uniform(10, 22))
        return f"{rng.choice(list(WORK))}, {size} elements, {int(2 ** rng.uniform(10, 27))} bytes left"

    def run(self, text: str, number: int) -> Counter[str]:
        name, size, left = text.split(", ")
        x = tf.random.stateless_uniform([int(size.split()[0])], [1, 2])
        gc.collect()
        _core.release_cached_memory()
        message = ""
        limits = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (_vm() + int(left.split()[0]), limits[1]))
        try:
            WORK[name](x)
            outcome = "finished"
        except (
            MemoryError,
            errors.ResourceExhaustedError,
            ImportError,
        ):  # Python's own imports ran out of memory too
            outcome = "refused"
        except Exception as e:
            outcome, message = type(e).__name__, str(e)[:300]
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
        if message:
            raise Bad(f"{outcome} {message.partition(':')[2][:40]}", message)
        _whole()
        y = tf.reduce_sum(tf.sort(tf.constant([3.0, 1.0, 2.0])) * tf.constant([1.0, 10.0, 100.0]))
        z = tf.matmul(tf.fill([9, 9], 2.0), tf.ones([9, 9]))
        if float(y) != 321.0 or float(z[8, 8]) != 18.0:
            raise Bad(f"{name}: the process computes wrong things afterwards", spoiled=True)
        return Counter({"refused" if outcome != "finished" else "finished": 1})


KIND = harness.Kind("memory", Memory, chunk=60, environments=({}, {_COLD: "1"}))


def main(argv: list[str]) -> int:
    return harness.main(KIND, argv)
