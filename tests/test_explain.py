"""tape.explain: every cause of a gradient that is None, with the line it comes from."""

import sys

import numpy as np
import pytest

import gradtape as tf


def explained(run, persistent=False, **options):
    """What is said of `run(tape)`, which gives a target and a source, with lines on."""
    with tf.debug.lines():
        with tf.GradientTape(persistent=persistent, **options) as tape:
            target, source = run(tape)
        assert tape.gradient(target, source) is None
        return tape.explain(target, source)


def never_watched(tape):
    x = tf.constant(2.0)
    return x * x, x  # broken here


def not_trainable(tape):
    v = tf.Variable(2.0, trainable=False)
    return v * v, v  # broken here


def left_by_numpy(tape):
    v = tf.Variable(2.0)
    y = v * v
    z = np.sqrt(y.numpy())  # broken here
    return tf.constant(z) * 2.0, v


def left_by_float(tape):
    v = tf.Variable(2.0)
    z = float(v * v)  # broken here
    return tf.constant(z) * 2.0, v


def integer_cast(tape):
    v = tf.Variable([1.2, 3.4])
    whole = tf.cast(v, tf.int32)  # broken here
    return tf.reduce_sum(tf.cast(whole, tf.float32)), v


def argmax(tape):
    v = tf.Variable([1.0, 3.0])
    best = tf.argmax(v * 2.0)  # broken here
    return tf.cast(best, tf.float32) * 2.0, v


def stopped(tape):
    v = tf.Variable(2.0)
    held = tf.stop_gradient(v * v)  # broken here
    return held + 1.0, v


def without_gradient(tape):
    v = tf.Variable(2.5)
    steps = tf.floor(v * 2.0)  # broken here
    return steps * 3.0, v


def assigned(tape):
    v, w = tf.Variable(2.0), tf.Variable(0.0)
    w.assign(v * v)  # broken here
    return w * 3.0, v


def independent(tape):
    v, w = tf.Variable(2.0), tf.Variable(1.0)
    return w * 3.0, v  # broken here


def constant(tape):
    v = tf.Variable(2.0)
    return tf.constant(3.0) * 2.0, v  # broken here


def compared(tape):
    v = tf.Variable([2.0, 1.0])
    right = v > 1.5  # broken here
    return tf.reduce_mean(tf.cast(right, tf.float32)), v


def through_np(tape):
    v = tf.Variable([2.0, 1.0])
    return tf.reduce_sum(tf.convert_to_tensor(np.sqrt(v))), v  # broken here


def numpy_function(tape):
    v = tf.Variable([2.0, 3.0])
    y = tf.numpy_function(lambda a: a * 2, [v], tf.float32)  # broken here
    return tf.reduce_sum(y), v


def paused(tape):
    v = tf.Variable(2.0)
    with tape.stop_recording():
        y = v * v  # broken here
    return y * 3.0, v


def watched_late(tape):
    x = tf.constant(2.0)
    y = x * 3.0  # broken here
    tape.watch(x)
    return y, x


def returned_none(tape):
    @tf.custom_gradient
    def f(x):
        def grad(g):  # broken here
            return None

        return x * 2.0, grad

    v = tf.Variable(2.0)
    return f(v * 3.0) + 1.0, v


def a_copy(tape):
    x = tf.constant([1.0, 2.0])
    tape.watch(x)
    copy = tf.identity(x)  # broken here
    return tf.reduce_sum(x * x), copy


def added_in_place(tape):
    v, x = tf.Variable(2.0), tf.Variable(1.0)
    v.assign_add(x)  # broken here
    return v * 3.0, x


def in_a_function(tape):
    @tf.function
    def f(x):
        whole = tf.cast(x * 2.0, tf.int32)  # broken here
        return tf.reduce_sum(tf.cast(whole, tf.float32))

    v = tf.Variable([2.0, 3.0])
    return f(v), v


CASES = {
    constant: "constant",
    compared: "no gradient",
    through_np: "left for NumPy",
    numpy_function: "left for NumPy",
    paused: "outside the context",
    watched_late: "watched late",
    returned_none: "custom gradient",
    a_copy: "independent",
    added_in_place: "assigned",
    in_a_function: "no gradient",
    never_watched: "never watched",
    not_trainable: "not trainable",
    left_by_numpy: "left for NumPy",
    left_by_float: "left for NumPy",
    integer_cast: "no gradient",
    argmax: "no gradient",
    stopped: "stop_gradient",
    without_gradient: "no gradient",
    assigned: "assigned",
    independent: "independent",
}


@pytest.mark.parametrize("case", CASES, ids=[c.__name__ for c in CASES])
def test_cause_and_line(case):
    said = explained(case)
    assert said.cause == CASES[case]
    assert "# broken here" in said.line.text, said
    assert said.fix and str(said.line.number) in str(said)
    assert not said.connected


