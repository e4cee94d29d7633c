"""vectorized_map: one call for all rows gives the same as a loop over the rows."""

import collections

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.batching import vectorize

from .differences import compiling, differences

rng = np.random.default_rng(0)
X = tf.constant(rng.normal(size=(4, 3)))
Y = tf.constant(rng.normal(size=(4, 2)))
N = tf.constant([3, 0, 2, 5])
W = tf.constant(rng.normal(size=(3, 3)))


@pytest.fixture
def calls(monkeypatch):
    """Counts how often a function could be vectorised."""
    counted = []
    original = vectorize.vectorized

    def vectorized(*args):
        result = original(*args)
        counted.append(1)
        return result

    monkeypatch.setattr(vectorize, "vectorized", vectorized)
    return counted


def loop(fn, elems):
    """The reference: one row after the other."""
    count = tf.nest.flatten(elems)[0].shape[0]
    rows = [fn(tf.nest.map_structure(lambda e, i=i: e[i], elems)) for i in range(count)]
    return tf.nest.map_structure(lambda *xs: np.stack([tf.convert_to_tensor(x).numpy() for x in xs]), *rows)


def check(fn, elems, rtol=1e-12):
    expected = loop(fn, elems)
    inside = tf.function(lambda e: tf.vectorized_map(fn, e))
    for got in (tf.vectorized_map(fn, elems), inside(elems), inside(elems)):
        tf.nest.assert_same_structure(got, expected)
        for g, e in zip(tf.nest.flatten(got), tf.nest.flatten(expected), strict=True):
            assert g.dtype == e.dtype
            np.testing.assert_allclose(g.numpy(), e, rtol=rtol, atol=1e-13)


# ---- values -------------------------------------------------------------------------------------

FUNCTIONS = {
    "elementwise": lambda x: tf.sin(x) * 2.0,
    "scalar": lambda x: tf.reduce_sum(x * x),
    "matmul": lambda x: tf.linalg.matvec(W, x),
    "outer": lambda x: tf.tensordot(x, x, 0),
    "einsum": lambda x: tf.einsum("i,ij,j->", x, W, x),
    "softmax": tf.nn.softmax,
    "sort": lambda x: tf.sort(x, direction="DESCENDING"),
    "argmax": tf.argmax,
    "top_k": lambda x: tf.math.top_k(x, 2).indices,
    "gather by position": lambda x: tf.gather(W, tf.argmax(x)),
    "gather": lambda x: tf.gather(x, [2, 0]),
    "slices": lambda x: x[::-1][:2] + x[1],
    "concat": lambda x: tf.concat([x, [1.0], x * x], 0),
    "stack": lambda x: tf.stack([x, tf.ones_like(x)], axis=1),
    "shape": lambda x: tf.reshape(x, [tf.shape(x)[0], 1]),
    "where": lambda x: tf.where(x > 0.0, x, 0.0),
    "cast": lambda x: tf.cast(x * 10.0, tf.int32),
    "compare": lambda x: x > tf.reduce_mean(x),
    "reduce": lambda x: tf.reduce_max(x) - tf.reduce_min(x, keepdims=True),
    "norm": lambda x: x / tf.norm(x),
    "one_hot": lambda x: tf.one_hot(tf.argmax(x), 5),
    "segment": lambda x: tf.math.segment_sum(x, [0, 0, 1]),
    "scatter": lambda x: tf.scatter_nd([[1], [3]], x[:2], [5]),
    "tile": lambda x: tf.tile(x[None], [2, 2]),
    "cumsum": lambda x: tf.cumsum(x, reverse=True),
    "complex": lambda x: tf.abs(tf.complex(x, x[::-1])),
    "pad": lambda x: tf.pad(x, [[1, 1]], constant_values=3.0),
    "boolean algebra": lambda x: tf.reduce_any(tf.logical_and(x > 0.0, x < 1.0)),
    "a constant": lambda x: tf.constant([1.0, 2.0]),
    "a number": lambda x: 3,
    "the row": lambda x: x,
    "a function": tf.function(lambda x: tf.tanh(x) * x),
    "recompute_grad": tf.recompute_grad(lambda x: tf.tanh(x) * x),
    "a tuple": lambda x: (x, tf.reduce_sum(x)),
    "a dict": lambda x: {"a": x, "b": [x * 2.0, tf.argmin(x)]},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name, calls):
    check(FUNCTIONS[name], X)
    assert calls, "it was called row by row"


