"""Runs inside the environment of one library and measures on command, one line per command.

    python worker.py <library> <threads> [<GB of address space; 0: no limit>]

Commands are JSON objects on standard input: `prepare` prepares a case and calls it once, `sample` times it for a
while, `peak` returns the peak memory of the process, `drop` forgets all cases. Answers are JSON objects, one per line.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from typing import Any

_now = time.perf_counter
_LONG = 0.2  # seconds: a longer call gets no extra warm-up calls

# The modules that build the cases of a part, if not the one of the same name.
MODULES = {"data": "data_pipeline", "keras": "keras_layers"}


class Waiting:
    """How long the threads of this process have waited for a core, in seconds (Linux; else 0)."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}

    def refresh(self) -> None:
        try:
            threads = os.listdir("/proc/self/task")
        except OSError:
            return
        for thread in threads:
            if thread not in self.files:
                try:
                    self.files[thread] = os.open(f"/proc/self/task/{thread}/schedstat", os.O_RDONLY)
                except OSError:
                    continue

    def seconds(self) -> float:
        total = 0
        for thread, file in list(self.files.items()):
            try:
                total += int(os.pread(file, 64, 0).split()[1])
            except (OSError, IndexError):
                os.close(self.files.pop(thread))
        return total * 1e-9


def busy_elsewhere() -> tuple[float, float]:
    """Seconds of all cores that other processes have used so far, and the time now (Linux; else zeros)."""
    try:
        with open("/proc/stat") as f:
            user, nice, system, _, _, irq, softirq, steal = map(int, f.readline().split()[1:9])
    except OSError:
        return 0.0, 0.0
    used = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    return used - time.process_time(), _now()


def sample(case: Any, seconds: float, waiting: Waiting, alone: bool) -> dict[str, list[float]]:
    """Microseconds per call, measured for `seconds`; clean are the undisturbed ones.

    A sample is disturbed if a thread of this process waited for a core. With `alone`, for work on several
    threads, it is also disturbed if other processes were computing: that slows a pool whose threads wait for
    each other far more than one whose threads do not, so comparing the two would compare the machine's load.
    """
    waiting.refresh()
    clean: list[float] = []
    other: list[float] = []

    def group(count: int, least: float) -> float:
        """A few samples of `count` calls, `least` seconds together; returns the seconds of the last one's calls."""
        times, waited, begin = [], waiting.seconds(), _now()
        while True:
            start = _now()
            case.run(count)
            end = _now()
            times.append((end - start) / count * 1e6)
            if end - begin > least:
                break
        quiet = waiting.seconds() - waited <= max(0.01 * (end - begin), 10e-6)
        (clean if quiet else other).extend(times)
        return end - start

    used, begin = busy_elsewhere()[0], _now()
    count = case.count or 1
    if group(count, 0.0) < _LONG:  # two calls that are not counted, to wake sleeping threads
        once = group(count, 0.0) / count
        clean.clear(), other.clear()
        # Long enough for the clock's own cost to vanish, short enough for many samples.
        count = case.count or max(1, int(50e-6 / max(once, 1e-8)))
        used, begin = busy_elsewhere()[0], _now()
    while _now() - begin < seconds or len(clean) + len(other) < 3:
        group(count, 2e-3)
    share = (busy_elsewhere()[0] - used) / ((_now() - begin) * (os.cpu_count() or 1))
    # That clock ticks a hundred times a second: a stricter bound would be noise.
    if alone and share > 0.15:
        clean, other = [], clean + other
    return {"clean": clean, "other": other}


def settle(limit: float = 0.25) -> None:
    """Returns when the threads of this process have gone to sleep, so that they do not take the next one's core.

    Thread pools spin for a while after work. To forbid that (OMP_WAIT_POLICY and the like) would not measure
    the libraries as they are used.
    """
    end = _now() + limit
    while _now() < end:
        used = time.process_time()
        time.sleep(0.003)
        if time.process_time() - used < 0.0006:
            return


def peak_mb() -> float:
    """The most memory this process has held at once, in MB (Linux; else 0)."""
    try:
        with open("/proc/self/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        return 0.0


def prepare(library: str, module: Any, command: dict[str, Any], ready: dict[str, Any]) -> dict[str, Any]:
    """Makes the cases of a command with `case` of its part, and calls each of them once."""
    about = {k: v for k, v in command.items() if k not in ("do", "key", "library", "part", "alone")}
    part = importlib.import_module(MODULES.get(command["part"], command["part"]))
    cases_of_part = part.case(library, module, **about)
    metrics = {}
    for metric, case in cases_of_part.items():
        if case.missing:
            metrics[metric] = {"missing": case.missing}
            continue
        start = _now()
        case.run(case.count or 1)
        first = _now() - start
        check = case.check() if callable(case.check) else case.check
        metrics[metric] = {"first_ms": round(first * 1e3, 3), "check": check and [float(v) for v in check]}
        ready[f"{command['key']}/{metric}"] = case
    return metrics


def limit_memory(gb: float) -> None:
    """Makes allocations beyond `gb` fail, where the system can (not Windows)."""
    if gb:
        try:
            import resource
        except ImportError:
            return
        resource.setrlimit(resource.RLIMIT_AS, (int(gb * 2**30),) * 2)


def main() -> None:
    library, threads = sys.argv[1], int(sys.argv[2])
    limit_memory(float(sys.argv[3]) if sys.argv[3:] else 0)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of a library must not be mistaken for an answer
    if hasattr(os, "sched_setaffinity"):  # XLA takes as many threads as it sees cores
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])

    def answer(**fields: Any) -> None:
        answers.write(json.dumps(fields) + "\n")

    import cases

    try:
        module = cases.load(library, threads)
    except Exception as e:
        answer(error=f"{type(e).__name__}: {e}")
        return
    from importlib import metadata

    names = {"tensorflow": "tensorflow-cpu"}
    try:
        version = metadata.version(names.get(library, library))
    except metadata.PackageNotFoundError:
        version = getattr(module, "__version__", "?")
    answer(version=version)
    ready: dict[str, Any] = {}
    waiting = Waiting()
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if command["do"] == "prepare":
                answer(metrics=prepare(library, module, command, ready))
            elif command["do"] == "sample":
                got = sample(ready[command["key"]], command["seconds"], waiting, command["alone"])
                settle()
                answer(**got)
            elif command["do"] == "peak":
                answer(mb=peak_mb())
            else:
                ready.clear()
                gc.collect()
                answer()
        except Exception as e:
            answer(error=f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"[:300])


if __name__ == "__main__":
    main()
