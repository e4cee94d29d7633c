"""The parts of the benchmark: each measures its cases in turns and returns them as plain data."""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import cases
import peers

Stats = dict[str, Any]


def stats(rounds: list[dict[str, list[float]]]) -> Stats:
    """Minimum, median and spread (a quartile's distance over the median) in microseconds.

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


def _quiet_turns(samples: list[dict[str, list[float]]]) -> int:
    return sum(bool(s["clean"]) for s in samples)


def in_turns(
    running: dict[str, peers.Peer],
    commands: dict[str, dict[str, Any]],
    rounds: int,
    seconds: float,
    patience: int = 4,
) -> dict[str, Any]:
    """Prepares one case in several processes, then lets them measure in turns.

    `commands` maps a label to the case as its process must prepare it (and which process that is, and
    whether it must have the machine to itself). Disturbed cases get up to `patience` times the turns.
    Returns, by label and metric, figures or {"missing": why}.
    """
    result: dict[str, Any] = {}
    todo = []
    for label, command in commands.items():
        library = command["library"]
        if library not in running:
            continue
        made = running[library].ask(do="prepare", key=label, **command)
        if "error" in made:
            result[label] = {"missing": made["error"]}
            continue
        result[label] = {}
        for metric, about in made["metrics"].items():
            if about["missing"]:
                result[label][metric] = {"missing": about["missing"]}
            else:
                result[label][metric] = {"check": about["check"]}
                todo.append((label, metric, library, []))
    for turn in range(patience * rounds):
        # After the usual number of turns only those go on that were disturbed in too many.
        late = [t for t in todo if turn < rounds or _quiet_turns(t[3]) < max(2, rounds // 2)]
        if not late:
            break
        for label, metric, library, samples in late:
            time.sleep(0.004)  # threads of the one before stop spinning
            alone = commands[label].get("alone", True)
            got = running[library].ask(do="sample", key=f"{label}/{metric}", seconds=seconds, alone=alone)
            if "error" in got:
                result[label][metric] = {"missing": got["error"]}
            else:
                samples.append(got)
    for label, metric, _, samples in todo:
        if samples and "missing" not in result[label][metric]:
            result[label][metric].update(stats(samples))
    for peer in running.values():
        peer.ask(do="drop")
    return result


def _close(running: dict[str, peers.Peer]) -> None:
    for peer in running.values():
        peer.close()


def _progress(part: str, name: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{part}: {name:40s}", end="", file=sys.stderr, flush=True)


def overhead(options: Any) -> dict[str, Any]:
    """The cost of one eagerly recorded op with a tape active, microseconds."""
    running = peers.start(["gradtape", "tensorflow", "torch"])
    result = {}
    for name in cases.OVERHEAD:
        _progress("overhead", name)
        commands = {
            lib: {"library": lib, "part": "overhead", "name": name, "alone": False} for lib in running
        }
        result[name] = in_turns(running, commands, options.rounds, options.seconds)
    versions = {lib: p.version for lib, p in running.items()}
    _close(running)
    return {"versions": versions, "cases": result}


def elementwise(options: Any) -> dict[str, Any]:
    """Large float32 ops, microseconds an op."""
    running = peers.start(["gradtape", "torch"])
    result = {}
    for name in cases.ELEMENTWISE:
        for size in cases.SIZES:
            _progress("elementwise", f"{name} {size}")
            commands = {
                lib: {"library": lib, "part": "elementwise", "name": name, "size": size} for lib in running
            }
            result[f"{name} {size}"] = in_turns(running, commands, options.rounds, 3 * options.seconds)
    versions = {lib: p.version for lib, p in running.items()}
    _close(running)
    return {"versions": versions, "cases": result}


def workloads(options: Any) -> dict[str, Any]:
    """The shared workloads W1 to W12, microseconds a step."""
    if not (peers.SHARED / "bench_tf.py").exists():
        return {
            "missing": f"not measured: the workloads live beside the project, and {peers.SHARED} is not "
            "there. The other parts need nothing but this checkout. (GRADTAPE_BENCH names another place.)"
        }
    modes = {
        lib: usual + (more if options.full else ())
        for lib, (usual, more) in cases.MODES.items()
        if usual or options.full
    }
    running = peers.start([lib for lib, ways in modes.items() if ways])
    result = {}
    for name in options.workloads or cases.WORKLOADS:
        _progress("workloads", name)
        commands = {
            f"{lib} {mode}": {
                "library": lib,
                "part": "workloads",
                "name": name,
                "mode": mode,
                "alone": not (mode == "eager" and name in cases.ONE_THREAD),
            }
            for lib in running
            for mode in modes[lib]
        }
        result[name] = in_turns(running, commands, options.rounds, 3 * options.seconds, patience=2)
    versions = {lib: p.version for lib, p in running.items()}
    _close(running)
    return {"versions": versions, "cases": result}
