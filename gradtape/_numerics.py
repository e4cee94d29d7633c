"""`tf.debugging.enable_check_numerics`: every op that makes a NaN or an infinity raises an error.

While it is on, functions run eagerly and tapes do not compile, so that every op is seen by itself.
"""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from typing import Any

import numpy as np

from gradtape import _core, config
from gradtape.errors import InvalidArgumentError

# These only move values, or make the ones they were asked for.
_INNOCENT_KINDS = frozenset(("movement", "indexed"))
_INNOCENT = frozenset(("fill", "constant", "identity", "where", "select", "cast"))
_HERE = str(Path(__file__).parent)


class _Check:
    """The settings, and what was set before."""

    def __init__(self, stack_height_limit: int, path_length_limit: int) -> None:
        self.height = stack_height_limit
        self.length = path_length_limit
        self.compiled = _core.is_compiling()

    def __call__(self, op: Any, operands: tuple, result: Any) -> None:
        if op is None:
            return  # a value that leaves for NumPy
        row = op.row
        if op.op_name in _INNOCENT or (row is not None and row.kind in _INNOCENT_KINDS):
            return
        results = result if isinstance(result, tuple) else (result,)
        for i, out in enumerate(results):
            if not (out.dtype.is_floating or out.dtype.is_complex):
                continue
            values = np.asarray(out.numpy())
            if not np.isfinite(values).all():
                raise self._error(op, operands, out, values, i, len(results))

    def _error(self, op: Any, operands: tuple, out: Any, values: np.ndarray, i: int, n: int) -> Exception:
        if np.iscomplexobj(values):
            values = np.stack([values.real, values.imag])
        found = {"-Inf": np.isneginf(values), "+Inf": np.isposinf(values), "NaN": np.isnan(values)}
        counts = {kind: int(where.sum()) for kind, where in found.items() if where.any()}
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
        return InvalidArgumentError(
            None, None, "\n".join(lines) + f"\n : Tensor had {' and '.join(counts)} values"
        )

    def _stack(self) -> list[str]:
        """The lines of the user's program that led here, without those of gradtape."""
        out: list[str] = []
        frame: Any = sys._getframe(1)
        while frame is not None and len(out) < self.height:
            name, line = frame.f_code.co_filename, frame.f_lineno
            if not name.startswith(_HERE):
                short = name if len(name) <= self.length else "..." + name[-self.length :]
                text = linecache.getline(name, line).strip()
                out.append(f"    {short} (L{line}) {frame.f_code.co_name}" + (f": {text}" if text else ""))
            frame = frame.f_back
        return out[::-1]


def _shown(x: Any) -> str:
    return f"tf.Tensor({str(x.numpy())[:1000]}, shape={x.shape}, dtype={x.dtype.name})"


_active: list[_Check] = []


def enable(stack_height_limit: int, path_length_limit: int) -> None:
    """Turns the check on; a second call changes the limits."""
    disable()
    check = _Check(stack_height_limit, path_length_limit)
    _active.append(check)
    _core.set_compile(False)
    config._checking = True
    _core.set_op_watcher(check)


def disable() -> None:
    """Turns the check off."""
    while _active:
        _core.set_op_watcher(None)
        config._checking = False
        _core.set_compile(_active.pop().compiled)
