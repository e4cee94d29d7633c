"""The workloads W1 to W12: the parts `workloads`, `one_thread` (some of them) and `memory` (their peak)."""

from __future__ import annotations

import importlib
from typing import Any

import cases
import parts
import peers

_MODULES = {"torch": "pytorch", "jax": "jax_numpy", "autograd": "hips_autograd"}

# Other ways to do the same that a library offers; the best of a library's eager ways stands for it.
_VARIANTS = {
    "W5": ("torch eager, channels last",),
    "W7": ("torch eager, sdpa",),
    "W12": ("jax jit, rows",),
}
_ADAM_VARIANTS = ("tensorflow function, raw Adam", "torch eager, fused")
_ONE_THREAD = ("W3", "W4", "W5", "W6", "W7", "W10", "W11")
_ONE_THREAD_LABELS = ("gradtape eager", "gradtape function", "tensorflow function", "torch eager", "jax jit")
_MEMORY = ("W4", "W5", "W7", "W11", "W12")
_MEMORY_LABELS = (
    "gradtape eager", "gradtape function", "tensorflow eager", "tensorflow function", "torch eager", "jax jit",
    "autograd numpy",
)  # fmt: skip
_SINGLE = ("W1", "W2", "W9")  # too small for a second thread in any library's eager mode


def case(library: str, module: Any, name: str, mode: str) -> dict[str, cases.Case]:
    """One step of a workload; nothing where a library has no counterpart."""
    written = importlib.import_module(f"workloads.{_MODULES.get(library, 'tensorflow_api')}")
    step = written.build(module, name, mode)
    return {"step": step} if step else {}


def _labels(name: str) -> tuple[str, ...]:
    from workloads import data

    more = _ADAM_VARIANTS if name in data.ADAM else ()
    return (*cases.EAGER, *cases.COMPILED, *more, *_VARIANTS.get(name, ()))


def _command(label: str, name: str) -> dict[str, Any]:
    alone = not (label.endswith("eager") and name in _SINGLE)
    return parts.command(label, "steps", name, alone=alone)


def measure(options: Any) -> dict[str, Any]:
    from workloads import data

    names = parts.chosen(data.WORKLOADS, options)
    todo = {name: {label: _command(label, name) for label in _labels(name)} for name in names}
    return parts.measure("workloads", todo, options, longer=2)


def measure_one_thread(options: Any) -> dict[str, Any]:
    todo = {
        name: {label: _command(label, name) for label in _ONE_THREAD_LABELS}
        for name in parts.some(_ONE_THREAD, options)
    }
    return parts.measure("one_thread", todo, options, longer=2, threads=1)


def measure_memory(options: Any) -> dict[str, Any]:
    """Peak memory of a process that imports a library and makes steps, a fresh process each."""
    result: dict[str, Any] = {}
    for name in parts.some(_MEMORY, options):
        parts.progress("memory", name)
        result[name] = {}
        for label in _MEMORY_LABELS:
            command = _command(label, name)
            try:
                peer = peers.Peer(command["library"])
            except peers.Missing:
                continue
            imported = peer.ask(do="peak")["mb"]
            reply = peer.ask(do="prepare", key=label, **command)
            if reply.get("metrics"):
                peer.ask(do="sample", key=f"{label}/step", seconds=0.2, alone=False)
                peak = peer.ask(do="peak")["mb"]
                result[name][label] = {"peak": {"mb": round(peak, 1), "imported_mb": round(imported, 1)}}
            peer.close()
    return {"cases": result}
