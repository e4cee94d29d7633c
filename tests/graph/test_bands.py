"""Bands: steps that treat rows independently run block by block, with the same results as one after the other."""

import threading

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core
from gradtape._src.engines.native import bands, lower, plan

RANDOM = np.random.default_rng(0)


def normal(*shape, dtype="float32"):
    return RANDOM.normal(size=shape).astype(dtype)


@pytest.fixture
def found(monkeypatch):
    """The bands of the programs that are compiled."""
    seen = []
    find = bands.find

    def look(*arguments):
        seen.append(find(*arguments))
        return seen[-1]

    monkeypatch.setattr(bands, "find", look)
    return seen


def lstm(x, h, c, weights, bias):
    for z in tf.unstack(x):
        i, f, g, o = tf.split(z + tf.matmul(h, weights) + bias, 4, -1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
    return h


@pytest.mark.parametrize("batch", [16, 24, 48, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_recurrent_layer(found, batch, dtype):
    units, steps = 64, 12
    x = tf.constant(normal(steps, batch, 4 * units, dtype=dtype) * 0.3)
    state = tf.zeros((batch, units), dtype)
    weights = tf.Variable(normal(units, 4 * units, dtype=dtype) * 0.1)
    bias = tf.Variable(normal(4 * units, dtype=dtype))

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(lstm(x, state, state, weights, bias) ** 2)
        return loss, *tape.gradient(loss, [x, weights, bias])

    got = tf.function(step)(x)
    assert sum(band.blocks * len(band.cut) for some in found for band in some) >= 60
    limit = 1e-5 if dtype == "float32" else 1e-13
    for a, b in zip(got, step(x), strict=True):
        assert np.allclose(a, b, rtol=limit, atol=limit * np.abs(b).max())


def test_results_do_not_depend_on_the_number_of_threads():
    x, weights = tf.constant(normal(10, 64, 512)), tf.constant(normal(128, 512) * 0.1)
    state, bias = tf.zeros((64, 128)), tf.zeros(512)
    f = tf.function(lambda: lstm(x, state, state, weights, bias))
    expected = f().numpy()
    before = tf.config.threading.get_intra_op_parallelism_threads()
    try:
        for threads in (1, 2, 3, 7):
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            assert np.array_equal(f(), expected)
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(before)


def test_a_loop_of_one_step(found):
    """The body of a loop is a program of its own, whose results are its inputs again."""
    weights = tf.constant(normal(256, 256) * 0.1)
    h = tf.constant(normal(64, 256))

    @tf.function
    def f(h):
        for _ in tf.range(20):
            h = tf.concat([tf.tanh(tf.matmul(h, weights) + h)[:, 64:], h[:, :64]], 1)
        return h

    got = f(h)
    for _ in range(20):
        h = tf.concat([tf.tanh(tf.matmul(h, weights) + h)[:, 64:], h[:, :64]], 1)
    assert any(found)
    assert np.allclose(got, h, atol=1e-5)


def test_weights_that_are_made_on_the_way_end_a_band(found):
    """A product with rows of its own results has to wait for all of them."""
    x = tf.constant(normal(64, 64) * 0.1)

    def f(x):
        for _ in range(12):
            x = tf.tanh(tf.matmul(x, x) + tf.matmul(x, x, transpose_b=True))
        return x

    assert np.allclose(tf.function(f)(x), f(x), atol=1e-4)


def test_variables_that_are_written_over(found):
    """New weights are written when no block reads the old ones any more."""
    weights = tf.Variable(normal(64, 64) * 0.1)
    x = tf.constant(normal(64, 64))
    begin = weights.numpy().copy()

    @tf.function
    def step():
        h = x
        for _ in range(16):
            h = tf.tanh(tf.matmul(h, weights) * 2.0)
        weights.assign_sub(0.01 * tf.tanh(weights * h))
        return h

    got = [step().numpy() for _ in range(3)]
    assert any(found)
    w, h = begin, None
    for k in range(3):
        h = x.numpy()
        for _ in range(16):
            h = np.tanh(h @ w * 2.0)
        assert np.allclose(got[k], h, atol=1e-4)
        w = w - 0.01 * np.tanh(w * h)
    assert np.allclose(weights, w, atol=1e-4)


def test_values_of_other_lengths_do_not_share_a_place():
    """In a band, only values of equal length share memory."""
    weights = [tf.constant(normal(a, b) * 0.1) for a, b in ((64, 192), (192, 64))]

    def f(x):
        for _ in range(10):
            wide = tf.matmul(x, weights[0])
            parts = tf.split(wide, [64, 128], 1)
            x = tf.matmul(tf.concat([parts[1], tf.tanh(parts[0])], 1), weights[1])
        return x

    concrete = tf.function(f).get_concrete_function(tf.TensorSpec((64, 64), "float32"))
    graph, steps, aliases, parts, over = lower.lowered(concrete.graph_function.graph)
    some = bands.find(graph, steps, aliases, parts, over)
    places, _ = plan.plan(graph, steps, aliases, parts, some)
    (band,) = some
    used = {
        (at, v.size)
        for s in steps[band.first : band.end]
        for v in s.results
        for place, at in [places[v]]
        if place == plan.ARENA
    }
    ends = sorted((at, at + 4 * size) for at, size in used)
    assert all(b <= c for (_, b), (c, _) in zip(ends, ends[1:], strict=False))
    x = tf.constant(normal(64, 64))
    assert np.allclose(concrete(x), f(x), atol=1e-5)


def test_many_threads_run_one_program():
    x, weights = tf.constant(normal(8, 64, 512)), tf.constant(normal(128, 512) * 0.1)
    state, bias = tf.zeros((64, 128)), tf.zeros(512)
    f = tf.function(lambda x: lstm(x, state, state, weights, bias))
    expected = f(x).numpy()
    wrong = []

    def work():
        for _ in range(20):
            if not np.array_equal(f(x), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# ---- programs with wrong declarations ----- ------------------------------------------------------------


def program(band, arena=(0, 64 * 64 * 4), results=(3,), place=2):
    """tanh(x @ w) of 64 x 64, its product at one place of the arena and its result at another."""
    shape, f32 = (64, 64), tf.float32._code
    values = [(f32, shape, 0, 0, None), (f32, shape, 0, 1, None), (f32, shape, 2, arena[0], None)]
    values.append((f32, shape, place, arena[1] if place == 2 else 0, None))
    steps = [
        ("op", tf.matmul, [0, 1], [2], (False, False)),
        ("op", tf.tanh, [2], [3], ()),
    ]
    return _core.Program(2, values, steps, list(results), 3 * 64 * 64 * 4, [], [band])


RIGHT = (0, 8, [(True, False), (True,)])


def test_the_core_runs_a_right_band():
    x, w = normal(64, 64), normal(64, 64)
    (out,) = program(RIGHT).run([tf.constant(x), tf.constant(w)])
    assert np.allclose(out, np.tanh(x @ w), atol=1e-5)


@pytest.mark.parametrize(
    "band, more, message",
    [
        ((0, 1, RIGHT[2]), {}, "has no blocks"),
        ((0, 7, RIGHT[2]), {}, "without blocks"),
        ((1, 8, RIGHT[2]), {}, "steps that do not exist"),
        ((0, 8, [(True,), (True,)]), {}, "does not say"),
        ((0, 8, [(True, True), (True,)]), {}, "Matrix size-incompatible"),
        ((0, 8, [(True, False), (False,)]), {}, "does not make blocks"),
        (RIGHT, {"arena": (0, 64)}, "would write what others read"),
        (RIGHT, {"arena": (64, 0)}, "would write what others read"),
    ],
)
def test_the_core_refuses_a_wrong_band(band, more, message):
    with pytest.raises(Exception, match=message):
        program(band, **more)


# ---- stacks that are made in place ---------------------------------------------------------------------


def lowered(f, *shapes):
    concrete = tf.function(f).get_concrete_function(*[tf.TensorSpec(s, "float32") for s in shapes])
    return concrete, lower.lowered(concrete.graph_function.graph)


def test_operands_of_stack_are_computed_in_place():
    start, weights = tf.constant(normal(32, 64)), tf.constant(normal(64, 64) * 0.1)

    def f(x):
        made = [start, x]
        for _ in range(10):
            made.append(tf.matmul(made[-1], weights))
        return tf.reduce_sum(tf.stack(made) ** 2, 2)

    concrete, (_, steps, _, parts, _) = lowered(f, (32, 64))
    copies = [s for s in steps if s.what == "op" and s.object.op_name == "stack"]
    assert len(parts) == 12 and [len(s.operands) for s in copies] == [1, 1]  # the input and the constant
    x = tf.constant(normal(32, 64))
    assert np.allclose(concrete(x), f(x), rtol=1e-4)
    assert len(tf.function(f).profile(x).steps) == len(steps)


def test_a_value_that_is_stacked_twice_or_returned_is_copied():
    def f(x):
        a, b = tf.tanh(x) * 2.0, tf.tanh(tf.matmul(x, x)) - x
        once, again = tf.stack([a, b, a, b]), tf.stack([b, a])
        return tf.reduce_sum(once * 2.0, 0), tf.reduce_max(again, 1), b

    concrete, (*_, parts, _) = lowered(f, (128, 128))
    x = tf.constant(normal(128, 128))
    for got, expected in zip(concrete(x), f(x), strict=True):
        assert np.allclose(got, expected, atol=1e-5)


def test_views_are_copied_into_a_stack():
    """A slice keeps the memory of its operand, even if other memory is free."""

    def f(x):
        rows = tf.unstack(tf.tanh(x))
        return tf.reduce_sum(tf.stack([rows[2], rows[0], *[r * 2.0 for r in rows]]) ** 2, [0, 1])

    concrete, _ = lowered(f, (4, 64, 64))
    x = tf.constant(normal(4, 64, 64))
    assert np.allclose(concrete(x), f(x), rtol=1e-4)