def test_structures():
    Point = collections.namedtuple("Point", "x y")
    check(lambda e: Point(e["a"] * 2.0, {"n": e["b"][1] + 1, "y": e["b"][0]}), {"a": X, "b": (Y, N)})
    check(lambda p: p.x[0] + p.y[1], Point(X, Y))
    check(lambda e: [e[0] + 1.0], [X])


@pytest.mark.parametrize("size", [0, 1, 2])
def test_sizes(size):
    x = tf.ones([size, 3])
    y = tf.vectorized_map(lambda r: (r * 2.0, tf.reduce_sum(r), tf.constant([1])), x)
    assert [t.shape for t in y] == [[size, 3], [size], [size, 1]]
    np.testing.assert_array_equal(y[0], 2 * np.ones([size, 3]))


def test_rows_of_size_0_and_1():
    assert tf.vectorized_map(lambda r: tf.concat([r, r], 0), tf.ones([3, 0])).shape == [3, 0]
    np.testing.assert_array_equal(tf.vectorized_map(lambda r: r + 1.0, tf.ones([3])), [2, 2, 2])


def test_one_row_serves_all():
    y = tf.vectorized_map(lambda e: e[0] * e[1], (X, tf.constant([[2.0, 3.0, 4.0]], tf.float64)))
    np.testing.assert_array_equal(y, X.numpy() * [2, 3, 4])
    y = tf.vectorized_map(lambda e: e[0] * e[1], (X[:1], X[:1]))
    np.testing.assert_array_equal(y, X.numpy()[:1] ** 2)


def test_arrays_lists_and_variables_as_elems():
    np.testing.assert_array_equal(tf.vectorized_map(lambda r: r * 2.0, np.float32([1, 2])), [2, 4])
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(tf.vectorized_map(tf.reduce_sum, v), [3, 7])
    with tf.GradientTape() as tape:
        y = tf.vectorized_map(lambda r: r**2, v)
    np.testing.assert_array_equal(tape.gradient(y, v), 2 * v.numpy())


def test_results_that_do_not_depend_on_the_row():
    outside = tf.constant([5.0, 6.0])
    check(lambda x: (outside, tf.reduce_sum(outside), tf.zeros([2]), x[0]), X)


# ---- what it reads ------------------------------------------------------------------------------


def test_variables_and_closures():
    v, t = tf.Variable([1.0, 2.0, 3.0], dtype=tf.float64), tf.constant(2.0, tf.float64)
    check(lambda x: x * v * t + W[0], X)
    inside = tf.function(lambda x: tf.vectorized_map(lambda r: r * v, x))
    before = inside(X)
    v.assign([0.0, 0.0, 1.0])
    after = inside(X)
    np.testing.assert_allclose(before, X.numpy() * [1, 2, 3])
    np.testing.assert_allclose(after, X.numpy() * [0, 0, 1])


def test_tensors_of_the_function_around():
    @tf.function
    def f(x, y):
        z = y * 2.0
        return tf.vectorized_map(lambda r: r * z[:3] + tf.reduce_sum(y), x)

    y = tf.constant(rng.normal(size=5))
    np.testing.assert_allclose(f(X, y), X.numpy() * 2 * y.numpy()[:3] + y.numpy().sum())


def test_tables():
    table = tf.Variable(rng.normal(size=(6, 2)))
    check(lambda n: tf.nn.embedding_lookup(table, n) * 2.0, N)
    with tf.GradientTape() as tape:
        y = tf.vectorized_map(lambda n: tf.gather(table, n) ** 2, N)
    g = tf.convert_to_tensor(tape.gradient(y, table)).numpy()
    expected = np.zeros((6, 2))
    for n in N.numpy():
        expected[n] += 2 * table.numpy()[n]
    np.testing.assert_allclose(g, expected)


