"""How the cost of one unit of work grows with their number: the part `growth`.

Operations in a chain and side by side, variables, orders of derivatives, rows of a Jacobian, examples, iterations
of a loop, weights. On every axis every library has its own process that goes from the smallest size to the largest,
so that its peak memory is that of the current size. Time and memory per process are limited; a size that would
exceed what is left, judged by the one before, is skipped with the reason. Times are per unit: a flat line is work
that grows linearly. torch.compile unrolls chains and loops: it is not measured here.

Imported by every peer's process, so it needs nothing but the standard library and NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import cases
import parts
import peers
import report

SECONDS, GB = 20, 4  # of a library on an axis, and of addresses of its process
_FEWER = {"jax eager": 5}  # not a usual way to run a thousand ops, and slower than all others together
_ALL = ("gradtape eager", "gradtape function", "torch eager", "jax eager", "jax jit")
_LOOPS = ("gradtape eager", "gradtape function", "torch eager", "jax jit")
_TENS = (10, 100, 1_000, 10_000, 100_000, 1_000_000)


class Axis(NamedTuple):
    """A kind of work that can grow, with its sizes."""

    words: str
    unit: str
    sizes: tuple[int, ...]
    labels: tuple[str, ...] = _ALL
    units: Callable[[int], int] = int  # of a size


AXES = {
    "chain": Axis("ops in a chain", "op", _TENS),
    "wide": Axis("ops side by side", "op", _TENS),
    "variables": Axis("variables", "variable", (1, *_TENS[:-1])),
    "orders": Axis("orders of derivatives", "order", (1, 2, 3, 4, 5, 6)),
    "rows": Axis("rows of a Jacobian", "row", (1, *_TENS[:4])),
    "batch": Axis("examples of a batch", "example", (1, *_TENS[:-1])),
    "sequence": Axis("iterations of a loop", "iteration", _TENS[:-1], _LOOPS),
    "width": Axis("width of two layers", "weight", (16, 64, 256, 1024, 2048), units=lambda n: 2 * n * n),
}  # fmt: skip


# ---- programs, written with ops that all libraries have ---------------------------------------------


def _tree(terms: list[Any]) -> Any:
    """Their sum, by pairs."""
    while len(terms) > 1:
        pairs = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[len(pairs) * 2 :]
    return terms[0]


def _program(axis: str, n: int) -> tuple[Callable[..., Any], list[Any]]:
    """A function of the library's ops and of arrays, and these arrays. Its gradient is with respect to all of them."""
    import numpy as np

    rng = np.random.default_rng(1)

    def normal(*shape: int) -> Any:
        return (rng.standard_normal(shape) / shape[-1] ** 0.5).astype(np.float32)

    def chain(words: Any, x: Any, w: Any) -> Any:
        for _ in range(n // 2):
            x = words.sin(x) * w
        return x

    def wide(words: Any, x: Any) -> Any:  # a product, a sine and a sum each
        return _tree([words.sin(x * (1 + k / n)) for k in range(max(1, n // 3))])

    def variables(words: Any, *all: Any) -> Any:
        return _tree([words.total(v * v) for v in all])

    def smooth(words: Any, x: Any) -> Any:
        return words.total(words.sin(x) * words.tanh(x))

    def rows(words: Any, x: Any) -> Any:
        return words.tanh(words.constant(matrix) @ x)[:, 0]

    def dense(words: Any, a: Any, b: Any) -> Any:
        return words.total(words.tanh(words.tanh(words.constant(matrix) @ a) @ b))

    def sequence(words: Any, w: Any) -> Any:
        return words.total(words.loop(n, lambda h: words.tanh(h @ w), words.constant(matrix)))

    if axis in ("chain", "wide"):
        # Repeated sines shrink so slowly that they and their derivatives stay within the range of float32.
        both = [np.float32(0.7), np.float32(1.0)]
        return (chain, both) if axis == "chain" else (wide, both[:1])
    if axis == "variables":
        return variables, [normal(8) for _ in range(n)]
    if axis == "orders":
        return smooth, [normal(64)]
    if axis == "rows":
        matrix = normal(n, 64)
        return rows, [normal(64, 1)]
    if axis == "batch":
        matrix = normal(n, 64)
        return dense, [normal(64, 64), normal(64, 1)]
    if axis == "sequence":
        # A rotation, for the same reason.
        matrix = normal(8, 32)
        return sequence, [np.linalg.qr(normal(32, 32))[0]]
    matrix = normal(32, n)
    return dense, [normal(n, n), normal(n, n)]


# ---- cases, in the process of a library -------------------------------------------------------------


def case(library: str, module: Any, name: str, mode: str, size: int) -> dict[str, cases.Case]:
    """`whole`: the program and its derivative. `record`: only the recorded program, where the library records."""
    import numpy as np

    f, arrays = _program(name, size)
    make = {"jax": _jax, "torch": _torch}.get(library, _tensorflow)
    whole, record = make(module, name, mode, size, f, arrays)

    def check() -> list[float]:
        got = whole()
        return [float(np.abs(np.asarray(g, np.float64)).sum()) for g in (got[0], got[-1])]

    # A product of so many derivatives is rounded differently in each library.
    long = name in ("chain", "sequence") and size > 10_000
    # One call makes all the units; `count` turns its time into that of one.
    count = AXES[name].units(size)
    result = {"whole": cases.Case(lambda _: whole(), count, check=None if long else check)}
    if record and name in ("chain", "wide"):
        result["record"] = cases.Case(lambda _: record(), count)
    return result


Made = tuple[Callable[[], Any], Callable[[], Any] | None]


def _tensorflow(tf: Any, axis: str, mode: str, size: int, f: Any, arrays: Any) -> Made:
    def loop(n: int, body: Any, h: Any) -> Any:
        if mode == "eager":
            for _ in range(n):
                h = body(h)
            return h
        return tf.while_loop(lambda k, h: k < n, lambda k, h: (k + 1, body(h)), [0, h], maximum_iterations=n)[
            1
        ]

    words = SimpleNamespace(sin=tf.sin, tanh=tf.tanh, total=tf.reduce_sum, constant=tf.constant, loop=loop)
    given = [(tf.Variable if axis == "variables" else tf.constant)(a) for a in arrays]

    def forward(tape: Any, given: Any) -> Any:
        tape.watch(given)
        return f(words, *given)

    def derivative(*given: Any) -> Any:
        with tf.GradientTape() as tape:
            y = forward(tape, given)
        return [tape.jacobian(y, given[0])] if axis == "rows" else tape.gradient(y, given)

    def nested(x: Any, order: int = size) -> Any:
        if order == 0:
            return f(words, x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(nested(x, order - 1))
        return tape.gradient(y, x)

    def record() -> Any:
        with tf.GradientTape() as tape:
            return forward(tape, given)

    run = (lambda x: [nested(x)]) if axis == "orders" else derivative
    if mode == "function":
        run = tf.function(run)

    def whole() -> Any:
        got = run(*given)
        got[0].numpy()
        return got

    return whole, record if mode == "eager" else None


def _torch(torch: Any, axis: str, mode: str, size: int, f: Any, arrays: Any) -> Made:
    words = SimpleNamespace(
        sin=torch.sin, tanh=torch.tanh, total=torch.sum, constant=torch.tensor, loop=_unrolled
    )
    given = [torch.tensor(a, requires_grad=True) for a in arrays]

    def record() -> Any:
        return f(words, *given)

    def derivative() -> Any:
        return torch.autograd.grad(record(), given)

    def nested() -> Any:
        y = record()
        for _ in range(size):
            (y,) = torch.autograd.grad(y.sum(), given, create_graph=True)
        return [y.detach()]

    def rows() -> Any:
        return [torch.func.jacrev(lambda x: f(words, x))(given[0]).detach()]

    return {"orders": nested, "rows": rows}.get(axis, derivative), record


def _jax(jax: Any, axis: str, mode: str, size: int, f: Any, arrays: Any) -> Made:
    jnp = jax.numpy

    def loop(
        n: int, body: Any, h: Any
    ) -> Any:  # a number of steps that is known makes it a scan, with a gradient
        return jax.lax.fori_loop(0, n, lambda _, h: body(h), h) if mode == "jit" else _unrolled(n, body, h)

    words = SimpleNamespace(sin=jnp.sin, tanh=jnp.tanh, total=jnp.sum, constant=jnp.array, loop=loop)
    given = [jnp.array(a) for a in arrays]

    def value(*given: Any) -> Any:
        return f(words, *given)

    if axis == "orders":
        run = value
        for _ in range(size):
            run = jax.grad(lambda x, inner=run: inner(x).sum())
        last = run
        run = lambda x: [last(x)]  # noqa: E731
    elif axis == "rows":
        run = lambda x: [jax.jacrev(value)(x)]  # noqa: E731
    else:
        run = jax.grad(value, argnums=tuple(range(len(given))))
    run = jax.jit(run) if mode == "jit" else run
    return lambda: jax.block_until_ready(run(*given)), None


def _unrolled(n: int, body: Any, h: Any) -> Any:
    for _ in range(n):
        h = body(h)
    return h


# ---- the part of the benchmark ----------------------------------------------------------------------


def _expected(axis: Axis, size: int, before: dict[str, Any], at: int) -> tuple[float, float, float]:
    """Seconds of a call, of all calls, and GB for a size, extrapolated linearly from the size `at`."""
    ratio = axis.units(size) / axis.units(at)
    peak = before.get("peak", {"mb": 0.0, "imported_mb": 0.0})
    measured = [before[name] for name in ("whole", "record") if "min" in before.get(name, {})]
    call = ratio * sum(m["min"] for m in measured) * axis.units(at) * 1e-6
    # The first call of a process loads libraries, which does not grow with the size.
    first = (ratio if at > axis.sizes[0] else 1.0) * sum(m["first_ms"] for m in measured) * 1e-3
    memory = peak["imported_mb"] + ratio * (peak["mb"] - peak["imported_mb"])
    # One to check, and two turns of three.
    return call, first + 7 * call, memory / 1024


def skipped(
    axis: Axis, size: int, before: dict[str, Any] | None, at: int, left: float = SECONDS
) -> str | None:
    """Why a size is skipped, judged by the result of the size before it (`at`) and the seconds left; or None."""
    if before is None:
        return None
    failed = before.get("missing") or before["whole"].get("missing")
    if failed:
        return failed if " at " in failed else f"{failed} at {at:,}"
    _, seconds, gb = _expected(axis, size, before, at)
    if seconds > left:
        return f"{peers.TOO_LONG}: {at:,} took so long that this would take {seconds:.0f} s or more, and {left:.0f} are left"
    if gb > GB:
        return f"{report.MEMORY}: {at:,} took so much that this would take {gb:.1f} GB or more"
    return None


def measure(options: Any) -> dict[str, Any]:
    """Every axis from its smallest size on, in turns."""
    versions: dict[str, str] = {}
    result: dict[str, Any] = {}
    for name, axis in AXES.items():
        if options.workloads and name not in options.workloads:
            continue
        sizes = axis.sizes[: 2 if options.quick else None]
        cells, of_axis = _measure_axis(name, axis, sizes, options)
        result |= {f"{name} {size}": cells[size] for size in sizes}
        versions |= of_axis
    return {"versions": versions, "cases": result}


def _measure_axis(
    name: str, axis: Axis, sizes: tuple[int, ...], options: Any
) -> tuple[dict[int, dict[str, Any]], dict[str, str]]:
    """Figures by size and label, and the versions of the libraries."""
    running: dict[str, peers.Peer] = {}
    last: dict[str, Any] = {}
    for label in axis.labels:
        try:
            running[label] = peers.Peer(label.split()[0], memory=GB)
            running[label].waited = 0.0  # its import does not count
        except peers.Missing as e:
            last[label] = {"missing": f"not here: {e}"}
    result: dict[int, dict[str, Any]] = {}
    smallest: dict[str, float] = {}
    at = sizes[0]
    for size in sizes:
        parts.progress("growth", f"{name} {size:,}")
        reasons, todo = {}, {}
        for label in axis.labels:
            peer = running.get(label)
            left = _FEWER.get(label, SECONDS) - (peer.waited if peer else 0.0)
            reasons[label] = skipped(axis, size, last.get(label), at, left)
            if peer and not reasons[label]:
                peer.patience = max(1.0, left)
                # A process is named by its label, since a library has several.
                todo[label] = parts.command(label, "growth", name, alone=False, size=size) | {
                    "library": label
                }
        slow = any(_expected(axis, size, last[label], at)[0] > 0.1 for label in todo if label in last)
        rounds = min(options.rounds, 2) if slow else options.rounds
        cells = parts.in_turns(running, todo, rounds, options.seconds, patience=1)
        for label, cell in cells.items():
            mb = running[label].ask(do="peak").get("mb")
            if mb and "missing" not in cell:
                mb = round(mb, 3)
                cell["peak"] = {"mb": mb, "imported_mb": smallest.setdefault(label, mb)}
        last = {label: cells.get(label, {"missing": reasons[label]}) for label in axis.labels}
        result[size] = last
        at = size
    for peer in running.values():
        peer.close()
    return result, {peer.library: peer.version for peer in running.values()}


# ---- tables -----------------------------------------------------------------------------------------


def split(case: str) -> tuple[str, int]:
    """Axis and size of a case."""
    name, size = case.rsplit(" ", 1)
    return name, int(size)


def per_unit(part: dict[str, Any], what: str) -> dict[str, Any]:
    """A part whose figures are one thing for one unit: microseconds of `whole`, `record` or the `first` call, or
    `bytes` above what the smallest size of the axis held."""
    out: dict[str, Any] = {}
    for case, cells in part["cases"].items():
        name, size = split(case)
        axis = AXES[name]
        units = axis.units(size)
        out[case] = {}
        for label, cell in cells.items():
            whole, value = cell.get("whole", {}), None
            if what in ("whole", "record"):
                out[case][label] = {"unit": cell.get(what, {"missing": cell.get("missing", "")})}
                continue
            if what == "first":
                value = whole.get("first_ms", 0.0) * 1e3 / units
            elif "peak" in cell and size > axis.sizes[0]:
                value = (cell["peak"]["mb"] - cell["peak"]["imported_mb"]) * 2**20 / units
            why = cell.get("missing") or whole.get("missing", "")
            out[case][label] = {"unit": {"min": value, "quiet": True} if value else {"missing": why}}
    return {"cases": out}


def table(part: dict[str, Any]) -> str:
    """Warm, first, recording only, bytes: a row for each size."""
    heads = {
        "whole": "Microseconds a unit, once warm:",
        "first": "Microseconds a unit of the first call of that size, compilation included:",
        "record": "Microseconds a unit of recording alone, which is part of the above:",
        "bytes": "Bytes a unit at the peak, above what the smallest size of the same kind holds:",
    }
    lines = []
    for what, head in heads.items():
        named = {}
        for case, cells in per_unit(part, what)["cases"].items():
            name, size = split(case)
            if any("min" in cell["unit"] for cell in cells.values()):
                named[f"{AXES[name].words}, {size:,}"] = cells
        if named:
            lines += [head, report.ways({"cases": named})]
    return "\n\n".join(lines)
