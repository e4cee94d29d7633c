"""AutoGraph: every statement gives in a function what it gives in Python, with its gradients.

Each program of `autograph_programs` runs eagerly, as a function with the tape outside, and as a function with the
tape inside; values, first and second derivatives must agree.
"""

from __future__ import annotations

import inspect
import logging
import os

import numpy as np
import pytest

import gradtape as tf
from tests.autograph_programs import PROGRAMS

X, NEGATIVE = 1.3, -0.7


def derivatives(f, x):
    """Value, gradient and second derivative."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
    return y, g, outer.gradient(g, x, unconnected_gradients="zero")


@pytest.fixture
def no_fallback(caplog):
    """Programs here must be traced, not run eagerly, and converted."""
    with caplog.at_level(logging.WARNING, "gradtape"):
        yield
    said = [r.getMessage() for r in caplog.records]
    assert not [m for m in said if "eagerly" in m or "AutoGraph" in m], said


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("value", [X, NEGATIVE])
def test_program(program, value, no_fallback):
    x = tf.constant(value)
    expected = [t.numpy() for t in derivatives(program, x)]
    f = tf.function(program)
    np.testing.assert_allclose(f(x).numpy(), expected[0], rtol=1e-5)
    outside = [t.numpy() for t in derivatives(f, x)]
    np.testing.assert_allclose(outside, expected, rtol=2e-4, atol=1e-5)
    inside = tf.function(lambda v: derivatives(program, v))
    np.testing.assert_allclose([t.numpy() for t in inside(x)], expected, rtol=2e-4, atol=1e-5)
    # One trace serves both ways of a branch.
    other = tf.constant(-value)
    np.testing.assert_allclose(f(other).numpy(), program(other).numpy(), rtol=1e-5)
    assert f.experimental_get_tracing_count() == 1


# ---- variables and objects ----------------------------------------------------------------------


def test_variables_assigned_in_branches_and_loops():
    v, w = tf.Variable(1.0), tf.Variable(0.0)

    def step(x):
        if x > 0:
            v.assign_add(x)
        else:
            w.assign(v * 2.0)
        for i in tf.range(3):
            v.assign(v * 1.5)
            w.assign_add(tf.cast(i, tf.float32))
        return v + w

    def run(f):
        v.assign(1.0), w.assign(0.0)
        out = [f(tf.constant(x)).numpy() for x in (2.0, -1.0, 0.5)]
        return [*out, v.numpy(), w.numpy()]

    np.testing.assert_allclose(run(tf.function(step)), run(step), rtol=1e-6)


def test_gradients_of_variables_through_control_flow():
    v = tf.Variable([1.0, -2.0])

    def loss(x):
        y = x
        for i in tf.range(3):
            if tf.reduce_sum(y) > 0:
                y = y * v
            else:
                y = y - v * v
        return tf.reduce_sum(y)

    x = tf.constant([0.5, 0.3])
    results = []
    for f in (loss, tf.function(loss)):
        with tf.GradientTape() as tape:
            y = f(x)
        assert [w is v for w in tape.watched_variables()] == [True]
        results.append((y.numpy(), tape.gradient(y, v).numpy()))
    np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-6)
    np.testing.assert_allclose(results[1][1], results[0][1], rtol=1e-6)


def test_embedding_in_a_loop():
    table = tf.Variable(np.arange(12.0, dtype=np.float32).reshape(4, 3))

    def loss(ids):
        total = tf.zeros([3])
        for i in ids:
            total = total * 0.5 + tf.nn.embedding_lookup(table, i)
        return tf.reduce_sum(total * total)

    ids = tf.constant([1, 3, 1])
    grads = []
    for f in (loss, tf.function(loss)):
        with tf.GradientTape() as tape:
            y = f(ids)
        grads.append(tf.convert_to_tensor(tape.gradient(y, table)).numpy())
    np.testing.assert_allclose(grads[1], grads[0], rtol=1e-5)


class Base:
    def scale(self, x):
        return x * 2.0 if x > 0 else x * 3.0


class Model(Base):
    def __init__(self):
        self.w = tf.Variable(2.0)
        self.total = tf.constant(0.0)
        self.__private = 5.0

    def scale(self, x):
        if x > 0:
            return super().scale(x) + self.__private
        return super().scale(x)

    def helper(self, x):
        while x < 10.0:
            x = x * self.w
        return x

    @tf.function
    def __call__(self, x):
        return self.helper(x) + self.scale(x)

    @tf.function
    def accumulate(self, x):
        self.total = tf.constant(0.0)
        for v in x:
            if v > 0:
                self.total = self.total + v
        return self.total


def test_methods():
    m = Model()
    assert m(tf.constant(1.5)).numpy() == 12.0 + 3.0 + 5.0
    np.testing.assert_allclose(m(tf.constant(0.5)).numpy(), 16.0 + 1.0 + 5.0)
    assert m.accumulate(tf.constant([1.0, -2.0, 3.0])).numpy() == 4.0
    with tf.GradientTape() as tape:
        y = m(tf.constant(1.5))
    np.testing.assert_allclose(tape.gradient(y, m.w).numpy(), 1.5 * 3 * 4.0)


def test_callable_objects_and_local_functions_are_converted():
    class Layer:
        def __call__(self, x):
            if x > 0:
                return x
            return x * 0.1

    layer = Layer()
    f = tf.function(lambda x: layer(x) * 2.0)
    assert f(tf.constant(3.0)).numpy() == 6.0
    np.testing.assert_allclose(f(tf.constant(-3.0)).numpy(), -0.6)


def test_functions_given_to_ops_are_converted():
    def body(i, x):
        if x > 10.0:
            x = x - 10.0
        else:
            x = x * 2.0
        return i + 1, x

    f = tf.function(lambda x: tf.while_loop(lambda i, _: i < 5, body, (0, x))[1])
    assert f(tf.constant(3.0)).numpy() == 8.0  # 6, 12, 2, 4, 8

    def relu(v):
        return v if v > 0 else v * 0.0

    g = tf.function(lambda x: tf.map_fn(relu, x))
    assert g(tf.constant([1.0, -1.0])).numpy().tolist() == [1.0, 0.0]


def test_defaults_keyword_only_and_closures_are_those_of_the_function():
    k = 3.0

    def f(x, n=2, *args, scale=0.5, **kwargs):
        """Doc."""
        if x > 0:
            return x * n * scale * k + kwargs.get("more", 0.0)
        return x

    g = tf.function(f)
    assert g(tf.constant(1.0)).numpy() == 3.0
    assert g(tf.constant(1.0), 4, scale=1.0, more=2.0).numpy() == 14.0
    assert g.__doc__ == "Doc."


# ---- Python at trace time -----------------------------------------------------------------------


def test_python_effects_happen_once(capsys):
    seen = []

    @tf.function
    def f(x):
        for i in tf.range(3):
            seen.append(1)
            print("tracing")
            x = x + 1.0
        return x

    f(tf.constant(1.0))
    f(tf.constant(2.0))
    assert seen == [1]
    assert capsys.readouterr().out == "tracing\n"


def test_effects_of_graphs_happen_each_time(capfd):
    @tf.function
    def f(x):
        for i in tf.range(3):
            if i > 0:
                tf.print("i =", i)
            x = x + 1.0
        return x

    f(tf.constant(1.0))
    f(tf.constant(1.0))
    assert capfd.readouterr().err == "i = 1\ni = 2\n" * 2


def test_functions_run_eagerly():
    tf.config.run_functions_eagerly(True)
    try:
        seen = []

        @tf.function
        def f(x):
            while x < 4.0:
                seen.append(x.numpy())
                x = x + 1.0
            return x

        assert f(tf.constant(1.0)).numpy() == 4.0
        assert seen == [1.0, 2.0, 3.0]
    finally:
        tf.config.run_functions_eagerly(False)


def test_do_not_convert_and_autograph_false():
    def f(x):
        if x > 0:
            return x
        return -x

    with pytest.raises(
        tf.errors.OperatorNotAllowedInGraphError, match="Using a symbolic `tf.Tensor` as a Python `bool`"
    ):
        tf.function(f, autograph=False)(tf.constant(1.0))
    left = tf.autograph.experimental.do_not_convert(lambda x: f(x))
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(lambda x: left(x))(tf.constant(1.0))


def test_source_not_found(caplog):
    space: dict = {}
    exec("def f(x):\n    return x if x > 0 else -x\n", space)
    exec("import contextlib\ndef g(x):\n    with contextlib.nullcontext():\n        return x * 2.0\n", space)
    with caplog.at_level(logging.WARNING, "gradtape"):
        assert tf.function(space["g"])(tf.constant(2.0)).numpy() == 4.0
        with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
            tf.function(space["f"])(tf.constant(1.0))
    # `g` does not branch: there was nothing to transform.
    (said,) = [r.getMessage() for r in caplog.records]
    assert "AutoGraph could not transform <function f" in said and "tf.cond" in said


def test_source_is_found_without_a_search_through_all_modules(monkeypatch):
    searches = []
    real = inspect.getmodule
    monkeypatch.setattr(inspect, "getmodule", lambda *about: searches.append(about) or real(*about))

    @tf.function
    def f(x):
        g = lambda y: -y if y > 1 else y  # noqa: E731
        return g(x) if x > 0 else x * 2.0

    assert [float(f(tf.constant(x))) for x in (2.0, 0.5, -1.0)] == [-2.0, 0.5, -2.0]
    assert searches == []


def test_generators_are_left_alone():
    def items(x):
        yield x
        yield x * 2.0

    @tf.function
    def f(x):
        total = x * 0.0
        for v in items(x):
            if v > 0:
                total = total + v
        return total

    assert f(tf.constant(2.0)).numpy() == 6.0


# ---- errors -------------------------------------------------------------------------------------


def no_else(x):
    if x > 0:
        y = x
    return y


def loop_shape(x):
    y = tf.stack([x])
    for _ in tf.range(3):
        y = tf.concat([y, y], 0)
    return y


def loop_dtype(x):
    while x < 10.0:
        x = tf.cast(x, tf.int32)
    return x


def branch_dtype(x):
    if x > 0:
        y = x * 2.0
    else:
        y = 0
    return y


def branch_none(x):
    if x > 0:
        y = None
    else:
        y = x
    return y


def no_return(x):
    if x > 0:
        return x


def structure(x):
    while x < 10.0:
        x = [x, x]
    return x


def condition_dtype(x):
    if x:
        return x
    return x * 2.0


def vector_condition(x):
    while tf.stack([x > 0, x > 1]):
        x = x - 1.0
    return x


def asserts(x):
    assert x > 0
    return x


def enumerates(x):
    total = x
    for _, v in enumerate(tf.stack([x, x])):
        total = total + v
    return total


def text_in_branch(x):
    if x > 0:
        kind = "a"
    else:
        kind = "b"
    return {"a": x, "b": x * 2.0}[kind]


ERRORS = [
    (no_else, ValueError, "'y' must also be initialized in the else branch"),
    (loop_shape, ValueError, r"'y' has shape \(1,\) before the loop, but shape \(2,\) after one iteration. Use tf.autograph"),
    (loop_dtype, TypeError, "'x' has dtype float32 before the loop, but dtype int32 after one iteration"),
    (branch_dtype, TypeError, "'y' has dtype float32 in the main branch, but dtype int32 in the else branch"),
    (branch_none, ValueError, "'y' is None at the end of the main branch"),
    (no_return, ValueError, "the else branch must also have a return statement"),
    (structure, TypeError, "'x' does not have the same nested structure after one iteration"),
    (condition_dtype, ValueError, "condition of if statement expected to be `tf.bool` scalar"),
    (vector_condition, ValueError, "condition of while loop expected to be `tf.bool` scalar"),
    (asserts, tf.errors.OperatorNotAllowedInGraphError, "Using a symbolic `tf.Tensor` as a Python `bool` is not allowed"),
    (enumerates, tf.errors.OperatorNotAllowedInGraphError, "Iterating over a symbolic `tf.Tensor` is not allowed"),
    (text_in_branch, TypeError, "'kind' must be a tensor, a number, or the same object"),
]  # fmt: skip


@pytest.mark.parametrize("program, kind, text", ERRORS, ids=lambda p: getattr(p, "__name__", ""))
def test_error(program, kind, text):
    with pytest.raises(kind, match=text) as caught:
        tf.function(program)(tf.constant(1.0))
    note = "\n".join(caught.value.__notes__)
    line = program.__code__.co_firstlineno
    assert note.startswith("in user code:")
    assert f'File "{__file__}", line ' in note
    found = int(note.rpartition(", in")[0].rpartition("line ")[2])
    assert line < found <= line + 5


def test_lines_of_places_are_the_users(caplog):
    def f(x, i):
        row = [x, x]
        if x > 0:
            row[i] = x * 2.0  # an index that is a tensor: the function runs eagerly
        return row[0]

    with caplog.at_level(logging.WARNING, "gradtape"):
        assert tf.function(f)(tf.constant(1.0), tf.constant(0)).numpy() == 2.0
    (said,) = [r.getMessage() for r in caplog.records if "eagerly" in r.getMessage()]
    first = f.__code__.co_firstlineno
    assert int(said.partition(f"{os.path.basename(__file__)}:")[2].partition(":")[0]) in (
        first + 2,
        first + 3,
    ), said


def test_errors_when_the_graph_runs():
    @tf.function
    def f(x):
        for _ in tf.range(tf.cast(x, tf.int32)):
            z = x + 1.0
        return z

    assert f(tf.constant(2.0)).numpy() == 3.0
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="loop must iterate at least once to initialize z"
    ):
        f(tf.constant(0.0))


def test_tracebacks_show_the_source_of_the_user():
    @tf.function
    def f(x):
        if x > 0:
            raise KeyError("here")
        return x

    with pytest.raises(KeyError) as caught:
        f(tf.constant(1.0))
    last = caught.traceback[-1]
    assert str(last.path) == __file__
    assert 'raise KeyError("here")' in str(last.statement)


def test_loop_variables_of_other_kinds():
    """TensorFlow gives up on these; here they have a meaning."""

    @tf.function
    def f(x):
        for i in range(4):
            if x > 10.0:
                break
            x = x * 2.0
        return x

    assert f(tf.constant(3.0)).numpy() == 12.0
    assert f(tf.constant(0.5)).numpy() == 8.0


# ---- training -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "optimizer", [lambda: tf.optimizers.SGD(0.1, momentum=0.9), lambda: tf.optimizers.Adam(0.05)]
)
def test_training_loop_inside_of_a_function(optimizer):
    data = np.random.RandomState(0).randn(5, 8, 2).astype(np.float32)

    def run(wrap):
        w, b, opt = tf.Variable([[0.5], [-0.3]]), tf.Variable([0.1]), optimizer()

        def epoch(xs):
            total = 0.0
            for x in xs:
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean((x @ w + b - tf.reduce_sum(x, -1, keepdims=True)) ** 2)
                grads = tape.gradient(loss, [w, b])
                if loss > 0.5:
                    opt.apply_gradients(zip(grads, [w, b], strict=True))
                total += loss
            return total

        f = wrap(epoch)
        losses = [f(tf.constant(data)).numpy() for _ in range(4)]
        return [*losses, *w.numpy().ravel(), *b.numpy(), opt.iterations.numpy()]

    np.testing.assert_allclose(run(tf.function), run(lambda f: f), rtol=1e-4)


def test_tape_from_outside_of_a_branch():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x * x
        if x > 0:
            g = tape.gradient(y, x)
        else:
            g = x
        return g

    assert [f(tf.constant(v)).numpy() for v in (2.0, -2.0)] == [12.0, -2.0]


def test_stop_recording_inside_of_a_loop():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            while y < 100.0:
                y = y * y
                with tape.stop_recording():
                    other = y + 1.0
        return tape.gradient(y, x), other

    assert [t.numpy() for t in f(tf.constant(3.0))] == [17496.0, 6562.0]


def test_sorted_of_a_tensor():
    @tf.function
    def f(x):
        return sorted(x), sorted(x, reverse=True), sorted(x, key=lambda a: -a), sorted([2, 1])

    results = f(tf.constant([3, 1, 2]))
    for got, expected in zip(results, ([1, 2, 3], [3, 2, 1], [3, 2, 1], [1, 2]), strict=True):
        np.testing.assert_array_equal(got, expected)
