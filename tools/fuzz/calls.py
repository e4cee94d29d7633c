"""Ops with hostile arguments (`hostile`), called eagerly, under tapes, in functions, in forward mode.

Allowed: a result, or an exception whose class says that the caller made a mistake. Not allowed: an internal exception
(AssertionError, KeyError, C++ text), a call that cannot be interrupted, and a process that computes wrong results
afterwards.
"""

from __future__ import annotations

import signal
import traceback
import types
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as tf
from gradtape._src.ops.table import TABLE
from tests.against_tensorflow.calling import Maker
from tools.fuzz import harness
from tools.fuzz.harness import Bad
from tools.fuzz.hostile import call_number

_SECONDS = 5  # of CPU time for one call, which is then interrupted
_LARGEST = 1 << 18  # elements of a generated operand
_DECENT = (
    TypeError, ValueError, IndexError, OverflowError, NotImplementedError, MemoryError, ZeroDivisionError,
    AttributeError, RuntimeError, LookupError, tf.errors.OpError,
)  # fmt: skip
_INDECENT = (
    AssertionError, SystemError, KeyError, UnboundLocalError, NameError, RecursionError,
    StopIteration, np.linalg.LinAlgError,
)  # fmt: skip
_RAW = (
    "std::",
    "nanobind",
    "basic_string",
    "vector::",
    "bad_alloc",
    "incompatible function arguments",
    "_M_",
)


class Evil(Exception):
    """The exception that the objects below raise: it must propagate, or be replaced by a proper one."""


_OF_ARGUMENTS = (Evil, np.ma.MaskError)  # exceptions raised by the arguments themselves


class Timeout(BaseException):
    """The time of a call is over."""


def _raise(*_: Any, **__: Any) -> Any:
    raise Evil("on purpose")


def _evil(**methods: Any) -> Any:
    return type("EvilObject", (), {f"__{k}__": v for k, v in methods.items()})()


def _nested(depth: int) -> list:
    x: list = [1.0]
    for _ in range(depth):
        x = [x]
    return x


def _itself() -> list:
    x: list = [1.0]
    x.append(x)
    return x


def _evil_objects() -> Any:
    shown = _evil(shape=None)
    type(shown).shape = (2, -3)
    typed = _evil(array=lambda s, *a, **k: np.ones(2))
    type(typed).dtype = "nothing"
    array = _evil()
    type(array).__array__ = lambda self, *a, **k: self
    return types.SimpleNamespace(
        array=_evil(array=_raise), array_itself=array, array_text=_evil(array=lambda s, *a, **k: "text"),
        array_huge=_evil(array=lambda s, *a, **k: np.broadcast_to(np.float32(1), (2**20, 2**20))),
        index=_evil(index=_raise), index_huge=_evil(index=lambda s: 2**100), index_text=_evil(index=lambda s: "x"),
        length=_evil(len=_raise, getitem=_raise), length_negative=_evil(len=lambda s: -1, getitem=lambda s, i: i),
        length_huge=_evil(len=lambda s: 2**40, getitem=lambda s, i: 1.0), number=_evil(float=_raise, int=_raise),
        truth=_evil(bool=_raise), equal=_evil(eq=_raise, hash=lambda s: 1), iterator=_evil(iter=_raise), shape=shown,
        dtype=typed, tensor=_evil(tf_tensor__=_raise), tensor_none=_evil(tf_tensor__=lambda s, *a: None),
        itself=_itself(), deep=_nested(100), getattr=_evil(getattr=_raise), hash=_evil(hash=_raise),
        string=_evil(str=_raise, repr=_raise),
    )  # fmt: skip


def _odd_arrays() -> Any:
    line = np.arange(12, dtype="f4")
    fixed = np.ones([2, 3], "f4")
    fixed.flags.writeable = False
    raw = np.zeros(4 * 6 + 1, "u1")
    return types.SimpleNamespace(
        read_only=fixed, zero_stride=np.lib.stride_tricks.as_strided(line, (3, 4), (0, 4)),
        overlapping=np.lib.stride_tricks.as_strided(line, (5, 4), (4, 8)),
        misaligned=raw[1:].view("f4").reshape(2, 3), matrix=np.ones([2, 3], "f4").view(np.recarray),
        masked=np.ma.array([1.0, 2.0], mask=[True, False]),
    )  # fmt: skip


