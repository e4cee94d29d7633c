"""The pictures of docs/benchmarks.md, as SVG files that are equal for equal figures.

Colours are those of Okabe and Ito, which colour-blind readers tell apart; each library has a shape of its own too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import growth as growing
import matplotlib.pyplot as plt
import report
import themes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from themes import ground, shade
from workloads.data import SHORT

LOOKS = {
    "gradtape": ("#D55E00", "D"),
    "tensorflow": ("#CC79A7", "s"),
    "torch": ("#0072B2", "o"),
    "jax": ("#009E73", "^"),
    "autograd": ("#777777", "v"),
}
_STYLE = {"axes.titlesize": 10, "axes.titleweight": "bold", "axes.titlelocation": "left"}
_LIBRARIES = {
    "gradtape": "gradtape", "tensorflow": "TensorFlow", "torch": "PyTorch", "jax": "JAX", "autograd": "autograd",
}  # fmt: skip


def _look(library: str) -> tuple[str, str]:
    """Colour and shape of a library."""
    color, marker = LOOKS[library]
    return shade(color), marker


def _plain(value: float, _: Any = None) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _log(axis: Any) -> None:
    """A logarithmic axis with plain numbers at the powers of ten."""
    axis.axes.set_xscale("log") if axis.axis_name == "x" else axis.axes.set_yscale("log")
    axis.set_major_formatter(FuncFormatter(_plain))
    axis.set_minor_formatter(NullFormatter())


def _dots(ax: Any, names: list[str], values: Callable[[str, str], float | None]) -> None:
    """One row per name and one mark per library; ours is drawn last and larger."""
    for library in (*list(LOOKS)[1:], "gradtape"):
        points = [(v, k) for k, name in enumerate(names) if (v := values(name, library))]
        if points:
            color, marker = _look(library)
            size = 60 if library == "gradtape" else 34
            ax.scatter(
                *zip(*points, strict=True), s=size, c=color, marker=marker, label=_LIBRARIES[library],
                linewidths=0.5, edgecolors=ground(), zorder=4 if library == "gradtape" else 3,
            )  # fmt: skip
    ax.set_yticks(range(len(names)), [f"{name} {SHORT.get(name, '')}".strip() for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    _log(ax.xaxis)


def _legend(figure: Any, ax: Any) -> None:
    """One legend under the picture, ours first."""
    handles, labels = ax.get_legend_handles_labels()
    titles = list(_LIBRARIES.values())
    order = sorted(range(len(labels)), key=lambda k: (titles + labels).index(labels[k]))
    figure.legend(
        [handles[k] for k in order], [labels[k] for k in order],
        loc="outside lower center", ncols=len(order), frameon=False, handletextpad=0.3,
    )  # fmt: skip


def _figure(*shape: int, size: tuple[float, float]) -> tuple[Any, Any]:
    return plt.subplots(*shape, figsize=size, layout="constrained")


def summary(parts: dict[str, Any]) -> Any:
    """Each workload: the best of every library over the best of our peers."""
    cases = parts["workloads"]["cases"]
    figure, ax = _figure(size=(8, 0.42 * len(cases) + 1.6))

    def relative(name: str, library: str) -> float | None:
        ours = report.best(cases[name], "step", library + " ")
        peer = report.best(cases[name], "step", *report.peers_of(cases[name]))
        return ours[1]["min"] / peer[1]["min"] if ours and peer else None

    _dots(ax, list(cases), relative)
    ax.axvline(1, color=shade("#333333"), linewidth=1, zorder=2)
    ax.set_xlabel(
        "time over that of the fastest peer, logarithmic: left of the line is faster than all of them"
    )
    ax.set_title("Whole steps, each library in its best mode")
    _legend(figure, ax)
    return figure


def overhead(parts: dict[str, Any]) -> Any:
    cases = parts["overhead"]["cases"]
    figure, ax = _figure(size=(8, 0.36 * len(cases) + 1.5))

    def cost(name: str, library: str) -> float | None:
        best = report.best(cases[name], "op", library + " ")
        return best[1]["min"] if best else None

    _dots(ax, list(cases), cost)
    ax.set_xlabel("microseconds, logarithmic")
    ax.set_title("Recording one small op, eager")
    _legend(figure, ax)
    return figure


# Ops of the picture, and how many arrays each must move through memory.
_MOVED = {"add": 3, "tanh": 2, "sum": 1, "sum axis 0": 1, "softmax": 2, "matmul": 0}


def scaling(parts: dict[str, Any]) -> Any:
    """Time by size, with the machine's limit."""
    cases = parts["large"]["cases"]
    measured = {case.rsplit(" ", 1)[0] for case in cases}
    names = [name for name in _MOVED if name in measured]
    rows = -(-len(names) // 3)
    figure, grid = _figure(rows, min(3, len(names)), size=(9.5, 2.7 * rows + 0.6))
    axes = list(grid.flat) if hasattr(grid, "flat") else [grid]
    for ax, name in zip(axes, names, strict=False):
        sizes = [int(case.rsplit(" ", 1)[1]) for case in cases if case.rsplit(" ", 1)[0] == name]
        for library in LOOKS:
            color, marker = _look(library)
            best_by_size = [(n, report.best(cases[f"{name} {n}"], "op", library + " ")) for n in sizes]
            points = [(n, cell[1]["min"]) for n, cell in best_by_size if cell]
            if points:
                ours = library == "gradtape"
                ax.plot(
                    *zip(*points, strict=True), color=color, marker=marker, label=_LIBRARIES[library],
                    linewidth=2.2 if ours else 1.2, markersize=6 if ours else 4, zorder=4 if ours else 3,
                )  # fmt: skip
        limit = _limit(name, parts.get("limits"))
        if limit:
            ax.plot(
                sizes, [limit(n) for n in sizes], color=shade("#555555"), linewidth=1, linestyle=(0, (4, 3)),
                label="memory bandwidth (matmul: best rate of products)",
            )  # fmt: skip
        _log(ax.yaxis)
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(FuncFormatter(_short))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_title(name)
        ax.set_xlabel("elements" if name != "matmul" else "elements of each square matrix")
    for ax in axes[len(names) :]:
        ax.set_visible(False)
    figure.supylabel("microseconds", fontsize=10)
    _legend(figure, axes[0])
    return figure


def _limit(name: str, limits: dict[str, Any] | None) -> Callable[[int], float] | None:
    """Microseconds that an op of n elements takes at least, if memory or multiplication is the limit."""
    if not limits:
        return None
    threads = max(limits["gflops"], key=int)
    if name == "matmul":
        rate = max(limits["gflops"][threads].values(), default=0.0)
        return (lambda n: 2 * round(n**0.5) ** 3 / rate / 1e3) if rate else None
    rate = max(limits["memory_gb_s"][threads].values())
    return lambda n: 4 * n * _MOVED[name] / rate / 1e3


def _grown(part: dict[str, Any], what: str, unit: str) -> Any:
    """A panel per axis, a line per way to run: the cost of one unit by their number. Eager ways are dashed."""
    names = list(dict.fromkeys(growing.split(case)[0] for case in part["cases"]))
    shown = growing.per_unit(part, what)["cases"]
    rows = -(-len(names) // 4)
    figure, grid = _figure(rows, min(4, len(names)), size=(11.5, 2.7 * rows + 0.6))
    axes = list(grid.flat) if hasattr(grid, "flat") else [grid]
    for ax, name in zip(axes, names, strict=False):
        axis = growing.AXES[name]
        for label in axis.labels:
            sizes = {case: growing.split(case)[1] for case in shown if growing.split(case)[0] == name}
            best_by_size = {n: report.best(shown[case], "unit", label) for case, n in sizes.items()}
            points = [(n, best[1]["min"]) for n, best in best_by_size.items() if best]
            if points:
                library, eager = label.split()[0], label.endswith("eager")
                color, marker = _look(library)
                ours = library == "gradtape"
                ax.plot(
                    *zip(*points, strict=True), color=color, marker=marker, label=report.title(label),
                    linestyle=(0, (3, 1.5)) if eager else "-", markerfacecolor=ground() if eager else color,
                    linewidth=2 if ours else 1.2, markersize=5.5 if ours else 4, zorder=4 if ours else 3,
                )  # fmt: skip
        _log(ax.yaxis)
        _log(ax.xaxis)
        ax.yaxis.set_major_locator(LogLocator(numticks=6))
        ax.yaxis.set_major_formatter(FuncFormatter(_short))
        ax.xaxis.set_major_formatter(FuncFormatter(_short))
        if max(axis.sizes) < 10:
            ax.set_xscale("linear")
            ax.set_xticks(axis.sizes)
        else:
            ax.set_xticks(axis.sizes, minor=False)
        ax.minorticks_off()
        ax.set_title(axis.words)
        ax.set_ylabel(f"{unit} / {axis.unit}")
    for ax in axes[len(names) :]:
        ax.set_visible(False)
    _legend(figure, max(axes, key=lambda ax: len(ax.get_legend_handles_labels()[1])))
    return figure


def _short(value: float, _: Any = None) -> str:
    if value >= 1024 and math.log2(value).is_integer():
        return f"{value / 1024:g}k"  # 1k and not 1.02k
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:.3g}k" if value >= 1e3 else f"{value:g}"


def growth(parts: dict[str, Any]) -> Any:
    return _grown(parts["growth"], "whole", "us")


def growth_memory(parts: dict[str, Any]) -> Any:
    return _grown(parts["growth"], "bytes", "bytes")


def memory(parts: dict[str, Any]) -> Any:
    """Peak memory as bars: what the import took, and what the steps added."""
    cases = parts["memory"]["cases"]
    labels = [c for c in report.COLUMNS if any(c in cells for cells in cases.values())]
    figure, axes = _figure(1, len(cases), size=(max(4.8, 1.75 * len(cases) + 1.6), 0.33 * len(labels) + 1.4))
    axes = list(axes) if hasattr(axes, "__len__") else [axes]
    for ax, (name, cells) in zip(axes, cases.items(), strict=True):
        for k, label in enumerate(labels):
            if label in cells:
                peak = cells[label]["peak"]
                color, _ = _look(label.split()[0])
                ax.barh(k, peak["imported_mb"], color=color, alpha=0.35)
                ax.barh(k, peak["mb"] - peak["imported_mb"], left=peak["imported_mb"], color=color)
                ax.text(peak["mb"], k, f" {peak['mb']:,.0f}", va="center", fontsize=8)
        ax.set_yticks(range(len(labels)), [report.title(c) for c in labels] if ax is axes[0] else [])
        ax.set_ylim(len(labels) - 0.5, -0.5)
        ax.margins(x=0.28)
        ax.set_title(name)
        ax.grid(axis="y", visible=False)
        ax.locator_params(axis="x", nbins=3)
        ax.xaxis.set_major_formatter(FuncFormatter(_plain))
    figure.supxlabel("MB at the peak (faint: after the import)", fontsize=10)
    return figure


def footprint(parts: dict[str, Any]) -> Any:
    part = parts["footprint"]
    names = list(part["import_ms"])
    figure, axes = _figure(1, 2, size=(8.5, 0.36 * len(names) + 1.1))
    sizes = {name: sum(part["size_mb"][name].values()) for name in names}
    for ax, values, unit, head in (
        (axes[0], {n: part["import_ms"][n]["min"] for n in names}, "ms", "import, after numpy"),
        (axes[1], sizes, "MB", "on disk, with all it needs"),
    ):
        ax.barh(range(len(names)), list(values.values()), color=[_look(n)[0] for n in names], height=0.62)
        for k, value in enumerate(values.values()):
            ax.text(value, k, f" {value:,.0f} {unit}", va="center", fontsize=9)
        ax.set_yticks(range(len(names)), [_LIBRARIES[n] for n in names] if ax is axes[0] else [])
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.margins(x=0.22)
        ax.locator_params(axis="x", nbins=5)
        ax.xaxis.set_major_formatter(FuncFormatter(_plain))
        ax.grid(axis="y", visible=False)
        ax.set_title(head)
    return figure


def first_call(parts: dict[str, Any]) -> Any:
    cases = parts["workloads"]["cases"]
    figure, ax = _figure(size=(8, 0.42 * len(cases) + 1.5))
    ways = {"gradtape": "function", "tensorflow": "function", "torch": "compile", "jax": "jit"}

    def seconds(name: str, library: str) -> float | None:
        label = f"{library} {ways.get(library, '-')}"
        ms = cases[name].get(label, {}).get("step", {}).get("first_ms")
        return ms / 1e3 if ms else None

    _dots(ax, list(cases), seconds)
    ax.set_xlabel("seconds, logarithmic")
    ax.set_title("First call of a compiled step, compilation included")
    _legend(figure, ax)
    return figure


# Picture -> the part it needs, and how it is drawn.
PICTURES: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "summary": ("workloads", summary),
    "overhead": ("overhead", overhead),
    "scaling": ("large", scaling),
    "first_call": ("workloads", first_call),
    "growth": ("growth", growth),
    "growth_memory": ("growth", growth_memory),
    "memory": ("memory", memory),
    "footprint": ("footprint", footprint),
}


def draw(parts: dict[str, Any], folder: Path, suffix: str = "svg") -> list[Path]:
    """Draws every picture whose part was measured, for light pages and for dark ones."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, (part, make) in PICTURES.items():
        if part in parts:
            paths += themes.save(functools.partial(make, parts), folder / f"{name}.{suffix}", _STYLE)
    return paths
