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

How fast gradtape is compared with TensorFlow, PyTorch, JAX and autograd on the same processor. Unless a table says
otherwise, times are in microseconds and are the minimum of many samples. A ratio is the time of the fastest of the four
("best peer") divided by ours: 2 means that it takes twice as long as gradtape, and **bold** that gradtape is slower. An
empty cell means that the library has no counterpart. [How near the limit](#how-near-the-limit) compares the workloads
with what the machine can do, and [How it was measured](#how-it-was-measured) has the method. `make bench` measures on
your machine and writes this page.
"""

_METHOD = """## How it was measured

- Each library has its own environment and its own process, which stays alive while a part of the benchmark runs. The
  processes take turns: for each case, every library measures for a few hundredths of a second, then the next one, for
  many rounds. So noise of the machine affects all of them alike.
- A process replies only once its threads sleep, so no thread pool spins while another library is measured. Apart from
  that, libraries run with their own defaults, with the number of threads in the heading, pinned to as many cores.
- A sample in which a thread had to wait for a core does not count; in work on several threads, neither does one during
  which other processes used the processor. If too few samples are left, the figure is marked "!". The minimum, median,
  spread and number of samples of each figure are in `benchmarks/results.json`.
- All libraries get the same inputs and must give the same results to 0.1 %; a case in which one does not is reported.
- Compilation is not included in the times; it has its own table. torch.compile starts with an empty cache.
- "TF function", "torch eager" and "JAX jit" are the fastest of the variants measured: TensorFlow's fused Adam
  (`raw_ops.ResourceApplyAdam`), PyTorch's fused Adam, channels last for W5, its attention kernel for W7, JAX's scatter
  of rows for W12. JAX has no optimizers: its Adam is written by hand inside the compiled step.

## What it does not show

- It is one machine with few cores and no GPU. More cores favour libraries with more parallel code, and a GPU would
  change everything.
- The minimum shows what a library can do, not what to expect on a busy machine; the medians are in the JSON file.
- Models of realistic size spend their time in matrix products and convolutions, where all libraries are close to the
  limits above. Most of the differences here come from work in small pieces.
- The cases are ours. W1 to W12 were chosen before most of the code was written, and those that lose are kept.
"""

_DISTURBED = '"!": other work on the machine disturbed these samples.'


def _explained(table: str) -> str:
    """A table, with an explanation of "!" if it occurs."""
    return f"{table}\n\n{_DISTURBED}" if re.search(r"\d!", table) else table


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
    """A table: case, our best, the best peer and its figure, best peer / ours, and the same for eager modes."""
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
    "one_thread": "The same with one thread, on one core. In brackets: the time divided by that with two threads.",
    "overhead": "100 ops on small tensors while a tape is active (in JAX and autograd: inside a function that is being "
    "differentiated), with all results kept; microseconds per op.",
    "large": "One eager op without its gradient, of float32 unless the name says otherwise; ops with axes get a square "
    "matrix. Dashed: the time to move the operands through memory, or to multiply at the best rate of any library. "
    "Arrays that fit in the caches can be faster than memory.",
    "layers": "An op of a neural network and its gradients with respect to all operands.",
    "linalg": "The same for linear algebra and Fourier transforms of float32.",
    "loops": "Eager: a loop in Python. Compiled: one loop inside the program (`tf.while_loop`, `lax.fori_loop`); "
    "torch.compile, which would unroll it, is left out.",
    "optimizers": "The gradients are given, the parameters are updated in place.",
    "data": "An epoch over arrays in memory with `tf.data` and PyTorch's `DataLoader`; microseconds per batch.",
    "files": "TFRecord files in the disk cache, microseconds per record; examples of 20 floats and a "
    "number; images encoded by the library that reads them; `tf.image.non_max_suppression`. The other "
    "peers need further packages for these.",
    "keras": "The same Keras models on gradtape and on TensorFlow. Ratios are TensorFlow's time over ours.",
    "keras_models": "`train_on_batch` with Adam on NumPy arrays, the same version of Keras on each "
    "backend, with two threads. DQN, PPO and the PINN use tapes and Keras layers on gradtape and "
    "TensorFlow, and are written in the style of PyTorch (eager) and JAX (jit) for those. Each library "
    "runs in its fastest mode, and each model in its own process. Models with dropout draw different "
    "numbers on each backend; the losses of all others must agree.",
    "growth": "The cost of one unit of work as its amount grows: a program and its gradient. Each library has one process "
    f"per axis, {growth.SECONDS} s for all sizes (`too long`: the next size would need more) and {growth.GB} GB of address "
    "space. Operations are on scalars; variables have 8 elements; higher derivatives use nested tapes on 64 elements; a "
    "Jacobian has 64 columns; a batch passes through layers of 64 and 1 units; the loop is `tanh(h @ w)` of 8 x 32, "
    "compiled as one loop or run from Python; two square layers get 32 examples. Dashed: eager modes. Where a line is "
    "level, the time is proportional to the work.",
    "memory": "Peak memory of a fresh process that imports the library and makes some steps, in MB.",
    "footprint": "`import` in a fresh process after `import numpy`, with the files in the disk cache. "
    "Size on disk as installed, without `.pyc` files.",
    "limits": "The best rate at which any of the libraries multiplies square matrices of 1024 or 2048 "
    "rows, and the rates at which NumPy copies and adds arrays of 256 MB, and adds 32 MB to another 32 MB in place.",
}
_NEAR = (
    "The limit of a step is the time for its multiplications, or that for the bytes it must move at least, whichever is "
    "longer, at the best rates of [this machine](#the-machines-limits); `benchmarks/work.py` counts both. For W11 it is "
    "the time for its functions, each at the best rate of any library for the function alone. Work that fits in the caches "
    "can be faster than memory. Limits under a microsecond mean nothing and are left out."
)
_MODELS = (
    "Keras models by `train_on_batch` on each backend of Keras, and three steps written with tapes. The last two columns "
    "compare the first step (compilation included) and the peak memory with the best of the others in the same way:"
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
        table = report.threads(part, (parts or {}).get("workloads", {}).get("cases", {}))
    else:
        table = _TABLES.get(name, report.ways)(part)
    lines.append(_explained(table))
    if name == "workloads":
        lines += ["The first call, compilation included, in milliseconds:"]
        lines += [_picture("first_call", "Time of the first call")] if parts else []
        lines += [report.first_calls(part)]
    return "\n\n".join(lines)


def _picture(name: str, words: str) -> str:
    """A picture that follows the colours of the page, on git hosts and on the site (tools/docs_pages.py)."""
    dark = f'<source media="(prefers-color-scheme: dark)" srcset="benchmarks/{name}-dark.svg">'
    return f'<picture>{dark}<img alt="{words}" src="benchmarks/{name}.svg"></picture>'


def page(results: dict[str, Any]) -> str:
    """The text of docs/benchmarks.md."""
    parts = results["parts"]
    lines = [_INTRO.rstrip(), _about(results)]
    if "workloads" in parts:
        lines += [
            _picture("summary", "Time of each workload over the best peer's"),
            _explained(summary(parts["workloads"])),
        ]
    if parts:
        lines += ["## Where gradtape is slower", _explained(slower(parts))]
    if "workloads" in parts and "limits" in parts:
        lines += ["## How near the limit", _NEAR, work.near(parts, results["machine"]["threads"])]
    lines += [section(name, parts[name], parts) for name in TITLES if name in parts]
    return "\n\n".join([*lines, _METHOD])


def readme(results: dict[str, Any]) -> str:
    """The figures of README.md: those of the run and no others."""
    parts, lines = results["parts"], [_about(results)]
    if "keras_models" in parts:
        lines += [_MODELS, _explained(keras_models.summary(parts["keras_models"]))]
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
