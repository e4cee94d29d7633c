"""Properties that hold for all shapes, axes, keys and graphs: Hypothesis looks for one that breaks them.

Values are those of NumPy. Gradients of linear ops are compared with their transposes written in
NumPy, those of whole expressions with central differences.
"""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gradtape as tf
from gradtape._src.ops import select
from gradtape.testing import central_differences

SEEDS = st.integers(0, 2**16)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def numbers(seed, *shapes):
    """Random arrays of the given shapes."""
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.uniform(-2, 2, shape)) for shape in shapes]


def value_and_gradients(function, arrays, weight=None):
    """The value of `function`, and the gradients of ⟨weight, function⟩ with respect to each array."""
    xs = [tf.constant(a) for a in arrays]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        out = function(*xs)
    grads = tape.gradient(out, xs, output_gradients=None if weight is None else tf.constant(weight))
    return out.numpy(), [None if g is None else tf.convert_to_tensor(g).numpy() for g in grads]


def assert_same(actual, expected):
    assert np.shape(actual) == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


def fold(array, shape):
    """The sum of `array` over the axes along which `shape` is broadcast to it."""
    lead = tuple(range(array.ndim - len(shape)))
    array = array.sum(axis=lead)
    ones = tuple(i for i, d in enumerate(shape) if d == 1)
    return array.sum(axis=ones, keepdims=True)


# ---- broadcasting -----------------------------------------------------------------------------

PAIRS = hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=4)
TRIPLES = hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, min_side=0, max_side=3)


@given(PAIRS, SEEDS)
def test_add_broadcasts(shapes, seed):
    x, y, g = numbers(seed, *shapes.input_shapes, shapes.result_shape)
    out, (gx, gy) = value_and_gradients(tf.add, [x, y], g)
    assert_same(out, x + y)
    assert_same(gx, fold(g, x.shape))
    assert_same(gy, fold(g, y.shape))


@given(PAIRS, SEEDS)
def test_multiply_broadcasts(shapes, seed):
    x, y, g = numbers(seed, *shapes.input_shapes, shapes.result_shape)
    out, (gx, gy) = value_and_gradients(tf.multiply, [x, y], g)
    assert_same(out, x * y)
    assert_same(gx, fold(g * y, x.shape))
    assert_same(gy, fold(g * x, y.shape))


@given(TRIPLES, SEEDS)
def test_select_broadcasts(shapes, seed):
    c, x, y, g = numbers(seed, *shapes.input_shapes, shapes.result_shape)
    c = c > 0
    out, (gx, gy) = value_and_gradients(lambda x, y: select(tf.constant(c), x, y), [x, y], g)
    assert_same(out, np.where(c, x, y))
    assert_same(gx, fold(np.where(c, g, 0), x.shape))
    assert_same(gy, fold(np.where(c, 0, g), y.shape))


@given(SHAPES, SHAPES, SEEDS)
def test_shapes_that_do_not_broadcast_are_an_error(one, other, seed):
    try:
        np.broadcast_shapes(one, other)
    except ValueError:
        x, y = numbers(seed, one, other)
        for op in (tf.add, tf.multiply, tf.maximum):
            try:
                op(tf.constant(x), tf.constant(y))
            except tf.errors.InvalidArgumentError as e:
                assert "Incompatible shapes" in str(e)
            else:
                raise AssertionError("there should be an error")


# ---- moving elements --------------------------------------------------------------------------


@given(st.data(), SHAPES, SEEDS)
def test_slicing(data, shape, seed):
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True, max_dims=6))
    (x,) = numbers(seed, shape)
    expected = x[key]
    (g,) = numbers(seed + 1, np.shape(expected))
    out, (gx,) = value_and_gradients(lambda t: t[key], [x], g)
    assert_same(out, expected)
    scattered = np.zeros_like(x)
    scattered[key] = g
    assert_same(gx, scattered)


@given(st.data(), SHAPES, SEEDS)
def test_transpose_and_back(data, shape, seed):
    perm = data.draw(st.permutations(range(len(shape))))
    (x,) = numbers(seed, shape)
    (g,) = numbers(seed + 1, x.transpose(perm).shape)
    out, (gx,) = value_and_gradients(lambda t: tf.transpose(t, perm), [x], g)
    assert_same(out, x.transpose(perm))
    assert_same(gx, g.transpose(np.argsort(perm).astype(int)))
    assert_same(tf.transpose(tf.constant(out), list(np.argsort(perm))).numpy(), x)


