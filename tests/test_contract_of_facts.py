"""The test of the tester: rows that state a fact which does not hold, or leave one out.

Each is a copy of a good row with one wrong word. The contract must find it on the row's own samples.
"""

import contextlib

import numpy as np
import pytest

from gradtape import _core, testing
from gradtape._src.contract import facts
from gradtape._src.ops import rewriting
from gradtape._src.ops.samples import call, floats, pairs
from gradtape._src.ops.table import (
    FLOAT,
    PARAM_KINDS,
    TABLE,
    WIDE,
    contraction,
    elementwise,
    indexed,
    movement,
    opaque,
    reduction,
)  # fmt: skip


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


def unary(native, **said):
    row = TABLE[native]
    kind, rule = row.rules[0]
    given = {"deriv": -1} if rule is None else {"deriv": rule}
    return elementwise(
        f"test_{native}",
        FLOAT,
        native=native,
        numpy=row.numpy,
        samples=row.samples,
        doc=row.doc,
        **given,
        **said,
    )


def binary(native, **said):
    row = TABLE[native]
    return elementwise(
        f"test_{native}", FLOAT, args="x y", native=native, numpy=row.numpy, samples=pairs(lo2=0.5), doc=row.doc,
        vjp=(lambda g, x, y, out: g, lambda g, x, y, out: g), **said,
    )  # fmt: skip


def total(native="sum", **said):
    row = TABLE[native]
    return reduction(
        "test_total", FLOAT, native=native, numpy=row.numpy, samples=row.samples[:8], doc=row.doc,
        rule=lambda g, x, out, axes, keepdims: TABLE["sum"].rules[0][1](g, x, out, axes, keepdims), **said,
    )  # fmt: skip


def flipped(**said):
    return movement(
        "test_flip", FLOAT, "tensor axis:Axes", native="reverse",
        transpose=lambda g, x, out, axis: TABLE["reverse"].op(g, axis),
        numpy=lambda x, axis: np.flip(x, axis), samples=[call((2, 3), axis=[0])], doc="flip", **said,
    )  # fmt: skip


# ---- linear -----------------------------------------------------------------------------------


def test_rows_with_correct_declarations_pass(table):
    testing.check_op(unary("neg", linear="x"), ["linear", "pattern"])
    testing.check_op(binary("div", linear="x"), ["linear", "pattern"])
    testing.check_op(binary("mul", linear="x y"), ["linear", "pattern"])
    testing.check_op(binary("sub", linear="x+y"), ["linear", "pattern"])
    testing.check_op(total(linear="input_tensor", pattern="adds"), ["linear", "pattern"])
    testing.check_op(flipped(), ["linear", "pattern"])


@pytest.mark.parametrize(("native", "linear"), [("div", "y"), ("mul", "x+y"), ("add", "x"), ("maximum", "x")])
def test_an_op_that_is_not_linear_in_what_it_says_is_found(table, native, linear):
    with failure_with(f"test_{native}: linear in {linear} in sample 0"):
        testing.check_op(binary(native, linear=linear), ["linear"])


@pytest.mark.parametrize(("native", "linear"), [("div", "x"), ("add", "x+y"), ("mul", "x")])
def test_an_op_that_is_linear_and_does_not_say_so_is_reported(table, native, linear):
    with failure_with(f'test_{native}: it is linear in {linear} and does not say so: linear="{linear}"'):
        testing.check_op(binary(native), ["linear"])


def test_a_movement_that_computes_is_found(table):
    op = movement(
        "test_squares", FLOAT, "tensor", native="", python=lambda x: x * x, transpose=lambda g, x, out: g,
        numpy=np.square, samples=[call((2, 3))], doc="squares",
    )  # fmt: skip
    with failure_with("test_squares: linear in tensor in sample 0"):
        testing.check_op(op, ["linear"])


def test_a_contraction_that_is_not_bilinear_is_found(table):
    op = contraction(
        "test_sums", FLOAT, "a b", python=lambda x, y: x + y,
        transposes=(lambda g, x, y, out: g, lambda g, x, y, out: g),
        numpy=np.add, samples=[call((2,), (2,))], doc="x + y",
    )  # fmt: skip
    with failure_with("test_sums: linear in a in sample 0"):
        testing.check_op(op, ["linear"])


def test_a_linear_op_without_a_rule_is_found(table):
    """Forward mode transposes what is linear: a stopped gradient is not."""
    op = opaque(
        "test_stopped", FLOAT, "input", native=TABLE["stop_gradient"].native, rule=None, linear="input",
        numpy=lambda x: x, samples=floats(), doc="x",
    )  # fmt: skip
    with failure_with("test_stopped: linear in input: it has no rule there"):
        testing.check_op(op, ["linear"])


def test_facts_that_make_no_sense_are_refused(table):
    """When they are requested; those of an op in Python, which may be the user's, at once."""
    with pytest.raises(ValueError, match="test_neg: 'y' is no operand; expected one of x"):
        TABLE[unary("neg", linear="y").op_name].compute_facts()
    del TABLE["test_neg"]
    with pytest.raises(
        ValueError, match="test_neg: 'sparse' is no pattern; expected one of 'aligned', 'moves'"
    ):
        _ = TABLE[unary("neg", pattern="sparse").op_name].pattern
    with pytest.raises(ValueError, match="'z' is no operand"):
        opaque(
            "test_python", FLOAT, "x", python=lambda x: x, rule=None, linear="z",
            numpy=lambda x: x, samples=floats(), doc="x",
        )  # fmt: skip
    assert "test_python" not in TABLE


