"""Where did the NaN come from? The op that made the first one, forward or backward.

Two watchers look for it: that of `tf.debug.check_numerics`, which blames the op that produced the value, and that
of `tf.debugging.enable_check_numerics`, which behaves like TensorFlow's. A watcher is called as `watcher(op,
operands, result)` after every op of its thread that runs by itself, and as `watcher(None, (tensor,), None)` when
values leave for Python; it may raise. While there is one, functions of the thread run eagerly and its tapes are not
compiled, so that every op is seen. Without one, it costs one comparison per op.
"""

from __future__ import annotations

import linecache
import sys
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import log
from gradtape._src.base.errors import InvalidArgumentError, more
from gradtape._src.base.source import Line, is_library, user_line
from gradtape._src.debug.graph import elements

# These ops only move values, or create the ones that they were requested.
_PASSING_KINDS = frozenset(("movement", "indexed"))
_PASSING = frozenset(("fill", "constant", "identity", "select", "cast", "zeros", "ones", "stop_gradient"))

# A whole program can be checked, so memory for its lines is limited.
_MOST_LINES = 200_000
_MOST_PENDING = 1000


class NumericsError(InvalidArgumentError):
    """An op produced a NaN or an infinity: `op`, `line` of the user's program, `index` of the first one."""

    def __init__(self, message: str, op: str, line: Line | None, index: tuple[int, ...]) -> None:
        super().__init__(None, op, message)
        self.line, self.index = line, index


class check_numerics(_core.Scope):  # noqa: N801 - used like a function
    """Raises an error at the op that produces the first NaN or infinity, in the forward or the backward pass.

    Use it as a context, or for a whole program by `tf.debug.check_numerics.enable()` or GRADTAPE_NUMERICS=1 in the
    environment. In the meantime functions run eagerly and tapes are not compiled, so that every op is seen. The
    error, a `NumericsError`, names the op, the line, the first index, the range of the op's operands, and a safe
    way to write it.

    >>> import gradtape as tf
    >>> x = tf.Variable([4.0, 0.0])
    >>> with tf.debug.check_numerics():
    ...     with tf.GradientTape() as tape:
    ...         safe = tf.where(x > 0, x, 1.0)
    ...         y = tf.where(x > 0, tf.math.log(safe), 0.0)
    ...     print(tape.gradient(y, x).numpy())
    [0.25 0.  ]

    A NaN that was given, in data or in a variable, is no error: the log says once which op was the first to compute
    with it.

    An infinity inside a gradient rule counts only when it leaves the rule, because some are computed only to be
    discarded.

    Args:
      infinities: whether an infinity is an error, too.
    """

    def __new__(cls, infinities: bool = True) -> check_numerics:
        return super().__new__(cls, watcher=_Blame(infinities))

    @staticmethod
    def enable(infinities: bool = True) -> None:
        """Switches the check on until `disable`."""
        _enable(_Blame(infinities))

    @staticmethod
    def disable() -> None:
        """Switches it off, if it is on."""
        _disable(_Blame)


_enabled: dict[type, _core.Scope] = {}  # a scope stays entered as long as it is referenced


def _enable(watcher: Any) -> None:
    _disable(type(watcher))
    scope = _core.Scope(watcher=watcher)
    scope.__enter__()
    _enabled[type(watcher)] = scope


def _disable(kind: type) -> None:
    scope = _enabled.pop(kind, None)
    if scope is not None:
        scope.__exit__()


def enable_as_tensorflow(stack_height_limit: int, path_length_limit: int) -> None:
    """`tf.debugging.enable_check_numerics`; a second call changes the limits."""
    _enable(_AsTensorFlow(stack_height_limit, path_length_limit))


def disable_as_tensorflow() -> None:
    """`tf.debugging.disable_check_numerics`."""
    _disable(_AsTensorFlow)


def _only_passes(op: Any) -> bool:
    return op.op_name in _PASSING or (op.row is not None and op.row.kind in _PASSING_KINDS)


def _bad(x: Any, infinities: bool = True) -> np.ndarray | None:
    """Where the bad elements are; None if there are none."""
    if not (x.dtype.is_floating or x.dtype.is_complex):
        return None
    values = elements(x)
    bad = ~np.isfinite(values) if infinities else np.isnan(values)
    return bad if bad.any() else None


# ---- who made it ------------------------------------------------------------------------------------


