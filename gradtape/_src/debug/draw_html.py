"""A drawn tape in a browser: zoom, pan, search, and details of each box. Works offline, in a cell or as a page.

The drawing is an image, which the script takes apart and makes interactive. Where scripts do not run, as in a
notebook that is not trusted, the image remains. Colours are derived from the colour of the surrounding text, as in
`markup`.
"""

from __future__ import annotations

import base64
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradtape._src.debug.draw import Drawing

_STYLE = """
.gradtape-drawing{font:13px/1.45 system-ui,sans-serif;--line:color-mix(in srgb,currentColor 25%,transparent)}
.gradtape-drawing .bar{display:flex;gap:6px;align-items:center;margin:4px 0;flex-wrap:wrap}
.gradtape-drawing .bar input,.gradtape-drawing .bar button{font:inherit;color:inherit;background:transparent;margin:0;
padding:2px 8px;border:1px solid var(--line);border-radius:5px;width:auto;height:auto}
.gradtape-drawing .bar input{width:215px}
.gradtape-drawing .bar input::placeholder{color:inherit;opacity:.6}
.gradtape-drawing .hint{opacity:.65}
.gradtape-drawing .row{display:flex;border:1px solid var(--line);border-radius:6px;overflow:hidden}
.gradtape-drawing .stage{flex:1;min-width:0;cursor:grab;outline:none;touch-action:none;resize:vertical;overflow:hidden}
.gradtape-drawing .stage.held{cursor:grabbing}
.gradtape-drawing .stage svg{width:100%;height:100%;max-width:none;display:block;user-select:none}
.gradtape-drawing .told{flex:0 0 34%;box-sizing:border-box;max-width:340px;contain:size;overflow:auto;
padding:6px 12px;border-left:1px solid var(--line)}
.gradtape-drawing .told b{display:block;font-size:14px;margin-bottom:4px;overflow-wrap:anywhere}
.gradtape-drawing .told dl{display:grid;grid-template-columns:auto 1fr;gap:2px 10px;margin:0}
.gradtape-drawing .told dt{opacity:.65;font-weight:normal;margin:0}
.gradtape-drawing .told dd{margin:0;font:12px/1.5 ui-monospace,monospace;overflow-wrap:anywhere}
.gradtape-drawing .told a{cursor:pointer;color:color-mix(in srgb,#2f7de1 80%,currentColor)}
.gradtape-drawing .key i{display:inline-block;width:10px;height:10px;margin-right:5px;border-radius:3px;border:2px solid}
.gradtape-drawing .key div{margin:2px 0}
.gradtape-drawing .node,.gradtape-drawing .key i{--hue:#8a94a6}
.gradtape-drawing .variable.variable{--hue:#5b8c3e}
.gradtape-drawing .watched.watched{--hue:#3b8496}
.gradtape-drawing .function.function{--hue:#8a63c4}
.gradtape-drawing .contraction.contraction{--hue:#c98a2b}
.gradtape-drawing .reduction.reduction{--hue:#4a73b8}
.gradtape-drawing .bad.bad{--hue:#d93636}
.gradtape-drawing .key i{border-color:var(--hue);background:color-mix(in srgb,var(--hue) 16%,transparent)}
.gradtape-drawing .node{cursor:pointer}
.gradtape-drawing .node rect{fill:color-mix(in srgb,var(--hue) 16%,transparent);stroke:var(--hue);stroke-width:1.3}
.gradtape-drawing .node text{font:12px system-ui,sans-serif;text-anchor:middle;fill:currentColor}
.gradtape-drawing .node .kind{font:10px ui-monospace,monospace;fill-opacity:.7}
.gradtape-drawing .target rect,.gradtape-drawing .bad rect{stroke-width:3}
.gradtape-drawing .again rect{stroke-dasharray:4 3}
.gradtape-drawing .edge{fill:none;stroke:currentColor;stroke-opacity:.4;stroke-width:1.2}
.gradtape-drawing .edge.up,.gradtape-drawing .edge.down{stroke-opacity:1;stroke-width:2.2}
.gradtape-drawing .edge.up{stroke:#2f7de1}
.gradtape-drawing .edge.down{stroke:#e07b1f}
.gradtape-drawing .picked rect{stroke:currentColor;stroke-width:3}
.gradtape-drawing .found rect{stroke:#d81b60;stroke-width:3}
.gradtape-drawing .faded{opacity:.2}
"""

