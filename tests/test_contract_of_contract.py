"""The test of the tester: ops that are a little wrong, and rows that are not complete.

Each wrong op is a copy of a good one with one mistake, often of 0.1 %. The contract must find it,
and must say which op, which check, which sample and which element.
"""

import contextlib
import copy
import math

import numpy as np
import pytest

from gradtape import _core, testing
from gradtape._src import ops
from gradtape._src.contract import derivatives
from gradtape._src.ops.samples import at, bools, call, floats, ints
from gradtape._src.ops.table import BOOL, COMPLEX, FLOAT, INT, TABLE, elementwise, movement, opaque, reduction


@pytest.fixture
def table():
    """The op table, restored after the test."""
    before = dict(TABLE)
    yield TABLE
    TABLE.clear()
    TABLE.update(before)


def tanh(**changes):
    """A correct copy of tanh, unless `changes` say otherwise."""
    row = {
        "native": "tanh",
        "deriv": lambda x, out: 1 - out * out,
        "numpy": np.tanh,
        "samples": floats(-3, 3),
        "doc": "tanh",
    } | changes
    return elementwise("test_tanh", FLOAT, **{k: v for k, v in row.items() if v is not ...})


@contextlib.contextmanager
def failure_with(*fragments):
    with pytest.raises(testing.ContractError) as caught:
        yield
    for fragment in fragments:
        assert fragment in str(caught.value).splitlines()[0]


class Changed:
    """An op that behaves differently in one respect."""

    def __init__(self, op, call):
        self._op, self._call = op, call

    def __getattr__(self, name):
        return getattr(self._op, name)

    def __call__(self, *args, **kwargs):
        return self._call(self._op, *args, **kwargs)


def changed(row, call):
    """A copy of `row` whose op is called by `call(op, ...)`."""
    row = copy.copy(row)
    row.op = Changed(row.op, call)
    return row


# ---- what must pass ---------------------------------------------------------------------------


def test_a_correct_op_passes(table):
    testing.check_op(tanh())


def test_an_op_or_its_row_can_be_given(table):
    op = tanh()
    testing.check_op(op, ["value"])
    testing.check_op(op.row, ["value"])


def test_an_op_written_in_python_can_be_checked(table):
    row = {
        "numpy": lambda x, scale: scale * x**3,
        "samples": [call((2, 3), scale=2.0), call((0,), scale=1.0)],
    }
    op = opaque(
        "test_cube", FLOAT, "x scale:Float", python=lambda x, scale: scale * x * x * x, doc="scale * x³",
        rule=lambda g, x, out, scale: 3 * scale * g * ops.square(x), **row,
    )  # fmt: skip
    testing.check_op(op)
    wrong = opaque(
        "test_wrong", FLOAT, "x scale:Float", python=lambda x, scale: scale * x * x * x, doc="scale * x³",
        rule=lambda g, x, out, scale: 3.003 * scale * g * ops.square(x), **row,
    )  # fmt: skip
    with failure_with("test_wrong: gradient of x in sample 0 (shape (2, 3); float64; scale=2.0): expected"):
        testing.check_op(wrong)


def test_only_checks_that_apply_are_run():
    assert "gradient" in testing.checks_of(TABLE["tanh"])
    assert "gradient" not in testing.checks_of(TABLE["floor"])
    assert "edges" not in testing.checks_of(TABLE["tanh"])


# ---- 0.1 % wrong ------------------------------------------------------------------------------


def test_a_wrong_derivative_is_found(table):
    op = tanh(deriv=lambda x, out: 1.001 * (1 - out * out))
    with failure_with(
        "test_tanh: gradient of x in sample 0 (shape (); float64): expected ", "(relative error 1e-03)"
    ):
        testing.check_op(op, ["gradient"])


def test_the_worst_element_is_named(table):
    def deriv(x, out):
        d = 1 - out * out
        return ops.select(x > 1, 1.001 * d, d)

    op = tanh(deriv=deriv, samples=[call(at([[0.5], [1.5]]))])
    start = "test_tanh: gradient of x in sample 0 (shape (2, 1); float64): expected "
    with failure_with(start, " at [1, 0] (relative error 1e-03)"):
        testing.check_op(op, ["gradient"])


def test_a_wrong_derivative_of_one_operand_is_found(table):
    op = elementwise(
        "test_mul", FLOAT, args="x y", native="mul",
        deriv=(lambda x, y, out: y, lambda x, y, out: 0.999 * x),
        numpy=np.multiply, samples=[call((2, 3), (2, 3))], doc="x * y",
    )  # fmt: skip
    with failure_with("test_mul: gradient of y in sample 0 (shapes (2, 3), (2, 3); float64)"):
        testing.check_op(op)


