"""Every call inside a function of unknown sizes, compared with TensorFlow. Each library runs in its own processes:

    for lib in gradtape tensorflow; do python tests/against_tensorflow/unknown.py $lib WORDS $lib.pickle; done
    python tests/against_tensorflow/unknown.py compare gradtape.pickle tensorflow.pickle

A process that dies (TensorFlow aborts in a few calls) is started again after the call that killed it.

The calls are those of `rows` and `written`, in float32. Their operands are the arguments of a function that is traced
with every size `None`, with the first one `None`, and with unknown ranks. Compared are: whether it can be traced, the
static shapes of the results, the values and gradients.
"""

from __future__ import annotations

import collections
import importlib
import logging
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from against_tensorflow import compare, rows, written  # noqa: E402
from against_tensorflow.calling import Maker, Value, plain  # noqa: E402

KINDS: dict[str, Callable[[tuple], Any]] = {
    "sizes": lambda shape: [None] * len(shape),
    "first": lambda shape: [None, *shape[1:]] if shape else [],
    "rank": lambda shape: None,
}


class Given(Maker):
    """A Maker that returns the arguments of a function instead of new operands."""

    operands: Iterator[Any] | None = None

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.every: list[Any] = []

    def tensor(self, array: Any, dtype: str) -> Any:
        if self.operands is not None:
            return next(self.operands)
        x = super().tensor(array, dtype)
        self.every.append(x)
        return x


class Seen(NamedTuple):
    """The outcome of a call in a function: shapes while it was traced, results, gradients, or the errors."""

    shapes: Any = None
    trace_error: Any = None
    results: Any = None
    error: Any = None
    gradients: Any = None


def _told(e: BaseException) -> tuple:
    return [c.__name__ for c in type(e).__mro__], " ".join(str(e).split())[:300]


def _tensors(x: Any) -> list:
    if isinstance(x, dict):
        return [t for v in x.values() for t in _tensors(v)]
    if isinstance(x, (list, tuple)) and type(x).__name__ != "TensorShape":
        return [t for v in x for t in _tensors(v)]
    return [x] if hasattr(x, "dtype") and hasattr(x, "shape") and "Variable" not in type(x).__name__ else []


def seen(lib: Any, call: Any, kind: str) -> Seen | None:
    """Runs a call in a function; None if it has no operands that could be arguments."""
    first = Given(lib, call.words, call.dtype)
    try:
        call.call(first)
    except Exception:
        return None
    given = first.every
    if not any(x.shape.rank or kind == "rank" for x in given):
        return None
    shapes: list = []

    def body(*args: Any) -> Any:
        make = Given(lib, call.words, call.dtype)
        make.operands = iter(args)
        out = _tensors(call.call(make))
        shapes.append([None if t.shape.rank is None else tuple(t.shape.as_list()) for t in out])
        return tuple(out)

    specs = [lib.TensorSpec(KINDS[kind](tuple(x.shape)), x.dtype) for x in given]
    f = lib.function(body, input_signature=specs)
    try:
        f.get_concrete_function()
    except StopIteration:
        return None
    except Exception as e:
        return Seen(trace_error=_told(e))
    floats = [x for x in given if x.dtype.is_floating]
    try:
        with lib.GradientTape() as tape:
            tape.watch(floats)
            out = f(*given)
    except Exception as e:
        return Seen(shapes[0], error=_told(e))
    results = plain(out)
    try:
        targets = [y for y in out if y.dtype.is_floating]
        gradients: Any = tape.gradient(targets, floats) if targets and floats else []
        gradients = tuple(plain(g if g is None else lib.convert_to_tensor(g)) for g in gradients)
    except Exception as e:
        gradients = _told(e)
    return Seen(shapes[0], None, results, None, gradients)


def calls(words: str) -> Iterator[Any]:
    """The calls with these words in them, each once."""
    done = set()
    every = [*rows.calls(lambda n: True), *written.calls(lambda n: True)]
    floats = {c.function for c in every if c.dtype == "float32"}
    for call in every:
        fits = call.dtype == "float32" or (call.dtype in ("int32", "bool") and call.function not in floats)
        if fits and words in call.words and call.words not in done:
            done.add(call.words)
            yield call


