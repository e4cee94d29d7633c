"""Writes docs/scaling.md and its picture: how long a step takes with 1 to 1,024 workers, by calculation.

    python tools/scaling.py

Step times are those of benchmarks/results.json, bytes those of the models' gradients. Network figures are the
makers' specifications. Nothing else was measured: this is a calculation, and the page lists its assumptions.
"""

from __future__ import annotations

import functools
import json
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, NullFormatter

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
import themes  # noqa: E402

WORKERS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
ROW = 128  # bytes that each worker sends to all others before an exchange, see gradtape/distribute/groups.py


class Network(NamedTuple):
    """Gigabytes a second in one direction, as published and as assumed; seconds until a small message is there."""

    name: str
    published: str
    rates: tuple[float, float]
    delays: tuple[float, float]

    @property
    def rate(self) -> float:
        return sum(self.rates) / 2 * 1e9

    @property
    def delay(self) -> float:
        return math.sqrt(self.delays[0] * self.delays[1])


NETWORKS = [
    Network("10 Gb/s Ethernet", "1.25 GB/s", (0.8, 1.1), (20e-6, 50e-6)),
    Network("25 Gb/s Ethernet", "3.1 GB/s", (1.9, 2.8), (15e-6, 40e-6)),
    Network("100 Gb/s Ethernet", "12.5 GB/s", (7.5, 11.0), (5e-6, 30e-6)),
    Network("400 Gb/s InfiniBand", "50 GB/s", (35.0, 45.0), (2e-6, 5e-6)),
    Network("PCIe 4.0 to 5.0 x16", "32 to 64 GB/s", (20.0, 50.0), (2e-6, 10e-6)),
    Network("NVLink 3 to 4", "300 to 450 GB/s", (200.0, 380.0), (2e-6, 5e-6)),
]


class Model(NamedTuple):
    """A step of one worker, in seconds, and its gradients, in bytes."""

    name: str
    words: str
    step: float
    size: int


def models() -> list[Model]:
    """The workloads whose steps were measured."""
    from workloads import data

    cases = json.loads((ROOT / "benchmarks" / "results.json").read_text())["parts"]["workloads"]["cases"]
    words = {"W4": "MLP", "W5": "CNN", "W7": "transformer"}
    out = []
    for name, what in words.items():
        step = cases[name]["gradtape function"]["step"]["min"] * 1e-6
        parameters, _ = data.make(name)
        out.append(Model(name, what, step, sum(p.nbytes for p in parameters)))
    return out


# ---- the calculation -------------------------------------------------------------------------------------


def ring(n: int, size: float, network: Network) -> float:
    """Seconds of an all-reduce around a ring: each worker sends 2 (n - 1) / n of the bytes, in 2 (n - 1) messages."""
    return 0.0 if n == 1 else 2 * (n - 1) / n * size / network.rate + 2 * (n - 1) * network.delay


def tree(n: int, size: float, network: Network) -> float:
    """Seconds of an all-reduce up a tree and down again: all bytes twice, but few messages one after the other."""
    return 0.0 if n == 1 else 2 * size / network.rate + 2 * math.ceil(math.log2(n)) * network.delay


def check(n: int, network: Network) -> float:
    """Seconds of the rows that workers compare before an exchange: an all-gather around a ring."""
    return (n - 1) * (network.delay + ROW / network.rate)


def weak(model: Model, n: int, network: Network, exchange: Any = None) -> float:
    """Seconds of a step in which each worker has as many examples as one had alone."""
    exchanges = [exchange] if exchange else [ring, tree]
    return model.step + min(f(n, model.size, network) for f in exchanges) + check(n, network)


def strong(model: Model, n: int, network: Network) -> float:
    """Seconds of a step whose batch is divided among n workers; the fixed part of a step stays."""
    return model.step * (0.05 + 0.95 / n) + weak(model, n, network) - model.step


# ---- the page ----------------------------------------------------------------------------------------------