def test_a_missing_conjugate_is_found(table):
    op = elementwise(
        "test_square", TABLE["square"].dtypes, native="square", vjp=lambda g, x, out: 2 * g * x,
        numpy=np.square, samples=floats(), doc="x * x",
    )  # fmt: skip
    testing.check_op(TABLE["square"], ["gradient"])
    with failure_with("test_square: gradient of x in sample 0 (shape (); complex128)"):
        testing.check_op(op, ["gradient"])


def test_a_wrong_value_is_found(table):
    op = tanh(numpy=lambda x: 1.001 * np.tanh(x))
    with failure_with("test_tanh: value in sample", "(relative error 1e-03)"):
        testing.check_op(op, ["value"])


def test_a_wrong_value_in_one_type_is_found(table):
    def call(op, x):
        return op(x) if x.dtype.name != "float32" else op(x) * 1.001

    with failure_with("test_tanh: value in sample 0 (shape (); float32)"):
        testing.check_op(changed(tanh().row, call), ["value"])


def test_a_wrong_result_type_is_found(table):
    op = tanh(numpy=lambda x: np.tanh(x) > 0)
    with failure_with("test_tanh: value in sample 0", "expected type like bool, got float16"):
        testing.check_op(op, ["value"])


def test_a_wrong_second_order_is_found(table):
    square = elementwise(
        "test_square", FLOAT, native="square", deriv=lambda x, out: 2.002 * x,
        numpy=np.square, samples=floats(), doc="x * x",
    )  # fmt: skip
    op = tanh(deriv=lambda x, out: 1 - square(out))
    testing.check_op(op, ["value", "gradient"])
    with failure_with("test_tanh: second-order gradient of x in sample", "(relative error 1e-03)"):
        testing.check_op(op, ["second_order"])


def test_a_wrong_transpose_is_found(table):
    def minus(name, **rule):
        return elementwise(name, FLOAT, native="neg", numpy=np.negative, samples=floats(), doc="-x", **rule)

    wrong = minus("test_wrong", deriv=1)
    op = minus("test_neg", vjp=lambda g, x, out: wrong(g))
    testing.check_op(minus("test_right", deriv=-1), ["transpose"])
    testing.check_op(op, ["gradient"])
    with failure_with("test_neg: transpose in sample 0 (shape (); float64): expected <u, Jv> = <J'u, v>"):
        testing.check_op(op, ["transpose"])


def test_a_wrong_gradient_in_low_precision_is_found(table):
    def vjp(g, x, out):
        return g * (1 - out * out) * (1.0 if x.dtype.name == "float64" else 1.1)

    op = tanh(deriv=..., vjp=vjp)
    testing.check_op(op, ["gradient"])
    with failure_with("test_tanh: gradient of x in sample 0 (shape (); float16)"):
        testing.check_op(op, ["precision"])


def test_a_rule_of_another_type_is_found(table):
    op = tanh(deriv=lambda x, out: 1 - np.float64(2) * ops.square(out) * 0.5)
    testing.check_op(op, ["gradient"])
    op = TABLE.pop("test_tanh").op
    op = tanh(deriv=lambda x, out: 1 - _core.from_buffer(np.float64(1), 12) * out * out)
    testing.check_op(op, ["gradient"])
    with failure_with("test_tanh: gradient in sample 0 (shape (); float16): raised ArgumentError"):
        testing.check_op(op, ["precision"])


def differentiated(row):
    """The names of the operands for which a row has a rule."""
    ruled = [p for k, p in enumerate(row.operands) if row.rules[0 if row.joint else k][0]]
    return [p.name for p in ruled if p.kind not in ("Index", "Condition")]


# Rows without samples for derivatives have tests of their own.
_CHECKED = [name for name, row in TABLE.items() if row.differentiable and row.gradient_samples != []]


@pytest.mark.parametrize("name", _CHECKED)
def test_the_samples_of_every_row_notice_a_wrong_rule(name, monkeypatch):
    """The gradient of one operand is made 0.1 % too large: some sample of the row must tell."""
    row, true = TABLE[name], derivatives.gradients
    for operand in differentiated(row):
        nonzero: list = []  # 0.1 % more than nothing is nothing

        def wrong(case, operands, weights, sources, operand=operand, nonzero=nonzero):
            grads = true(case, operands, weights, sources)
            nonzero += [
                1
                for k, g in zip(sources, grads, strict=True)
                if g is not None and case.params[k].name == operand and np.any(np.asarray(g))
            ]
            return [
                g * 1.001 if g is not None and case.params[k].name == operand else g
                for k, g in zip(sources, grads, strict=True)
            ]

        monkeypatch.setattr(derivatives, "gradients", wrong)
        failures = list(testing.CHECKS["gradient"](row))
        assert not nonzero or any(f"{name}: gradient of {operand}" in line for line in failures), operand


