"""Tells the core which rows implement Python's operators and the engine's own steps."""

from gradtape import _core
from gradtape._src.ops.table import TABLE

# The core's name of an operation: the row that implements it, if its name is another.
_STEPS = {
    name: name
    for name in (
        "add sub mul div floordiv pow neg abs invert logical_not matmul equal not_equal less less_equal greater "
        "greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift "
        "sum_to conj real mul_no_nan zero index index_update cast"
    ).split()
} | {"mod": "floormod"}


def install() -> None:
    """Gives the rows to the core. The table must be complete."""
    for step, row in _STEPS.items():
        _core.set_engine_op(step, TABLE[row].op)
