"""KeyboardInterrupt at every point of the entry points; afterwards the process must be in a clean state.

A case is an entry point, a way to interrupt it, and how far into its run that happens. The ways: before any
bytecode of the library (`opcode`), where CPython checks for signals, which is at the start of a Python function and
after a native one (`call`), and by a timer at any time (`timer`), in native code too. The interrupt must propagate,
nothing may still be recorded, traced, tracked or watched, and the interrupted call must work when it is repeated.
Where the interrupt is swallowed (a bare `except` in Keras, a finalizer), it is raised again at the next point.
"""

from __future__ import annotations

import _weakrefset
import ast
import dis
import functools
import gc
import random
import signal
import sys
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import gradtape as tf
from gradtape import _core
from tools.fuzz import harness
from tools.fuzz.entry_points import ENTRY_POINTS
from tools.fuzz.harness import Bad

_LIBRARY = (str(Path(tf.__file__).parent), str(harness.ROOT / "keras_gradtape"))
_USER = str(Path(__file__).with_name("entry_points.py"))
_WAYS = "opcode call timer".split()
_RESUME = dis.opmap["RESUME"]
_GOLDEN = 0.6180339887498949


class _Interrupter:
    """Counts points while it is active, records when each line was first reached, and interrupts at one point."""

    def __init__(self, at: int = -1) -> None:
        self.at, self.seen = at, 0
        self.where = ""
        self.places: dict[tuple, int] = {}

    def hit(self, frame: FrameType, event: str) -> None:
        if self.at < 0:
            self.places.setdefault((frame.f_code, frame.f_lasti, event), self.seen)
        self.seen += 1
        if 0 <= self.at < self.seen and not self.where and not _is_lost(frame):
            code = frame.f_code
            self.where = f"{code.co_qualname}, {Path(code.co_filename).name}:{frame.f_lineno}"
            raise KeyboardInterrupt

    def opcode(self, act: Callable) -> None:
        def each(frame: FrameType, event: str, _: Any) -> Any:
            if event == "opcode":
                self.hit(frame, event)
            return each

        def begin(frame: FrameType, event: str, _: Any) -> Any:
            if not frame.f_code.co_filename.startswith(_LIBRARY):
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            return each

        sys.settrace(begin)
        try:
            act()
        finally:
            sys.settrace(None)

    def call(self, act: Callable) -> None:
        def each(frame: FrameType, event: str, _: Any) -> None:
            if not frame.f_code.co_filename.startswith((*_LIBRARY, _USER)):
                return
            # Closing a generator enters it too, but not at a RESUME, so CPython does not check for signals there.
            if event == "c_return" or (event == "call" and frame.f_code.co_code[frame.f_lasti] == _RESUME):
                self.hit(frame, event)

        sys.setprofile(each)
        try:
            act()
        finally:
            sys.setprofile(None)

    def timer(self, act: Callable) -> None:
        """`at` is in microseconds."""
        start = time.perf_counter()

        def ring(_: int, frame: FrameType | None) -> None:
            if _is_lost(frame):
                signal.setitimer(signal.ITIMER_REAL, 1e-4)
                return
            if frame is not None:
                self.where = (
                    f"{frame.f_code.co_qualname}, {Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                )
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, ring)
        try:
            if self.at >= 0:
                signal.setitimer(signal.ITIMER_REAL, max(self.at, 1) * 1e-6)
            act()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            if self.at < 0:
                took = int(1e6 * (time.perf_counter() - start))
                self.places = {(k,): k for k in range(0, took, max(took // 1000, 1))}


def _is_lost(frame: FrameType | None) -> bool:
    """Whether an interrupt is swallowed here: by a bare `except` in Keras, or by CPython in a finalizer."""
    while frame is not None:
        name = frame.f_code.co_filename
        if frame.f_code.co_name == "__del__" or name in (_weakrefset.__file__, weakref.__file__):
            return True
        if "/keras/src/" in name and any(frame.f_lineno in lines for lines in _bare_excepts(name)):
            return True
        frame = frame.f_back
    return False


@functools.cache
def _bare_excepts(name: str) -> list[range]:
    tries = [n for n in ast.walk(ast.parse(Path(name).read_text())) if isinstance(n, ast.Try)]
    bare = [n for n in tries if any(h.type is None for h in n.handlers)]
    return [range(n.body[0].lineno, n.handlers[0].lineno) for n in bare]


def fresh() -> str | None:
    """What a finished run has left behind, if anything."""
    if _core.current_trace() is not None:
        return "a trace is still current"
    if _core.is_recording():
        return "a tape is still active"
    if _core.assign_tracker() is not None:
        return "assignments are still tracked"
    if getattr(_core, "op_watcher", lambda: None)() is not None:
        return "ops are still watched"
    if not tf.executing_eagerly() or tf.config.functions_run_eagerly():
        return "the mode is another one"
    x = tf.Variable([3.0, -2.0])
    with tf.GradientTape() as tape:
        y = x * x
    g = tape.gradient(y, x)
    if g is None or not np.array_equal(g, [6.0, -4.0]):
        return f"the gradient of x * x is {g}"
    f = tf.function(lambda x: tf.reduce_sum(x * x) * 2.0)
    with tf.GradientTape() as tape:
        y = f(x)
    if float(y) != 26.0 or not np.array_equal(tape.gradient(y, x), [12.0, -8.0]):
        return "a function is wrong"
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 1.0])) as acc:
        y = x * x
    if not np.array_equal(acc.jvp(y), [6.0, -4.0]):
        return "forward mode is wrong"
    return None


