"""What gradtape costs before it computes anything: the time to import it, its size on disk."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import peers

# Prints the seconds that `import <library>` adds to `import numpy`.
_TIMER = "import numpy, time; t = time.perf_counter(); import {0}; print(time.perf_counter() - t)"


def _python(library: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [peers.python_of(library), *arguments],
        env=peers.environment(library), cwd=tempfile.gettempdir(), capture_output=True, text=True, check=True,
    )  # fmt: skip


def import_time(library: str) -> float:
    """Milliseconds that a fresh process needs for `import library` after `import numpy`."""
    return float(_python(library, "-c", _TIMER.format(library)).stdout.split()[-1]) * 1e3


def import_detail() -> list[tuple[str, float]]:
    """Our modules that take longest to import, with their own milliseconds (-X importtime)."""
    lines = _python("gradtape", "-X", "importtime", "-c", "import numpy, gradtape").stderr.splitlines()
    rows = []
    for line in lines:
        own, _, name = line.removeprefix("import time:").split("|")
        if name.strip().startswith("gradtape") and own.strip().isdigit():
            rows.append((name.strip(), round(int(own) / 1e3, 2)))
    return sorted(rows, key=lambda row: -row[1])[:8]


def package_size(build: bool) -> dict[str, float]:
    """Megabytes of the package: of a wheel built for this purpose, or of the files in use."""
    if build:
        with tempfile.TemporaryDirectory() as folder:
            command = [
                sys.executable,
                "-m",
                "pip",
                "wheel",
                "-q",
                "--no-deps",
                "--no-build-isolation",
                "-w",
                folder,
                ".",
            ]
            subprocess.run(command, cwd=peers.ROOT, check=True)
            wheel = next(Path(folder).glob("*.whl"))
            with zipfile.ZipFile(wheel) as z:
                sizes = {i.filename: i.file_size for i in z.infolist()}
            packed = wheel.stat().st_size
    else:
        code = "import gradtape, gradtape._core as c; print(gradtape.__path__[0]); print(c.__file__)"
        folder, core = _python("gradtape", "-c", code).stdout.split()
        files = {f.resolve() for f in Path(folder).rglob("*.py")} | {Path(core).resolve()}
        sizes, packed = {str(f): f.stat().st_size for f in files}, 0
    native = sum(size for name, size in sizes.items() if name.endswith((".so", ".pyd", ".dylib")))
    mb = 1 / 1e6
    return {
        "total": round(sum(sizes.values()) * mb, 2),
        "native": round(native * mb, 2),
        "wheel": round(packed * mb, 2),
    }


def footprint(options: Any) -> dict[str, Any]:
    """Time to import, size, and whether importing prints anything."""
    times: dict[str, list[float]] = {"gradtape": [], "torch": [], "tensorflow": [], "jax": []}
    for library in list(times):
        try:
            import_time(library)  # brings the files into memory
        except (peers.Missing, subprocess.CalledProcessError) as e:
            print(f"left out: {library}: {e}", file=sys.stderr)
            del times[library]
    for turn in range(options.repeats):
        for library, taken in times.items():
            if library == "gradtape" or turn < 3:  # the others take seconds
                taken.append(import_time(library))
    said = _python("gradtape", "-c", "import gradtape")
    result: dict[str, Any] = {
        "import_ms": {
            library: {
                "min": round(min(taken), 2),
                "median": round(statistics.median(taken), 2),
                "spread": round((max(taken) - min(taken)) / statistics.median(taken), 3),
                "samples": len(taken),
            }
            for library, taken in times.items()
        },
        "import_detail_ms": import_detail(),
        "import_prints": said.stdout + said.stderr,
        "package_mb": package_size(options.wheel),
    }
    return result