# ---- patterns ---------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["aligned", "nothing"])
def test_a_pattern_that_leaves_elements_out_is_found(table, pattern):
    with failure_with(
        f"test_flip: pattern '{pattern}' of tensor in sample 0", "element 0 of result 0 depends on"
    ):
        testing.check_op(flipped(pattern=pattern), ["pattern"])


def test_a_sum_that_says_it_moves_elements_is_found(table):
    with pytest.raises(testing.ContractError, match="test_total: pattern"):
        testing.check_op(total(linear="input_tensor", pattern="moves"), ["pattern"])


def test_a_scan_that_says_it_adds_up_is_found(table):
    row = TABLE["cumsum"]
    op = opaque(
        "test_scan", FLOAT, "x axis:Axis=0 exclusive:Bool=False reverse:Bool=False", native="cumsum",
        rule=row.rules[0][1], numpy=row.numpy, samples=[call((4,))], linear="x", pattern="adds", doc="sums",
    )  # fmt: skip
    with pytest.raises(testing.ContractError, match="test_scan: pattern"):
        testing.check_op(op, ["pattern"])


def test_an_indexed_op_with_a_wrong_pattern_is_found(table):
    from gradtape._src.ops.samples import ints

    row = TABLE["take_along"]
    op = indexed(
        "test_take", FLOAT, "x indices:Index axis:Axis", native="take_along", rule=(row.rules[0][1], None),
        numpy=row.numpy, samples=[call((3,), ints([2, 0, 1]), axis=0)], linear="x", pattern="aligned", doc="take",
    )  # fmt: skip
    with failure_with("test_take: pattern 'aligned' of x in sample 0"):
        testing.check_op(op, ["pattern"])


# ---- simplification ---------------------------------------------------------------------------


def test_a_wrong_simplification_is_found(table):
    def wrong(b, operands, attrs):
        x, y = operands
        return x if rewriting.is_number(y, 0) else None  # 0 * x is not x

    with failure_with("test_mul: simplified with y = 0.0 in sample 0"):
        testing.check_op(binary("mul", simplify=wrong), ["simplify"])
    del TABLE["test_mul"]
    testing.check_op(binary("mul", simplify=rewriting.mul), ["simplify"])


def test_a_simplification_to_another_shape_is_found(table):
    with pytest.raises(testing.ContractError, match="simplified with itself in sample 1 .*expected"):
        testing.check_op(total(simplify=rewriting.identity), ["simplify"])


def test_a_simplification_that_looks_at_makers_is_tried(table):
    def wrong(b, operands, attrs):
        (x,) = operands
        minus = rewriting.made_by(x, "neg")
        return b.add("neg", minus.operands[0]) if minus else None

    with failure_with("test_neg: simplified with -x in sample 0"):
        testing.check_op(unary("neg", simplify=wrong), ["simplify"])


# ---- programs ---------------------------------------------------------------------------------


def test_a_wrong_epilogue_is_found(table):
    testing.check_op(total(epilogue="sum"), ["programs"])
    del TABLE["test_total"]
    with pytest.raises(testing.ContractError, match="test_total: program after add"):
        testing.check_op(total(epilogue="max"), ["programs"])


def test_a_wrong_pair_of_loops_is_found(table):
    testing.check_op(binary("sub", first="sub", second="sub from"), ["programs"])
    del TABLE["test_sub"]
    with pytest.raises(testing.ContractError, match="test_sub: program before"):
        testing.check_op(binary("sub", first="add"), ["programs"])
    del TABLE["test_sub"]
    with pytest.raises(testing.ContractError, match="test_sub: program after"):
        testing.check_op(binary("sub", second="add add"), ["programs"])


def test_a_wrong_alias_is_found(table):
    with pytest.raises(testing.ContractError, match="test_flip: program"):
        testing.check_op(flipped(alias=True), ["programs"])


def test_an_op_that_mixes_rows_is_found(table):
    with pytest.raises(testing.ContractError, match="test_flip: row by row"):
        testing.check_op(flipped(by_rows=lambda shapes, attrs: (True,)), ["by_rows"])


def test_an_op_that_cannot_run_in_place_is_found(table):
    row = TABLE["roll"]
    op = movement(
        "test_roll", WIDE, "input shift:Ints axis:Ints", native="roll",
        transpose=lambda g, x, out, shift, axis: g, numpy=row.numpy,
        samples=[call((64,), shift=[1], axis=[0])], in_place="input", doc="roll",
    )  # fmt: skip
    with pytest.raises(testing.ContractError, match="test_roll: written over input"):
        testing.check_op(op, ["in_place"])


# ---- the checks themselves --------------------------------------------------------------------


def test_every_fact_is_checked():
    assert {"linear", "pattern", "simplify", "programs", "by_rows", "in_place"} <= set(testing.CHECKS)
    for name, check in (("mul", "simplify"), ("sum", "programs"), ("tensor_scatter_add", "in_place")):
        assert check in testing.checks_of(TABLE[name])
    assert facts.linear is testing.CHECKS["linear"]


def test_the_words_of_signatures_and_rules_are_the_cores():
    assert _core.param_kinds() == PARAM_KINDS
    assert {"Operand", "Operands", "Axes", "Dtype", "Ignored"} <= set(PARAM_KINDS)
    assert {"None", "One", "MinusOne", "Zero", "Derivative", "Vjp"} == set(_core.rule_kinds())
