"""Keras' own test-suite on this backend: `make keras-tests`, or `python tools/keras_tests.py layers/core`.

The tests come with Keras' wheel. They are run in an environment of their own, in
`~/.cache/gradtape-keras` (`GRADTAPE_KERAS` names another place), because many compare with TensorFlow,
JAX or PyTorch; gradtape itself is taken from this folder. Every part of the suite is a process of its
own with a limit of time, two at once. What is not run stands in `keras_gradtape/excluded_tests.txt`
with a reason. A table is printed, and written to `tests/keras/results.json` when everything ran.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HOME = Path(os.environ.get("GRADTAPE_KERAS", Path.home() / ".cache" / "gradtape-keras"))
RESULTS = ROOT / "tests" / "keras" / "results.json"

KERAS = "keras==3.15.1"
# Keras' tests import these; those without a line here (onnx, orbax, ...) skip what needs them.
PACKAGES = (
    KERAS, "jax[cpu]==0.10.2", "tensorflow-cpu==2.21.0", "torch==2.13.0", "grain", "pandas", "scikit-learn",
    "dm-tree", "tensorboard", "orbax-checkpoint", "requests", "scipy", "pillow", "pytest", "numpy", "scipy-openblas32",
)  # fmt: skip

# The parts of the suite. The longest first, so that two processes end at about the same time.
PARTS = (
    "ops/numpy_test.py", "applications", "layers/preprocessing", "ops/nn_test.py", "layers/convolutional", "layers/core",
    "layers/attention", "layers/rnn", "trainers", "models", "saving", "callbacks", "ops/image_test.py",
    "optimizers", "layers/reshaping", "layers/normalization", "layers/pooling", "layers/regularization",
    "layers/merging", "layers/activations", "layers/layer_test.py", "metrics", "losses", "quantizers",
    "ops/linalg_test.py", "ops/math_test.py", "ops/core_test.py", "ops", "random", "initializers",
    "regularizers", "constraints", "activations", "backend/common", "backend/tests", "utils",
    "dtype_policies", "tree", "legacy", "wrappers", "testing", "distillation", "export", "datasets", "distribution",
)  # fmt: skip
# "ops" is what of it has no line of its own.
_ALONE = tuple(p for p in PARTS if p.startswith("ops/"))
COUNTS = ("passed", "failed", "skipped", "excluded")


def python() -> Path:
    """The interpreter of the environment, which is set up if it is not there."""
    interpreter = HOME / "env" / "bin" / "python"
    wanted = " ".join(PACKAGES)
    done = HOME / "done"
    if not done.exists() or done.read_text() != wanted:
        print(f"setting up {HOME} with {wanted} (once)", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", HOME / "env"], check=True)
        subprocess.run([interpreter, "-m", "pip", "install", "-q", *PACKAGES], check=True)
        done.write_text(wanted)
    return interpreter


def folder_of_keras(interpreter: Path) -> Path:
    where = "import importlib.util; print(importlib.util.find_spec('keras').submodule_search_locations[0])"
    return Path(
        subprocess.run([interpreter, "-c", where], capture_output=True, text=True, check=True).stdout.strip()
    )


def run(interpreter: Path, tests: Path, part: str, seconds: float, *more: str) -> dict[str, Any]:
    """One part of the suite: numbers, and the tests that failed with the first line of what they said."""
    report = HOME / "reports" / (part.replace("/", "-") + ".xml")
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    command = [
        interpreter,
        "-m",
        "pytest",
        "-q",
        "-p",
        "keras_gradtape.pytest_plugin",
        "-p",
        "no:cacheprovider",
    ]
    command += ["-o", "addopts=", "--tb=short", f"--junitxml={report}"]
    command += [*more] or [tests / part]
    if part == "ops":
        command += [f"--ignore={tests / other}" for other in _ALONE]
    environment = dict(
        os.environ,
        KERAS_BACKEND="gradtape",
        PYTHONPATH=str(ROOT),
        PYTHONDONTWRITEBYTECODE="1",
        CUDA_VISIBLE_DEVICES="",
        JAX_PLATFORMS="cpu",
        TF_CPP_MIN_LOG_LEVEL="3",
        GRADTAPE_NUM_THREADS="1",
        OMP_NUM_THREADS="1",
    )
    start = time.perf_counter()
    log = report.with_suffix(".log")
    with log.open("w") as out:
        try:
            code = subprocess.run(
                command, cwd=HOME, env=environment, stdout=out, stderr=subprocess.STDOUT, timeout=seconds
            ).returncode
            ended = "" if code in (0, 1, 5) else f"pytest ended with {code}: see {log}"
        except subprocess.TimeoutExpired:
            ended = f"not done after {seconds:.0f} s"
    found = _read(report) if report.exists() else {"failures": {}}
    counts = {name: found.get(name, 0) for name in COUNTS}
    return {"part": part, **counts, "seconds": round(time.perf_counter() - start, 1), "ended": ended,
            "failures": found["failures"]}  # fmt: skip


def _read(report: Path) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    failures = {}
    for case in xml.parse(report).getroot().iter("testcase"):
        bad = next((c for c in case if c.tag in ("failure", "error")), None)
        skipped = case.find("skipped")
        if bad is not None:
            counts["failed"] += 1
            name = f"{case.get('classname', '').partition('keras.src.')[2]}::{case.get('name')}"
            failures[name] = (bad.get("message") or "").strip().split("\n")[0][:200]
        elif skipped is not None:
            counts["excluded" if (skipped.get("message") or "").startswith("excluded") else "skipped"] += 1
        else:
            counts["passed"] += 1
    return {**counts, "failures": failures}


def _line(part: str, row: dict[str, Any]) -> str:
    return (
        f"{part:32}"
        + "".join(f"{row[name]:>9}" for name in COUNTS)
        + f"{row['seconds']:>9.1f}  {row['ended']}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "parts", nargs="*", help=f"folders or files of keras/src; all of them: {' '.join(PARTS)}"
    )
    parser.add_argument("--seconds", type=float, default=3600, help="the limit for one part")
    parser.add_argument("--failures", action="store_true", help="list the tests that failed")
    asked = parser.parse_args()
    parts = asked.parts or PARTS
    interpreter = python()
    tests = folder_of_keras(interpreter) / "src"
    print(f"{KERAS} on gradtape\n{'':32}" + "".join(f"{name:>9}" for name in COUNTS) + f"{'seconds':>9}")
    rows = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(run, interpreter, tests, part, asked.seconds) for part in parts]
        for job in concurrent.futures.as_completed(jobs):
            row = job.result()
            rows.append(row)
            print(_line(row["part"], row), flush=True)
            if asked.failures:
                for test, why in row["failures"].items():
                    print(f"    {test}\n        {why}")
    rows.sort(key=lambda row: row["part"])
    total: dict[str, Any] = {name: sum(row[name] for row in rows) for name in (*COUNTS, "seconds")}
    print(_line("all", {**total, "ended": ""}))
    ran = total["passed"] + total["failed"]
    print(f"{100 * total['passed'] / max(ran, 1):.2f} % of {ran} tests that were run passed")
    if not asked.parts:
        RESULTS.write_text(json.dumps({"keras": KERAS, "parts": rows, "all": total}, indent=1) + "\n")
    return 0 if not total["failed"] and not any(row["ended"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
