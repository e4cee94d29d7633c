"""When a call of a tf.function has a trace of its own, and when it shares one: the argument's kinds, variables, nests."""

import collections
import gc
import weakref

import numpy as np
import pytest

from tests.semantics.lib import ON_TENSORFLOW, counted, differs_on_tensorflow, tf

spec = tf.TensorSpec
Pair = collections.namedtuple("Pair", "a b")


def test_however_a_call_is_written():
    runs = []

    @tf.function
    def f(b, a=2, *, c=3):
        runs.append(None)
        return b - a

    x, y = tf.constant(1.0), tf.constant(5.0)
    for call in (lambda: f(x), lambda: f(x, 2), lambda: f(x, a=2), lambda: f(a=2, b=x), lambda: f(b=x, c=3)):
        assert float(call()) == -1.0
    assert len(runs) == 1
    assert float(f(x, y)) == float(f(a=y, b=x)) == float(f(x, a=y)) == -4.0
    assert len(runs) == 2


def test_another_variable_of_the_same_kind():
    def f(v, x):
        v.assign_add(x)
        return v * v

    f, runs = counted(f)
    a, b = tf.Variable(1.0), tf.Variable(10.0)
    for v, value in [(a, 2.0), (b, 11.0), (a, 3.0)]:
        with tf.GradientTape() as tape:
            y = f(v, tf.constant(1.0))
        assert float(y) == value * value and float(v) == value
        assert float(tape.gradient(y, v)) == 2 * value and tape.watched_variables()[0] is v
    assert len(runs) == 1
    for other in (tf.Variable(1.0, trainable=False), tf.Variable(1.0, dtype=tf.float64), tf.Variable([1.0])):
        f(other, tf.ones(other.shape, other.dtype))
    assert len(runs) == 4


