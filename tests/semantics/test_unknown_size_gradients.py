"""Derivatives through functions whose sizes are not known, or depend on values.

A table of losses is differentiated with the tape inside of the function, outside, and around it, and compared with
eager mode. Each function runs at several sizes of one trace, and twice at each: calls one by one, then as a program.
"""

import numpy as np
import pytest

from tests.semantics.lib import ON_TENSORFLOW, logged_warnings, tf

spec = tf.TensorSpec
SIZES = (3, 5, 3, 3)


def vector(n):
    return tf.constant(np.sin(np.arange(1.0, n + 1)).astype(np.float32))


def matrix(n, m):
    return tf.constant(np.sin(np.arange(1.0, n * m + 1)).reshape(n, m).astype(np.float32))


def positive(x):
    return tf.boolean_mask(x, x > 0)


def count(x):
    """How many elements are positive: a size that depends on values."""
    return tf.reduce_sum(tf.cast(x > 0, tf.int32))


def groups(x):
    return tf.unique(tf.cast(x * 3, tf.int32))


def grown(x):
    y = x
    for _ in tf.range(count(x)):
        y = tf.concat([y, positive(x) ** 2], 0)
    return tf.reduce_sum(y**2)


def collected(x):
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[])
    for i in tf.range(tf.size(x)):
        if x[i] > 0:
            array = array.write(array.size(), x[i] ** 3)
    return tf.reduce_sum(array.stack())


def stitched(x):
    part = tf.cast(x > 0, tf.int32)
    a, b = tf.dynamic_partition(x, part, 2)
    at = tf.dynamic_partition(tf.range(tf.size(x)), part, 2)
    return tf.reduce_sum(tf.dynamic_stitch(at, [a**2, b**3]) * x)


@tf.custom_gradient
def cubes(x):
    """The cubes of positive elements, with a custom gradient that differs from theirs."""

    def grad(g):
        return tf.where(x > 0, 7 * x**2, 0.0) * tf.reduce_sum(g)

    return positive(x) ** 3, grad


