"""Static shapes of tensors of unknown size, and errors of programs that need a known size."""

import numpy as np
import pytest

from tests.semantics.lib import ON_TENSORFLOW, tf

spec = tf.TensorSpec


def shapes_seen(f, *specs):
    """The static shapes of the tensors that a traced function returns."""
    seen = []

    def traced(*args):
        out = f(*args)
        seen.extend(str(t.shape) for t in (out if isinstance(out, tuple) else (out,)))
        return out

    tf.function(traced, input_signature=list(specs)).get_concrete_function()
    return seen


# ---- known sizes ----------------------------------------------------------------------------------


def test_set_shape():
    def f(x):
        y, z = x + 0.0, x * 1.0
        y.set_shape([None, 2])
        z.set_shape([3, 2])
        return y, z, tf.transpose(y), z @ tf.ones([2, 4])

    assert shapes_seen(f, spec([None, None])) == ["(None, 2)", "(3, 2)", "(2, None)", "(3, 4)"]
    with pytest.raises(ValueError):
        shapes_seen(lambda x: x.set_shape([None, 3]), spec([None, 2]))


def test_functions_of_python_give_unknown_shapes():
    calls = []

    def twice(x):
        calls.append(len(x.numpy()))
        return x.numpy() * 2

    @tf.function(input_signature=[spec([None])])
    def f(x):
        y = tf.py_function(twice, [x], tf.float32)
        z = tf.numpy_function(lambda v: v + np.float32(1), [x], tf.float32)
        assert y.shape.rank is None and z.shape.rank is None
        y.set_shape([None])
        z.set_shape(x.shape)
        return y + z

    for n in (1, 3, 1):
        np.testing.assert_array_equal(f(tf.ones([n])), np.full(n, 4.0))
    assert calls == [1, 3, 1]


def test_unknown_ranks_stay_unknown():
    unknown = spec(None)
    assert shapes_seen(tf.matmul, unknown, unknown) == ["<unknown>"]
    assert shapes_seen(lambda x, w: tf.einsum("...i,ij->...j", x, w), unknown, spec([2, 3])) == ["<unknown>"]
    conv = shapes_seen(lambda x: tf.nn.conv2d(x, tf.ones([3, 3, 2, 4]), 2, "SAME"), unknown)
    assert conv == ["(None, None, None, 4)"]


def test_shapes_that_are_values():
    def f(x, shape, n):
        return tf.broadcast_to(x, shape), tf.scatter_nd([[0], [1]], x, [n])

    specs = spec([None]), spec([2], tf.int32), spec([], tf.int32)
    assert shapes_seen(f, *specs) == ["(None, None)", "(None,)"]
    out, scattered = tf.function(f, input_signature=specs)(tf.ones([2]), tf.constant([3, 2]), tf.constant(4))
    assert out.shape == (3, 2) and scattered.numpy().tolist() == [1.0, 1.0, 0.0, 0.0]


def test_static_values():
    seen = []

    @tf.function(input_signature=[spec([None, 2])])
    def f(x):
        seen.extend(tf.get_static_value(t) for t in (x, tf.shape(x), tf.rank(x), tf.constant([1, 2])))
        return x

    f(tf.ones([3, 2]))
    assert seen[:3] == [None, None, 2] and seen[3].tolist() == [1, 2]
    assert tf.get_static_value(tf.constant(3.0)) == 3.0


def test_lengths():
    @tf.function(input_signature=[spec([None])])
    def f(x):
        return x * tf.cast(len(x), tf.float32), len(tf.ones([2, 3]))

    for n in (0, 1, 3):
        out, known = f(tf.ones([n]))
        assert out.numpy().tolist() == [float(n)] * n and int(known) == 2


def test_rows_of_a_loop_have_a_dense_gradient():
    @tf.function(input_signature=[spec([None, 2])])
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            h = tf.zeros([2])
            for row in x:
                h = h * 0.5 + row
            y = tf.reduce_sum(h)
        return tape.gradient(y, x)

    for n in (3, 1, 3):
        np.testing.assert_allclose(f(tf.ones([n, 2])), 0.5 ** np.arange(n)[::-1, None] * np.ones([n, 2]))


