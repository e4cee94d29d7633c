"""Turns results into tables of ratios: theirs over ours, minimum over minimum.

A figure with "!" comes from samples that other work on the machine disturbed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import peers

# Columns of a table: label -> head. A column holds the best of the ways whose label begins like that.
COLUMNS = {
    "gradtape eager": "gradtape",
    "gradtape function": "gradtape function",
    "tensorflow eager": "TF eager",
    "tensorflow function": "TF function",
    "tensorflow xla": "TF XLA",
    "torch eager": "torch eager",
    "torch compile": "torch compile",
    "jax eager": "JAX eager",
    "jax jit": "JAX jit",
    "autograd numpy": "autograd",
}
MEMORY = "too much memory"  # how the reason begins why a case of that kind has no figures
SLOWER = 0.98  # of the best peer's speed: a difference below that is none
_EAGER = ("gradtape eager", "tensorflow eager", "torch eager", "jax eager", "autograd numpy")
_NAMES = {
    "gradtape": "gradtape", "tensorflow": "TensorFlow", "torch": "PyTorch", "jax": "JAX", "autograd": "autograd",
    "keras": "Keras",
}  # fmt: skip


# ---- figures --------------------------------------------------------------------------------------


def _figure(cells: dict[str, Any], label: str, metric: str) -> dict[str, Any] | None:
    cell = cells.get(label, {}).get(metric, {})
    return cell if isinstance(cell, dict) and "min" in cell else None


def best(cells: dict[str, Any], metric: str, *starts: str) -> tuple[str, dict[str, Any]] | None:
    """The quickest of the labels that begin so, with its figures, disturbed or not: others must not suffer
    from the machine's load."""
    candidates = [
        (label, f) for label in cells if label.startswith(starts) and (f := _figure(cells, label, metric))
    ]
    return min(candidates, key=lambda one: one[1]["min"], default=None)


def metrics_of(part: dict[str, Any]) -> list[str]:
    """The metrics of each case: mostly one."""
    names = (m for cells in part["cases"].values() for ways in cells.values() for m in ways if m != "missing")
    return list(dict.fromkeys(names))


class Ratio(NamedTuple):
    """How many times as long as ours another takes, and whether both were undisturbed."""

    value: float
    quiet: bool = True


def _over(theirs: dict[str, Any] | None, ours: dict[str, Any] | None) -> Ratio | None:
    if not theirs or not ours:
        return None
    return Ratio(theirs["min"] / ours["min"], theirs["quiet"] and ours["quiet"])


def ratio(cells: dict[str, Any], metric: str, ours: str, theirs: tuple[str, ...]) -> Ratio | None:
    """The best of theirs over the best of ours."""
    a, b = best(cells, metric, ours), best(cells, metric, *theirs)
    return _over(b[1], a[1]) if a and b else None


def peers_of(cells: dict[str, Any]) -> tuple[str, ...]:
    """The labels of others."""
    return tuple(label for label in cells if not label.startswith("gradtape")) or ("-",)


def against_all(cells: dict[str, Any], metric: str) -> Ratio | None:
    """The best peer over our best."""
    return ratio(cells, metric, "gradtape", peers_of(cells))


def eager_against_eager(cells: dict[str, Any], metric: str) -> Ratio | None:
    return ratio(cells, metric, "gradtape eager", _EAGER[1:])


def not_imported(part: dict[str, Any]) -> list[str]:
    """Why libraries have no figures because a module is missing: their environment or the benchmark is broken."""
    return list(dict.fromkeys(
        f"{label}: {ways['missing']}"
        for cells in part.get("cases", {}).values()
        for label, ways in cells.items()
        if str(ways.get("missing")).startswith(("ModuleNotFoundError", "ImportError"))
    ))  # fmt: skip


