"""Other people's packages on gradtape: `make ecosystem`, or `python tools/ecosystem.py dm-sonnet gpflow`.

Each file of `tests/ecosystem/packages` is a package of PyPI: what to install, which of its tests to run, what is left
out and why. A package gets an environment of its own in `~/.cache/gradtape-ecosystem` (`GRADTAPE_ECOSYSTEM` names
another place), with its real dependencies, TensorFlow excepted. Its own tests, where it ships them, and our driver
(`tests/ecosystem/drivers/test_<package>.py`, written as its users write) run twice: under the alias (`python -m gradtape
run`), and, if the environment of `make parity` is there, on TensorFlow. A case counts if it passes on TensorFlow. The
figures go to `tests/ecosystem/results.json`; the page `docs/ecosystem.md` is made of them (`--page`: the page alone).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HOME = Path(os.environ.get("GRADTAPE_ECOSYSTEM", Path.home() / ".cache" / "gradtape-ecosystem"))
PARITY = Path(os.environ.get("GRADTAPE_PARITY", Path.home() / ".cache" / "gradtape-parity"))
PLACE = ROOT / "tests" / "ecosystem"
RESULTS = PLACE / "results.json"
PAGE = ROOT / "docs" / "ecosystem.md"
TOOLS = ("pytest", "pytest-timeout", "numpy", "scipy-openblas32")
# What TensorFlow brings along, and packages that need it take for granted.
BROUGHT = (
    "absl-py", "gast", "h5py", "keras>=3.15,<3.17", "ml-dtypes", "opt-einsum", "packaging", "protobuf", "requests", "six",
    "termcolor", "typing-extensions", "wrapt",
)  # fmt: skip
LIBRARIES = ("gradtape", "tensorflow")

# Prints the requirements of an installed package that hold here, one a line.
_REQUIRES = """
import importlib.metadata, sys
from pip._vendor.packaging.requirements import Requirement
for text in importlib.metadata.requires(sys.argv[1]) or ():
    r = Requirement(text)
    if r.marker is None or r.marker.evaluate({"extra": ""}):
        r.marker = None
        print(r)
