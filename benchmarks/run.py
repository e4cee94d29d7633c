"""Measures gradtape beside TensorFlow, PyTorch and JAX on this machine, in one session.

    python benchmarks/run.py                        # all parts
    python benchmarks/run.py overhead elementwise   # some of them
    python benchmarks/run.py workloads --only W1 W11 --full

Parts: `overhead` (one recorded op), `elementwise` (large float32 ops against PyTorch), `workloads`
(W1 to W12 of ../shared/bench, where that folder lies beside the checkout), `data` (an epoch over data in
memory), `import` (time and size).
Figures go to benchmarks/results.json, tables to standard output. The first run sets up the peers'
environments (about 3 GB) in ~/.cache/gradtape-peers, or where $PEERS says.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from typing import Any

import data_pipeline
import footprint
import parts
import peers
import report

PARTS = {
    "overhead": (parts.overhead, report.overhead, "Recording one op, tape active"),
    "elementwise": (parts.elementwise, report.elementwise, "Large float32 ops, microseconds"),
    "workloads": (parts.workloads, report.workloads, "Workloads, microseconds"),
    "data": (data_pipeline.measure, data_pipeline.table, "Data pipelines, microseconds a batch"),
    "import": (footprint.footprint, report.footprint, "Import and size"),
}


def machine() -> dict[str, Any]:
    """What the figures depend on and the code does not."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as f:
            name = next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {
        "processor": name,
        "cores": os.cpu_count(),
        "threads": peers.THREADS,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def commit() -> str:
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=peers.ROOT, capture_output=True, text=True
        )
    except OSError:
        return ""
    return described.stdout.strip()


def load(path: str, here: dict[str, Any]) -> dict[str, Any]:
    """Earlier results of this machine, so that a run of one part keeps the others."""
    try:
        with open(path) as f:
            before = json.load(f)
    except (OSError, ValueError):
        before = {}
    return before if before.get("machine") == here else {"machine": here, "parts": {}}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}; all by default")
    parser.add_argument("--rounds", type=int, default=8, help="turns each library gets per case")
    parser.add_argument("--seconds", type=float, default=0.04, help="length of one turn")
    parser.add_argument("--repeats", type=int, default=15, help="fresh processes that import gradtape")
    parser.add_argument("--only", nargs="*", dest="workloads", help="only these workloads")
    parser.add_argument("--full", action="store_true", help="also XLA, torch.compile and autograd")
    parser.add_argument("--wheel", action="store_true", help="build a wheel to measure the package's size")
    parser.add_argument("--output", default=str(peers.HERE / "results.json"))
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part named {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    here = machine()
    results = load(options.output, here)
    print(
        f"{here['processor']}, {here['cores']} cores; Python {here['python']}; {peers.THREADS} threads each"
    )
    for name in options.parts or PARTS:
        measure, table, title = PARTS[name]
        part = measure(options)
        if sys.stderr.isatty():
            print("\r", end="", file=sys.stderr)
        part |= {"when": time.strftime("%Y-%m-%d %H:%M"), "commit": commit()}
        results["parts"][name] = part
        print(f"\n{title}\n\n{table(part)}")
        for line in report.disagreements(part) if "cases" in part else ():
            print(f"DIFFERENT VALUES: {line}")
        with open(options.output, "w") as f:
            json.dump(results, f, indent=1)
            f.write("\n")
    print(f"\nwritten: {options.output}")


if __name__ == "__main__":
    main()