# ---- gradients ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name):
    """Gradients with respect to the rows and to shared values, as those of a loop."""

    def total(map_, x, w):
        global W
        before, W = W, w
        try:
            results = tf.nest.flatten(map_(FUNCTIONS[name], x))
        finally:
            W = before
        floats = [tf.cast(r, tf.float64) for r in results if r.dtype.is_floating]
        return tf.add_n([tf.reduce_sum(f**2) for f in floats]) if floats else tf.reduce_sum(x) * 0.0

    def rows(fn, x):
        done = [fn(r) for r in tf.unstack(x)]
        return tf.nest.map_structure(lambda *ys: tf.stack([tf.convert_to_tensor(y) for y in ys]), *done)

    def gradients(map_, order):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([X, W])
            y = total(map_, X, W)
            g = [tf.convert_to_tensor(g) for g in tape.gradient(y, [X, W], unconnected_gradients="zero")]
            if order == 1:
                return g
            s = tf.reduce_sum(g[0] ** 2) + tf.reduce_sum(g[1] ** 2)
        return [tf.convert_to_tensor(g) for g in tape.gradient(s, [X, W], unconnected_gradients="zero")]

    for order in (1, 2):
        expected = gradients(rows, order)
        for _ in range(3 if order == 1 else 2):
            for g, e in zip(gradients(tf.vectorized_map, order), expected, strict=True):
                np.testing.assert_allclose(g, e, rtol=1e-9, atol=1e-9)


def test_jacobian_through_the_map():
    x = tf.constant(rng.normal(size=(3, 2)))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.vectorized_map(lambda r: tf.sin(r) * tf.reduce_sum(r), x)
    expected = differences(lambda a: np.sin(a) * a.sum(1, keepdims=True), x.numpy())
    np.testing.assert_allclose(tape.jacobian(y, x), expected, atol=1e-8)


def test_tapes_inside():
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.sin(x) ** 2)
        return tape.gradient(y, x)

    check(slope, X)

    def hessian(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            g = slope(x)
        return outer.jacobian(g, x)

    check(hessian, X)
    np.testing.assert_allclose(tf.vectorized_map(hessian, X)[0], np.diag(2 * np.cos(2 * X.numpy()[0])))


def test_accumulators_inside():
    def directional(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as acc:
            y = tf.sin(x) * tf.reduce_sum(x)
        return acc.jvp(y)

    check(directional, X)


# ---- nested -------------------------------------------------------------------------------------


def test_nested():
    def pairs(x):
        return tf.vectorized_map(lambda y: tf.reduce_sum((x - y) ** 2), X)

    check(pairs, X)
    distances = tf.vectorized_map(pairs, X).numpy()
    np.testing.assert_allclose(distances, ((X.numpy()[:, None] - X.numpy()) ** 2).sum(-1))


def test_nested_three_deep():
    a, b, c = (tf.constant(rng.normal(size=n)) for n in (2, 3, 4))

    def f(x):
        return tf.vectorized_map(lambda y: tf.vectorized_map(lambda z: tf.sin(x * y) + z, c), b)

    got = tf.vectorized_map(f, a)
    expected = np.sin(a.numpy()[:, None, None] * b.numpy()[:, None]) + c.numpy()
    np.testing.assert_allclose(got, expected)


def test_nested_with_ops_that_have_no_rule():
    """Nested maps: an op that runs as a loop runs as one loop over both axes."""
    elems = tf.constant(rng.normal(size=(2, 3, 4)))
    seq = tf.constant(np.sort(rng.normal(size=5)))

    def f(rows):
        return tf.vectorized_map(lambda r: tf.searchsorted(seq, r), rows)

    np.testing.assert_array_equal(tf.vectorized_map(f, elems), np.searchsorted(seq.numpy(), elems.numpy()))


# ---- control flow -------------------------------------------------------------------------------


def steps(x):
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x + 1.0), [0, x])[1]