"""


def packages(names: list[str]) -> list[dict[str, Any]]:
    """The files of packages, in the order of their names; a name that has none ends the program."""
    found = {
        json.loads(path.read_text())["name"]: path for path in sorted((PLACE / "packages").glob("*.json"))
    }
    for name in names:
        if name not in found:
            sys.exit(f"ecosystem: there is no package {name!r}; there are {', '.join(found)}")
    return [json.loads(path.read_text()) for name, path in found.items() if not names or name in names]


def environment(package: dict[str, Any]) -> Path:
    """The interpreter of a package's environment, which is made if it is not there."""
    place = HOME / package["name"]
    python = place / "env" / "bin" / "python"
    brought = BROUGHT if "tensorflow" in package.get("without", ()) else ()
    wanted = json.dumps([brought, *(package.get(k) for k in ("requirement", "without", "bare", "extra"))])
    done = place / "done"
    if done.exists() and done.read_text() == wanted:
        return python
    print(f"{package['name']}: setting up {place} (once)", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", place / "env"], check=True)

    def pip(*arguments: str) -> None:
        subprocess.run([python, "-m", "pip", "install", "-q", *arguments], check=True)

    needed = _install_without(python, pip, package)
    pip(*TOOLS, *brought, *needed, *package.get("extra", ()))
    done.write_text(wanted)
    return python


def _install_without(python: Path, pip: Any, package: dict[str, Any]) -> list[str]:
    """Installs the package and its `bare` ones, each alone; what else all of them need."""
    bare = package.get("bare", ())
    left_out = {_plain(name) for name in (*package.get("without", ()), *bare)}
    needed = []
    for requirement in (package["requirement"], *bare):
        pip("--no-deps", requirement)
        asked = subprocess.run(
            [python, "-c", _REQUIRES, _plain(requirement)], capture_output=True, text=True, check=True
        )
        needed += [inner for inner in asked.stdout.splitlines() if _plain(inner) not in left_out]
    return needed


def _plain(requirement: str) -> str:
    """The name in a requirement, as the registry writes it."""
    cut = min((i for i, c in enumerate(requirement) if c in " <>=!~;[("), default=len(requirement))
    return requirement[:cut].lower().replace("_", "-")


def files(package: dict[str, Any], site: Path) -> list[Path]:
    """What is run: our driver and the tests of the package."""
    driver = PLACE / "drivers" / f"test_{package['name'].replace('-', '_')}.py"
    own = [path for pattern in package.get("tests", ()) for path in sorted(site.glob(pattern))]
    left_out = {name for name in package.get("excluded", {}) if name.endswith(".py")}
    return [p for p in [driver] if p.exists()] + [
        p for p in own if p.relative_to(site).as_posix() not in left_out
    ]


def run(library: str, python: Path, site: Path, path: Path, place: Path, seconds: float) -> dict[str, str]:
    """One file of tests on one library: how each of its cases ended."""
    report = place / f"{library}-{path.stem}.xml"
    report.unlink(missing_ok=True)
    start = [python, "-m", "gradtape", "run"] if library == "gradtape" else [PARITY / "bin" / "python"]
    command = [
        *start, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "-o", "python_files=*.py",
        "-o", "filterwarnings=", "--timeout=300", f"--rootdir={place}", f"--junitxml={report}", path,
        *(("--noconftest",) if path.parent == PLACE / "drivers" else ()),  # ours is for gradtape's own tests
    ]  # fmt: skip
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("GRADTAPE_", "KERAS_"))}
    search = ROOT if library == "gradtape" else site
    settings = {
        "PYTHONPATH": str(search),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "",
        "MPLBACKEND": "agg",
    }
    with report.with_suffix(".log").open("w") as log:
        try:
            subprocess.run(
                command,
                cwd=place,
                env=clean | settings,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            return {path.name: f"not done after {seconds:.0f} s"}
    return (
        _cases(report)
        if report.exists()
        else {path.name: f"ended without a report: see {report.with_suffix('.log')}"}
    )


def _cases(report: Path) -> dict[str, str]:
    found = {}
    for case in xml.parse(report).getroot().iter("testcase"):
        bad = next((c for c in case if c.tag in ("failure", "error", "skipped")), None)
        how = (
            "passed" if bad is None else bad.tag if bad.tag == "skipped" else (bad.get("message") or "failed")
        )
        found[f"{str(case.get('classname')).rpartition('.')[2]}.{case.get('name')}"] = how.strip().split(
            "\n"
        )[0][:200]
    return found


def measured(package: dict[str, Any], seconds: float) -> dict[str, Any]:
    """A package on both libraries: figures, and what fails here and not there."""
    place = HOME / package["name"]
    python = environment(package)
    site = next((place / "env" / "lib").glob("python*")) / "site-packages"
    both = [library for library in LIBRARIES if library == "gradtape" or (PARITY / "bin" / "python").exists()]
    passed = dict.fromkeys(LIBRARIES, 0)
    took = dict.fromkeys(LIBRARIES, 0.0)
    agreed, failures = 0, {}
    for path in files(package, site):
        cases: dict[str, dict[str, str]] = {}
        for library in both:
            begun = time.perf_counter()
            cases[library] = run(library, python, site, path, place, seconds)
            took[library] += time.perf_counter() - begun
            passed[library] += sum(how == "passed" for how in cases[library].values())
        there = cases.get("tensorflow", cases["gradtape"])
        counted = [case for case, how in there.items() if how == "passed"]
        agreed += sum(cases["gradtape"].get(case) == "passed" for case in counted)
        failures |= {
            f"{path.stem}: {case}": how
            for case, how in cases["gradtape"].items()
            if how not in ("passed", "skipped") and (case in counted or case not in there)
        }
        print(f"  {path.name:48} here {agreed:5} of there {passed['tensorflow']:5}", flush=True)
    return {
        "here": agreed, "there": passed["tensorflow"] or None, "passed_here": passed["gradtape"],
        "seconds": {library: round(took[library], 1) for library in both}, "failures": failures,
        "date": datetime.date.today().isoformat(),
    }  # fmt: skip


# ---- the page -----------------------------------------------------------------------------------

_HEAD = """# Packages

Written by `make ecosystem`: packages of PyPI under the alias (`import tensorflow` means gradtape, see
[from TensorFlow](from_tensorflow.md)), with their own tests as referees where they ship them, and a program of ours,
written as their users write, where they do not. Each is installed with its real dependencies, TensorFlow excepted.

Rows "by hand" were counted without the tool, in environments made for it; the others are of its last run.

"Passes there" counts the cases that pass on TensorFlow 2.21, "here" those of them that pass on gradtape; "time" is the
time of all these processes on gradtape, divided by that on TensorFlow.

| package | passes there | here | | time | tests |
|---|---|---|---|---|---|
"""


def page() -> str:
    """docs/ecosystem.md, of the files of packages and the results."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    rows, notes = [], []
    for package in packages([]):
        name = package["name"]
        here, there, seconds, date = _figures(package, results.get(name))
        share = f"{100 * here / there:.1f} %" if there else ""
        ratio = f"{seconds['gradtape'] / seconds['tensorflow']:.2f}" if seconds.get("tensorflow") else ""
        kind = "its own, and a driver" if package.get("tests") else "a driver"
        tests = package.get("status", f"{kind}, {date}" if here else "not run yet")
        numbers = [f"{n:,}" if n else "" for n in (there, here)]
        rows.append(f"| {' | '.join([package['requirement'], *numbers, share, ratio, tests])} |")
        words = [f"- {line}" for line in package.get("why_not", ())]
        words += [f"- Left out: `{test}`: {why}" for test, why in package.get("excluded", {}).items()]
        if words:
            notes += [f"\n### {name}\n", *words]
    return _HEAD + "\n".join(rows) + "\n\n## What does not work, and why\n" + "\n".join(notes) + "\n"


def _figures(package: dict[str, Any], found: dict[str, Any] | None) -> tuple[int, int, dict[str, float], str]:
    """Cases that pass here and there, seconds, and the date: of a run of this tool, or as noted in the package's file."""
    if found:
        return found["here"], found["there"] or 0, found["seconds"], found["date"]
    here, there = (package.get(k) or [0] for k in ("here", "there"))
    return here[0], there[0], {}, f"by hand {package.get('date', '')}".strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="packages; all of them if none is named")
    parser.add_argument(
        "--page", action="store_true", help="write docs/ecosystem.md of the figures that are there"
    )
    parser.add_argument(
        "--seconds", type=float, default=1800, help="the limit for one file of tests (%(default)s)"
    )
    asked = parser.parse_args()
    failed = 0
    for package in [] if asked.page else packages(asked.names):
        print(package["requirement"], flush=True)
        found = measured(package, asked.seconds)
        for case, how in found["failures"].items():
            print(f"    {case}\n        {how}", flush=True)
        failed += len(found["failures"])
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps(results | {package["name"]: found}, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(page())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
