"""Custom gradients: custom_gradient, recompute_grad, grad_pass_through, stop_gradient, registered
gradients, and tf.gradients (C1 to C13)."""

import numpy as np
import pytest

from .lib import assert_close, differs_on_tensorflow, gradient, tf

custom = tf.custom_gradient


def in_function(f, *args):
    return tf.function(f)(*args)


# ---- C1: arguments and results ------------------------------------------------------------------


def test_C1_arguments_come_as_they_are():
    seen = []

    @custom
    def f(*args, **kwargs):
        seen.append((args, kwargs))
        return args[0] * 2.0, lambda dy: [dy] * len(args)

    v = tf.Variable(1.0)
    f(3.0, v, option="a")
    (number, variable), options = seen[0]
    assert type(number) is float and variable is v and options == {"option": "a"}


def test_C1_results_are_new_tensors_in_the_structure_returned():
    x = tf.constant(1.0)
    assert custom(lambda x: (x, lambda dy: dy))(x) is not x
    pair = custom(lambda x: ((x, 2.0), lambda a, b: a))(x)
    assert isinstance(pair, tuple) and [float(p) for p in pair] == [1.0, 2.0]
    named = custom(lambda x: ({"a": x, "b": 2}, lambda a, b: a))(x)
    assert float(named["a"]) == 1.0 and named["b"].dtype == tf.int32
    assert custom(lambda x: (np.float64(2), lambda dy: dy))(x).dtype == tf.float64


def test_C1_functions_methods_and_lambdas():
    class Scaled:
        factor = 7.0

        @custom
        def call(self, x):
            return x * 2, lambda dy: dy * self.factor

    scaled = Scaled()
    bound = custom(lambda x: (x * 2, lambda dy: dy * 5))
    assert_close(gradient(bound, 1.0), 5.0)
    assert_close(gradient(lambda x: scaled.call(x), 1.0), 7.0)
    assert_close(gradient(custom()(lambda x: (x, lambda dy: dy * 3)), 1.0), 3.0)

    @custom
    def named(x):
        """What it does."""
        return x, lambda dy: dy

    assert named.__name__ == "named" and named.__doc__ == "What it does."


# ---- C2: cotangents and gradients ---------------------------------------------------------------


def test_C2_an_unused_result_has_a_zero_cotangent():
    seen = []

    @custom
    def two(x):
        def grad(a, b):
            seen.append(b.numpy())
            return a * 2

        return (x, x * 3), grad

    assert_close(gradient(lambda x: two(x)[0], 1.0), 2.0)
    assert seen == [0.0]


def test_C2_gradients_in_the_structure_of_the_arguments_or_flat():
    for returned in (lambda dy: {"a": dy, "b": dy * 2}, lambda dy: [dy, dy * 2]):
        f = custom(lambda d, returned=returned: (d["a"] * d["b"], returned))
        assert_close(gradient(lambda x, f=f: f({"a": x, "b": x}), 3.0), 3.0)
    for returned in (lambda dy: ((dy, dy * 2), dy * 3), lambda dy: (dy, dy * 2, dy * 3)):
        f = custom(lambda p, q, returned=returned: (p[0] * p[1] * q, returned))
        gx, gy = gradient(lambda x, y, f=f: f((x, y), x), 3.0, 2.0)
        assert_close(gx, 4.0)
        assert_close(gy, 2.0)


def test_C2_none_is_no_gradient():
    gx, gy = gradient(custom(lambda x, y: (x * y, lambda dy: (dy, None))), 1.0, 2.0)
    assert_close(gx, 1.0)
    assert gy is None
    assert gradient(custom(lambda x: (x * 2, lambda dy: None)), 1.0) is None


@pytest.mark.parametrize("count", [1, 3])
def test_C2_a_wrong_number_of_gradients(count):
    f = custom(lambda x, y: (x * y, lambda dy: dy if count == 1 else [dy] * count))
    words = f"custom_gradient function expected to return 2 gradients, but returned {count} instead."
    with pytest.raises(ValueError, match=words):
        gradient(f, 1.0, 2.0)


def test_C2_the_second_value_must_be_a_function():
    with pytest.raises(TypeError, match="unsupported callable"):
        custom(lambda x: (x * 2, 5))(tf.constant(1.0))
    with pytest.raises(TypeError, match="unsupported callable"):
        custom(lambda x: x * 2)(tf.constant([1.0, 2.0]))


