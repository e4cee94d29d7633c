"""Mutates files of every format that gradtape reads, and loads them: `python -m tools.fuzz.files --files 20000`.

A load returns values or raises one of TensorFlow's file errors, within a second or two and some memory; a format
with checksums returns the values that were written, or an error. Nothing in a file is executed. Files are loaded by
child processes, which record a file before they load it: so a crash, or a load that hangs, can be attributed.
`--only N` loads one file again and shows the result.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

import gradtape as tf
from tools.fuzz.formats import FORMATS, Format

_CHUNK = 250  # files of one process
_SECONDS = 5  # of CPU time for one load
_MEMORY = 2 << 30  # bytes that a process may allocate beyond what it has
_ERRORS = (
    tf.errors.DataLossError,
    tf.errors.InvalidArgumentError,
    tf.errors.NotFoundError,
    tf.errors.FailedPreconditionError,
)
# Events of `sys.addaudithook` that no load may cause.
_CODE = frozenset(
    "os.system os.exec os.posix_spawn os.spawn subprocess.Popen pickle.find_class os.remove".split()
)
_NUMBERS = (
    0,
    1,
    2,
    7,
    127,
    128,
    255,
    256,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**40,
    2**63 - 1,
    2**64 - 1,
)


# ---- mutations ------------------------------------------------------------------------------------


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Bytes with one to three changes, as damage or an attacker would make them."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = _mutated_once(data, rng)
    return data


def _mutated_once(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    at = rng.randrange(len(out) + 1)
    near = min(len(out), at + rng.choice((1, 2, 4, 8, 16, 64, 300)))
    kind = rng.randrange(12)
    if kind <= 2 and out:  # one bit
        out[at % len(out)] ^= 1 << rng.randrange(8)
    elif kind == 3 and out:  # one byte
        out[at % len(out)] = rng.randrange(256)
    elif kind == 4:  # cut off
        del out[at:]
    elif kind == 5:  # a length field, or another number
        size = rng.choice((1, 2, 4, 8))
        number = rng.choice(_NUMBERS) & (1 << 8 * size) - 1
        out[at : at + size] = number.to_bytes(size, rng.choice(("little", "big")))
    elif kind == 6:  # bytes are missing
        del out[at:near]
    elif kind == 7:  # bytes are copied from elsewhere in the file
        there = rng.randrange(len(out) + 1)
        out[at:near] = out[there : there + near - at]
    elif kind == 8:  # bytes are repeated
        out[at:at] = bytes(out[at:near]) * rng.choice((1, 2, 50))
    elif kind == 9:  # zeros
        out[at:near] = bytes(near - at)
    elif kind == 10:  # other text
        words = (
            b'"',
            b"[" * 3000,
            b"{}",
            b"null",
            b"-1",
            b"1e999",
            b"99999999999999999999",
            b"\\u0000",
            b"\xff",
            b",\n",
        )
        out[at:near] = rng.choice(words)
    else:  # a number in text
        digits = [k for k, c in enumerate(out) if chr(c).isdigit()]
        if digits:
            k = rng.choice(digits)
            out[k : k + 1] = str(rng.choice(_NUMBERS)).encode()
    return bytes(out)


# ---- one file -------------------------------------------------------------------------------------


class Hangs(BaseException):
    """A load took too long."""


def _expected(format: Format) -> Any:
    """Writes valid files of a format, remembers them, and returns their values."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        format.write(folder)
        format.files.update(
            {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        )
        return format.load(folder)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, (np.ndarray, np.generic)):
        a, b = np.asarray(a), np.asarray(b)
        return a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()
    return a == b


class Loader:
    """Loads mutated files, each in a folder of its own."""

    def __init__(self, seed: int, formats: list[Format]) -> None:
        self.seed = seed
        self._formats = formats
        self._expected = {format.name: _expected(format) for format in formats}
        self._ran: list[str] = []
        sys.addaudithook(self._listen)
        self._listening = False

    def _listen(self, event: str, args: Any) -> None:
        if self._listening and event in _CODE:
            self._ran.append(f"{event}{args}"[:100])

    def format_of(self, number: int) -> Format:
        rng = random.Random(f"{self.seed} {number}")
        return rng.choices(self._formats, [f.share for f in self._formats])[0]

    def problem(self, number: int, folder: Path, show: bool = False) -> str | None:
        """Writes and loads a file; returns what is wrong with the outcome, or None."""
        format = self.format_of(number)
        rng = random.Random(f"{self.seed} {number} {format.name}")
        for name, data in format.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        data = mutated(format.files[format.file], rng)
        if format.sign is not None:
            data = format.sign(data)
        (folder / format.file).write_bytes(data)
        self._ran.clear()
        self._listening = True
        signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS)
        try:
            value = format.load(folder)
        except (*_ERRORS, *format.also) as e:
            # Python raises subclasses of ValueError; we raise only the class itself.
            if format.also and isinstance(e, format.also) and type(e) not in format.also:
                return f"{type(e).__name__}: {e}"
            outcome: Any = f"{type(e).__name__}: {e}"
        except (Exception, Hangs) as e:
            if show:
                traceback.print_exc()
            return f"{type(e).__name__}: {e}"
        else:
            outcome = value
            expected = self._expected[format.name]
            if format.open_end:
                expected = expected[: len(value)]
            if format.checked and not _same(value, expected):
                return f"other values, and no error: {value}"
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            self._listening = False
        if show:
            print(outcome)
        return f"runs code: {self._ran}" if self._ran else None


