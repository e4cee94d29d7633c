"""debug.check_numerics: the op that made the first NaN or infinity, forward and backward."""

import logging

import numpy as np
import pytest

import gradtape as tf


def test_forward():
    x = tf.constant([1.0, 0.0, 4.0])
    with tf.debug.check_numerics(), pytest.raises(tf.debug.NumericsError) as caught:
        y = x * 2.0
        z = tf.math.log(y)  # here
        tf.exp(z)
    assert caught.value.op == "log" and caught.value.index == (1,)
    assert "# here" in caught.value.line.text
    assert "between 0 and 8" in str(caught.value)
    assert isinstance(caught.value, tf.errors.InvalidArgumentError)


def test_a_nan_that_was_given_is_no_error_but_said_once(caplog):
    x = tf.constant([1.0, np.nan])
    with caplog.at_level(logging.WARNING, "gradtape"), tf.debug.check_numerics():
        y = tf.exp(tf.reshape(x, [2, 1])) + 1.0  # the NaN was given
        tf.sqrt(y)
    assert np.isnan(y.numpy()[1, 0])
    (said,) = [r.getMessage() for r in caplog.records]
    assert said.startswith("check_numerics: exp was given a NaN at [1, 0] of float32[2, 1] that no op made")
    assert said.endswith("# the NaN was given")


def test_a_nan_that_is_replaced_is_not_mentioned(caplog):
    x = tf.constant([1.0, np.nan])
    with caplog.at_level(logging.WARNING, "gradtape"), tf.debug.check_numerics():
        tf.exp(tf.where(tf.math.is_nan(x), 0.0, x))
    assert not caplog.records


def test_the_where_trap_in_a_gradient():
    x = tf.Variable([4.0, 0.0])
    with tf.debug.check_numerics(infinities=False):
        with tf.GradientTape() as tape:
            y = tf.where(x > 0, 1.0 / x, 0.0)  # here
        with pytest.raises(tf.debug.NumericsError) as caught:
            tape.gradient(y, x)
    assert "gradient of" in str(caught.value) and "tf.where" in str(caught.value)
    assert "# here" in caught.value.line.text


def test_in_functions():
    @tf.function
    def f(x):
        return tf.sqrt(x - 3.0)  # here

    assert np.isnan(f(tf.constant(1.0)))
    with tf.debug.check_numerics(), pytest.raises(tf.debug.NumericsError) as caught:
        f(tf.constant(1.0))
    assert caught.value.op == "sqrt" and "# here" in caught.value.line.text
    assert np.isnan(f(tf.constant(1.0)))


def test_switch():
    tf.debug.check_numerics.enable()
    try:
        with pytest.raises(tf.debug.NumericsError, match="div"):
            tf.constant(1.0) / tf.constant(0.0)
    finally:
        tf.debug.check_numerics.disable()
    assert np.isinf(tf.constant(1.0) / tf.constant(0.0))


def test_infinities_may_be_allowed():
    with tf.debug.check_numerics(infinities=False):
        assert np.isinf(tf.constant(1.0) / tf.constant(0.0))
        with pytest.raises(tf.debug.NumericsError):
            tf.constant(0.0) / tf.constant(0.0)


def test_an_infinity_that_comes_out_of_a_gradient():
    x = tf.Variable([4.0, 0.0])
    with tf.debug.check_numerics():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.sqrt(x))  # here
        g = tape.gradient(y, x)
        with pytest.raises(tf.debug.NumericsError, match="slope of sqrt at 0") as caught:
            x.assign_sub(0.1 * g)
    assert "# here" in caught.value.line.text and caught.value.index == (1,)


def test_an_infinity_that_stays_in_its_rule_is_not_reported():
    x = tf.Variable([0.0, 0.0])
    with tf.debug.check_numerics():
        with tf.GradientTape() as tape:
            y = tf.norm(x)
        assert tape.gradient(y, x).numpy().tolist() == [0.0, 0.0]


def test_the_rewrite_is_one_that_works():
    x = tf.Variable([4.0, 0.0])
    with tf.debug.check_numerics(infinities=False):
        with tf.GradientTape() as tape:
            y = tf.where(x > 0, x**0.5, 0.0)
        with pytest.raises(tf.debug.NumericsError) as caught:
            tape.gradient(y, x)
        rewrite = str(caught.value).partition("safe first: ")[2].partition(" = tf.where(ok, safe")[0]
        assert rewrite == "ok = x > 0; safe = tf.where(ok, x, 1.0); y"
        with tf.GradientTape() as tape:
            ok = x > 0
            y = tf.where(ok, tf.where(ok, x, 1.0) ** 0.5, 0.0)
        assert tape.gradient(y, x).numpy().tolist() == [0.25, 0.0]


def test_in_fit():
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3)])
    model.compile("sgd", loss=lambda t, p: tf.reduce_mean(tf.math.log(p - p)))  # here
    with tf.debug.check_numerics(), pytest.raises(tf.debug.NumericsError) as caught:
        model.fit(np.ones([8, 4], np.float32), np.ones([8, 3], np.float32), verbose=0)
    assert caught.value.op == "log" and "# here" in caught.value.line.text


def test_watchers_share_the_ops():
    """Lines and both checks are on at once, and end one by one."""
    v = tf.Variable(0.0)
    with tf.debug.lines(), tf.debug.check_numerics():
        tf.debugging.enable_check_numerics()
        with pytest.raises(tf.debug.NumericsError):
            1.0 / v
        with tf.GradientTape() as tape:
            y = tf.round(v)
        assert tape.explain(y, v).line is not None
        tf.debugging.disable_check_numerics()
        assert tf.config.functions_run_eagerly()
    assert not tf.config.functions_run_eagerly()
    assert np.isinf(1.0 / v)
