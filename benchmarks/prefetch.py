"""Does a slow consumer wait for a fast producer? Ratios, for pipelines with `prefetch` and without.

    python benchmarks/prefetch.py

The producer of each pipeline takes a time of its own per element, the consumer twice that. The figure is how long the
consumer waits in `next`, over the producer's time: about 1 where an element is made when it is asked for, about 0 where
it was made ahead. The median over the elements of an iteration counts; the first few, which nobody can make ahead, do not.
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
    """Nothing but ops: as many products of matrices as take the time."""
    matrix = tf.constant(np.full([192, 192], 1 / 192, np.float32))

    def powers(x: Any, count: int) -> Any:
        y = matrix * tf.cast(x, tf.float32)
        for _ in range(count):
            y = matrix @ y
        return y

    one = tf.function(lambda x: powers(x, 8))
    one(tf.constant(1))
    start = time.perf_counter()
    for _ in range(10):
        one(tf.constant(1))
    count = max(1, round(8 * SECONDS / ((time.perf_counter() - start) / 10)))
    return tf.data.Dataset.range(ELEMENTS).map(lambda x: powers(x, count))


PIPELINES: dict[str, Callable[[], Any]] = {
    "a generator": _generated,
    "a map over Python code": _python,
    "a map over ops": _computed,
}


def waits(pipeline: Any, pause: float) -> list[float]:
    """How long a consumer that takes `pause` seconds per element waits for each element."""
    found, it = [], iter(pipeline)
    for _ in range(ELEMENTS):
        start = time.perf_counter()
        next(it)
        found.append(time.perf_counter() - start)
        time.sleep(pause)
    return found


def main() -> None:
    """Prints the table."""
    print(f"{'pipeline':26}{'alone':>10}{'prefetch(1)':>14}{'prefetch(4)':>14}{'AUTOTUNE':>12}")
    for name, make in PIPELINES.items():
        ratios = []
        for room in (0, 1, 4, tf.data.AUTOTUNE):
            found = waits(make().prefetch(room), 2 * SECONDS)[FIRST:]
            ratios.append(statistics.median(found) / SECONDS)
        print(f"{name:26}{ratios[0]:10.2f}{ratios[1]:14.3f}{ratios[2]:14.3f}{ratios[3]:12.3f}")


if __name__ == "__main__":
    main()