def test_an_integer_source():
    said = explained(lambda tape: (tf.cast(tf.Variable(3), tf.float32) * 2.0, tf.Variable(3)))
    assert said.cause == "integer" and "int32" in said.text


def test_outside_the_context():
    with tf.debug.lines():
        v = tf.Variable(2.0)
        with tf.GradientTape() as tape:
            y = v * v
        z = y * 3.0  # outside
        said = tape.explain(z, v)
    assert said.cause == "outside the context"
    assert "# outside" in said.line.text


def test_before_the_context():
    with tf.debug.lines():
        v = tf.Variable(2.0)
        y = v * v  # before
        with tf.GradientTape() as tape:
            z = y * 3.0
        said = tape.explain(z, v)
    assert said.cause == "outside the context"
    assert "# before" in said.line.text


def test_the_inner_gradient_outside_of_the_outer_tape():
    with tf.debug.lines():
        x = tf.Variable(3.0)
        with tf.GradientTape() as outer, tf.GradientTape() as inner:
            y = x * x * x
        g = inner.gradient(y, x)  # outside
        said = outer.explain(g, x)
    assert said.cause == "outside the context" and "second derivatives" in said.fix
    assert "# outside" in said.line.text


@pytest.mark.parametrize("times", [1, 3])
def test_a_variable_that_was_overwritten(times):
    with tf.debug.lines():
        v = tf.Variable([1.0, 2.0], name="weights")
        for _ in range(times):
            v = v - 0.1 * v  # no variable any more
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(v * v)
        said = tape.explain(y, v)
    assert said.cause == "overwritten" and "weights" in said.text and "assign_sub" in said.fix
    assert "# no variable" in said.line.text


def test_printing_is_not_blamed_for_sure():
    with tf.debug.lines():
        v, w = tf.Variable(2.0), tf.Variable(1.0)
        with tf.GradientTape() as tape:
            float(v * v)
            y = w * 3.0
        assert "if it was computed from them" in tape.explain(y, v).text


def test_in_the_third_step_of_a_loop():
    """By then a tape has compiled what it saw."""
    v = tf.Variable([2.0, 3.0])
    for _ in range(5):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.round(v * v))
        assert tape.gradient(y, v) is None
    with tf.GradientTape() as tape:
        y = v * v
        z = tf.reduce_sum(tf.round(y))
    said = tape.explain(z, v)
    assert said.cause == "no gradient" and "up to mul (float32[2])" in said.text
    assert said.line.text == "z = tf.reduce_sum(tf.round(y))" and "debug.lines()" in said.fix
    assert "The target is not on the tape" in said.text


def test_code_that_was_typed_in():
    """As in a notebook: there is no file to read the line from."""
    code = "with tf.GradientTape() as tape:\n  y = tf.round(v)\n  z = y * 2.0\nsaid = tape.explain(z, v)"
    scope = {"tf": tf, "v": tf.Variable(2.0)}
    with tf.debug.lines():
        exec(compile(code, "<stdin>", "exec"), scope)
    said = scope["said"]
    assert (said.line.file, said.line.number) == ("<stdin>", 2)
    assert "at <stdin>:2\n" in str(said)


def test_without_lines_a_custom_gradient_and_a_function_are_named():
    @tf.custom_gradient
    def f(x):
        def grad(g):  # the rule
            return None

        return x * 2.0, grad

    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = f(v)
    said = tape.explain(y, v)
    assert said.cause == "custom gradient" and "# the rule" in said.line.text
    with tf.GradientTape() as tape:
        y = tf.function(lambda x: tf.stop_gradient(x) * 3.0, autograph=False)(v)
    assert "Inside a tf.function" in tape.explain(y, v).text


def test_without_lines_it_says_what_the_target_depends_on():
    v, w = tf.Variable(2.0, name="v"), tf.Variable(1.0, name="w")
    with tf.GradientTape() as tape:
        y = w * 3.0
    said = tape.explain(y, v)
    assert said.cause == "never read" and "depends on the variable 'w:0'" in said.text


def test_layers_of_keras():
    keras = tf.keras
    used, forgotten = keras.layers.Dense(3, name="used"), keras.layers.Dense(3, name="forgotten")
    x = tf.ones([2, 4])
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    with tf.debug.lines():
        used(x), forgotten(x)
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(used(x))
        said = tape.explain(y, forgotten.kernel)
        assert said.cause == "independent" and "'forgotten/kernel'" in said.text
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(model.predict(x, verbose=0))  # leaves
        said = tape.explain(y, model.weights[0])
        assert said.cause == "left for NumPy" and "# leaves" in said.line.text
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(model(x))  # the input
        said = tape.explain(y, x)
        assert said.cause == "never watched" and "# the input" in said.line.text


