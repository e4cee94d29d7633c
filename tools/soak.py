"""Trains for a million steps and watches the memory: `python tools/soak.py` (or `make soak`), exit status 1 on growth.

The steps are small, of several kinds taken in turn: usual ones (tapes, functions, optimizers) and ones that go
wrong (tapes dropped half way, exceptions inside, functions traced again). After each part the process must
not hold more than after the second one: bytes and numbers of tensors, Python objects, resident memory.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import gradtape as tf  # noqa: E402

_PARTS = 10
_CACHED = 1100  # a few more than the compiled passes in the cache: later steps evict old ones
_MORE_RESIDENT = 8 << 20  # bytes that the allocator may add
_MORE_OBJECTS = 200
_MORE_TENSORS = 16  # a compiled pass may be evicted for one with more constants
_MORE_BYTES = 16 << 10


class Model:
    """A small network, its data, and an optimizer; the loss goes down."""

    def __init__(self, optimizer: str = "SGD") -> None:
        rng = np.random.default_rng(0)
        self.x = tf.constant(rng.normal(size=(8, 4)).astype("f4"))
        self.y = tf.reduce_sum(self.x, 1, keepdims=True)
        self.w = tf.Variable(rng.normal(size=(4, 6)).astype("f4"))
        self.b = tf.Variable(tf.zeros([6]))
        self.u = tf.Variable(rng.normal(size=(6, 1)).astype("f4"))
        self.variables = [self.w, self.b, self.u]
        self.optimizer = getattr(tf.optimizers, optimizer)(1e-3)

    def loss(self):
        return tf.reduce_mean(tf.square(tf.tanh(self.x @ self.w + self.b) @ self.u - self.y))

    def apply(self, gradients) -> None:
        self.optimizer.apply_gradients(zip(gradients, self.variables, strict=True))


def eager(model: Model) -> Callable[[int], None]:
    """A tape and an optimizer."""

    def step(i: int) -> None:
        with tf.GradientTape() as tape:
            loss = model.loss()
        model.apply(tape.gradient(loss, model.variables))

    return step


def by_hand(model: Model) -> Callable[[int], None]:
    """A tape that is built differently each time in turn, and assignments."""

    def step(i: int) -> None:
        with tf.GradientTape() as tape:
            loss = model.loss()
            for _ in range(i % 4):
                loss = loss * 1.5
        for v, g in zip(model.variables, tape.gradient(loss, model.variables), strict=True):
            v.assign_sub(1e-4 * g)

    return step


def function(model: Model) -> Callable[[int], None]:
    """The whole step in a function."""

    @tf.function
    def train():
        with tf.GradientTape() as tape:
            loss = model.loss()
        model.apply(tape.gradient(loss, model.variables))
        return loss

    def step(i: int) -> None:
        train()

    return step


def dropped(model: Model) -> Callable[[int], None]:
    """Tapes that are left half way, and one whose gradient is never requested."""

    def step(i: int) -> None:
        tape = tf.GradientTape()
        tape.__enter__()
        h = tf.tanh(model.x @ model.w)
        if i % 2:
            tape.__exit__(None, None, None)
            tape.gradient(h, model.w)
        else:
            tape.__exit__(None, None, None)

    return step


def failing(model: Model) -> Callable[[int], None]:
    """Exceptions inside tapes and in gradients."""

    @tf.custom_gradient
    def breaks(x):
        def grad(g):
            raise RuntimeError("in the gradient")

        return x * 1.0, grad

    def step(i: int) -> None:
        try:
            with tf.GradientTape() as tape:
                h = tf.tanh(model.x @ model.w)
                if i % 3 == 0:
                    h = h @ model.x  # shapes that do not fit
                if i % 3 == 1:
                    h = breaks(h)
            tape.gradient(h, model.w)
            tape.gradient(h, model.w)  # a second time
        except (tf.errors.InvalidArgumentError, RuntimeError):
            pass

    return step


def persistent(model: Model) -> Callable[[int], None]:
    """A tape whose gradient is requested twice, and a second derivative."""

    def step(i: int) -> None:
        with tf.GradientTape(persistent=True) as outer:
            with tf.GradientTape() as inner:
                loss = model.loss()
            g = inner.gradient(loss, model.b)
            s = tf.reduce_sum(g * g)
        outer.gradient(s, model.b)
        outer.gradient(loss, model.w)

    return step


def slices(model: Model) -> Callable[[int], None]:
    """Sparse gradients into an optimizer with slots."""
    table = tf.Variable(tf.ones([20, 4]))
    optimizer = tf.optimizers.Adam(1e-3)

    def step(i: int) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, [i % 20, 3, 3]) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, table), table)])

    return step


def retraced(model: Model) -> Callable[[int], None]:
    """Functions that come and go, and one that is traced for several shapes."""

    @tf.function
    def total(x):
        return tf.reduce_sum(x * 2.0)

    def step(i: int) -> None:
        if i % 20 == 0:
            fresh = tf.function(lambda x: tf.reduce_mean(x @ model.w))
            with tf.GradientTape() as tape:
                y = fresh(model.x)
            tape.gradient(y, model.w)
        total(model.x[: i % 5 + 1])

    return step


# How many of ten thousand steps are of each flavour.
FLAVOURS: dict[Callable[[Model], Callable[[int], None]], int] = {
    eager: 2500, by_hand: 1000, function: 3000, dropped: 1000, failing: 500, persistent: 500, slices: 500, retraced: 1000
}  # fmt: skip


class Held(NamedTuple):
    """The process's memory and objects."""

    tensors: int
    tensor_bytes: int
    objects: int
    resident: int


