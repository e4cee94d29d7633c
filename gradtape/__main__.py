"""The command line, `python -m gradtape`: info, doctor, help, run, launch, completion; `--help` has examples of each."""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import json
import os
import platform
import sys
from typing import Any

import gradtape as tf
from gradtape import _core
from gradtape._src.base.blas import library_path
from gradtape._src.base.environment import SETTINGS
from gradtape._src.debug.memory import size
from gradtape._src.help.completion import SHELLS, script
from gradtape_imports.run import run

_COMPANIONS = ("numpy", "keras", "matplotlib", "pillow")


def blas() -> tuple[str, str]:
    """OpenBLAS's description of its build, and the path of the library."""
    path = library_path()
    try:
        config = ctypes.CDLL(path).scipy_openblas_get_config
    except (OSError, AttributeError):
        return ("unknown build" if path else "not found: pip install scipy-openblas32"), path
    config.restype = ctypes.c_char_p
    return f"{config().decode().strip()}, one thread of its own", path


def processor() -> str:
    """The processor's name, as Linux reports it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            name = next(
                (line.partition(":")[2].strip() for line in file if line.startswith("model name")), ""
            )
    except OSError:
        name = ""
    return name or platform.processor() or platform.machine()


def facts() -> dict[str, Any]:
    """What a bug report or a benchmark figure should include, as a dictionary."""
    versions: dict[str, str | None] = {}
    for name in _COMPANIONS:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "gradtape": tf.version.GRADTAPE,
        "tensorflow": tf.version.VERSION,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": versions,
        "processor": processor(),
        "processors": os.cpu_count(),
        "kernels": _core.isa_name(),
        "threads": _core.num_threads(),
        "blas": blas()[0],
        "blas_library": blas()[1],
        "compiling": _core.is_compiling(),
        "memory": tf.config.memory_info(),
        "settings": {k: v for k, v in sorted(os.environ.items()) if k.startswith("GRADTAPE_")},
    }


def _doubt(setting: str) -> str:
    """The warning about an unknown environment variable."""
    return "" if setting in {s.name for s in SETTINGS} | {"GRADTAPE_COLLECTIVE_TIMEOUT"} else " (unknown)"


def info() -> str:
    """The report as text."""
    report = facts()
    counters = report["memory"]
    live, peak = size(counters["live_bytes"]), size(counters["peak"])
    cached = size(counters["cached_bytes"])
    rows = {
        "gradtape": f"{report['gradtape']}, as TensorFlow {report['tensorflow']}",
        "python": f"{report['python']} on {report['platform']}",
        "packages": ", ".join(f"{n} {v}" if v else f"no {n}" for n, v in report["packages"].items()),
        "processor": f"{report['processor']}, {report['processors']} processors",
        "kernels": f"{report['kernels']} (GRADTAPE_ISA asks for less)",
        "threads": f"{report['threads']} (GRADTAPE_NUM_THREADS)",
        "blas": f"{report['blas']}\n{'':12}{report['blas_library']}",
        "compiling": "on" if report["compiling"] else "off (GRADTAPE_COMPILE)",
        "memory": f"{live} live in {counters['live_tensors']} tensors, {cached} kept for reuse, peak {peak}",
        "settings": " ".join(f"{k}={v}{_doubt(k)}" for k, v in report["settings"].items()) or "none",
    }
    return "\n".join(f"{name:<12}{text}" for name, text in rows.items())


_EXAMPLES = """\
examples:
  python -m gradtape info                        what is installed, what the machine offers: for bug reports
  python -m gradtape doctor my_project/          what to know before a TensorFlow project runs on gradtape
  python -m gradtape run train.py --epochs 3     a program that imports tensorflow, unchanged
  python -m gradtape help none-gradients         why is my gradient None?
  source <(python -m gradtape completion bash)   the Tab key knows all this

