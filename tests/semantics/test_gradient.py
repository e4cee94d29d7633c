"""GradientTape.gradient: targets, sources, output gradients, what is connected."""

import collections

import numpy as np
import pytest

from .lib import assert_close, gradient, tf

Pair = collections.namedtuple("Pair", "first second")


@pytest.fixture
def x():
    return tf.constant(3.0)


@pytest.fixture
def tape(x):
    """An entered persistent tape that watches `x`."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        yield tape


SOURCES = {
    "list": lambda a, b: [a, b],
    "tuple": lambda a, b: (a, b),
    "namedtuple": lambda a, b: Pair(a, b),
    "dict": lambda a, b: {"b": b, "a": a},
    "nested": lambda a, b: {"k": [a, (b,)], "j": [b]},
}


@pytest.mark.parametrize("kind", SOURCES)
def test_T26_result_has_the_structure_of_sources(kind):
    a, b = tf.Variable(3.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = a * a * b
    grads = tape.gradient(y, SOURCES[kind](a, b))
    expected = SOURCES[kind](12.0, 9.0)
    assert type(grads) is type(expected)
    tf.nest.assert_same_structure(grads, expected)
    for g, e in zip(tf.nest.flatten(grads), tf.nest.flatten(expected), strict=True):
        assert_close(g, e)


def test_T26_no_sources_no_gradients():
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = v * v
    assert tape.gradient(y, []) == []


def test_T27_non_scalar_target_is_summed():
    assert_close(gradient(lambda x: x * tf.constant([1.0, 2.0, 4.0]), 3.0), 7.0)


TARGETS = {
    "list": lambda y, z: [y, z],
    "dict": lambda y, z: {"z": z, "y": y},
    "nested": lambda y, z: {"k": (y, [z])},
}


@pytest.mark.parametrize("kind", TARGETS)
def test_T27_targets_are_summed(kind):
    assert_close(gradient(lambda x: TARGETS[kind](x * x, 5.0 * x), 3.0), 11.0)


def test_T27_same_target_twice_counts_twice(tape, x):
    y = x * x
    assert_close(tape.gradient([y, y], x), 12.0)


def test_T27_targets_that_depend_on_each_other_both_count(tape, x):
    y = x * x
    z = y * y
    assert_close(tape.gradient([y, z], x), 6.0 + 108.0)


def test_T28_duplicate_sources_each_get_the_full_gradient(tape, x):
    y = x * x
    a, b = tape.gradient(y, [x, x])
    assert_close(a, 6.0)
    assert_close(b, 6.0)


def test_T28_sources_that_depend_on_each_other_get_total_derivatives(tape, x):
    y = x * x
    z = y * y
    gx, gy = tape.gradient(z, [x, y])
    assert_close(gx, 108.0)
    assert_close(gy, 18.0)


def test_T29_gradient_of_itself_is_one(tape, x):
    assert_close(tape.gradient(x, x), 1.0)


def test_T29_even_if_never_watched(tape):
    other = tf.constant([1.0, 2.0])
    assert_close(tape.gradient(other, other), [1.0, 1.0])


def test_T29_even_if_a_variable_never_read(tape):
    v = tf.Variable([1.0, 2.0])
    assert_close(tape.gradient(v, v), [1.0, 1.0])


def test_T29_source_among_the_targets_adds_one(tape, x):
    assert_close(tape.gradient([x * x, x], x), 7.0)


def test_T30_variable_as_target(tape):
    v, w = tf.Variable(3.0), tf.Variable(2.0)
    v * w
    assert_close(tape.gradient(v, v), 1.0)
    assert tape.gradient(v, w) is None


def test_T31_intermediate_needs_no_watch(tape, x):
    h = x * x
    y = h * h
    assert_close(tape.gradient(y, h), 18.0)


def test_T31_intermediate_of_nothing_watched_is_unconnected(tape):
    c = tf.constant(2.0)
    h = c * c
    y = h * h
    assert tape.gradient(y, h) is None


def test_T31_watching_an_intermediate_cuts_nothing(tape, x):
    h = x * x
    tape.watch(h)
    y = h * h
    gx, gh = tape.gradient(y, [x, h])
    assert_close(gx, 108.0)
    assert_close(gh, 18.0)


def test_T32_target_computed_after_the_block_is_unconnected(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    z = y * 2.0
    assert tape.gradient(z, x) is None


@pytest.mark.parametrize("dtype", ["int32", "int64", "bool"])
def test_T32_non_float_target_is_unconnected(tape, x, dtype):
    assert tape.gradient(tf.cast(x, dtype), x) is None


def test_T32_path_through_an_integer_contributes_nothing(tape, x):
    y = x * tf.cast(tf.cast(x, tf.int32), tf.float32)
    assert_close(tape.gradient(y, x), 3.0)


def test_T33_integer_source(tape):
    n = tf.constant([1, 2])
    y = tf.cast(n, tf.float32) * 2.0
    assert tape.gradient(y, n) is None
    zeros = tape.gradient(y, n, unconnected_gradients="zero")
    assert zeros.dtype == tf.int32
    assert_close(zeros, [0, 0])


def test_T34_target_none(tape, x):
    with pytest.raises(TypeError, match="target"):
        tape.gradient(None, x)


def test_T34_none_among_targets_or_sources(tape, x):
    y = x * x
    with pytest.raises(TypeError):
        tape.gradient([y, None], x)
    with pytest.raises(TypeError):
        tape.gradient(y, [x, None])


@pytest.mark.parametrize("value", [3.0, np.float32(3.0)], ids=["float", "numpy"])
def test_T34_target_that_is_no_tensor(tape, x, value):
    with pytest.raises(AttributeError):
        tape.gradient(value, x)


@pytest.mark.parametrize("value", [3.0, np.float32(3.0)], ids=["float", "numpy"])
def test_T34_source_that_is_no_tensor(tape, x, value):
    with pytest.raises(AttributeError):
        tape.gradient(x * x, value)


@pytest.fixture
def squares():
    """A vector, its element-wise square and the tape between them."""
    xs = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(xs)
        ys = xs * xs
    return tape, ys, xs


SEEDS = {
    "tensor": lambda: tf.constant([1.0, 0.0, 2.0]),
    "ndarray": lambda: np.array([1.0, 0.0, 2.0], "float32"),
    "variable": lambda: tf.Variable([1.0, 0.0, 2.0]),
    "list-of-tensor": lambda: [tf.constant([1.0, 0.0, 2.0])],
}


@pytest.mark.parametrize("kind", SEEDS)
def test_T35_output_gradients(squares, kind):
    tape, ys, xs = squares
    assert_close(tape.gradient(ys, xs, SEEDS[kind]()), [2.0, 0.0, 12.0])
    assert_close(tape.gradient(ys, xs, output_gradients=SEEDS[kind]()), [2.0, 0.0, 12.0])


def test_T35_one_output_gradient_per_target(tape, x):
    y, z = x * x, 5.0 * x
    seeds = [tf.constant(10.0), tf.constant(100.0)]
    assert_close(tape.gradient([y, z], x, output_gradients=seeds), 560.0)


def test_T35_output_gradients_parallel_to_flattened_targets(tape, x):
    targets = {"b": x * x, "a": 5.0 * x}
    seeds = {"b": tf.constant(10.0), "a": tf.constant(100.0)}
    assert_close(tape.gradient(targets, x, output_gradients=seeds), 560.0)


def test_T35_scalar_output_gradient_broadcasts(squares):
    tape, ys, xs = squares
    assert_close(tape.gradient(ys, xs, output_gradients=tf.constant(2.0)), [4.0, 8.0, 12.0])


def test_T35_output_gradient_of_wrong_shape(squares):
    tape, ys, xs = squares
    with pytest.raises(tf.errors.InvalidArgumentError):
        tape.gradient(ys, xs, output_gradients=tf.ones([2]))


def test_T35_output_gradient_of_wrong_dtype(squares):
    tape, ys, xs = squares
    with pytest.raises(tf.errors.InvalidArgumentError):
        tape.gradient(ys, xs, output_gradients=tf.ones([3], tf.float64))


def test_T36_python_list_is_one_output_gradient_per_target(squares):
    tape, ys, xs = squares
    assert_close(tape.gradient(ys, xs, output_gradients=[1.0, 0.0, 2.0]), [2.0, 4.0, 6.0])


def test_T37_missing_output_gradients_are_ones(tape, x):
    y, z = x * x, 5.0 * x
    assert_close(tape.gradient([y, z], x, output_gradients=[tf.constant(10.0)]), 65.0)


def test_T37_surplus_output_gradients_are_ignored(tape, x):
    y = x * x
    seeds = [tf.constant(10.0), tf.constant(100.0)]
    assert_close(tape.gradient(y, x, output_gradients=seeds), 60.0)


def test_T37_none_among_output_gradients_is_an_error(tape, x):
    y, z = x * x, 5.0 * x
    with pytest.raises(ValueError):
        tape.gradient([y, z], x, output_gradients=[None, tf.constant(1.0)])


@pytest.mark.parametrize("none", [tf.UnconnectedGradients.NONE, "none"], ids=["enum", "str"])
def test_T38_unconnected_none(tape, x, none):
    assert tape.gradient(x * x, tf.constant(1.0), unconnected_gradients=none) is None


@pytest.mark.parametrize("zero", [tf.UnconnectedGradients.ZERO, "zero"], ids=["enum", "str"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64"])
def test_T38_unconnected_zero(tape, x, zero, dtype):
    other = tf.ones([2, 3], dtype)
    g = tape.gradient(x * x, other, unconnected_gradients=zero)
    assert g.dtype == dtype
    assert_close(g, np.zeros([2, 3]))


def test_T38_unconnected_zero_of_a_variable(tape, x):
    g = tape.gradient(x * x, tf.Variable([1.0, 2.0]), unconnected_gradients="zero")
    assert_close(g, [0.0, 0.0])


def test_T38_unconnected_zero_leaves_connected_gradients_alone(tape, x):
    gx, gc = tape.gradient(x * x, [x, tf.constant(1.0)], unconnected_gradients="zero")
    assert_close(gx, 6.0)
    assert_close(gc, 0.0)


def test_T38_unknown_value(tape, x):
    with pytest.raises(ValueError, match="nonsense"):
        tape.gradient(x * x, x, unconnected_gradients="nonsense")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_T39_gradient_has_the_dtype_of_its_source(dtype):
    g = gradient(lambda x: x * x, tf.cast([1.0, 2.0], dtype))
    assert g.dtype == dtype
    assert_close(tf.cast(g, tf.complex128), [2.0, 4.0])


def test_T39_through_a_cast():
    g = gradient(lambda x: tf.cast(x, tf.float64) ** 2, tf.constant(3.0))
    assert g.dtype == tf.float32
    assert_close(g, 6.0)


@pytest.mark.parametrize("shape", [[], [1], [4], [1, 4], [3, 1], [1, 1], [3, 4], [1, 1, 1]])
def test_T39_gradient_has_the_shape_of_its_source(shape):
    size = int(np.prod(shape))
    copies = 12 // size
    g = gradient(lambda x: x * tf.ones([3, 4]), tf.ones(shape))
    assert_close(g, np.full(shape, copies))


@pytest.mark.parametrize(
    "f, expected",
    [
        (lambda x: x * x, np.conj(2 * (2 + 3j))),
        (lambda x: tf.abs(x), (2 + 3j) / abs(2 + 3j)),
        (lambda x: tf.exp(x), np.conj(np.exp(2 + 3j))),
        (lambda x: tf.math.real(x), 1.0),
        (lambda x: tf.math.imag(x), 1j),
        (lambda x: tf.math.conj(x), 1.0),
    ],
    ids=["square", "abs", "exp", "real", "imag", "conj"],
)
def test_T40_complex_gradients_are_conjugates(f, expected):
    assert_close(gradient(f, tf.constant(2 + 3j)), expected)


def test_T42_numpy_leaves_the_tape(tape, x):
    y = tf.constant(x.numpy() ** 2) * x
    assert_close(tape.gradient(y, x), 9.0)


def test_T42_numpy_functions_leave_the_tape(tape, x):
    y = tf.constant(np.square(x))
    assert tape.gradient(y, x) is None


def test_T42_ndarray_as_target_is_an_error(tape, x):
    with pytest.raises(AttributeError):
        tape.gradient(np.square(x), x)
