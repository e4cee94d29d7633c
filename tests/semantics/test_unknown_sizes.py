"""One trace for all sizes: signatures with None, reduced retracing, sizes that are values, loops whose shapes change."""

import logging

import numpy as np
import pytest

from tests.semantics.lib import counted, tf


@pytest.fixture(autouse=True)
def _nothing_runs_eagerly(caplog):
    """Checks the log, because a function that falls back to its Python code gives right results too."""
    with caplog.at_level(logging.INFO, "gradtape"):
        yield
    assert "eagerly" not in caplog.text


spec = tf.TensorSpec


# ---- signatures ---------------------------------------------------------------------------------


def test_one_trace_serves_all_sizes():
    seen = []

    @tf.function(input_signature=[spec([None, 3])])
    def f(x):
        seen.append((x.shape.as_list(), x.shape.rank))
        return tf.reduce_sum(x, 0), tf.shape(x)[0]

    for n in (1, 4, 2, 4, 4, 0):
        total, count = f(tf.ones([n, 3]))
        assert total.numpy().tolist() == [n] * 3 and int(count) == n
    assert seen == [([None, 3], 2)]


def test_unknown_rank():
    seen = []

    @tf.function(input_signature=[spec(None)])
    def f(x):
        seen.append(x.shape.rank)
        return tf.reshape(x, [-1]) * 2.0, tf.rank(x)

    for shape in ((), (2,), (2, 3), (1, 2, 2)):
        flat, rank = f(tf.ones(shape))
        assert flat.shape.as_list() == [int(np.prod(shape))] and int(rank) == len(shape)
    assert seen == [None]


def test_nests_of_specs():
    f, runs = counted(
        lambda d, y: {"sum": d["a"] + d["b"][0], "y": y},
        input_signature=[{"a": spec([None]), "b": [spec([None])]}, spec([], tf.int32)],
    )
    for n in (2, 3):
        out = f({"a": tf.ones([n]), "b": [tf.ones([n])]}, tf.constant(1))
        assert out["sum"].numpy().tolist() == [2.0] * n
    assert len(runs) == 1


def test_signatures_of_methods_and_defaults():
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([[1.0], [2.0]])
            self.traced = 0

        @tf.function(input_signature=[spec([None, 2]), spec([])])
        def __call__(self, x, scale=1.0):
            self.traced += 1
            return scale * (x @ self.w)

    model = Model()
    assert model(tf.ones([2, 2])).shape.as_list() == [2, 1]
    assert model(tf.ones([5, 2]), tf.constant(2.0)).numpy().tolist() == [[6.0]] * 5
    assert model.traced == 1


@pytest.mark.parametrize("value", [tf.ones([2, 4]), tf.ones([3]), tf.ones([2, 3], tf.int32)])
def test_arguments_that_do_not_fit_a_signature(value):
    f = tf.function(lambda x: x, input_signature=[spec([None, 3])])
    with pytest.raises(TypeError):
        f(value)


def test_reduced_retracing():
    shapes = []

    @tf.function(reduce_retracing=True)
    def f(x):
        shapes.append(x.shape.as_list())
        return x * 2.0

    for n in (1, 2, 3, 1, 7):
        assert f(tf.ones([n])).shape == (n,)
    assert shapes == [[1], [None]]
    assert f.experimental_get_tracing_count() == 2


# ---- sizes that are values ------------------------------------------------------------------------

