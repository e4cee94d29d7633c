"""Kills workers of a training program at random moments, and checks how the others end.

    python tools/kill_workers.py                 # 20 times: worker 1 of 3 ten times, worker 0 ten times
    python tools/kill_workers.py --times 4 --seed 7 --restart

`kill -9` hits a worker at any moment after its start: while it imports, connects, trains, or saves. The others must
raise UnavailableError (or DeadlineExceededError) that names it, within the time limit, and exit with status 1: no
SIGABRT, no hang. With --restart the program is then started again, and must end with the losses of an undisturbed
run. The exit status is the number of failed rounds.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gradtape.distribute.launch import free_addresses, tf_config

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "tests" / "distribute" / "programs" / "killed.py"
LIMIT = 20.0  # seconds that a worker waits for the others
WORKERS = 3


def start(folder: str) -> tuple[list[subprocess.Popen], list[str]]:
    addresses = free_addresses(WORKERS)
    env = dict(
        os.environ, GRADTAPE_NUM_THREADS="1", GRADTAPE_COLLECTIVE_TIMEOUT=str(LIMIT), PYTHONUNBUFFERED="1"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), folder], env=env | {"TF_CONFIG": tf_config(addresses, i)}, **pipes
        )
        for i in range(WORKERS)
    ], addresses


def finish(processes: list[subprocess.Popen], seconds: float) -> list[tuple[int | None, str, str]]:
    """Status, output and errors of processes; None for one that hangs, which is killed."""
    end, outcomes = time.monotonic() + seconds, []
    for p in processes:
        try:
            out, err = p.communicate(timeout=max(0.1, end - time.monotonic()))
            outcomes.append((p.returncode, out, err))
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            outcomes.append((None, out, err))
    return outcomes


def losses(out: str) -> dict[int, str]:
    lines = [line.split() for line in out.splitlines() if line.startswith("LOSS")]
    return {int(at): loss for _, at, loss in lines}


def once(who: int, after: float, folder: str) -> tuple[list[str], str, dict[int, str]]:
    """The problem, the events, and the losses so far."""
    processes, addresses = start(folder)
    time.sleep(after)
    processes[who].send_signal(signal.SIGKILL)
    killed = time.monotonic()
    results = finish(processes, LIMIT + 30)
    took = time.monotonic() - killed
    wrong, kinds, seen = [], [], losses(results[0][1])
    for i, (status, _, err) in enumerate(results):
        if i == who:
            continue
        last = next((line for line in reversed(err.splitlines()) if "Error: " in line), "")
        kind = last.partition(":")[0].rpartition(".")[2]
        kinds.append(kind or f"status {status}")
        if status is None:
            wrong.append(f"worker {i} hangs")
        elif status == 0 and results[who][0] == 0:
            kinds[-1] = "had finished"
        elif status != 1:
            wrong.append(f"worker {i} ended with status {status}: {err[-300:]!r}")
        elif kind not in ("UnavailableError", "DeadlineExceededError"):
            wrong.append(f"worker {i} raised {last or err[-300:]!r}")
        elif f"worker {who} ({addresses[who]})" not in last:
            wrong.append(f"worker {i} names another one: {last!r}")
    steps = f"{len(seen)} steps" if seen else "before the first step"
    return wrong, f"{steps}, {', '.join(kinds)}, {took:.1f} s", seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--restart", action="store_true", help="start again after each time, and compare losses"
    )
    parser.add_argument(
        "--longest", type=float, default=6.0, help="seconds after which a worker is killed, at most"
    )
    options = parser.parse_args()
    rng, failures = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory() as folder:
        whole: dict[int, str] = {}
        if options.restart:
            results = finish(start(folder)[0], 300)
            assert all(status == 0 for status, _, _ in results), results
            whole = losses(results[0][1])
        for k in range(options.times):
            who, after = (1, 0)[k % 2], rng.uniform(0.3, options.longest)
            own = tempfile.mkdtemp(dir=folder)
            wrong, words, seen = once(who, after, own)
            if options.restart:
                results = finish(start(own)[0], 300)
                again = losses(results[0][1])
                if any(status != 0 for status, _, _ in results):
                    wrong.append(f"restarted: {[(s, e[-300:]) for s, _, e in results]}")
                elif {**seen, **again} != whole:
                    wrong.append("restarted: other losses")
                words += f", restarted at step {min(again, default='-')}"
            failures += bool(wrong)
            print(
                f"{k + 1:3}  worker {who} killed after {after:.2f} s: {'; '.join(wrong) or 'ok'} ({words})",
                flush=True,
            )
    print(f"{options.times - failures} of {options.times} as expected")
    return failures


if __name__ == "__main__":
    sys.exit(main())
