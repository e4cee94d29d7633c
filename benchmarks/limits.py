"""What the machine can do at best, whoever asks: the part `limits`.

Products of matrices: the best rate that any of the libraries reaches. Memory: copies and sums of
arrays that no cache holds, by NumPy in as many threads as the libraries get.
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
_LIBRARIES = ("gradtape", "torch", "tensorflow", "jax")


def case(library: str, module: Any, name: str, mode: str) -> dict[str, Any]:
    """A product of two square matrices."""
    import ops

    made = ops.case(library, module, "matmul", mode, "large", size=int(name) ** 2)
    return {"product": made["op"]}


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
    """The best of some copies (one array read, one written) and sums of two arrays, in GB a second."""
    n = _BYTES // 4
    a, b, c = (np.ones(n, np.float32) for _ in range(3))
    edges = np.linspace(0, n, threads + 1).astype(int)
    spans = [slice(*pair) for pair in zip(edges, edges[1:], strict=False)]
    best = {"copy": 0.0, "add": 0.0}
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(repeats):
            for name, arrays, work in (
                ("copy", 2, lambda s: np.copyto(c[s], a[s])),
                ("add", 3, lambda s: np.add(a[s], b[s], out=c[s])),
            ):
                start = time.perf_counter()
                list(pool.map(work, spans))
                seconds = time.perf_counter() - start
                best[name] = max(best[name], round(arrays * _BYTES / seconds / 1e9, 1))
    return best


def measure(options: Any) -> dict[str, Any]:
    counts = (1, peers.THREADS)
    parts._progress("limits", "memory")
    memory = {str(t): bandwidth(t, 3 if options.quick else 10) for t in counts}
    return {"gflops": {str(t): gflops(t, options) for t in counts}, "memory_gb_s": memory}
