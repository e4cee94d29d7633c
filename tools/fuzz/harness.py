"""What the fuzzers have in common: child processes that record a case before they run it, and the summary.

A *case* is a text that is a function of a seed and a number. The parent hands chunks of numbers to children until
the time is over. A child that dies, or hangs, has left the text of the case in its journal; the parent records that
and continues after it. A failure is printed once per kind, with its seed and number and, if the text is a program,
with the shortest program found that still fails.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parents[2]
_PATIENCE = 20.0, 240.0  # CPU seconds and wall seconds for one case, after which it counts as hanging
_LEAK = 32 << 20  # bytes of tensors that a process may keep, in caches and variables
_SPOILED = 86  # exit status of a child that reported its failure and cannot go on
_SHRINKING = 15.0  # seconds for the search for a shorter program


class Bad(Exception):
    """A failed case: the kind of its failure, and details."""

    def __init__(self, sort: str, detail: str = "", spoiled: bool = False) -> None:
        super().__init__(sort, detail)
        self.sort, self.detail, self.spoiled = sort, detail, spoiled  # spoiled: the process must end


class Cases(Protocol):
    """The cases of one kind; made in the child."""

    def text(self, number: int) -> str:
        """Case `number`, to read and to run."""

    def run(self, text: str, number: int) -> Counter[str]:
        """Runs a case. Returns counts for the summary, by noun; raises Bad."""


@dataclasses.dataclass(frozen=True)
class Kind:
    """How the cases of a fuzzer are run."""

    name: str
    cases: Callable[[int], Cases]  # of a seed
    chunk: int = 100  # cases of a process
    environments: tuple[dict[str, str], ...] = ({},)  # of processes, in turn
    memory: int = 3 << 30  # address space of a process
    programs: bool = False  # whether texts are Python programs, which can be shortened


@dataclasses.dataclass
class _Problem:
    number: int
    text: str
    sort: str
    detail: str
    first: int  # of the chunk: a failure may need the cases before it


class _Run:
    """One fuzzer, from its first case to its summary."""

    def __init__(self, kind: Kind, seed: int, seconds: float) -> None:
        self.kind, self.seed = kind, seed
        self.start = time.monotonic()
        self.deadline = self.start + seconds
        self.lock = threading.Lock()
        self.problems: dict[str, list[_Problem]] = {}
        self.counts: Counter[str] = Counter()
        self.cases = 0

    def note(self, problem: _Problem) -> None:
        with self.lock:
            same = self.problems.setdefault(problem.sort, [])
            same.append(problem)
        if len(same) == 1:
            self._show(problem)

    def _show(self, problem: _Problem) -> None:
        name, text, extra = self.kind.name, problem.text, ""
        if self.kind.programs:
            alone = self._outcome(text, problem.number)
            if alone is None or alone.sort != problem.sort:
                extra = f"   (not alone, but after {problem.first}..{problem.number - 1})"
            else:
                text = self._shrunk(problem)
        lines = [f"{name} {problem.number}: {problem.sort}: {problem.detail}", *text.splitlines()]
        print("\n    ".join(lines))
        again = f"--only {problem.number}"
        print(f"    again: python tools/fuzz {name} --seed {self.seed} {again}{extra}", flush=True)

    def chunk(self, first: int, last: int) -> None:
        """Runs cases [first, last), each once, in new processes after crashes."""
        begun = first
        while first < last and (first == begun or time.monotonic() < self.deadline):
            ended, output, noted = self._child([str(first), str(last)], first)
            self._read(output, begun)
            number, _, text = noted.partition("\n")
            at = int(number or first)
            with self.lock:
                self.cases += at + 1 - first
            if ended == 0:
                return
            if ended == _SPOILED:
                first = at + 1
                continue
            self.note(_Problem(at, text, *_how(ended, output), begun))
            first = at + 1

    def _read(self, output: str, begun: int) -> None:
        for line in output.splitlines():
            if not line.startswith('{"'):
                continue
            message = json.loads(line)
            if "problem" in message:
                self.note(_Problem(message["number"], message["text"], *message["problem"], begun))
                continue
            with self.lock:
                self.counts.update(message["counts"])
            if message["live_bytes"] > _LEAK:
                amount = f"{message['live_bytes'] >> 20} MiB"
                self.note(_Problem(begun, "", "a process keeps tensors", amount, begun))

    def _child(self, arguments: list[str], number: int) -> tuple[int | None, str, str]:
        """How a child ended (None: it hangs), its output, and the last case that it recorded."""
        command = [sys.executable, "-X", "faulthandler", str(ROOT / "tools/fuzz"), self.kind.name]
        command += ["--seed", str(self.seed), "--child", *arguments, str(self.deadline)]
        turn = number // self.kind.chunk % len(self.kind.environments)
        env = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
        env |= self.kind.environments[turn]
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as output:
            journal = Path(folder) / "journal"
            journal.touch()
            child = subprocess.Popen(
                [*command, folder], stdout=output, stderr=subprocess.STDOUT, env=env, cwd=ROOT
            )
            ended = _wait(child, journal)
            output.seek(0)
            return ended, output.read(), journal.read_text(errors="replace").strip()

    # ---- shorter programs -------------------------------------------------------------------

    def _outcome(self, text: str, number: int) -> _Problem | None:
        """The outcome of a text in its own process."""
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(text)
            file.flush()
            ended, output, _ = self._child([file.name, str(number)], number)
        problems = [json.loads(line) for line in output.splitlines() if line.startswith('{"problem"')]
        if problems:
            return _Problem(number, text, *problems[0]["problem"], number)
        return None if ended == 0 else _Problem(number, text, *_how(ended, output), number)

    def _shrunk(self, problem: _Problem) -> str:
        """A shorter program that fails in the same way. Failures without a crash are shortened in one process."""

        def sort(text: str) -> str | None:
            found = self._outcome(text, problem.number)
            return found and found.sort

        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(problem.text)
            file.flush()
            ended, output, _ = self._child([file.name, f"{problem.number}:{problem.sort}"], problem.number)
        found = [json.loads(line)["shrunk"] for line in output.splitlines() if line.startswith('{"shrunk"')]
        text = found[-1] if found else problem.text
        return text if ended == 0 else _shrink(text, problem.sort, sort)

    # ---- the end ----------------------------------------------------------------------------

    def summary(self) -> int:
        bad = sum(map(len, self.problems.values()))
        for sort, problems in self.problems.items():
            if len(problems) > 1:
                numbers = " ".join(str(p.number) for p in problems[:12])
                print(
                    f"{len(problems):5d} x {self.kind.name}: {sort}: {numbers}{' ...' * (len(problems) > 12)}"
                )
        counts = "".join(f", {n:,} {noun}" for noun, n in sorted(self.counts.items()))
        took = time.monotonic() - self.start
        print(
            f"{self.kind.name}: {self.cases:,} cases{counts}, seed {self.seed}, {took:.0f} s, bad: {bad}",
            flush=True,
        )
        return int(bad > 0)


def _how(ended: int | None, output: str) -> tuple[str, str]:
    tail = [line for line in output.splitlines() if not line.startswith('{"')][-25:]
    how = "hangs" if ended is None else f"signal {-ended}" if ended < 0 else f"exit status {ended}"
    return how, "".join(f"\n    | {line}" for line in tail)


def _wait(child: subprocess.Popen, journal: Path) -> int | None:
    seen, since = 0, (0.0, time.monotonic())
    while child.poll() is None:
        time.sleep(0.05)
        changed, spent = journal.stat().st_mtime_ns, (_processor(child.pid), time.monotonic())
        if changed != seen:
            seen, since = changed, spent
        if any(a - b > most for a, b, most in zip(spent, since, _PATIENCE, strict=True)):
            child.send_signal(signal.SIGABRT)  # faulthandler prints its stack
            child.wait()
            return None
    return child.returncode


def _processor(pid: int) -> float:
    """CPU seconds that a process has used."""
    try:
        user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:
        return 0.0
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _shrink(text: str, sort: str, sort_of: Callable[[str], str | None], report: Any = None) -> str:
    """Drops statements, one after the other, as long as the program fails in the same way."""
    end, shorter = time.monotonic() + _SHRINKING, True
    while shorter:
        shorter = False
        for candidate in _shorter(text):
            if time.monotonic() > end:
                return text
            if sort_of(candidate) == sort:
                text, shorter = candidate, True
                if report:
                    report(text)
                break
    return text


def _shorter(text: str) -> Iterator[str]:
    """The program without some of its statements: a half of them, a quarter, ... and each one, inside of blocks too."""
    count = len(ast.parse(text).body)
    size = count // 2
    while size > 1:
        for k in range(0, count, size):
            tree = ast.parse(text)
            del tree.body[k : k + size]
            yield ast.unparse(tree)
        size //= 2
    blocks = [
        (_position(node), field, k)
        for node in ast.walk(ast.parse(text))
        for field in ("body", "orelse")
        if isinstance(getattr(node, field, None), list)
        for k in range(len(getattr(node, field)))
    ]
    for position, field, k in blocks:
        tree = ast.parse(text)
        node = next(n for n in ast.walk(tree) if _position(n) == position and hasattr(n, field))
        block = getattr(node, field)
        del block[k]
        if not block and field == "body" and not isinstance(node, ast.Module):
            block.append(ast.Pass())
        yield ast.unparse(tree)


def _position(node: ast.AST) -> tuple:
    return type(node).__name__, getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


# ---- the child ------------------------------------------------------------------------------


def _child_main(kind: Kind, seed: int, what: list[str]) -> int:
    start, end, deadline, folder = what
    resource.setrlimit(resource.RLIMIT_AS, (kind.memory, kind.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    cases = kind.cases(seed)
    counts: Counter[str] = Counter()
    if start.endswith(".py"):
        number, _, sort = end.partition(":")
        if sort:
            return _shrink_here(cases, Path(start).read_text(), int(number), sort)
        given: Any = [(int(number), Path(start).read_text())]
    else:
        given = ((n, cases.text(n)) for n in range(int(start), int(end)))
    before = _live_bytes()
    for done, (number, text) in enumerate(given):
        if done and time.monotonic() > float(deadline):
            break
        (Path(folder) / "journal").write_text(f"{number}\n{text}")
        try:
            counts.update(cases.run(text, number))
        except Bad as e:
            print(json.dumps({"problem": [e.sort, e.detail], "number": number, "text": text}), flush=True)
            if e.spoiled:
                print(json.dumps({"counts": counts, "live_bytes": 0}), flush=True)
                return _SPOILED
    print(json.dumps({"counts": counts, "live_bytes": _live_bytes() - before}), flush=True)
    return 0


def _shrink_here(cases: Cases, text: str, number: int, sort: str) -> int:
    def sort_of(candidate: str) -> str | None:
        try:
            cases.run(candidate, number)
        except Bad as e:
            if e.spoiled:
                sys.exit(_SPOILED)  # other processes have to go on
            return e.sort
        except Exception:  # the shortened program is not valid any more
            return None
        return None

    sort_of(text)
    _shrink(text, sort, sort_of, lambda shorter: print(json.dumps({"shrunk": shorter}), flush=True))
    return 0


def _live_bytes() -> int:
    import gc

    import gradtape as tf

    gc.collect()
    return tf.config.memory_info()["live_bytes"]


def main(kind: Kind, argv: list[str]) -> int:
    """Runs the cases of a kind; returns 1 if one failed."""
    parser = argparse.ArgumentParser(prog=f"python tools/fuzz {kind.name}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--cases", type=int, default=10**9, help="at most so many")
    parser.add_argument("--only", type=int, help="one case, by its number")
    parser.add_argument("--first", type=int, default=0, help="begin there")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        return _child_main(kind, options.seed, options.child)
    run = _Run(kind, options.seed, options.seconds)
    first, last = options.first, options.first + options.cases
    if options.only is not None:
        first, last = options.only, options.only + 1

    def cuts() -> Iterator[tuple[int, int]]:
        at = first
        while at < last:
            end = min(last, (at // kind.chunk + 1) * kind.chunk)
            yield at, end
            at = end

    waiting, lock = cuts(), threading.Lock()

    def work(_: int) -> None:
        while True:
            with lock:
                given = next(waiting, None)
            if given is None or (given[0] > first and time.monotonic() > run.deadline):
                return
            run.chunk(*given)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(work, range(options.jobs)))
    return run.summary()
