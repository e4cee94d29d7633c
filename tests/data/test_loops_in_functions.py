"""Loops over datasets in functions whose variables change their shapes, and elements that may be missing."""

import pytest

import gradtape as tf

Dataset = tf.data.Dataset


def test_shapes_that_vary_are_found_out():
    @tf.function
    def f(ds):
        found, doubled, count = tf.zeros([0], tf.int64), tf.ones([1, 2]), 0
        for x in ds:
            found = tf.concat([found, [x]], 0)
            doubled = tf.concat([doubled, doubled], 0)
            count += 1
        return found, doubled, count

    found, doubled, count = f(Dataset.range(3))
    assert found.numpy().tolist() == [0, 1, 2] and doubled.shape == [8, 2] and int(count) == 3
    assert f(Dataset.range(0))[0].shape == [0]


def test_reduce_to_a_growing_tensor():
    f = tf.function(lambda ds: ds.reduce(tf.zeros([0], tf.int64), lambda a, b: tf.concat([a, [b]], 0)))
    assert f(Dataset.range(3)).numpy().tolist() == [0, 1, 2]


def test_types_must_stay():
    @tf.function
    def f(ds):
        x = tf.constant(1)
        for _ in ds:
            x = tf.constant(1.5)
        return x

    with pytest.raises(TypeError, match="'x' has dtype int32 before the loop, but dtype float32"):
        f(Dataset.range(3))


def test_an_element_that_may_be_missing():
    iterator = iter(Dataset.range(2))

    @tf.function
    def f():
        element = iterator.get_next_as_optional()
        if element.has_value():
            return element.get_value()
        return tf.constant(-1, tf.int64)

    assert [int(f()) for _ in range(4)] == [0, 1, -1, -1]


def test_an_element_that_is_missing_has_no_value():
    f = tf.function(lambda iterator: iterator.get_next_as_optional().get_value())
    iterator = iter(Dataset.range(1))
    assert int(f(iterator)) == 0
    with pytest.raises(tf.errors.InvalidArgumentError, match="The given optional does not have a value"):
        f(iterator)
