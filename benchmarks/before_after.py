"""Two builds of gradtape side by side, in turns: has a change made anything slower?

    git worktree add ../before COMMIT && make -C ../before dev
    python benchmarks/before_after.py ../before/.venv/bin/python
    python benchmarks/before_after.py ../before/.venv/bin/python --only W1 W2 W3 overhead --rounds 20

The ratio is the time now over the time before: above one it has become slower. Nothing is published.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any

import overhead
import parts
import peers
from workloads import data

MODES = ("eager", "function")
BUILDS = ("before", "now")


def _cases(only: list[str]) -> list[tuple[str, str, str]]:
    """A measurement: part, case, mode."""
    workloads = [
        ("steps", name, mode) for name in data.WORKLOADS if not only or name in only for mode in MODES
    ]
    ops = [("overhead", name, "eager") for name in overhead.CASES] if not only or "overhead" in only else []
    return workloads + ops


def _import_time(python: str) -> float:
    """CPU milliseconds of `import gradtape` after NumPy is imported."""
    code = "import numpy, time; t = time.process_time(); import gradtape; print(time.process_time() - t)"
    return 1e3 * float(subprocess.check_output([python, "-c", code], cwd="/"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", help="the Python that has the other build")
    parser.add_argument("--only", nargs="*", default=[], help="workloads, `overhead`, `import`")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=0.3, help="of one turn")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    pythons = dict(zip(BUILDS, (options.before, sys.executable), strict=True))
    running = {build: peers.Peer("gradtape", options.threads, python) for build, python in pythons.items()}
    ratios = []
    for part, name, mode in _cases(options.only):
        commands: dict[str, dict[str, Any]] = {
            build: {"library": build, "part": part, "name": name, "mode": mode, "alone": options.threads > 1}
            for build in BUILDS
        }
        results = parts.in_turns(running, commands, options.rounds, options.seconds)
        for metric in results["now"]:
            before, after = (results[build].get(metric, {}) for build in BUILDS)
            if "min" not in before or "min" not in after:
                print(
                    f"{name:20} {mode:9} missing: {before.get('missing')} {after.get('missing')}", flush=True
                )
                continue
            ratios.append(after["min"] / before["min"])
            print(
                f"{name:20} {mode:9} {before['min']:10.2f} us -> {after['min']:10.2f} us   {ratios[-1]:.3f}",
                flush=True,
            )
    if not options.only or "import" in options.only:
        times: dict[str, list[float]] = {build: [] for build in BUILDS}
        for _ in range(15):
            for build, python in pythons.items():
                times[build].append(_import_time(python))
        before, after = (min(times[build]) for build in BUILDS)
        ratios.append(after / before)
        print(f"{'import':20} {'':9} {before:10.2f} ms -> {after:10.2f} ms   {ratios[-1]:.3f}")
    for peer in running.values():
        peer.close()
    print(f"largest ratio {max(ratios):.3f}, of {len(ratios)}")


if __name__ == "__main__":
    main()
