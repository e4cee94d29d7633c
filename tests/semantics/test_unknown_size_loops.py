"""Loops and branches of unknown sizes: invariants, growing arrays, datasets, folds, gradients, errors."""

import logging

import numpy as np
import pytest

from tests.semantics.lib import differs_on_tensorflow, tf

spec = tf.TensorSpec
set_options = tf.autograph.experimental.set_loop_options


@pytest.fixture(autouse=True)
def _nothing_runs_eagerly(caplog):
    """Checks the log, because a function that falls back to its Python code gives right results too."""
    with caplog.at_level(logging.INFO, "gradtape"):
        yield
    assert "eagerly" not in caplog.text


def rows(n):
    return np.sin(np.arange(1.0, 2 * n + 1)).astype(np.float32).reshape(n, 2)


def shape_of(x):
    """A static shape as a tensor: -1 for a size that is not known, -2 for a rank."""
    return tf.constant([-2] if x.shape.rank is None else [-1 if d is None else d for d in x.shape.as_list()])


# ---- invariants -----------------------------------------------------------------------------------


def test_invariants_in_nests():
    @tf.function
    def f(n):
        _, d = tf.while_loop(
            lambda i, d: i < n,
            lambda i, d: (i + 1, {"a": tf.concat([d["a"], [1.0]], 0), "b": (d["b"][0][None],)}),
            (tf.constant(0), {"a": tf.zeros([1]), "b": (tf.constant(1),)}),
            shape_invariants=(
                tf.TensorShape([]),
                {"a": spec([None], tf.float32), "b": (tf.TensorShape(None),)},
            ),
        )
        return d["a"], d["b"][0], shape_of(d["a"]), shape_of(d["b"][0])

    for n in (0, 1, 3):
        a, b, shape, rank = f(tf.constant(n))
        assert a.shape == (n + 1,) and b.shape == (1,) * n
        assert shape.numpy().tolist() == [-1] and rank.numpy().tolist() == [-2]


def test_most_iterations_of_while_loop():
    @tf.function
    def f(n):
        return tf.while_loop(
            lambda x: tf.size(x) < n,
            lambda x: (tf.concat([x, x], 0),),
            (tf.ones([1]),),
            shape_invariants=(tf.TensorShape([None]),),
            maximum_iterations=2,
        )[0]

    assert [f(tf.constant(n)).shape[0] for n in (0, 2, 3, 100)] == [1, 2, 4, 4]


def test_options_of_a_while_statement():
    @tf.function
    def f(n, most):
        x, pair, i = tf.zeros([1]), (tf.zeros([2, 1]), tf.constant(0)), 0
        while i < n:
            tf.autograph.experimental.set_loop_options(
                maximum_iterations=most,
                parallel_iterations=2,
                shape_invariants=[
                    (x, tf.TensorShape([None])),
                    (pair, (tf.TensorShape([2, None]), tf.TensorShape([]))),
                ],
            )
            x = tf.concat([x, [1.0]], 0)
            pair = tf.concat([pair[0], pair[0]], 1), pair[1] + 1
            i += 1
        return x, pair, shape_of(x), shape_of(pair[0])

    for n, most, count in ((0, 5, 0), (2, 5, 2), (4, 3, 3)):
        x, pair, *shapes = f(tf.constant(n), tf.constant(most))
        assert x.shape == (count + 1,) and pair[0].shape == (2, 2**count) and int(pair[1]) == count
        assert [s.numpy().tolist() for s in shapes] == [[-1], [2, -1]]


@pytest.mark.parametrize("n, count", [(0, 0), (2, 2), (5, 3)])
def test_options_of_a_for_statement(n, count):
    @tf.function
    def over_range(n):
        x = tf.zeros([1, 2])
        for _ in tf.range(n):
            set_options(shape_invariants=[(x, tf.TensorShape([None, 2]))], maximum_iterations=3)
            x = tf.concat([x, tf.ones([1, 2])], 0)
        return x

    @tf.function(input_signature=[spec([None])])
    def over_rows(rows):
        total = 0.0
        for row in rows:
            set_options(maximum_iterations=3)
            total += row
        return total

    assert over_range(tf.constant(n)).shape == (count + 1, 2)
    assert float(over_rows(tf.ones([n]))) == count


