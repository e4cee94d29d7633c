"""Runs inside the environment of one library and measures what it is told to, one line a command.

    python worker.py <library> <folder of the shared workloads>

Commands are JSON objects on standard input: `prepare` makes a case ready, `sample` times it for a
while, `drop` forgets all cases. Answers are JSON objects, one a line.
"""

import gc
import importlib
import json
import os
import sys
import time

import cases


class Waiting:
    """How long the threads of this process have waited for a core, in seconds (Linux; else 0)."""

    def __init__(self):
        self.files = {}

    def refresh(self):
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

    def seconds(self):
        total = 0
        for thread, file in list(self.files.items()):
            try:
                total += int(os.pread(file, 64, 0).split()[1])
            except (OSError, IndexError):
                os.close(self.files.pop(thread))
        return total * 1e-9


def others_busy(before=None):
    """What other processes used of the machine since `before`, as a share of all cores (Linux; else 0)."""
    try:
        with open("/proc/stat") as f:
            user, nice, system, _, _, irq, softirq, steal = map(int, f.readline().split()[1:9])
    except OSError:
        return 0.0 if before else (0.0, 0.0)
    busy = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK") - time.process_time()
    now = time.perf_counter()
    if before is None:
        return busy, now
    return max(0.0, busy - before[0]) / ((now - before[1]) * os.cpu_count())


def sample(case, seconds, waiting, alone):
    """Microseconds per call, measured for `seconds`; clean are those that nothing disturbed.

    Disturbed is a sample during which a thread of ours waited for a core. With `alone`, for work on
    several threads, it is also one that other processes computed beside: a pool whose threads
    wait for each other suffers from that far more than one whose threads do not, so that
    comparing the two would compare the machine's load.
    """
    now = time.perf_counter
    case.run(case.count or 1)
    start = now()
    case.run(case.count or 1)
    once = (now() - start) / (case.count or 1)
    # Long enough for the clock's own cost to vanish, short enough for many samples.
    count = case.count or max(1, int(50e-6 / max(once, 1e-8)))
    waiting.refresh()
    clean, other = [], []
    before = others_busy()
    begin = now()
    while now() - begin < seconds or len(clean) + len(other) < 3:
        times, waited, group = [], waiting.seconds(), now()
        while True:
            start = now()
            case.run(count)
            end = now()
            times.append((end - start) / count * 1e6)
            if end - group > 2e-3:
                break
        quiet = waiting.seconds() - waited <= max(0.01 * (end - group), 10e-6)
        (clean if quiet else other).extend(times)
    # The clock behind it ticks a hundred times a second: a stricter bound would find ghosts.
    if alone and others_busy(before) > 0.15:
        clean, other = [], clean + other
    return {"clean": clean, "other": other}


def prepare(library, tf, command, folder):
    if command["part"] == "workloads":
        if folder not in sys.path:
            sys.path.insert(0, folder)
        kind = "tf" if library in ("tensorflow", "gradtape") else library
        return cases.workload(importlib.import_module(f"bench_{kind}"), command["name"], command["mode"])
    if command["part"] == "data":
        import data_pipeline

        return data_pipeline.case(library, tf, command["name"])
    return getattr(cases, command["part"])(library, tf, command["name"], command.get("size"))


def main():
    library, folder = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints must not be taken for an answer

    def answer(**fields):
        answers.write(json.dumps(fields) + "\n")

    try:
        tf = cases.load(library)
    except Exception as e:
        answer(error=f"{type(e).__name__}: {e}")
        return
    answer(version=getattr(tf, "__version__", "?"))
    ready, waiting = {}, Waiting()
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if command["do"] == "prepare":
                made = prepare(library, tf, command, folder)
                ready.update({f"{command['key']}/{metric}": case for metric, case in made.items()})
                answer(metrics={m: {"check": c.check, "missing": c.missing} for m, c in made.items()})
            elif command["do"] == "sample":
                answer(**sample(ready[command["key"]], command["seconds"], waiting, command["alone"]))
            else:
                ready.clear()
                cases.leave()
                gc.collect()
                answer()
        except Exception as e:
            answer(error=f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"[:300])


if __name__ == "__main__":
    main()
