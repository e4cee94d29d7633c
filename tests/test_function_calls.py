"""Calls of a traced function that the core runs by itself: the result is that of the Python function."""

import gc
import weakref
from collections import namedtuple

import numpy as np
import pytest

import gradtape as tf

Pair = namedtuple("Pair", "a b")


def combine(x, y=None, scale=2, *more, flag=False, extra=None):
    out = x * scale
    if y is not None:
        out = out - y
    for z in more:
        out = out + z
    if extra is not None:
        out = out * extra[0]
    return {"b": out, "a": [out + 1, None, (out,)]} if flag else out


def numbers():
    """Two tensors and two variables, new ones with other values at each call."""
    values = np.random.default_rng(numbers.calls).normal(size=(4, 3)).astype(np.float32)
    numbers.calls += 1
    return tf.constant(values[0]), tf.constant(values[1]), tf.Variable(values[2]), tf.Variable(values[3])


numbers.calls = 0


def assert_same(a, b):
    assert (a is None) == (b is None)
    if a is not None:
        np.testing.assert_allclose(a, b, rtol=1e-6)


FORMS = {
    "tensor": lambda f, x, y, v, w: f(x),
    "two": lambda f, x, y, v, w: f(x, y),
    "one twice": lambda f, x, y, v, w: f(x, x),
    "names": lambda f, x, y, v, w: f(y=y, x=x),
    "names of one": lambda f, x, y, v, w: f(y=x, x=x),
    "number": lambda f, x, y, v, w: f(x, y, 3),
    "other number": lambda f, x, y, v, w: f(x, y, 3.0),
    "negative zero": lambda f, x, y, v, w: f(x, y, -0.0),
    "flag": lambda f, x, y, v, w: f(x, flag=True),
    "variable": lambda f, x, y, v, w: f(x, v),
    "variables": lambda f, x, y, v, w: f(v, w, 2, v),
    "a variable twice": lambda f, x, y, v, w: f(v, v),
    "nest": lambda f, x, y, v, w: f(x, extra=[(v, y), w]),
    "more": lambda f, x, y, v, w: f(x, y, 2, y, v),
    "array": lambda f, x, y, v, w: f(x, y.numpy()),
    "dict": lambda f, x, y, v, w: f(x, extra={0: y}),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_call_has_the_result_of_the_python_function(form):
    traced, call = tf.function(combine), FORMS[form]
    for other in (form, *FORMS):  # other calls in between, which must not be mistaken for it
        for _ in range(2):
            given = numbers()
            for current in (FORMS[other], call):
                tf.nest.map_structure(assert_same, current(combine, *given), current(traced, *given))


def test_the_core_remembers_calls_with_variables_numbers_and_names():
    f = tf.function(combine)
    x, y, v, w = numbers()
    for form in ("tensor", "names", "number", "variables", "nest", "flag"):
        before = len(f._quick)
        FORMS[form](f, x, y, v, w)
        assert len(f._quick) == before + 1, form
        FORMS[form](f, x, y, v, w)
        assert len(f._quick) == before + 1, form
    with tf.GradientTape() as tape:
        out = FORMS["variables"](f, x, y, v, w)
    np.testing.assert_allclose(tape.gradient(out, w), [-1.0] * 3)


def test_a_variable_is_not_kept_alive():
    f = tf.function(combine)
    v = tf.Variable([1.0])
    f(v)
    f(v)
    alive = weakref.ref(v)
    del v
    gc.collect()
    assert alive() is None


def test_a_variable_is_assigned_in_the_call_that_it_is_given_to():
    @tf.function
    def count(variables, which):
        variables[which].assign_add(1.0)
        return [v * 1 for v in variables]

    a, b = tf.Variable(0.0), tf.Variable(10.0)
    for _ in range(3):
        count([a, b], 0)
        count([b, a], 0)
        count((a, b), 1)
        count([a, a], 1)
    assert (float(a), float(b)) == (6.0, 16.0)


def test_a_variable_of_unknown_shape_may_change_its_shape():
    f = tf.function(lambda v: tf.reduce_sum(v) * 1)
    v = tf.Variable([1.0], shape=[None])
    assert float(f(v)) == float(f(v)) == 1.0
    v.assign([1.0, 2.0])
    assert float(f(v)) == float(f(v)) == 3.0


def test_a_captured_variable_that_is_given_as_well():
    v, w = tf.Variable(1.0), tf.Variable(5.0)

    @tf.function
    def f(u):
        v.assign_add(1.0)
        return u * 1

    assert [float(f(w)), float(f(v)), float(f(w)), float(f(v)), float(f(v))] == [5.0, 3.0, 5.0, 5.0, 6.0]


def test_results_of_other_classes():
    f = tf.function(lambda x: Pair(x + 1, [x]))
    for _ in range(3):
        out = f(tf.constant(1.0))
        assert type(out) is Pair and float(out.a) == 2.0 and float(out.b[0]) == 1.0


def test_a_list_in_itself():
    nest = []
    nest.append(nest)
    f = tf.function(combine)
    for _ in range(2):
        with pytest.raises((ValueError, RecursionError)):
            f(tf.constant(1.0), extra=nest)
