"""The examples in both libraries, their losses step by step: `run.py examples`, or this file with names of examples.

An example is run by `main(quick=True)`, which returns its losses, in a process of its own: once as it is, and
once with its line `import gradtape as tf` replaced by `import tensorflow as tf`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
OURS, THEIRS = "import gradtape as tf", "import tensorflow as tf"

# How much losses may differ, relative to the larger of 0.1 and the loss: float32, a few dozen steps. Adam divides by
# the size of a gradient, so rounding errors of small gradients show in the loss.
TOLERANCE = 2e-5


def names() -> list[str]:
    """The examples: programs with a `main` that use the library. Keras on TensorFlow has no `keras.distribution`."""
    sources = {p.stem: p.read_text() for p in EXAMPLES.glob("*.py")}
    return sorted(n for n, text in sources.items() if OURS in text and "keras.distribution" not in text)


def losses_in_this_process(name: str, library: str) -> list[float]:
    """Runs an example as if it were written for `library`."""
    path = EXAMPLES / f"{name}.py"
    source = path.read_text()
    if source.count(OURS) != 1:
        raise ValueError(f"{path}: `{OURS}` should be there once, and nothing else should name the library")
    if library == "tensorflow":
        source = source.replace(OURS, THEIRS)
    sys.path[:0] = [str(ROOT), str(EXAMPLES)]
    module = types.ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    # With the name of the file, so that autograph finds the source of functions.
    exec(compile(source, str(path), "exec"), module.__dict__)
    with contextlib.redirect_stdout(sys.stderr):
        return [float(x) for x in module.main(True)]


def losses(name: str, library: str) -> list[float]:
    """The losses of an example, from a process of its own: Keras has one backend a process."""
    env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
    env["KERAS_BACKEND"] = library
    done = subprocess.run(
        [sys.executable, __file__, "--losses", name, library],
        env=env, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"it fails on {library}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def compare(name: str) -> str | None:
    """A description of the difference; None if there is none."""
    with ThreadPoolExecutor(2) as pool:
        ours, theirs = pool.map(lambda library: losses(name, library), ("gradtape", "tensorflow"))
    if len(ours) != len(theirs):
        return f"{len(ours)} losses here, {len(theirs)} in TensorFlow"
    # x != x: both may be NaN, as in TensorFlow
    apart = [
        0.0 if a == b or (a != a and b != b) else abs(a - b) / max(abs(b), 0.1)
        for a, b in zip(ours, theirs, strict=True)
    ]
    worst = max(range(len(apart)), key=lambda k: apart[k] if apart[k] == apart[k] else float("inf"))
    words = f"{len(ours):4} losses, {apart[worst]:.1e} apart at most (number {worst})"
    if not apart[worst] <= TOLERANCE:
        return f"{words}: {ours[worst]!r} here, {theirs[worst]!r} in TensorFlow"
    print(f"  {name:22} {words}", flush=True)
    return None


def main(chosen: list[str]) -> int:
    failed = 0
    has_keras = importlib.util.find_spec("keras") is not None
    for name in chosen or names():
        if "tf.keras" in (EXAMPLES / f"{name}.py").read_text() and not has_keras:
            print(f"  {name:22} left out: Keras is not installed")
            continue
        try:
            words = compare(name)
        except (RuntimeError, subprocess.TimeoutExpired) as e:
            words = str(e)
        if words:
            failed += 1
            print(f"  {name:22} DIFFERENT: {words}", flush=True)
    print(f"examples: {failed} differ")
    return failed


if __name__ == "__main__":
    if sys.argv[1:2] == ["--losses"]:
        print(json.dumps(losses_in_this_process(*sys.argv[2:4])))
    else:
        sys.exit(main(sys.argv[1:]))