class _Blame:
    """Raises for the op that produced a bad value; ops that get one as an operand and pass it on are not blamed.
    If no op produced it, the log says once which op was given it.
    """

    def __init__(self, infinities: bool) -> None:
        self._infinities = infinities
        self._said = False  # that a NaN was given
        self._lines: dict[int, Line] = {}  # by the number of a tape's record
        # Infinities made by a gradient rule, with the record that it belongs to: by id of the tensor.
        self._pending: dict[int, tuple[Any, int, NumericsError]] = {}

    def __call__(self, op: Any, operands: tuple, result: Any) -> None:
        number, of = _core.stepping()
        self._came_out(operands, number)
        if op is None:
            return
        results = result if isinstance(result, tuple) else (result,)
        if not number:
            line = user_line()
            for r in results:
                self._lines[_core.record_number(r)] = line
            if len(self._lines) > _MOST_LINES:
                self._lines = dict(list(self._lines.items())[_MOST_LINES // 2 :])
        if _only_passes(op):
            self._pass_on(operands, results)
            return
        for r in results:
            nans, bad = _bad(r, infinities=False), _bad(r, self._infinities)
            if bad is None:
                continue
            if any(_bad(x, infinities=nans is None or not number) is not None for x in operands):
                if not (number or self._said):
                    self._say_given(op, operands)
                self._pass_on(operands, (r,))
                continue
            error = self._error(op, operands, r, bad if nans is None else nans, number, of)
            if nans is None and number:
                if len(self._pending) > _MOST_PENDING:
                    self._pending.clear()
                self._pending[id(r)] = (r, number, error)
            else:
                raise error

    def _say_given(self, op: Any, operands: tuple) -> None:
        found = next(((x, bad) for x in operands if (bad := _bad(x, infinities=False)) is not None), None)
        if found is None:
            return
        self._said = True
        x, bad = found
        index = [int(i) for i in np.argwhere(bad)[0]]
        log.warning(
            "check_numerics: %s was given a NaN at %s of %s that no op made: it came with the data, or is in a "
            "variable.\n  at %s",
            op.op_name,
            index,
            _kind(x),
            user_line().shown,
        )

    def _pass_on(self, operands: tuple, results: tuple) -> None:
        pending = next((self._pending[id(x)] for x in operands if id(x) in self._pending), None)
        if pending is not None:
            for r in results:
                if _bad(r) is not None:
                    self._pending[id(r)] = (r, pending[1], pending[2])

    def _came_out(self, operands: tuple, number: int) -> None:
        """Raises for an infinity that is used outside of the rule that made it."""
        for x in operands if self._pending else ():
            pending = self._pending.get(id(x))
            if pending is not None and pending[1] != number:
                self._pending.clear()
                raise pending[2]

    def _error(
        self, op: Any, operands: tuple, out: Any, bad: np.ndarray, number: int, of: str
    ) -> NumericsError:
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        line = self._lines.get(number) if number else user_line()
        count = int(bad.sum())
        what = f"{op.op_name} in the gradient of {of}" if number else op.op_name
        others = f" and {count - 1} more" if count > 1 else ""
        value = elements(out)[index]
        words = [f"{what} made the first {value} at {list(index)}{others}, of {_kind(out)}."]
        if line is not None:
            words.append(f"  at {line.shown}")
        words += map(_range, operands)
        words += [
            f"  {hint}" for hint in _hints(op.op_name, of, operands, bool(number), bool(np.isnan(value)))
        ]
        return NumericsError("\n".join(words) + more("nan-gradients"), op.op_name, line, index)


def _kind(x: Any) -> str:
    return f"{x.dtype.name}{list(x.shape)}"


def _range(x: Any) -> str:
    values = elements(x)
    if values.dtype.kind == "c":
        values = np.abs(values)
    finite = values[np.isfinite(values)]
    between = f" between {finite.min():.6g} and {finite.max():.6g}" if finite.size else ""
    rest = values.size - finite.size
    return f"  given {_kind(x)}{between}" + (f", {rest} not finite" if rest else "")


# The condition under which the operand is safe, and the safe expression, to rewrite the `where` trap.
_SAFE = {
    "log": ("x > 0", "tf.math.log(safe)"),
    "sqrt": ("x > 0", "tf.sqrt(safe)"),
    "rsqrt": ("x > 0", "tf.math.rsqrt(safe)"),
    "div": ("x != 0", "1.0 / safe"),
    "reciprocal": ("x != 0", "1.0 / safe"),
    "pow": ("x > 0", "safe ** p"),
    "exp": ("x < 80", "tf.exp(safe)"),
    "acos": ("tf.abs(x) < 1", "tf.acos(safe)"),
    "asin": ("tf.abs(x) < 1", "tf.asin(safe)"),
}
_HINTS = {
    "log": "The logarithm of 0 is -inf, of negative numbers NaN: tf.math.log(tf.maximum(x, 1e-12)).",
    "div": "A division by zero: tf.math.divide_no_nan, or add a small number to the denominator.",
    "sqrt": "The square root of a negative number: tf.sqrt(tf.maximum(x, 0.0)).",
    "exp": "exp overflows above 88 in float32: subtract the maximum first, or use tf.nn.softmax, tf.reduce_logsumexp.",
    "pow": "A negative number to a fractional power, or 0 to a negative one.",
    "rsqrt": "1 / sqrt(0) is infinite: add a small number first.",
    "reciprocal": "1 / 0 is infinite: tf.math.divide_no_nan, or add a small number first.",
}
_STEEP = {
    "sqrt": "The slope of sqrt at 0 is infinite: tf.sqrt(x + 1e-12), also for a norm or a distance.",
    "pow": "The slope of a root at 0 is infinite: add a small number first.",
}


def _hints(op: str, of: str, operands: tuple, backward: bool, nan: bool) -> list[str]:
    hints = []
    if backward and not nan:
        hints.append(
            _STEEP.get(of, f"The slope of {of} is infinite there: keep its operand away from that point.")
        )
    elif not backward and op in _HINTS:
        hints.append(_HINTS[op])
    culprit = of if backward else op
    zero_times_infinity = any((elements(x) == 0).any() for x in operands) and any(
        np.isinf(elements(x)).any() for x in operands
    )
    if (culprit in _SAFE and not (backward and not nan)) or zero_times_infinity:
        ok, safely = _SAFE.get(culprit, ("ok", "f(safe)"))
        trap = (
            "A zero cotangent met an infinite derivative, and 0 * inf is NaN, as when a tf.where takes its other branch"
            if backward and nan
            else "A tf.where that takes its other branch there does not help the gradient, which may be NaN all the same"
        )
        fill = "0.5" if culprit in ("acos", "asin") else "1.0"
        hints.append(
            f"{trap}. Make the operand safe first: ok = {ok}; safe = tf.where(ok, x, {fill}); "
            f"y = tf.where(ok, {safely}, 0.0)."
        )
    return hints


# ---- as TensorFlow does it --------------------------------------------------------------------------


class _AsTensorFlow:
    """Raises for every op whose result is not finite, in TensorFlow's words."""

    def __init__(self, stack_height_limit: int, path_length_limit: int) -> None:
        self._height, self._length = stack_height_limit, path_length_limit

    def __call__(self, op: Any, operands: tuple, result: Any) -> None:
        if op is None or _only_passes(op):
            return
        results = result if isinstance(result, tuple) else (result,)
        for i, out in enumerate(results):
            if _bad(out) is not None:
                raise self._error(op, operands, out, i, len(results))

    def _error(self, op: Any, operands: tuple, out: Any, i: int, n: int) -> InvalidArgumentError:
        values = elements(out)
        if np.iscomplexobj(values):
            values = np.stack([values.real, values.imag])
        masks = {"-Inf": np.isneginf(values), "+Inf": np.isposinf(values), "NaN": np.isnan(values)}
        counts = {kind: int(where.sum()) for kind, where in masks.items() if where.any()}
        lines = [
            f'!!! Detected Infinity or NaN in output {i} of eagerly-executing op "{op.op_name}" (# of outputs: {n}) !!!',
            f"  dtype: {out.dtype}",
            f"  shape: {out.shape}",
            *(f"  # of {kind} elements: {count}" for kind, count in counts.items()),
            "",
        ]
        if len(operands) == 1:
            lines.append(f"  Input tensor: {_shown(operands[0])}")
        else:
            lines.append(f"  Input tensors ({len(operands)}):")
            lines += [f"         {k}: {_shown(x)}" for k, x in enumerate(operands)]
        lines += ["", "  Stack trace of the op (most recent call last):", *self._stack(), ""]
        words = f"\n : Tensor had {' and '.join(counts)} values"
        return InvalidArgumentError(None, None, "\n".join(lines) + words + more("nan-gradients"))

    def _stack(self) -> list[str]:
        """The lines of the user's program on the stack, without those of libraries."""
        out: list[str] = []
        frame: Any = sys._getframe(1)
        while frame is not None and len(out) < self._height:
            name, line = frame.f_code.co_filename, frame.f_lineno
            if not is_library(name):
                short = name if len(name) <= self._length else "..." + name[-self._length :]
                text = linecache.getline(name, line).strip()
                out.append(f"    {short} (L{line}) {frame.f_code.co_name}" + (f": {text}" if text else ""))
            frame = frame.f_back
        return out[::-1]


def _shown(x: Any) -> str:
    return f"tf.Tensor({str(elements(x))[:1000]}, shape={x.shape}, dtype={x.dtype.name})"
