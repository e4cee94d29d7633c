"""The command line: `python -m gradtape info`, `doctor PATH`, `help [TOPIC]`, `run SCRIPT` and `launch SCRIPT`."""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import json
import os
import platform
import sys

import gradtape as tf
from gradtape import _core
from gradtape._src.base.blas import library_path
from gradtape._src.debug.memory import size
from gradtape_imports.run import run

_COMPANIONS = ("numpy", "keras", "matplotlib", "pillow")


def blas() -> str:
    """What OpenBLAS says about itself, and where it is."""
    path = library_path()
    try:
        config = ctypes.CDLL(path).scipy_openblas_get_config
    except (OSError, AttributeError):
        return path or "not found: pip install scipy-openblas32"
    config.restype = ctypes.c_char_p
    return f"{config().decode().strip()}, one thread of its own\n{'':12}{path}"


def processor() -> str:
    """The processor's name, as Linux has it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            found = next(
                (line.partition(":")[2].strip() for line in file if line.startswith("model name")), ""
            )
    except OSError:
        found = ""
    return found or platform.processor() or platform.machine()


def info() -> str:
    """Everything that a report of a bug or a figure should come with."""
    versions = []
    for name in _COMPANIONS:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"no {name}")
    counters = tf.config.memory_info()
    live, peak = size(counters["live_bytes"]), size(counters["peak"])
    cached = size(counters["cached_bytes"])
    rows = {
        "gradtape": f"{tf.version.GRADTAPE}, as TensorFlow {tf.version.VERSION}",
        "python": f"{platform.python_version()} on {platform.platform()}",
        "packages": ", ".join(versions),
        "processor": f"{processor()}, {os.cpu_count()} processors",
        "kernels": f"{_core.isa_name()} (GRADTAPE_ISA asks for less)",
        "threads": f"{_core.num_threads()} (GRADTAPE_NUM_THREADS)",
        "blas": blas(),
        "compiling": "on" if _core.is_compiling() else "off (GRADTAPE_COMPILE)",
        "memory": f"{live} live in {counters['live_tensors']} tensors, {cached} kept for reuse, peak {peak}",
        "settings": " ".join(f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith("GRADTAPE_"))
        or "none",
    }
    return "\n".join(f"{name:<12}{text}" for name, text in rows.items())


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; 1 if the doctor has found something, 2 if what was named is not there, or a worker's status."""
    parser = argparse.ArgumentParser(
        prog="python -m gradtape", description="TensorFlow's GradientTape as a library."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="version, processor, threads, BLAS, memory")
    doctor = commands.add_parser(
        "doctor",
        help="what to know before a TensorFlow project runs on gradtape",
        description="Reads .py and .ipynb files, runs nothing. A line with `# gradtape: ok` is left alone. "
        "The exit status is 1 if there is more to say than notes.",
    )
    doctor.add_argument("path", help="a file or a folder")
    doctor.add_argument("--quiet", action="store_true", help="no notes")
    doctor.add_argument(
        "--json", action="store_true", help="for programs: the findings and the counts as JSON"
    )
    helping = commands.add_parser("help", help="pages about frequent questions; without a topic, their list")
    helping.add_argument("topic", nargs="*", help="a topic, or words to look for")
    running = commands.add_parser(
        "run",
        help="a program that imports tensorflow, on gradtape",
        description="Runs the program as Python would, with gradtape under the name of TensorFlow: nothing in it has to be "
        "changed. Processes that it starts have gradtape, too.",
    )
    running.add_argument(
        "program", nargs=argparse.REMAINDER, help="a script and its arguments, or -m and a module"
    )
    launching = commands.add_parser(
        "launch",
        help="several workers of one program, on this machine",
        description="Starts the program once for each worker, with a TF_CONFIG for MultiWorkerMirroredStrategy. "
        "The exit status is that of the first worker that fails.",
    )
    launching.add_argument("--workers", type=int, default=2, help="how many processes (2)")
    launching.add_argument(
        "program", nargs=argparse.REMAINDER, help="a script and its arguments, or -m and a module"
    )
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] in (["run"], ["launch"]) and "-m" in words:  # it belongs to the program
        words.insert(words.index("-m"), "--")
    given = parser.parse_args(words)
    program = [word for i, word in enumerate(getattr(given, "program", [])) if i or word != "--"]
    if given.command == "info":
        print(info())
        return 0
    if given.command == "help":
        return _help(" ".join(given.topic))
    if given.command == "run":
        return run(program)
    if given.command == "launch":
        return _launch(program, given.workers)
    return _doctor(given.path, given.quiet, given.json)


def _launch(program: list[str], workers: int) -> int:
    from gradtape.distribute.launch import launch

    if not program or workers < 1:
        print(
            "launch: expected a script, and at least one worker: launch --workers 2 train.py", file=sys.stderr
        )
        return 2
    return launch(program, workers)


def _help(words: str) -> int:
    from gradtape._src import help as pages

    if not words:
        print(f"{pages.contents()}\n\npython -m gradtape help TOPIC shows one of them.")
        return 0
    found = pages.near(words)
    if len(found) == 1:
        print(pages.page(found[0]), end="")
        return 0
    if found:
        print(f"There is no page {words!r}. Did you mean one of these?\n", file=sys.stderr)
        for topic in found:
            print(f"  {topic:<24}{pages.title(topic)}", file=sys.stderr)
    else:
        print(f"There is no page {words!r}.\n\n{pages.contents()}", file=sys.stderr)
    return 2


def _doctor(path: str, quiet: bool, as_json: bool) -> int:
    from gradtape._src.doctor import check

    try:
        report = check(path)
    except FileNotFoundError as e:
        print(e, file=sys.stderr)
        return 2
    shown = report.problems if quiet else report.findings
    if as_json:
        found = {"findings": [f._asdict() for f in shown], "summary": report.summary, "door": report.door}
        print(json.dumps(found, indent=2))
    else:
        print(*shown, report.summary, *filter(None, [report.door]), sep="\n")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