def test_options_mean_nothing_to_loops_of_python_and_other_variables():
    @tf.function
    def f(x, n):
        y = tf.zeros([2])
        for _ in range(3):
            set_options(maximum_iterations=1, shape_invariants=[(x, tf.TensorShape([None]))])
            x = tf.concat([x, [1.0]], 0)
        for _ in tf.range(n):
            set_options(shape_invariants=[(y, tf.TensorShape([None]))])
            x = x + 1.0
        return x + y[0], shape_of(x)

    x, shape = f(tf.ones([2]), tf.constant(2))
    assert x.numpy().tolist() == [3.0] * 5 and shape.numpy().tolist() == [5]
    assert set_options(maximum_iterations=3) is None


def test_options_in_loops_within_loops():
    @tf.function
    def f(n):
        x = tf.zeros([1])
        for i in tf.range(n):
            set_options(shape_invariants=[(x, tf.TensorShape([None]))])
            for j in tf.range(2):
                set_options(shape_invariants=[(x, tf.TensorShape([None]))])
                x = tf.concat([x, [tf.cast(i + j, tf.float32)]], 0)
        return x

    assert f(tf.constant(0)).numpy().tolist() == [0.0]
    assert f(tf.constant(2)).numpy().tolist() == [0.0, 0.0, 1.0, 1.0, 2.0]


def test_autograph_keeps_unknown_sizes():
    @tf.function(input_signature=[spec([None]), spec(None)])
    def f(x, y):
        while tf.size(x) < 4:
            x = tf.concat([x, x], 0)
        while tf.rank(y) < 2:
            y = y[None]
        return x, y, shape_of(x), shape_of(y)

    for n in (1, 3, 5):
        x, y, *shapes = f(tf.ones([n]), tf.ones([n]))
        assert x.shape == ({1: 4, 3: 6, 5: 5}[n],) and y.shape == (1, n)
        assert [s.numpy().tolist() for s in shapes] == [[-1], [-2]]


# ---- loops without iterations ---------------------------------------------------------------------


def test_the_variable_of_an_empty_range():
    @tf.function
    def f(n):
        for i in tf.range(n):  # noqa: B007
            pass
        for j in tf.range(5, n, 2):  # noqa: B007
            pass
        k = -1
        for k in range(n):  # noqa: B007
            pass
        return i, j, k

    assert [[int(v) for v in f(tf.constant(n))] for n in (0, 1, 8)] == [[0, 5, -1], [0, 5, 0], [7, 7, 7]]