def ms(seconds: float) -> str:
    value = seconds * 1e3
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def picture(all_models: list[Model]) -> Any:
    colours = ["#D55E00", "#E69F00", "#009E73", "#0072B2"]
    figure, axes = plt.subplots(1, len(all_models), figsize=(10, 3.6), layout="constrained", sharey=True)
    for ax, model in zip(axes, all_models, strict=True):
        for network, colour in zip(NETWORKS, colours, strict=False):
            times = [weak(model, n, network) for n in WORKERS]
            efficiency = [model.step / t for t in times]
            ax.plot(WORKERS, efficiency, "o-", ms=3, color=themes.shade(colour), label=network.name)
        ax.set_xscale("log", base=2)
        ax.set_xticks([1, 4, 16, 64, 256, 1024])
        ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set(ylim=(0, 1.03), xlabel="workers")
        ax.set_title(f"{model.words}: {ms(model.step)} ms, {model.size / 1e6:.1f} MB", loc="left")
    axes[0].set_ylabel("efficiency")
    axes[-1].legend(frameon=False, loc="lower left", fontsize=9)
    return figure


def page(all_models: list[Model]) -> str:
    networks = table(
        ["network", "published, one direction", "assumed GB/s", "assumed delay of a message"],
        [[n.name, n.published, f"{n.rates[0]:g} to {n.rates[1]:g}", f"{n.delays[0] * 1e6:g} to {n.delays[1] * 1e6:g} us"]
         for n in NETWORKS],
    )  # fmt: skip
    ethernet, fast = NETWORKS[0], NETWORKS[2]
    steps = {}
    for model in all_models:
        rows = [
            [
                f"{n:,}",
                *(f"{ms(weak(model, n, k))} ({model.step / weak(model, n, k):.0%})" for k in NETWORKS[:4]),
            ]
            for n in WORKERS
        ]
        steps[model.name] = table(["workers", *(k.name for k in NETWORKS[:4])], rows)
    algorithms = table(
        ["workers", "ring, 10 Gb/s", "tree, 10 Gb/s", "check, 10 Gb/s", "ring, 100 Gb/s", "tree, 100 Gb/s",
         "check, 100 Gb/s"],
        [[f"{n:,}", *(ms(f) for k in (ethernet, fast)
                      for f in (ring(n, all_models[0].size, k), tree(n, all_models[0].size, k), check(n, k)))]
         for n in WORKERS[1:]],
    )  # fmt: skip
    devices = table(
        ["gradients", *(k.name for k in NETWORKS[3:])],
        [
            [f"{size:,} MB", *(f"{ms(ring(8, size * 1e6, k))}" for k in NETWORKS[3:])]
            for size in (10, 100, 1000)
        ],
    )
    cut = table(
        ["workers", *(f"{m.words}, {k.name}" for m in all_models for k in (ethernet, fast))],
        [[f"{n:,}", *(f"{m.step / strong(m, n, k):.1f}x" for m in all_models for k in (ethernet, fast))]
         for n in (1, 2, 4, 8, 16, 64, 256)],
    )  # fmt: skip
    text = (ROOT / "tools" / "scaling.md.in").read_text()
    values = {
        "networks": networks, "algorithms": algorithms, "devices": devices, "cut": cut,
        **{m.name: steps[m.name] for m in all_models},
        **{f"{m.name}_what": f"{m.words}: {ms(m.step)} ms a step, {m.size / 1e6:.1f} MB of gradients" for m in all_models},
    }  # fmt: skip
    values |= measured()
    for name, value in values.items():
        text = text.replace("{{" + name + "}}", value)
    assert "{{" not in text, "a place of the page has no value"
    return text


def measured() -> dict[str, str]:
    """The ratios that benchmarks/exchange.py has found."""
    results = json.loads((ROOT / "benchmarks" / "exchange.json").read_text())
    return {f"ratio_{part}": f"{results[part]['ratio of medians']:.2f}" for part in ("jax", "mpi", "step")}


def main() -> None:
    all_models = models()
    (ROOT / "docs" / "scaling.md").write_text(page(all_models))
    themes.save(functools.partial(picture, all_models), ROOT / "docs" / "benchmarks" / "workers.svg")
    print("written: docs/scaling.md, docs/benchmarks/workers.svg")


if __name__ == "__main__":
    main()
