"""Errors while a function is traced, and their classes; and code that looks wrong but is allowed."""

import operator

import numpy as np
import pytest

from tests.semantics.lib import assert_close, tf

spec = tf.TensorSpec


# ---- operands that do not fit -------------------------------------------------------------------

MIXED = [
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.pow, operator.lt, operator.ge,
    operator.matmul, tf.maximum, tf.atan2, tf.math.divide_no_nan, tf.math.xlogy, tf.math.squared_difference,
    tf.math.igamma, tf.math.nextafter, lambda a, b: tf.where(True, a, b), lambda a, b: tf.concat([a, b], 0),
]  # fmt: skip


@pytest.mark.parametrize("op", MIXED)
@pytest.mark.parametrize("other", [tf.int32, tf.float64])
def test_types_that_differ_are_a_type_error_while_tracing(op, other):
    f = tf.function(lambda a, b: op(a, b))
    with pytest.raises(TypeError):
        f.get_concrete_function(spec([1, 1]), spec([1, 1], other))


@pytest.mark.parametrize(
    "op", [operator.add, operator.mul, operator.le, tf.minimum, tf.math.xdivy, tf.matmul]
)
def test_shapes_that_differ_are_a_value_error_while_tracing(op):
    f = tf.function(lambda a, b: op(a, b))
    with pytest.raises(ValueError):
        f.get_concrete_function(spec([1, 2]), spec([1, 3]))


def test_words_of_shapes_while_tracing():
    with pytest.raises(ValueError, match="Dimensions must be equal"):
        tf.function(lambda a, b: a + b)(tf.ones([2]), tf.ones([3]))
    with pytest.raises(TypeError, match="that does not match type"):
        tf.function(lambda a, b: a + b)(tf.ones([2]), tf.ones([2], tf.int32))


def test_eager_ops_raise_one_class_only():
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        tf.ones([2]) + tf.ones([3])
    assert not isinstance(e.value, (ValueError, TypeError))


def test_errors_of_a_function_that_runs_are_those_of_eager_ops():
    f = tf.function(lambda x, i: tf.gather(x, i))
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        f(tf.constant([1, 2]), tf.constant(5))
    assert not isinstance(e.value, (ValueError, TypeError))


# ---- arguments ------------------------------------------------------------------------------------


def appends(x):
    x.append(tf.constant(1))


def replaces(x):
    x[0] = x[0] + 1


def swaps(x):
    x[0], x[1] = x[1], x[0]


@pytest.mark.parametrize("change", [appends, replaces, swaps, list.pop, list.clear])
def test_a_function_must_not_change_its_lists(change):
    @tf.function
    def f(k, given):
        change(given)
        return k

    with pytest.raises(
        ValueError, match=r"f\(k, given\) should not modify its Python input .*modified: given"
    ):
        f(tf.constant(1), [tf.constant(1), tf.constant(2)])


def test_a_function_must_not_change_its_dicts():
    @tf.function
    def f(*args, **kwargs):
        args[0]["a"] = kwargs["x"]["b"]
        return 1

    with pytest.raises(ValueError, match="should not modify its Python input .*modified: args"):
        f({"a": tf.constant(1)}, x={"b": tf.constant(2)})


def test_a_copy_may_be_changed():
    @tf.function
    def f(given):
        given = list(given)
        given.append(given[0])
        return given

    assert [int(x) for x in f([tf.constant(1)])] == [1, 1]


def test_a_signature_holds_inside_of_other_functions():
    inner = tf.function(lambda x: x * 2, input_signature=[spec([None])])
    outer = tf.function(lambda x: inner(x))
    assert_close(outer(tf.constant([1.0])), [2.0])
    assert_close(outer([1.0, 2.0]), [2.0, 4.0])  # a list becomes the tensor that is declared
    for wrong in (tf.constant([1]), tf.constant(1.0)):
        with pytest.raises(TypeError, match="Can not cast"):
            outer(wrong)


# ---- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize("result", [object(), {1, 2}, tf.int32, {"a": object()}])
def test_results_must_be_tensors(result):
    with pytest.raises(TypeError, match="Python functions must return zero or more Tensors"):
        tf.function(lambda: result)()


def test_generators_are_no_results():
    @tf.function
    def f(x):
        yield x

    with pytest.raises(TypeError, match="found return value of type generator"):
        f(tf.constant(1))


# ---- symbols that leave their function ------------------------------------------------------------


@pytest.fixture
def leaked():
    kept = []

    @tf.function
    def f(x):
        kept.append(x * 2)
        return x

    f(tf.constant(1.0))
    return kept[0]


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x + 1,
        lambda x: tf.function(lambda: x + 1)(),
        lambda x: tf.function(lambda y: y)(x),
        lambda x: tf.cond(x > 1, lambda: 1, lambda: 2),
    ],
)
def test_a_symbol_is_out_of_scope_elsewhere(leaked, use):
    with pytest.raises(TypeError, match="is out of scope and cannot be used here"):
        use(leaked)


