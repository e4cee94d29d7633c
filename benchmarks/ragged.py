"""Ragged tensors against TensorFlow's: sums, means and element-wise functions of 10^3 to 10^6 values.

    python benchmarks/ragged.py ~/.cache/gradtape-parity/bin/python [--quick]

The argument is a Python that has TensorFlow. The two libraries take turns, each in its own process; a figure is the
least wall time of a call by TensorFlow divided by ours, so that more than 1 means that ours is faster. Rows have
ten values on average; `cold` is a newly created ragged tensor, with nothing cached about its rows.

On two cores of an AMD EPYC, with other work running, 17 November 2026: sums, means and extrema of rows are 2 to 270
times as fast, sums of columns 4.5 (10^6 values) to 22 times, element-wise functions 1.2 (`exp` of 10^6 values) to
1,600 times; slices, `concat` and `to_tensor`, which copy rows (`core/ops/runs.cpp`), 3 to 24 times; gradients 4 to
220 times.
"""

import argparse
import json
import subprocess
import sys
import time

SIZES = (10**3, 10**4, 10**5, 10**6)


def calls(tf, n):
    import numpy as np

    rng = np.random.default_rng(0)
    values = tf.constant(rng.normal(size=n).astype(np.float32))
    splits = np.minimum(np.concatenate([[0], np.cumsum(rng.poisson(10, n // 10))]), n)
    splits[-1] = n
    splits = tf.constant(splits)
    rt = tf.RaggedTensor.from_row_splits(values, splits)
    other = tf.RaggedTensor.from_row_splits(values + 1.0, tf.identity(splits))
    weights = tf.constant(rng.normal(size=(n // 10, 1)).astype(np.float32))

    def cold():
        return tf.RaggedTensor.from_row_splits(values, splits, validate=False)

    def gradient(function):
        def computed():
            with tf.GradientTape() as tape:
                tape.watch(values)
                y = tf.reduce_sum(tf.square(function(cold())))
            return tape.gradient(y, values)

        return computed

    return {
        "reduce_sum(rt, 1)": lambda: tf.reduce_sum(rt, 1),
        "reduce_sum(cold, 1)": lambda: tf.reduce_sum(cold(), 1),
        "reduce_max(rt, 1)": lambda: tf.reduce_max(rt, 1),
        "reduce_mean(rt, 1)": lambda: tf.reduce_mean(rt, 1),
        "reduce_sum(rt, 0)": lambda: tf.reduce_sum(rt, 0),
        "reduce_max(rt, 0)": lambda: tf.reduce_max(rt, 0),
        "exp(rt)": lambda: tf.exp(rt),
        "rt * 2": lambda: rt * 2.0,
        "rt + rt": lambda: rt + rt,
        "rt + other": lambda: rt + other,
        "rt * column": lambda: rt * weights,
        "nn.softmax(rt)": lambda: tf.nn.softmax(rt),
        "rt[:, 1:]": lambda: rt[:, 1:],
        "to_tensor": lambda: rt.to_tensor(),
        "concat([rt, rt], 1)": lambda: tf.concat([rt, rt], 1),
        "gradient of reduce_sum(., 1)": gradient(lambda x: tf.reduce_sum(x, 1)),
        "gradient of reduce_sum(., 0)": gradient(lambda x: tf.reduce_sum(x, 0)),
        "gradient of to_tensor": gradient(lambda x: x.to_tensor()),
        "gradient of a slice": gradient(lambda x: x[:, 1:].values),
        "gradient of a concat": gradient(lambda x: tf.concat([x, x], 1).values),
    }


def worker(library, budget):
    """Prints the least time of each call."""
    tf = __import__(library)
    results = {}
    for n in SIZES:
        for name, call in calls(tf, n).items():
            call()
            best, rounds = float("inf"), 0
            stop = time.perf_counter() + budget
            while rounds < 3 or time.perf_counter() < stop:
                begin = time.perf_counter_ns()
                call()
                best = min(best, time.perf_counter_ns() - begin)
                rounds += 1
            results[f"{name}|{n}"] = best
    print(json.dumps(results))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("python", help="a Python that has TensorFlow")
    parser.add_argument("--quick", action="store_true", help="a tenth of the time")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    budget = 0.02 if options.quick else 0.2
    if options.worker:
        worker(options.worker, budget)
        return
    best = {"gradtape": {}, "tensorflow": {}}
    for _ in range(1 if options.quick else 3):
        for library, python in (("gradtape", sys.executable), ("tensorflow", options.python)):
            flags = ["--quick"] if options.quick else []
            command = [python, __file__, options.python, "--worker", library, *flags]
            out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
            for key, figure in json.loads(out.stdout.splitlines()[-1]).items():
                best[library][key] = min(figure, best[library].get(key, figure))
    print("| call |" + "".join(f" {n:,} |" for n in SIZES))
    print("|---|" + "---|" * len(SIZES))
    for name in dict.fromkeys(key.split("|")[0] for key in best["gradtape"]):
        ratios = [best["tensorflow"][f"{name}|{n}"] / best["gradtape"][f"{name}|{n}"] for n in SIZES]
        print(f"| `{name}` |" + "".join(f" {r:.1f} |" for r in ratios))


if __name__ == "__main__":
    main()
