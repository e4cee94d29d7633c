"""HTML for notebooks: one style, headings, tables, text. What is shown of which object is in `notebook`.

A notebook is light or dark, and who shows it (JupyterLab, VS Code, Colab, a page of a site) says so in a way of its own.
Nothing here asks: text has the colour of the text around it, and every other colour is mixed with that one, so
it is dark on light pages and light on dark ones. There are no scripts and no addresses; a viewer that takes
styles away, as Jupyter does with notebooks that are not trusted, still shows plain tables.
"""

from __future__ import annotations

from collections.abc import Collection
from html import escape

# The class twice: rules of a notebook for all of its tables weigh more than those of one class.
STYLE = """
.gradtape.gradtape{font:13px/1.5 system-ui,sans-serif;overflow-x:auto}
.gradtape.gradtape p{margin:2px 0 4px}
.gradtape.gradtape p span{color:color-mix(in srgb,currentColor 65%,transparent);margin-left:12px;white-space:nowrap}
.gradtape.gradtape .bad{color:color-mix(in srgb,#e5383b 75%,currentColor)}
.gradtape.gradtape pre{font:12px/1.4 ui-monospace,monospace;margin:4px 0;padding:0;background:none;color:inherit;border:0;
white-space:pre;overflow-x:auto}
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
    """What a cell shows: the parts, with the style."""
    return f'<div class="gradtape"><style>{STYLE}</style>{"".join(parts)}</div>'


def heading(title: str, *facts: str) -> str:
    """A title, and beside it what else there is to say in a word or two; empty facts are left out."""
    return f"<p><b>{escape(title)}</b>{''.join(f' <span>{escape(f)}</span>' for f in facts if f)}</p>"


def paragraph(text: str, bad: bool = False) -> str:
    """A sentence; `bad` in the colour of trouble."""
    return f"<p{_BAD * bad}>{escape(text)}</p>"


def plain(text: str) -> str:
    """Text as it is, in letters of one width."""
    return f"<pre>{escape(text)}</pre>"


def table(rows: list[list[str]], right: str, bad: Collection[int] = ()) -> str:
    """Rows as of `graph.table`: the first is the head; those numbered in `bad`, from 1, have the colour of trouble.

    A share ("12.5 %") has a bar of that length behind it.
    """
    head = "".join(_cell("th", text, side) for text, side in zip(rows[0], right, strict=True))
    body = "".join(
        f"<tr{_BAD * (i in bad)}>"
        + "".join(_cell("td", text, side) for text, side in zip(row, right, strict=True))
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
