"""Threads that share what users share (variables, functions, optimizers, iterators), at a tiny switch interval.

A case is one scenario with its sizes. The results of each thread are compared with those it would get alone, or with
an invariant: a variable has a complete value that was assigned.
"""

from __future__ import annotations

import gc
import random
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as tf
from gradtape import _core
from tools.fuzz import harness
from tools.fuzz.harness import Bad

_SCENARIOS: dict[str, Callable[[random.Random], None]] = {}


def _scenario(run: Callable) -> Callable:
    _SCENARIOS[run.__name__] = run
    return run


def _together(*works: Callable[[], None]) -> None:
    """Runs each function on its own thread; raises the first exception here."""
    start, errors = threading.Barrier(len(works)), []

    def run(work: Callable[[], None]) -> None:
        start.wait()
        try:
            work()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


def _must(holds: Any, what: str) -> None:
    if not holds:
        raise Bad(what)


@_scenario
def functions_read_what_others_assign(rng: random.Random) -> None:
    """All elements of a variable are equal, whichever thread assigned it last."""
    size = rng.choice([16, 2048, 2048, 40_000])
    variables = [tf.Variable(tf.zeros([size])) for _ in range(rng.choice([1, 40, 400]))]
    stop = threading.Event()
    values = [tf.fill([size], float(k)) for k in range(1, 5)]

    @tf.function
    def read():
        return tf.stack([tf.reduce_max(v) - tf.reduce_min(v) for v in variables])

    @tf.function
    def whole():
        return [tf.identity(v) for v in variables[:3]]

    assign = tf.function(lambda x: [v.assign(x) for v in variables] and x) if rng.random() < 0.3 else None

    def reader() -> None:
        try:
            for _ in range(rng.choice([20, 60])):
                _must(not np.any(read()), "a function saw a part of one assignment and a part of another")
                for x in whole():
                    _must(np.ptp(x.numpy()) == 0, "a function returned parts of two assignments")
        finally:
            stop.set()

    def writer(mine: int) -> Callable[[], None]:
        def run() -> None:
            k = mine
            while not stop.is_set():
                k = (k + 1) % 4
                if assign is not None and mine:
                    assign(values[k])
                    continue
                for v in variables:
                    v.assign(values[k])

        return run

    _together(reader, writer(0), writer(2))


@_scenario
def functions_that_assign(rng: random.Random) -> None:
    """No step is lost if the user serialises the calls; without that, values stay complete."""
    v = tf.Variable(tf.zeros([rng.choice([4, 5000])]))
    lock = threading.Lock()
    steps, threads = rng.randint(20, 100), rng.randint(2, 5)

    @tf.function
    def add(x):
        v.assign_add(tf.ones_like(v) * x)
        return tf.reduce_max(v) - tf.reduce_min(v)

    locked = rng.random() < 0.5

    def work() -> None:
        for _ in range(steps):
            if locked:
                with lock:
                    spread = add(tf.constant(1.0))
            else:
                spread = add(tf.constant(1.0))
            _must(float(spread) == 0, "an assignment was seen in parts")

    _together(*[work] * threads)
    x = v.numpy()
    _must(
        np.ptp(x) == 0 and (x[0] == steps * threads or (not locked and x[0] <= steps * threads)),
        "steps were lost",
    )


@_scenario
def tapes_of_their_own(rng: random.Random) -> None:
    x = tf.Variable([2.0, 3.0])
    f = tf.function(lambda t, k: t * t * k)

    def work(k: int) -> Callable[[], None]:
        def run() -> None:
            for _ in range(30):
                with tf.GradientTape() as tape:
                    y = tf.reduce_sum(f(x, tf.constant(float(k)))) + x[0] * float(k)
                g = tape.gradient(y, x)
                _must(
                    g is not None and np.array_equal(g, [5.0 * k, 6.0 * k]), "the tape of a thread is wrong"
                )

        return run

    _together(*[work(k) for k in range(1, rng.randint(3, 7))])


@_scenario
def tape_left_elsewhere(rng: random.Random) -> None:
    """A tape that is entered in one thread and left, or collected, in another."""
    x = tf.Variable(3.0)
    tape: Any = tf.GradientTape()
    tape.__enter__()
    y = x * x
    way = rng.choice(["exit", "collect", "gradient"])
    results: list = []

    def other() -> None:
        if way == "exit":
            tape.__exit__(None, None, None)
        elif way == "gradient":
            results.append(tape.gradient(y, x))

    if way == "collect":
        cycle = _abandoned(x)
        del cycle
        _together(lambda: gc.collect() and None)
        tape.__exit__(None, None, None)
    else:
        _together(other)
    for _ in range(300):
        y = y * 1.0 + tf.sin(x)
    if way == "gradient":
        _must(float(results[0]) == 6.0, "the gradient taken in another thread is wrong")
    tape = None
    gc.collect()
    with tf.GradientTape() as fresh:
        z = x * x
    _must(float(fresh.gradient(z, x)) == 6.0, "a tape after one that was left elsewhere is wrong")
    _must(not _core.is_recording(), "a tape that was left in another thread still records")


