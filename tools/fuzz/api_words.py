"""The words of `api`'s statements, and the execution of a list of statements."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import gc
import threading
import types
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import gradtape as tf
from gradtape import _core
from tools.fuzz.calls import fault
from tools.fuzz.harness import Bad
from tools.fuzz.interrupts import fresh


class Config:
    """An argument that cannot be hashed and is soon freed."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, k: int) -> None:
        self.k = k


class Wrong(AssertionError):
    """A result that differs from the expected one."""


class Words:
    """One run: its objects, and the words for statements about them."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.leaks: list = []
        self.kept: list = []
        self.depth = 0
        callbacks = {n[9:]: self._guarded(getattr(self, n)) for n in dir(self) if n.startswith("callback_")}
        words = {
            n: getattr(self, n)
            for n in dir(self)
            if not n.startswith(("_", "callback_")) and n not in ("names", "kept")
        }
        self.names |= words | {"tf": tf, "np": np, "gc": gc, "kept": self._keep}
        self.names["callbacks"] = types.SimpleNamespace(**callbacks)
        self.words = set(self.names)

    # ---- callbacks --------------------------------------------------------------------------

    def _guarded(self, callback: Callable) -> Callable:
        def call(*args: Any, **kwargs: Any) -> Any:
            """Limits the recursion of callbacks that call each other."""
            if self.depth > 3:
                return args[0] if args else None
            self.depth += 1
            try:
                return callback(*args)
            finally:
                self.depth -= 1

        return call

    def _some(self, sort: str) -> list:
        """The program's objects of a sort."""
        return [v for k, v in list(self.names.items()) if k not in self.words and k.startswith(sort)]

    def callback_same(self, x: Any = None, *_: Any) -> Any:
        return x

    def callback_square(self, x: Any = None, *_: Any) -> Any:
        return tf.ones([2]) if x is None else x * x

    def callback_fails(self, *_: Any) -> Any:
        raise ValueError("on purpose")

    def callback_deletes(self, x: Any = None, *_: Any) -> Any:
        for k in [k for k in self.names if k not in self.words]:
            self.names.pop(k, None)
        gc.collect()
        return x

    def callback_collects(self, x: Any = None, *_: Any) -> Any:
        gc.collect()
        return x * 1.0 if isinstance(x, tf.Tensor) else x

    def callback_mutates(self, x: Any = None, *_: Any) -> Any:
        for v in self._some("v"):
            v.assign(v * 0.5)
        self.kept.clear()
        return x

    def callback_enters(self, x: Any = None, *_: Any) -> Any:
        for g in self._some("g")[:2]:
            g.__enter__()
        return x

    def callback_leaves(self, x: Any = None, *_: Any) -> Any:
        for g in self._some("g") + self._some("j"):
            g.__exit__(None, None, None)
        return x

    def callback_differentiates(self, x: Any = None, *_: Any) -> Any:
        for g in self._some("g")[:2]:
            g.gradient(self._some("t")[:2], self._some("v")[:2])
        return x

    def callback_assigns(self, x: Any = None, *_: Any) -> Any:
        for v in self._some("v")[:2]:
            v.assign(x)
        return x

    def callback_appends(self, x: Any = None, *_: Any) -> Any:
        self.kept.append(x)
        self.leaks.append(x)
        return x

    def callback_interrupts_nothing(self, *_: Any) -> Any:
        raise StopIteration

    def callback_traces(self, x: Any = None, *_: Any) -> Any:
        return tf.function(lambda y: y * 2.0)(tf.ones([2]) if x is None else x)

    def callback_returns_none(self, *_: Any) -> Any:
        return None

    def callback_returns_text(self, *_: Any) -> Any:
        return "text"

    def callback_recurses(self, x: Any = None, *_: Any) -> Any:
        for f in self._some("f")[:1] + self._some("c")[:1]:
            x = f(x)
        return x

    def callback_threads(self, x: Any = None, *_: Any) -> Any:
        for g in self._some("g"):
            self.in_thread(g.__exit__, None, None, None)
        return x

    def callback_resets(self, x: Any = None, *_: Any) -> Any:
        for g in self._some("g"):
            g.reset()
        return x

    # ---- words ------------------------------------------------------------------------------

    def in_thread(self, work: Callable, *args: Any) -> Any:
        results: list = []

        def run() -> None:
            try:
                results.append(work(*args))
            except Exception as e:
                results.append(e)
            # The thread closes what it opened, as a program's threads do.
            _leave_tapes()

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if isinstance(results[0], Exception):
            raise results[0]
        return results[0]

    def opened(self, **options: Any) -> Any:
        tape = tf.GradientTape(**options)
        tape.__enter__()
        return tape

    def reading(self, v: Any) -> Callable:
        return lambda x: x * v

    def assigning(self, v: Any) -> Callable:
        def run(x: Any) -> Any:
            v.assign(v * 0.5)
            self.leaks.append(x * 2.0)
            return x * v

        return run

    def differentiating(self, v: Any) -> Callable:
        def run(x: Any) -> Any:
            with tf.GradientTape() as tape:
                y = x * v * v
            return tape.gradient(y, v)

        return run

    def nesting(self, f: Callable) -> Callable:
        return lambda x: f(x) * 2.0

    def own(self, gradient: Callable) -> Callable:
        return lambda x: (tf.sin(x), gradient)

    def leaked(self) -> Any:
        if not self.leaks:
            tf.function(lambda x: self.leaks.append(x * 1.0) or x)(tf.ones([2]))
        return self.leaks[-1]

    def _keep(self, x: Any) -> Any:
        self.kept.append(x)
        return x

    def generator(self, callback: Callable, x: Any) -> Callable:
        def run() -> Iterator[Any]:
            for _ in range(3):
                yield callback(x)

        return run

    def finalize(self, x: Any, callback: Callable) -> None:
        def run() -> None:
            callback(tf.ones([2]))

        weakref.finalize(x, run).atexit = False

    def dying(self, callback: Callable) -> None:
        class Dying:
            def __init__(self) -> None:
                self.me = self

            def __del__(self) -> None:
                callback(tf.ones([2]))

        Dying()

    def cycle(self, *things: Any) -> None:
        ring: list = [*things]
        ring.append(ring)

    def abandoned(self, v: Any) -> Iterator[Any]:
        with tf.GradientTape() as tape:
            yield v * 2.0
            y = v * v
            yield y
        yield tape.gradient(y, v)

    def abandoned_function(self, v: Any) -> Iterator[Any]:
        with tf.GradientTape() as tape, tape.stop_recording():
            yield tf.function(lambda x: x * v)(tf.ones([2]))
        yield v * 3.0

    def abandoned_accumulator(self, x: Any) -> Iterator[Any]:
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as acc:
            yield x * 2.0
            yield acc.jvp(x * x)

    def inside(self, scope: Any, work: Callable, x: Any) -> Any:
        with scope:
            return work(x)

    def raising(self, tape: Any) -> None:
        with tape:
            raise ValueError("on purpose")

    def twice(self, tape: Any, v: Any) -> Any:
        with tape:
            y = v * v
            with tape:
                y = y * v
        return tape.gradient(y, v)

    def churn(self, x: Any) -> None:
        """Allocates memory, perhaps at freed addresses."""
        for _ in range(30):
            y = x * 2.0
            y = y + tf.ones([3])[:2]

    # ---- what is known ------------------------------------------------------------------------

    def expect(self, actual: Any, expected: Any) -> None:
        if actual is None or not np.allclose(actual, expected):
            raise Wrong(f"{actual} instead of {expected}")

    def expect_config(self, k: int) -> None:
        """A function of an argument that dies with the call."""
        f = tf.function(_config_times)
        for n in range(k, k + 6):
            self.expect(f(tf.ones([2]), Config(n)), float(n))

    def primitive(self, k: int) -> Callable:
        return lambda x: x * float(k)

    def expect_primitive(self, k: int) -> None:
        """Gradients of an op whose attribute is a new object each time."""
        x = tf.constant([1.0, 2.0])
        for n in range(k, k + 6):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = _SCALING(x, factor=Config(n))
            self.expect(tape.gradient(y, x), float(n))

    def expect_variable_function(self, k: int) -> None:
        """A variable at the address of a freed one is a different variable."""
        f = tf.function(lambda v: v * 2.0)
        for n in range(k, k + 4):
            v = tf.Variable([float(n)])
            self.expect(f(v), 2.0 * n)
            del v

    def expect_set(self, k: int) -> None:
        f = tf.function(lambda x, s: x * float(len(s)))
        for n in range(1, k + 1):
            self.expect(f(tf.ones([2]), set(range(n))), float(n))

    def expect_tasks(self, v: Any) -> None:
        """Tapes of tasks that take turns, exited in the order in which they were entered."""

        if not v.dtype.is_floating:
            return

        async def one(k: int) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(v)
                y = v * float(k)
                await asyncio.sleep(0)
                y = y + v
            return tape.gradient(y, v)

        async def all_of_them() -> list:
            return await asyncio.gather(*map(one, range(4)))

        for k, g in enumerate(asyncio.run(all_of_them())):
            self.expect(g, k + 1.0)

    def expect_nested(self, k: int, v: Any) -> None:
        """Many nested tapes, all of which record."""
        if not v.dtype.is_floating:
            return
        with contextlib.ExitStack() as stack:
            tapes = [stack.enter_context(tf.GradientTape()) for _ in range(20 * k)]
            for tape in tapes:
                tape.watch(v)
            y = v * v
        for tape in (tapes[0], tapes[-1]):
            self.expect(tape.gradient(y, v), 2.0 * v.numpy())

    def expect_nested_forward(self, k: int) -> None:
        x, one = tf.constant(float(k)), tf.constant(1.0)
        with tf.autodiff.ForwardAccumulator(x, one) as outer, tf.autodiff.ForwardAccumulator(x, one) as inner:
            y = x * x * x
        self.expect(outer.jvp(inner.jvp(y)), 6.0 * k)

    def expect_gradient(self, v: Any) -> None:
        if not v.dtype.is_floating:
            return
        with tf.GradientTape() as tape:
            tape.watch(v)
            y = v * v
        self.expect(tape.gradient(y, v), 2.0 * v.numpy())


