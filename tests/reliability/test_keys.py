"""Caches do not identify objects by address: an entry for one object is not used for another at its address."""

import dataclasses
import gc
import weakref

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core


@dataclasses.dataclass
class Config:
    k: int


@dataclasses.dataclass(frozen=True)
class Frozen:
    k: int


class Plain:
    def __init__(self, k):
        self.k = k


def scaled_by(x, *, config):
    """`x` times the factor of `config`."""
    return x * config.k


def value_of(o):
    return o.k if hasattr(o, "k") else len(o)


@pytest.mark.parametrize("make", [Config, Frozen, Plain, lambda k: set(range(k)), lambda k: bytearray(k)])
def test_temporary_arguments_of_functions(make):
    """Once, `f(x, Config(k))` was looked up by the id of a freed object."""

    @tf.function
    def f(x, o):
        return x * value_of(o)

    for _ in range(20):
        for k in range(1, 7):
            assert f(tf.constant(1.0), make(k)).numpy() == k


@pytest.mark.parametrize(
    "values", [(1, 1.5), ("a", b"a"), ((1, 2), [1, 2]), (float("nan"), 0.0), ((1,), 1), (None, "None")]
)
def test_values_of_other_types_are_other_arguments(values):
    @tf.function
    def f(x, o):
        return x, tf.constant(str((type(o).__name__, o)).encode().hex().__hash__() % 1000)

    said = [int(f(tf.constant(1.0), v)[1]) for v in values]
    assert said == [str((type(v).__name__, v)).encode().hex().__hash__() % 1000 for v in values]
    assert f.experimental_get_tracing_count() == len(values)
    for v in values:
        f(tf.constant(1.0), v)
    assert f.experimental_get_tracing_count() == len(values)


def test_equal_values_share_a_trace():
    @tf.function
    def f(x, o):
        return x

    for o in ("text", 5, None, (1, "a"), frozenset((1, 2)), slice(1, 2), {1, 2}):
        before = f.experimental_get_tracing_count()
        for _ in range(3):
            f(tf.constant(1.0), eval(repr(o)))
        assert f.experimental_get_tracing_count() == before + 1


def test_functions_do_not_keep_their_arguments():
    @tf.function
    def f(x, o):
        return x * o.k

    o = Plain(2)
    seen = weakref.ref(o)
    f(tf.constant(1.0), o)
    del o
    gc.collect()
    assert seen() is None


def test_a_new_variable_does_not_get_a_dead_ones_trace():
    @tf.function
    def f(v):
        return v * 2.0

    for k in range(50):
        assert f(tf.Variable(float(k))).numpy() == 2.0 * k


def test_temporary_attributes_of_primitives():
    """Once, a compiled pass was looked up by the address of a freed attribute."""

    scaled = tf.primitive(scaled_by, vjp=lambda g, x, out, config: g * config.k)

    x = tf.constant([1.0, 2.0])
    for make in (Plain, Config, Frozen):
        for k in range(200):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = scaled(x, config=make(k % 7))
            np.testing.assert_array_equal(tape.gradient(y, x), [k % 7] * 2)


def test_attributes_that_change():
    scaled = tf.primitive(scaled_by, vjp=lambda g, x, out, config: g * config.k)

    x, config = tf.constant(1.0), Plain(1)
    for k in range(1, 6):
        config.k = k
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = scaled(x, config=config)
        assert tape.gradient(y, x).numpy() == k


class TestCache:
    def test_finds_by_kind_and_value(self):
        cache = _core.Cache(10)
        cache.add((tf.ones([2]), "a"), 1)
        assert cache.find((tf.zeros([2]), "a")) == 1
        assert cache.find((tf.zeros([3]), "a")) is None
        assert cache.find((tf.zeros([2]), "b")) is None
        assert cache.find([tf.zeros([2]), "a"]) is None

    def test_is_bounded(self):
        cache = _core.Cache(3)
        for k in range(10):
            cache.add(k, k)
        assert cache.values() == [7, 8, 9] and len(cache) == 3
        cache.find(7)
        cache.add(10, 10)
        assert cache.find(8) is None and cache.find(7) == 7

    def test_entries_of_dead_objects_are_removed(self):
        cache = _core.Cache(1000)
        for k in range(500):
            cache.add(Plain(k), k)
        assert len(cache) < 50
        assert cache.values() == []

    def test_an_object_that_died_is_not_found(self):
        cache = _core.Cache(1000)
        for k in range(100):
            o = Config(k)
            assert cache.find(o) is None
            cache.add(o, k)
            assert cache.find(o) == k
            del o

    def test_equality_that_runs_code(self):
        class Odd:
            def __init__(self, cache):
                self.cache = cache

            def __hash__(self):
                return 1

            def __eq__(self, other):
                self.cache.clear()
                return True

        cache = _core.Cache(10)
        first = Odd(cache)
        cache.add(first, "value")
        assert cache.find(Odd(cache)) == "value"
        assert len(cache) == 0

    def test_errors_come_out(self):
        class Bad:
            def __hash__(self):
                raise ZeroDivisionError

        cache = _core.Cache(10)
        with pytest.raises(ZeroDivisionError):
            cache.find(Bad())
        with pytest.raises(ValueError, match="at least one"):
            _core.Cache(0)

    def test_cycles_are_collected(self):
        cache = _core.Cache(10)
        o = Plain(1)
        o.cache = cache
        cache.add(1, o)
        seen = weakref.ref(o)
        del o, cache
        gc.collect()
        assert seen() is None
