"""Sparse times dense, and its gradient, against TensorFlow and SciPy.

    PYTHONPATH=. ~/.cache/gradtape-parity/bin/python benchmarks/sparse.py [--threads] [--quick]

in an environment that has all three (`make parity` creates it; `pip install scipy`). Each row is `a @ b` with a
square sparse matrix `a` in row-major order, and a dense `b` with a few columns, from tensors to a tensor; SciPy has
`a` in its own format (CSR) beforehand. A figure is the time of the other library divided by ours: more than 1 means
that ours is faster. The calls are interleaved, and the least time of many counts: CPU time with one thread each,
wall time with `--threads` (as many as each library takes; SciPy has one).
"""

import argparse
import os
import sys
import time

THREADS = "--threads" in sys.argv
if not THREADS:
    os.environ["GRADTAPE_NUM_THREADS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
import scipy.sparse  # noqa: E402
import tensorflow  # noqa: E402

import gradtape  # noqa: E402

if not THREADS:
    tensorflow.config.threading.set_intra_op_parallelism_threads(1)
    tensorflow.config.threading.set_inter_op_parallelism_threads(1)


def least(calls, budget):
    """The least time of each call, all of them in turn until the budget in seconds is used up."""
    clock = time.perf_counter_ns if THREADS else time.process_time_ns
    best = [np.inf] * len(calls)
    for call in calls:
        call()
    stop = time.perf_counter() + budget
    rounds = 0
    while rounds < 5 or time.perf_counter() < stop:
        for i, call in enumerate(calls):
            begin = clock()
            call()
            best[i] = min(best[i], clock() - begin)
        rounds += 1
    return best


def product(tf, places, values, shape, b):
    a = tf.SparseTensor(places, values, shape)
    b = tf.constant(b)
    return lambda: tf.sparse.sparse_dense_matmul(a, b)


def gradient(tf, places, values, shape, b):
    values, b = tf.constant(values), tf.constant(b)

    def call():
        with tf.GradientTape() as tape:
            tape.watch([values, b])
            y = tf.sparse.sparse_dense_matmul(tf.SparseTensor(places, values, shape), b)
        return tape.gradient(y, [values, b])

    return call


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the time")
    parser.add_argument("--threads", action="store_true", help="as many threads as each library takes")
    budget = 0.1 if parser.parse_args().quick else 1.0
    print(
        "| elements | matrix | columns | type | SciPy / ours | TensorFlow / ours | with gradient: TensorFlow / ours |"
    )
    print("|---|---|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    for elements in (1_000, 10_000, 100_000, 1_000_000):
        size = elements // 10  # ten elements a row
        a = scipy.sparse.random(size, size, 10 / size, "csr", np.float32, rng)
        a.sort_indices()
        coo = a.tocoo()
        places = np.stack([coo.row, coo.col], -1).astype(np.int64)
        for dtype in ("float32", "float64"):
            for columns in (1, 8, 64):
                b = rng.normal(size=(size, columns)).astype(dtype)
                matrix = a.astype(dtype)
                about = (places, coo.data.astype(dtype), a.shape, b)
                calls = [product(gradtape, *about), lambda m=matrix, x=b: m @ x, product(tensorflow, *about)]
                tolerance = 1e-4 if dtype == "float32" else 1e-10
                np.testing.assert_allclose(calls[0](), calls[1](), rtol=tolerance, atol=tolerance)
                ours, scipys, theirs = least(calls, budget)
                back, back_theirs = least([gradient(gradtape, *about), gradient(tensorflow, *about)], budget)
                print(
                    f"| {len(places)} | {size} x {size} | {columns} | {dtype} | {scipys / ours:.2f} | {theirs / ours:.2f} | "
                    f"{back_theirs / back:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