def test_generators():
    numbers = tf.random.Generator.from_seed(3)

    @tf.function(input_signature=[spec([None])])
    def f(x):
        return numbers.uniform(tf.shape(x)), numbers.normal([tf.shape(x)[0], 2])

    same = tf.random.Generator.from_seed(3)
    for n in (2, 3, 2):
        uniform, normal = f(tf.zeros([n]))
        np.testing.assert_allclose(uniform, same.uniform([n]), rtol=1e-6)
        np.testing.assert_allclose(normal, same.normal([n, 2]), rtol=1e-5)


def test_lists_of_tensors_are_converted_to_the_given_type():
    @tf.function(input_signature=[spec([None])])
    def f(x):
        return tf.convert_to_tensor([x, x], tf.int32), [x] * tf.size(x)

    stacked, times = f(tf.constant([0.5, 2.5]))
    assert stacked.numpy().tolist() == [[0, 2], [0, 2]] and times.numpy().tolist() == [[0, 4]]
    assert tf.convert_to_tensor([tf.constant(1.5)], tf.int32).numpy().tolist() == [1]


# ---- errors ---------------------------------------------------------------------------------------

vector, matrix = spec([None]), spec([None, 2])
WRONG = {
    "number of results": (lambda x: tf.unstack(x), [vector], ValueError, "num|number"),
    "size None": (lambda x: tf.zeros([x.shape[0]]), [vector], TypeError, "None"),
    "shape with None": (lambda x: tf.ones(x.shape), [vector], ValueError, r"\(?\[?None"),
    "reshape to None": (lambda x: tf.reshape(x, [x.shape[0], 2]), [matrix], TypeError, r"\[None, 2\]"),
    "range of None": (lambda x: tf.range(x.shape[0]), [vector], ValueError, "None"),
    "incompatible": (lambda x: x.shape.assert_is_compatible_with([None, 3]), [matrix], ValueError, "None, 2"),
    "iteration": (lambda x: list(x), [vector], tf.errors.OperatorNotAllowedInGraphError, "Iterating"),
    "invariant": (
        lambda x: tf.while_loop(lambda y: True, lambda y: [tf.concat([y, x], 0)], [tf.zeros([2])]),
        [vector],
        ValueError,
        r"enters the loop with shape \(2,\), but has shape \(None,\) after one iteration",
    ),
    "rank": (
        lambda x: tf.while_loop(lambda y: True, lambda y: [y[None]], [x], shape_invariants=[x.shape]),
        [vector],
        ValueError,
        r"enters the loop with shape \(None,\), but has shape \(1, None\) after one iteration",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_programs_that_need_a_known_size(name):
    f, specs, error, text = WRONG[name]
    with pytest.raises(error, match=text):
        tf.function(f, input_signature=specs).get_concrete_function()


def test_the_last_size_of_a_layer_needs_to_be_known():
    pytest.importorskip("keras")
    with pytest.raises(ValueError, match="None"):
        tf.function(tf.keras.layers.Dense(3), input_signature=[spec([None, None])]).get_concrete_function()


@pytest.mark.parametrize(
    "f, other",
    [
        (lambda x, y: x + y, spec([None, 4])),
        (lambda x, y: x @ y, spec([4, None])),
        (lambda x, y: tf.concat([x, y], 0), spec([None, 4])),
        (lambda x, y: tf.ensure_shape(x, [None, 4]) + y, spec([None, 4])),
    ],
)
def test_sizes_that_never_fit(f, other):
    # The sizes used to infer shapes must not appear in messages.
    error = ValueError if ON_TENSORFLOW else tf.errors.InvalidArgumentError
    with pytest.raises(error, match="3") as caught:
        tf.function(f, input_signature=[spec([None, 3]), other]).get_concrete_function()
    assert "60" not in str(caught.value) and "84" not in str(caught.value)


def test_sizes_that_do_not_fit_in_a_call():
    f = tf.function(lambda x, y: x + y, input_signature=[vector, vector])
    assert f(tf.ones([2]), tf.ones([2])).shape == (2,) and f(tf.ones([1]), tf.ones([3])).shape == (3,)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
        f(tf.ones([2]), tf.ones([3]))