# Handles all drawings that are not live yet: cells run their scripts in any order, and some viewers move scripts.
_SCRIPT = r"""
for (const host of document.querySelectorAll(".gradtape-drawing:not([data-live])")) (host => {
  host.dataset.live = "";
  const make = (kind, name, ...inside) => {
    const e = document.createElement(kind);
    e.className = name, e.append(...inside);
    return e;
  };
  const image = host.querySelector("img"), whole = host.classList.contains("whole");
  const bytes = Uint8Array.from(atob(image.src.split(",")[1]), c => c.charCodeAt(0));
  const parsed = new DOMParser().parseFromString(new TextDecoder().decode(bytes), "image/svg+xml");
  const svg = document.importNode(parsed.documentElement, true), graph = svg.querySelector("g");
  const size = {w: svg.viewBox.baseVal.width, h: svg.viewBox.baseVal.height};
  svg.querySelector("style").remove();
  ["viewBox", "width", "height"].forEach(a => svg.removeAttribute(a));
  const nodes = [...svg.querySelectorAll(".node")], edges = [...svg.querySelectorAll(".edge")];
  const records = {}, into = {}, out = {};
  for (const n of nodes) {
    const title = n.querySelector("title");
    records[n.dataset.number] = {
      title: n.querySelector("text").textContent,
      details: title.textContent.split("\n").map(t => [t.slice(0, t.indexOf(": ")), t.slice(t.indexOf(": ") + 2)]),
    };
    title.remove();  // what the panel tells at once, a title would tell again after a while
  }
  for (const e of edges) {
    (into[e.dataset.to] ??= new Set()).add(e.dataset.from);
    (out[e.dataset.from] ??= new Set()).add(e.dataset.to);
  }
  const search = make("input", "");
  search.type = "search", search.placeholder = "Find an op, a name, a line";
  const button = (text, does) => { const b = make("button", "", text); b.onclick = does; return b; };
  const middle = factor => zoom(factor, stage.clientWidth / 2, stage.clientHeight / 2);
  const hint = make("span", "hint", "Drag: move. " + (whole ? "Wheel" : "Wheel, after a click") +
    ": zoom. Click: the way to the sources.");
  const stage = make("div", "stage", svg), told = make("div", "told");
  stage.tabIndex = 0;
  image.replaceWith(make("div", "bar", search, button("Fit", () => fit()), button("+", () => middle(1.3)),
    button("−", () => middle(1 / 1.3)), hint), make("div", "row", stage, told));

  let scale = 1, x = 0, y = 0, picked = null, touched = false;
  const show = () => graph.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
  function fit() {
    const w = stage.clientWidth, h = stage.clientHeight;
    scale = Math.max(Math.min(w / size.w, h / size.h, 1.2), 0.02);
    x = (w - size.w * scale) / 2, y = Math.max((h - size.h * scale) / 2, 0);
    show();
  }
  function start() {  // all of it, or as much of its end as can be read
    fit();
    if (scale < 0.7 && nodes.length) centre(nodes[nodes.length - 1].dataset.number, 0.7, stage.clientHeight - 40);
  }
  function zoom(factor, px, py) {
    touched = true;
    const next = Math.min(Math.max(scale * factor, 0.02), 8);
    x = px - (px - x) * next / scale, y = py - (py - y) * next / scale, scale = next;
    show();
  }
  stage.addEventListener("wheel", e => {
    if (!whole && !e.ctrlKey && !e.metaKey && !stage.contains(document.activeElement)) return;  // the page scrolls
    e.preventDefault();
    const at = stage.getBoundingClientRect();
    zoom(Math.exp(-e.deltaY * 0.0015), e.clientX - at.left, e.clientY - at.top);
  }, {passive: false});
  let held = null;
  stage.addEventListener("pointerdown", e => {
    held = {x: e.clientX - x, y: e.clientY - y, px: e.clientX, py: e.clientY, moved: false};
  });
  addEventListener("pointermove", e => {
    if (!held) return;
    if (Math.hypot(e.clientX - held.px, e.clientY - held.py) > 3) held.moved = true, stage.classList.add("held");
    if (held.moved) touched = true, x = e.clientX - held.x, y = e.clientY - held.y, show();
  });
  addEventListener("pointerup", e => {
    const click = held && !held.moved;
    held = null;
    stage.classList.remove("held");
    if (!click) return;
    stage.focus({preventScroll: true});
    const node = e.target.closest && e.target.closest(".node");
    pick(node ? node.dataset.number : null);
  });
  for (const n of nodes) {
    n.addEventListener("pointerenter", () => tell(n.dataset.number));
    n.addEventListener("pointerleave", () => tell(picked));
  }

  function reached(start, next) {
    const seen = new Set([start]);
    for (const n of seen) for (const m of next[n] ?? []) seen.add(m);
    return seen;
  }
  function pick(number) {
    picked = number;
    const up = number === null ? null : reached(number, into), down = number === null ? null : reached(number, out);
    for (const e of edges) {
      const [from, to] = [e.dataset.from, e.dataset.to];
      e.classList.toggle("up", up !== null && up.has(to) && up.has(from));
      e.classList.toggle("down", down !== null && down.has(from) && down.has(to));
      e.classList.toggle("faded", number !== null && !e.matches(".up, .down"));
    }
    for (const n of nodes) {
      n.classList.toggle("picked", n.dataset.number === number);
      n.classList.toggle("faded", number !== null && !up.has(n.dataset.number) && !down.has(n.dataset.number));
    }
    tell(number);
  }
  function tell(number) {
    if (number === null) {
      const kinds = Object.entries({variable: "variable", watched: "watched tensor", contraction: "product",
        reduction: "reduction", function: "function", bad: "NaN or infinite"});
      const key = kinds.filter(([name]) => svg.querySelector(`.node.${name}`));
      told.replaceChildren(make("b", "", host.dataset.counts),
        make("div", "key", ...key.map(([name, text]) => make("div", "", make("i", name), text))));
      return;
    }
    const list = make("dl", "");
    const row = (name, ...text) => list.append(make("dt", "", name), make("dd", "", ...text));
    for (const [name, text] of records[number].details) row(name, text);
    for (const [label, next] of [["comes from", into], ["goes to", out]]) {
      const links = [...next[number] ?? []].flatMap(n => {
        const a = make("a", "", records[n].title);
        a.onclick = () => go(n);
        return [", ", a];
      });
      if (links.length) row(label, ...links.slice(1));
    }
    told.replaceChildren(make("b", "", records[number].title), list);
  }
  function centre(number, least = 0.8, high = stage.clientHeight / 2) {
    const at = nodes.find(n => n.dataset.number === number).transform.baseVal.consolidate().matrix;
    scale = Math.max(scale, least), x = stage.clientWidth / 2 - at.e * scale, y = high - at.f * scale;
    show();
  }
  const go = number => { touched = true, pick(number), centre(number); };
  search.oninput = () => {
    const words = search.value.toLowerCase();
    for (const n of nodes) {
      const r = records[n.dataset.number];
      const text = (r.title + " " + r.details.map(d => d[1]).join(" ")).toLowerCase();
      n.classList.toggle("found", words !== "" && text.includes(words));
    }
  };
  host.addEventListener("keydown", e => {
    e.stopPropagation();  // a letter is a command to a notebook
    const first = svg.querySelector(".node.found");
    if (e.key === "Escape") pick(null);
    if (e.key === "Enter" && e.target === search && first) go(first.dataset.number);
  });
  const high = () => Math.min(Math.max(size.h * Math.min(stage.clientWidth / size.w, 1), 150), 460);
  if (!whole) stage.style.height = high() + "px";
  new ResizeObserver(() => { if (!touched) start(); }).observe(stage);
  start(), tell(null);
  const asked = location.hash.slice(1);
  if (whole && asked in records) pick(asked);
})(host);
"""

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>gradtape: a recorded graph</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="data:,">
<style>
:root{color-scheme:light dark}
html,body{margin:0;height:100%}
.whole{height:100%;box-sizing:border-box;padding:4px 12px 12px;display:flex;flex-direction:column}
.whole .row{flex:1;min-height:0}
.whole .row .stage{resize:none}
</style></head>
<body>
"""


def cell(drawing: Drawing, classes: str = "") -> str:
    """The drawing for a notebook cell, self-contained: it loads nothing from the network."""
    image = base64.b64encode(drawing.encode()).decode()
    return (
        f'<div class="gradtape-drawing{classes}" data-counts="{escape(drawing.counts)}"><style>{_STYLE}</style>'
        f'<img alt="The recorded graph: {escape(drawing.counts)}" src="data:image/svg+xml;base64,{image}"></div>'
        f"<script>{_SCRIPT}</script>"
    )


def page(drawing: Drawing) -> str:
    """The drawing as a separate page that fills the window."""
    return f"{_PAGE}{cell(drawing, ' whole')}</body></html>\n"