# ---- C3: shapes and types -----------------------------------------------------------------------


def test_C3_a_python_number_stays_one():
    assert gradient(custom(lambda x: (x * 2, lambda dy: 3.5)), 1.0) == 3.5
    # ... until ops compute with it
    assert_close(gradient(lambda x: custom(lambda x: (x * 2, lambda dy: 3.5))(x * 2), 1.0), 7.0)


def test_C3_a_shape_that_sums_to_that_of_the_argument_passes():
    assert gradient(custom(lambda x: (x * 2, lambda dy: tf.ones([7]))), 1.0).shape == (7,)
    assert gradient(custom(lambda x: (x * 2, lambda dy: tf.cast(dy, tf.float64))), 1.0).dtype == tf.float64


@differs_on_tensorflow("a wrong shape passes through in eager mode", raises=pytest.fail.Exception)
@pytest.mark.parametrize("shape", [(), (3,), (2, 1)])
def test_C3_any_other_shape_is_an_error(shape):
    f = custom(lambda x: (x * 2, lambda dy: tf.ones(shape)))
    with pytest.raises(ValueError, match=r"gives for its argument 'x' does not fit; expected shape \[2\]"):
        gradient(f, [1.0, 2.0])


# ---- C4: keyword arguments ----------------------------------------------------------------------


def test_C4_keyword_arguments_have_no_gradient():
    f = custom(lambda x, scale=None: (x * scale, lambda dy: dy * 9))
    x, s = tf.constant(1.0), tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch([x, s])
        y = f(x, scale=s)
    gx, gs = tape.gradient(y, [x, s])
    assert_close(gx, 9.0)
    assert gs is None


@differs_on_tensorflow("keyword arguments are refused in a tf.function", raises=ValueError)
def test_C4_keyword_arguments_in_a_function():
    f = custom(lambda x, scale=None: (x * scale, lambda dy: dy * 9))
    assert_close(gradient(tf.function(lambda x: f(x, scale=2.0)), 1.0), 9.0)


# ---- C5: variables ------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])
def test_C5_captured_variables_need_the_keyword(wrap):
    v = tf.Variable(2.0)
    f = wrap(custom(lambda x: (x * v, lambda dy: dy)))
    words = r"must accept keyword argument 'variables', since function uses variables: \[<tf.Variable"
    with pytest.raises(TypeError, match=words):
        f(tf.constant(1.0))


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])
def test_C5_gradients_of_captured_variables(wrap):
    first, second, still = tf.Variable(2.0), tf.Variable(5.0), tf.Variable(3.0, trainable=False)

    @custom
    def f(x):
        def grad(dy, variables=None):
            assert len(variables) == 2
            return dy * 10, [dy * (20 if v is first else 30) for v in variables]

        return x * second * first * still, grad

    f = wrap(f)
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    grads = tape.gradient(y, [x, first, second, still])
    assert_close(y, 90.0)
    assert [float(g) for g in grads[:3]] == [10.0, 20.0, 30.0] and grads[3] is None
    assert {id(v) for v in tape.watched_variables()} == {id(first), id(second)}


def test_C5_wrong_number_of_variable_gradients():
    v = tf.Variable(2.0)
    f = custom(lambda x: (x * v, lambda dy, variables: (dy, [])))
    with pytest.raises(ValueError, match="Must return gradient for each variable from @custom_gradient"):
        gradient(f, 1.0)


def test_C5_variables_is_not_passed_when_there_are_none():
    seen = []

    def grad(dy, variables="default"):
        seen.append(variables)
        return dy

    gradient(custom(lambda x: (x * 2, grad)), 1.0)
    assert seen == ["default"]


def test_C5_a_variable_as_argument_is_not_captured():
    v = tf.Variable(2.0)
    f = custom(lambda w: (w * v, lambda dy: dy * 30))
    with tf.GradientTape() as tape:
        y = f(v)
    assert_close(tape.gradient(y, v), 30.0)
    assert_close(custom(lambda x, w=None: (x * w, lambda dy: dy))(tf.constant(1.0), w=v), 2.0)


# ---- C6, C7, C8 ---------------------------------------------------------------------------------


@custom
def exponential(x):
    y = tf.exp(x)
    return y, lambda dy: dy * y


@custom
def nested(x):
    @custom
    def first(x, dy):
        return 2 * x * dy, lambda ddy: (ddy * 100.0 * x, ddy)

    return x * x, lambda dy: first(x, dy)