@pytest.mark.parametrize("make", [tf.optimizers.SGD, tf.keras.optimizers.SGD], ids=["own", "keras"])
def test_optimizers_say_why(make):
    v = tf.Variable(2.0)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.round(v) * 2.0
        make(0.1).apply_gradients([(tape.gradient(loss, v), v)])

    with pytest.raises(ValueError, match=r"(?s)No gradients.*tf.debug.lines"):
        step()
    with (
        tf.debug.lines(),
        pytest.raises(ValueError, match=r"(?s)No gradients.*round has no gradient.*test_explain"),
    ):
        step()


def test_a_long_program_is_kept_in_part(monkeypatch):
    # The module; `tf.debug.lines` is the function.
    monkeypatch.setattr(sys.modules["gradtape._src.debug.lines"], "_MOST_VALUES", 100)
    v = tf.Variable(1.0)
    with tf.debug.lines() as record:
        for _ in range(200):
            with tf.GradientTape() as tape:
                y = tf.round(v * v)
        assert len(record._held) <= 101 and len(record.origins) <= 101 and len(record.tapes) <= 101
        assert tape.explain(y, v).cause == "no gradient"


def test_watch_accessed_variables_off():
    v = tf.Variable(2.0)
    said = explained(lambda tape: (v * v, v), watch_accessed_variables=False)
    assert said.cause == "never watched" and "watch_accessed_variables=False" in said.text


def test_connected_sources_are_reported_as_connected():
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
    assert tape.explain(y, v).connected
    assert float(tape.gradient(y, v)) == 4.0  # asking has used nothing up


def test_without_lines_it_says_how_to_get_them():
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.constant(float(v * v))
    said = tape.explain(y, v)
    assert said.cause == "left for NumPy" and "float()" in said.text and "tf.debug.lines()" in said.fix
    with tf.GradientTape() as tape:
        y = tf.constant(((v * v).__float__)())  # nothing that the source would show
    said = tape.explain(y, v)
    assert said.cause == "unknown" and "tf.debug.lines()" in said.fix and said.line is None


class Rounding(tf.Module):
    def loss(self, x):
        return self.inner(x) + 1.0

    @tf.function
    def inner(self, x):
        return tf.cast(tf.cast(x, dtype="int32"), tf.float32)  # here


def test_without_lines_functions_that_the_context_calls_are_read():
    v, module = tf.Variable(2.5), Rounding()
    with tf.GradientTape() as tape:
        z = module.loss(v)
    said = tape.explain(z, v)
    assert said.cause == "no gradient" and "int32" in said.text and said.line.text.endswith("# here")


def test_without_lines_a_tape_is_known_from_others():
    def step(v):
        with tf.GradientTape():
            z = v * v
        data = tf.constant(2.0)
        with tf.GradientTape() as tape:
            y = z * data
        return tape.explain(y, v)

    said = step(tf.Variable(1.0))
    assert said.cause == "another tape" and said.line.text == "z = v * v" and "data" not in said.text


def test_a_tape_that_is_used_up():
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
    tape.gradient(y, v)
    assert tape.explain(y, v).cause == "used up"
    # What the tape has not forgotten it still says.
    fixed, unread = tf.Variable(1.0, trainable=False), tf.Variable(1.0)
    causes = [tape.explain(y, x).cause for x in (tf.constant(1.0), tf.constant(1), fixed, unread)]
    assert causes == ["never watched", "integer", "not trainable", "never read"]


def test_raise():
    v, w = tf.Variable(2.0), tf.Variable(1.0, name="unused")
    with tf.GradientTape() as tape:
        y = v * v
    with pytest.raises(ValueError, match="(?s)no gradient with respect to 'unused:0'.*Fix"):
        tape.gradient(y, [v, w], unconnected_gradients="raise")
    with tf.GradientTape() as tape:
        y = v * v
    assert float(tape.gradient(y, v, unconnected_gradients="raise")) == 4.0


@pytest.mark.parametrize("method", ["gradient", "jacobian", "batch_jacobian"])
def test_raise_says_why(method):
    x = tf.constant([[1.0, 2.0]])
    with tf.debug.lines():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.round(x * 2.0)  # broken here
        with pytest.raises(ValueError, match="(?s)round has no gradient.*# broken here"):
            getattr(tape, method)(y, x, unconnected_gradients="raise")


def test_everything_is_as_before_afterwards():
    with tf.debug.lines():
        tf.constant(1.0) + 1.0
    assert tf.debug.lines is not None
    from gradtape import _core

    assert _core.assign_tracker() is None and _core.is_compiling()

    @tf.function
    def f(x):
        return x * 2.0

    assert float(f(tf.constant(2.0))) == 4.0