def disagreements(part: dict[str, Any]) -> list[str]:
    """Cases whose value differs from ours by more than 0.1 %: their measurement is void. Numbers that are only
    rounding errors, compared with the others of their case, are ignored."""
    out = []
    for name, cells in part.get("cases", {}).items():
        checks = {
            (label, metric): cell["check"]
            for label, metrics in cells.items()
            for metric, cell in metrics.items()
            if isinstance(cell, dict) and cell.get("check")
        }
        for (label, metric), values in checks.items():
            ours = next(
                (v for (who, m), v in checks.items() if m == metric and who.startswith("gradtape")), None
            )
            rounding = 1e-6 * max(map(abs, ours), default=0.0) if ours else 0.0
            if ours and any(
                not abs(a - b) <= max(1e-3 * abs(b), rounding, 1e-15)
                for a, b in zip(ours, values, strict=True)
            ):
                out.append(f"{name}: {label} {metric} gives {values}, gradtape {ours}")
    return out


# ---- words ----------------------------------------------------------------------------------------


def _table(head: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(r[k]) for r in [head, *rows]) for k in range(len(head))]
    rule = ["-" * w if k == 0 else "-" * (w - 1) + ":" for k, w in enumerate(widths)]
    return "\n".join(
        "| "
        + " | ".join(
            c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(line, widths, strict=True))
        )
        + " |"
        for line in [head, rule, *rows]
    )


def number(value: float) -> str:
    """Three digits, more only in front of the point."""
    if value >= 100:
        return f"{value:,.0f}"
    if value < 0.01:
        return f"{value:.2g}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _us(cell: dict[str, Any]) -> str:
    return number(cell["min"]) + ("" if cell["quiet"] else "!")


def factor(value: float) -> str:
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}" if value >= 3 else f"{value:.2f}"


def times(ratio: Ratio | None) -> str:
    """A ratio in words; in bold where we are slower than the best peer by more than 2 %."""
    if ratio is None:
        return ""
    text = factor(ratio.value) + ("" if ratio.quiet else "!")
    return f"**{text}**" if ratio.value < SLOWER else text


# The beginning of the reason for a missing figure -> the word shown in the table.
_REASONS = {
    "the process": "died", peers.TOO_LONG: "too long", MEMORY: "memory", "MemoryError": "memory",
    "not here": "",
}  # fmt: skip


def _absent(cells: dict[str, Any], start: str, metric: str) -> str:
    """The text for a missing figure; a crashed process is not shown as a missing feature."""
    cell = cells.get(start) or next((c for label, c in cells.items() if label.startswith(start)), {})
    why = cell.get("missing") or cell.get(metric, {}).get("missing", "")
    reason_word = next((word for reason, word in _REASONS.items() if why.startswith(reason)), "fails")
    return reason_word if why else ""


def _against(cells: dict[str, Any], ours: str, theirs: str, metric: str) -> str:
    return times(_over(_figure(cells, theirs, metric), _figure(cells, ours, metric)))


def title(label: str) -> str:
    """A label in words: "torch eager, fused" -> "PyTorch eager, fused"."""
    library, _, way = label.partition(" ")
    return f"{_NAMES.get(library, library)} {way}".strip()


# ---- tables of parts ------------------------------------------------------------------------------


def ways(part: dict[str, Any], heads: dict[str, str] = COLUMNS) -> str:
    """A part's cases by library and way to run it (or by what else labels begin with), microseconds."""
    metric = next(iter(metrics_of(part)), "")
    labels = {label for cells in part["cases"].values() for label in cells}
    columns = {c: head for c, head in heads.items() if any(label.startswith(c) for label in labels)}
    rows = []
    for name, cells in part["cases"].items():
        row = [name]
        for column in columns:
            fastest = best(cells, metric, column)
            row.append(_us(fastest[1]) if fastest else _absent(cells, column, metric))
        rows.append([*row, times(against_all(cells, metric))])
    return _table(["", *columns.values(), "best peer / ours"], rows)