def listed(library: str, words: str, path: str) -> None:
    """Records the outcomes of all calls in one library."""
    warnings.simplefilter("ignore")
    logging.getLogger(library).setLevel("ERROR")
    lib = importlib.import_module(library)
    done = _read(path)
    with open(path, "ab") as file:
        for call in calls(words):
            for kind in KINDS:
                key = call.words, kind
                if key in done or "py_function" in call.words or "numpy_function" in call.words:
                    continue
                pickle.dump((key, None, True), file)  # remains in the file if the process dies in the call
                file.flush()
                pickle.dump((key, seen(lib, call, kind), call.numbers), file)


def _read(path: str) -> dict:
    out = {}
    if Path(path).exists():
        with open(path, "rb") as file:
            while True:
                try:
                    key, found, numbers = pickle.load(file)
                except EOFError:
                    break
                out[key] = found, numbers
    return out


def _sizes(shape: Any) -> str:
    return "<unknown>" if shape is None else str(shape)


def differences(ours: Seen, theirs: Seen, numbers: bool) -> Iterator[tuple[str, str]]:
    if theirs.trace_error:
        if not ours.trace_error and not ours.error:
            yield "accepted", f"TensorFlow {theirs.trace_error[0][0]}: {theirs.trace_error[1]}"
        elif theirs.trace_error[0][0] not in (ours.trace_error or ours.error)[0]:
            yield "class", f"{ours.trace_error or ours.error}; TensorFlow {theirs.trace_error}"
        return
    if ours.trace_error:
        yield ("both refuse" if theirs.error else "refused"), f"{ours.trace_error}; TensorFlow {theirs.error}"
        return
    for a, b in zip(ours.shapes, theirs.shapes, strict=False):
        if a != b:
            if a is None or (
                b is not None and any(x is None and y is not None for x, y in zip(a, b, strict=False))
            ):
                yield "less", f"here {_sizes(a)}, TensorFlow {_sizes(b)}"
            else:
                yield "more", f"here {_sizes(a)}, TensorFlow {_sizes(b)}"
    if len(ours.shapes) != len(theirs.shapes):
        yield "results", f"here {len(ours.shapes)}, TensorFlow {len(theirs.shapes)}"
    if theirs.error:
        if not ours.error:
            yield "ran", f"TensorFlow {theirs.error}"
        return
    if ours.error:
        yield "failed", f"{ours.error}"
        return
    if not numbers:
        return
    for d in compare._nested("value", "result", ours.results, theirs.results, 2e-5):
        yield d.kind, d.words
    wrong = [a for a, b in zip(ours.shapes, _dims(ours.results), strict=False) if not _is_case(a, b)]
    if wrong:
        yield "false", f"static {wrong}, in truth {_dims(ours.results)}"
    failed = [
        isinstance(g, tuple) and g and isinstance(g[0], list) for g in (ours.gradients, theirs.gradients)
    ]
    if failed[1]:
        return
    if failed[0]:
        yield "gradient", str(ours.gradients)
        return
    for d in compare._nested("gradient", "gradient", ours.gradients, theirs.gradients, 2e-4):
        yield d.kind, d.words


def _dims(results: Any) -> list:
    return [r.array.shape if isinstance(r, Value) else None for r in results]


def _is_case(static: Any, dims: Any) -> bool:
    if static is None or dims is None:
        return True
    return len(static) == len(dims) and all(a in (None, b) for a, b in zip(static, dims, strict=True))


def main(ours: str, theirs: str) -> None:
    a, b = _read(ours), _read(theirs)
    counts: collections.Counter = collections.Counter()
    for key in a:
        if a[key][0] is None or key not in b or b[key][0] is None:
            counts["not compared"] += 1
            continue
        try:
            found = list(differences(a[key][0], b[key][0], a[key][1]))
        except ValueError:  # an array compared with something else
            found = [("class", "results of different kinds")]
        counts["agree"] += not found
        for kind, words in found:
            counts[kind] += 1
            print(f"{kind:9} {key[1]:6} {key[0]}\n          {words}")
    print(counts)


if __name__ == "__main__":
    if sys.argv[1] == "compare":
        main(*sys.argv[2:4])
    else:
        listed(*sys.argv[1:4])
