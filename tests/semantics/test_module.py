"""tf.Module: what counts as its variables, in which order."""

import pytest

from .lib import tf


class Dense(tf.Module):
    def __init__(self, units, name=None):
        super().__init__(name=name)
        self.w = tf.Variable(tf.ones([2, units]), name="w")
        self.b = tf.Variable(tf.zeros([units]), name="b")

    def __call__(self, x):
        return tf.matmul(x, self.w) + self.b


class Model(tf.Module):
    def __init__(self, name=None):
        super().__init__(name=name)
        self.second = Dense(3)
        self.first = Dense(2)
        self.z = tf.Variable(1.0)
        self.a = tf.Variable(2.0, trainable=False)
        self.number = 3


def refs(objects):
    return [o.ref() for o in objects]


def test_M1_variables_are_found_in_attributes():
    layer = Dense(3)
    assert isinstance(layer.variables, tuple)
    assert refs(layer.variables) == refs([layer.b, layer.w])


def test_M1_own_variables_first_then_attributes_sorted_by_name():
    m = Model()
    expected = [m.a, m.z, m.first.b, m.first.w, m.second.b, m.second.w]
    assert refs(m.variables) == refs(expected)


def test_M1_trainable_and_non_trainable():
    m = Model()
    assert refs(m.non_trainable_variables) == refs([m.a])
    assert refs(m.trainable_variables) == refs(m.variables[1:])


CONTAINERS = {
    "list": lambda a, b: [a, b],
    "tuple": lambda a, b: (a, b),
    "dict": lambda a, b: {"y": b, "x": a},
    "nested": lambda a, b: {"k": [a, (b,)]},
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_M1_modules_in_containers_are_found(kind):
    m, a, b = tf.Module(), Dense(2), Dense(3)
    m.layers = CONTAINERS[kind](a, b)
    assert refs(m.variables) == refs([a.b, a.w, b.b, b.w])
    assert set(map(id, m.submodules)) == {id(a), id(b)}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_M1_variables_in_containers_are_found(kind):
    m, a, b = tf.Module(), tf.Variable(1.0), tf.Variable(2.0)
    m.things = CONTAINERS[kind](a, b)
    assert refs(m.variables) == refs([a, b])


def test_M1_a_shared_variable_is_listed_once():
    m = tf.Module()
    m.a = m.b = tf.Variable(1.0)
    m.c = [m.a]
    assert len(m.variables) == 1


def test_M1_modules_may_refer_to_each_other():
    a, b = Dense(2), Dense(3)
    a.other, b.other = b, a
    assert len(a.variables) == 4
    assert b in a.submodules


def test_M1_submodules():
    m = Model()
    assert isinstance(m.submodules, tuple)
    assert [id(s) for s in m.submodules] == [id(m.first), id(m.second)]


def test_M1_variables_added_later_are_found():
    m = tf.Module()
    assert m.variables == ()
    m.v = tf.Variable(1.0)
    assert refs(m.variables) == refs([m.v])


def test_M1_name_is_that_of_the_class_by_default():
    assert Dense(2).name == "dense"
    assert Dense(2, name="mine").name == "mine"


def test_M1_name_must_be_an_identifier():
    with pytest.raises(ValueError):
        tf.Module(name="not a name")


def test_M1_name_scope_prefixes_variables():
    m = tf.Module(name="mine")
    with m.name_scope:
        assert tf.Variable(1.0, name="v").name == "mine/v:0"


def test_M1_with_name_scope():
    class Scoped(tf.Module):
        @tf.Module.with_name_scope
        def build(self):
            return tf.Variable(1.0, name="v")

    assert Scoped(name="mine").build().name == "mine/v:0"


def test_M1_modules_are_hashable():
    a, b = Dense(2), Dense(2)
    assert len({a, b, a}) == 2


def test_M1_gradients_of_trainable_variables():
    m = Model()
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(m.first(tf.ones([1, 2]))) * m.z * m.a
    grads = tape.gradient(y, m.trainable_variables)
    assert [g is not None for g in grads] == [True, True, True, False, False]
