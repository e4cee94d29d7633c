"""Measures gradtape beside TensorFlow, PyTorch, JAX and autograd on this machine, in one session.

    python benchmarks/run.py                          # everything, about an hour on a quiet machine
    python benchmarks/run.py --resume                 # what an interrupted run has not measured yet
    python benchmarks/run.py workloads --only W1 W11  # some parts again, the others are kept
    python benchmarks/run.py --quick                  # a look, 10 minutes or so: nothing is published

Figures belong to a commit: a run that would publish figures of uncommitted changes is refused. They go to
benchmarks/results.json; docs/benchmarks.md, its pictures and the figures of README.md are generated from them
(`python benchmarks/page.py` does it again). The first run sets up the peers' environments (about 3 GB) in
~/.cache/gradtape-peers, or in $PEERS.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import data_pipeline
import files
import footprint
import growth
import keras_layers
import keras_models
import limits
import loops
import ops
import optimizers
import overhead
import page
import parts
import peers
import report
import steps

# Part -> how it is measured, and about how many seconds that takes.
PARTS = {
    "limits": (limits.measure, 40),
    "overhead": (overhead.measure, 60),
    "large": (ops.measure_large, 120),
    "layers": (ops.measure_layers, 240),
    "linalg": (ops.measure_linalg, 60),
    "workloads": (steps.measure, 480),
    "one_thread": (steps.measure_one_thread, 120),
    "loops": (loops.measure, 40),
    "optimizers": (optimizers.measure, 40),
    "data": (data_pipeline.measure, 60),
    "files": (files.measure, 40),
    "keras": (keras_layers.measure, 120),
    "keras_models": (keras_models.measure, 1200),
    "growth": (growth.measure, 400),
    "memory": (steps.measure_memory, 120),
    "footprint": (footprint.measure, 120),
}


def machine() -> dict[str, Any]:
    """The machine and the versions on which the figures depend."""
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


# Files that a run writes itself: changes there do not change the measured program.
_WRITTEN = ("benchmarks/results.json", "docs/benchmarks.md", "docs/benchmarks", "README.md")


def _git(*words: str) -> str:
    try:
        return subprocess.run(["git", *words], cwd=peers.ROOT, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def commit() -> str:
    """The commit that is measured; with "-dirty" if files differ from it that the run has not written."""
    others = [f":(exclude){path}" for path in _WRITTEN]
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *others)
    return _git("describe", "--always") + ("-dirty" if changed else "")


def read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def start(before: dict[str, Any], chosen: list[str], resume: bool) -> tuple[dict[str, Any], list[str]]:
    """The results to add to, and the parts to measure.

    Named parts replace those of an earlier run on the same machine, and --resume keeps what it finds;
    otherwise everything is measured anew.
    """
    this_machine = machine()
    same = before.get("machine") == this_machine
    results = before if same and (chosen or resume) else {"machine": this_machine, "parts": {}}
    names = chosen or list(PARTS)
    return results, [name for name in names if not (resume and name in results["parts"])]


def expected(names: list[str], before: dict[str, Any], quick: bool) -> dict[str, float]:
    """Seconds for each part: what it took the last time, or the guess."""
    earlier = {} if quick else before.get("parts", {})
    share = 0.15 if quick else 1.0
    return {name: earlier.get(name, {}).get("seconds", PARTS[name][1] * share) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}; all by default")
    parser.add_argument("--resume", action="store_true", help="only parts that the results do not have")
    parser.add_argument("--quick", action="store_true", help="few cases, few turns, into quick.json")
    parser.add_argument("--rounds", type=int, help="turns each library gets per case")
    parser.add_argument("--seconds", type=float, help="length of one turn")
    parser.add_argument(
        "--only", nargs="*", dest="workloads", help="only these workloads, Keras models or axes of growth"
    )
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part named {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    options.rounds = options.rounds or (2 if options.quick else 6)
    options.seconds = options.seconds or (0.02 if options.quick else 0.04)
    output = options.output or peers.HERE / ("quick.json" if options.quick else "results.json")
    measured, publishes = commit(), not options.quick and not options.output
    if publishes and measured.endswith("-dirty"):
        parser.error(
            f"published figures belong to a commit, and {measured} has changes: commit first, or use --quick or --output"
        )
    before = read(output)
    results, names = start(before, options.parts, options.resume)
    parts.plan = parts.Plan(expected(names, before, options.quick))
    print(f"{results['machine']['processor']}, {results['machine']['cores']} cores; {len(names)} parts")
    with parts.plan.bar:
        for name in names:
            parts.plan.begin(name)
            began = time.monotonic()
            part = PARTS[name][0](options)
            if broken := report.not_imported(part):
                sys.exit(f"{name} was not measured:\n" + "\n".join(broken))
            part |= {
                "when": time.strftime("%Y-%m-%d %H:%M"),
                "commit": measured,
                "quick": options.quick,
                "seconds": round(time.monotonic() - began),
            }
            results["parts"][name] = part
            print(f"\n{page.section(name, part)}\n", flush=True)
            for line in report.disagreements(part):
                print(f"DIFFERENT VALUES: {line}", file=sys.stderr)
            output.write_text(json.dumps(results, indent=1) + "\n")
    print(f"written: {output}")
    if publishes:
        page.publish(results)


if __name__ == "__main__":
    main()
