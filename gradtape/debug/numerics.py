"""Where did the NaN come from? The op that made the first one, forward or backward."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core, config
from gradtape.errors import InvalidArgumentError
from gradtape.source import Line, user_line

# These only move values, or make the ones they were asked for.
_PASSING_KINDS = frozenset(("movement", "indexed"))
_PASSING = frozenset(("fill", "identity", "select", "cast", "zeros", "ones", "stop_gradient"))


class NumericsError(InvalidArgumentError):
    """A NaN or an infinity was made: `op`, `line` of the user's program, `index` of the first one."""

    def __init__(self, message: str, op: str, line: Line | None, index: tuple[int, ...]) -> None:
        super().__init__(None, op, message)
        self.line, self.index = line, index


class check_numerics:  # noqa: N801 - used like a function
    """Raises an error at the op that makes the first NaN or infinity, in the forward or the backward pass.

    As a context, or for a whole program by `tf.debug.check_numerics.enable()` or GRADTAPE_NUMERICS=1 in the
    environment. Functions run eagerly and tapes do not compile meanwhile, so that every op is seen.

    >>> import gradtape as tf
    >>> x = tf.Variable([4.0, 0.0])
    >>> with tf.debug.check_numerics():
    ...     with tf.GradientTape() as tape:
    ...         y = tf.where(x > 0, tf.math.log(tf.maximum(x, 1e-30)) * tf.sqrt(x), 0.0)
    ...     print(tape.gradient(y, x).numpy())
    [0.8465736 0.       ]

    Args:
      infinities: whether an infinity is an error, too.
    """

    def __init__(self, infinities: bool = True) -> None:
        self._watcher = _Watcher(infinities)

    def __enter__(self) -> check_numerics:
        self._watcher.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._watcher.stop()

    @staticmethod
    def enable(infinities: bool = True) -> None:
        """Switches the check on until `disable`."""
        check_numerics.disable()
        _enabled.append(_Watcher(infinities))
        _enabled[0].start()

    @staticmethod
    def disable() -> None:
        """Switches it off, if it is on."""
        while _enabled:
            _enabled.pop().stop()


_enabled: list[_Watcher] = []


class _Watcher:
    def __init__(self, infinities: bool) -> None:
        self._infinities = infinities
        self._lines: dict[int, Line] = {}  # by the number of a record

    def start(self) -> None:
        self._before = (_core.set_op_watcher(self), _core.is_compiling(), config._checking)
        _core.set_compile(False)
        config._checking = True

    def stop(self) -> None:
        watcher, compiled, checking = self._before
        config._checking = checking
        _core.set_compile(compiled)
        _core.set_op_watcher(watcher)

    def _bad(self, x: Any, infinities: bool) -> np.ndarray | None:
        """Where the elements are that should not be; None when all are fine."""
        if not (x.dtype.is_floating or x.dtype.is_complex):
            return None
        before = _core.set_op_watcher(None)
        try:
            values = np.asarray(x.numpy())
        finally:
            _core.set_op_watcher(before)
        if values.dtype.kind not in "fc":
            values = values.astype(np.float32)
        bad = ~np.isfinite(values) if infinities else np.isnan(values)
        return bad if bad.any() else None

    def __call__(self, op: Any, operands: tuple, result: Any) -> None:
        if op is None:
            return
        results = result if isinstance(result, tuple) else (result,)
        number, of = _core.stepping()
        if not number:
            line = user_line()
            for r in results:
                self._lines[_core.record_number(r)] = line
        row = op.row
        if op.op_name in _PASSING or (row is not None and row.kind in _PASSING_KINDS):
            return
        # A derivative may be infinite where the cotangent is zero: in a backward pass NaNs alone count.
        infinities = self._infinities and not number
        for r in results:
            bad = self._bad(r, infinities)
            if bad is None or any(self._bad(x, infinities) is not None for x in operands):
                continue  # fine, or only passed on
            raise self._error(op, operands, r, bad, number, of)

    def _error(
        self, op: Any, operands: tuple, out: Any, bad: np.ndarray, number: int, of: str
    ) -> NumericsError:
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        value = np.asarray(out.numpy())[index]
        line = self._lines.get(number) if number else user_line()
        count = int(bad.sum())
        what = f"{op.op_name} in the gradient of {of}" if number else op.op_name
        more = f" and {count - 1} more" if count > 1 else ""
        lines = [
            f"{what} made the first {value} at {list(index)}{more}, of {out.dtype.name}{list(out.shape)}."
        ]
        if line is not None:
            lines.append(f"  at {line}: {line.text}")
        lines += [f"  {name}" for name in map(_range, operands)]
        hint = _hint(op.op_name, of, number)
        if hint:
            lines.append(f"  {hint}")
        return NumericsError("\n".join(lines), op.op_name, line, index)


def _range(x: Any) -> str:
    values = np.asarray(x.numpy(), dtype=np.float64 if x.dtype.name != "bfloat16" else np.float32)
    kind = f"{x.dtype.name}{list(x.shape)}"
    return f"given {kind}" + (f" between {values.min():.6g} and {values.max():.6g}" if values.size else "")


_SAFE = (
    "If a tf.where takes the other branch there, the zero cotangent meets an infinite derivative, and 0 * inf is "
    "NaN. Make the operand safe first: safe = tf.where(ok, x, 1.0); y = tf.where(ok, f(safe), 0.0)."
)
_HINTS = {
    "log": "The logarithm of 0 is -inf, of negative numbers NaN: tf.math.log(tf.maximum(x, 1e-12)).",
    "div": "A division by zero: tf.math.divide_no_nan, or add a small number to the denominator.",
    "sqrt": "The square root of a negative number: tf.sqrt(tf.maximum(x, 0.0)).",
    "exp": "exp overflows above 88 in float32: subtract the maximum first, or use tf.nn.softmax, tf.reduce_logsumexp.",
    "pow": "A negative number to a fractional power, or 0 to a negative one.",
    "rsqrt": "1 / sqrt(0) is infinite: add a small number first.",
    "reciprocal": "1 / 0 is infinite: tf.math.divide_no_nan, or add a small number first.",
}


def _hint(op: str, of: str, backward: int) -> str:
    return _SAFE if backward else _HINTS.get(op, "")
