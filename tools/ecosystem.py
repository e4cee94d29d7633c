"""Other people's packages on gradtape: `make ecosystem`, or `python tools/ecosystem.py dm-sonnet gpflow`.

Each file of `tests/ecosystem/packages` describes a package of PyPI: what to install, which of its tests to run,
what is left out and why. A package gets its own environment in `~/.cache/gradtape-ecosystem` (`GRADTAPE_ECOSYSTEM`
names another folder), with its real dependencies except TensorFlow. Its own tests, where it ships them, and our
driver (`tests/ecosystem/drivers/test_<package>.py`, written as its users write) run twice: under the alias (`python
-m gradtape run`), and, if the environment of `make parity` exists, on TensorFlow. A case counts if it passes on
TensorFlow.

The result of each test file is cached beside the environment, and reused until something changes that it depends
on: the file, the installed packages, TensorFlow's version there, gradtape's code here. So TensorFlow's side, which
takes most of the time, runs once, and an interrupted run continues where it stopped; `--again` ignores the cache.
The figures go to `tests/ecosystem/results.json`; the page `docs/ecosystem.md` is generated from them (`--page`:
only the page).
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import fcntl
import functools
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HOME = Path(os.environ.get("GRADTAPE_ECOSYSTEM", Path.home() / ".cache" / "gradtape-ecosystem"))
PARITY = Path(os.environ.get("GRADTAPE_PARITY", Path.home() / ".cache" / "gradtape-parity"))
PLACE = ROOT / "tests" / "ecosystem"
RESULTS = PLACE / "results.json"
PAGE = ROOT / "docs" / "ecosystem.md"
TOOLS = ("pytest", "pytest-timeout", "numpy", "scipy-openblas32")
# Dependencies of TensorFlow that packages use without declaring them.
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
    by_name = {}
    for path in sorted((PLACE / "packages").glob("*.json")):
        try:
            package = json.loads(path.read_text())
            by_name[_plain(package["name"])] = package
        except (ValueError, KeyError, TypeError) as error:
            sys.exit(f"ecosystem: {path} is not the description of a package: {error!r}")
    for name in names:
        if _plain(name) not in by_name:
            sys.exit(f"ecosystem: there is no package {name!r}; there are {', '.join(by_name)}")
    chosen = {_plain(name) for name in names or by_name}
    return [package for name, package in by_name.items() if name in chosen]


def _wanted(package: dict[str, Any]) -> str:
    """The requirements of a package's environment."""
    brought = BROUGHT if "tensorflow" in package.get("without", ()) else ()
    return json.dumps([brought, *(package.get(k) for k in ("requirement", "without", "bare", "extra"))])