def _config_times(x: Any, config: Config) -> Any:
    return x * float(config.k)


def _scaled(x: Any, *, factor: Any) -> Any:
    return np.asarray(x) * np.float32(factor.k)


_SCALING = tf.primitive(
    _scaled, vjp=lambda g, x, out, factor: g * float(factor.k), name="fuzz_scaling", doc="x times a number."
)


def run(text: str) -> Counter[str]:
    """Runs statements one by one; raises Bad if something is wrong."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    tf.get_logger().setLevel("CRITICAL")
    words = Words()
    counts: Counter[str] = Counter()
    for statement in ast.parse(text).body:
        shown = ast.unparse(statement)
        try:
            exec(compile(ast.Module([statement], []), "<call>", "exec"), words.names)
            counts["statements"] += 1
        except Wrong as e:
            raise Bad(f"wrong: {shown.partition('(')[0]}", str(e)) from None
        except Exception as e:
            counts["statements refused"] += 1
            # A callback may call a function that calls the callback again.
            circle = isinstance(e, RecursionError) and "callbacks.recurses" in text
            if not circle and not isinstance(e, (StopIteration, NameError)):
                problem = fault(e)
                if problem:
                    raise Bad(
                        f"{type(e).__name__} from {shown.partition('(')[0][-30:]}",
                        f"{shown}: {problem}",
                        spoiled=True,
                    ) from e
    _close(words)
    try:
        left = fresh()
    except Exception as e:
        left = f"{type(e).__name__}: {e}"
    if left:
        raise Bad(f"afterwards: {left[:80]}", spoiled=True)
    return counts


def _close(words: Words) -> None:
    """Exits everything that is still open, as the ends of `with` blocks do."""
    for name, x in list(words.names.items()):
        if name not in words.words and name[0] in "gj" and hasattr(x, "__exit__"):
            with contextlib.suppress(Exception):
                x.__exit__(None, None, None)
        if name not in words.words and name[0] == "n":
            with contextlib.suppress(Exception):
                x.close()
    words.names.clear()
    words.kept.clear()
    words.leaks.clear()
    del words
    gc.collect()
    _leave_tapes()


def _leave_tapes() -> None:
    """Exits the tapes of this thread that nothing references any more."""
    for tape in _core.recording_tapes():
        leave = getattr(tape, "__exit__", None)
        leave(None, None, None) if leave else tape._stop()