def both_orders(f, x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
    return y, g, outer.gradient(g, x)


def check_orders(where, f, expected):
    x = tf.constant(3.0)
    run = {
        "eager": lambda: both_orders(f, x),
        "tape outside": lambda: both_orders(tf.function(lambda x: f(x)), x),
        "tape inside": tf.function(lambda: both_orders(f, x)),
    }[where]
    for _ in range(3):
        for got, want in zip(run(), expected, strict=True):
            assert_close(got, np.float32(want))


@pytest.mark.parametrize("where", ["eager", "tape outside", "tape inside"])
def test_C6_second_order_differentiates_the_code_of_grad(where):
    check_orders(where, exponential, (np.exp(3), np.exp(3), np.exp(3)))


@pytest.mark.parametrize("where", ["eager", "tape inside"])
def test_C6_a_nested_custom_gradient_says_what_the_second_order_is(where):
    check_orders(where, nested, (9.0, 6.0, 300.0))


@differs_on_tensorflow("a tensor of the function is out of scope", raises=TypeError)
def test_C6_a_nested_custom_gradient_in_a_function():
    check_orders("tape outside", nested, (9.0, 6.0, 300.0))


def test_C7_a_pair_is_needed():
    with pytest.raises(TypeError, match="Cannot iterate over a scalar tensor"):
        custom(lambda x: x * 2)(tf.constant(1.0))
    with pytest.raises(TypeError, match="cannot unpack"):
        custom(lambda x: None)(tf.constant(1.0))


def jacobian(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.jacobian(y, x)


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])
def test_C8_jacobians(wrap):
    f = custom(lambda x: (x * x, lambda dy: dy * 5 * x))
    run = wrap(lambda x: jacobian(f, x))
    assert_close(run(tf.constant([1.0, 2.0])), [[5.0, 0.0], [0.0, 10.0]])


# ---- C9: recompute_grad -------------------------------------------------------------------------


def test_C9_runs_again_for_the_gradient():
    v, calls = tf.Variable(2.0), []

    @tf.recompute_grad
    def f(x, y):
        calls.append(1)
        return tf.sin(x * v) * y

    assert f.__name__ == "f"
    x, y = tf.constant(0.5), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        out = f(x, y)
        assert len(calls) == 1
    gx, gy, gv = tape.gradient(out, [x, y, v])
    assert len(calls) == 2
    for got, want in zip((gx, gy, gv), (6 * np.cos(1), np.sin(1), 1.5 * np.cos(1)), strict=True):
        assert_close(got, np.float32(want))


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])
def test_C9_structures(wrap):
    f = tf.recompute_grad(lambda x: (x * 2, [x * 3, x * 4]))
    assert_close(gradient(wrap(lambda x: f(x)), 1.0), 9.0)


def test_C9_an_argument_without_influence_has_zeros():
    f = tf.recompute_grad(lambda x, y: x * 2)
    _, gy = gradient(f, 1.0, [2.0, 3.0])
    assert_close(gy, [0.0, 0.0])


