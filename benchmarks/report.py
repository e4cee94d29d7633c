"""Turns results into tables. A figure that is compared is a ratio: theirs over ours, minimum over minimum.

Only figures of undisturbed samples are compared; "busy" stands where the machine gave too few.
"""

from __future__ import annotations

from typing import Any


def _table(head: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(r[k]) for r in [head, *rows]) for k in range(len(head))]
    lines = [head, ["-" * w for w in widths], *rows]
    return "\n".join(
        "| "
        + " | ".join(
            c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(line, widths, strict=True))
        )
        + " |"
        for line in lines
    )


def _us(cell: dict[str, Any]) -> str:
    value = cell["min"]
    text = f"{value:.3f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:,.0f}"
    return text if cell["quiet"] else text + "!"


def _figure(cells: dict[str, Any], label: str, metric: str) -> dict[str, Any] | None:
    cell = cells.get(label, {}).get(metric, {})
    return cell if "min" in cell else None


def _absent(cells: dict[str, Any], label: str, metric: str) -> str:
    """What stands for a figure that is not there: a process that died is no missing feature."""
    cell = cells.get(label, {})
    why = cell.get("missing") or cell.get(metric, {}).get("missing", "")
    return "DIED" if why.startswith("the process") else "not yet"


def _against(cells: dict[str, Any], ours: str, theirs: str, metric: str) -> str:
    a, b = _figure(cells, ours, metric), _figure(cells, theirs, metric)
    if not a or not b:
        return "-"
    return f"{b['min'] / a['min']:.2f}" if a["quiet"] and b["quiet"] else "busy"


def disagreements(part: dict[str, Any]) -> list[str]:
    """Cases whose value differs from the others' by more than 0.1 %: measured for nothing."""
    found = []
    for name, cells in part["cases"].items():
        checks = {
            (label, metric): cell["check"]
            for label, metrics in cells.items()
            if isinstance(metrics, dict)
            for metric, cell in metrics.items()
            if isinstance(cell, dict) and cell.get("check")
        }
        for (label, metric), values in checks.items():
            ours = checks.get(("gradtape eager", metric), checks.get(("gradtape", metric)))
            if ours and any(
                abs(a - b) > 1e-3 * max(abs(b), 1e-12) for a, b in zip(ours, values, strict=False)
            ):
                found.append(f"{name}: {label} {metric} gives {values}, gradtape {ours}")
    return found


def overhead(part: dict[str, Any]) -> str:
    rows = []
    for name, cells in part["cases"].items():
        ours = _figure(cells, "gradtape", "op")
        rows.append([
            name, _us(ours) if ours else _absent(cells, "gradtape", "op"),
            f"{ours['median']:.3f}" if ours else "-",
            _against(cells, "gradtape", "tensorflow", "op"), _against(cells, "gradtape", "torch", "op"),
        ])  # fmt: skip
    head = ["recorded op", "gradtape us (min)", "median", "TensorFlow eager / ours", "PyTorch eager / ours"]
    return _table(head, rows)


def elementwise(part: dict[str, Any]) -> str:
    names = list(dict.fromkeys(name.rsplit(" ", 1)[0] for name in part["cases"]))
    sizes = list(dict.fromkeys(name.rsplit(" ", 1)[1] for name in part["cases"]))
    rows = []
    for name in names:
        row = [name]
        for size in sizes:
            cells = part["cases"][f"{name} {size}"]
            ours = _figure(cells, "gradtape", "op")
            ratio = _against(cells, "gradtape", "torch", "op")
            row.append(f"{_us(ours)} ({ratio})" if ours else _absent(cells, "gradtape", "op"))
        rows.append(row)
    return _table(["gradtape us (PyTorch / ours)", *[f"{int(s):,}" for s in sizes]], rows)


def workloads(part: dict[str, Any]) -> str:
    if "missing" in part:
        return part["missing"]
    labels = list(dict.fromkeys(label for cells in part["cases"].values() for label in cells))
    others = [label for label in labels if not label.startswith("gradtape")]
    rows = []
    for name, cells in part["cases"].items():
        for metric in ("step", "grad"):
            if not any(_figure(cells, label, metric) for label in labels):
                continue
            row = [f"{name} {metric}"]
            for way in _WAYS:
                ours = _figure(cells, way, metric)
                row.append(_us(ours) if ours else _absent(cells, way, metric))
            rows.append([*row, *(_like_with_like(cells, other, metric) for other in others)])
    return _table(["workload", *(f"{w} us" for w in _WAYS), *(f"{o} / ours" for o in others)], rows)


_WAYS = ("gradtape eager", "gradtape function")


def _like_with_like(cells: dict[str, Any], other: str, metric: str) -> str:
    """Eager against eager, compiled against compiled; (e) where only our eager mode can be compared."""
    eager, function = _WAYS
    if other.endswith((" eager", " numpy")):
        return _against(cells, eager, other, metric)
    if _figure(cells, function, metric):
        return _against(cells, function, other, metric)
    ratio = _against(cells, eager, other, metric)
    return ratio if ratio in ("-", "busy") else f"{ratio} (e)"


def footprint(part: dict[str, Any]) -> str:
    ours = part["import_ms"]["gradtape"]["min"]
    rows = [
        [f"import {library} after numpy", f"{cell['min']:.1f} ms", f"{cell['min'] / ours:.1f}"]
        for library, cell in part["import_ms"].items()
    ]
    size = part["package_mb"]
    packed = f", wheel {size['wheel']} MB" if size["wheel"] else ""
    lines = [
        _table(["", "min", "/ ours"], rows),
        f"package: {size['total']} MB (native {size['native']} MB{packed})",
        "import prints: " + (repr(part["import_prints"]) if part["import_prints"] else "nothing"),
        "slowest of our modules: " + ", ".join(f"{name} {ms} ms" for name, ms in part["import_detail_ms"]),
    ]
    return "\n".join(lines)