def collatz(n):
    """Each row runs as long as it needs."""
    return tf.while_loop(
        lambda k, n: n > 1, lambda k, n: (k + 1, tf.where(n % 2 == 0, n // 2, 3 * n + 1)), [0, n]
    )[0]


def newton(x):
    a = tf.abs(x[0]) + 0.1
    return tf.while_loop(
        lambda y: tf.abs(y * y - a) > 1e-10, lambda y: ((y + a / y) / 2.0,), [tf.ones([], tf.float64)]
    )[0]


CONTROL = {
    "cond, same for all": lambda x: tf.cond(W[0, 0] > 0.0, lambda: x * 2.0, lambda: x),
    "cond": lambda x: tf.cond(x[0] > 0.0, lambda: x * 2.0, lambda: tf.sin(x)),
    "cond with results that do not depend on the row": lambda x: tf.cond(
        x[0] > 0.0, lambda: W[0], lambda: tf.zeros([3], tf.float64)
    ),
    "nested cond": lambda x: tf.cond(
        x[0] > 0.0, lambda: tf.cond(x[1] > 0.0, lambda: x, lambda: -x), lambda: x * x
    ),
    "switch_case": lambda x: tf.switch_case(
        tf.cast(tf.argmax(x), tf.int32), [lambda: x, lambda: x * 2.0, lambda: x * 3.0]
    ),
    "while": steps,
    "while by value": newton,
    "while inside cond": lambda x: tf.cond(x[0] > 0.0, lambda: steps(x), lambda: x),
    "cond inside while": lambda x: tf.while_loop(
        lambda i, y: i < 3,
        lambda i, y: (i + 1, tf.cond(y[0] > 0.0, lambda: y - 1.0, lambda: y * x)),
        [0, x],
    )[1],
    "map_fn": lambda x: tf.map_fn(lambda r: r * x, x),
    "scan": lambda x: tf.scan(lambda a, r: a * r + 1.0, x),
    "foldl": lambda x: tf.foldl(lambda a, r: a * r + x[0], x),
    "TensorArray": lambda x: tf.TensorArray(tf.float64, 3).unstack(x * x).stack(),
}


@pytest.mark.parametrize("name", CONTROL)
def test_control_flow(name, calls):
    check(CONTROL[name], X)
    assert calls, "it was called row by row"


@pytest.mark.parametrize("name", CONTROL)
def test_gradients_of_control_flow(name):
    def gradient(map_):
        with tf.GradientTape() as tape:
            tape.watch([X, W])
            y = map_(CONTROL[name], X)
        return tape.gradient(y, [X, W], output_gradients=tf.sin(y), unconnected_gradients="zero")

    def rows(fn, x):
        return tf.stack([fn(r) for r in tf.unstack(x)])

    expected = gradient(rows)
    inside = tf.function(lambda: gradient(tf.vectorized_map))
    for found in (*(gradient(tf.vectorized_map) for _ in range(3)), inside()):
        for g, e in zip(found, expected, strict=True):
            np.testing.assert_allclose(g, e, rtol=1e-9, atol=1e-12)


def test_loops_of_different_length(calls):
    check(collatz, tf.constant([1, 7, 27, 6]))
    assert calls


def python_branch(x):
    if x[0] > 0.0:
        y = x * 2.0
    else:
        y = tf.sin(x)
    return y


def python_loop(x):
    y = x
    while tf.reduce_sum(y * y) > 0.5:
        y = y / 2.0
    return y


def python_for(x):
    y = tf.zeros([3], tf.float64)
    for i in tf.range(3):
        y += x[i] * x
    return y


@pytest.mark.parametrize("f", [python_branch, python_loop, python_for])
def test_python_control_flow(f, calls):
    check(f, X)
    assert calls, "it was called row by row"


# ---- random numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: tf.random.normal([5]),
        lambda x: tf.random.uniform([5]),
        lambda x: tf.random.uniform([5], 0, 1000000, tf.int32),
        lambda x: x[0] * tf.random.normal([5], dtype=tf.float64),
        lambda x: tf.nn.dropout(tf.ones([40]), 0.5),
        lambda x: tf.random.shuffle(tf.range(20)),
        lambda x: tf.random.truncated_normal([5]),
        lambda x: tf.cond(W[0, 0] > 0.0, lambda: tf.random.normal([5]), lambda: tf.random.normal([5])),
        lambda x: tf.while_loop(
            lambda i, y: i < 2, lambda i, y: (i + 1, y + tf.random.normal([5])), [0, tf.zeros([5])]
        )[1],
        lambda x: tf.map_fn(lambda i: tf.random.normal([]), tf.zeros([5])),
        lambda x: tf.function(lambda: tf.random.normal([5]))(),
        lambda x: tf.reduce_sum(tf.vectorized_map(lambda i: tf.random.normal([5]), tf.zeros([2])), 0),
        lambda x: tf.random.gamma([5], 2.0),
        lambda x: tf.cast(tf.random.categorical(tf.zeros([1, 100000]), 5)[0], tf.float32),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_each_row_has_random_numbers_of_its_own(draw, inside, unseeded):
    f = lambda x: tf.vectorized_map(draw, x)  # noqa: E731
    if inside:
        f = tf.function(f)
    first, second = f(X).numpy(), f(X).numpy()
    rows = {tuple(r) for r in (*first, *second)}
    assert len(rows) == 8


def test_all_rows_of_all_maps_have_random_numbers_of_their_own(unseeded):
    @tf.function
    def f(x):
        return tf.vectorized_map(lambda r: tf.vectorized_map(lambda s: tf.random.normal([2]) + 0.0 * s, r), x)

    x = tf.zeros([3, 4])
    numbers = np.concatenate([np.ravel(f(x)), np.ravel(f(x)), np.ravel(f.python_function(x))])
    assert len(set(numbers.tolist())) == 3 * 3 * 4 * 2


def test_dropout_drops_other_elements_for_each_example():
    w = tf.Variable(np.ones(50, np.float32))
    g = tf.autodiff.per_example_gradient(
        lambda x: tf.reduce_sum(tf.nn.dropout(x * w, 0.5)), w, tf.ones([6, 50])
    )
    assert set(np.unique(g)) == {0.0, 2.0}
    assert len({tuple(row) for row in g.numpy()}) == 6


@pytest.mark.parametrize("inside", [False, True])
def test_a_generator_gives_each_row_numbers_of_its_own(inside):
    generator = tf.random.Generator.from_seed(1)
    f = lambda x: tf.vectorized_map(lambda r: generator.normal([2]), x)  # noqa: E731
    f = tf.function(f) if inside else f
    numbers = np.concatenate([np.ravel(f(X)), np.ravel(f(X))])
    assert len(set(numbers.tolist())) == 16


@pytest.mark.parametrize("inside", [False, True])
def test_prints_and_checks_run_for_each_row(inside, capfd):
    def f(x):
        tf.debugging.assert_positive(x)
        tf.print("row", x)
        return x * 2.0

    run = lambda x: tf.vectorized_map(f, x)  # noqa: E731
    run = tf.function(run) if inside else run
    np.testing.assert_array_equal(run(tf.constant([1.0, 2.0, 3.0])), [2, 4, 6])
    printed = capfd.readouterr()
    assert [f"row {k}" in printed.out + printed.err for k in (1, 2, 3)] == [True] * 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="Condition x > 0 did not hold"):
        run(tf.constant([1.0, -2.0, 3.0]))


def test_stateless_numbers_are_the_same_in_all_rows():
    y = tf.vectorized_map(lambda x: tf.random.stateless_normal([3], [1, 2]), X)
    expected = tf.random.stateless_normal([3], [1, 2])
    np.testing.assert_array_equal(y, np.tile(expected, [4, 1]))


def test_stateless_numbers_of_seeds_of_the_rows():
    seeds = tf.constant([[1, 2], [3, 4], [1, 2]])
    y = tf.vectorized_map(lambda s: tf.random.stateless_normal([3], s), seeds).numpy()
    for row, seed in zip(y, seeds, strict=True):
        np.testing.assert_array_equal(row, tf.random.stateless_normal([3], seed))


def test_the_seed_decides():
    def run():
        tf.random.set_seed(5)
        return tf.vectorized_map(lambda x: x + tf.random.normal([3], dtype=tf.float64), X).numpy()

    np.testing.assert_array_equal(run(), run())


# ---- fallbacks ----------------------------------------------------------------------------------


def test_functions_that_look_at_values():
    seen = []

    def f(x):
        seen.append(x.numpy())
        return x * float(x[0])

    y = tf.vectorized_map(f, X)
    np.testing.assert_allclose(y, X.numpy() * X.numpy()[:, :1])
    assert len(seen) == 4
    with pytest.raises(Exception, match="."):
        tf.vectorized_map(f, X, fallback_to_while_loop=False)


def test_shapes_that_differ_between_rows():
    def f(n):
        return tf.range(n)

    np.testing.assert_array_equal(tf.vectorized_map(f, tf.constant([2, 2])), [[0, 1], [0, 1]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Shapes of all inputs must match"):
        tf.vectorized_map(f, tf.constant([1, 2]))


def test_sparse_results_are_dense():
    y = tf.vectorized_map(lambda x: tf.IndexedSlices(x[:1], tf.constant([1]), tf.constant([3])), X)
    np.testing.assert_array_equal(y[:, 1], X[:, 0])
    assert y.shape == [4, 3]


def test_no_result_is_an_error():
    with pytest.raises(ValueError, match="None"):
        tf.vectorized_map(lambda x: None, X)


def test_shapes_that_depend_on_values():
    def f(x):
        return tf.reduce_sum(tf.boolean_mask(x, x > 0.0))

    np.testing.assert_allclose(tf.vectorized_map(f, X), np.maximum(X.numpy(), 0).sum(1))


def test_assignments_run_row_by_row():
    v = tf.Variable(0.0, dtype=tf.float64)

    def f(x):
        v.assign_add(x[0])
        return v * 1.0

    np.testing.assert_allclose(tf.vectorized_map(f, X), np.cumsum(X.numpy()[:, 0]))


def test_python_functions():
    check(lambda x: tf.py_function(lambda x: x * float(x[0]), [x], tf.TensorSpec([3], tf.float64)), X)
    check(lambda x: tf.numpy_function(np.sin, [x], tf.float64), X)


def test_custom_gradients():
    @tf.custom_gradient
    def f(x):
        return x**2, lambda g: 7.0 * g * x

    check(f, X)
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = tf.vectorized_map(f, X)
        np.testing.assert_allclose(tape.gradient(y, X), 7 * X.numpy())


def test_custom_gradients_that_look_at_values():
    @tf.custom_gradient
    def f(x):
        return x**2, lambda g: tf.constant(7.0 * g.numpy() * x.numpy())

    with tf.GradientTape() as tape:
        tape.watch(X)
        y = tf.vectorized_map(f, X)
    np.testing.assert_allclose(y, X.numpy() ** 2)
    np.testing.assert_allclose(tape.gradient(y, X), 7 * X.numpy())


# ---- errors -------------------------------------------------------------------------------------


def test_errors_are_those_of_a_row():
    with pytest.raises(tf.errors.InvalidArgumentError, match="matmul"):
        tf.vectorized_map(lambda x: tf.matmul(x[None], x[None]), X)
    with pytest.raises(ZeroDivisionError):
        tf.vectorized_map(lambda x: 1 / 0, X)


def test_wrong_elems():
    with pytest.raises(ValueError, match="1\\+ dimensional"):
        tf.vectorized_map(lambda x: x, tf.constant(1.0))
    with pytest.raises(ValueError, match="first dimensions of elems differ"):
        tf.vectorized_map(lambda x: x[0], (tf.ones([2]), tf.ones([3])))
    with pytest.raises(TypeError, match="callable"):
        tf.vectorized_map(3, X)


def test_the_function_is_called_once_for_all_rows(calls):
    seen = []

    def f(r):
        seen.append(1)
        return tf.tanh(tf.sin(r) * tf.reduce_sum(r) + tf.cos(r))

    with compiling(True):
        tf.vectorized_map(f, tf.ones([300, 3]))
    assert len(seen) == len(calls) == 1