SIZES = {
    "boolean_mask": lambda x: tf.boolean_mask(x, x > 0.0),
    "where": lambda x: tf.cast(tf.where(x > 0.0), tf.float32),
    "unique": lambda x: tf.unique(x)[0],
    "dynamic_partition": lambda x: tf.dynamic_partition(x, tf.cast(x > 0.0, tf.int32), 2)[1],
    "repeat": lambda x: tf.repeat(x, tf.cast(tf.abs(x), tf.int32)),
    "range": lambda x: tf.range(tf.reduce_max(x)),
    "sequence_mask": lambda x: tf.cast(tf.sequence_mask(tf.cast(tf.abs(x), tf.int32)), tf.float32),
    "one_hot": lambda x: tf.one_hot([0, 1], tf.cast(tf.reduce_max(x), tf.int32)),
    "reshape": lambda x: tf.reshape(x, [tf.cast(x[0], tf.int32), -1]),
    "tile": lambda x: tf.tile(x, [tf.cast(x[0], tf.int32)]),
    "fill": lambda x: tf.fill([tf.cast(x[0], tf.int32), 2], 1.5),
    "slice": lambda x: x[: tf.cast(x[0], tf.int32)],
    "pad": lambda x: tf.pad(x, [[tf.cast(x[0], tf.int32), 1]]),
    "segment_sum": lambda x: tf.math.segment_sum(x, tf.cast(tf.sort(tf.abs(x)), tf.int32)),
    "zeros_like_of_mask": lambda x: tf.zeros_like(tf.boolean_mask(x, x > 0.0)),
    "image.resize": lambda x: tf.image.resize(
        tf.reshape(x, [2, 2, 1]), [tf.cast(x[0], tf.int32), tf.cast(x[2], tf.int32)]
    ),
}
DATA = ([2.0, -1.0, 3.0, 1.0], [1.0, 4.0, 2.0, -3.0], [4.0, 4.0, 1.0, 2.0])


@pytest.mark.parametrize("name", SIZES)
def test_sizes_that_are_values(name):
    f, runs = counted(SIZES[name])
    for data in DATA:
        x = tf.constant(data)
        np.testing.assert_allclose(f(x), SIZES[name](x), rtol=1e-6)
    assert len(runs) <= (1 if name in ("boolean_mask", "unique", "dynamic_partition") else 2)


def test_a_mask_in_the_loss_is_traced_once():
    traces = []

    def loss_of(x):
        return tf.reduce_sum(tf.boolean_mask(x, x > 0.0) ** 2)

    @tf.function
    def step(x):
        traces.append(x.shape.as_list())
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = loss_of(x)
        return tape.gradient(loss, x)

    for data in DATA:
        np.testing.assert_allclose(step(tf.constant(data)), np.maximum(data, 0.0) * 2.0)
    assert traces == [[4]]


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_gradients_through_sizes_that_are_values(where):
    def loss(x):
        kept = tf.boolean_mask(x, x > 0.0)
        return tf.reduce_sum(kept**3) / tf.cast(tf.size(kept), tf.float32)

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = forward(x)
        return y, tape.gradient(y, x)

    forward = tf.function(loss) if where == "outside" else loss
    step = gradient if where == "outside" else tf.function(gradient)
    for data in DATA:
        x = np.array(data)
        y, g = step(tf.constant(data))
        positive = x > 0
        np.testing.assert_allclose(y, (x[positive] ** 3).sum() / positive.sum(), rtol=1e-6)
        np.testing.assert_allclose(g, np.where(positive, 3 * x**2, 0) / positive.sum(), rtol=1e-6)


def test_second_derivatives_at_every_size():
    @tf.function(input_signature=[spec([None])])
    def f(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(x**3)
            g = inner.gradient(y, x)
        return outer.gradient(g, x)

    for n in (1, 3, 2, 3, 3):
        np.testing.assert_allclose(f(tf.ones([n]) * 2.0), np.full(n, 12.0))


def test_training_with_batches_of_any_size():
    v = tf.Variable([[1.0], [2.0]])

    @tf.function(input_signature=[spec([None, 2]), spec([None, 1])])
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ v - y) ** 2)
        v.assign_sub(0.1 * tape.gradient(loss, v))
        return loss

    expected = np.array([[1.0], [2.0]])
    for n in (1, 2, 3, 2, 3, 3):
        x, y = np.arange(2.0 * n).reshape(n, 2) / n, np.ones((n, 1))
        error = x @ expected - y
        loss = step(tf.constant(x, tf.float32), tf.constant(y, tf.float32))
        np.testing.assert_allclose(loss, (error**2).mean(), rtol=1e-5)
        expected = expected - 0.1 * (x.T @ error) * 2 / n
        np.testing.assert_allclose(v, expected, rtol=1e-5)


