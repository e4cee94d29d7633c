"""Each picture twice: NAME.svg for light pages, NAME-dark.svg for dark ones. Equal figures make equal files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

_DARK = Path(__file__).resolve().parents[1] / "docs" / "dark.mplstyle"
_STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "figure.facecolor": "white",
    "legend.facecolor": "white",
    "svg.hashsalt": "gradtape",
}
# Colours that are too dim on a dark page, and what takes their place.
_ON_DARK = {
    "#0072B2": "#56B4E9", "#009E73": "#1FC296", "#D55E00": "#F27D2E", "#777777": "#a8a8a8", "#333333": "#a8a8a8",
    "#555555": "#b8b8b8",
}  # fmt: skip


def ground() -> str:
    """The colour of the page."""
    return str(plt.rcParams["legend.facecolor"])


def shade(color: str) -> str:
    """A colour, or its counterpart for dark pages while one of those pictures is drawn."""
    return color if ground() == "white" else _ON_DARK.get(color, color)


def save(make: Callable[[], Any], path: Path, style: dict[str, Any] | None = None) -> list[Path]:
    """Draws a picture in both looks; returns the files."""
    paths = []
    for theme in ("", "-dark"):
        with plt.rc_context(_STYLE | (style or {})):
            if theme:
                plt.style.use(_DARK)
            figure = make()
            paths.append(path.with_stem(path.stem + theme))
            figure.savefig(paths[-1], metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)
            plt.close(figure)
    return paths
