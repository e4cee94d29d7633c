"""`tape.draw()`: the recorded graph as SVG. `draw_html` makes it interactive in a browser, `layout` computes
positions."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradtape import _core
from gradtape._src.debug.draw_html import page
from gradtape._src.debug.graph import Held, Recorded, are_known, elements, gradients, recorded, uses
from gradtape._src.debug.health import norm
from gradtape._src.debug.layout import Layout, layered
from gradtape._src.debug.lines import record
from gradtape._src.debug.memory import size
from gradtape._src.ops import TABLE
from gradtape._src.tensors import above

# Of larger tapes, the last records are drawn: browsers would stall, and nobody would find anything.
_MOST_RECORDS = 4000
_NEAR = 3  # a variable used this many records away, or further, is drawn again at its use
_CHARACTER = 6.7
_HEIGHT = 36.0

STYLE = """
.node rect{fill:#fff;stroke:#8a94a6;stroke-width:1.2}
.node text{font:12px system-ui,sans-serif;text-anchor:middle;fill:#1f2733}
.node .kind{font:10px ui-monospace,monospace;fill:#5b6675}
.variable rect{fill:#dcebd3;stroke:#5b8c3e}
.watched rect{fill:#d3e9ee;stroke:#3b8496}
.function rect{fill:#e8def5;stroke:#7e57b5}
.contraction rect{fill:#fdebd0;stroke:#c98a2b}
.reduction rect{fill:#e3ebf8;stroke:#4a73b8}
.target rect{stroke-width:3}
.again rect{stroke-dasharray:4 3}
.bad rect{stroke:#c62828;stroke-width:3;fill:#fbe1e1}
.edge{fill:none;stroke:#9aa5b5;stroke-width:1.2}
"""


class Box(NamedTuple):
    """A box of the picture, and the details that a click on it shows."""

    record: Recorded
    title: str
    kind: str
    classes: str
    details: list[tuple[str, str]]


class Picture(NamedTuple):
    """Boxes by key (a record's number; for a box that is drawn again, a pair with the number of its user), and the
    SVG."""

    boxes: dict[Any, Box]
    svg: str
    left_out: int  # the number of records that are not drawn


class Drawing(str):
    """The text of an SVG that a notebook shows as a picture to zoom, hover and click in."""

    counts = ""  # the numbers of records and variables, in words

    @staticmethod
    def of(picture: Picture) -> Drawing:
        every = {b.record.number: b.record for b in picture.boxes.values()}
        sources = sum(r.is_source for r in every.values())
        drawing = Drawing(picture.svg)
        counts = {"operation": len(every) - sources, "source": sources}
        drawing.counts = ", ".join(f"{n:,} {what}{'s' * (n != 1)}" for what, n in counts.items())
        if picture.left_out:
            drawing.counts += f" ({picture.left_out:,} earlier ones are left out)"
        return drawing

    def __repr__(self) -> str:
        return f'<drawing of {self.counts}; print it for the SVG, or tape.draw(file="tape.html") for a page>'

    _repr_html_ = above.shown

    def _repr_svg_(self) -> str:
        """For viewers that show no HTML, and for notebooks that become PDF files."""
        return str(self)


def draw(tape: Any, targets: list | None, file: Any) -> str:
    """The drawing of what is on the tape, or the path of the file that it was written to."""
    drawing = Drawing.of(picture_of(tape, targets))
    if file is None:
        return drawing
    path = Path(file)
    if path.suffix in (".html", ".htm"):
        path.write_text(page(drawing), encoding="utf-8")
    elif path.suffix == ".svg":
        path.write_text(drawing, encoding="utf-8")
    else:
        raise ValueError(f"draw: a picture is a .svg or .html file; got {str(file)!r}.")
    return str(file)


def picture_of(tape: Any, targets: list | None) -> Picture:
    """Boxes and lines for everything on the tape, or for what the targets depend on."""
    records = recorded(tape)
    ends: set[int] = set()
    if targets is not None:
        ends = {_number(t, records) for t in targets} - {0}
        if not ends:
            raise ValueError(
                "draw: the target is not on the tape. Hint: draw before gradient, or make the tape persistent; "
                "tape.explain(target, source) says why a target is not recorded."
            )
        records = _leading_to(records, ends)
    whole = len(records)
    records = _last(records)
    norms = _gradient_norms(tape, targets, records) if targets else {}
    kept = _values(records)
    described = {r.number: _box(r, norms, kept, r.number in ends) for r in records}
    boxes, edges = _graph(records, described)
    sizes = {k: (_width(b), _HEIGHT) for k, b in boxes.items()}
    return Picture(boxes, _svg(boxes, sizes, layered(sizes, edges)), whole - len(records))


def _number(target: Any, records: list[Recorded]) -> int:
    """The number of the record that produced a target; 0 if the tape has none."""
    number = _core.record_number(target) if isinstance(target, _core.Tensor) else 0
    return next((r.number for r in records if r.number == number or r.owner is target), 0)


def _leading_to(records: list[Recorded], ends: set[int]) -> list[Recorded]:
    numbers = set(ends)
    for r in reversed(records):
        if r.number in numbers:
            numbers |= {number for number, _ in r.origins}
    return [r for r in records if r.number in numbers]


def _last(records: list[Recorded]) -> list[Recorded]:
    """The last records, with the variables and watched tensors that they use."""
    if len(records) <= _MOST_RECORDS:
        return records
    last = records[-_MOST_RECORDS:]
    used = {number for r in last for number, _ in r.origins}
    return [r for r in records[:-_MOST_RECORDS] if r.is_source and r.number in used] + last


def _gradient_norms(tape: Any, targets: list, records: list[Recorded]) -> dict[tuple[int, int], float | None]:
    places = [
        ((r.number, k), v.tensor)
        for r in records
        for k, v in enumerate(r.results)
        if v.tensor.dtype.is_floating or v.tensor.dtype.is_complex
    ]
    grads = gradients(tape, targets, [tensor for _, tensor in places])
    if not are_known(grads):
        return {}
    return {
        place: None if g is None else norm(elements(g)) for (place, _), g in zip(places, grads, strict=True)
    }


def _values(records: list[Recorded]) -> dict[tuple[int, int], Any]:
    """Results that are still kept: by their own record, by one that used them, or by `debug.lines()`."""
    values: dict[tuple[int, int], Any] = {}
    for r in records:
        for place, v in zip(r.origins, r.operands, strict=True):
            if v.kept and place[0]:
                values[place] = v.tensor
        for k, v in enumerate(r.results):
            if v.kept:
                values[r.number, k] = v.tensor
    single = {r.number for r in records if len(r.results) == 1}
    lines = record()
    for number, x in lines.tensors.items() if lines is not None else ():
        if number in single and isinstance(x, _core.Tensor):
            values.setdefault((number, 0), x)
    return values


def _box(r: Recorded, norms: dict, values: dict, target: bool) -> Box:
    details = [("operation", r.what)]
    bad = False
    if r.name:
        details.append(("name", r.name))
    for i, (v, (number, _)) in enumerate(zip(r.operands, r.origins, strict=True)):
        details.append((f"operand {i}", v.kind + ("" if number else ", constant")))
    for k, v in enumerate(r.results):
        which = f" {k}" if len(r.results) > 1 else ""
        details.append((f"result{which}", v.kind))
        text, finite = _range(values.get((r.number, k)))
        bad |= not finite
        details.append((f"values{which}", text))
        if (r.number, k) in norms:
            g = norms[r.number, k]
            bad |= g is not None and not np.isfinite(g)
            details.append((f"gradient{which}", "None" if g is None else f"norm {g:.6g}"))
    sizes = {v.place: v.size for v in (*r.operands, *r.results) if v.kept}
    if sizes and not r.is_source:
        details.append(
            ("keeps", f"{size(sum(sizes.values()))} in {len(sizes)} value{'s' * (len(sizes) > 1)}")
        )
    if r.line is not None:
        details += [("line", str(r.line)), ("source", r.line.text)]
    classes = ["node", _class(r)] + ["target"] * target + ["bad"] * bad
    kind = _kinds(r.results)
    title = r.name or ("watched tensor" if r.what == "watched" else r.what)
    return Box(r, _short(title), kind, " ".join(c for c in classes if c), details)


def _class(r: Recorded) -> str:
    if r.is_source:
        return r.what
    if r.what in ("function", "custom gradient"):
        return "function"
    row = TABLE.get(r.what)
    return row.kind if row is not None and row.kind in ("contraction", "reduction") else ""


def _kinds(values: tuple[Held, ...]) -> str:
    text = values[0].kind if values else ""
    return text + (f" and {len(values) - 1} more" if len(values) > 1 else "")


def _range(x: Any) -> tuple[str, bool]:
    """The range of a result's elements, in words, and whether they are all finite."""
    if x is None:
        return "not kept", True
    values = elements(x)
    if values.size == 0:
        return "none: it is empty", True
    if values.dtype.kind == "c":
        return f"absolute values up to {np.abs(values).max():.6g}", bool(np.isfinite(values).all())
    finite = np.isfinite(values)
    if not finite.all():
        return f"{values.size - finite.sum()} of {values.size} are NaN or infinite", False
    if values.size == 1:
        return f"{values.reshape(())[()]:.6g}", True
    return f"{values.min():.6g} to {values.max():.6g}, mean {values.mean():.6g}", True


def _graph(records: list[Recorded], described: dict[int, Box]) -> tuple[dict, list]:
    """Boxes and edges. Variables are drawn again where they are used far away from their first use."""
    order = {r.number: i for i, r in enumerate(records)}
    first: dict[int, int] = {}
    boxes: dict[Any, Box] = {}
    edges: list[tuple[Any, Any]] = []
    copies: dict[int, list[Any]] = {}
    for a, _, b, _ in uses(records):
        if a not in described:
            continue
        start: Any = a
        if described[a].record.is_source and order[b] - first.setdefault(a, order[b]) > _NEAR:
            start = (a, b)
            copies.setdefault(b, []).append(start)
        edges.append((start, b))
    for r in records:
        for start in dict.fromkeys(copies.get(r.number, ())):
            box = described[start[0]]
            boxes[start] = box._replace(classes=box.classes + " again")
        boxes[r.number] = described[r.number]
    return boxes, edges


def _short(text: str, most: int = 34) -> str:
    return text if len(text) <= most else "…" + text[1 - most :]


def _width(box: Box) -> float:
    return max(len(box.title) * _CHARACTER, len(box.kind) * 6.1, 30.0) + 16


def _svg(boxes: dict[Any, Box], sizes: dict, at: Layout) -> str:
    width, height = max(at.width, 220.0), max(at.height, 48.0)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}">',
        f"<style>{STYLE}</style>",
        "<g>",
    ]
    for (a, b), bends in at.ways.items():
        ends = boxes[a].record.number, boxes[b].record.number
        out.append(
            f'<path class="edge" data-from="{ends[0]}" data-to="{ends[1]}" d="{_way(at, a, b, bends)}"/>'
        )
    for key, box in boxes.items():
        (x, y), (w, h) = at.places[key], sizes[key]
        told = escape("\n".join(f"{name}: {text}" for name, text in box.details))
        out.append(
            f'<g class="{box.classes}" data-number="{box.record.number}" transform="translate({x:.1f} {y:.1f})">'
            f'<title>{told}</title><rect x="{-w / 2:.1f}" y="{-h / 2:.1f}" width="{w:.1f}" height="{h:.1f}" rx="6"/>'
            f'<text y="-3">{escape(box.title)}</text><text class="kind" y="11">{escape(box.kind)}</text></g>'
        )
    if not boxes:
        out.append('<text x="12" y="28" font-family="sans-serif" font-size="13">Nothing is recorded.</text>')
    return "\n".join([*out, "</g>", "</svg>"])


def _way(at: Layout, a: Any, b: Any, bends: list[tuple[float, float]]) -> str:
    (x, y), (end_x, end_y) = at.places[a], at.places[b]
    y, end_y = y + _HEIGHT / 2, end_y - _HEIGHT / 2
    d = f"M{x:.1f} {y:.1f}"
    for nx, ny in (*bends, (end_x, end_y)):
        half = (y + ny) / 2
        d += f"C{x:.1f} {half:.1f} {nx:.1f} {half:.1f} {nx:.1f} {ny:.1f}"
        x, y = nx, ny
    # The arrowhead is part of the path: a marker would need an id, and a notebook has many drawings.
    return d + f"M{x - 3.5:.1f} {y - 7:.1f}L{x:.1f} {y:.1f}L{x + 3.5:.1f} {y - 7:.1f}"
