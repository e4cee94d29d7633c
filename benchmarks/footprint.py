"""The cost of a library before it computes anything: the part `footprint`, import time and size on disk."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib
from typing import Any

import parts
import peers

_LIBRARIES = ("gradtape", "tensorflow", "torch", "jax", "autograd")

# Prints the seconds that `import <library>` takes, and of those `import numpy`, which all of them need.
_TIMER = """
import time
a = time.perf_counter(); import numpy
b = time.perf_counter(); import {0}
print(b - a, time.perf_counter() - b)
"""

# Prints the bytes of distributions and of all that they need, as installed.
_SIZER = r"""
import importlib.metadata as meta, json, os, re, sys
sizes, todo = {}, sys.argv[1:]
while todo:
    name = re.sub("[-_.]+", "-", todo.pop()).lower()
    try:
        dist = None if name in sizes else meta.distribution(name)
    except meta.PackageNotFoundError:
        continue
    if dist:
        paths = [dist.locate_file(f) for f in dist.files or () if f.suffix != ".pyc"]
        sizes[name] = sum(os.path.getsize(p) for p in paths if os.path.isfile(p))
        todo += [re.match("[A-Za-z0-9._-]+", r)[0] for r in dist.requires or () if "extra ==" not in r]
print(json.dumps(sizes))
"""

# Prints the bytes of our own files that are in use, installed or not: an editable install has them in two places.
_OWN = """
import importlib.util, os, pathlib, gradtape._core as core
files = {pathlib.Path(core.__file__).resolve()}
for package in "gradtape", "gradtape_imports", "keras_gradtape":
    for folder in importlib.util.find_spec(package).submodule_search_locations:
        files |= {p for p in pathlib.Path(folder).rglob("*") if p.is_file() and p.suffix not in (".pyc", ".so")}
print(sum(map(os.path.getsize, files)))
"""
_DISTRIBUTION = {"tensorflow": "tensorflow-cpu"}


def _python(library: str, *arguments: str) -> str:
    done = subprocess.run(
        [peers.python_of(library), *arguments],
        env=peers.environment(library), cwd=tempfile.gettempdir(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def import_times(library: str) -> tuple[float, float]:
    """Milliseconds that a fresh process needs for `import numpy`, and then for `import library`."""
    numpy, own = _python(library, "-c", _TIMER.format(library)).split()[-2:]
    return float(numpy) * 1e3, float(own) * 1e3


def sizes_mb(library: str) -> dict[str, float]:
    """Megabytes on disk of a library and of what it needs, by distribution."""
    roots = [_DISTRIBUTION.get(library, library)]
    if library == "gradtape":
        project = tomllib.loads((peers.ROOT / "pyproject.toml").read_text())["project"]
        roots = [re.split("[<>=~ ]", need)[0] for need in project["dependencies"]]
    sizes = json.loads(_python(library, "-c", _SIZER, *roots).splitlines()[-1])
    if library == "gradtape":
        sizes["gradtape"] = int(_python(library, "-c", _OWN).split()[-1])
    return {name: round(size / 1e6, 2) for name, size in sorted(sizes.items(), key=lambda s: -s[1])}


def measure(options: Any) -> dict[str, Any]:
    """Imports by turns in fresh processes, after one that brings the files into memory; then sizes."""
    parts.progress("footprint", "imports")
    taken: dict[str, list[tuple[float, float]]] = {}
    for library in _LIBRARIES:
        try:
            import_times(library)
            taken[library] = []
        except (peers.Missing, subprocess.CalledProcessError) as e:
            print(f"left out: {library}: {e}", file=sys.stderr)
    for _ in range(3 if options.quick else 10):
        for library, times in taken.items():
            times.append(import_times(library))

    def figures(times: list[float]) -> dict[str, float]:
        middle = statistics.median(times)
        return {"min": round(min(times), 1), "median": round(middle, 1), "samples": len(times)}

    return {
        "numpy_ms": figures([n for times in taken.values() for n, _ in times]),
        "import_ms": {library: figures([own for _, own in times]) for library, times in taken.items()},
        "size_mb": {library: sizes_mb(library) for library in taken},
    }