def _dead_tensors() -> Any:
    x = tf.ones([2, 3])
    with tf.GradientTape() as tape:
        tape.watch(x)
        watched = x * 2.0
    del tape
    with tf.GradientTape() as tape:
        tape.watch(x)
        used = tf.exp(x)
    tape.gradient(used, x)
    leaked: list[Any] = []

    @tf.function
    def leak(x):
        leaked.append(tf.sin(x))
        return x

    leak(x)
    variable = tf.Variable(x)
    return types.SimpleNamespace(
        watched=watched,
        used=used,
        symbol=leaked[0],
        variable=variable._read(),
        token=tf.constant(2**40, tf.int64),
    )


class Operands(Maker):
    """Makes the operands of a call; inside a function they are symbols if `zero` is one."""

    zero: Any = None

    def tensor(self, array: Any, dtype: str) -> Any:
        if np.size(array) > _LARGEST:
            raise MemoryError("an operand that is too large to make up")
        x = super().tensor(array, dtype)
        if self.zero is None:
            return x
        if x.dtype.is_bool:
            x = tf.logical_xor(x, tf.cast(self.zero, tf.bool))
        else:
            x = x + tf.cast(self.zero, x.dtype)
        self.made.append(x)
        return x

    def f(self, *shape: int, lo: float = -2.0, hi: float = 2.0) -> Any:
        if abs(np.prod([float(d) for d in shape])) > _LARGEST:
            raise MemoryError("an operand that is too large to make up")
        return super().f(*shape, lo=lo, hi=hi)

    def z(self, dtype: str, *shape: int) -> Any:
        """Small numbers of any element type."""
        return self.tensor(self._rng.integers(0, 3, shape), dtype)


def _result(x: Any) -> list[Any]:
    """The tensors of a result, read."""
    tensors = [t for t in tf.nest.flatten(x) if isinstance(t, tf.Tensor)]
    for t in tensors:
        if t._symbol is None:
            t.numpy()
    return [t for t in tensors if t.dtype.is_floating or t.dtype.is_complex]