def by_size(part: dict[str, Any]) -> str:
    """The ops of the part `large`: ours, and how many times as long the best peer takes, by size."""
    names = list(dict.fromkeys(name.rsplit(" ", 1)[0] for name in part["cases"]))
    sizes = list(dict.fromkeys(name.rsplit(" ", 1)[1] for name in part["cases"]))
    rows = []
    for name in names:
        row = [name]
        for size in sizes:
            cells = part["cases"][f"{name} {size}"]
            ours = best(cells, "op", "gradtape")
            row += [_us(ours[1]) if ours else "", times(against_all(cells, "op"))]
        rows.append(row)
    head = [text for size in sizes for text in (f"{int(size):,}", "peer / ours")]
    return _table(["elements", *head], rows)


def threads(one: dict[str, Any], two: dict[str, Any]) -> str:
    """How much quicker the second thread makes each workload."""
    labels = list(dict.fromkeys(label for cells in one["cases"].values() for label in cells))
    rows = []
    for name, cells in one["cases"].items():
        row = [name]
        for label in labels:
            a, b = _figure(cells, label, "step"), _figure(two.get(name, {}), label, "step")
            row.append(f"{_us(a)} ({a['min'] / b['min']:.2f})" if a and b else _us(a) if a else "")
        rows.append([*row, times(against_all(cells, "step"))])
    return _table(["", *(COLUMNS[label] for label in labels), "best peer / ours"], rows)


def first_calls(part: dict[str, Any]) -> str:
    """The first call of each compiled way, compilation included, in milliseconds."""
    columns = [c for c in COLUMNS if c not in _EAGER]
    rows = []
    for name, cells in part["cases"].items():
        times = [cells.get(c, {}).get("step", {}).get("first_ms") for c in columns]
        rows.append([name, *(number(ms) if ms else "" for ms in times)])
    return _table(["", *(COLUMNS[c] for c in columns)], rows)


def memory(part: dict[str, Any]) -> str:
    """Peak MB of the process, and how much of it is used after the import."""
    labels = [c for c in COLUMNS if any(c in cells for cells in part["cases"].values())]
    rows = []
    for name, cells in part["cases"].items():
        peaks = {label: cells[label]["peak"]["mb"] for label in labels if label in cells}
        ours = min((mb for label, mb in peaks.items() if label.startswith("gradtape")), default=None)
        others = min((mb for label, mb in peaks.items() if not label.startswith("gradtape")), default=None)
        row = [f"{peaks[label]:,.0f}" if label in peaks else "" for label in labels]
        rows.append([name, *row, times(Ratio(others / ours) if ours and others else None)])
    imported = [
        min(cells[label]["peak"]["imported_mb"] for cells in part["cases"].values() if label in cells)
        for label in labels
    ]
    rows.append(["after the import", *(f"{mb:,.0f}" for mb in imported), ""])
    return _table(["", *(COLUMNS[label] for label in labels), "least peer / ours"], rows)


def footprint(part: dict[str, Any]) -> str:
    rows = []
    for library, cell in part["import_ms"].items():
        sizes = part["size_mb"][library]
        rows.append([
            _NAMES[library], number(cell["min"]), number(cell["median"]),
            number(sum(mb for name, mb in sizes.items() if name.startswith(library))),
            number(sum(sizes.values())), str(len(sizes)),
        ])  # fmt: skip
    head = ["", "import, ms (min)", "median", "own files, MB", "with what it needs, MB", "packages"]
    return _table(head, rows)


def limits(part: dict[str, Any]) -> str:
    rows = []
    for count, rates in part["gflops"].items():
        who, rate = max(rates.items(), key=lambda one: one[1], default=("-", 0.0))
        memory = part["memory_gb_s"][count]
        ours = rates.get("gradtape eager", 0.0)
        rows.append([
            count, f"{rate:,.0f} ({title(who)})", f"{ours:,.0f}", number(memory["copy"]), number(memory["add"]),
            number(memory["update"]) if "update" in memory else "",
        ])  # fmt: skip
    head = [
        "threads",
        "products of matrices, GFLOP/s",
        "gradtape's",
        "copy, GB/s",
        "a + b, GB/s",
        "a += b, GB/s",
    ]
    return _table(head, rows)
