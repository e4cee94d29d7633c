"""Runs the whole suite several times, every second time on a busy machine: `make runs`, exit status 1 on a failure.

    python tools/many_runs.py                        # `make test`, ten times
    python tools/many_runs.py --runs 4 tests/data    # only these tests, four times

A suite that passes once says little: a test may depend on chance, on time, or on the order of two threads. The
machine is kept busy by processes that only count; they end with their run. The output of each run is kept in build/runs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "runs"
_SUMMARY = re.compile(r"^=* ?(\d+ (?:passed|failed|skipped|xfailed|errors?)\b.*) in [\d.]+s.*$", re.M)


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Runs processes that do nothing but count, for the duration of the block."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def summaries(log: str) -> list[str]:
    """The last line of each pytest run: "908 passed, 3 skipped"."""
    return _SUMMARY.findall(log)


def run(command: list[str], log: Path) -> tuple[bool, str]:
    """Whether the command succeeded, and a line about it."""
    start = time.monotonic()
    with log.open("w") as out:
        code = subprocess.run(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT).returncode
    counts = "; ".join(summaries(log.read_text())) or "no summary"
    minutes, seconds = divmod(round(time.monotonic() - start), 60)
    shown = os.path.relpath(log)
    return code == 0, f"{counts}; {minutes} min {seconds:02d} s" + (f"; FAILED: see {shown}" if code else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", nargs="*", help="arguments of pytest; by default, all of `make test`")
    parser.add_argument("--runs", type=int, default=10, help="number of runs (%(default)s)")
    parser.add_argument(
        "--busy", type=int, default=2, help="busy processes during every second run (%(default)s)"
    )
    options = parser.parse_args()
    some = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal", *options.tests]
    command = some if options.tests else ["make", "test"]
    LOGS.mkdir(parents=True, exist_ok=True)
    failures = 0
    for number in range(1, options.runs + 1):
        beside = options.busy if number % 2 == 0 else 0
        with busy(beside):
            right, line = run(command, LOGS / f"run-{number}.log")
        failures += not right
        print(f"run {number}{', beside a busy machine' if beside else ''}: {line}", flush=True)
    print(f"{options.runs} runs, {options.runs // 2} of them beside a busy machine: {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
