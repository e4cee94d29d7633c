"""The page around a drawn tape: zoom, pan, search, and a panel about the op that was clicked. Works offline."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradtape._src.debug.draw import Picture

_STYLE = """
html,body{margin:0;height:100%;overflow:hidden;font:13px system-ui,sans-serif;color:#1f2733;background:#f6f7f9}
#stage{position:absolute;inset:0;cursor:grab}
#stage.held{cursor:grabbing}
#stage svg{width:100%;height:100%;display:block;user-select:none}
.node{cursor:pointer}
.node.picked rect{stroke:#111;stroke-width:3}
.node.found rect{stroke:#d81b60;stroke-width:3}
.faded{opacity:.25}
.edge.near{stroke:#333;stroke-width:2}
#bar{position:absolute;left:12px;top:12px;display:flex;gap:6px}
#bar input,#bar button{font:inherit;padding:4px 8px;border:1px solid #b9c1cd;border-radius:6px;background:#fff}
#panel{position:absolute;right:12px;top:12px;width:340px;max-height:calc(100% - 48px);overflow:auto;background:#fff;
border:1px solid #b9c1cd;border-radius:8px;padding:10px 14px;box-shadow:0 2px 10px #0002}
#panel[hidden]{display:none}
#panel h2{font-size:15px;margin:2px 0 8px}
#panel table{border-collapse:collapse;width:100%}
#panel td{padding:3px 0;vertical-align:top;overflow-wrap:anywhere}
#panel td:first-child{color:#5b6675;padding-right:10px;white-space:nowrap}
#panel td:last-child{font-family:ui-monospace,monospace;font-size:12px}
#panel a{cursor:pointer;color:#1d5fb4}
#key{position:absolute;left:12px;bottom:10px;color:#5b6675}
"""

_SCRIPT = """
const records = JSON.parse(document.getElementById("records").textContent);
const svg = document.querySelector("#stage svg"), stage = document.getElementById("stage");
const graph = document.getElementById("graph"), panel = document.getElementById("panel");
const whole = svg.viewBox.baseVal, size = {w: whole.width, h: whole.height};
let scale = 1, x = 0, y = 0;
svg.removeAttribute("viewBox");
const show = () => graph.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
function fit() {
  const w = stage.clientWidth, h = stage.clientHeight - 90;
  scale = Math.max(Math.min(w / size.w, h / size.h, 1.5), 0.02);
  x = (w - size.w * scale) / 2, y = 50 + Math.max((h - size.h * scale) / 2, 0);
  show();
}
function zoom(factor, px, py) {
  const next = Math.min(Math.max(scale * factor, 0.02), 8);
  x = px - (px - x) * next / scale, y = py - (py - y) * next / scale, scale = next;
  show();
}
stage.addEventListener("wheel", e => {
  e.preventDefault();
  zoom(Math.exp(-e.deltaY * 0.0015), e.clientX, e.clientY);
}, {passive: false});
let held = null;
stage.addEventListener("pointerdown", e => {
  held = {x: e.clientX - x, y: e.clientY - y, px: e.clientX, py: e.clientY, moved: false};
});
addEventListener("pointermove", e => {
  if (!held) return;
  if (Math.hypot(e.clientX - held.px, e.clientY - held.py) > 3) held.moved = true, stage.classList.add("held");
  if (held.moved) x = e.clientX - held.x, y = e.clientY - held.y, show();
});
addEventListener("pointerup", e => {
  const click = held && !held.moved;
  held = null;
  stage.classList.remove("held");
  if (!click) return;
  const node = e.target.closest && e.target.closest(".node");
  if (node) pick(node.dataset.number); else if (stage.contains(e.target)) pick(null);
});
function cell(row, text) { const td = row.insertCell(); td.textContent = text; return td; }
function links(table, label, numbers) {
  if (!numbers.length) return;
  const row = table.insertRow();
  cell(row, label);
  const td = cell(row, "");
  numbers.forEach((n, i) => {
    const a = document.createElement("a");
    a.textContent = records[n].title;
    a.onclick = () => { pick(n); centre(n); };
    td.append(i ? ", " : "", a);
  });
}
function pick(number) {
  const near = new Set([number]), from = new Set(), to = new Set();
  for (const e of document.querySelectorAll(".edge")) {
    const on = number !== null && (e.dataset.from === number || e.dataset.to === number);
    e.classList.toggle("near", on);
    e.classList.toggle("faded", number !== null && !on);
    if (on) near.add(e.dataset.from), near.add(e.dataset.to);
    if (on && e.dataset.to === number) from.add(e.dataset.from);
    if (on && e.dataset.from === number) to.add(e.dataset.to);
  }
  for (const n of document.querySelectorAll(".node")) {
    n.classList.toggle("picked", n.dataset.number === number);
    n.classList.toggle("faded", number !== null && !near.has(n.dataset.number));
  }
  panel.hidden = number === null;
  panel.replaceChildren();
  if (number === null) return;
  const head = document.createElement("h2"), table = document.createElement("table");
  head.textContent = records[number].title;
  for (const [name, text] of records[number].details) { const row = table.insertRow(); cell(row, name); cell(row, text); }
  links(table, "comes from", [...from]);
  links(table, "goes to", [...to]);
  panel.append(head, table);
}
function centre(number) {
  const node = document.querySelector(`.node[data-number="${number}"]`);
  const at = node.transform.baseVal.consolidate().matrix;
  scale = Math.max(scale, 0.8), x = stage.clientWidth / 2 - at.e * scale, y = stage.clientHeight / 2 - at.f * scale;
  show();
}
document.getElementById("fit").onclick = fit;
document.getElementById("closer").onclick = () => zoom(1.3, stage.clientWidth / 2, stage.clientHeight / 2);
document.getElementById("farther").onclick = () => zoom(1 / 1.3, stage.clientWidth / 2, stage.clientHeight / 2);
const search = document.getElementById("search");
search.oninput = () => {
  const words = search.value.toLowerCase();
  for (const n of document.querySelectorAll(".node")) {
    const r = records[n.dataset.number];
    const text = (r.title + " " + r.details.map(d => d[1]).join(" ")).toLowerCase();
    n.classList.toggle("found", words !== "" && text.includes(words));
  }
};
search.onkeydown = e => {
  const first = document.querySelector(".node.found");
  if (e.key === "Enter" && first) pick(first.dataset.number), centre(first.dataset.number);
};
addEventListener("keydown", e => { if (e.key === "Escape") pick(null); });
addEventListener("resize", fit);
fit();
const asked = location.hash.slice(1);
if (asked in records) pick(asked);
"""

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>gradtape: a recorded graph</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="data:,">
<style>{style}</style></head>
<body><div id="stage">
{svg}
</div>
<div id="bar"><input id="search" type="search" placeholder="Find an op, a name, a line" aria-label="Find">
<button id="fit">Fit</button><button id="closer" aria-label="Zoom in">+</button>
<button id="farther" aria-label="Zoom out">−</button></div>
<div id="panel" hidden></div>
<div id="key">{count} operations, {sources} variables and watched tensors. Wheel: zoom. Drag: move. Click: details.</div>
<script type="application/json" id="records">{records}</script>
<script>{script}</script></body></html>
"""


def page(picture: Picture) -> str:
    """The page, in one piece: it asks for nothing from anywhere."""
    told = {str(b.record.number): {"title": b.title, "details": b.details} for b in picture.boxes.values()}
    every = {b.record.number: b.record for b in picture.boxes.values()}
    sources = sum(r.is_source for r in every.values())
    # "</script>" inside of a name or a line of code would end the element.
    records = json.dumps(told, ensure_ascii=False).replace("<", "\\u003c")
    return _PAGE.format(
        style=_STYLE,
        svg=picture.svg,
        count=len(every) - sources,
        sources=sources,
        records=records,
        script=_SCRIPT,
    )
