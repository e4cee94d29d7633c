"""Variables that are read, assigned and rebound while a tape records."""

from .lib import assert_close, tf


def test_T58_assign_is_not_differentiable():
    x, z = tf.Variable(3.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        z.assign(x * x)
        y = z * 2.0
    gx, gz = tape.gradient(y, [x, z])
    assert gx is None
    assert_close(gz, 2.0)


def test_T58_nor_is_the_value_it_returns():
    x, z = tf.Variable(3.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        y = z.assign(x * x) * 2.0
    gx, gz = tape.gradient(y, [x, z])
    assert_close(y, 18.0)
    assert gx is None
    assert_close(gz, 2.0)


def test_T58_assign_add_is_not_differentiable():
    x, z = tf.Variable(3.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        z.assign_add(x * x)
        y = z * z
    gx, gz = tape.gradient(y, [x, z])
    assert gx is None
    assert_close(gz, 20.0)


def test_T59_each_read_counts_at_its_own_value():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        a = x * x
        x.assign(5.0)
        b = x * x
    assert_close(tape.gradient([a, b], x), 6.0 + 10.0)


def test_T60_rebinding_makes_a_plain_tensor():
    x = tf.Variable(3.0)
    original = x
    with tf.GradientTape() as tape:
        y = x * x
        x = x + 1.0
    assert not isinstance(x, tf.Variable)
    gx, g_original = tape.gradient(y, [x, original])
    assert gx is None
    assert_close(g_original, 6.0)


def test_T60_gradient_in_the_loop_after_rebinding_is_none():
    x = tf.Variable(3.0)
    results = []
    for _ in range(2):
        with tf.GradientTape() as tape:
            y = x * x
        results.append(tape.gradient(y, x))
        x = x + 1.0
    assert_close(results[0], 6.0)
    assert results[1] is None
