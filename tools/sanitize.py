"""Builds the core with sanitizers and runs the tests against it: `make sanitize`.

    python tools/sanitize.py                      # address, then thread
    python tools/sanitize.py thread               # one of them
    python tools/sanitize.py address tests/ops    # these tests instead of the usual ones

address: AddressSanitizer and UndefinedBehaviorSanitizer. The caching allocator tells the sanitizer which bytes of a
block belong to a tensor (core/blocks.h), so that a read past a tensor or into a cached block is found although the
block is not returned to the system.

thread: ThreadSanitizer, with the tests that use several threads, except one that measures time and two whose
processes use the usual core.

Leaks: CPython keeps memory until its end, so LeakSanitizer is off in these runs. It watches
`tests/native/runtime_check.cpp`, which needs no Python; tests/semantics/test_memory.py counts tensors.

To bound the time, the kernels are compiled once, for the newest instruction set of this processor: the copies for
the others come from the same source. The development build is not touched.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "tools" / "sanitize"
BIN = Path(sys.executable).parent

# Tests that do not exercise the core under a sanitizer: they start processes, which use the usual core,
# check texts, or measure.
ASIDE = """
against_tensorflow keras debug/test_draw.py debug/test_doctor.py test_examples.py test_package.py test_help.py
test_infra.py test_types.py test_docs.py test_benchmarks.py test_coverage.py reliability/test_processes.py
reliability/test_long_runs.py native
""".split()


# By default TSan ends a child that starts threads after a fork, which is what our pool has to do.
_TSAN = "halt_on_error=1:second_deadlock_stack=1:die_after_fork=0"


class Sanitizer(NamedTuple):
    flags: str  # of the compiler, after -fsanitize=
    folder: str
    runtime: str
    environment: dict[str, str]
    tests: list[str]


SANITIZERS = {
    "address": Sanitizer(
        "address,undefined",
        "asan",
        "libasan.so",
        {
            # PYTHONMALLOC: Python's objects are separate blocks, so that use after free is detected.
            # may_return_null: a huge tensor must fail with our error, not the sanitizer's.
            "PYTHONMALLOC": "malloc",
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        },
        ["tests", *(f"--ignore=tests/{name}" for name in ASIDE)],
    ),
    "thread": Sanitizer(
        "thread",
        "tsan",
        "libtsan.so",
        {"TSAN_OPTIONS": _TSAN},
        """
        tests/reliability/test_threads.py tests/semantics/test_tape_context.py tests/data tests/graph/test_together.py
        tests/test_compile.py tests/test_scopes.py tests/test_config.py
        --deselect=tests/reliability/test_threads.py::test_results_do_not_depend_on_the_number_of_threads
        --deselect=tests/reliability/test_threads.py::test_first_compilation_raced
        --deselect=tests/data/test_prefetch.py::test_work_on_both_sides_overlaps
        """.split(),
    ),
}


def compiler_file(name: str) -> str:
    """The path of a library of the C++ compiler."""
    result = subprocess.run(["c++", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return result.stdout.strip()


def build(s: Sanitizer) -> Path:
    """Builds the core with a sanitizer."""
    folder = ROOT / "build" / s.folder
    newest = subprocess.run(
        [sys.executable, "-c", "import gradtape._core as core; print(core.isa_name())"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    ).stdout.strip()  # fmt: skip
    level = newest[-1] if newest.startswith("x86-64-v") else "1"
    settings = {
        "CMAKE_MAKE_PROGRAM": BIN / "ninja",
        "Python_EXECUTABLE": sys.executable,
        "CMAKE_BUILD_TYPE": "Debug",
        "GRADTAPE_SANITIZE": s.flags,
        "GRADTAPE_ISA_LEVELS": level,
        "GRADTAPE_CHECKS": "ON",
    }
    defined = [f"-D{name}={value}" for name, value in settings.items()]
    subprocess.run(
        [BIN / "cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *defined],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    subprocess.run([BIN / "cmake", "--build", folder, "--target", "_core", "runtime_check"], check=True)
    return folder / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"


def check_runtime(s: Sanitizer) -> None:
    """Runs the tests of the allocator and the thread pool, without Python and with leak detection."""
    program = ROOT / "build" / s.folder / "tests" / "native" / "runtime_check"
    options = {
        "ASAN_OPTIONS": "allocator_may_return_null=1",
        "UBSAN_OPTIONS": "halt_on_error=1",
        "TSAN_OPTIONS": _TSAN,
    }
    subprocess.run([program], check=True, env={**os.environ, **options})


def run(s: Sanitizer, tests: list[str]) -> None:
    """Runs the tests in a Python that loads the sanitizer's runtime at its start."""
    core = build(s)
    check_runtime(s)
    for report in (ROOT / "build" / s.folder).glob("report.*"):
        report.unlink()
    # The runtime looks for the C++ library when it starts, before the core has loaded it.
    preload = " ".join(compiler_file(name) for name in (s.runtime, "libstdc++.so"))
    path = f"{ROOT}{os.pathsep}{HERE}"
    # pytest would swallow a report that ends the process.
    reports = f":log_path={ROOT / 'build' / s.folder / 'report'}"
    environment = {
        **os.environ,
        **{
            name: value + reports if name.endswith("SAN_OPTIONS") else value
            for name, value in s.environment.items()
        },
        "LD_PRELOAD": preload,
        "GRADTAPE_CORE": str(core),
        "PYTHONPATH": path,
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "sanitized_core"]
    subprocess.run([*command, *(tests or s.tests)], check=True, cwd=ROOT, env=environment)


def main(arguments: list[str]) -> None:
    chosen = [a for a in arguments if a in SANITIZERS] or list(SANITIZERS)
    tests = [a for a in arguments if a not in SANITIZERS]
    for name in chosen:
        print(f"-- {name} sanitizer")
        run(SANITIZERS[name], tests)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except subprocess.CalledProcessError as e:
        for report in sorted(ROOT.glob("build/[at]san/report.*")):
            print(f"-- {report}", report.read_text(), sep="\n")
        sys.exit(e.returncode)
