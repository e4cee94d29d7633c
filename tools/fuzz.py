"""Fuzzes op calls: `python tools/fuzz.py --calls 100000 --seed 7` (or `make fuzz`), exit status 1 if something broke.

Calls (`fuzz_calls.py`) are made by child processes (`fuzz_worker.py`), which note a call before they make
it: a crash, or a call that does not come back, has a name. `--only N` makes one call again.
Half of the processes compile every backward pass at first sight.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_CHUNK = 2500  # calls of one process
_PATIENCE = 20.0, 240.0  # seconds of the processor, and of the clock, for one call: after those it hangs
_LEAK = 32 << 20  # bytes of tensors that a process may keep: caches, and what variables hold


class Run:
    """What came of the calls so far."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.lock = threading.Lock()
        self.problems: dict[str, list[dict]] = {}  # by kind: the function and the sort of its problem
        self.slow: list[str] = []
        self.fine = 0  # calls with a result, the others were refused
        self.largest = 0

    def note(self, number: int, call: str, problem: str) -> None:
        function = call.partition("] ")[2].partition("(f")[0][:60]
        kind = f"{function}: {problem[:60]}"
        first = kind not in self.problems
        self.problems.setdefault(kind, []).append({"number": number, "call": call, "problem": problem})
        if first:
            print(f"  call {number}: {call}\n    {problem}", flush=True)

    def chunk(self, first: int, last: int) -> None:
        """Makes calls [first, last), each once, whatever becomes of the processes."""
        while first < last:
            with tempfile.NamedTemporaryFile() as journal, tempfile.TemporaryFile("w+") as output:
                ended, said = self._child(first, last, journal.name, output)
                noted = Path(journal.name).read_text(errors="replace").strip()
            for line in said.splitlines():
                with self.lock:
                    self._read(line)
            if ended == 0:
                return
            tail = [line for line in said.splitlines() if not line.startswith("{")][-12:]
            how = "hangs" if ended is None else f"signal {-ended}" if ended < 0 else f"exit status {ended}"
            number, _, call = noted.partition(" ")
            at = int(number or first)
            with self.lock:
                self.note(at, call, how + "".join(f"\n    | {line}" for line in tail))
            first = at + 1

    def _child(self, first: int, last: int, journal: str, output) -> tuple[int | None, str]:
        command = [sys.executable, "-X", "faulthandler", str(_ROOT / "tools/fuzz_worker.py")]
        arguments = [str(self.seed), str(first), str(last), journal]
        env = os.environ | {"PYTHONPATH": str(_ROOT)}
        if first // _CHUNK % 2:
            env["GRADTAPE_COMPILE"] = "always"
        child = subprocess.Popen(
            command + arguments, stdout=output, stderr=subprocess.STDOUT, env=env, cwd=_ROOT
        )
        seen, since = b"", (0.0, time.monotonic())
        while child.poll() is None:
            time.sleep(0.05)
            now, spent = Path(journal).read_bytes(), (_processor(child.pid), time.monotonic())
            if now != seen:
                seen, since = now, spent
            if any(a - b > most for a, b, most in zip(spent, since, _PATIENCE, strict=True)):
                child.send_signal(signal.SIGABRT)  # faulthandler shows where it was
                child.wait()
                output.seek(0)
                return None, output.read()
        output.seek(0)
        return child.returncode, output.read()

    def _read(self, line: str) -> None:
        if not line.startswith('{"'):
            return
        said = json.loads(line)
        if "problem" in said:
            self.note(said["number"], said["call"], said["problem"])
        elif "slow" in said:
            self.slow.append(f"call {said['number']}: {said['slow']}")
        else:
            self.fine += said["fine"]
            self.largest = max(self.largest, said["rss"])
            if said["live_bytes"] > _LEAK:
                self.note(-1, "[] a whole process(", f"keeps {said['live_bytes'] >> 20} MiB of tensors")


def _processor(pid: int) -> float:
    """Seconds of the processor that a process has used."""
    try:
        user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:
        return 0.0
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    asked = parser.parse_args()
    first, last = asked.first, asked.first + asked.calls
    if asked.only is not None:
        first, last = asked.only, asked.only + 1
    run = Run(asked.seed)
    start = time.monotonic()
    cuts = [first, *range((first // _CHUNK + 1) * _CHUNK, last, _CHUNK), last]
    with ThreadPoolExecutor(asked.jobs) as pool:
        for end, _ in zip(cuts[1:], pool.map(run.chunk, cuts, cuts[1:]), strict=True):
            print(
                f"{end - first:7d} calls, {time.monotonic() - start:5.0f} s, {run.fine} with a result, "
                f"{len(run.problems)} problems, {len(run.slow)} interrupted, largest process {run.largest >> 20} MiB",
                flush=True,
            )
    for line in run.slow:
        print(f"  slow {line[:200]}")
    for kind, found in sorted(run.problems.items()):
        print(
            f"{len(found):5d} x {kind}\n        python tools/fuzz.py --seed {asked.seed} --only {found[0]['number']}"
        )
    sys.exit(bool(run.problems))


if __name__ == "__main__":
    main()
