"""Pictures by Matplotlib (extra `demo`): health of gradients, profiles, patterns of Jacobians. One figure each.

A picture is written to a file, or shown by a notebook. Nothing here uses `pyplot`: no window opens. Colours fit a dark
style of Matplotlib, if the program uses one.
"""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradtape import _core

if TYPE_CHECKING:
    from gradtape._src.debug.health import Health
    from gradtape._src.debug.programs import Profile

_MOST_STEPS = 15  # the longest steps of a profile; the others share a bar
_MOST_CELLS = 400  # on each side of a pattern: more would be smaller than a pixel


class Colours(NamedTuple):
    """What stands out on the ground of a figure; `pattern` are the colours of a matrix."""

    ink: Any
    blue: str
    grey: str
    red: str
    orange: str
    pattern: str

    @staticmethod
    def now() -> Colours:
        """The colours for Matplotlib's present style: light text means a dark ground."""
        from matplotlib import rcParams
        from matplotlib.colors import to_rgb

        ink = rcParams["text.color"]
        if sum(to_rgb(ink)) > 1.5:
            return Colours(ink, "#6f9fe0", "#596579", "#f2716b", "#e6a23c", "Blues_r")
        return Colours(ink, "#3567b0", "#b8c4d6", "#b3261e", "#e6a23c", "Blues")


class Plot:
    """A picture: a notebook shows it, `figure` is Matplotlib's."""

    def __init__(self, what: str, figure: Any) -> None:
        self.what = what
        self.figure = figure

    def __repr__(self) -> str:
        return f"<picture of {self.what}: plot.figure.savefig(file) writes it>"

    def _repr_png_(self) -> bytes:
        written = io.BytesIO()
        self.figure.savefig(written, dpi=96, format="png")
        return written.getvalue()