def held() -> Held:
    for _ in range(3):  # objects that native ones keep alive are only found once those are freed
        gc.collect()
    info = tf.config.memory_info()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Held(
        info["live_tensors"], info["live_bytes"], len(gc.get_objects()), pages * os.sysconf("SC_PAGE_SIZE")
    )


def growth(first: Held, last: Held) -> list[str]:
    """The figures that grew beyond the limit."""
    more = [
        ("tensors", last.tensors - first.tensors, _MORE_TENSORS),
        ("bytes of tensors", last.tensor_bytes - first.tensor_bytes, _MORE_BYTES),
        ("Python objects", last.objects - first.objects, _MORE_OBJECTS),
        ("bytes of memory", last.resident - first.resident, _MORE_RESIDENT),
    ]
    return [f"{grown} more {what}" for what, grown, most in more if grown > most]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    options = parser.parse_args()
    steps = {f.__name__: f(Model("Adam" if f is function else "SGD")) for f in FLAVOURS}
    for _ in range(_CACHED):
        steps["retraced"](0)
    model = Model()
    first_loss = float(model.loss())
    steps["eager"] = eager(model)
    rounds = max(1, options.steps // _PARTS // sum(FLAVOURS.values()))
    scale = min(1.0, options.steps / _PARTS / sum(FLAVOURS.values()))
    done, start, begun, base = 0, time.monotonic(), time.monotonic(), None
    problems: list[str] = []
    for part in range(_PARTS):
        for _ in range(rounds):
            for flavour, count in FLAVOURS.items():
                step = steps[flavour.__name__]
                for i in range(int(count * scale)):
                    step(i)
                done += int(count * scale)
        current = held()
        seconds = time.monotonic() - begun
        begun = time.monotonic()
        print(
            f"{done:8d} steps, {1e6 * seconds * (part + 1) / done:5.1f} us a step, {current.tensors} tensors, "
            f"{current.tensor_bytes} bytes, {current.objects} objects, {current.resident / 2**20:.1f} MiB",
            flush=True,
        )
        if part == 1:
            base = current  # caches have been filled
        elif base is not None:
            problems = growth(base, current)
    if not float(model.loss()) < first_loss:
        problems.append("the loss has not fallen")
    print(f"{done} steps in {time.monotonic() - start:.0f} s: {'; '.join(problems) or 'no growth'}")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