class Flavours:
    """Runs calls in each flavour: eagerly, under a tape, in a function, ..."""

    def __init__(self) -> None:
        self.words = {
            "evil": _evil_objects(), "odd": _odd_arrays(), "dead": _dead_tensors(), "nan": float("nan"),
            "inf": float("inf"), "op": lambda name: TABLE[name].op,
        }  # fmt: skip

    def run(self, dtype: str, flavour: str, text: str) -> None:
        try:
            code = compile(text, "<call>", "eval")
        except SyntaxError:  # a repeated argument
            return
        maker = Operands(tf, text, dtype)
        words = self.words | maker.words() | {"z": maker.z}
        symbolic = zlib.crc32(text.encode()) & 1
        getattr(self, f"_{flavour}")(maker, lambda: eval(code, words), symbolic)

    def _eager(self, maker: Operands, call: Callable, symbolic: int) -> None:
        _result(call())

    def _tape(self, maker: Operands, call: Callable, symbolic: int) -> None:
        with tf.GradientTape() as tape:
            maker.under(tape)
            out = _result(call())
        _result(tape.gradient(out, maker.made))

    def _second(self, maker: Operands, call: Callable, symbolic: int) -> None:
        with tf.GradientTape(persistent=True) as outer:
            with tf.GradientTape() as tape:
                maker.under(tape, outer)
                out = _result(call())
            grads = [tf.convert_to_tensor(g) for g in tape.gradient(out, maker.made) if g is not None]
        _result(outer.gradient(grads, maker.made))

    def _function(self, maker: Operands, call: Callable, symbolic: int) -> None:
        def traced(zero: Any) -> Any:
            maker.zero = zero if symbolic else None
            maker.made.clear()
            return call()

        compiled = tf.function(traced)
        _result(compiled(tf.constant(0)))
        _result(compiled(tf.constant(0)))

    def _function_tape(self, maker: Operands, call: Callable, symbolic: int) -> None:
        def traced(zero: Any) -> Any:
            maker.zero = zero if symbolic else None
            maker.made.clear()
            with tf.GradientTape() as tape:
                maker.under(tape)
                out = [t for t in tf.nest.flatten(call()) if isinstance(t, tf.Tensor)]
                if symbolic:
                    tape.watch(maker.made)
            return [g for g in tape.gradient(out, maker.made) if g is not None]

        _result(tf.function(traced)(tf.constant(0)))

    def _jacobian(self, maker: Operands, call: Callable, symbolic: int) -> None:
        with tf.GradientTape() as tape:
            maker.under(tape)
            out = _result(call())
        if out and maker.made and np.prod(out[0].shape) * np.prod(maker.made[0].shape) < 1 << 16:
            _result(tape.jacobian(out[0], maker.made[0]))

    def _vectorized(self, maker: Operands, call: Callable, symbolic: int) -> None:
        def row(zero: Any) -> Any:
            maker.zero = zero if symbolic else None
            out = call()
            return [t for t in tf.nest.flatten(out) if isinstance(t, tf.Tensor)] or zero

        _result(tf.vectorized_map(row, tf.constant([0, 0])))

    def _forward(self, maker: Operands, call: Callable, symbolic: int) -> None:
        x = tf.constant(0.0)
        with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
            maker.zero = x
            out = _result(call())
        _result(acc.jvp(out))


def _innermost(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return frames[-1].filename if frames else ""


def fault(error: BaseException) -> str | None:
    """Why an exception counts as a failure; None if it does not."""
    text = str(error)
    if (
        isinstance(error, NameError) and _innermost(error) == "<call>"
    ):  # a variable of a lambda, outside of it
        return None
    if isinstance(error, _INDECENT) or not isinstance(error, (*_DECENT, *_OF_ARGUMENTS)):
        return f"{type(error).__name__}: {text[:300]}"
    if any(raw in text for raw in _RAW):
        return f"raw text: {type(error).__name__}: {text[:300]}"
    return None


def canary() -> None:
    """A computation whose result is known."""
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.matmul(x, x) * tf.sigmoid(x))
    g = tape.gradient(y, x).numpy()
    expected = [[7.457717, 10.593139], [8.866665, 12.864006]]
    if not np.allclose(g, expected, rtol=1e-5):
        raise Bad("the process computes wrong gradients", str(g), spoiled=True)


def _on_alarm(*_: Any) -> None:
    raise Timeout


class Calls:
    """Makes calls, and checks from time to time that the process still computes right results."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        warnings.simplefilter("ignore")
        np.seterr(all="ignore")
        signal.signal(signal.SIGPROF, _on_alarm)
        tf.get_logger().setLevel("CRITICAL")
        self.flavours = Flavours()
        canary()

    def text(self, number: int) -> str:
        dtype, flavour, text = call_number(self.seed, number)
        return f"[{dtype}, {flavour}] {text}"

    def run(self, text: str, number: int) -> Counter[str]:
        how, _, call = text[1:].partition("] ")
        counts = Counter({"refused": 1})
        try:
            signal.setitimer(signal.ITIMER_PROF, _SECONDS)
            self.flavours.run(*how.split(", "), call)
            counts = Counter({"with a result": 1})
        except Timeout:
            counts = Counter({"interrupted": 1})
        except Exception as e:
            problem = fault(e)
            if problem:
                raise Bad(f"{call.partition('(f')[0][:40]}: {problem[:40]}", problem) from e
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if number % 100 == 0:
            canary()
        return counts


KIND = harness.Kind("calls", Calls, chunk=2500, environments=({}, {"GRADTAPE_COMPILE": "always"}))


def main(argv: list[str]) -> int:
    return harness.main(KIND, argv)