# ---- loops and branches ---------------------------------------------------------------------------


def test_shape_invariants_of_while_loop():
    @tf.function
    def f(n):
        start = tf.constant(0), tf.zeros([1])
        invariants = tf.TensorShape([]), tf.TensorShape([None])
        return tf.while_loop(
            lambda i, x: i < n,
            lambda i, x: (i + 1, tf.concat([x, [1.0]], 0)),
            start,
            shape_invariants=invariants,
        )[1]

    assert f(tf.constant(0)).shape == (1,) and f(tf.constant(4)).numpy().tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]


def test_a_shape_that_changes_without_invariants():
    f = tf.function(lambda: tf.while_loop(lambda x: True, lambda x: [tf.concat([x, x], 0)], [tf.zeros([1])]))
    with pytest.raises(ValueError, match="shape"):
        f()


def test_loop_options():
    @tf.function
    def f(x):
        while tf.shape(x)[0] < 5:
            tf.autograph.experimental.set_loop_options(shape_invariants=[(x, tf.TensorShape([None]))])
            x = tf.concat([x, x], 0)
        return x

    assert f(tf.ones([3])).shape == (6,)


def test_an_array_that_grows():
    @tf.function
    def f(n):
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(n):
            array = array.write(array.size(), tf.cast(i * i, tf.float32))
            if i > 3:
                break
        return array.stack()

    assert f(tf.constant(3)).numpy().tolist() == [0.0, 1.0, 4.0]
    assert f(tf.constant(9)).numpy().tolist() == [0.0, 1.0, 4.0, 9.0, 16.0]


def test_rows_of_a_tensor_of_unknown_length():
    @tf.function(input_signature=[spec([None, 2])])
    def f(x):
        total = tf.zeros([2])
        for row in x:
            total += row
        return total

    for n in (0, 1, 3):
        assert f(tf.ones([n, 2])).numpy().tolist() == [n, n]


def test_branches_of_different_sizes():
    @tf.function
    def f(x):
        if tf.reduce_sum(x) > 0.0:
            y = x[:1]
        else:
            y = x
        return y

    assert f(tf.ones([3])).shape == (1,) and f(-tf.ones([3])).shape == (3,)