# ---- processes ------------------------------------------------------------------------------------


def _hang(signum: int, frame: Any) -> None:
    raise Hangs


def _child(loader: Loader, first: int, last: int, journal: Path) -> None:
    """Loads files [first, last), records each one before and its problem after; ends the process."""
    signal.signal(signal.SIGVTALRM, _hang)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + _MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # warnings of libraries
    with journal.open("a") as notes:
        for number in range(first, last):
            notes.write(f"{number}\n")
            notes.flush()
            folder = Path(tempfile.mkdtemp(prefix="gradtape-fuzz-"))
            problem = loader.problem(number, folder)
            shutil.rmtree(folder, ignore_errors=True)
            if problem is not None:
                notes.write(f"{number} {problem[:300]!r}\n")
    os._exit(0)


def _load_all(loader: Loader, count: int, stop: float) -> tuple[int, list[tuple[int, str]]]:
    """How many files were loaded until the time is up, and the bad ones."""
    bad: list[tuple[int, str]] = []
    done = 0
    with tempfile.TemporaryDirectory() as name:
        while done < count and time.monotonic() < stop:
            journal, last = Path(name) / str(done), min(done + _CHUNK, count)
            process = os.fork()
            if process == 0:
                try:
                    _child(loader, done, last, journal)
                finally:
                    os._exit(1)
            ended = _wait(process, journal)
            lines = journal.read_text().splitlines() if journal.exists() else []
            bad += [(int(n), problem) for n, _, problem in (line.partition(" ") for line in lines) if problem]
            reached = int(lines[-1].partition(" ")[0]) if lines else done
            if ended != 0:
                bad.append((reached, ended if isinstance(ended, str) else f"the process ended with {ended}"))
            done = last if ended == 0 else reached + 1
    return done, bad


def _wait(process: int, journal: Path) -> int | str:
    """How a child ended. One that records nothing for a long time is killed."""
    since, size = time.monotonic(), -1
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        current = journal.stat().st_size if journal.exists() else 0
        if current != size:
            since, size = time.monotonic(), current
        elif time.monotonic() - since > 120:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return "hangs"
        time.sleep(0.02)


def main(argv: list[str] | None = None) -> int:
    """Runs the fuzzer; returns 1 if a file failed."""
    parser = argparse.ArgumentParser(prog="fuzz files", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=int, default=20000)
    parser.add_argument("--seconds", type=float, default=3600.0, help="no more files after so many seconds")
    parser.add_argument("--format", default="", help="only formats with this in their name")
    parser.add_argument("--quick", action="store_true", help="without the formats that are slow to load")
    parser.add_argument("--only", type=int, help="load this file alone, and show what comes of it")
    options = parser.parse_args(argv)
    formats = [f for f in FORMATS if options.format in f.name and (f.share == 1.0 or not options.quick)]
    loader = Loader(options.seed, formats)
    if options.only is not None:
        signal.signal(signal.SIGVTALRM, _hang)
        folder = Path(tempfile.mkdtemp(prefix="gradtape-fuzz-"))
        print(loader.format_of(options.only).name, folder)
        problem = loader.problem(options.only, folder, show=True)
        print(problem or "fine")
        return int(problem is not None)
    done, bad = _load_all(loader, options.files, time.monotonic() + options.seconds)
    seen: set[tuple[str, str]] = set()
    for number, problem in bad:
        kind = (loader.format_of(number).name, problem.partition(":")[0])
        if kind not in seen:
            print(f"  file {number}: {kind[0]}: {problem}")
        seen.add(kind)
    print(f"files: {done} mutated files, {len(formats)} formats, seed {options.seed}, bad: {len(bad)}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
