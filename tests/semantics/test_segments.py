"""Functions in which some sizes depend on values: the calls between those run as programs, with the same results.

Every function is called several times: first call by call, then as programs.
"""

import numpy as np
import pytest

from .lib import tf

X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float32)


def several(f, *args, times=4):
    """Calls a function several times, which must give the same results, and returns the last."""
    runs = [
        tf.nest.map_structure(lambda r: np.asarray(tf.convert_to_tensor(r)), f(*args)) for _ in range(times)
    ]
    for run in runs[1:]:
        tf.nest.map_structure(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), runs[0], run)
    return runs[-1]


def test_gradient_with_respect_to_intermediate_results():
    @tf.function
    def f(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            a = x * 2.0
            b = a * a
            c = tf.boolean_mask(b, x > 0.0)
            d = tf.reduce_sum(c * c)
        return tape.gradient(d, a), tape.gradient(d, b), tape.gradient(d, c), tape.gradient(d, x)

    da, db, dc, dx = several(f, tf.constant(X))
    b = (2 * X) ** 2
    np.testing.assert_allclose(db, np.where(X > 0, 2 * b, 0))
    np.testing.assert_allclose(da, np.where(X > 0, 2 * b * 4 * X, 0))
    np.testing.assert_allclose(dx, 2 * da)
    np.testing.assert_allclose(dc, 2 * b[X > 0])


def test_gradient_between_results_before_the_mask():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            a = tf.sin(x)
            b = a * a + x
        g = tape.gradient(b, [a, x])
        return g[0], g[1], tf.boolean_mask(b, x > 0.0)

    da, dx, kept = several(f, tf.constant(X))
    np.testing.assert_allclose(da, 2 * np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(dx, 2 * np.sin(X) * np.cos(X) + 1, rtol=1e-5)
    np.testing.assert_allclose(kept, (np.sin(X) ** 2 + X)[X > 0], rtol=1e-5)


def test_results_of_a_function_do_not_depend_on_one_another():
    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def f(x):
        h = x * x
        return h, tf.reduce_sum(h * 3.0), x

    for _ in range(4):
        x = tf.constant(X)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            h, y, same = f(x)
            z = h + same
        assert tape.gradient(y, h) is None
        np.testing.assert_allclose(tape.gradient(y, x), 6 * X)
        np.testing.assert_allclose(tape.gradient(z, x), 2 * X + 1)


def test_second_order_across_a_mask():
    @tf.function
    def f(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(tf.boolean_mask(x * x * x, x > 0.0))
            g = inner.gradient(y, x)
            total = tf.reduce_sum(g * x)
        return g, outer.gradient(total, x)

    g, h = several(f, tf.constant(X))
    np.testing.assert_allclose(g, np.where(X > 0, 3 * X**2, 0))
    np.testing.assert_allclose(h, np.where(X > 0, 9 * X**2, 0))


def test_variables_change_between_segments():
    v = tf.Variable([1.0, 2.0, 3.0])

    @tf.function
    def f(x):
        v.assign_add(x)
        kept = tf.boolean_mask(v, v > 3.0)
        v.assign(v * 2.0)
        v[0].assign(tf.reduce_sum(kept))
        return kept, v + 0.0

    w = np.array([1.0, 2.0, 3.0])
    for k in range(4):
        x = np.array([1.0, 0.5, 0.25]) * k
        kept, after = f(tf.constant(x, tf.float32))
        w = w + x
        np.testing.assert_allclose(kept, w[w > 3.0])
        w, w[0] = w * 2.0, np.sum(w[w > 3.0])
        w = np.array([kept.numpy().sum(), *w[1:]])
        np.testing.assert_allclose(after, w)
        np.testing.assert_allclose(v, w)


def test_a_loop_with_a_mask_in_its_body():
    @tf.function
    def f(x):
        total = tf.constant(0.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            for i in tf.range(5):
                at_least = tf.boolean_mask(x, x > tf.cast(i, tf.float32) - 2.0)
                total += tf.reduce_sum(at_least * at_least) / 2.0
        return total, tape.gradient(total, x)

    total, g = several(f, tf.constant(X))
    kept = [X[i - 2.0 < X] for i in range(5)]
    np.testing.assert_allclose(total, sum((k * k).sum() for k in kept) / 2, rtol=1e-6)
    np.testing.assert_allclose(g, sum(np.where(i - 2.0 < X, X, 0) for i in range(5)))


def test_functions_that_are_given_read_values_of_other_segments():
    @tf.function
    def f(x):
        scale = tf.reduce_max(x) * 2.0
        kept = tf.boolean_mask(x, x > 0.0)
        rows = tf.map_fn(lambda r: r * scale, kept)

        @tf.custom_gradient
        def squared(y):
            return y * y, lambda g: g * scale

        with tf.GradientTape() as tape:
            tape.watch(rows)
            z = squared(rows)
        return rows, z, tape.gradient(z, rows)

    rows, z, g = several(f, tf.constant(X))
    np.testing.assert_allclose(rows, X[X > 0] * 8.0)
    np.testing.assert_allclose(z, (X[X > 0] * 8.0) ** 2)
    np.testing.assert_allclose(g, np.full(4, 8.0))


def test_arrays_across_a_mask():
    @tf.function
    def f(x):
        ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True, infer_shape=False)
        ta = ta.write(0, x[0] * 2.0)
        kept = tf.boolean_mask(x, x > 0.0)
        ta = ta.write(1, kept)
        for i in tf.range(tf.size(kept)):
            ta = ta.write(ta.size(), [kept[i]])
        return ta.concat()

    np.testing.assert_allclose(several(f, tf.constant(X)), [*X[0] * 2, *X[X > 0], *X[X > 0]])


def test_random_numbers_differ_between_segments():
    @tf.function
    def f(x):
        a = tf.random.normal([3])
        kept = tf.boolean_mask(x, x > 0.0)
        return a, tf.random.normal([3]), tf.random.normal(tf.shape(kept))

    drawn = [np.concatenate([np.asarray(r) for r in f(tf.constant(X))]) for _ in range(3)]
    assert len(np.unique(np.concatenate(drawn))) == 30


def test_an_error_leaves_no_tape_open():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            kept = tf.boolean_mask(x, x > 0.0)
            y = tf.reduce_sum(tf.reshape(kept, [2, 2]))
        return tape.gradient(y, x)

    for _ in range(3):
        f(tf.constant(X))
        with pytest.raises(tf.errors.InvalidArgumentError):
            f(tf.constant(-X))
    with tf.GradientTape() as tape:
        x = tf.constant(2.0)
        tape.watch(x)
        y = x * x
    assert float(tape.gradient(y, x)) == 4.0


def test_variables_of_any_size():
    v = tf.Variable([[1.0, 2.0]], shape=[None, 2])

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def f(x):
        return tf.reduce_sum(v, 0) + tf.reduce_sum(x)

    for n in (1, 3, 1, 3, 3, 2, 2, 1):
        v.assign(tf.ones([n, 2]))
        np.testing.assert_allclose(f(tf.zeros([2, 2])), [n, n])


def test_random_numbers_are_those_of_one_graph():
    tf.random.set_seed(5)

    @tf.function
    def f(x):
        kept = tf.boolean_mask(x, x > 0.0)
        a = tf.random.normal([tf.size(kept)])
        b = tf.random.uniform([2])
        c = tf.random.normal([tf.size(kept), 2], seed=3)
        total = tf.constant(0.0)
        for _ in tf.range(3):
            total += tf.random.uniform([])
        return tf.concat([a, b, tf.reshape(c, [-1]), [total]], 0)

    runs = [f(tf.constant([1.0, -1.0, 2.0])) for _ in range(2)]
    np.testing.assert_allclose(
        runs,
        [
            [
                -1.7138785,
                -0.6787023,
                0.3875184,
                0.7485455,
                -1.4616988,
                -0.5901872,
                0.492833,
                0.7066861,
                1.7923286,
            ],
            [
                -0.2950869,
                -0.2106566,
                0.9647,
                0.2685586,
                -0.4106309,
                1.0206547,
                -0.0660595,
                -0.2505683,
                0.9398472,
            ],
        ],
        atol=1e-6,
    )
    # In eager mode random ops are numbered differently.
    np.testing.assert_allclose(tf.random.normal([2]), [-0.1803067, -0.9502863], atol=1e-6)
