"""Data pipelines: a full epoch over data in memory, microseconds per batch, against tf.data and DataLoader.

Each library is used the way its guides show: `from_tensor_slices` with `shuffle`, `map`, `batch` and `prefetch` for
TensorFlow and gradtape, a `TensorDataset` in a `DataLoader` for PyTorch. Imported by every peer's process, so it
needs nothing but the standard library and NumPy.
"""

from __future__ import annotations

from typing import Any

import cases
import parts

# Name -> (rows, numbers a row, rows a batch, whether shuffled, whether mapped).
CASES = {
    "batch 128 of 784": (20_000, 784, 128, False, False),
    "shuffle, batch 128 of 784": (20_000, 784, 128, True, False),
    "shuffle, map, batch 128 of 784": (20_000, 784, 128, True, True),
    "shuffle, batch 32 of 16": (20_000, 16, 32, True, False),
    "shuffle, map, batch 32 of 16": (20_000, 16, 32, True, True),
}
_LIBRARIES = ("gradtape", "tensorflow", "torch")


def _scaled(x: Any, y: Any) -> Any:
    return x * 2.0 - 1.0, y


def _tensorflow(tf: Any, x: Any, y: Any, batch: int, shuffled: bool, mapped: bool) -> Any:
    ds = tf.data.Dataset.from_tensor_slices((x, y))
    if shuffled:
        ds = ds.shuffle(len(x))
    if mapped:
        ds = ds.map(_scaled, num_parallel_calls=tf.data.AUTOTUNE)
    return ds.batch(batch).prefetch(tf.data.AUTOTUNE)


def _torch(torch: Any, x: Any, y: Any, batch: int, shuffled: bool, mapped: bool) -> Any:
    from torch.utils import data  # type: ignore[import-not-found]

    class Mapped(data.TensorDataset):  # type: ignore[misc]
        def __getitem__(self, i: int) -> Any:
            return _scaled(*super().__getitem__(i))

    kind = Mapped if mapped else data.TensorDataset
    tensors = torch.from_numpy(x), torch.from_numpy(y)
    return data.DataLoader(kind(*tensors), batch_size=batch, shuffle=shuffled)


def case(library: str, tf: Any, name: str) -> dict[str, cases.Case]:
    """One epoch of a pipeline; called in the process of a library."""
    import numpy as np

    rows, width, batch, shuffled, mapped = CASES[name]
    rng = np.random.default_rng(0)
    x = rng.uniform(0.1, 1, (rows, width)).astype(np.float32)
    y = rng.integers(0, 10, rows)
    make = _torch if library == "torch" else _tensorflow
    pipeline = make(tf, x, y, batch, shuffled, mapped)

    def run(n: int) -> None:
        for _ in pipeline:
            pass

    total = sum(
        float(np.asarray(bx).sum(dtype=np.float64)) + float(np.asarray(by).sum()) for bx, by in pipeline
    )
    return {"epoch": cases.Case(run, count=-(-rows // batch), check=[total])}


def measure(options: Any) -> dict[str, Any]:
    """The part of the benchmark: every case, in turns."""
    todo = {
        name: {f"{lib} eager": {"library": lib, "part": "data", "name": name} for lib in _LIBRARIES}
        for name in parts.some(CASES, options)
    }
    return parts.measure("data", todo, options)