class Interrupts:
    """Runs entry points and interrupts them."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.names = sorted(ENTRY_POINTS)
        self.points: dict[tuple[str, str], list[int]] = {}
        warnings.simplefilter("ignore")
        np.seterr(all="ignore")
        tf.get_logger().setLevel("CRITICAL")
        gc.disable()  # collected below, since automatic collections would change the number of points

    def text(self, number: int) -> str:
        rng = random.Random(self.seed)
        name = self.names[number % len(self.names)]
        way = _WAYS[number // len(self.names) % len(_WAYS)]
        # Spread over the run of the entry point, more and more densely.
        part = (rng.random() + number // (len(self.names) * len(_WAYS)) * _GOLDEN) % 1.0
        return f"{name}, {way}, {part:.6f}"

    def run(self, text: str, number: int) -> Counter[str]:
        name, way, part = text.split(", ")
        points = self.points.get((name, way))
        if points is None:
            points = self.points[name, way] = self._points(name, way)
        interrupter = _Interrupter(points[int(float(part) * len(points))])
        act, again = ENTRY_POINTS[name]()
        interrupted = True
        try:
            getattr(interrupter, way)(act)
            interrupted = False
        except KeyboardInterrupt:
            pass
        except BaseException as e:
            self._bad(name, f"{type(e).__name__} instead of KeyboardInterrupt", interrupter, str(e))
        gc.collect()
        if interrupter.where and not interrupted:
            self._bad(name, "the interrupt was swallowed", interrupter)
        try:
            left = fresh()
        except BaseException as e:
            left = f"{type(e).__name__}: {e}"
        if left:
            self._bad(name, left, interrupter)
        try:
            again()
        except BaseException as e:
            self._bad(name, f"cannot be used again: {type(e).__name__}", interrupter, str(e)[:300])
        return Counter({f"by {way}" if interrupted else "too late": 1})

    @staticmethod
    def _bad(name: str, what: str, interrupter: _Interrupter, more: str = "") -> None:
        raise Bad(f"{name}: {what[:80]}", f"interrupted in {interrupter.where} {more}", spoiled=True)

    @staticmethod
    def _points(name: str, way: str) -> list[int]:
        """When each place is first reached, in a run with warm caches, as later runs have."""
        for _ in range(3):
            act, again = ENTRY_POINTS[name]()
            act()
            again()
        gc.collect()
        gc.freeze()  # objects that exist by now are not scanned after each case
        interrupter = _Interrupter()
        getattr(interrupter, way)(ENTRY_POINTS[name]()[0])
        return list(interrupter.places.values())


KIND = harness.Kind("interrupts", Interrupts, chunk=300, environments=({}, {"GRADTAPE_COMPILE": "always"}))


def main(argv: list[str]) -> int:
    return harness.main(KIND, argv)
