"""One thread and two, each with its own variables and its own tape: how much more do two of them get done?

    ~/.cache/gradtape-pythons/env-3.13t/bin/python benchmarks/threads.py  # after make free-threaded, with PYTHONPATH=.
    .venv/bin/python benchmarks/threads.py --only W1 W3  # with the interpreter's lock

A figure is the steps of two threads in a second over those of one. Without the interpreter's lock, and with two free
cores, it should be near 2; with the lock it is near 1. `shared` is one tf.function that both threads call, which
changes no variables: steps that change the same ones come one after the other. `loop` is a plain Python loop, which
shows what the machine and the interpreter allow. The core's own threads are off.

One thread and two take turns of a few milliseconds, and the best of each counts: on a busy machine, too, there are
turns during which nobody else runs. Nothing is published.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable

from workloads import tensorflow_api

import gradtape as tf

CASES = ("loop", "W1", "W2", "W3")
MODES = ("eager", "function", "shared")

Run = Callable[[int], object]


class Workers:
    """Two threads that run steps on request, alone or both at once."""

    def __init__(self, runs: list[Run]) -> None:
        self._gate = threading.Barrier(len(runs) + 1)
        self._steps = [0] * len(runs)
        self._times = [(0.0, 0.0)] * len(runs)
        for k, run in enumerate(runs):
            threading.Thread(target=self._work, args=(k, run), daemon=True).start()

    def _work(self, k: int, run: Run) -> None:
        while True:
            self._gate.wait()
            n = self._steps[k]
            if n < 0:
                return
            begin = time.perf_counter()
            if n:
                run(n)
            self._times[k] = begin, time.perf_counter()
            self._gate.wait()

    def turn(self, *steps: int) -> float:
        """Seconds from the first start to the last end."""
        self._steps[:] = steps
        self._gate.wait()
        self._gate.wait()
        used = [t for t, n in zip(self._times, steps, strict=True) if n]
        return max(end for _, end in used) - min(begin for begin, _ in used)

    def stop(self) -> None:
        self._steps[:] = [-1] * len(self._steps)
        self._gate.wait()


def _count(n: int) -> int:
    total = 0
    for _ in range(200 * n):
        total += 1
    return total


def _runs(name: str, mode: str) -> list[Run]:
    """The step that the two threads run."""
    if name == "loop":
        return [_count, _count]
    made = [tensorflow_api.build(tf, name, "eager" if mode == "eager" else "function") for _ in range(2)]
    if mode == "shared":
        made[1] = made[0]
    return [case.run for case in made if case.run is not None]


def measure(name: str, mode: str, turns: int, seconds: float) -> tuple[float, float]:
    """Microseconds of a step in one thread, and how much more two threads do; both of the best turns."""
    workers = Workers(_runs(name, mode))
    for alone in ((20, 0), (0, 20)):  # traces and compiles
        workers.turn(*alone)
    n = max(1, int(20 * seconds / workers.turn(20, 0)))
    one = two = float("inf")
    for k in range(turns):
        one = min(one, workers.turn(n, 0) if k % 2 else workers.turn(0, n))
        two = min(two, workers.turn(n, n))
    workers.stop()
    return 1e6 * one / n, 2 * one / two


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=CASES, help="workloads")
    parser.add_argument("--modes", nargs="*", default=MODES, help="of them")
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--milliseconds", type=float, default=5.0, help="of a turn")
    args = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"Python {sys.version.split()[0]}, the interpreter's lock is {'on' if locked else 'off'}")
    for name in args.only:
        for mode in args.modes if name != "loop" else ("python",):
            if mode == "shared" and name != "W1":
                continue
            each, more = measure(name, mode, args.turns, args.milliseconds / 1000)
            print(f"{name} {mode:8} {each:9.1f} us a step in one thread; two do {more:.2f} times as much")


if __name__ == "__main__":
    main()
