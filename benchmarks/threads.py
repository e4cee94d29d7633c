"""One thread and two, each with its own variables and its own tape: how much more do two of them get done?

    ~/.cache/gradtape-pythons/env-3.13t/bin/python benchmarks/threads.py  # after make free-threaded, with PYTHONPATH=.
    .venv/bin/python benchmarks/threads.py --only W1 W3  # with the interpreter's lock

A figure is the steps per second of two threads divided by those of one. Without the interpreter's lock, and with
two free cores, it should be near 2; with the lock it is near 1. `shared` is one tf.function that both threads call,
which changes no variables: steps that change the same ones run one after the other. The core's own threads are off.
Nothing is published.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable

from workloads import tensorflow_api

import gradtape as tf

CASES = ("W1", "W2", "W3")
MODES = ("eager", "function", "shared")


def _seconds(runs: list[Callable[[int], object]], n: int) -> float:
    """The time in which each of the runs has made n steps, all at once."""
    start = threading.Barrier(len(runs) + 1)

    def work(run: Callable[[int], object]) -> None:
        start.wait()
        run(n)

    threads = [threading.Thread(target=work, args=(run,)) for run in runs]
    for t in threads:
        t.start()
    start.wait()
    begin = time.perf_counter()
    for t in threads:
        t.join()
    return time.perf_counter() - begin


def _runs(name: str, mode: str) -> list[Callable[[int], object]]:
    """The function that two threads run."""
    cases = [tensorflow_api.build(tf, name, "eager" if mode == "eager" else "function") for _ in range(2)]
    if mode == "shared":
        cases[1] = cases[0]
    for case in cases:
        assert case.run is not None
        case.run(20)  # traces and compiles
    return [case.run for case in cases if case.run is not None]


def measure(name: str, mode: str, rounds: int) -> tuple[float, float]:
    """Microseconds of a step in one thread, and how much more two threads do; both of the best rounds."""
    runs = _runs(name, mode)
    n = max(1, int(20 / _seconds(runs[:1], 20) * 0.1))  # a tenth of a second
    one = min(_seconds(runs[:1], n) for _ in range(rounds))
    two = min(_seconds(runs, n) for _ in range(rounds))
    return 1e6 * one / n, 2 * one / two


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=CASES, help="workloads")
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"Python {sys.version.split()[0]}, the interpreter's lock is {'on' if locked else 'off'}")
    for name in args.only:
        for mode in MODES:
            if mode == "shared" and name != "W1":
                continue
            each, more = measure(name, mode, args.rounds)
            print(f"{name} {mode:8} {each:9.1f} us a step in one thread; two do {more:.2f} times as much")


if __name__ == "__main__":
    main()