def _figure(what: str, width: float, height: float, columns: int = 1) -> tuple[Any, Any]:
    """A figure and its axes, side by side."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(f"{what}: Matplotlib is not installed. Hint: pip install matplotlib.") from None
    figure = Figure(figsize=(width * columns, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def _finished(what: str, figure: Any, file: str | Path | None) -> Plot | str:
    if file is None:
        return Plot(what, figure)
    figure.savefig(file, dpi=120)
    return str(file)


def _bars(axes: Any, names: list[str], xlabel: str, title: str) -> None:
    """Settings common to all charts of horizontal bars: the first on top, the legend beside the title, away from
    the bars."""
    axes.set_yticks(np.arange(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel(xlabel)
    axes.set_title(title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False, borderaxespad=0)


def _short(text: str, most: int = 56) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


# ---- health ---------------------------------------------------------------------------------------------


def plot_health(health: Health, file: str | Path | None) -> Plot | str:
    """Norms of gradients and weights, and the share of dead and saturated units."""
    tall = max(len(health.sources), len(health.units), 4)
    figure, axes = _figure("health.plot", 7, 1.2 + 0.32 * tall, 2 if health.units else 1)
    _plot_sources(axes[0], health)
    if health.units:
        _plot_units(axes[1], health)
    return _finished("the health of gradients", figure, file)


def _finite(x: float | None) -> float:
    return x if x is not None and math.isfinite(x) else 0.0


def _plot_sources(axes: Any, health: Health) -> None:
    colours = Colours.now()
    at = np.arange(len(health.sources))
    weights = [_finite(s.weight) for s in health.sources]
    grads = [_finite(s.gradient) for s in health.sources]
    axes.barh(at - 0.2, weights, 0.36, color=colours.grey, label="weights")
    axes.barh(at + 0.2, grads, 0.36, color=colours.blue, label="gradient")
    steps = [_finite(s.update) for s in health.sources]
    if any(steps):
        axes.plot(steps, at + 0.2, "D", color=colours.orange, markeredgecolor=colours.ink, label="update")
    _whole_decades(axes, [x for x in (*weights, *grads, *steps) if x])
    names = [f"{s.name}  ({s.trouble.split(':')[0]})" if s.trouble else s.name for s in health.sources]
    _bars(axes, names, "norm", "Gradients and weights")
    for label, s in zip(axes.get_yticklabels(), health.sources, strict=True):
        label.set_color(colours.red if s.trouble else colours.ink)


def _whole_decades(axes: Any, lengths: list[float]) -> None:
    """A logarithmic axis between powers of ten: each bar can be seen, and each label read."""
    if not lengths:
        return
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = math.floor(math.log10(min(lengths)) - 0.1), math.ceil(math.log10(max(lengths)))
    axes.set_xscale("log")
    axes.set_xlim(10.0**low, 10.0 ** max(high, low + 1))
    axes.xaxis.set_major_locator(LogLocator(numticks=8))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _plot_units(axes: Any, health: Health) -> None:
    colours = Colours.now()
    at = np.arange(len(health.units))
    dead = np.array([100 * u.dead / max(u.units, 1) for u in health.units])
    axes.barh(at, dead, 0.6, color=colours.red, label="dead")
    saturated = [100 * u.saturated / max(u.units, 1) for u in health.units]
    axes.barh(at, saturated, 0.6, left=dead, color=colours.orange, label="saturated")
    names = [f"{u.op} {list(u.shape)}" + (f" {u.line}" if u.line else "") for u in health.units]
    axes.set_xlim(0, 100)
    _bars(axes, names, "% of the units", "Activations")


# ---- profile --------------------------------------------------------------------------------------------


def plot_profile(profile: Profile, file: str | Path | None) -> Plot | str:
    """The time of the longest steps, and of all others together."""
    ranked = sorted(profile.steps, key=lambda s: -s.seconds)
    times = [s.seconds * 1e6 for s in ranked[:_MOST_STEPS]]
    names = []
    for s in ranked[:_MOST_STEPS]:
        where = "".join(f"\n{line}: {line.text}" for line in s.lines[:1])
        names.append("\n".join(_short(part) for part in (s.what + where).split("\n")))
    if len(ranked) > _MOST_STEPS:
        times.append(sum(s.seconds for s in ranked[_MOST_STEPS:]) * 1e6)
        names.append(f"all others ({len(ranked) - _MOST_STEPS})")
    figure, (axes,) = _figure("profile.plot", 9, 1.2 + 0.42 * max(len(names), 3))
    bars = axes.barh(np.arange(len(names)), times, 0.6, color=Colours.now().blue)
    whole = max(profile.seconds * 1e6, 1e-30)
    axes.bar_label(bars, [f"{t / whole:.0%}" for t in times], padding=4)
    axes.margins(x=0.1)
    _bars(axes, names, "microseconds", f"{profile.name}: {whole:,.1f} us in {len(ranked)} steps")
    axes.tick_params(axis="y", labelsize=8)
    return _finished(f"the profile of {profile.name}", figure, file)


# ---- patterns -------------------------------------------------------------------------------------------


def plot_sparsity(matrix: Any, file: str | Path | None = None) -> Plot | str:
    """A picture of the nonzero elements of a matrix.

    >>> import gradtape as tf
    >>> j = tf.autodiff.sparse_jacobian(lambda x: x[1:] - x[:-1], tf.range(100.0))
    >>> tf.debug.plot_sparsity(j)
    <picture of a matrix of 99 x 100, 198 not zero (2 %): plot.figure.savefig(file) writes it>

    Args:
      matrix: a Jacobian from `tf.autodiff.sparse_jacobian`, any SciPy matrix, or a tensor or array of two
        dimensions. In large matrices a cell of the picture represents several elements.
      file: where to write it; without it, the picture is returned, and shown by a notebook.

    Returns:
      The picture, or the path of the file.

    Raises:
      ValueError: if it does not have two dimensions.
      ImportError: without Matplotlib.
    """
    if isinstance(matrix, (_core.Tensor, _core.Variable)) or not hasattr(matrix, "tocoo"):
        dense = np.asarray(matrix)
        shape, (rows, columns) = dense.shape, np.nonzero(dense) if dense.ndim == 2 else ((), ())
    else:
        coo = matrix.tocoo()
        shape, keep = coo.shape, coo.data != 0
        rows, columns = coo.row[keep], coo.col[keep]
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"plot_sparsity: expected a matrix; got an array of shape {tuple(shape)}.")
    height, width = shape
    share = 100 * len(rows) / (height * width)
    what = f"{height:,} x {width:,}, {len(rows):,} not zero ({share:.2g} %)"
    cells = min(height, _MOST_CELLS), min(width, _MOST_CELLS)
    density, _, _ = np.histogram2d(rows, columns, cells, ((0, height), (0, width)))
    tall = min(max(4 * height / width, 1.5), 8)
    figure, (axes,) = _figure("plot_sparsity", 4.6, tall + 0.8)
    # Cells represent many elements: the more nonzeros, the stronger, but never too weak to be seen.
    shown = np.ma.masked_equal(np.where(density > 0, 0.35 + 0.65 * density / max(density.max(), 1), 0), 0)
    edges = (-0.5, width - 0.5, height - 0.5, -0.5)
    axes.imshow(
        shown,
        cmap=Colours.now().pattern,
        vmin=0,
        vmax=1,
        extent=edges,
        interpolation="nearest",
        aspect="auto",
    )
    axes.locator_params(integer=True)
    axes.set_xlabel("element of x")
    axes.set_ylabel("element of f(x)")
    axes.set_title(what, loc="left", fontsize=10)
    return _finished(f"a matrix of {what}", figure, file)
