"""Gradients by name: `tf.RegisterGradient` and `tf.no_gradient`.

TensorFlow looks up the gradient of an op by the name of its type. In gradtape an op's rule is in its row of
the op table, and user functions have `tf.custom_gradient`. A registered gradient is selected by
`tf.primitive(..., vjp="Name")` and has TensorFlow's form: `gradient(op, *cotangents)`, where `op.inputs`,
`op.outputs` and `op.get_attr(name)` are those of the call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from gradtape._src.ops.table import TABLE

_registered: dict[str, tuple[Callable | None, str]] = {}


class RegisterGradient:
    """Decorator of a function `gradient(op, *cotangents)` that registers it under a name.

    >>> import gradtape as tf
    >>> @tf.RegisterGradient("Clipped")
    ... def clipped(op, g):
    ...     return tf.clip_by_value(g, -1.0, 1.0)
    >>> identity = tf.primitive(lambda x: x, vjp="Clipped", name="clipped_identity")
    >>> x = tf.constant(2.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = 100.0 * identity(x)
    >>> tape.gradient(y, x).numpy()
    np.float32(1.0)

    Args:
      op_type: the name.

    Raises:
      TypeError: if the name is not a string.
      KeyError: if the name is taken, by another function or by an op of the table ("Mul").
    """

    def __init__(self, op_type: str) -> None:
        self._op_type = _checked(op_type)

    def __call__(self, f: Callable) -> Callable:
        _register(self._op_type, f, sys._getframe(1))
        return f


def no_gradient(op_type: str) -> None:
    """Declares that ops of this name have no gradient: a gradient through them is None.

    Raises:
      TypeError: if the name is not a string.
      KeyError: if the name is taken.
    """
    _register(_checked(op_type), None, sys._getframe(1))


NotDifferentiable = no_gradient


def _checked(op_type: Any) -> str:
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
    return op_type


def _register(op_type: str, f: Callable | None, frame: Any) -> None:
    before = _registered[op_type][1] if op_type in _registered else _row_of(op_type)
    if before is not None:
        raise KeyError(
            f"Registering two gradient with name '{op_type}'! (Previous registration was in {before})"
        )
    _registered[op_type] = f, f"{frame.f_code.co_name} {frame.f_code.co_filename}:{frame.f_lineno}"


def _row_of(op_type: str) -> str | None:
    """The row of the op table for this op: TensorFlow's `MatMul` is `matmul` here."""
    plain = op_type.lower()
    row = next((row for name, row in TABLE.items() if name.replace("_", "") == plain), None)
    return None if row is None else f"the op table, row {row.name!r}"


class Operation:
    """A call as a registered gradient sees it, with TensorFlow's names."""

    def __init__(
        self, op_type: str, inputs: Sequence[Any], outputs: Sequence[Any], attrs: dict[str, Any]
    ) -> None:
        self.type = self.name = op_type
        self.inputs, self.outputs = list(inputs), list(outputs)
        self._attrs = attrs

    def get_attr(self, name: str) -> Any:
        """The value of an attribute.

        Raises:
          ValueError: if the op has none of this name.
        """
        if name not in self._attrs:
            raise ValueError(f"Operation '{self.name}' has no attr named '{name}'.")
        return self._attrs[name]


def lookup(op_type: str) -> Callable | None:
    """The registered function; None after `no_gradient`.

    Raises:
      LookupError: if nothing is registered.
    """
    if op_type not in _registered:
        raise LookupError(
            f"gradient registry has no entry for: {op_type}. Hint: @tf.RegisterGradient({op_type!r}) before the op is "
            "differentiated."
        )
    return _registered[op_type][0]
