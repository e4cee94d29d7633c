"""The cost of exchanging gradients between two processes, against the engine that carries it.

    python benchmarks/exchange.py                      # JAX, MPI where mpirun is there, and a training step
    python benchmarks/exchange.py jax --rounds 200 --json exchange.json

The gradients are those of W4 (an MLP 784-512-512-10, six tensors, 2.7 MB). `ours` is one all-reduce of the six
tensors through a group: packed, checked, summed, unpacked. `engine` is what JAX or MPI itself takes for one
all-reduce of as many bytes, from and to its own buffer. Both take turns in the same two processes on loopback, and
the minimum of many rounds counts, as the machine is shared. `step` is a whole training step, by one process with
the whole batch and by two with half of it each, one thread per process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

SHAPES = [(784, 512), (512,), (512, 512), (512,), (512, 10), (10,)]
BATCH = 128


def timed(f: Callable[[], Any]) -> float:
    start = time.perf_counter()
    f()
    return (time.perf_counter() - start) * 1e3


def summary(samples: list[float]) -> dict[str, float]:
    return {"min_ms": min(samples), "median_ms": statistics.median(samples), "samples": len(samples)}


def ratios(a: dict[str, float], b: dict[str, float]) -> dict[str, float]:
    """Ratios of minima and of medians: while other programs run, the minimum of many short samples is luck."""
    return {"ratio": a["min_ms"] / b["min_ms"], "ratio of medians": a["median_ms"] / b["median_ms"]}


# ---- in the processes -----------------------------------------------------------------------------------


def exchange(rounds: int) -> dict[str, Any]:
    """Ours and the engine's, in turns."""
    import numpy as np

    import gradtape as tf
    from gradtape._src.control.collective import all_reduce

    group = tf.distribute.MultiWorkerMirroredStrategy()._group
    rng = np.random.default_rng(group.rank)
    gradients = [tf.constant(rng.standard_normal(s).astype(np.float32)) for s in SHAPES]
    count = sum(int(np.prod(s)) for s in SHAPES)
    carrier = group._carrier

    @tf.function
    def in_graph(*xs: Any) -> Any:
        return all_reduce(group, list(xs))

    if type(carrier).__name__ == "MpiCarrier":
        from mpi4py import MPI

        given, got = np.ones(count, np.float32), np.empty(count, np.float32)

        def engine() -> None:
            MPI.COMM_WORLD.Allreduce(given, got, op=MPI.SUM)
    else:
        _, whole, program = carrier._program("sum", count, np.float32)

        def engine() -> None:
            program(whole).block_until_ready()

    ways = {
        "engine": engine,
        "ours": lambda: group.all_reduce(gradients),
        "ours, in a function": lambda: in_graph(*gradients),
        "smallest": lambda: group.all_reduce([gradients[-1]]),
    }
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for f in ways.values():
        f()
    for _ in range(rounds):
        for name, f in ways.items():
            group.barrier()  # so that no process waits for the other in the measured part
            samples[name].append(timed(f))
    return {"bytes": 4 * count, **{name: summary(s) for name, s in samples.items()}}


def step(rounds: int) -> dict[str, Any]:
    """A training step of W4 with Adam, of this process' share of the batch."""
    import numpy as np

    import gradtape as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    n = strategy.num_replicas_in_sync
    rng = np.random.default_rng(1234)
    with strategy.scope():
        layers = [
            tf.Variable((rng.standard_normal(s) * (2 / s[0]) ** 0.5).astype(np.float32)) for s in SHAPES
        ]
        optimizer = tf.optimizers.Adam(1e-3)
        optimizer.build(layers)
    x = tf.constant(rng.random((BATCH // n, 784)).astype(np.float32))
    y = tf.constant(rng.integers(0, 10, BATCH // n).astype(np.int32))

    def replica(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            h = x
            for k in range(0, 6, 2):
                h = tf.matmul(h, layers[k]) + layers[k + 1]
                h = tf.nn.relu(h) if k < 4 else h
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, h)
            loss = tf.reduce_sum(losses) / BATCH
        optimizer.apply_gradients(zip(tape.gradient(loss, layers), layers, strict=True))
        return loss

    @tf.function
    def train(x: Any, y: Any) -> Any:
        return strategy.run(replica, args=(x, y))

    for _ in range(3):
        train(x, y)
    return {"step": summary([timed(lambda: train(x, y)) for _ in range(rounds)])}


# ---- the processes --------------------------------------------------------------------------------------


def started(n: int, what: str, rounds: int, mpi: bool = False) -> dict[str, Any]:
    """The measurements of process 0 of `n`."""
    me = [sys.executable, __file__, "--part", what, "--rounds", str(rounds)]
    env = dict(os.environ, GRADTAPE_NUM_THREADS="1")
    env.pop("TF_CONFIG", None)
    if mpi:
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(n), *me]
        running = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)]
    else:
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
        workers = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
        for s in sockets:
            s.close()
        running = []
        for i in range(n):
            config = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": i}}
            own = dict(env, TF_CONFIG=json.dumps(config)) if n > 1 else env
            running.append(subprocess.Popen(me, env=own, stdout=subprocess.PIPE, text=True))
    outputs = [p.communicate(timeout=600)[0] for p in running]
    if any(p.returncode for p in running):
        raise SystemExit(f"{what}: a process failed")
    return json.loads(next(x for x in outputs[0].splitlines() if x.startswith("{")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["jax", "mpi", "step"])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", help="where to write the figures")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        result = exchange(options.rounds) if options.part == "exchange" else step(options.rounds)
        print(json.dumps(result), flush=True)
        return
    results: dict[str, Any] = {"machine": f"{platform.machine()}, {os.cpu_count()} processors"}
    for part in options.parts:
        if part == "mpi" and not shutil.which("mpirun"):
            print("mpi: there is no mpirun")
            continue
        if part == "step":
            one, two = started(1, "step", options.rounds), started(2, "step", options.rounds)
            result = {"one process, whole batch": one["step"], "two, half the batch each": two["step"]}
            result |= ratios(two["step"], one["step"])
        else:
            result = started(2, "exchange", options.rounds, part == "mpi")
            result |= ratios(result["ours"], result["engine"])
        results[part] = result
        print(part)
        for name, value in result.items():
            if isinstance(value, dict):
                print(f"  {name:28} {value['min_ms']:8.3f} ms (median {value['median_ms']:.3f})")
            else:
                print(f"  {name:28} {value:8.3f}" if name.startswith("ratio") else f"  {name:28} {value}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
