"""Tests of the contract itself: it must find wrong batching and derivative rules."""

import contextlib

import numpy as np
import pytest

from gradtape import testing
from gradtape._src import ops
from gradtape._src.ops.samples import call
from gradtape._src.ops.table import FLOAT, TABLE, opaque


@pytest.fixture
def table():
    """The op table, restored after the test."""
    before = dict(TABLE)
    yield TABLE
    TABLE.clear()
    TABLE.update(before)


@contextlib.contextmanager
def failure_with(*fragments):
    with pytest.raises(testing.ContractError) as caught:
        yield
    for fragment in fragments:
        assert fragment in str(caught.value).splitlines()[0]


def scaled(name="test_scaled", **changes):
    """`x * y` with a rule of its own for everything; `changes` make it wrong."""

    def batch(size, batched, operands, attrs):
        x, y = (
            v if b else ops.broadcast_to(v, [size, *v.shape]) for v, b in zip(operands, batched, strict=True)
        )
        return TABLE["mul"].op(x, y)

    row = {
        "rule": (lambda g, x, y, out: g * y, lambda g, x, y, out: g * x),
        "python": lambda x, y: TABLE["mul"].op(x, y),
        "numpy": np.multiply,
        "samples": [call((2, 3), (2, 3)), call((0,), (0,)), call((), ())],
        "doc": "x y",
        "batch": batch,
    } | changes
    return opaque(name, FLOAT, "x y", **row)


def test_a_correct_op_passes(table):
    op = scaled()
    testing.check_op(op)
    assert {"batching", "forward", "rows", "batched_gradient"} <= set(testing.checks_of(op.row))


def test_a_wrong_derivative_is_found_in_forward_mode(table):
    op = scaled(rule=(lambda g, x, y, out: 1.001 * g * y, lambda g, x, y, out: g * x))
    with failure_with("test_scaled: tangent of result 0 in sample 0 (shapes (2, 3), (2, 3); float64)"):
        testing.check_op(op, ["forward"])


def test_a_gradient_that_is_not_linear_is_found(table):
    op = scaled(rule=(lambda g, x, y, out: g * g * y, lambda g, x, y, out: g * x))
    with failure_with("test_scaled: Jacobian of result 0", "does not look linear"):
        testing.check_op(op, ["rows"])


def test_a_gradient_that_adds_something_is_found(table):
    op = scaled(rule=(lambda g, x, y, out: g * y + 1e-3, lambda g, x, y, out: g * x))
    with failure_with("does not look linear"):
        testing.check_op(op, ["rows"])


def test_a_wrong_batching_rule_is_found(table):
    def batch(size, batched, operands, attrs):
        x, y = (
            v if b else ops.broadcast_to(v, [size, *v.shape]) for v, b in zip(operands, batched, strict=True)
        )
        return ops.reverse(TABLE["mul"].op(x, y), [0])

    op = scaled(batch=batch)
    with failure_with("test_scaled: batched result 0 with"):
        testing.check_op(op, ["batching"])
    with failure_with("over rows with"):
        testing.check_op(op, ["batched_gradient"])


def test_a_batching_rule_without_gradient_is_found(table):
    def batch(size, batched, operands, attrs):
        x, y = (
            v if b else ops.broadcast_to(v, [size, *v.shape]) for v, b in zip(operands, batched, strict=True)
        )
        return ops.stop_gradient(TABLE["mul"].op(x, y))

    op = scaled(batch=batch)
    testing.check_op(op, ["batching"])
    with failure_with("test_scaled: gradient of x over rows with", "expected"):
        testing.check_op(op, ["batched_gradient"])


def test_a_wrong_batching_rule_of_the_gradient_is_found(table):
    """The rows of a Jacobian are computed by the rules of the ops of a gradient."""
    once = scaled("test_once", batch=lambda size, batched, operands, attrs: 1.001 * ops.multiply(*operands))
    op = scaled(rule=(lambda g, x, y, out: once(g, y), lambda g, x, y, out: g * x))
    with failure_with("test_scaled: rows of the gradient of x from result 0"):
        testing.check_op(op, ["rows"])
