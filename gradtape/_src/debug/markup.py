"""HTML for notebooks: one style, headings, tables, text. `notebook` decides what is shown for which object.

A notebook is light or dark, and every viewer (JupyterLab, VS Code, Colab, a page of a site) says so in its own way.
The HTML does not depend on it: text has the colour of the surrounding text, and all other colours are mixed with
that one, so they are dark on light pages and light on dark ones. There are no scripts and no links; a viewer that
removes styles, as Jupyter does in notebooks that are not trusted, still shows plain tables.
"""

from __future__ import annotations

from collections.abc import Collection
from html import escape

# The class is repeated so that these rules take precedence over a notebook's own rules for tables.
STYLE = """
.gradtape.gradtape{font:13px/1.5 system-ui,sans-serif;overflow-x:auto}
.gradtape.gradtape p{margin:2px 0 4px}
.gradtape.gradtape p span{color:color-mix(in srgb,currentColor 65%,transparent);margin-left:12px;white-space:nowrap}
.gradtape.gradtape .bad{color:color-mix(in srgb,#e5383b 75%,currentColor)}
.gradtape.gradtape pre{font:12px/1.4 ui-monospace,monospace;margin:4px 0;padding:0;background:none;color:inherit;border:0;
white-space:pre;overflow:auto;max-height:32em}
.gradtape.gradtape table{border-collapse:collapse;border:0;margin:4px 0 8px;table-layout:auto;width:auto;font-size:12px;
color:inherit}
.gradtape.gradtape tbody tr:nth-child(n){background:none;border:0}
.gradtape.gradtape th,.gradtape.gradtape td{padding:2px 12px 2px 4px;text-align:left;vertical-align:top;border:0;
border-bottom:1px solid color-mix(in srgb,currentColor 15%,transparent);white-space:nowrap;max-width:none}
.gradtape.gradtape th{font-weight:600;color:color-mix(in srgb,currentColor 65%,transparent)}
.gradtape.gradtape td[style]{min-width:64px}
.gradtape.gradtape .r{text-align:right;font-variant-numeric:tabular-nums}
"""
_BAD, _RIGHT = ' class="bad"', ' class="r"'


def shell(*parts: str) -> str:
    """The HTML of a cell: the parts, with the style."""
    return f'<div class="gradtape"><style>{STYLE}</style>{"".join(parts)}</div>'


def heading(title: str, *facts: str) -> str:
    """A title, followed by short facts; empty facts are left out."""
    return f"<p><b>{escape(title)}</b>{''.join(f' <span>{escape(f)}</span>' for f in facts if f)}</p>"


def paragraph(text: str, bad: bool = False) -> str:
    """A sentence; with `bad`, in the colour for problems."""
    return f"<p{_BAD * bad}>{escape(text)}</p>"


def plain(text: str) -> str:
    """Preformatted text."""
    return f"<pre>{escape(text)}</pre>"


def table(rows: list[list[str]], right: str, bad: Collection[int] = ()) -> str:
    """A table, as for `graph.table`: the first row is the header; rows numbered in `bad`, from 1, have the colour
    for problems.

    A share ("12.5 %") has a bar of that length behind it. Blanks between cells are not shown; they keep words apart
    in copies and in the index of a site's search.
    """
    head = " ".join(_cell("th", text, side) for text, side in zip(rows[0], right, strict=True))
    body = "".join(
        f"<tr{_BAD * (i in bad)}>"
        + " ".join(_cell("td", text, side) for text, side in zip(row, right, strict=True))
        + "</tr>"
        for i, row in enumerate(rows[1:], 1)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(tag: str, text: str, side: str) -> str:
    bar = ""
    if tag == "td" and side == "r" and text.endswith("%"):
        share = f"{float(text[:-1]):.1f}%"
        bar = f' style="background:linear-gradient(90deg,#4a73b866 {share},transparent {share})"'
    return f"<{tag}{_RIGHT * (side == 'r')}{bar}>{escape(text)}</{tag}>"