def factors(data, size):
    """A shape with `size` elements."""
    shape = []
    while size > 1 and len(shape) < 4:
        d = data.draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
        shape.append(d)
        size //= d
    return [*shape, size] if size != 1 else shape


@given(st.data(), hnp.array_shapes(min_dims=0, max_dims=4, max_side=4), SEEDS)
def test_reshape_and_back(data, shape, seed):
    (x,) = numbers(seed, shape)
    target = factors(data, x.size)
    asked = list(target)
    if asked and data.draw(st.booleans()):
        asked[data.draw(st.integers(0, len(asked) - 1))] = -1
    (g,) = numbers(seed + 1, target)
    out, (gx,) = value_and_gradients(lambda t: tf.reshape(t, asked), [x], g)
    assert_same(out, x.reshape(target))
    assert_same(gx, g.reshape(shape))


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3), SEEDS)
def test_concat_and_split(data, shape, seed):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    shapes = []
    for size in sizes:
        one = list(shape)
        one[axis] = size
        shapes.append(one)
    parts = numbers(seed, *shapes)
    whole = np.concatenate(parts, axis)
    (g,) = numbers(seed + 1, whole.shape)
    out, grads = value_and_gradients(lambda *xs: tf.concat(xs, axis), parts, g)
    assert_same(out, whole)
    for part, gx, s in zip(tf.split(tf.constant(g), sizes, axis), grads, shapes, strict=True):
        assert list(part.shape) == s
        assert_same(gx, part.numpy())
    back, (gw,) = value_and_gradients(lambda t: tf.concat(tf.split(t, sizes, axis), axis), [whole], g)
    assert_same(back, whole)
    assert_same(gw, g)


# ---- reductions and indices -------------------------------------------------------------------


@given(st.data(), hnp.array_shapes(min_dims=0, max_dims=4, max_side=4), st.booleans(), SEEDS)
def test_reductions(data, shape, keepdims, seed):
    rank = len(shape)
    chosen = data.draw(st.none() | st.sets(st.integers(0, rank - 1)) if rank else st.none())
    axis = None if chosen is None else [a - rank * data.draw(st.booleans()) for a in sorted(chosen)]
    axes = tuple(range(rank)) if axis is None else tuple(axis)
    (x,) = numbers(seed, shape)
    (g,) = numbers(seed + 1, x.sum(axis=axes, keepdims=keepdims).shape)
    spread = g.reshape(x.sum(axis=axes, keepdims=True).shape)
    count = x.size / max(g.size, 1)
    # The largest element is unique: random numbers do not repeat.
    largest = x == x.max(axis=axes, keepdims=True)
    cases = {
        "reduce_sum": (np.sum, np.ones_like(x)),
        "reduce_mean": (np.mean, np.full_like(x, 1 / count)),
        "reduce_max": (np.max, largest.astype(float)),
        "reduce_prod": (np.prod, np.prod(x, axis=axes, keepdims=True) / x),
    }
    for name, (reference, derivative) in cases.items():
        op = getattr(tf, name)
        out, (gx,) = value_and_gradients(lambda t, op=op: op(t, axis, keepdims), [x], g)
        assert_same(out, reference(x, axis=axes, keepdims=keepdims))
        np.testing.assert_allclose(gx, spread * derivative, rtol=1e-9, atol=1e-9)


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, max_side=4), SEEDS)
def test_gather(data, shape, seed):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    places = hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4)
    indices = data.draw(hnp.arrays(np.int32, places, elements=st.integers(0, shape[axis] - 1)))
    (x,) = numbers(seed, shape)
    expected = np.take(x, indices, axis)
    (g,) = numbers(seed + 1, expected.shape)
    out, (gx,) = value_and_gradients(lambda t: tf.gather(t, tf.constant(indices), axis=axis), [x], g)
    assert_same(out, expected)
    flat = list(shape)
    flat[axis] = indices.size
    scattered = np.moveaxis(np.zeros_like(x), axis, 0)
    np.add.at(scattered, indices.reshape(-1), np.moveaxis(g.reshape(flat), axis, 0))
    assert_same(gx, np.moveaxis(scattered, 0, axis))


# ---- whole expressions ------------------------------------------------------------------------