# ---- shapes, edges, errors, memory ------------------------------------------------------------


def test_a_wrong_inferred_shape_is_found(table):
    def call(op, x):
        if x._symbol is None or len(x.shape) < 2:
            return op(x)
        return op(_core.symbolic((*x.shape, 1), x.dtype._code, x._symbol))

    with failure_with(
        "test_tanh: inferred shape in sample 2", "expected float16[2, 3], got float16[2, 3, 1]"
    ):
        testing.check_op(changed(tanh().row, call), ["inferred"])


def test_a_wrong_inferred_type_is_found(table):
    def call(op, x):
        return op(x) if x._symbol is None else op(_core.symbolic(tuple(x.shape), 12, x._symbol))

    with failure_with("test_tanh: inferred shape in sample 0", "expected float16[], got float64[]"):
        testing.check_op(changed(tanh().row, call), ["inferred"])


def test_shapes_that_depend_on_values_are_compared_by_rank(table):
    def call(op, x):
        return (
            op(x) if x._symbol is None else op(_core.symbolic((0,) * len(x.shape), x.dtype._code, x._symbol))
        )

    row = changed(tanh().row, call)
    with failure_with("test_tanh: inferred shape in sample 1"):
        testing.check_op(row, ["inferred"])
    row.shape_from_values = True
    testing.check_op(row, ["inferred"])


@pytest.mark.parametrize(("stated", "got"), [(0.5, "0"), (math.nan, "0"), (math.inf, "0")])
def test_a_wrong_edge_is_found(table, stated, got):
    op = elementwise(
        "test_relu", FLOAT, native="relu", vjp=lambda g, x, out: ops.relu_grad(out, g),
        numpy=lambda x: np.maximum(x, 0), samples=floats(), edges=[((at(0.0),), (stated,))], doc="max(x, 0)",
    )  # fmt: skip
    with failure_with(
        "test_relu: gradient at the edge of x in sample 0 (shape (); float64): expected ", f"got {got}"
    ):
        testing.check_op(op, ["edges"])


def test_nan_and_infinity_are_edges(table):
    edges = [((at(0.0),), (math.inf,)), ((at(math.nan),), (math.nan,))]
    op = elementwise(
        "test_log", FLOAT, native="log", vjp=lambda g, x, out: g / x,
        numpy=np.log, samples=floats(0.5, 2), edges=edges, doc="log(x)",
    )  # fmt: skip
    testing.check_op(op)


def test_a_wrong_error_is_found(table):
    wrong = [
        (call("text"), "IndexError", "", "expected IndexError, got ArgumentError"),
        (
            call("text"),
            "TypeError",
            "no such words",
            "expected TypeError with 'no such words', got ArgumentError",
        ),
        (call((2,)), "ValueError", "", "expected ValueError, but nothing was raised"),
    ]
    for sample, name, fragment, message in wrong:
        op = tanh(bad=[(sample, name, fragment)])
        with failure_with("test_tanh: error of bad sample 0", message):
            testing.check_op(op, ["errors"])
        del TABLE["test_tanh"]


def test_an_op_that_takes_anything_is_found(table):
    def call(op, x=0.0, *_, **__):
        return op(0.0 if x is None or x is ... else x)

    with pytest.raises(testing.ContractError) as caught:
        testing.check_op(changed(tanh().row, call), ["errors"])
    lines = str(caught.value)
    for wrong in (
        "a call without arguments",
        "too many arguments",
        "an unknown argument",
        "x=None",
        "x=Ellipsis",
    ):
        assert f"test_tanh: error of {wrong}: expected" in lines


def test_a_reference_that_fails_is_a_failure(table):
    def numpy(x):
        raise ZeroDivisionError("of the reference")

    with failure_with("test_tanh: value in sample 0", "raised ZeroDivisionError: of the reference"):
        testing.check_op(tanh(numpy=numpy), ["value"])


