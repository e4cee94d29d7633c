"""How a part of the benchmark is measured: the libraries take turns, and their answers become plain data.

A part is {"versions": {library: version}, "cases": {case: {label: {metric: figures}}}}. A label is a library and
a way to run it ("torch compile, ..."); figures are those of `stats`, or {"missing": why}.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import peers

Samples = list[dict[str, list[float]]]


def stats(rounds: Samples) -> dict[str, Any]:
    """Minimum, median and spread (the quartiles' distance over the median) in microseconds.

    Only undisturbed samples count. Without enough of them the figures are of all samples and
    `quiet` is false: such a figure tells of the machine's load and must not be compared.
    """
    times = sorted(t for r in rounds for t in r["clean"])
    quiet = len(times) >= 5
    if not quiet:
        times = sorted(t for r in rounds for t in (*r["clean"], *r["other"]))
    median = statistics.median(times)
    low, high = times[len(times) // 4], times[(3 * len(times)) // 4]
    return {
        "min": round(times[0], 4),
        "median": round(median, 4),
        "spread": round((high - low) / median, 3),
        "samples": len(times),
        "quiet": quiet,
    }


def _quiet_turns(samples: Samples) -> int:
    return sum(bool(s["clean"]) for s in samples)


def in_turns(
    running: dict[str, peers.Peer],
    commands: dict[str, dict[str, Any]],
    rounds: int,
    seconds: float,
    patience: int = 2,
) -> dict[str, Any]:
    """Prepares one case in several processes, then lets them measure in turns.

    `commands` maps a label to the case as its process must prepare it (and which process that is, and
    whether it must have the machine to itself). Disturbed cases get up to `patience` times the turns.
    Returns, by label and metric, figures or {"missing": why}.
    """
    result: dict[str, Any] = {}
    todo: list[tuple[str, str, str, Samples]] = []
    for label, command in commands.items():
        library = command["library"]
        if library not in running:
            continue
        reply = running[library].ask(do="prepare", key=label, **command)
        if "error" in reply:
            result[label] = {"missing": reply["error"]}
            continue
        result[label] = reply["metrics"]
        todo += [(label, metric, library, []) for metric, m in reply["metrics"].items() if "missing" not in m]
    for turn in range(patience * rounds):
        # After the usual number of turns, only cases with too many disturbed samples continue.
        late = [t for t in todo if turn < rounds or _quiet_turns(t[3]) < max(2, rounds // 2)]
        if not late:
            break
        for label, metric, library, samples in late:
            alone = commands[label].get("alone", True)
            got = running[library].ask(do="sample", key=f"{label}/{metric}", seconds=seconds, alone=alone)
            if "error" in got:
                result[label][metric] = {"missing": got["error"]}
            else:
                samples.append(got)
    for label, metric, _, samples in todo:
        if samples and "missing" not in result[label][metric]:
            result[label][metric].update(stats(samples))
    for library in {command["library"] for command in commands.values()} & set(running):
        running[library].ask(do="drop")
    return result


def command(label: str, part: str, name: str, **about: Any) -> dict[str, Any]:
    """The case that the library of a label prepares."""
    library, mode = label.split(" ", 1)
    return {"library": library, "part": part, "name": name, "mode": mode, **about}


# Modes with a long compilation, which a quick run leaves out.
_SLOW_STARTERS = ("torch compile", "tensorflow xla", "jax eager")


def some(names: Iterable[str], options: Any) -> list[str]:
    """The cases of a part; one in four in a quick run."""
    return list(names)[:: 4 if options.quick else 1]


def chosen(names: Iterable[str], options: Any) -> list[str]:
    """The cases that --only names; without it, `some`."""
    all_names = list(names)
    return (
        [name for name in all_names if name in options.workloads]
        if options.workloads
        else some(all_names, options)
    )


def measure(
    part: str,
    todo: dict[str, dict[str, dict[str, Any]]],
    options: Any,
    longer: float = 1.0,
    threads: int = peers.THREADS,
) -> dict[str, Any]:
    """Measures the commands of each case, in processes that live as long as the part."""
    if options.quick:
        todo = {
            name: {label: c for label, c in commands.items() if label not in _SLOW_STARTERS}
            for name, commands in todo.items()
        }
    libraries = dict.fromkeys(c["library"] for commands in todo.values() for c in commands.values())
    progress(part, f"starting {', '.join(libraries)}")
    running = peers.start(list(libraries), threads)
    result = {}
    for name, commands in todo.items():
        progress(part, name)
        gone = [library for library, peer in running.items() if not peer.alive]
        running |= peers.start(gone, threads)  # restarts processes that crashed in the case before
        result[name] = in_turns(running, commands, options.rounds, longer * options.seconds)
    versions = {library: peer.version for library, peer in running.items()}
    _close(running)
    return {"versions": versions, "threads": threads, "cases": result}


def measure_fresh(
    part: str,
    name: str,
    commands: dict[str, dict[str, Any]],
    rounds: int,
    seconds: float,
) -> tuple[dict[str, Any], dict[str, str]]:
    """One case with a new process for every label, so that memory is that of the case only.

    Returns the figures of `in_turns` and, as the metric `peak`, the most MB that each process held, and how many of
    those after the import. And the versions of the libraries.
    """
    progress(part, name)
    running, imported, versions, result = {}, {}, {}, {}
    for label, command in commands.items():
        try:
            peer = peers.Peer(command["library"])
        except peers.Missing as e:
            result[label] = {"missing": f"not here: {e}"}
            continue
        versions[peer.library] = peer.version
        imported[label] = peer.ask(do="peak")["mb"]
        running[label] = peer
    # Here a process is named by its label, since a library may have several.
    result |= in_turns(
        running, {label: c | {"library": label} for label, c in commands.items()}, rounds, seconds, patience=1
    )
    for label, peer in running.items():
        mb = peer.ask(do="peak").get("mb")
        if mb and "missing" not in result[label]:
            result[label]["peak"] = {"mb": round(mb, 3), "imported_mb": round(imported[label], 3)}
    _close(running)
    return {label: result[label] for label in commands}, versions


def _close(running: dict[str, peers.Peer]) -> None:
    for peer in running.values():
        peer.close()


class Plan:
    """The remaining work, printed as lines while a part runs, or as a progress bar where gradtape would show one."""

    def __init__(self, expected: dict[str, float], now: Callable[[], float] = time.monotonic) -> None:
        self.expected, self.now = expected, now
        # Every library's process imports this file; only the one that measures has gradtape.
        from gradtape._src.base.progress import Progress

        self.part, self.since = "", now()
        self.bar = Progress("make bench", round(sum(expected.values())), "s")

    def begin(self, part: str) -> None:
        self.part, self.since = part, self.now()

    def left(self) -> float:
        """Seconds until the end, by what each part took the last time."""
        names = list(self.expected)
        later = names[names.index(self.part) + 1 :] if self.part in names else names
        of_part = max(0.0, self.expected.get(self.part, 0.0) - (self.now() - self.since))
        return of_part + sum(self.expected[name] for name in later)


plan: Plan | None = None


def progress(part: str, name: str) -> None:
    """Shows what is being measured."""
    if plan is not None:
        left, bar = plan.left(), plan.bar
        bar.step(max(round(bar.total - left) - bar.done, 0), f"{part}: {name}")
        if bar.is_shown:
            return
        print(f"{part}: {name} (about {left / 60:.0f} min left)", file=sys.stderr, flush=True)