@pytest.mark.parametrize("options", [{}, {"reduce_retracing": True}])
def test_tapes_loops_and_sizes_with_variables_as_arguments(options):
    def f(v, x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(v * v * x)
        for _ in tf.range(tf.size(x)):
            v.assign_add(1.0)
        if v > 100.0:
            v.assign(0.0)
        return tape.gradient(y, v)

    f, runs = counted(f, **options)
    a, b = tf.Variable(1.0), tf.Variable(97.0)
    for sizes in ((1, 2), (1, 2), (2, 2)):
        for n in sizes:
            for v in (a, b):
                before, x = float(v), tf.ones([n])
                assert float(f(v, x)) == 2.0 * before * n
                assert float(v) == (0.0 if before + n > 100.0 else before + n)
    assert len(runs) == 2


def test_second_derivatives_of_a_variable_that_is_an_argument():
    f, runs = counted(lambda v, x: tf.reduce_sum(v * v * v * x))
    for value in (1.0, 3.0):
        v = tf.Variable(value)
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = f(v, tf.constant(2.0))
            g = inner.gradient(y, v)
        assert float(outer.gradient(g, v)) == 12.0 * value
    assert len(runs) == 1


def test_a_custom_gradient_of_a_variable_that_is_an_argument():
    @tf.custom_gradient
    def scaled(x):
        return 1.0 * x, lambda g: 10.0 * g

    f, runs = counted(lambda v: scaled(v * v))
    vs = [tf.Variable(1.0), tf.Variable(3.0)]
    for v in vs:
        with tf.GradientTape() as tape:
            y = f(v)
        assert float(tape.gradient(y, v)) == 20.0 * float(v)
    assert len(runs) == 1


def test_one_variable_twice_is_another_trace():
    def f(a, b):
        a.assign_add(1.0)
        return b.read_value()

    f, runs = counted(f)
    a, b, c = tf.Variable(1.0), tf.Variable(10.0), tf.Variable(100.0)
    pairs = [(a, b), (a, a), (b, a), (c, c), (c, a)]
    assert [float(f(*pair)) for pair in pairs] == [10.0, 3.0, 3.0, 101.0, 3.0]
    assert (float(a), float(b), float(c)) == (3.0, 11.0, 102.0) and len(runs) == 2


def test_variables_in_nests():
    f, runs = counted(lambda d: d["v"][0] - d["v"][1])
    v, w = tf.Variable(1.0), tf.Variable(4.0)
    assert float(f({"v": [v, w]})) == -3.0 and float(f({"v": [w, v]})) == 3.0 and len(runs) == 1
    assert float(f({"v": [v, v]})) == 0.0 and len(runs) == 2


@differs_on_tensorflow("it reads and writes the variable in an order that differs from run to run")
def test_a_variable_that_the_function_uses_anyway():
    w = tf.Variable(1.0)

    def f(a):
        a.assign_add(1.0)
        return w + a

    f = tf.function(f)
    a = tf.Variable(10.0)
    for _ in range(3):
        before = float(w)
        assert float(f(w)) == 2 * before + 2 and float(w) == before + 1
        assert float(f(a)) == float(w) + float(a)
    assert not ON_TENSORFLOW


@differs_on_tensorflow("its optimizers have one momentum for all variables that are an argument")
@pytest.mark.parametrize("options", [{}, {"reduce_retracing": True}])
def test_optimizers_know_variables_apart(options):
    def run(make):
        optimizer = tf.optimizers.SGD(0.1, momentum=0.9)

        def step(v, x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(v * v * x)
            optimizer.apply_gradients([(tape.gradient(loss, v), v)])

        step = make(step)
        vs = [tf.Variable(1.0), tf.Variable(2.0)]
        for n in (1, 2, 1, 3):
            for v in vs:
                step(v, tf.ones([n]))
        return [float(v) for v in vs]

    np.testing.assert_allclose(run(lambda f: tf.function(f, **options)), run(lambda f: f), rtol=1e-6)


def test_variables_of_unknown_shape_as_arguments():
    f, runs = counted(lambda v: v * 2.0)
    for value in ([1.0, 2.0], [1.0, 2.0, 3.0], [1.0, 2.0]):
        v = tf.Variable(value, shape=tf.TensorShape([None]))
        with tf.GradientTape() as tape:
            y = f(v)
        assert y.numpy().tolist() == [2 * x for x in value]
        assert tape.gradient(y, v).numpy().tolist() == [2.0] * len(value)
    assert len(runs) == 1


@pytest.mark.parametrize("options", [{}, {"reduce_retracing": True}])
def test_variables_as_arguments_beside_sizes_that_are_values(options):
    def f(v, x):
        y = tf.boolean_mask(x, x > 0.0) * v
        v.assign_add(tf.reduce_sum(y))
        return y, v * 2.0

    f, runs = counted(f, **options)
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    for x in ([1.0, -1.0], [1.0, 2.0], [-1.0, -1.0], [1.0, 1.0]):
        for v in (a, b):
            before = float(v)
            y, twice = f(v, tf.constant(x))
            kept = [before * e for e in x if e > 0.0]
            assert y.numpy().tolist() == kept and float(twice) == 2 * float(v) == 2 * (before + sum(kept))
    assert len(runs) == 1


def test_branches_loops_and_functions_that_use_a_variable_of_the_arguments():
    def f(v, x):
        y = tf.cond(tf.reduce_sum(x) > 2.0, lambda: v * 2.0, lambda: v + 1.0)
        _, y = tf.while_loop(lambda i, _: i < tf.size(x), lambda i, a: (i + 1, a * v), [0, y])
        return y + tf.map_fn(lambda e: e * v, x)

    f, runs = counted(f, reduce_retracing=True)
    for value in (2.0, 3.0):
        v = tf.Variable(value)
        for n in (1, 2, 3, 2, 3):
            y = (2 * value if n > 2 else value + 1) * value**n + value
            assert f(v, tf.ones([n])).numpy().tolist() == [y] * n
    assert len(runs) == 2


def test_arguments_must_not_be_changed():
    def f(items):
        items.append(1)
        return items[0]

    items = [tf.constant(1.0)]
    with pytest.raises(ValueError, match="should not modify its Python input arguments"):
        tf.function(f)(items)
    assert len(items) == 1


def test_class_methods_and_static_methods():
    class Thing:
        k = 3.0

        @staticmethod
        @tf.function
        def double(x):
            return 2.0 * x

        @classmethod
        @tf.function
        def scaled(cls, x):
            return cls.k * x

    class Other(Thing):
        k = 5.0

    x = tf.constant(1.0)
    assert [float(f(x)) for f in (Thing.double, Thing().double)] == [2.0, 2.0]
    assert [float(f(x)) for f in (Thing.scaled, Thing().scaled, Other.scaled, Thing.scaled)] == [
        3.0,
        3.0,
        5.0,
        3.0,
    ]


def test_variables_are_not_kept_alive():
    f = tf.function(lambda v: v * 2.0)
    v = tf.Variable(1.0)
    f(v)
    seen = weakref.ref(v)
    del v
    gc.collect()
    assert seen() is None and float(f(tf.Variable(4.0))) == 8.0


def test_a_trace_called_with_another_variable():
    def f(v):
        v.assign_add(1.0)
        return v * 2.0

    c = tf.function(f).get_concrete_function(tf.Variable(1.0))
    w = tf.Variable(5.0)
    assert float(c(w)) == 12.0 and float(w) == 6.0
    with pytest.raises(TypeError, match="missing a required argument: 'v'"):
        c()
    with pytest.raises(tf.errors.InvalidArgumentError):
        c(tf.constant(1.0))


def test_another_iterator_of_the_same_kind():
    f, runs = counted(lambda it: next(it))
    a, b = iter(tf.data.Dataset.range(3)), iter(tf.data.Dataset.range(10, 19))
    assert [int(f(it)) for it in (a, b, a, b)] == [0, 10, 1, 11] and len(runs) == 1
    c = f.get_concrete_function(a)
    assert int(c(b)) == 12 and int(c(a)) == 2


def test_reduced_retracing_in_nests():
    f, runs = counted(lambda d: d["a"], reduce_retracing=True)
    for k in (1, 2, 3, 1):
        f({"a": tf.ones([k]), "b": [tf.ones([2, k])]})
    assert len(runs) == f.experimental_get_tracing_count() == 2
    c = f.get_concrete_function({"a": spec([9]), "b": [spec([2, 9])]})
    assert c.structured_input_signature[0][0]["b"][0].shape.as_list() == [2, None]


def test_reduced_retracing_of_ranks():
    f, runs = counted(
        lambda x: tf.constant(-1 if x.shape.rank is None else x.shape.rank), reduce_retracing=True
    )
    assert [int(f(tf.ones([1] * k))) for k in (1, 2, 3, 4, 1)] == [1, -1, -1, -1, 1] and len(runs) == 2


def test_python_values_are_compared():
    f, runs = counted(lambda x: tf.constant(0))
    for x in (1, 1.0, True, 2, "a", "a", "b", None, np.int32(3), np.int32(4), tf.constant(5)):
        f(x)
    assert len(runs) == 6