def test_a_movement_that_keeps_values_is_found(table):
    op = movement(
        "test_flip", FLOAT, "tensor axis:Axes", native="reverse",
        transpose=lambda g, x, out, axis: op(g + 0 * x, axis),
        numpy=lambda x, axis: np.flip(x, axis), samples=[call((2, 3), axis=[0])], doc="flip",
    )  # fmt: skip
    with failure_with(
        "test_flip: reads in sample 0", "the rule of tensor of a movement should keep no values"
    ):
        testing.check_op(op, ["reads"])


def test_reads_of_a_rule_may_depend_on_the_kind_of_call(table):
    def vjp(g, x, out):
        return 2 * g * ops.conj(x) if x.dtype.is_complex else g * 2 * ops.sqrt(out) * ops.sign(x)

    op = elementwise(
        "test_square", FLOAT | COMPLEX, native="square", vjp=vjp,
        numpy=np.square, samples=floats(), doc="x * x",
    )  # fmt: skip
    testing.check_op(op, ["gradient", "reads"])


def test_reads_of_a_rule_may_not_depend_on_sizes(table):
    op = elementwise(
        "test_double", FLOAT, args="x y", native="add",
        vjp=(lambda g, x, y, out: g * x / x if tuple(x.shape) == (2,) else g, 1),
        numpy=np.add, samples=[call((3,), (3,)), call((2,), (2,))], doc="x + y",
    )  # fmt: skip
    with failure_with(
        "test_double: reads in sample 1 (shapes (2,), (2,); float16): expected ['0', '0'] as in sample 0 ",
        "got ['1', '0']",
    ):
        testing.check_op(op, ["reads"])
    with failure_with("test_double: gradient in sample 1", "reads a value it was not found to read"):
        testing.check_op(op, ["gradient"])


def test_a_rule_that_looks_at_values_is_found(table):
    op = tanh(deriv=..., vjp=lambda g, x, out: g * (1 - float(np.sum(out.numpy())) * out))
    with failure_with(
        "test_tanh: reads in sample 0", "the rule of x cannot be traced, so that every value is kept"
    ):
        testing.check_op(op, ["reads"])


def test_a_changed_operand_is_found(table):
    def call(op, x):
        if isinstance(x, _core.Tensor):
            address = np.asarray(x).ctypes.data
            np.ctypeslib.as_array((np.ctypeslib.ctypes.c_double * x._numel).from_address(address))[...] = 0
        return op(x)

    with failure_with("test_tanh: operand x in sample 0", "the op changed its value"):
        testing.check_op(changed(tanh().row, call), ["unchanged"])


# ---- incomplete rows --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ({"doc": ""}, "test_tanh: a row needs a docstring"),
        ({"samples": ()}, "test_tanh: a row needs samples"),
        ({"numpy": None}, "test_tanh: a row needs a NumPy reference"),
        ({"deriv": ...}, "test_tanh: a row with float operands needs a rule, or `rule=None` written out"),
        ({"deriv": (1, 1)}, "test_tanh: 1 operands need 1 rules, got 2"),
        ({"deriv": "1"}, "a rule is a function, 1, -1, 0 or None, got '1'"),
    ],
)
def test_an_incomplete_row_is_refused(table, missing, message):
    with pytest.raises(ValueError) as caught:
        tanh(**missing)
    assert str(caught.value) == message
    assert "test_tanh" not in table


def test_two_rows_of_one_name_are_refused(table):
    tanh()
    with pytest.raises(ValueError, match="test_tanh: there are two rows of this name"):
        tanh()


def test_a_row_without_a_kernel_is_refused(table):
    with pytest.raises(LookupError, match="test_tanh: there is no native kernel named no_such_kernel"):
        tanh(native="no_such_kernel")
    assert "test_tanh" not in table


@pytest.mark.parametrize("kind", [reduction, opaque])
def test_other_kinds_need_a_rule_too(table, kind):
    row = {"numpy": np.sum, "samples": [call((2,))], "doc": "sum", "native": "sum"}
    with pytest.raises(ValueError, match="test_sum: a row with float operands needs a rule"):
        kind("test_sum", FLOAT, "x axis:Axes=None keepdims:Bool=False", **row)
    kind("test_sum", FLOAT, "x axis:Axes=None keepdims:Bool=False", rule=None, **row)
    assert not TABLE["test_sum"].differentiable


def test_ops_without_floats_need_no_rule(table):
    elementwise("test_invert", INT, native="invert", numpy=np.invert, samples=[call(ints([1]))], doc="~x")
    elementwise(
        "test_not",
        BOOL,
        native="logical_not",
        numpy=np.logical_not,
        samples=[call(bools([True]))],
        doc="not x",
    )
    for name in ("test_invert", "test_not"):
        testing.check_op(TABLE[name])