@pytest.mark.parametrize("kind", [float, int])
def test_a_symbol_is_no_python_number(leaked, kind):
    with pytest.raises(TypeError):
        kind(leaked)


def test_a_list_that_a_loop_appends_to():
    @tf.function
    def f(n):
        found = []
        for i in tf.range(n):
            found.append(i)
        return found

    with pytest.raises(ValueError, match="is out of scope and cannot be used here"):
        f(tf.constant(3))


# ---- variables ------------------------------------------------------------------------------------


def test_a_variable_may_begin_with_what_an_argument_is():
    made = []

    @tf.function
    def f(x):
        if not made:
            made.append(tf.Variable(2.0 * x))
        return made[0] + x

    assert_close(f(tf.constant(3.0)), 9.0)
    assert_close(f(tf.constant(4.0)), 10.0)
    assert_close(f(tf.constant([1.0, 2.0])), [7.0, 8.0])


def test_a_variable_may_begin_with_what_another_one_is():
    outside, made = tf.Variable([1.0, 2.0]), []

    @tf.function
    def f(x):
        if not made:
            made.append(tf.Variable(outside * x))
            made.append(tf.Variable(tf.cond(x > 1.0, lambda: x, lambda: -x)))
        return made[0] + made[1]

    assert_close(f(tf.constant(3.0)), [6.0, 9.0])
    outside.assign([5.0, 5.0])
    assert_close(f(tf.constant(1.0)), [6.0, 9.0])


def test_a_variable_of_an_argument_in_each_call_is_refused():
    with pytest.raises(ValueError, match="only supports singleton tf.Variables created on the first call"):
        tf.function(lambda x: tf.Variable(x) + 1)(tf.constant(1.0))


# ---- Python functions -----------------------------------------------------------------------------


def test_py_function_as_a_decorator():
    @tf.py_function(Tout=tf.float32)
    def double(x):
        return 2 * x

    @tf.py_function(Tout=[tf.float32, tf.int32])
    def both(x, k):
        return x, k

    @tf.numpy_function(Tout=tf.float32)
    def sine(x):
        return np.sin(x)

    x = tf.constant(1.5)
    assert double.__name__ == "double"
    assert_close(double(x), 3.0)
    assert_close(tf.function(lambda x: double(x))(x), 3.0)
    assert [v.dtype for v in both(x, 2)] == [tf.float32, tf.int32]
    assert_close(sine(x), np.sin(np.float32(1.5)))
    with pytest.raises(TypeError, match="Missing required argument: 'Tout'"):
        tf.py_function(lambda x: x, [x])
    with pytest.raises(ValueError, match="Expected func to be callable"):
        tf.py_function(3, [x], tf.float32)


def test_inside_function():
    seen = []
    tf.function(lambda: seen.append(tf.inside_function()))()
    assert seen == [True] and not tf.inside_function()


