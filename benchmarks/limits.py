"""The limits of the machine, whatever the library: the part `limits`.

Matrix products: the best rate that any of the libraries reaches. Memory: copies and sums of arrays larger than any
cache, and in-place sums of 64 MB, the size of the largest workload, by NumPy in as many threads as the libraries
get. An in-place sum writes what it has just read, so no line is fetched only to be overwritten: the fastest way to
change memory. `work` has what the workloads must multiply and move at least.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import parts
import peers

_SIDES = (1024, 2048)
_BYTES = 256 << 20
_UPDATED = 32 << 20  # of each of the two arrays of a sum in place
_LIBRARIES = ("gradtape", "torch", "tensorflow", "jax")


def case(library: str, module: Any, name: str, mode: str) -> dict[str, Any]:
    """A product of two square matrices."""
    import ops

    of_op = ops.case(library, module, "matmul", mode, "large", size=int(name) ** 2)
    return {"product": of_op["op"]}


def gflops(threads: int, options: Any) -> dict[str, float]:
    """The best rate of each library over the sizes, in 10^9 operations a second."""
    todo = {
        str(side): {f"{lib} eager": parts.command(f"{lib} eager", "limits", str(side)) for lib in _LIBRARIES}
        for side in (_SIDES[:1] if options.quick else _SIDES)
    }
    measured = parts.measure("limits", todo, options, longer=2, threads=threads)["cases"]
    rates: dict[str, float] = {}
    for side, cells in measured.items():
        for label, cell in cells.items():
            if "min" in cell.get("product", {}):
                rate = 2 * int(side) ** 3 / cell["product"]["min"] / 1e3
                rates[label] = max(rates.get(label, 0.0), round(rate, 1))
    return rates


def bandwidth(threads: int, repeats: int) -> dict[str, float]:
    """The best of some copies (one array read, one written), sums of two arrays, and sums in place, in GB a second."""
    a, b, c = (np.ones(_BYTES // 4, np.float32) for _ in range(3))
    patterns = {
        "copy": (2, _BYTES, lambda s: np.copyto(c[s], a[s])),
        "add": (3, _BYTES, lambda s: np.add(a[s], b[s], out=c[s])),
        "update": (3, _UPDATED, lambda s: np.add(c[s], a[s], out=c[s])),
    }
    best = dict.fromkeys(patterns, 0.0)
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(repeats):
            for name, (arrays, size, work) in patterns.items():
                edges = np.linspace(0, size // 4, threads + 1).astype(int)
                spans = [slice(*pair) for pair in zip(edges, edges[1:], strict=False)]
                for _ in range(_BYTES // size):  # the first pass loads what the last pattern evicted
                    start = time.perf_counter()
                    list(pool.map(work, spans))
                    seconds = time.perf_counter() - start
                    best[name] = max(best[name], round(arrays * size / seconds / 1e9, 1))
    return best


def measure(options: Any) -> dict[str, Any]:
    counts = (1, peers.THREADS)
    parts.progress("limits", "memory")
    memory = {str(t): bandwidth(t, 3 if options.quick else 10) for t in counts}
    return {"gflops": {str(t): gflops(t, options) for t in counts}, "memory_gb_s": memory}