def test_recursion_by_cond():
    @tf.function(input_signature=[spec([None])])
    def halves(x):
        return tf.cond(
            tf.size(x) > 2, lambda: tf.reduce_sum(x[: tf.size(x) // 2]) * 2.0, lambda: tf.reduce_sum(x)
        )

    assert float(halves(tf.ones([8]))) == 8.0 and float(halves(tf.ones([2]))) == 2.0


# ---- functions of functions -------------------------------------------------------------------------


def test_functions_of_functions():
    @tf.custom_gradient
    def clipped(x):
        return x, lambda g: tf.clip_by_value(g, -1.0, 1.0)

    @tf.function(input_signature=[spec([None, 2])])
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(clipped(x) * 3.0)
        rows = tf.map_fn(tf.reduce_sum, x)
        return tape.gradient(y, x), rows, tf.vectorized_map(lambda r: r * 2.0, x)

    for n in (1, 3, 3):
        g, rows, twice = f(tf.ones([n, 2]))
        assert g.numpy().tolist() == [[1.0, 1.0]] * n
        assert rows.numpy().tolist() == [2.0] * n and twice.numpy().tolist() == [[2.0, 2.0]] * n


def test_jacobians():
    @tf.function(input_signature=[spec([None])])
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x**2
        return tape.jacobian(y, x)

    for n in (1, 3, 3):
        np.testing.assert_allclose(f(tf.ones([n])), 2 * np.eye(n))


def test_assignments_and_random_numbers():
    count = tf.Variable(0)

    @tf.function(input_signature=[spec([None])])
    def f(x):
        count.assign_add(1)
        count.assign(count * 1)
        return x + tf.random.uniform(tf.shape(x))

    results = [f(tf.zeros([3])).numpy() for _ in range(3)]
    assert int(count) == 3
    assert not np.array_equal(results[0], results[1]) and not np.array_equal(results[1], results[2])


def test_second_derivatives_through_a_loop_that_draws_random_numbers():
    @tf.function
    def f(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y, factor = x, tf.constant(1.0)
                for _ in tf.range(3):
                    drawn = tf.random.uniform([], 0.5, 1.0)
                    y, factor = y * x * drawn, factor * drawn
            g = inner.gradient(y, x)
        return y / factor, g / factor, outer.gradient(g, x) / factor

    for _ in range(3):
        np.testing.assert_allclose(f(tf.constant(2.0)), [16.0, 32.0, 48.0], rtol=1e-5)


def test_values_of_unknown_size_into_variables():
    v = tf.Variable([1.0, 2.0, 3.0])

    @tf.function(input_signature=[spec([None])])
    def f(x):
        v.assign_sub(x)
        total = v * 2.0
        v.assign(x)
        return total

    for _ in range(3):
        v.assign([1.0, 2.0, 3.0])
        assert f(tf.ones([3])).numpy().tolist() == [0.0, 2.0, 4.0]
        assert v.numpy().tolist() == [1.0, 1.0, 1.0]
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        f(tf.ones([2]))
    assert v.shape == (3,)


def test_objects_that_become_tensors_of_the_function():
    """Arguments are converted when the call is recorded, with their unknown sizes; the function is traced once."""

    class Doubled:
        def __init__(self, x):
            self.x = x

        def __tf_tensor__(self, dtype=None, name=None):
            return self.x * 2.0

    traced = []

    @tf.function(input_signature=[spec([None])])
    def f(x):
        traced.append(1)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.square(Doubled(x)))
        shape = tf.shape(Doubled(x))
        return tf.zeros(tf.concat([shape, [1]], 0)), tf.add(x, Doubled(x)), tape.gradient(y, x)

    for n in (3, 5):
        zeros, total, slope = f(tf.ones([n]))
        assert zeros.shape == (n, 1)
        assert total.numpy().tolist() == [3.0] * n and slope.numpy().tolist() == [8.0] * n
    assert len(traced) == 1


def test_variables_that_were_assigned_a_size():
    """While sizes are tried the variable holds a number, which must not be used when the function runs."""
    rows, begun = tf.Variable(0), tf.Variable(False)
    inner = tf.function(lambda: rows * 2)

    @tf.function(input_signature=[spec([None])])
    def f(x):
        rows.assign(tf.shape(x)[0])
        _, total = tf.while_loop(lambda i, _: i < 3, lambda i, k: (i + 1, k + rows), [0, 0])
        chosen = tf.cond(rows > 3, lambda: rows + 1, lambda: rows - 1)
        return (
            rows.value(),
            rows + 1,
            tf.cast(rows, tf.float32),
            tf.stack([rows, 1]),
            tf.fill([rows], 1),
            total,
            chosen,
            inner(),
        )

    for n in (3, 5):
        read, more, cast, stacked, filled, total, chosen, doubled = f(tf.ones([n]))
        assert (read, more, cast, total, doubled) == (n, n + 1, n, 3 * n, 2 * n)
        assert stacked.numpy().tolist() == [n, 1] and filled.shape == (n,) and chosen == (2 if n == 3 else 6)

    @tf.function(input_signature=[spec([None])])
    def g(x):
        if not begun:
            rows.assign(tf.shape(x)[0])
            begun.assign(True)
        return rows.value(), tf.shape(x)[0] - rows.value()

    assert [int(v) for v in g(tf.ones([3]))] == [3, 0]
    assert [int(v) for v in g(tf.ones([5]))] == [3, 2]