UNARY = {
    "tanh": (tf.tanh, np.tanh),
    "sin": (tf.sin, np.sin),
    "square": (tf.square, np.square),
    "sigmoid": (tf.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "neg": (lambda x: -x, lambda x: -x),
    "scaled": (lambda x: 0.5 * x + 1, lambda x: 0.5 * x + 1),
    "transpose": (tf.transpose, np.transpose),
    "flat": (lambda x: tf.reshape(x, [-1]), lambda x: x.reshape(-1)),
    "sum": (lambda x: tf.reduce_sum(x, -1), lambda x: x.sum(-1)),
    "mean": (lambda x: tf.reduce_mean(x, 0, keepdims=True), lambda x: x.mean(0, keepdims=True)),
    "logsumexp": (lambda x: tf.reduce_logsumexp(x, -1), lambda x: np.log(np.exp(x).sum(-1))),
    "gram": (lambda x: tf.matmul(x, x, transpose_b=True), lambda x: x @ np.swapaxes(x, -1, -2)),
}
NEEDS_RANK = {"sum": 1, "mean": 1, "logsumexp": 1, "gram": 2}
BINARY = {
    "add": (lambda x, y: x + y, lambda x, y: x + y),
    "sub": (lambda x, y: x - y, lambda x, y: x - y),
    "mul": (lambda x, y: x * y, lambda x, y: x * y),
    "div": (lambda x, y: x / (1 + y * y), lambda x, y: x / (1 + y * y)),
    "matmul": (tf.matmul, np.matmul),
}


@st.composite
def graphs(draw):
    """Steps of an expression: (name, operands), where an operand is the index of an earlier value."""
    arrays = numbers(draw(SEEDS), (2, 3), (3,), (3, 2))
    values = list(arrays)
    steps = []
    for _ in range(draw(st.integers(1, 7))):
        # later values are taken more often, so that graphs are deep
        i = draw(st.integers(0, len(values) - 1)) if draw(st.booleans()) else len(values) - 1
        x = values[i]
        able = [n for n in UNARY if x.ndim >= NEEDS_RANK.get(n, 0)]
        pairs = [(n, i, j) for n in BINARY for j, y in enumerate(values) if fits(n, x, y)]
        name, *at = draw(st.sampled_from(pairs)) if draw(st.booleans()) else (draw(st.sampled_from(able)), i)
        steps.append((name, at))
        values.append(evaluate(steps[-1:], values, numpy=True)[-1])
        assume(np.all(np.abs(values[-1]) < 50))
    return arrays, steps


def fits(name, x, y):
    if name == "matmul":
        return x.ndim == y.ndim == 2 and x.shape[1] == y.shape[0]
    try:
        return np.broadcast_shapes(x.shape, y.shape) is not None
    except ValueError:
        return False


def evaluate(steps, leaves, numpy):
    values = list(leaves)
    for name, at in steps:
        functions = UNARY[name] if name in UNARY else BINARY[name]
        values.append(functions[numpy](*[values[i] for i in at]))
    return values


@given(graphs())
def test_random_graphs(graph):
    arrays, steps = graph
    out, grads = value_and_gradients(lambda *xs: evaluate(steps, xs, numpy=False)[-1], arrays)
    expected = evaluate(steps, arrays, numpy=True)[-1]
    np.testing.assert_allclose(out, expected, rtol=1e-10, atol=1e-10)
    for k, g in enumerate(grads):

        def total(a, k=k):
            moved = [*arrays[:k], a, *arrays[k + 1 :]]
            return float(np.sum(evaluate(steps, moved, numpy=True)[-1]))

        numeric = central_differences(total, arrays[k])
        actual = np.zeros_like(numeric) if g is None else g
        scale = 1 + np.abs(expected).sum() + np.abs(numeric).max()
        np.testing.assert_allclose(actual, numeric, rtol=0, atol=1e-6 * scale)


@given(graphs())
def test_gradients_of_random_graphs_are_differentiable(graph):
    arrays, steps = graph

    def slope(*xs):
        """The gradients with respect to all leaves, squared and summed."""
        with tf.GradientTape() as tape:
            tape.watch(list(xs))
            out = evaluate(steps, xs, numpy=False)[-1]
        grads = tape.gradient(out, list(xs), unconnected_gradients="zero")
        return tf.add_n([tf.reduce_sum(tf.square(tf.convert_to_tensor(g))) for g in grads])

    value, seconds = value_and_gradients(slope, arrays)
    assume(abs(value) < 1e4)
    direction = numbers(1, *[a.shape for a in arrays])
    step = 1e-5
    ends = [
        slope(*[tf.constant(a + sign * step * d) for a, d in zip(arrays, direction, strict=True)]).numpy()
        for sign in (1, -1)
    ]
    numeric = (ends[0] - ends[1]) / (2 * step)
    actual = sum(np.sum(g * d) for g, d in zip(seconds, direction, strict=True) if g is not None)
    np.testing.assert_allclose(actual, numeric, rtol=1e-5, atol=1e-5 * (1 + abs(value)))
