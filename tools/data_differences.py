"""Random pipelines of `tf.data` on gradtape and on TensorFlow, compared element by element.

    python tools/data_differences.py --tensorflow /path/to/python --pipelines 500 --seed 1

A pipeline is a list of steps, each a name with arguments; it is run over two passes in both libraries, each in its
own process, and the outcome (elements, errors, the cardinality) is written as JSON. The summary line says how many
pipelines were run and how many differ.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import subprocess
import sys
from typing import Any

_MOST = 40  # elements taken from a pass


# ---- pipelines ------------------------------------------------------------------------------------


def pipeline(draw: random.Random) -> list:
    """A source and some steps."""
    steps = [_source(draw)]
    for _ in range(draw.randrange(1, 7)):
        steps.append(draw.choice(_STEPS)(draw))
        if steps[-1] in (["repeat", None], ["repeat", -1]):
            steps.append(["take", 12])  # or a later filter may search endlessly for an element
    return steps


def _source(draw: random.Random) -> list:
    n = draw.choice([0, 1, 2, 3, 5, 7, 10, 16])
    kind = draw.choice(
        ["range", "range", "slices", "pairs", "generator", "empty_pass", "tensors", "rows", "dicts"]
    )
    return [kind, n]


_STEPS = [
    lambda d: [
        "map",
        d.choice(["double", "double", "divide", "pair", "random"]),
        d.choice([None, None, 1, 2, -1]),
    ],
    lambda d: ["map", "double", None],
    lambda d: ["batch", d.choice([1, 2, 3, 4]), d.random() < 0.3],
    lambda d: ["batch", d.choice([2, 3]), False],
    lambda d: ["shuffle", d.choice([1, 2, 3, 5, 100]), d.choice([0, 1, 2, 7]), d.random() < 0.7],
    lambda d: ["shuffle", d.choice([2, 5, 100]), d.choice([1, 2]), True],
    lambda d: ["repeat", d.choice([None, -1, 0, 1, 2, 3])],
    lambda d: ["repeat", 2],
    lambda d: ["take", d.choice([-1, 0, 1, 3, 5, 100])],
    lambda d: ["skip", d.choice([-1, 0, 1, 3, 100])],
    lambda d: ["shard", 3, d.randrange(3)],
    lambda d: ["interleave", d.choice([1, 2, 3, None]), d.choice([1, 2, 3]), d.choice([None, None, 1, 2])],
    lambda d: ["flat_map"],
    lambda d: ["zip"],
    lambda d: ["concatenate"],
    lambda d: ["window", d.choice([1, 2, 3]), d.choice([None, 1, 2, 4]), d.choice([1, 2]), d.random() < 0.5],
    lambda d: ["filter", d.choice(["odd", "few", "none", "random"])],
    lambda d: ["cache"],
    lambda d: ["prefetch", d.choice([0, 1, 2, -1])],
    lambda d: ["enumerate", d.choice([0, 5])],
    lambda d: ["unbatch"],
    lambda d: ["rebatch", d.choice([1, 2, 5]), d.random() < 0.5],
    lambda d: ["padded_batch", d.choice([1, 2, 3]), d.random() < 0.3],
    lambda d: ["scan"],
    lambda d: ["take_while"],
    lambda d: ["unique"],
    lambda d: ["group_by_window", d.choice([1, 2, 3])],
    lambda d: ["ignore_errors"],
    lambda d: ["choose"],
    lambda d: ["sample", d.choice([1, 3])],
    lambda d: ["assert_cardinality", d.choice([3, 5, 10])],
    lambda d: ["ragged_lengths"],
]


# ---- in one library -------------------------------------------------------------------------------


class Maker:
    """Builds datasets from descriptions, with one library."""

    def __init__(self, tf: Any) -> None:
        self.tf = tf

    def source(self, kind: str, n: int) -> Any:
        tf, D = self.tf, self.tf.data.Dataset  # noqa: N806
        numbers = tf.range(n, dtype=tf.int64)
        spec = tf.TensorSpec((), tf.int64)
        if kind == "range":
            return D.range(n)
        if kind == "slices":
            return D.from_tensor_slices(numbers * 3)
        if kind == "rows":
            return D.from_tensor_slices(tf.reshape(tf.range(2 * n, dtype=tf.int64), [n, 2]))
        if kind == "pairs":
            return D.from_tensor_slices((numbers, numbers * 10))
        if kind == "dicts":
            return D.from_tensor_slices({"b": numbers, "a": numbers + 100})
        if kind == "tensors":
            return D.from_tensors(numbers)
        if kind == "generator":
            return D.from_generator(lambda: iter(range(n)), output_signature=spec)
        count = [0]

        def passes() -> Any:
            count[0] += 1
            return iter(range(n) if count[0] % 3 != 2 else ())

        return D.from_generator(passes, output_signature=spec)

    def leaf(self, parts: Any) -> Any:
        """One int64 number of an element."""
        tf = self.tf
        first = tf.nest.flatten(parts)[0]
        return tf.cast(tf.reduce_sum(first), tf.int64)

    def step(self, ds: Any, name: str, *args: Any) -> Any:
        return getattr(self, "_" + name)(ds, *args)

    def _map(self, ds: Any, function: str, calls: Any) -> Any:
        tf = self.tf
        functions = {
            "double": lambda *x: tf.nest.map_structure(lambda v: v * 2, x if len(x) > 1 else x[0]),
            "divide": lambda *x: tf.nest.map_structure(lambda v: 12 // (v - 2), x if len(x) > 1 else x[0]),
            "pair": lambda *x: (self.leaf(x), x if len(x) > 1 else x[0]),
            "random": lambda *x: self.leaf(x) + tf.random.uniform([], 0, 1000, tf.int64),
        }
        # Random numbers drawn on several threads have no fixed order.
        ds = ds.map(functions[function], num_parallel_calls=None if function == "random" else calls)
        # Fused with a map, TensorFlow's batch loses the other elements of a batch with an error.
        return ds.filter(lambda *x: self.leaf(x) > -(10**9)) if function == "divide" else ds

    def _batch(self, ds: Any, size: int, drop: bool) -> Any:
        return ds.batch(size, drop_remainder=drop)

    def _shuffle(self, ds: Any, room: int, seed: int, again: bool) -> Any:
        return ds.shuffle(room, seed=seed, reshuffle_each_iteration=again)

    def _repeat(self, ds: Any, count: Any) -> Any:
        return ds.repeat(count)

    def _take(self, ds: Any, count: int) -> Any:
        return ds.take(count)

    def _skip(self, ds: Any, count: int) -> Any:
        return ds.skip(count)

    def _shard(self, ds: Any, shards: int, index: int) -> Any:
        return ds.shard(shards, index)

    def _inner(self, *x: Any) -> Any:
        tf = self.tf
        first = self.leaf(x)
        return tf.data.Dataset.range(abs(first) % 4).map(lambda k: k + 100 * first)

    def _interleave(self, ds: Any, cycle: Any, block: int, calls: Any) -> Any:
        # By default, TensorFlow chooses a number that depends on the machine.
        return ds.interleave(self._inner, cycle or 2, block, num_parallel_calls=calls)

    def _flat_map(self, ds: Any) -> Any:
        return ds.flat_map(self._inner)

    def _zip(self, ds: Any) -> Any:
        return self.tf.data.Dataset.zip((ds, self.tf.data.Dataset.range(6)))

    def _concatenate(self, ds: Any) -> Any:
        return ds.concatenate(ds.take(2))

    def _window(self, ds: Any, size: int, shift: Any, stride: int, drop: bool) -> Any:
        windows = ds.window(size, shift, stride, drop)
        return windows.flat_map(lambda *w: self.tf.nest.flatten(w)[0].batch(3))

    def _filter(self, ds: Any, which: str) -> Any:
        tf = self.tf
        tests = {
            "odd": lambda *x: self.leaf(x) % 2 == 1,
            "few": lambda *x: self.leaf(x) % 3 == 0,
            "none": lambda *x: self.leaf(x) < -(10**6),
            "random": lambda *x: tf.random.uniform([]) > 0.4,
        }
        return ds.filter(tests[which])

    def _cache(self, ds: Any) -> Any:
        return ds.cache()

    def _prefetch(self, ds: Any, room: int) -> Any:
        return ds.prefetch(room)

    def _enumerate(self, ds: Any, start: int) -> Any:
        return ds.enumerate(start)

    def _unbatch(self, ds: Any) -> Any:
        return ds.unbatch()

    def _rebatch(self, ds: Any, size: int, drop: bool) -> Any:
        return ds.rebatch(size, drop)

    def _padded_batch(self, ds: Any, size: int, drop: bool) -> Any:
        return ds.padded_batch(size, drop_remainder=drop)

    def _ragged_lengths(self, ds: Any) -> Any:
        tf = self.tf
        return ds.map(lambda *x: tf.fill([abs(self.leaf(x)) % 3 + 1], self.leaf(x)))

    def _scan(self, ds: Any) -> Any:
        tf = self.tf

        def add(state: Any, x: Any) -> tuple:
            return state + self.leaf(x), (state, x)

        return ds.scan(tf.constant(0, tf.int64), add)

    def _take_while(self, ds: Any) -> Any:
        return ds.take_while(lambda *x: self.leaf(x) < 9)

    def _unique(self, ds: Any) -> Any:
        return ds.map(lambda *x: self.leaf(x) % 4).unique()

    def _group_by_window(self, ds: Any, size: int) -> Any:
        return ds.map(lambda *x: self.leaf(x)).group_by_window(
            lambda x: x % 2, lambda key, group: group.batch(2), window_size=size
        )

    def _ignore_errors(self, ds: Any) -> Any:
        return ds.ignore_errors()

    def _choose(self, ds: Any) -> Any:
        choice = self.tf.data.Dataset.from_tensor_slices(
            self.tf.constant([0, 1, 1, 0, 1, 0, 0, 0], self.tf.int64)
        )
        return self.tf.data.Dataset.choose_from_datasets([ds, ds.skip(1)], choice.repeat(3))

    def _sample(self, ds: Any, seed: int) -> Any:
        return self.tf.data.Dataset.sample_from_datasets([ds, ds.take(3)], [0.3, 0.7], seed=seed)

    def _assert_cardinality(self, ds: Any, count: int) -> Any:
        return ds.apply(self.tf.data.experimental.assert_cardinality(count))


def outcome(tf: Any, steps: list) -> Any:
    """The outcome of a pipeline: two passes, with a limited number of elements and errors."""
    maker = Maker(tf)
    tf.random.set_seed(11)
    try:
        (kind, n), *rest = steps
        ds = maker.source(kind, n)
        for name, *args in rest:
            ds = maker.step(ds, name, *args)
        size = int(ds.cardinality())
        iter(ds)
    except Exception as e:
        return ["refused", type(e).__name__]
    passes = []
    for _ in range(2):
        out: list = []
        it = iter(ds)
        while len(out) < _MOST:
            try:
                out.append([_plain(x) for x in tf.nest.flatten(next(it))])
            except StopIteration:
                break
            except Exception as e:
                out.append(type(e).__name__)
                if out[-4:] == [out[-1]] * 4:
                    break
        passes.append(out)
    return [size, *passes]


def _plain(x: Any) -> Any:
    return x.numpy().tolist() if hasattr(x, "numpy") else str(type(x))


def work(library: str) -> None:
    """Reads pipelines line by line, writes outcomes."""
    tf = importlib.import_module(library)
    for line in sys.stdin:
        print(json.dumps(outcome(tf, json.loads(line))), flush=True)


# ---- comparison -----------------------------------------------------------------------------------


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tensorflow", help="the Python of an environment with TensorFlow")
    options.add_argument("--pipelines", type=int, default=300)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--show", type=int, default=10, help="how many differences are shown")
    options.add_argument(
        "--refused", action="store_true", help="shows pipelines that only one of them refuses"
    )
    options.add_argument("--work", metavar="LIBRARY", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.work:
        work(given.work)
        return
    draw = random.Random(given.seed)
    pipelines = [json.dumps(pipeline(draw)) for _ in range(given.pipelines)]
    results = []
    for python, library in ((sys.executable, "gradtape"), (given.tensorflow, "tensorflow")):
        child = [python, __file__, "--work", library]
        done = subprocess.run(
            child,
            input="\n".join(pipelines),
            capture_output=True,
            text=True,
            timeout=60 + 10 * given.pipelines,
        )
        lines = done.stdout.splitlines()
        if len(lines) != len(pipelines):
            print(f"{library} ended at {pipelines[len(lines)]}:\n{done.stderr[-2000:]}")
            sys.exit(1)
        results.append([json.loads(line) for line in lines])
    differing = [
        (p, ours, theirs) for p, ours, theirs in zip(pipelines, *results, strict=True) if ours != theirs
    ]
    # TensorFlow rejects some empty pipelines, because their functions do not accept the type of the elements.
    refused = [d for d in differing if "refused" in (d[1][0], d[2][0])]
    different = [d for d in differing if d not in refused]
    for p, ours, theirs in different[: given.show]:
        print(f"{p}\n  gradtape   {ours}\n  TensorFlow {theirs}")
    for p, ours, theirs in refused if given.refused else []:
        print(f"{p}\n  gradtape   {ours}\n  TensorFlow {theirs}")
    print(
        f"{len(pipelines)} pipelines (seed {given.seed}): {len(different)} differ, {len(refused)} only one refuses"
    )
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