# ---- arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("traced", [False, True])
def test_gradients_of_elements_of_an_array_are_dense(traced):
    def f(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            array = tf.TensorArray(tf.float32, 3, clear_after_read=False).unstack(x)
            some, one = array.gather([0, 2]), array.read(1) * 3.0
        return tape.gradient(some, x), tape.gradient(one, x)

    some, one = (tf.function(f) if traced else f)(tf.constant([1.0, 2.0, 3.0]))
    assert_close(some, [1.0, 0.0, 1.0])
    assert_close(one, [0.0, 3.0, 0.0])


@pytest.mark.parametrize(
    "use", [lambda a: a.read(5), lambda a: a.write(3, 1.0).stack(), lambda a: a.write(-1, 1.0).stack()]
)
def test_places_that_an_array_does_not_have(use):
    def f():
        return use(tf.TensorArray(tf.float32, 3, element_shape=[]))

    with pytest.raises(tf.errors.OutOfRangeError):
        f()
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.function(f)()


# ---- conditions -----------------------------------------------------------------------------------


def test_operands_of_logic_have_one_type():
    f = tf.function(lambda a, b: a and b)
    g = tf.function(lambda a, b: a or b)
    yes, no = tf.constant(True), tf.constant(False)
    assert [bool(f(yes, no)), bool(g(yes, no)), bool(f(yes, True)), bool(g(no, no))] == [
        False,
        True,
        True,
        False,
    ]
    for wrong in (f, g):
        with pytest.raises(TypeError, match="true_fn and false_fn"):
            wrong(yes, 2)
        with pytest.raises(TypeError, match="true_fn and false_fn"):
            wrong(tf.constant(1.0), True)


def test_a_scalar_is_nothing_to_iterate_over():
    @tf.function
    def f(x):
        for _ in x:
            pass

    with pytest.raises(ValueError, match="len requires a non-scalar tensor"):
        f(tf.constant(1.0))


def test_conditions_must_be_scalar_booleans():
    with pytest.raises(ValueError, match="None"):
        tf.cond(None, lambda: 1, lambda: 2)
    f = tf.function(lambda p: tf.cond(p, lambda: 1, lambda: 2))
    for wrong in (tf.constant(1), tf.constant(1.5), tf.constant([True, False])):
        with pytest.raises(tf.errors.InvalidArgumentError):
            f(wrong)


@pytest.mark.parametrize(
    "wrong, right, error",
    [
        (lambda: None, lambda: 1, ValueError),
        (lambda: 1.0, lambda: 1, TypeError),
        (lambda: [1], lambda: 1, TypeError),
        (lambda: {"a": 1}, lambda: {"b": 1}, TypeError),
    ],
)
def test_branches_that_return_different_things(wrong, right, error):
    with pytest.raises(error, match="must have the same number, type|must match"):
        tf.function(lambda p: tf.cond(p, right, wrong))(tf.constant(True))


@pytest.mark.parametrize(
    "branches, error, words",
    [
        ([(0, lambda: 1), (0, lambda: 2)], ValueError, "must form contiguous range of"),
        ({"a": lambda: 1}, TypeError, "key must be a Python `int`"),
        ([1, 2], TypeError, "Each entry in 'branch_fns' must be a 2-tuple"),
        ([], ValueError, "Must provide at least one item"),
    ],
)
def test_branches_of_a_switch(branches, error, words):
    with pytest.raises(error, match=words):
        tf.switch_case(tf.constant(1), branches)


def test_branches_of_a_switch_that_return_different_things():
    f = tf.function(lambda i: tf.switch_case(i, [lambda: 1, lambda: 2.0]))
    with pytest.raises(TypeError, match="arguments to tf.switch_case must have the same number, type"):
        f(tf.constant(1))


def test_the_number_of_a_branch_is_a_scalar():
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.switch_case(tf.constant([1]), [lambda: 1, lambda: 2])


# ---- gradients of the user's own ------------------------------------------------------------------


@tf.custom_gradient
def wrong_gradient(x):
    def grad(upstream):
        raise ValueError("nobody should ask")

    return x * 2.0, grad


def test_an_error_in_a_gradient_that_is_not_requested():
    x = tf.constant(1.0)
    f = tf.function(lambda x: tf.stop_gradient(wrong_gradient(x)) + x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert_close(y, 3.0)
    assert_close(tape.gradient(y, x), 1.0)
    assert_close(tf.function(lambda x: wrong_gradient(x))(x), 2.0)


@pytest.mark.parametrize("traced", [False, True])
def test_an_error_in_a_requested_gradient(traced):
    x = tf.constant(1.0)
    f = tf.function(lambda x: wrong_gradient(x)) if traced else wrong_gradient
    with pytest.raises(ValueError, match="nobody should ask"):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        tape.gradient(y, x)
    with pytest.raises(ValueError, match="nobody should ask"):
        with tf.autodiff.ForwardAccumulator(x, x) as accumulator:
            y = f(x)
        accumulator.jvp(y)


@pytest.mark.parametrize("size", [1, None])
def test_decorators_inside_of_functions(size):
    @tf.function(input_signature=[spec([size])])
    def f(x):
        @tf.py_function(Tout=tf.float32)
        def double(y):
            return 2 * y

        return double(x)

    assert_close(f(tf.constant([1.5])), [3.0])


@pytest.mark.parametrize("traced", [False, True])
def test_numpy_functions_have_no_gradient(traced):
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.numpy_function(lambda a: a * a, [x], tf.float32)
        return tape.gradient(y, x)

    assert (tf.function(f) if traced else f)(tf.constant(3.0)) is None


@pytest.mark.parametrize("which", [True, False])
def test_a_place_that_one_branch_makes(which):
    class Holder:
        pass

    def item(c):
        held = {}
        if c:
            held["a"] = 1
        return held

    def attribute(c):
        held = Holder()
        if c:
            pass
        else:
            held.a = 1
        return held.a

    for f in (item, attribute):
        with pytest.raises(ValueError, match="must also be initialized in the (else|main) branch"):
            tf.function(f)(tf.constant(which))


def test_a_place_that_both_branches_make():
    @tf.function
    def f(c):
        held = {}
        if c:
            held["a"] = 1
        else:
            held["a"] = 2
        return held["a"]

    assert [int(f(tf.constant(c))) for c in (True, False)] == [1, 2]


def test_only_a_tensor_with_a_value_has_numpy():
    seen = []

    @tf.function
    def f(x):
        seen.append(hasattr(x, "numpy"))
        with pytest.raises(AttributeError, match="has no attribute 'numpy'"):
            x.numpy()
        return x

    x = tf.constant([1.0, 2.0])
    f(x)
    assert seen == [False] and hasattr(x, "numpy")
    bound = x.numpy
    assert_close(bound(), [1.0, 2.0])
    with pytest.raises(TypeError):
        x.numpy(1)


def test_functions_that_test_for_numpy_are_traced_for_all_rows():
    calls = []

    def f(x):
        calls.append(hasattr(x, "numpy"))
        return x * 2.0

    assert_close(tf.vectorized_map(f, tf.constant([[1.0], [2.0], [3.0]])), [[2.0], [4.0], [6.0]])
    assert not any(calls) and len(calls) < 3
