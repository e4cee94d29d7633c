"""gradtape on XLA's CPU client against `jax.jit` of the same model written in JAX: the same compiler under both.

    python benchmarks/xla.py [--only W2 W5 call] [--rounds 8] [--seconds 0.5]

W2 to W7 are whole training steps whose loss is read. `call` is a function of three elements whose result is not
read, `looked at` the same with its value on the host, `held` one that updates a variable. The ratio is gradtape's
time over that of JAX: the aim is 1.15 for the steps and 1.3 for calls. Nothing is published.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import cases
import parts
import peers
import steps

WORKLOADS = ("W2", "W3", "W4", "W5", "W6", "W7")
CALLS = ("call", "looked at", "held")


def case(library: str, module: Any, name: str, mode: str) -> dict[str, cases.Case]:
    """One step of a workload, or a small function."""
    if name in WORKLOADS:
        return steps.case(library, module, name, mode)
    call = _jax_call(name) if library == "jax" else _call(module, name)
    return {"step": cases.Case(cases.repeat(call))}


def _call(tf: Any, name: str) -> Any:
    x = tf.constant([1.0, 2.0, 3.0])
    if name == "held":
        v = tf.Variable(x)

        @tf.function(jit_compile=True)
        def add(x: Any) -> Any:
            v.assign(v * 0.5 + x)
            return v + 1.0

        return lambda: add(x)
    f = tf.function(lambda x: x * 2.0 + 1.0, jit_compile=True)
    return (lambda: f(x)) if name == "call" else lambda: f(x).numpy()


def _jax_call(name: str) -> Any:
    import jax
    import jax.numpy as jnp
    import numpy as np

    x = jnp.asarray([1.0, 2.0, 3.0])
    if name == "held":
        state = [jnp.asarray(x + 0.0)]

        def add(v: Any, x: Any) -> Any:
            v = v * 0.5 + x
            return v, v + 1.0

        jitted = jax.jit(add, donate_argnums=0)

        def step() -> Any:
            state[0], out = jitted(state[0], x)
            return out

        return step
    f = jax.jit(lambda x: x * 2.0 + 1.0)
    return (lambda: f(x)) if name == "call" else lambda: np.asarray(f(x))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[*WORKLOADS, *CALLS])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", help="where to write the figures")
    options = parser.parse_args()
    running = {name: peers.Peer(name, options.threads, sys.executable) for name in ("gradtape", "jax")}
    figures: dict[str, Any] = {}
    for name in options.only:
        commands: dict[str, dict[str, Any]] = {
            library: {"library": library, "part": "xla", "name": name, "mode": mode, "alone": False}
            for library, mode in (("gradtape", "xla"), ("jax", "jit"))
        }
        results = parts.in_turns(running, commands, options.rounds, options.seconds)
        ours, theirs = (results[library].get("step", results[library]) for library in ("gradtape", "jax"))
        if "min" not in ours or "min" not in theirs:
            print(f"{name:10} missing: {ours} {theirs}", flush=True)
            continue
        ratio = ours["min"] / theirs["min"]
        figures[name] = {"gradtape": ours, "jax": theirs, "ratio": round(ratio, 3)}
        quiet = "" if ours["quiet"] and theirs["quiet"] else "  (disturbed)"
        print(
            f"{name:10} gradtape {ours['min']:10.2f} us  jax {theirs['min']:10.2f} us  {ratio:6.3f}{quiet}",
            flush=True,
        )
    for peer in running.values():
        peer.close()
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
