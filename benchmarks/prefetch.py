"""Does a slow consumer wait for a fast producer? Ratios, for pipelines with `prefetch` and without.

    python benchmarks/prefetch.py

A consumer of each pipeline waits for the producer in `next` as long as an element takes (`alone`), then does
something for twice that time. The figures are its waiting times with `prefetch`, divided by those without: about 0
if elements are produced ahead. The median over an iteration counts, without the first elements, which cannot be
produced ahead.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as tf

ELEMENTS, FIRST, SECONDS = 60, 8, 0.004


def _generated() -> Any:
    def elements() -> Any:
        for k in range(ELEMENTS):
            time.sleep(SECONDS)
            yield k

    return tf.data.Dataset.from_generator(elements, output_signature=tf.TensorSpec((), tf.int64))


def _python() -> Any:
    def slow(x: Any) -> Any:
        time.sleep(SECONDS)
        return x

    return tf.data.Dataset.range(ELEMENTS).map(lambda x: tf.py_function(slow, [x], tf.int64))


def _computed() -> Any:
    """A pipeline of ops only."""
    matrix = tf.constant(np.full([192, 192], 1 / 192, np.float32))

    def powers(x: Any) -> Any:
        y = matrix * tf.cast(x, tf.float32)
        for _ in range(64):
            y = matrix @ y
        return y

    return tf.data.Dataset.range(ELEMENTS).map(powers)


PIPELINES: dict[str, Callable[[], Any]] = {
    "a generator": _generated,
    "a map over Python code": _python,
    "a map over ops": _computed,
}


def waits(pipeline: Any, pause: float) -> list[float]:
    """How long a consumer that takes `pause` seconds per element waits for each element."""
    times, it = [], iter(pipeline)
    for _ in range(ELEMENTS):
        start = time.perf_counter()
        next(it)
        times.append(time.perf_counter() - start)
        time.sleep(pause)
    return times


def main() -> None:
    """Prints the table."""
    print(f"{'pipeline':26}{'prefetch(1)':>14}{'prefetch(4)':>14}{'AUTOTUNE':>12}")
    for name, make in PIPELINES.items():
        alone = statistics.median(waits(make(), SECONDS)[FIRST:])
        medians = [
            statistics.median(waits(make().prefetch(room), 2 * alone)[FIRST:]) / alone
            for room in (1, 4, tf.data.AUTOTUNE)
        ]
        print(f"{name:26}{medians[0]:14.3f}{medians[1]:14.3f}{medians[2]:12.3f}")


if __name__ == "__main__":
    main()