def test_a_variable_first_assigned_in_a_loop():
    @tf.function(input_signature=[spec([None, 2])])
    def f(x):
        for row in x:
            twice = row * 2.0
        return twice, row

    np.testing.assert_allclose(f(tf.ones([3, 2])), [[2.0, 2.0], [1.0, 1.0]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least once"):
        f(tf.ones([0, 2]))


# ---- conditions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [None, [None], [1]])
def test_conditions_of_unknown_shape(shape):
    @tf.function(input_signature=[spec(shape, tf.bool)])
    def f(p):
        if p:
            y = 1
        else:
            y = 2
        return y

    known = [] if shape is None else [1]
    assert [int(f(tf.fill(known, v))) for v in (True, False)] == [1, 2]
    if shape == [None]:
        with pytest.raises(tf.errors.InvalidArgumentError):
            f(tf.constant([True, False]))


# ---- arrays ---------------------------------------------------------------------------------------


def test_arrays_that_grow_where_a_condition_holds():
    @tf.function(input_signature=[spec([None])])
    def f(x):
        up = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        down = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for v in x:
            if v == 0.0:
                continue
            if v > 5.0:
                break
            if v > 0.0:
                up = up.write(up.size(), v)
            else:
                down = down.write(down.size(), -v)
        return up.stack(), down.stack(), up.size()

    up, down, size = f(tf.constant([1.0, -2.0, 0.0, 3.0, 9.0, 4.0]))
    assert up.numpy().tolist() == [1.0, 3.0] and down.numpy().tolist() == [2.0] and int(size) == 2
    up, down, size = f(tf.constant([-1.0, 2.0]))
    assert up.numpy().tolist() == [2.0] and down.numpy().tolist() == [1.0] and int(size) == 1


@differs_on_tensorflow(
    "TensorFlow has no return in loops whose result is of unknown size", NotImplementedError
)
def test_an_array_that_is_returned_in_the_loop():
    @tf.function
    def f(x):
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for v in x:
            if v < 0.0:
                return array.stack()
            array = array.write(array.size(), v)
        return array.stack() * 2.0

    assert f(tf.constant([1.0, -1.0])).numpy().tolist() == [1.0]
    assert f(tf.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]


def test_elements_may_differ_in_unknown_sizes():
    @tf.function(input_signature=[spec([None, 2])])
    def f(x):
        array = tf.TensorArray(tf.float32, size=2)
        array = array.write(0, x).write(1, x[1:])
        return array.concat(), shape_of(array.concat())

    for n in (3, 1, 3, 3):
        joined, shape = f(tf.ones([n, 2]))
        assert joined.shape == (2 * n - 1, 2) and shape.numpy().tolist() == [-1, 2]


def test_lengths_and_indices_that_are_values():
    @tf.function(input_signature=[spec([None, 2]), spec([None], tf.int32)])
    def f(x, k):
        chunks = tf.TensorArray(tf.float32, size=2, infer_shape=False).split(x, k)
        placed = tf.TensorArray(tf.float32, size=4).scatter(k, x[:2])
        return chunks.read(0), chunks.read(1), placed.gather(k), placed.stack()

    for _ in range(3):
        first, second, gathered, placed = f(tf.ones([4, 2]), tf.constant([1, 3]))
        assert first.shape == (1, 2) and second.shape == (3, 2) and gathered.shape == (2, 2)
        assert placed.numpy()[:, 0].tolist() == [0.0, 1.0, 0.0, 1.0]
    with pytest.raises(tf.errors.InvalidArgumentError):
        f(tf.ones([4, 2]), tf.constant([1, 1]))


def test_an_array_of_any_size_in_a_recurrence():
    w = tf.Variable([[0.5, 0.1], [0.2, 0.3]])

    @tf.function(input_signature=[spec([None, 2])])
    def f(x):
        out = tf.TensorArray(tf.float32, size=tf.shape(x)[0])
        h = tf.zeros([2])
        for i in tf.range(tf.shape(x)[0]):
            h = tf.tanh(tf.linalg.matvec(w, h) + x[i])
            out = out.write(i, h)
        return out.stack()

    for n in (1, 3, 1, 3):
        x = tf.constant(rows(n))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(f(x) ** 2)
        with tf.GradientTape() as plain:
            h, expected = tf.zeros([2]), 0.0
            for k in range(n):
                h = tf.tanh(tf.linalg.matvec(w, h) + x[k])
                expected += tf.reduce_sum(h**2)
        np.testing.assert_allclose(loss, expected, rtol=1e-5)
        np.testing.assert_allclose(tape.gradient(loss, w), plain.gradient(expected, w), rtol=1e-4, atol=1e-6)


# ---- datasets -------------------------------------------------------------------------------------


def test_an_array_that_grows_over_a_dataset():
    @tf.function
    def sums(ds):
        array = tf.TensorArray(tf.int64, size=0, dynamic_size=True)
        for batch in ds:
            array = array.write(array.size(), tf.reduce_sum(batch))
        return array.stack()

    @tf.function
    def joined(ds):
        out = tf.zeros([0], tf.int64)
        for batch in ds:
            set_options(shape_invariants=[(out, tf.TensorShape([None]))])
            out = tf.concat([out, batch], 0)
        return out

    for n, expected in ((7, [3, 12, 6]), (4, [3, 3]), (7, [3, 12, 6])):
        ds = tf.data.Dataset.range(n).batch(3)
        assert sums(ds).numpy().tolist() == expected
        assert joined(ds).numpy().tolist() == list(range(n))


def test_elements_of_unknown_size():
    def sentences():
        for n in (1, 3, 2):
            yield np.full(n, n, np.float32)

    ds = tf.data.Dataset.from_generator(sentences, output_signature=spec([None]))
    w = tf.Variable(1.0)
    traces = []

    @tf.function
    def epoch():
        total = 0.0
        for x in ds:
            traces.append(x.shape.as_list())
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((w * x - 1.0) ** 2)
            w.assign_sub(0.01 * tape.gradient(loss, w))
            total += loss
        return total

    value, expected = 1.0, []
    for _ in range(2):
        total = 0.0
        for n in (1, 3, 2):
            total += (value * n - 1.0) ** 2
            value -= 0.01 * 2 * (value * n - 1.0) * n
        expected.append(total)
    np.testing.assert_allclose([float(epoch()), float(epoch())], expected, rtol=1e-5)
    assert traces == [[None]]


def test_next_of_an_iterator():
    @tf.function
    def f(it):
        batch = next(it)
        return tf.reduce_sum(batch), tf.size(batch)

    it = iter(tf.data.Dataset.range(7).batch(3))
    assert [[int(v) for v in f(it)] for _ in range(3)] == [[3, 3], [12, 3], [6, 1]]


# ---- functions over rows --------------------------------------------------------------------------


def test_nothing_to_map_or_fold():
    @tf.function(input_signature=[spec([None, 2])])
    def f(x):
        for row in x:
            tf.debugging.assert_less(row, 2.0)
        first, total = tf.map_fn(lambda row: (row * 2.0, tf.reduce_sum(row)), (x), (tf.float32, tf.float32))
        return first, total, tf.foldl(lambda a, row: a + row, x, tf.zeros([2]))

    for n in (0, 2, 0, 0):
        first, total, folded = f(tf.ones([n, 2]))
        assert first.shape == (n, 2) and total.shape == (n,) and folded.numpy().tolist() == [n, n]


@pytest.mark.parametrize("function", [tf.scan, tf.foldl, tf.foldr])
def test_folds_of_nothing(function):
    f = tf.function(lambda x: function(lambda a, row: a + row, x), input_signature=[spec([None, 2])])
    for n in (1, 3):
        np.testing.assert_allclose(np.max(f(tf.ones([n, 2]))), n)
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError):
            f(tf.ones([0, 2]))


# ---- gradients ------------------------------------------------------------------------------------


def derivatives(f, x):
    """A function that gives (y, k), and its first and second derivative; y is k times something."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y, k = f(x)
        g = inner.gradient(y, x)
    return y / k, g / k, outer.gradient(g, x) / k


@pytest.mark.parametrize("signature", [None, [spec([None])]])
@pytest.mark.parametrize("tapes", ["inside", "outside"])
def test_random_numbers_in_a_loop_are_drawn_once(signature, tapes):
    def cubed(x):
        y, k = tf.ones_like(x), tf.ones_like(x)
        for _ in tf.range(3):
            tf.debugging.assert_less(x, 100.0)
            u, v = tf.random.uniform(tf.shape(x), 0.5, 1.0), tf.random.uniform([], 1.0, 2.0)
            y, k = y * x * u * v, k * u * v
        return y, k

    if tapes == "inside":
        f = tf.function(lambda x: derivatives(cubed, x), input_signature=signature)
    else:
        inner = tf.function(cubed, input_signature=signature)

        def f(x):
            return derivatives(inner, x)

    for n in (1, 3, 1, 3):
        x = rows(n)[:, 0]
        np.testing.assert_allclose(f(tf.constant(x)), [x**3, 3 * x**2, 6 * x], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("around", [False, True])
def test_second_derivatives_of_rows(around):
    def product(x):
        h = tf.ones([2])
        for row in x:
            h = h * row + row**2
        return tf.reduce_sum(h)

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = product(x)
        return tape.gradient(y, x)

    def second(x, first):
        with tf.GradientTape() as tape:
            tape.watch(x)
            g = first(x)
        return tape.gradient(g, x)

    traced = tf.function(
        gradient if around else lambda x: second(x, gradient), input_signature=[spec([None, 2])]
    )
    for n in (1, 3, 1, 3):
        x = tf.constant(rows(n))
        got = second(x, traced) if around else traced(x)
        np.testing.assert_allclose(got, second(x, gradient), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("tape", ["inside", "outside"])
def test_ways_that_are_not_taken_have_gradient_zero(tape):
    v, w = tf.Variable(2.0), tf.Variable([1.0, 3.0])

    def f(x):
        h = tf.zeros([2])
        for value in x[1:]:
            h = w * h + value
        if tf.size(x) > 1:
            y = tf.reduce_sum(h)
        else:
            y = v * x[0]
        return y

    def gradient(x):
        with tf.GradientTape() as tape:
            y = forward(x)
        return tape.gradient(y, [v, w])

    signature = [spec([None])]
    forward = tf.function(f, input_signature=signature) if tape == "outside" else f
    step = gradient if tape == "outside" else tf.function(gradient, input_signature=signature)
    for n in (1, 3, 1, 3, 1):
        gv, gw = step(tf.ones([n]))
        assert float(gv) == (1.0 if n == 1 else 0.0)
        assert gw.numpy().tolist() == ([0.0, 0.0] if n == 1 else [1.0, 1.0])


def test_gradients_without_a_tape():
    @tf.function(input_signature=[spec([None, 2])])
    def f(x):
        h = tf.zeros([2])
        for row in x:
            h = h * 0.5 + row
        y = tf.cond(tf.shape(x)[0] > 1, lambda: h * 3.0, lambda: h**2)
        return tf.gradients(y, x)[0], tf.gradients(tf.shape(x), x) == [None]

    for n in (1, 3, 1, 3):
        g, unconnected = f(tf.ones([n, 2]))
        expected = [[2.0]] if n == 1 else 3.0 * 0.5 ** np.arange(n)[::-1, None]
        np.testing.assert_allclose(g, expected * np.ones([n, 2]), rtol=1e-6)
        assert unconnected


# ---- errors ---------------------------------------------------------------------------------------


def _grows(n):
    x = tf.zeros([1])
    for _ in tf.range(n):
        x = tf.concat([x, [1.0]], 0)
    return x


def _changes_rank(n):
    x, i = tf.zeros([1]), 0
    while i < n:
        x, i = x[None], i + 1
    return x


def _changes_type(n):
    x, i = 0, 0
    while i < n:
        x, i = tf.cast(x, tf.float32), i + 1
    return x


def _violates(n):
    x = tf.zeros([1, 2])
    for _ in tf.range(n):
        set_options(shape_invariants=[(x, tf.TensorShape([None, 2]))])
        x = tf.concat([x, x], 1)
    return x


def _does_not_fit(n):
    x = tf.zeros([1, 2])
    for _ in tf.range(n):
        set_options(shape_invariants=[(x, tf.TensorShape([None, 3]))])
        x = tf.concat([x, x], 0)
    return x


def _masked(n):
    x = tf.range(6)
    for i in tf.range(n):
        x = tf.boolean_mask(x, x > i)
    return x


def _inner_only(n):
    x = tf.zeros([1])
    for _ in tf.range(n):
        for _ in tf.range(2):
            set_options(shape_invariants=[(x, tf.TensorShape([None]))])
            x = tf.concat([x, x], 0)
    return x


STATEMENTS = {
    _grows: (ValueError, r"'x' has shape \(1,\) before the loop, but shape \(2,\) after one iteration"),
    _changes_rank: (
        ValueError,
        r"'x' has shape \(1,\) before the loop, but shape \(1, 1\) after one iteration",
    ),
    _changes_type: (TypeError, "'x' has dtype int32 before the loop, but dtype float32 after one iteration"),
    _violates: (ValueError, r"'x' has shape.*\(None, 4\) after one iteration"),
    _does_not_fit: (ValueError, r"\(None, 3\)"),
    _masked: (ValueError, r"'x' has shape \(6,\) before the loop, but shape \(None,\) after one iteration"),
    _inner_only: (
        ValueError,
        r"'x' has shape \(1,\) before the loop, but shape \(None,\) after one iteration",
    ),
}


@pytest.mark.parametrize("function", STATEMENTS, ids=lambda f: f.__name__)
def test_statements_that_are_wrong(function):
    error, text = STATEMENTS[function]
    with pytest.raises(error, match=text) as caught:
        tf.function(function)(tf.constant(2))
    message = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert "test_unknown_size_loops.py" in message and function.__name__ in message


LOOPS = {
    "grows": (lambda x: tf.concat([x, x], 0), None, ValueError, r"shape \(1, 2\), but has shape \(2, 2\)"),
    "violates": (lambda x: tf.concat([x, x], 1), [tf.TensorShape([None, 2])], ValueError, r"\(None, 4\)"),
    "rank": (lambda x: x[None], None, ValueError, r"shape \(1, 2\), but has shape \(1, 1, 2\)"),
    "dtype": (lambda x: tf.cast(x, tf.int32), None, (TypeError, ValueError), "int32"),
    "structure": (
        lambda x: x,
        [tf.TensorShape([]), tf.TensorShape([])],
        (TypeError, ValueError),
        "structure",
    ),
    "number": (lambda x: x, [3], TypeError, "TensorShape"),
    "list": (lambda x: x, [[None, 2]], ValueError, "structure"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_that_are_wrong(name):
    body, invariants, error, text = LOOPS[name]

    @tf.function
    def f(n):
        return tf.while_loop(
            lambda x: n > 0, lambda x: [body(x)], [tf.zeros([1, 2])], shape_invariants=invariants
        )

    with pytest.raises(error, match=text):
        f(tf.constant(1))


ARRAYS = {
    "write past the end": lambda n: tf.TensorArray(tf.float32, size=2).write(n + 2, 1.0).stack(),
    "write before the beginning": lambda n: tf.TensorArray(tf.float32, size=2).write(n - 1, 1.0).stack(),
    "write past the end, known": lambda n: tf.TensorArray(tf.float32, size=2).write(2, 1.0).stack(),
    "read past the end": lambda n: tf.TensorArray(tf.float32, size=2).write(0, 1.0).read(n + 2),
    "read what was not written": lambda n: tf.TensorArray(tf.float32, size=2).read(n),
    "gather past the end": lambda n: tf.TensorArray(tf.float32, size=2).unstack([1.0, 2.0]).gather([n + 2]),
    "scatter past the end": lambda n: tf.TensorArray(tf.float32, size=2).scatter([n + 2], [1.0]).stack(),
    "unstack too many": lambda n: tf.TensorArray(tf.float32, size=2).unstack(tf.ones([n + 3])).stack(),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("known", [True, False])
def test_arrays_that_are_used_wrongly(name, known):
    f = tf.function(
        lambda n, x: ARRAYS[name](n), input_signature=None if known else [spec([], tf.int32), spec([None])]
    )
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError):
            f(tf.constant(0), tf.ones([2]))


def test_elements_of_the_wrong_shape():
    def write(x, **options):
        return tf.TensorArray(tf.float32, size=2, **options).write(0, x[:1]).write(1, x).stack()

    with pytest.raises(ValueError, match="hape"):
        tf.function(write)(tf.ones([3]))
    with pytest.raises(ValueError, match="hape"):
        tf.function(lambda x: write(x, element_shape=[2]))(tf.ones([3]))
