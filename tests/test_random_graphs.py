"""Random programs: every way to run them gives the same numbers.

Hypothesis draws 5 to 25 ops over a pool of values of random shapes and types. Eager results equal
NumPy's, the function's equal the eager ones; gradients of eager, compiled and traced runs agree
with each other and, in float64, with central differences; so do second derivatives. One trace of a
program whose sizes are not declared is used for all of them.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as tf
from gradtape import _core
from gradtape._src.functions.function import function

# Smooth and bounded on all of the line, so that programs of many ops stay near 1.
UNARY = {
    "tanh": (tf.tanh, np.tanh),
    "sin": (tf.sin, np.sin),
    "sigmoid": (tf.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "exp": (lambda x: tf.exp(-tf.square(x)), lambda x: np.exp(-np.square(x))),
    "log1p": (lambda x: tf.math.log1p(tf.square(x)), lambda x: np.log1p(np.square(x))),
    "sqrt": (lambda x: tf.sqrt(1.0 + x * x), lambda x: np.sqrt(1.0 + x * x)),
    "negative": (tf.negative, np.negative),
    "pow": (lambda x: tf.tanh(x) ** 3, lambda x: np.tanh(x) ** 3),
    "half": (lambda x: x / 2.0 - 0.0, lambda x: x / 2.0),
    "identity": (tf.identity, lambda x: x),
    "softplus": (tf.math.softplus, lambda x: np.logaddexp(x, 0)),
}
BINARY = {
    "add": (tf.add, np.add),
    "subtract": (tf.subtract, np.subtract),
    "multiply": (lambda x, y: x * tf.tanh(y), lambda x, y: x * np.tanh(y)),
    "divide": (lambda x, y: x / (2.0 + tf.sin(y)), lambda x, y: x / (2.0 + np.sin(y))),
    "where": (lambda x, y: tf.where(x > y, tf.sin(x), y), lambda x, y: np.where(x > y, np.sin(x), y)),
    "maximum": (tf.maximum, np.maximum),
    "square of difference": (lambda x, y: tf.tanh((x - y) ** 2), lambda x, y: np.tanh((x - y) ** 2)),
    "mask": (
        lambda x, y: x * tf.cast(tf.logical_and(x > 0, y < 1), x.dtype),
        lambda x, y: x * np.logical_and(x > 0, y < 1).astype(x.dtype),
    ),
}
REDUCE = {
    "sum": (tf.reduce_sum, np.sum),
    "mean": (tf.reduce_mean, np.mean),
    "max": (tf.reduce_max, np.max),
    "min": (tf.reduce_min, np.min),
    "logsumexp": (tf.reduce_logsumexp, None),
}
AXES = [None, 0, 1, -1, (0, 1), (1, 0)]
OPS = [
    "unary",
    "binary",
    "binary",
    "reduce",
    "matmul",
    "transpose",
    "reshape",
    "broadcast",
    "slice",
    "concat",
    "softmax",
]


def _logsumexp(x, axis, keepdims):
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


class Library:
    """The operations of these programs, computed by NumPy or by gradtape."""

    def __init__(self, use_numpy):
        self.which = 1 if use_numpy else 0

    def pick(self, pair):
        return pair[self.which]

    def reduce(self, name, x, axis, keepdims):
        f = self.pick(REDUCE[name]) or _logsumexp
        return f(x, axis=axis, keepdims=keepdims)

    def matmul(self, x, y, ta, tb):
        if self.which:
            return np.tanh((x.T if ta else x) @ (y.T if tb else y) / 2)
        return tf.tanh(tf.matmul(x, y, transpose_a=ta, transpose_b=tb) / 2.0)

    def softmax(self, x):
        if self.which:
            e = np.exp(x - x.max(-1, keepdims=True))
            return e / e.sum(-1, keepdims=True)
        return tf.nn.softmax(x)

    def call(self, name, *args):
        if self.which:
            named = {"broadcast": np.broadcast_to, "concat": np.concatenate}
            return named.get(name, getattr(np, name, None))(*args)
        named = {"broadcast": tf.broadcast_to, "concat": tf.concat}
        return named.get(name, getattr(tf, name, None))(*args)


SIZES = [(1, 1), (2, 3), (3, 3), (1, 4), (5, 1), (4, 3), (9, 70)]


@st.composite
def programs(draw, most=25, least=5, sizes=SIZES):
    """A list of (op, operand numbers, attributes) over inputs of random shapes; values are rank 2 or less."""
    rows, columns = draw(st.sampled_from(sizes))
    shapes = [(rows, columns), (columns,), (rows, 1), ()]
    inputs = [(rows, columns), *draw(st.lists(st.sampled_from(shapes), min_size=1, max_size=3))]
    pool = list(inputs)
    steps = []
    for _ in range(draw(st.integers(least, most))):
        # Recent values more often than old ones: chains are what gets fused.
        pick = st.one_of(st.integers(max(0, len(pool) - 4), len(pool) - 1), st.integers(0, len(pool) - 1))
        i, j = draw(pick), draw(pick)
        op = draw(st.sampled_from(OPS))
        a, b = pool[i], pool[j]
        if op == "binary" and _broadcast(a, b) is not None:
            steps.append((op, (i, j), (draw(st.sampled_from(sorted(BINARY))),)))
            pool.append(_broadcast(a, b))
        elif op == "reduce" and a:
            axis = draw(st.sampled_from(AXES))
            if axis not in (None, 0, -1) and len(a) < 2:
                axis = None
            if isinstance(axis, tuple):
                axis = (0, 1)
            keep = draw(st.booleans())
            steps.append((op, (i,), (draw(st.sampled_from(sorted(REDUCE))), axis, keep)))
            pool.append(np.sum(np.zeros(a), axis=axis, keepdims=keep).shape)
        elif op == "matmul" and len(a) == len(b) == 2:
            fits = [(ta, tb) for ta in (0, 1) for tb in (0, 1) if a[0 if ta else 1] == b[1 if tb else 0]]
            if fits:
                ta, tb = draw(st.sampled_from(fits))
                steps.append((op, (i, j), (bool(ta), bool(tb))))
                pool.append((a[1 if ta else 0], b[0 if tb else 1]))
        elif op == "transpose" and len(a) == 2:
            steps.append((op, (i,), ()))
            pool.append(a[::-1])
        elif op == "reshape":
            n = int(np.prod(a))
            shape = draw(st.sampled_from([(n,), (1, n), (n, 1), a]))
            steps.append((op, (i,), (shape,)))
            pool.append(shape)
        elif op == "broadcast" and _broadcast(a, (rows, columns)) == (rows, columns):
            steps.append((op, (i,), ((rows, columns),)))
            pool.append((rows, columns))
        elif op == "slice" and len(a) == 2:
            steps.append((op, (i,), (slice(None, None, 2), slice(a[1] // 2, None))))
            pool.append(np.zeros(a)[::2, a[1] // 2 :].shape)
        elif op == "concat" and len(a) == len(b) == 2 and a[1] == b[1] and a[0] + b[0] < 20:
            steps.append((op, (i, j), ()))
            pool.append((a[0] + b[0], a[1]))
        elif op == "softmax" and a:
            steps.append((op, (i,), ()))
            pool.append(a)
        else:
            steps.append(("unary", (i,), (draw(st.sampled_from(sorted(UNARY))),)))
            pool.append(a)
    results = sorted(draw(st.sets(st.integers(0, len(pool) - 1), min_size=1, max_size=3)) | {len(pool) - 1})
    return inputs, steps, results, draw(st.integers(0, 2**16))


def _broadcast(a, b):
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


def run(program, inputs, use_numpy=False, at_any_size=False):
    """The results of a program for these inputs, which may have other sizes than it was drawn for."""
    _, steps, results, _ = program
    lib = Library(use_numpy)
    pool = list(inputs)
    for op, operands, attrs in steps:
        xs = [pool[k] for k in operands]
        if at_any_size:
            attrs = computed(op, xs[0], attrs, inputs[0])
        if op == "unary":
            out = lib.pick(UNARY[attrs[0]])(*xs)
        elif op == "binary":
            out = lib.pick(BINARY[attrs[0]])(*xs)
        elif op == "reduce":
            out = lib.reduce(attrs[0], xs[0], *attrs[1:])
        elif op == "matmul":
            out = lib.matmul(*xs, *attrs)
        elif op == "softmax":
            out = lib.softmax(*xs)
        elif op == "slice":
            out = xs[0][attrs]
        elif op == "concat":
            out = lib.call("concat", xs, 0)
        else:
            out = lib.call(op, *xs, *attrs)
        pool.append(out)
    return [pool[k] for k in results]


def computed(op, x, attrs, first):
    """The attributes of an op that are sizes, as tensors."""
    if op == "reshape":
        ones = tuple(d for d in attrs[0] if d == 1)
        return (tf.shape(x) if not ones and len(attrs[0]) == 2 else [d if d == 1 else -1 for d in attrs[0]],)
    if op == "broadcast":
        return (tf.shape(first),)
    if op == "slice":
        return slice(None, None, 2), slice(tf.shape(x)[1] // 2, None)
    return attrs


def numbers(program, dtype):
    rng = np.random.default_rng(program[3])
    return [np.asarray(rng.uniform(-2, 2, shape), dtype) for shape in program[0]]


def total(program, inputs, **options):
    """A weighted sum of all results, so that no two of them can cancel out."""
    results = run(program, inputs, **options)
    return tf.add_n([tf.reduce_sum(tf.sin(r)) * (k + 1.0) for k, r in enumerate(results)])


def first_order(program, inputs, **options):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = total(program, inputs, **options)
    return tape.gradient(y, inputs, unconnected_gradients="zero")


def second_order(program, inputs):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        grads = first_order(program, inputs)
        y = tf.add_n([tf.reduce_sum(tf.sin(g)) for g in grads])
    return tape.gradient(y, inputs, unconnected_gradients="zero")


def close(actual, expected, limit):
    for a, e in zip(actual, expected, strict=True):
        a, e = np.asarray(a), np.asarray(e)
        assert a.shape == e.shape and a.dtype == e.dtype
        scale = max(1.0, np.abs(e).max(initial=0))
        np.testing.assert_allclose(a / scale, e / scale, rtol=0, atol=limit)


@pytest.fixture(autouse=True)
def _compile_setting():
    before = _core.is_compiling()
    yield
    _core.set_compile(before)


@pytest.mark.parametrize("dtype, limit", [("float64", 1e-11), ("float32", 2e-4)])
@given(program=programs())
@settings(max_examples=100)
def test_values(dtype, limit, program):
    arrays = numbers(program, dtype)
    tensors = [tf.constant(a) for a in arrays]
    eager = run(program, tensors)
    # In single precision a rounding error may flip a comparison, which is not tested here.
    if dtype == "float64":
        close(eager, run(program, arrays, use_numpy=True), limit)
    traced = function(lambda *xs: run(program, xs))
    for _ in range(2):
        close(traced(*tensors), eager, limit)
    for a, t in zip(arrays, tensors, strict=True):
        np.testing.assert_array_equal(t, a)  # the inputs were not overwritten


@given(program=programs())
@settings(max_examples=80)
def test_gradients(program):
    arrays = numbers(program, np.float64)
    tensors = [tf.constant(a) for a in arrays]
    _core.set_compile(False)
    expected = first_order(program, tensors)
    _core.set_compile(True)
    _core.clear_compiled()
    for _ in range(3):
        close(first_order(program, tensors), expected, 1e-10)
    assert _core.compile_info()["failures"] == 0
    close(function(lambda *xs: first_order(program, list(xs)))(*tensors), expected, 1e-10)
    forward = function(lambda *xs: total(program, xs))
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            y = forward(*tensors)
        close(tape.gradient(y, tensors, unconnected_gradients="zero"), expected, 1e-10)


@given(program=programs(most=12))
@settings(max_examples=40)
def test_gradients_are_slopes(program):
    """Along one random direction; the contract test checks whole Jacobians."""
    arrays = numbers(program, np.float64)
    rng = np.random.default_rng(1)
    direction = [rng.normal(size=a.shape) for a in arrays]
    grads = first_order(program, [tf.constant(a) for a in arrays])
    slope = sum(float(np.sum(np.asarray(g) * d)) for g, d in zip(grads, direction, strict=True))

    def along(t):
        moved = [tf.constant(a + t * d) for a, d in zip(arrays, direction, strict=True)]
        return float(total(program, moved))

    estimates = [(along(h) - along(-h)) / (2 * h) for h in (1e-5, 1e-6)]
    if abs(estimates[0] - estimates[1]) > 1e-5 * max(1, abs(estimates[1])):
        return  # a kink or a jump of a comparison, maximum or mask lies in between
    assert slope == pytest.approx(estimates[1], rel=2e-5, abs=2e-5)


@given(program=programs(most=14))
@settings(max_examples=50)
def test_second_order(program):
    tensors = [tf.constant(a) for a in numbers(program, np.float64)]
    _core.set_compile(False)
    expected = second_order(program, tensors)
    _core.set_compile(True)
    _core.clear_compiled()
    for _ in range(3):
        close(second_order(program, tensors), expected, 1e-9)
    close(function(lambda *xs: second_order(program, list(xs)))(*tensors), expected, 1e-9)
    inner = function(lambda *xs: first_order(program, list(xs)))
    for _ in range(2):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            y = tf.add_n([tf.reduce_sum(tf.sin(g)) for g in inner(*tensors)])
        close(tape.gradient(y, tensors, unconnected_gradients="zero"), expected, 1e-9)


def of_size(shape, drawn, rows, columns):
    """The shape of an input for another number of rows and columns than it was drawn for."""
    size = {drawn[0]: rows, drawn[1]: columns}
    return tuple(size.get(d, d) for d in shape)


@given(program=programs(most=12, sizes=[(5, 7)]))
@settings(max_examples=15)
def test_one_trace_for_all_sizes(program):
    """Every size is declared None; the second call for a size runs a program."""
    declared = [tf.TensorSpec([None if d > 1 else d for d in s], tf.float64) for s in program[0]]
    traces = []

    def both(*xs):
        traces.append(None)
        xs = list(xs)
        return run(program, xs, at_any_size=True), first_order(program, xs, at_any_size=True)

    traced = function(both, input_signature=declared)
    rng = np.random.default_rng(program[3])
    for rows, columns in [(5, 7), (3, 4), (8, 2)]:
        shapes = [of_size(s, (5, 7), rows, columns) for s in program[0]]
        tensors = [tf.constant(rng.uniform(-2, 2, s)) for s in shapes]
        try:
            expected = (
                run(program, tensors, at_any_size=True),
                first_order(program, tensors, at_any_size=True),
            )
        except tf.errors.InvalidArgumentError:  # sizes that were equal by chance when it was drawn
            with pytest.raises(tf.errors.InvalidArgumentError):
                traced(*tensors)
            continue
        for _ in range(2):
            values, grads = traced(*tensors)
            close(values, expected[0], 1e-10)
            close(grads, expected[1], 1e-10)
    assert len(traces) == 1