`python -m gradtape COMMAND --help` says more about each."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = argparse.ArgumentParser(
        prog="python -m gradtape",
        description="TensorFlow's GradientTape as a library.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument(
        "--version", action="version", help="gradtape's version, and the TensorFlow that it follows",
        version=f"gradtape {tf.version.GRADTAPE} (as TensorFlow {tf.version.VERSION})",
    )  # fmt: skip
    commands = whole.add_subparsers(dest="command", metavar="COMMAND")

    def command(name: str, text: str, more: str, *examples: str) -> argparse.ArgumentParser:
        shown = "\n".join(f"  python -m gradtape {line}" for line in examples)
        return commands.add_parser(
            name, help=text, description=more, epilog=f"examples:\n{shown}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip

    about = command(
        "info", "version, processor, threads, BLAS, memory",
        "What a bug report, or a benchmark figure, should come with.",
        "info", "info --json | jq .threads",
    )  # fmt: skip
    about.add_argument("--json", action="store_true", help="for programs: the same as JSON")
    doctor = command(
        "doctor", "what to know before a TensorFlow project runs on gradtape",
        "Reads .py and .ipynb files, runs nothing. A line with `# gradtape: ok` is left alone.\n"
        "The exit status is 1 if there is more to say than notes.",
        "doctor train.py", "doctor my_project/ --quiet", "doctor my_project/ --json | jq '.findings | length'",
    )  # fmt: skip
    doctor.add_argument("path", help="a file or a folder")
    doctor.add_argument("--quiet", action="store_true", help="no notes")
    doctor.add_argument(
        "--json", action="store_true", help="for programs: the findings and the counts as JSON"
    )
    helping = command(
        "help", "pages about frequent questions; without a topic, their list",
        "Each message of gradtape that has a page names it. None of it needs a network.",
        "help", "help none-gradients", "help memory", "help l-bfgs        (words are looked for in the pages)",
    )  # fmt: skip
    helping.add_argument("topic", nargs="*", help="a topic, or words to look for")
    running = command(
        "run", "a program that imports tensorflow, on gradtape",
        "Runs the program as Python would, with gradtape under the name of TensorFlow: nothing in it\n"
        "has to be changed. Processes that it starts have gradtape, too.",
        "run train.py --epochs 3", "run -m package.train --epochs 3", "run -m pytest tests",
    )  # fmt: skip
    running.add_argument(
        "program", nargs=argparse.REMAINDER, help="a script and its arguments, or -m and a module"
    )
    launching = command(
        "launch", "several workers of one program, on this machine",
        "Starts the program once for each worker, with a TF_CONFIG for MultiWorkerMirroredStrategy.\n"
        "The exit status is that of the first worker that fails.",
        "launch --workers 2 train.py --epochs 3", "launch --workers 4 -m package.train",
    )  # fmt: skip
    launching.add_argument("--workers", type=int, default=2, help="how many processes (2)")
    launching.add_argument(
        "program", nargs=argparse.REMAINDER, help="a script and its arguments, or -m and a module"
    )
    completing = commands.add_parser(
        "completion", help="a script that completes these commands in a shell",
        description="Prints a script for a shell; nothing is installed.",
        epilog="examples:\n  source <(python -m gradtape completion bash)      in ~/.bashrc\n"
        "  source <(python -m gradtape completion zsh)       in ~/.zshrc\n"
        "  python -m gradtape completion fish | source       in ~/.config/fish/config.fish",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    completing.add_argument("shell", choices=SHELLS)
    return whole


def main(arguments: list[str] | None = None) -> int:
    """Runs a command. Returns 1 if the doctor has findings, 2 for a wrong name, or the status of a failed worker."""
    whole = parser()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] in (["run"], ["launch"]) and "-m" in words:  # `-m` belongs to the program
        words.insert(words.index("-m"), "--")
    given = whole.parse_args(words)
    program = [word for i, word in enumerate(getattr(given, "program", [])) if i or word != "--"]
    if given.command is None:
        whole.print_help(sys.stderr)
        return 2
    if given.command == "info":
        print(json.dumps(facts(), indent=2) if given.json else info())
        return 0
    if given.command == "help":
        return _help(" ".join(given.topic))
    if given.command == "run":
        return run(program)
    if given.command == "launch":
        return _launch(program, given.workers)
    if given.command == "completion":
        print(script(given.shell, whole), end="")
        return 0
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
    topics = pages.near(words)
    if len(topics) == 1:
        print(pages.page(topics[0]), end="")
        return 0
    if topics:
        print(f"There is no page {words!r}. Did you mean one of these?\n", file=sys.stderr)
        for topic in topics:
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
        as_dict = {"findings": [f._asdict() for f in shown], "summary": report.summary, "door": report.door}
        print(json.dumps(as_dict, indent=2))
    else:
        print(*shown, report.summary, *filter(None, [report.door]), sep="\n")
    return 1 if report.problems else 0


if __name__ == "__main__":
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:  # `info | head`: the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    sys.exit(status)