LOSSES = {
    "boolean_mask": lambda x: tf.reduce_sum(positive(x) ** 3),
    "where": lambda x: tf.reduce_sum(tf.where(x > 0, x**3, x)),
    "unique, segments": lambda x: tf.reduce_sum(
        tf.math.unsorted_segment_sum(x, groups(x)[1], tf.size(groups(x)[0])) ** 3
    ),
    "products of segments": lambda x: tf.reduce_sum(
        tf.math.unsorted_segment_prod(x, groups(x)[1], tf.size(groups(x)[0])) ** 2
    ),
    "dynamic_partition": lambda x: tf.reduce_sum(
        tf.dynamic_partition(x, tf.cast(x > 0, tf.int32), 2)[1] ** 3
    ),
    "dynamic_stitch": stitched,
    "segment_sum": lambda x: tf.reduce_sum(tf.math.segment_sum(x, tf.range(tf.size(x)) // 2) ** 3),
    "repeat": lambda x: tf.reduce_sum(tf.repeat(x, tf.range(tf.size(x))) ** 3),
    "range": lambda x: tf.reduce_sum(
        x[:, None] ** 3 * tf.cast(tf.range(tf.reduce_sum(tf.cast(x > 0, tf.int32))), tf.float32)
    ),
    "sequence_mask": lambda x: tf.reduce_sum(
        tf.sequence_mask(tf.range(tf.size(x)), dtype=tf.float32) * x[:, None] ** 3
    ),
    "one_hot": lambda x: tf.reduce_sum(tf.one_hot(tf.range(tf.size(x)), count(x) + 1) * x[:, None] ** 3),
    "reshape": lambda x: tf.reduce_sum(tf.reshape(positive(x), [-1, tf.size(positive(x))]) ** 3),
    "tile": lambda x: tf.reduce_sum(tf.tile(x, [count(x)]) ** 3),
    "slice": lambda x: tf.reduce_sum(x[: count(x)] ** 3),
    "split": lambda x: tf.reduce_sum(tf.split(x, [count(x), tf.size(x) - count(x)])[0] ** 3),
    "pad": lambda x: tf.reduce_sum(tf.pad(x, [[0, count(x)]])[1:] ** 3),
    "sort": lambda x: tf.reduce_sum(tf.sort(x) ** 3 * tf.cast(tf.range(tf.size(x)), tf.float32)),
    "scatter_nd": lambda x: tf.reduce_sum(
        tf.scatter_nd(tf.range(tf.size(x))[:, None] // 2, x, [tf.size(x)]) ** 3
    ),
    "tensor_scatter_nd_update": lambda x: tf.reduce_sum(
        tf.tensor_scatter_nd_update(x, tf.where(x > 0), positive(x) ** 2) * x
    ),
    "concat": lambda x: tf.reduce_sum(tf.concat([positive(x), x**2], 0) ** 2),
    "stop_gradient": lambda x: tf.reduce_sum(positive(x * tf.stop_gradient(x**2)) ** 2),
    "map_fn": lambda x: tf.reduce_sum(tf.map_fn(lambda e: e**3 * x[0], positive(x))),
    "map_fn that masks": lambda x: tf.reduce_sum(
        tf.map_fn(lambda e: tf.reduce_sum(tf.boolean_mask(x, x > e) ** 3), x)
    ),
    "scan": lambda x: tf.reduce_sum(tf.scan(lambda a, e: a * e, positive(x))),
    "vectorized_map": lambda x: tf.reduce_sum(
        tf.vectorized_map(lambda e: e**3 * tf.reduce_sum(x), positive(x))
    ),
    "reduce_prod": lambda x: tf.reduce_prod(positive(x)),
    "custom_gradient": lambda x: tf.reduce_sum(cubes(x)),
    "cond": lambda x: tf.cond(
        tf.size(x) > 3, lambda: tf.reduce_sum(positive(x) ** 3), lambda: tf.reduce_sum(x**2)
    ),
    "a loop that concatenates": grown,
    "a growing TensorArray": collected,
}

USE_ARRAYS = ("map_fn", "map_fn that masks", "scan", "a growing TensorArray")


@pytest.fixture(params=LOSSES)
def loss(request):
    return LOSSES[request.param]


@pytest.fixture(autouse=True)
def _nothing_runs_eagerly():
    with logged_warnings() as messages:
        yield
    assert not [m for m in messages if "eagerly" in m]


def derivatives(f, x):
    """The value, and the first two derivatives."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        first = tape.gradient(y, x)
    return y, first, outer.gradient(first, x)


def assert_same(actual, expected):
    for a, e in zip(actual, expected, strict=True):
        assert (a is None) == (e is None), f"expected {e}, got {a}"
        if e is not None:
            np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-5)


def test_tapes_inside(loss):
    f = tf.function(lambda x: derivatives(loss, x), input_signature=[spec([None])])
    for n in SIZES:
        assert_same(f(vector(n)), derivatives(loss, vector(n)))
    assert f.experimental_get_tracing_count() == 1


def test_tapes_outside(loss):
    f = tf.function(loss, input_signature=[spec([None])])
    for n in SIZES:
        assert_same(derivatives(f, vector(n)), derivatives(loss, vector(n)))


def test_a_tape_inside_and_one_outside(loss):
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = loss(x)
        return tape.gradient(y, x)

    f = tf.function(gradient, input_signature=[spec([None])])
    for n in SIZES:
        x = vector(n)
        with tf.GradientTape() as tape:
            tape.watch(x)
            first = f(x)
        assert_same([first, tape.gradient(first, x)], derivatives(loss, x)[1:])


def test_forward_mode(loss):
    if loss is LOSSES["custom_gradient"]:
        pytest.skip("forward mode differentiates what the function did")
    if ON_TENSORFLOW and loss in [LOSSES[k] for k in USE_ARRAYS]:
        pytest.skip("TensorFlow has no forward mode for arrays")

    @tf.function(input_signature=[spec([None])])
    def f(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = loss(x)
        return accumulator.jvp(y)

    for n in SIZES:
        np.testing.assert_allclose(
            f(vector(n)), np.sum(derivatives(loss, vector(n))[1]), rtol=1e-4, atol=1e-5
        )


# ---- unconnected sources --------------------------------------------------------------------------


def test_a_second_derivative_that_does_not_depend():
    w = tf.Variable([1.0, 2.0])

    def grads(x):
        with tf.GradientTape() as outer, tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.linalg.matvec(x, w))
        with outer:
            g = tape.gradient(y, w)
        return g, outer.gradient(g, w)

    for shape in ([None, 2], [None, None]):
        f = tf.function(grads, input_signature=[spec(shape)])
        for n in SIZES:
            first, second = f(matrix(n, 2))
            np.testing.assert_allclose(first, tf.reduce_sum(matrix(n, 2), 0), rtol=1e-5)
            assert second is None


def test_unconnected_gradients():
    @tf.function(input_signature=[spec([None])])
    def f(x):
        z = positive(x)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, z])
            y = tf.reduce_sum(x**2)
        assert tape.gradient(y, z) is None
        return tape.gradient(y, [x, z], unconnected_gradients="zero")

    for n in SIZES:
        gx, gz = f(vector(n))
        np.testing.assert_allclose(gx, 2 * vector(n), rtol=1e-6)
        np.testing.assert_array_equal(gz, np.zeros(np.sum(vector(n) > 0)))


def test_several_targets_and_output_gradients():
    @tf.function(input_signature=[spec([None])])
    def f(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y, z = positive(x) ** 2, x**3
        weights = tf.range(tf.size(y), dtype=tf.float32)
        return tape.gradient(y, x, weights), tape.gradient([y, z], x, [tf.ones_like(y), z])

    for n in SIZES:
        x = vector(n).numpy()
        of_mask = np.where(x > 0, 2 * x, 0)
        first, both = f(x)
        np.testing.assert_allclose(first, of_mask * np.maximum(np.cumsum(x > 0) - 1, 0), rtol=1e-5)
        np.testing.assert_allclose(both, of_mask + 3 * x**5, rtol=1e-4)


# ---- functions with gradients of their own --------------------------------------------------------


def test_a_custom_gradient_with_variables():
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def scaled(x):
        m = positive(x)

        def grad(g, variables=None):
            return tf.where(x > 0, 7 * x**2 * v, 0.0) * tf.reduce_sum(g), [tf.reduce_sum(m) * v]

        return m**3 * v, grad

    @tf.function(input_signature=[spec([None])])
    def f(x):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = scaled(x)
            gx, gv = tape.gradient(y, [x, v], tf.ones_like(y))
        return gx, gv, outer.gradient(gx, x), outer.gradient(gv, v)

    for n in SIZES:
        x = vector(n).numpy()
        k, total = np.sum(x > 0), np.sum(x[x > 0])
        on = np.where(x > 0, x, 0)
        assert_same(f(x), [14 * on**2 * k, 2 * total, 28 * on * k, total])


@pytest.mark.parametrize("outside", [False, True])
def test_recompute_grad(outside):
    v = tf.Variable(2.0)
    block = tf.recompute_grad(lambda x: positive(x) ** 3 * v)

    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = g(x)
        return tape.gradient(y, [x, v])

    def g(x):
        return block(x)

    if outside:
        g = tf.function(g, input_signature=[spec([None])])
    else:
        f = tf.function(f, input_signature=[spec([None])])
    for n in SIZES:
        x = vector(n).numpy()
        on = np.where(x > 0, x, 0)
        assert_same(f(tf.constant(x)), [6 * on**2, np.sum(on**3)])


# ---- Jacobians ------------------------------------------------------------------------------------


@pytest.mark.parametrize("pfor", [False, True])
def test_jacobian_of_a_mask(pfor):
    @tf.function(input_signature=[spec([None])])
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = positive(x) ** 2
        return tape.jacobian(y, x, experimental_use_pfor=pfor)

    for n in SIZES:
        x = vector(n).numpy()
        np.testing.assert_allclose(f(x), np.diag(2 * x)[x > 0], rtol=1e-5)


def test_batch_jacobian_and_a_derivative_of_it():
    w = tf.Variable(matrix(4, 3))

    @tf.function(input_signature=[spec([None, 4])])
    def f(x):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.tanh(x @ w)
            j = tape.batch_jacobian(y, x)
            assert j.shape.as_list() == [None, 3, 4]
            total = tf.reduce_sum(j**2)
        return j, outer.gradient(total, w)

    for n in (3, 2, 3, 3):
        x = matrix(n, 4).numpy()
        slope = 1 - np.tanh(x @ w.numpy()) ** 2
        j, g = f(x)
        np.testing.assert_allclose(j, slope[:, :, None] * w.numpy().T, rtol=1e-4, atol=1e-6)
        assert g.shape == (4, 3)


def test_per_example_gradients():
    w = tf.Variable(matrix(2, 2))

    def one(row):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.tanh(tf.linalg.matvec(w, row)) ** 2)
        return tape.gradient(y, w)

    f = tf.function(lambda x: tf.vectorized_map(one, x), input_signature=[spec([None, 2])])
    for n in SIZES:
        x = matrix(n, 2)
        np.testing.assert_allclose(f(x), [one(row) for row in x], rtol=1e-4, atol=1e-6)


# ---- variables ------------------------------------------------------------------------------------


def test_rows_of_a_table():
    table = tf.Variable(matrix(6, 2))

    @tf.function(input_signature=[spec([None], tf.int32)])
    def f(i):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(table, i) ** 2)
        g = tape.gradient(y, table)
        assert isinstance(g, tf.IndexedSlices) and g.values.shape.as_list() == [None, 2]
        return g

    for i in ([1, 2], [1, 1, 5], [1, 2], [1, 2]):
        g = f(tf.constant(i))
        np.testing.assert_array_equal(g.indices, i)
        np.testing.assert_allclose(g.values, 2 * tf.gather(table, i), rtol=1e-6)


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("shape", [[None, 2], None])
def test_a_variable_of_unknown_shape(shape, outside):
    v = tf.Variable(matrix(2, 2), shape=tf.TensorShape(shape))

    def gradient():
        with tf.GradientTape() as tape:
            y = cube()
        return tape.gradient(y, v)

    def cube():
        return v**3

    if outside:
        cube = tf.function(cube)
    else:
        gradient = tf.function(gradient)
    for n in (2, 4, 4, 2):
        v.assign(matrix(n, 2))
        np.testing.assert_allclose(gradient(), 3 * matrix(n, 2) ** 2, rtol=1e-5)


def test_the_static_shape_of_a_variable_of_unknown_shape():
    v, w = tf.Variable(matrix(2, 2), shape=[None, 2]), tf.Variable(matrix(2, 3))

    @tf.function
    def f():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.tanh(v @ w))
        gv, gw = tape.gradient(y, [v, w])
        for x, shape in (
            (v, [None, 2]),
            (v * 2, [None, 2]),
            (v @ w, [None, 3]),
            (gv, [None, 2]),
            (gw, [2, 3]),
        ):
            assert x.shape.as_list() == shape
        return gv

    assert f().shape == (2, 2)
    v.assign(matrix(5, 2))
    assert f().shape == (5, 2)


def test_a_variable_that_grows_in_a_function():
    v = tf.Variable(matrix(2, 2), shape=[None, 2])

    @tf.function(input_signature=[spec([None, 2])])
    def f(x):
        v.assign(tf.concat([v, tf.boolean_mask(x, x[:, 0] > 0)], 0))
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(v**3)
        return tape.gradient(y, v)

    for n in SIZES:
        g = f(matrix(n, 2))
        np.testing.assert_allclose(g, 3 * v.numpy() ** 2, rtol=1e-5)


def test_training_on_masked_losses():
    def step():
        table, w = tf.Variable(matrix(6, 2)), tf.Variable([1.0, -1.0])
        optimizer = tf.optimizers.SGD(0.1, momentum=0.9)

        def f(i, x):
            with tf.GradientTape() as tape:
                h = tf.gather(table, i) * x
                y = tf.reduce_sum(tf.boolean_mask(h, h[:, 0] > 0) ** 2) + tf.reduce_sum((h @ w[:, None]) ** 2)
            optimizer.apply_gradients(zip(tape.gradient(y, [table, w]), [table, w], strict=True))
            return y

        return f, (table, w)

    eager, expected = step()
    f, variables = step()
    traced = tf.function(f, input_signature=[spec([None], tf.int32), spec([None, 2])])
    for n in (2, 3, 2, 2, 5):
        given = tf.range(n), matrix(n, 2)
        np.testing.assert_allclose(traced(*given), eager(*given), rtol=1e-5)
    for v, e in zip(variables, expected, strict=True):
        np.testing.assert_allclose(v, e, rtol=1e-5)


def test_rows_of_a_table_as_a_whole():
    table = tf.Variable(matrix(6, 2))

    @tf.function(input_signature=[spec([None], tf.int32), spec([None, 2])])
    def f(i, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            unique, where = tf.unique(i)
            y = tf.reduce_sum(tf.gather(tf.gather(table, unique), where) ** 2) + tf.reduce_sum(
                tf.gather(x, i)
            )
        of_table, of_x = tape.gradient(y, [table, x])
        assert of_table.shape.as_list() == [6, 2] and of_x.shape.as_list() == [None, 2]
        return tf.convert_to_tensor(of_table), tf.convert_to_tensor(of_x)

    for i, n in (([1, 2], 3), ([1, 1, 4], 5), ([1, 2], 3), ([1, 2], 4), ([1, 2], 3)):
        times = np.bincount(i, minlength=6)[:, None]
        of_table, of_x = f(tf.constant(i), matrix(n, 2))
        np.testing.assert_allclose(of_table, 2 * times * table.numpy(), rtol=1e-5)
        np.testing.assert_array_equal(of_x, np.tile(times[:n], [1, 2]))


# ---- loops ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("outside", [False, True])
def test_second_derivatives_of_a_loop_over_rows_and_a_constant(outside):
    def f(x, rows):
        return tf.reduce_sum(tf.map_fn(lambda e: e**3 * x[0], rows))

    def second(x, rows):
        with tf.GradientTape() as outer:
            outer.watch([x, rows])
            with tf.GradientTape() as tape:
                tape.watch([x, rows])
                y = f(x, rows)
            grads = tape.gradient(y, [x, rows])
        return outer.gradient(grads, [x, rows])

    for signature in (None, [spec([None]), spec([None])]):
        plain, traced = second, tf.function(second, input_signature=signature)
        if outside:
            f, traced = tf.function(f, input_signature=signature), plain
        for n in (5, 3, 5, 3):
            x, rows = tf.range(1.0, n + 1.0), tf.constant([1.0, 2.0, 3.0])
            assert_same(traced(x, rows), [[42.0] + [0.0] * (n - 1), [9.0, 24.0, 45.0]])


def test_a_branch_that_masks_between_two_tapes():
    def value_and_gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            if tf.reduce_sum(x) > 0:
                y = tf.reduce_sum(positive(x) ** 3)
            else:
                y = tf.reduce_sum(x)
        return y, tape.gradient(y, x)

    f = tf.function(value_and_gradient, input_signature=[spec([None])])
    for n in (3, 5, 3, 3):
        for x in (vector(n), -vector(n)):
            on = np.where(x > 0, x, 0) if np.sum(x) > 0 else None
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                y, g = f(x)
                total = tf.reduce_sum(g**2)
            first = tape.gradient(y, x)
            assert_same([first, g], [np.ones(n) if on is None else 3 * on**2] * 2)
            if on is not None:
                assert_same([tape.gradient(total, x)], [36 * on**3])
