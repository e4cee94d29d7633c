"""Keras' own test suite on this backend: `make keras-tests`, or `python tools/keras_tests.py layers/core`.

The tests come with Keras' wheel. They run in their own environment, in `~/.cache/gradtape-keras` (`GRADTAPE_KERAS`
names another folder), because many compare with TensorFlow, JAX or PyTorch; gradtape itself is imported from this
folder. Every folder of tests is a process with a time limit (importing all those libraries takes longer than most
files; a slow file has its own process), two at once; `--resume` continues an interrupted run. Known failures are
listed in `keras_gradtape/excluded_tests.txt` with a reason; such a test that passes is a failure, so that the list
can only shrink. A line is printed for every file, and `tests/keras/results.json` is written when all of them have run.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HOME = Path(os.environ.get("GRADTAPE_KERAS", Path.home() / ".cache" / "gradtape-keras"))
RESULTS = ROOT / "tests" / "keras" / "results.json"

KERAS = "keras==3.15.1"
# Keras' tests import these; tests that need others (openvino, litert, ...) are skipped.
PACKAGES = (
    KERAS, "jax[cpu]==0.10.2", "tensorflow-cpu==2.21.0", "torch==2.13.0", "grain", "pandas", "scikit-learn",
    "dm-tree", "tensorboard", "orbax-checkpoint", "requests", "scipy", "pillow", "pytest", "numpy", "scipy-openblas32",
)  # fmt: skip

COUNTS = ("passed", "failed", "skipped", "excluded")
SLOW = 60  # seconds: a slower file has its own process


def python() -> Path:
    """The interpreter of the environment, which is set up if it does not exist."""
    interpreter = HOME / "env" / "bin" / "python"
    packages = " ".join(PACKAGES)
    done = HOME / "done"
    if not done.exists() or done.read_text() != packages:
        print(f"setting up {HOME} with {packages} (once)", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", HOME / "env"], check=True)
        subprocess.run([interpreter, "-m", "pip", "install", "-q", *PACKAGES], check=True)
        done.write_text(packages)
    return interpreter


def folder_of_keras(interpreter: Path) -> Path:
    where = "import importlib.util; print(importlib.util.find_spec('keras').submodule_search_locations[0])"
    return Path(
        subprocess.run([interpreter, "-c", where], capture_output=True, text=True, check=True).stdout.strip()
    )


def pieces(tests: Path, parts: list[str], done: dict[str, Any]) -> list[list[str]]:
    """The requested files that are left, grouped by folder; slow ones first, each alone."""
    earlier = json.loads(RESULTS.read_text())["files"] if RESULTS.exists() else {}
    groups: dict[str, list[str]] = {}
    for part in parts or ["."]:
        for path in [tests / part] if part.endswith(".py") else sorted((tests / part).rglob("*_test.py")):
            name = path.relative_to(tests).as_posix()
            slow = earlier.get(name, {}).get("seconds", 0) >= SLOW
            if name not in done:
                groups.setdefault(name if slow else os.path.dirname(name), []).append(name)
    return sorted(
        groups.values(), key=lambda names: -sum(earlier.get(n, {}).get("seconds", 0) for n in names)
    )


def run_files(interpreter: Path, tests: Path, names: list[str], seconds: float) -> dict[str, Any]:
    """A row for each of some files, run in one process, or in one each if that process fails."""
    piece = names[0] if len(names) == 1 else os.path.dirname(names[0])
    result = run(interpreter, piece, seconds, *(tests / name for name in names))
    if result["ended"] and len(names) > 1:
        return {n: r for name in names for n, r in run_files(interpreter, tests, [name], seconds).items()}
    return {
        name: result["files"].get(name, dict.fromkeys((*COUNTS, "seconds"), 0)) | result["ended"]
        for name in names
    }


def run(interpreter: Path, name: str, seconds: float, *arguments: str | Path) -> dict[str, Any]:
    """Runs pytest: a row for every file, and how it ended if it failed."""
    report = HOME / "reports" / (name.replace("/", "-") + ".xml")
    log = report.with_suffix(".log")
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    command = [
        interpreter, "-m", "pytest", "-q", "-p", "keras_gradtape.pytest_plugin", "-p", "no:cacheprovider",
        "-o", "addopts=", "--noconftest", "--tb=short", f"--junitxml={report}",
        f"--rootdir={ROOT.anchor}",  # names in the report are of whole paths, wherever Keras is
        *arguments,
    ]  # fmt: skip
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
    with log.open("w") as out:
        try:
            code = subprocess.run(
                command, cwd=HOME, env=environment, stdout=out, stderr=subprocess.STDOUT, timeout=seconds
            ).returncode
            ended = "" if code in (0, 1, 5) else f"pytest ended with {code}: see {log}"
        except subprocess.TimeoutExpired:
            ended = f"not done after {seconds:.0f} s: see {log}"
    return {"files": _read(report) if report.exists() else {}, "ended": {"ended": ended} if ended else {}}


def _read(report: Path) -> dict[str, Any]:
    """The numbers of each file in the report of pytest."""
    rows: dict[str, Any] = {}
    for case in xml.parse(report).getroot().iter("testcase"):
        # "....keras.src.ops.math_test.MathTest" and "test_erf"; a module that cannot be imported is only a name.
        words = f"{case.get('classname')}.{case.get('name')}".partition("keras.src.")[2].split(".")
        depth = next(i for i, word in enumerate(words, 1) if word.endswith("_test"))
        name = "/".join(words[:depth]) + ".py"
        row = rows.setdefault(name, dict.fromkeys((*COUNTS, "seconds"), 0))
        bad = next((c for c in case if c.tag in ("failure", "error")), None)
        skipped = case.find("skipped")
        row["seconds"] += float(case.get("time", 0))
        if bad is not None:
            row["failed"] += 1
            message = (bad.get("message") or "").strip().split("\n")[0][:200]
            row.setdefault("failures", {})[".".join(words[depth:])] = message
        elif skipped is None:
            row["passed"] += 1
        else:
            row["excluded" if (skipped.get("message") or "").startswith("excluded") else "skipped"] += 1
    return rows


def _sum(rows: dict[str, Any]) -> dict[str, Any]:
    total: dict[str, Any] = {c: sum(row[c] for row in rows.values()) for c in (*COUNTS, "seconds")}
    return total | {"stopped": sum("ended" in row for row in rows.values())}


def _line(name: str, row: dict[str, Any]) -> str:
    return (
        f"{name:64}"
        + "".join(f"{row[c]:>9}" for c in COUNTS)
        + f"{row['seconds']:>9.1f}  {row.get('ended', '')}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "parts", nargs="*", help="folders or files of keras/src; all of them if none is named"
    )
    parser.add_argument("--seconds", type=float, default=3600, help="the limit for one process (%(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once (%(default)s)")
    parser.add_argument("--resume", action="store_true", help="continue an interrupted run")
    options = parser.parse_args()
    interpreter = python()
    tests = folder_of_keras(interpreter) / "src"
    memory = HOME / "done.json"
    rows = json.loads(memory.read_text()) if options.resume and memory.exists() else {}
    print(f"{KERAS} on gradtape\n{'':64}" + "".join(f"{c:>9}" for c in (*COUNTS, "seconds")), flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        todo = pieces(tests, options.parts, rows)
        jobs = [pool.submit(run_files, interpreter, tests, names, options.seconds) for names in todo]
        for job in concurrent.futures.as_completed(jobs):
            for name, row in job.result().items():
                rows[name] = row
                print(_line(name, row), flush=True)
                for test, why in row.get("failures", {}).items():
                    print(f"    {test}\n        {why}", flush=True)
            memory.write_text(json.dumps(rows))
    total = _sum(rows)
    print(_line("all", total))
    ran = total["passed"] + total["failed"] + total["excluded"]
    print(f"{100 * total['passed'] / max(ran, 1):.2f} % of {ran} tests passed ({total['excluded']} excluded)")
    if not options.parts:
        listed = {name: row | {"seconds": round(row["seconds"])} for name, row in sorted(rows.items())}
        total["seconds"] = round(total["seconds"])
        RESULTS.write_text(json.dumps({"keras": KERAS, "files": listed, "all": total}, indent=1) + "\n")
    return 1 if total["failed"] or total["stopped"] else 0


if __name__ == "__main__":
    sys.exit(main())