def environment(package: dict[str, Any]) -> Path:
    """The interpreter of a package's environment, which is created if it does not exist."""
    place = HOME / package["name"]
    python = place / "env" / "bin" / "python"
    requirements = _wanted(package)
    done = place / "done"
    if done.exists() and done.read_text() == requirements:
        return python
    print(f"{package['name']}: setting up {place} (once)", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", place / "env"], check=True)

    def pip(*arguments: str) -> None:
        subprocess.run([python, "-m", "pip", "install", "-q", *arguments], check=True)

    brought = BROUGHT if "tensorflow" in package.get("without", ()) else ()
    needed = _install_without(python, pip, package)
    pip(*TOOLS, *brought, *needed, *package.get("extra", ()))
    done.write_text(requirements)
    return python


def _install_without(python: Path, pip: Any, package: dict[str, Any]) -> list[str]:
    """Installs the package and its `bare` ones without dependencies; returns the requirements of all of them."""
    bare = package.get("bare", ())
    left_out = {_plain(name) for name in (*package.get("without", ()), *bare)}
    needed = []
    for requirement in (package["requirement"], *bare):
        pip("--no-deps", requirement)
        listed = subprocess.run(
            [python, "-c", _REQUIRES, _plain(requirement)], capture_output=True, text=True, check=True
        )
        needed += [inner for inner in listed.stdout.splitlines() if _plain(inner) not in left_out]
    return needed


def _plain(requirement: str) -> str:
    """The name in a requirement, as the registry writes it."""
    cut = min((i for i, c in enumerate(requirement) if c in " <>=!~;[("), default=len(requirement))
    return requirement[:cut].lower().replace("_", "-")


def _drivers(package: dict[str, Any]) -> list[Path]:
    """Our driver for a package, if there is one."""
    path = PLACE / "drivers" / f"test_{package['name'].replace('-', '_')}.py"
    return [path] if path.exists() else []


def files(package: dict[str, Any], site: Path) -> list[Path]:
    """The tests to run: our driver and those of the package."""
    own = [path for pattern in package.get("tests", ()) for path in sorted(site.glob(pattern))]
    left_out = {name for name in package.get("excluded", {}) if name.endswith(".py")}
    return _drivers(package) + [p for p in own if p.relative_to(site).as_posix() not in left_out]


@functools.cache
def _version(library: str) -> str:
    """The version of a library, for the cache of results: a hash of this folder's code, or TensorFlow's version."""
    if library == "tensorflow":
        return " ".join(p.name for p in (PARITY / "lib").glob("python*/site-packages/tensorflow*.dist-info"))
    code = hashlib.sha256()
    for folder in ("gradtape", "gradtape_imports", "keras_gradtape"):
        for path in sorted(p for end in ("py", "so") for p in (ROOT / folder).rglob(f"*.{end}")):
            code.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return code.hexdigest()


def ran(library: str, package: dict[str, Any], path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Runs one file of tests on one library: the outcome of each case, and seconds; cached if nothing changed."""
    place = HOME / package["name"]
    ours = path.parent == PLACE / "drivers"
    sample = {} if ours else package.get("sample", {})
    environ = package.get("environ", {})
    parts = [
        _version(library),
        _wanted(package),
        sample | environ,
        hashlib.sha256(path.read_bytes()).hexdigest(),
    ]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    name = f"{library}-{path.relative_to(PLACE if ours else place / 'env').as_posix().replace('/', '.')}"
    file = place / f"{name}.json"
    if file.exists() and not options.again:
        result: dict[str, Any] = json.loads(file.read_text())
        if result["key"] == key:
            return result
    cases = place / f"{name}.cases"
    cases.unlink(missing_ok=True)
    start = [place / "env" / "bin" / "python", "-m", "gradtape", "run"]
    command = [
        *(start if library == "gradtape" else [PARITY / "bin" / "python"]), "-m", "pytest", "-q", "-p", "cases", "-p",
        "no:cacheprovider", "-o", "addopts=", "-o", "filterwarnings=",
        f"--timeout={options.timeout:g}", f"--rootdir={place}", path,
        *(("--noconftest",) if ours else ()),  # ours is for gradtape's own tests
    ]  # fmt: skip
    search = ROOT if library == "gradtape" else _site(package)
    settings = {
        "PYTHONPATH": os.pathsep.join((str(search), str(PLACE))),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "",
        "MPLBACKEND": "agg",
        "ECOSYSTEM_CASES": str(cases),
        "ECOSYSTEM_SAMPLE": f"{sample.get('every', 1)} {sample.get('seed', 0)}",
    }
    dropped = ("GRADTAPE_", "KERAS_", "PYTHONDONTWRITEBYTECODE")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with cases.with_suffix(".log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=place, env=clean | settings | environ, stdout=log, stderr=log, start_new_session=True
        )
        ended = _watched(process, name, cases, options.seconds)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    seconds = time.perf_counter() - begun
    result = {
        "key": key,
        "cases": _cases(cases, ended),
        "seconds": round(seconds, 1),
        "processor": round(used, 1),
    }
    file.write_text(json.dumps(result, indent=0) + "\n")
    return result


def _watched(process: subprocess.Popen[bytes], name: str, cases: Path, seconds: float) -> str:
    """Waits for a process, and reports its progress every half a minute; returns how it ended, if it was killed."""
    begun = time.perf_counter()
    try:
        while (passed := time.perf_counter() - begun) < seconds:
            try:
                code = process.wait(min(30, seconds - passed))
                return f"ended by signal {-code}: see {name}.log" if code < 0 else ""
            except subprocess.TimeoutExpired:
                at = cases.read_text().splitlines() if cases.exists() else []
                last = json.loads(at[-1])[0].rpartition("/")[2] if at else "its imports"
                print(f"    {name}: {len(at) // 2} cases in {passed + 30:.0f} s, at {last}", flush=True)
        return f"not done after {seconds:.0f} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _cases(lines: Path, ended: str) -> dict[str, str]:
    """The outcome of each case: its first failure or its last outcome; for the one that ended a process, how it ended."""
    cases: dict[str, str] = {}
    for line in lines.read_text().splitlines() if lines.exists() else ():
        nodeid, how = json.loads(line)
        case = nodeid.partition("::")[2]
        if cases.get(case, "") in ("", "passed", "skipped"):
            cases[case] = how or ""
    if not cases:
        cases["collection"] = ended or "no case was found: see its log"
    return {case: how or ended or "its process ended within it" for case, how in cases.items()}


def _site(package: dict[str, Any]) -> Path:
    """Where the package is installed."""
    return next((HOME / package["name"] / "env" / "lib").glob("python*")) / "site-packages"


@contextlib.contextmanager
def alone(package: dict[str, Any]) -> Iterator[None]:
    """Exits if another process is working on the package: both would write the same files."""
    place = HOME / package["name"]
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"ecosystem: another process is at work on {package['name']} in {place}")
        yield


def measured(package: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Runs a package on both libraries: figures, and the cases that fail on gradtape only."""
    environment(package)
    both = [library for library in LIBRARIES if library == "gradtape" or (PARITY / "bin" / "python").exists()]
    passed = dict.fromkeys(LIBRARIES, 0)
    seconds, processor = dict.fromkeys(both, 0.0), dict.fromkeys(both, 0.0)
    agreed, failures = 0, {}
    for path in files(package, _site(package)):
        cases: dict[str, dict[str, str]] = {}
        for library in both:
            result = ran(library, package, path, options)
            cases[library] = result["cases"]
            seconds[library] += result["seconds"]
            processor[library] += result["processor"]
            passed[library] += sum(how == "passed" for how in cases[library].values())
        there = cases.get("tensorflow", cases["gradtape"])
        counted = [case for case, how in there.items() if how == "passed"]
        agreed += sum(cases["gradtape"].get(case) == "passed" for case in counted)
        failures |= {
            f"{path.stem}: {case}": cases["gradtape"].get(case, "is not found here")
            for case in dict.fromkeys((*counted, *(c for c in cases["gradtape"] if c not in there)))
            if cases["gradtape"].get(case) not in ("passed", "skipped")
        }
        print(f"  {path.name:48} here {agreed:5} of there {passed['tensorflow']:5}", flush=True)
    return {
        "here": agreed, "there": passed["tensorflow"] or None, "passed_here": passed["gradtape"],
        "seconds": {library: round(seconds[library], 1) for library in both},
        "processor": {library: round(processor[library], 1) for library in both},
        "failures": failures, "date": datetime.date.today().isoformat(),
    }  # fmt: skip


# ---- the page -----------------------------------------------------------------------------------

_HEAD = """# Packages

Packages from PyPI that import TensorFlow, run under the alias (`import tensorflow` means gradtape, see
[from TensorFlow](from_tensorflow.md)): their own tests where they ship them, otherwise a program written in the way that
their users write ("a driver"). Each is installed with its real dependencies except TensorFlow. `make ecosystem` writes
this page.

"Passes there" counts the cases that pass on TensorFlow 2.21, "here" how many of these pass on gradtape. "Time" is the
time of all these processes on gradtape, imports included, divided by that on TensorFlow. TensorFlow's side runs once and
is kept, so the machine may have been busier for one than for the other; "processor" compares processor time, which
depends on that less.

| package | passes there | here | | time | processor | tests |
|---|---|---|---|---|---|---|
"""


def page() -> str:
    """The text of docs/ecosystem.md, from the descriptions of packages and the results."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    rows, notes = [], []
    for package in packages([]):
        name = package["name"]
        result = results.get(name, {"here": 0, "there": 0, "seconds": {}, "processor": {}})
        here, there = result["here"], result["there"]
        kind = "its own, and a driver" if package.get("tests") else "a driver"
        cells = [
            package["requirement"],
            *(f"{n:,}" if n else "" for n in (there, here)),
            f"{100 * here / there:.1f} %" if there else "",
            *(_ratio(result[what]) for what in ("seconds", "processor")),
            package.get("status", f"{kind}, {result['date']}" if here else "not run yet"),
        ]
        rows.append(f"| {' | '.join(cells)} |")
        words = [f"- {line}" for line in package.get("why_not", ())]
        if sample := package.get("sample"):
            words.append(
                f"- Of its own cases every {sample['every']}th is run, by a hash of its name. {sample['why']}"
            )
        words += [f"- Left out: `{test}`: {why}" for test, why in package.get("excluded", {}).items()]
        if words:
            notes += [f"\n### {name}\n", *words]
    return _HEAD + "\n".join(rows) + "\n\n## What does not work, and why\n" + "\n".join(notes) + "\n"


def _ratio(seconds: dict[str, float]) -> str:
    return f"{seconds['gradtape'] / seconds['tensorflow']:.2f}" if seconds.get("tensorflow") else ""


def _seconds(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("a number of seconds above 0")
    return value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="packages; all of them if none is named")
    parser.add_argument(
        "--page", action="store_true", help="only write docs/ecosystem.md, from the stored figures"
    )
    parser.add_argument("--again", action="store_true", help="ignore the cached results, of both libraries")
    parser.add_argument("--seconds", type=_seconds, default=1800, help="the limit of a file (%(default)s)")
    parser.add_argument("--timeout", type=_seconds, default=300, help="the limit of a case (%(default)s)")
    options = parser.parse_args()
    failed = 0
    for package in packages(options.names):
        if options.page or not (_drivers(package) or package.get("tests")):
            continue
        print(package["requirement"], flush=True)
        try:
            with alone(package):
                result = measured(package, options)
        except subprocess.CalledProcessError as error:
            print(f"  its environment cannot be made: {error}", flush=True)
            failed += 1
            continue
        for case, how in result["failures"].items():
            print(f"    {case}\n        {how}", flush=True)
        failed += len(result["failures"])
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps(results | {package["name"]: result}, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(page())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
