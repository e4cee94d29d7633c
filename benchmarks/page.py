"""Writes docs/benchmarks.md with its pictures, and the block of figures in README.md, from results.json.

python benchmarks/page.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import growth
import keras_layers
import keras_models
import peers
import report
import work
from workloads import data

DOCS = peers.ROOT / "docs"
MARKS = "<!-- bench -->", "<!-- /bench -->"

_INTRO = """# Benchmarks

How long gradtape takes beside TensorFlow, PyTorch, JAX and autograd on the same processor. Times are microseconds, the
minimum of many samples. A ratio is the best peer's time over ours: 2 means that the fastest of the four takes twice as
long as gradtape; **bold** means that gradtape is slower. "!" marks figures from samples that other work on the machine
disturbed; no figure: the library has no counterpart. How near a step is to what the machine can do at all stands under
[How near the limit](#how-near-the-limit), and how all of it was measured [at the end](#how-it-was-measured). `make bench`
measures on your machine and writes this page.
"""

_METHOD = """## How it was measured

- Every library has an environment of its own and a process of its own, which stays alive while a part runs. The
  processes take turns: for each case, every library measures for a few hundredths of a second, then the next one,
  many rounds. Noise of the machine meets all of them alike.
- A process answers only when its threads have gone to sleep, so that no pool spins while another
  library is measured. Nothing else is forbidden: libraries run with their own defaults, with as many threads as the
  table says, pinned to as many cores.
- A sample during which a thread waited for a core does not count; for work on several threads, neither does one
  that other processes computed beside. Each figure has its minimum, median, spread and number of samples in
  `benchmarks/results.json`.
- All libraries get the same numbers and must give the same results to 0.1 %; a case that does not is reported.
- Compilation is outside of the times and stands in a table of its own. torch.compile starts with an empty cache.
- "TF function", "torch eager" and "JAX jit" are the best of the variants measured: TensorFlow's Adam in one kernel
  (`raw_ops.ResourceApplyAdam`), PyTorch's fused Adam, channels last for W5, its attention kernel for W7; JAX's
  scatter of rows for W12. JAX has no optimizer: its Adam is written by hand inside of the compiled step.

## What it cannot say

- It is one machine, of few cores, without a GPU. More cores favour libraries with more parallel code, and a GPU
  would change everything.
- The minimum says what a library can do, not what a busy machine will see; the medians are in the JSON.
- Whole models of realistic size spend their time in products of matrices and convolutions, where all libraries
  are close to the limits above. What sets them apart here is mostly work in small pieces.
- The cases are ours. W1 to W12 were chosen before most of the code was written; losing ones are kept.
"""


def _versions(results: dict[str, Any]) -> str:
    versions: dict[str, str] = {}
    for part in results["parts"].values():
        versions |= part.get("versions", {})
    return ", ".join(f"{report.title(name)} {version}" for name, version in versions.items())


def _about(results: dict[str, Any]) -> str:
    machine, parts = results["machine"], results["parts"].values()
    if not parts:
        return "No run is published yet: `make bench` writes its figures here."
    commits = list(dict.fromkeys(part["commit"] for part in parts))
    days = sorted({part["when"][:10] for part in parts})
    text = (
        f"Measured {' to '.join(dict.fromkeys((days[0], days[-1])))} at {', '.join(commits)} on {machine['processor']}, "
        f"{machine['cores']} cores, {machine['threads']} threads each, {machine['system']}, Python {machine['python']}: "
        f"{_versions(results)}."
    )
    if any(part["quick"] for part in parts):
        text += "\n\n**A quick run with few samples: to see that it works, not to compare.**"
    return text


def _compared(
    part: dict[str, Any], metric: str
) -> list[tuple[str, str, str, str, report.Ratio, report.Ratio | None]]:
    """Case, our best, the best peer and its figure, best peer / ours, and the same for eager modes."""
    rows = []
    for name, cells in part["cases"].items():
        ours = report.best(cells, metric, "gradtape")
        peer = report.best(cells, metric, *report.peers_of(cells))
        whole = report.against_all(cells, metric)
        if ours and peer and whole:
            eager = report.eager_against_eager(cells, metric)
            rows.append((name, report._us(ours[1]), report.title(peer[0]), report._us(peer[1]), whole, eager))
    return rows


def summary(part: dict[str, Any]) -> str:
    """A line for each workload."""
    rows = [
        [
            f"{name}: {data.WORKLOADS[name]}",
            ours,
            f"{theirs} ({who})",
            report.times(whole),
            report.times(eager),
        ]
        for name, ours, who, theirs, whole, eager in _compared(part, "step")
    ]
    head = ["workload", "gradtape, us", "best peer, us", "best peer / ours", "the same, eager only"]
    return report._table(head, rows)


def slower(parts: dict[str, Any]) -> str:
    """Everything where a peer is faster than our best, the worst first."""
    rows = []
    for name, part in parts.items():
        if "cases" not in part or name == "memory":
            continue
        metrics = [m for m in report.metrics_of(part) if m != "memory"]  # a copy of memory, for comparison
        for metric in metrics:
            for case, ours, who, theirs, whole, _ in _compared(part, metric):
                if whole.value < report.SLOWER:
                    words = f"{TITLES[name]}: {case}" + (f", {metric}" if len(metrics) > 1 else "")
                    rows.append((whole.value, [words, ours, f"{theirs} ({who})", f"{whole.value:.2f}"]))
    if not rows:
        return "Nowhere in this run."
    ordered = [row for _, row in sorted(rows, key=lambda r: r[0])]
    return report._table(["case", "gradtape, us", "best peer, us", "best peer / ours"], ordered)


TITLES = {
    "workloads": "Whole steps",
    "one_thread": "One thread",
    "overhead": "Recording one op",
    "large": "Large ops",
    "layers": "Layers, value and gradient",
    "linalg": "Linear algebra and transforms, value and gradient",
    "loops": "One iteration of a loop",
    "optimizers": "The step of an optimizer",
    "data": "Data pipelines",
    "files": "Files and images",
    "keras": "Training with Keras",
    "keras_models": "Keras models on each backend",
    "growth": "Growth",
    "memory": "Memory",
    "footprint": "Import and size",
    "limits": "The machine's limits",
}
_TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "large": report.by_size,
    "keras": keras_layers.table,
    "keras_models": keras_models.table,
    "growth": growth.table,
    "memory": report.memory,
    "footprint": report.footprint,
    "limits": report.limits,
}
_WORDS = {
    "workloads": "One step and its loss back in Python, with two threads.",
    "one_thread": "The same with one thread, on one core. In brackets: how many times as long as with two.",
    "overhead": "100 ops on small tensors while a tape is active (or, in JAX and autograd, inside of a function that "
    "is being differentiated), their results kept until the end; microseconds an op.",
    "large": "One op, forward and eager, of float32 where nothing else is said; a square matrix for the ops with axes. "
    "Dashed: what it takes to "
    "move the operands through memory, or to multiply at the best rate that any library reaches. Arrays that the "
    "caches hold can be quicker than memory.",
    "layers": "An op of a neural network and the gradient with respect to all of its operands.",
    "linalg": "The same for float32 matrices and transforms.",
    "loops": "Eager: a loop in Python. Compiled: one loop inside of the program (`tf.while_loop`, "
    "`lax.fori_loop`); torch.compile would unroll it.",
    "optimizers": "Gradients given, parameters changed in place.",
    "data": "An epoch over arrays in memory, microseconds a batch: `tf.data`, PyTorch's `DataLoader`.",
    "files": "TFRecord files that the disk's cache holds, microseconds a record; examples of 20 floats and a number; images "
    "that each library has packed itself; `tf.image.non_max_suppression`. Other peers need further packages for these.",
    "keras": "The same Keras models on gradtape and on TensorFlow, ratios to TensorFlow.",
    "keras_models": "`train_on_batch` with Adam on NumPy arrays, the same Keras on each backend, with two threads. DQN, PPO "
    "and the PINN are written with tapes and Keras layers for gradtape and TensorFlow, in their own words for PyTorch "
    "(eager) and JAX (jit). Each library in its quickest way, each model in a process of its own. Models with dropout draw "
    "different numbers on each backend; the others must have the same losses.",
    "growth": "What one unit of work costs as there is more of it: a program and its gradient, on each axis in a process "
    f"for each library, with {growth.SECONDS} s for all its sizes (`too long`: the next would need more) and {growth.GB} GB "
    "of addresses. Operations are on scalars; variables have 8 elements; derivatives of higher orders are of tapes "
    "inside of tapes, of 64 elements; a Jacobian has 64 columns; a batch goes through layers of 64 and 1; the loop is "
    "`tanh(h @ w)` of 8 x 32, compiled as one loop or run from Python; two square layers see 32 examples. Eager ways "
    "are dashed; a line that stays level is work that grows in step.",
    "memory": "The most that a fresh process held while it imported a library and made steps, in MB.",
    "footprint": "`import` in a fresh process after `import numpy`, files in the disk cache. Size on disk as installed, "
    "without compiled Python files.",
    "limits": "The best rate at which any of the libraries multiplies matrices of 1024 or 2048 rows, and how fast "
    "NumPy moves arrays of 256 MB, and changes 32 MB in place by 32 others.",
}
_NEAR = (
    "What a step must multiply and move at least (`benchmarks/work.py` has the counts), and how long that takes at the best "
    "rates below, whichever is longer; for W11 also the functions that it computes, each at the best rate of any library "
    "for it alone. Work that the caches hold can be quicker than memory; limits under a microsecond "
    "say nothing."
)
_MODELS = (
    "Keras models by `train_on_batch` on each backend of Keras, and three steps written with tapes; beside the time of a "
    "step, the least that another one takes for the first step, compilation included, and the least memory, over ours:"
)
_PICTURES = {
    "overhead": ("overhead",), "large": ("scaling",), "growth": ("growth", "growth_memory"), "memory": ("memory",),
    "footprint": ("footprint",),
}  # fmt: skip


def section(name: str, part: dict[str, Any], parts: dict[str, Any] | None = None) -> str:
    """A part of the page: its words, picture and table."""
    lines = [f"## {TITLES[name]}", _WORDS[name]]
    if parts and name in _PICTURES:
        lines += [_picture(picture, TITLES[name]) for picture in _PICTURES[name]]
    if name == "one_thread":
        lines.append(report.threads(part, (parts or {}).get("workloads", {}).get("cases", {})))
    else:
        lines.append(_TABLES.get(name, report.ways)(part))
    if name == "workloads":
        lines += ["The first call, compilation included, in milliseconds:"]
        lines += [_picture("first_call", "Time of the first call")] if parts else []
        lines += [report.first_calls(part)]
    return "\n\n".join(lines)


def _picture(name: str, words: str) -> str:
    return f"![{words}](benchmarks/{name}.svg)"


def page(results: dict[str, Any]) -> str:
    """The text of docs/benchmarks.md."""
    parts = results["parts"]
    lines = [_INTRO.rstrip(), _about(results)]
    if "workloads" in parts:
        lines += [
            _picture("summary", "Time of each workload over the best peer's"),
            summary(parts["workloads"]),
        ]
    if parts:
        lines += ["## Where gradtape is slower", slower(parts)]
    if "workloads" in parts and "limits" in parts:
        lines += ["## How near the limit", _NEAR, work.near(parts, results["machine"]["threads"])]
    lines += [section(name, parts[name], parts) for name in TITLES if name in parts]
    return "\n\n".join([*lines, _METHOD])


def readme(results: dict[str, Any]) -> str:
    """The figures of README.md: those of the run and no others."""
    parts, lines = results["parts"], [_about(results)]
    if "keras_models" in parts:
        lines += [_MODELS, keras_models.summary(parts["keras_models"])]
    if "overhead" in parts:
        cells = parts["overhead"]["cases"].values()
        ours = [best[1]["min"] for c in cells if (best := report.best(c, "op", "gradtape"))]
        text = f"Recording one small op costs {report.number(min(ours))} to {report.number(max(ours))} us"
        for label in ("tensorflow eager", "torch eager"):
            times = [r.value for c in cells if (r := report.ratio(c, "op", "gradtape", (label,)))]
            if times:
                least, most = report.factor(min(times)), report.factor(max(times))
                text += f"; {report.title(label)} takes {least} to {most} times as long"
        lines.append(f"{text}.")
    if "footprint" in parts:
        part = parts["footprint"]
        each = [
            f"{report.title(name)} {report.number(part['import_ms'][name]['min'])} ms, "
            f"{report.number(sum(part['size_mb'][name].values()))} MB"
            for name in part["import_ms"]
        ]
        lines.append(f"Time to import after NumPy, and size on disk with all it needs: {'; '.join(each)}.")
    return "\n\n".join(lines)


def with_block(text: str, block: str) -> str:
    """README's text with the block between the marks replaced."""
    begin, end = MARKS
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.S)
    if not pattern.search(text):
        raise ValueError(f"README.md has no block between {begin} and {end}")
    return pattern.sub(lambda _: f"{begin}\n{block}\n{end}", text)


def publish(results: dict[str, Any], docs: Path = DOCS, readme_path: Path = peers.ROOT / "README.md") -> None:
    """Writes the page, its pictures and README's block."""
    import plots

    plots.draw(results["parts"], docs / "benchmarks")
    (docs / "benchmarks.md").write_text(page(results))
    readme_path.write_text(with_block(readme_path.read_text(), readme(results)))
    print(f"written: {docs / 'benchmarks.md'}, {docs / 'benchmarks'}, {readme_path}")


if __name__ == "__main__":
    publish(json.loads((peers.HERE / "results.json").read_text()))
