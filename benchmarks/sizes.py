"""The cost of unknown sizes: a new size of W7, and a mask in the loss of W4, in gradtape and in TensorFlow.

    python benchmarks/sizes.py [--rounds 5]

Each round is a new process. `first` is the first call of a step whose signature has None for batch and sequence,
`new` the least of the first calls with each of eight other sizes, scaled to the size of the first; `again` a size
that came often. The masked loss has another number of elements with each batch.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from typing import Any

from workloads import data


def _seconds(f: Any, *args: Any) -> float:
    start = time.perf_counter()
    float(f(*args))
    return time.perf_counter() - start


def _new_sizes(tf: Any, api: Any) -> dict[str, float]:
    import numpy as np

    parameters, _ = data.make("W7")
    step = api.training(tf, "W7, any size", "function", [tf.Variable(p) for p in parameters])
    step = tf.function(step, input_signature=[tf.TensorSpec([None, None, data.WIDTH])])
    rng = np.random.default_rng(1)
    sizes = [(8, 128), *((8, 128 - 2 * k) for k in range(1, 9))]
    xs = [tf.constant(rng.standard_normal((*s, data.WIDTH)).astype(np.float32)) for s in sizes]
    first, *new = (_seconds(step, x) for x in xs)
    again = min(_seconds(step, xs[0]) for _ in range(12))
    return {
        "first": first,
        "new": min(n * 128 / s[1] for n, s in zip(new, sizes[1:], strict=True)),
        "again": again,
    }


def _masked(tf: Any, api: Any) -> dict[str, float]:
    import numpy as np

    parameters, (x, labels) = data.make("W4")
    rng = np.random.default_rng(2)
    masks = [tf.constant(rng.random(len(labels)) < 0.6) for _ in range(8)]
    x, labels = tf.constant(x), tf.constant(labels)
    plain = tf.function(api.training(tf, "W4", "function", [tf.Variable(p) for p in parameters]))
    masked = tf.function(api.training(tf, "W4, masked", "function", [tf.Variable(p) for p in parameters]))
    times: dict[str, list[float]] = {"plain": [], "masked": []}
    for _ in range(30):
        for mask in masks:
            times["plain"].append(_seconds(plain, x, labels))
            times["masked"].append(_seconds(masked, x, labels, mask))
    return {name: min(t) for name, t in times.items()}


def _worker(library: str) -> None:
    from workloads import tensorflow_api

    if library == "gradtape":
        import gradtape as tf
    else:
        import tensorflow as tf  # type: ignore[no-redef]
    print(json.dumps(_new_sizes(tf, tensorflow_api) | _masked(tf, tensorflow_api)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _worker(options.worker)
        return
    import peers

    best: dict[str, dict[str, float]] = {}
    for _ in range(options.rounds):
        for library in ("gradtape", "tensorflow"):
            command = [peers.python_of(library), __file__, "--worker", library]
            done = subprocess.run(command, env=peers.environment(library), capture_output=True, text=True)
            if done.returncode:
                print(f"{library}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
                continue
            sizes = json.loads(done.stdout.splitlines()[-1])
            least = best.setdefault(library, sizes)
            best[library] = {k: min(v, least[k]) for k, v in sizes.items()}
    for library, t in best.items():
        print(
            f"{library:10}  W7: first {t['first'] * 1e3:8.1f} ms, new size {t['new'] * 1e3:7.1f} ms "
            f"({t['new'] / t['first']:.2f} of the first), again {t['again'] * 1e3:6.1f} ms;  "
            f"W4: {t['plain'] * 1e3:.2f} ms, masked {t['masked'] * 1e3:.2f} ms ({t['masked'] / t['plain']:.2f})"
        )


if __name__ == "__main__":
    main()