def _abandoned(x: Any) -> Any:
    def generator() -> Any:
        with tf.GradientTape() as tape:
            me.append(tape)
            yield x * x

    me: list = []
    g = generator()
    next(g)
    me.append(g)
    me.append(me)
    return me


@_scenario
def one_function_traced_by_all(rng: random.Random) -> None:
    traces = []

    @tf.function
    def f(x, k):
        traces.append(1)
        y = x
        if tf.reduce_sum(x) > 0.0:
            y = y * 2.0
        return y * k

    sizes = [rng.randint(1, 5) for _ in range(4)]

    def work(k: int) -> Callable[[], None]:
        def run() -> None:
            for n in sizes:
                for _ in range(5):
                    _must(np.array_equal(f(tf.ones([n]), k), [2.0 * k] * n), "a shared function is wrong")

        return run

    _together(*[work(k % 2 + 1) for k in range(rng.randint(2, 6))])


@_scenario
def optimizers(rng: random.Random) -> None:
    """Each thread has an optimizer; they share a variable whose values stay complete."""
    shared = tf.Variable(tf.zeros([rng.choice([8, 3000])]))
    own = [tf.Variable([1.0, 2.0]) for _ in range(rng.randint(2, 4))]
    steps = rng.randint(5, 30)

    def work(v: Any) -> Callable[[], None]:
        def run() -> None:
            sgd = tf.optimizers.SGD(0.125)
            for _ in range(steps):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(v * v) + tf.reduce_sum(shared)
                sgd.apply_gradients(zip(tape.gradient(loss, [v, shared]), [v, shared], strict=True))
                _must(np.ptp(shared.numpy()) == 0, "a step was seen in parts")

        return run

    _together(*[work(v) for v in own])
    for v in own:
        _must(np.allclose(v, np.array([1.0, 2.0]) * 0.75**steps), "an optimizer's own variable is wrong")


@_scenario
def one_iterator(rng: random.Random) -> None:
    """Each element goes to one of the threads."""
    n = rng.randint(10, 200)
    data = tf.data.Dataset.range(n)
    if rng.random() < 0.5:
        data = data.map(lambda x: x + 0, num_parallel_calls=rng.choice([None, 2]))
    if rng.random() < 0.5:
        data = data.prefetch(2)
    iterator = iter(data)
    taken: list = []

    def work() -> None:
        for x in iterator:
            taken.append(int(x))

    _together(*[work] * rng.randint(2, 4))
    _must(sorted(taken) == list(range(n)), "elements of an iterator were lost or came twice")


@_scenario
def variables_come_and_go(rng: random.Random) -> None:
    def work() -> None:
        for k in range(40):
            v = tf.Variable(tf.fill([rng.choice([1, 3000])], float(k)))
            f = tf.function(lambda x, v=v: x * v)
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(f(tf.constant(2.0)))
            _must(bool(np.all(tape.gradient(y, v).numpy() == 2.0)), "a gradient in a thread is wrong")
            if k % 10 == 0:
                gc.collect()

    _together(*[work] * 3)


class Threads:
    """Runs scenarios at a switch interval at which threads take turns within ops."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.names = sorted(_SCENARIOS)
        warnings.simplefilter("ignore")
        tf.get_logger().setLevel("CRITICAL")
        sys.setswitchinterval(1e-6)

    def text(self, number: int) -> str:
        return f"{self.names[number % len(self.names)]} {number // len(self.names)}"

    def run(self, text: str, number: int) -> Counter[str]:
        name, _, turn = text.partition(" ")
        try:
            _SCENARIOS[name](random.Random(f"{self.seed}:{turn}"))
        except Bad as e:
            raise Bad(f"{name}: {e.sort}", e.detail) from e
        except Exception as e:
            raise Bad(f"{name}: {type(e).__name__}", str(e)[:300]) from e
        return Counter()


KIND = harness.Kind("threads", Threads, chunk=80)


def main(argv: list[str]) -> int:
    return harness.main(KIND, argv)
