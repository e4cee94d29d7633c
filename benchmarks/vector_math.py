"""Element-wise functions in two builds of gradtape, in turns: is the vector math as fast as before?

    python benchmarks/vector_math.py --before ../before/.venv/bin/python
    python benchmarks/vector_math.py --before PYTHON --only sin pow --types f32 --levels 3 4

The ratio is the time before over the time now: above one ours is faster. Minima of many short turns on one thread,
on arrays that stay in the level-1 cache. Nothing is published.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

# The range of the random arguments: where most arguments are in programs.
UNARY = {
    "exp": (-10, 10), "expm1": (-4, 4), "log": (0.01, 20), "log1p": (-0.9, 10), "sin": (-10, 10), "cos": (-10, 10),
    "tan": (-10, 10), "asin": (-1, 1), "acos": (-1, 1), "atan": (-5, 5), "sinh": (-5, 5), "cosh": (-5, 5),
    "tanh": (-4, 4), "asinh": (-5, 5), "acosh": (1, 10), "atanh": (-0.99, 0.99), "erf": (-3, 3), "erfc": (-3, 3),
}  # fmt: skip
BINARY = {"pow": ((0.1, 10), (-3, 3)), "atan2": ((-5, 5), (-5, 5)), "hypot": ((-5, 5), (-5, 5))}
NAMES = [*UNARY, *BINARY]
TYPES = {"f32": "float32", "f64": "float64"}
COUNT, CALLS = 4096, 20

# The program of one process: reads a name and a type per line, answers the least time of a call in nanoseconds.
WORKER = """
import sys, time, json
import numpy as np
import gradtape as tf
tf.config.threading.set_intra_op_parallelism_threads(1)
for line in sys.stdin:
    name, dtype, ranges, count, calls = json.loads(line)
    random = np.random.RandomState(7)
    xs = [tf.constant(random.uniform(low, high, count).astype(dtype)) for low, high in ranges]
    function = getattr(tf.experimental.numpy if name == "hypot" else tf, name, None) or getattr(tf.math, name)
    least = 1e9
    for _ in range(30):
        start = time.perf_counter_ns()
        for _ in range(calls):
            function(*xs)
        least = min(least, (time.perf_counter_ns() - start) / calls)
    print(least, flush=True)
"""


class Worker:
    """A process with one build and one level of instructions."""

    def __init__(self, python: str, level: int) -> None:
        self.process = subprocess.Popen(
            [python, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/",
            env={**os.environ, "GRADTAPE_ISA": str(level)},
        )  # fmt: skip

    def time(self, name: str, dtype: str) -> float:
        assert self.process.stdin and self.process.stdout
        ranges = BINARY.get(name) or [UNARY[name]]
        print(json.dumps([name, dtype, ranges, COUNT, CALLS]), file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", required=True, help="the Python that has the other build")
    parser.add_argument("--only", nargs="*", default=NAMES, choices=NAMES, metavar="name")
    parser.add_argument("--types", nargs="*", default=list(TYPES), choices=list(TYPES))
    parser.add_argument("--levels", nargs="*", type=int, default=[2, 3, 4], help="of x86-64: 2, 3, 4")
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    print("nanoseconds an element, before -> now, and how often the one is in the other")
    for level in options.levels:
        before, after = Worker(options.before, level), Worker(sys.executable, level)
        for short in options.types:
            ratios = []
            for name in options.only:
                least = [1e9, 1e9]
                for _ in range(options.rounds):
                    for k, worker in enumerate((before, after)):
                        least[k] = min(least[k], worker.time(name, TYPES[short]))
                was, takes = (t / COUNT for t in least)
                ratios.append(was / takes)
                slow = "  <-- slower" if ratios[-1] < 0.97 else ""
                print(
                    f"v{level} {short} {name:6} {was:7.3f} -> {takes:7.3f}   {ratios[-1]:5.2f}{slow}",
                    flush=True,
                )
            print(f"v{level} {short}: the least ratio is {min(ratios):.2f}", flush=True)
        before.close()
        after.close()


if __name__ == "__main__":
    main()