@differs_on_tensorflow("recompute_grad has no second derivative", raises=NotImplementedError)
def test_C9_second_order():
    f = tf.recompute_grad(lambda a: a * a * a)
    assert [float(v) for v in both_orders(lambda x: x * f(x), tf.constant(2.0))] == [16.0, 32.0, 48.0]


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])
def test_C9_variables_are_read_when_the_gradient_is_computed(wrap):
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def own(x):
        return x * 1.0, lambda dy: dy * 10 * v

    again = tf.recompute_grad(lambda x: x * x * v)

    def assigned_inside(x):
        y = again(x)
        v.assign(5.0)
        return y

    x = tf.constant(3.0)
    for f in (again, own, assigned_inside):
        v.assign(2.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = wrap(f)(x)
        v.assign(5.0)
        assert_close(tape.gradient(y, x), 50.0 if f is own else 30.0)


def test_C9_variables_are_read_late_in_jacobians():
    v, xs = tf.Variable(2.0), tf.constant([1.0, 2.0, 3.0])
    f = tf.function(tf.recompute_grad(lambda x: x * x * v))
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(xs)
    v.assign(5.0)
    assert_close(tape.jacobian(y, xs), np.diag([10.0, 20.0, 30.0]).astype("float32"))


# ---- C10, C11 -----------------------------------------------------------------------------------


def test_C10_grad_pass_through():
    assert_close(gradient(tf.grad_pass_through(tf.floor), 1.5), 1.0)
    clip = tf.grad_pass_through(tf.clip_by_value)
    assert_close(gradient(lambda x: clip(x, clip_value_min=0.0, clip_value_max=1.0), 1.5), 1.0)
    assert tf.grad_pass_through(tf.floor).__name__ == "floor"
    v, x = tf.Variable(0.0), tf.constant(7.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.grad_pass_through(v.assign)(x) * 2
    assert_close(v, 7.0)
    assert_close(tape.gradient(y, x), 2.0)


def test_C10_variables_inside_have_no_gradient():
    v, x = tf.Variable(3.0), tf.constant(1.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.grad_pass_through(lambda x: x * v)(x)
    gx, gv = tape.gradient(y, [x, v])
    assert_close(gx, 1.0)
    assert gv is None


def test_C10_as_many_results_as_arguments():
    f = tf.grad_pass_through(lambda x, y: (tf.floor(x), tf.floor(y)))
    assert [float(g) for g in gradient(f, 1.5, 2.5)] == [1.0, 1.0]
    with pytest.raises(ValueError, match="expected to return 2 gradients, but returned 1"):
        gradient(tf.grad_pass_through(lambda x, y: x + y), 1.5, 2.5)


def test_C11_stop_gradient():
    assert_close(gradient(lambda x: x * tf.stop_gradient(x), 3.0), 3.0)
    assert gradient(tf.stop_gradient, 3.0) is None
    assert_close(tf.stop_gradient([1.0, 2.0]), [1.0, 2.0])


# ---- C12: registered gradients ------------------------------------------------------------------


def test_C12_names_are_taken_once():
    @tf.RegisterGradient("SemanticsOfC12")
    def grad(op, dy):
        return dy

    assert grad.__name__ == "grad"
    tf.no_gradient("SemanticsOfC12Too")
    for name in ("SemanticsOfC12", "SemanticsOfC12Too", "Mul", "MatMul"):
        with pytest.raises(KeyError, match=f"Registering two gradient with name '{name}'!"):
            tf.RegisterGradient(name)(grad)
    with pytest.raises(KeyError, match="Registering two gradient"):
        tf.no_gradient("SemanticsOfC12")


def test_C12_names_are_text():
    for register in (tf.RegisterGradient, tf.no_gradient):
        with pytest.raises(TypeError, match="op_type must be a string"):
            register(5)


# ---- C13: tf.gradients and tf.hessians ----------------------------------------------------------

EAGER = "tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead."


def test_C13_not_in_eager_mode():
    x = tf.constant(1.0)
    for call in (tf.gradients, tf.hessians):
        with pytest.raises(RuntimeError, match=EAGER):
            call(x, x)


def symbolic(f, *args):
    args = args or (3.0,)
    found = tf.function(f)(*(tf.constant(a) for a in args))
    return [None if g is None else np.asarray(g).tolist() for g in found]


def test_C13_a_list_of_sums():
    assert symbolic(lambda x: tf.gradients(x * x, x)) == [6.0]
    assert symbolic(lambda x: tf.gradients([x * x, x * x * x], [x])) == [33.0]
    assert symbolic(lambda x: tf.gradients(x, x)) == [1.0]


def test_C13_intermediate_values_and_variables():
    v = tf.Variable(2.0)

    def f(x):
        a = x * 2
        return tf.gradients(a * a * v, [a, x, v])

    assert symbolic(f) == [24.0, 48.0, 36.0]


def test_C13_constants_made_in_the_function():
    def f():
        a = tf.constant(0.0)
        b = 2 * a
        return tf.gradients(a + b, [a, b]) + tf.gradients(a + b, [a, b], stop_gradients=[a, b])

    assert [float(g) for g in tf.function(f)()] == [3.0, 1.0, 1.0, 1.0]


def test_C13_equal_constants_are_two_sources():
    def f():
        a, b = tf.constant(2.0), tf.constant(2.0)
        return tf.gradients(a * a * b, [a, b])

    assert [float(g) for g in tf.function(f)()] == [8.0, 4.0]


def test_C13_tensors_from_outside():
    x = tf.constant(3.0)
    assert [float(g) for g in tf.function(lambda: tf.gradients(x * x, x))()] == [6.0]


def test_C13_grad_ys():
    assert symbolic(lambda x: tf.gradients([x * x, x], [x], grad_ys=[tf.constant(10.0), None])) == [61.0]
    assert symbolic(lambda x: tf.gradients(x * x, x, grad_ys=tf.constant(10.0))) == [60.0]
    with pytest.raises(ValueError, match="Length mismatch. Passed 1 grad_ys for 2 ys"):
        symbolic(lambda x: tf.gradients([x * x, x], [x], grad_ys=[tf.constant(10.0)]))
    with pytest.raises(TypeError, match="Gradients of complex tensors .* must set grad_ys"):
        symbolic(lambda x: tf.gradients(tf.complex(x, x), x))


def test_C13_unconnected():
    assert symbolic(lambda x: tf.gradients(x * 1, [tf.constant(2.0)], unconnected_gradients="zero")) == [0.0]
    assert symbolic(lambda x: [tf.constant(tf.gradients(x * 1, [tf.constant(2.0)])[0] is None)]) == [True]
    assert symbolic(lambda x: [tf.constant(tf.gradients(tf.cast(x, tf.int32), x)[0] is None)]) == [True]
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'zer'"):
        symbolic(lambda x: tf.gradients(x * 1, [x], unconnected_gradients="zer"))


def test_C13_higher_orders():
    assert symbolic(lambda x: tf.gradients(tf.gradients(x**3, x)[0], x)) == [18.0]
    assert_close(gradient(tf.function(lambda x: tf.gradients(x**3, x)[0]), 3.0), 18.0)
    assert_close(
        tf.function(lambda x: gradient(lambda x: tf.gradients(x**3, x)[0], x))(tf.constant(3.0)), 18.0
    )


def test_C13_a_tape_around_it_follows_every_way():
    @tf.function
    def f(x, z):
        with tf.GradientTape() as tape:
            tape.watch([x, z])
            a = z * z
            (g,) = tf.gradients(a * x * x, x)  # 2 z² x
        return tape.gradient(g, [x, z])

    gx, gz = f(tf.constant(3.0), tf.constant(5.0))
    assert_close(gx, 50.0)
    assert_close(gz, 60.0)


def test_C13_through_control_flow_and_custom_gradients():
    steep = custom(lambda x: (x * 2, lambda dy: dy * 77))
    assert symbolic(lambda x: tf.gradients(steep(x), x)) == [77.0]
    assert symbolic(lambda x: tf.gradients(tf.cond(x > 0, lambda: x * x, lambda: x), x)) == [6.0]

    def loop(x):
        _, y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [tf.constant(0), x])
        return tf.gradients(y, x)

    assert symbolic(loop) == [108.0]


def test_C13_inside_a_branch():
    def f(x):
        a = x * 2
        return [tf.cond(x > 0, lambda: tf.gradients(a * a, x)[0], lambda: x)]

    assert symbolic(f) == [24.0]


def test_C13_sparse_gradients_stay_sparse():
    @tf.function
    def f(x):
        table = tf.stack([x, x * 2])
        g = tf.gradients(tf.gather(table, [0, 0]), table)[0]
        assert isinstance(g, tf.IndexedSlices)
        return g.values, g.indices

    values, indices = f(tf.constant(3.0))
    assert_close(values, [1.0, 1.0])
    assert_close(indices, [0, 0])


def test_C13_hessians():
    cubes = lambda x: tf.hessians(tf.reduce_sum(x**3), x)  # noqa: E731
    assert symbolic(cubes, [1.0, 2.0]) == [[[6.0, 0.0], [0.0, 12.0]]]
    assert symbolic(lambda x: tf.hessians(x**3, x), [1.0, 2.0]) == [[[6.0, 0.0], [0.0, 12.0]]]
    assert symbolic(cubes, 2.0) == [12.0]
    assert np.shape(symbolic(cubes, [[1.0, 2.0]])[0]) == (1, 2, 1, 2)


@differs_on_tensorflow("a linear function has no Hessian there", raises=ValueError)
def test_C13_hessians_of_linear_functions_are_zero():
    assert symbolic(lambda x: tf.hessians(tf.reduce_sum(x), [x]), [2.0, 3.0]) == [[[0.0, 0.0], [0.0, 0.0]]]


def test_the_function_under_the_decorator():
    @tf.custom_gradient
    def f(x):
        return x * 2.0, lambda g: g * 5.0

    value, rule = f.__original_wrapped__(tf.constant(3.0))
    assert_close(value, 6.0)
    assert_close(rule(tf.constant(1.0)), 5.0)
    assert f.__wrapped__ is f.__original_wrapped__
