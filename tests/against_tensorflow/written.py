"""The calls written down in `calls/`: one line of text is one call, as a program would write it.

A line is Python with `tf` for the library and the words of `calling.Maker` for operands: `f(2, 3)` is a
random tensor of the run's element type, `i([1, 2])` an int32 tensor. What follows `#:` says how to run it:

    complex        also in complex64 and complex128          half      also in float16 and bfloat16
    float32 ...    in these element types only               random    look at shapes and types only
    loose=100      a hundred times the usual tolerance       first     no second derivatives
    of=nn.relu     the function meant, if not the first      value     no derivatives at all

`tf.nn.<relu|elu>(f(2))` is two calls.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from typing import Any

from . import calls as folder
from .calling import Maker
from .rows import Call

_NAME = re.compile(r"\btf\.([A-Za-z_][\w.]*)")
_CHOICE = re.compile(r"<([\w.]+(?:\|[\w.]+)+)>")
_TYPES = frozenset("float16 bfloat16 float32 float64 complex64 complex128".split())


def _parse(line: str) -> Iterator[Call]:
    text, _, said = line.partition("#:")
    text = text.strip()
    options = dict(word.partition("=")[::2] for word in said.split())
    types = [w for w in options if w in _TYPES] or ["float32", "float64"]
    if "half" in options:
        types += ["float16", "bfloat16"]
    if "complex" in options:
        types += ["complex64", "complex128"]
    match = _NAME.search(text)
    name = options.get("of") or (match[1] if match else "")
    if not name:
        raise ValueError(f"which function is this a call of? {line}")
    code = compile(text, f"<{text[:60]}>", "eval")

    def call(make: Maker) -> Any:
        return eval(code, make.words())

    for dtype in types:
        small = dtype in ("float16", "bfloat16")
        yield Call(
            name, text, dtype, call, "value" not in options and not small,
            "first" not in options and dtype in ("float64", "complex128"), "random" not in options,
            float(options.get("loose", 1)),
        )  # fmt: skip


def _spelled_out(line: str) -> Iterator[str]:
    """A line once for each of its choices."""
    match = _CHOICE.search(line)
    if match is None:
        yield line
        return
    for word in match[1].split("|"):
        yield from _spelled_out(line[: match.start()] + word + line[match.end() :])


def lines() -> Iterator[str]:
    """Every call of every file."""
    for module in sorted(m.name for m in pkgutil.iter_modules(folder.__path__)):
        text = importlib.import_module(f"{folder.__name__}.{module}").CALLS
        for line in text.splitlines():
            if line.strip() and not line.lstrip().startswith("#"):
                yield from _spelled_out(line)


def calls(wanted: Callable[[str], bool]) -> Iterator[Call]:
    """The calls of all files."""
    for line in lines():
        yield from (call for call in _parse(line) if wanted(call.function))
