"""gradtape._src.tapes.primitive: user-defined ops, alone, in functions, over batches, and checked by the contract."""

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.ops.samples import call, ints
from gradtape._src.ops.table import TABLE
from gradtape.testing import ContractError, check_op


@tf.primitive(vjp=lambda g, x, out: g * 3.0 * x * x, samples=[call(()), call((2, 3)), call((0, 3))])
def np_cube(x):
    """The third power, by NumPy."""
    return np.power(x, 3)


@tf.primitive(vjp=lambda g, x, out: 3 * np.asarray(g) * np.asarray(x) ** 2, samples=[call(()), call((2, 3))])
def np_cube_by_values(x):
    """The third power, with a gradient by NumPy."""
    return np.power(x, 3)


@tf.primitive(
    vjp=lambda g, x, out: 3 * np.asarray(g) * np.asarray(x) ** 2,
    jvp=lambda t, x, out: t * 3.0 * x * x,
    samples=[call(()), call((2, 3))],
)
def np_cube_both_ways(x):
    """The third power, with a gradient by NumPy and a tangent of ops."""
    return np.power(x, 3)


@tf.primitive(
    jvp=lambda t, x, y, out: t[0] * tf.cos(x) * y + t[1] * tf.sin(x),
    linear="y",
    pattern="aligned",
    samples=[call((3,), (3,))],
)
def np_wave(x, y):
    """A sine wave of amplitude `y`."""
    return np.sin(x) * np.asarray(y)


@tf.primitive(samples=[call((3,)), call((3,), alpha=2.0)])
def softplus_of_ops(x, alpha=1.0):
    """Softplus as a composite of ops."""
    return tf.math.log(1.0 + tf.exp(alpha * x))


@tf.primitive(
    vjp=lambda g, a, b, out: (tf.matmul(g, b, transpose_b=True), tf.matmul(a, g, transpose_a=True)),
    shape=lambda a, b: (a.shape[0], b.shape[1]),
    linear="a b",
    pattern="product",
    samples=[call((2, 3), (3, 4)), call((1, 0), (0, 2))],
)
def np_product(a, b):
    """A matrix product, by NumPy."""
    return np.asarray(a) @ np.asarray(b)


@tf.primitive(many=True, vjp=lambda g, x, out: g[0] * 2.0 + g[1] * out[0], samples=[call(()), call((3,))])
def np_two(x):
    """Twice the operand, and its square."""
    return np.asarray(x) * 2, np.asarray(x) ** 2


@tf.primitive(
    args="params indices:Index axis:Axis=0",
    vjp=lambda g, x, i, out, axis: (tf.math.unsorted_segment_sum(g, i, x.shape[0]), None),
    linear="params",
    pattern="moves",
    samples=[call((4, 2), ints([0, 2, 2])), call((4,), ints([3]), axis=-1)],
)
def np_take(params, indices, axis):
    """Rows of an array, by NumPy."""
    return np.take(params, indices, axis=axis)


@tf.primitive(
    args="xs:Operands",
    vjp=lambda g, xs, out: [g * float(k + 1) for k in range(len(xs))],
    linear="xs",
    pattern="aligned",
    samples=[call([(2,), (2,), (2,)])],
)
def np_weighted(xs):
    """x0 + 2 x1 + 3 x2 ..."""
    return sum((k + 1) * np.asarray(x) for k, x in enumerate(xs))


def _batched_norm(size, batched, operands, attrs):
    (x,) = operands
    return tf.sqrt(tf.reduce_sum(x * x, axis=list(range(1, x.ndim))))


@tf.primitive(
    vjp=lambda g, x, out: g * x / out, batch=_batched_norm, shape=lambda x: (), samples=[call((2, 3))]
)
def np_norm(x):
    """The length of a vector, by NumPy."""
    return np.linalg.norm(x)


EVERY = [
    np_cube, np_cube_by_values, np_cube_both_ways, np_wave, softplus_of_ops, np_product, np_two, np_take,
    np_weighted, np_norm,
]  # fmt: skip


@pytest.mark.parametrize("op", EVERY, ids=lambda op: op.op_name)
def test_it_keeps_the_contract_and_is_in_the_table(op):
    check_op(op)
    assert TABLE[op.op_name].op is op


# ---- derivatives ------------------------------------------------------------------------------


def orders(f, x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
    return y, g, outer.gradient(g, x)


MODES = {
    "eager": lambda f: lambda x: orders(f, x),
    "tape outside": lambda f: lambda x: orders(tf.function(lambda x: f(x)), x),
    "tape inside": lambda f: tf.function(lambda x: orders(f, x)),
}


@pytest.mark.parametrize("mode", MODES)
def test_second_order_of_a_vjp_made_of_ops(mode):
    run = MODES[mode](np_cube)
    for _ in range(3):
        y, g, h = run(tf.constant([1.0, 2.0]))
        np.testing.assert_allclose(y, [1, 8])
        np.testing.assert_allclose(g, [3, 12])
        np.testing.assert_allclose(h, [6, 12])


@pytest.mark.parametrize("mode", MODES)
def test_a_vjp_by_numpy_has_one_order_and_says_so(mode):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = np_cube_by_values(x)
    np.testing.assert_allclose(tape.gradient(y, x), [3, 12])
    with pytest.raises(LookupError, match="its gradient cannot be differentiated again"):
        MODES[mode](np_cube_by_values)(x)


@pytest.mark.parametrize("f", [np_cube, np_cube_by_values, np_cube_both_ways])
def test_in_a_function_with_the_tape_inside(f):
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(f(x * 2.0))
        return tape.gradient(y, x)

    for k in (1.0, 2.0):
        np.testing.assert_allclose(step(tf.constant([k, 2 * k])), [24 * k * k, 96 * k * k])


def test_forward_mode_and_jacobians():
    x = tf.constant([1.0, 2.0])
    for f in (np_cube, np_cube_both_ways):
        with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 10.0])) as acc:
            y = f(x)
        np.testing.assert_allclose(acc.jvp(y), [3, 120])
    for f in (np_cube, np_cube_by_values, np_cube_both_ways):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        np.testing.assert_allclose(tape.jacobian(y, x), [[3, 0], [0, 12]])


def test_without_a_gradient_it_is_an_error_or_a_constant():
    missing = tf.primitive(lambda x: np.sin(x), name="np_sine_without_gradient")
    constant = tf.primitive(lambda x: np.sin(x), name="np_sine_as_constant", vjp=None)
    x = tf.constant(1.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = missing(x), constant(x)
    with pytest.raises(LookupError, match="it has no gradient, because its forward is not made of ops"):
        tape.gradient(y, x)
    assert tape.gradient(z, x) is None


def test_registered_gradients():
    @tf.RegisterGradient("TestPrimitiveScaled")
    def scaled(op, g):
        assert op.type == "np_scaled" and op.outputs[0].shape == g.shape
        return g * op.get_attr("factor") + 0.0 * op.inputs[0]

    f = tf.primitive(
        lambda x, factor=2.0: np.asarray(x) * factor, name="np_scaled", vjp="TestPrimitiveScaled"
    )
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, factor=5.0)
    assert (y.numpy(), tape.gradient(y, x).numpy()) == (15.0, 5.0)
    tf.no_gradient("TestPrimitiveNone")
    for name, error in (("TestPrimitiveNone", None), ("TestPrimitiveUnknown", LookupError)):
        f = tf.primitive(lambda x: np.sin(x), name=f"np_{name}", vjp=name)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        if error is None:
            assert tape.gradient(y, x) is None
        else:
            with pytest.raises(error, match="gradient registry has no entry for: TestPrimitiveUnknown"):
                tape.gradient(y, x)


def test_wrong_gradients():
    def gradient(vjp):
        f = tf.primitive(lambda x, y: np.asarray(x) * np.asarray(y), name="np_wrong", vjp=vjp)
        x, y = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            z = f(x, y)
        return tape.gradient(z, [x, y])

    with pytest.raises(
        ValueError, match="np_wrong: the vjp must return one gradient per operand; expected 2; got 1"
    ):
        gradient(lambda g, x, y, out: g)
    with pytest.raises(ValueError, match=r"np_wrong: the gradient of 'y' does not fit; expected shape \[2\]"):
        gradient(lambda g, x, y, out: (g, tf.ones([5])))


# ---- functions and batches ------------------------------------------------------------------


def test_the_forward_runs_with_the_graph_and_sees_values():
    seen = []

    @tf.primitive(shape=lambda x: x.shape, vjp=lambda g, x, out: g)
    def np_seen(x):
        """Itself."""
        seen.append(np.asarray(x).tolist())
        return x

    f = tf.function(lambda x: np_seen(x * 2.0) + 1.0)
    assert seen == []
    assert f(tf.constant(1.0)).numpy() == 3.0 and f(tf.constant(2.0)).numpy() == 5.0
    assert seen == [2.0, 4.0]


def test_a_forward_made_of_ops_is_written_out():
    f = tf.function(lambda x: softplus_of_ops(x, alpha=2.0) * 3.0)
    x = tf.constant([0.5, 1.0])
    np.testing.assert_allclose(f(x), 3 * np.log1p(np.exp(2 * x.numpy())), rtol=1e-6)
    program = f.get_concrete_function(x).graph_function.program
    assert not any("call" in what for what, _ in program.profile([x], 1))


def test_shapes_of_results():
    pairs = {
        "a shape": lambda x: (x.shape[0], 2),
        "a spec": lambda x: tf.TensorSpec([x.shape[0], 2], tf.float32),
        "shape and type": lambda x: ((x.shape[0], 2), tf.float32),
    }
    x = tf.constant([1.0, 2.0, 3.0])
    for name, rule in pairs.items():
        f = tf.primitive(lambda x: np.stack([x, x], 1), name="np_doubled", shape=rule, vjp=None)
        assert tf.function(lambda x, f=f: f(x))(x).shape == (3, 2), name


def test_a_shape_that_depends_on_values():
    f = tf.primitive(lambda x: np.unique(x), name="np_unique", vjp=None, shape_from_values=True)
    np.testing.assert_allclose(tf.function(lambda x: f(x))(tf.constant([1.0, 1.0, 2.0])), [1, 2])
    f = tf.primitive(lambda x: np.unique(x), name="np_unique", vjp=None)
    with pytest.raises(tf.errors.InvalidArgumentError, match="the result is not what was inferred"):
        tf.function(lambda x: f(x))(tf.constant([1.0, 1.0, 2.0]))


def test_a_forward_that_fails_on_examples_runs_eagerly():
    def only_negative(x):
        if np.any(np.asarray(x) > 0):
            raise ValueError("positive")
        return np.sqrt(-np.asarray(x))

    f = tf.primitive(only_negative, name="np_root", vjp=None)
    assert tf.function(lambda x: f(x))(tf.constant(-4.0)).numpy() == 2.0


def test_batches():
    x = tf.constant([[3.0, 4.0], [6.0, 8.0]])
    for f, expected in ((np_norm, [5.0, 10.0]), (lambda r: np_cube(r)[0], [27.0, 216.0])):
        np.testing.assert_allclose(tf.vectorized_map(f, x), expected)


def test_attributes_by_name_and_position():
    f = tf.primitive(lambda x, *, mode: np.asarray(x) * {"a": 2, "b": 3}[mode], name="np_mode", vjp=None)
    x = tf.constant(1.0)
    assert f(x, mode="b").numpy() == 3.0
    assert tf.function(lambda x: f(x, mode="a"))(x).numpy() == 2.0
    with pytest.raises(TypeError, match="mode"):
        f(x)
    with pytest.raises(TypeError, match="attributes must be hashable"):
        tf.function(lambda x: f(x, mode=["a"]))(x)


# ---- making one -----------------------------------------------------------------------------


def test_it_can_be_made_again_and_old_graphs_stay_right():
    first = tf.primitive(lambda x: np.asarray(x) + 1, name="np_again", vjp=None)
    f = tf.function(lambda x: first(x) * second(x))
    second = tf.primitive(lambda x: np.asarray(x) + 2, name="np_again", vjp=None)
    assert f(tf.constant(1.0)).numpy() == 6.0
    assert TABLE["np_again"].op is second


def test_invalid_primitives():
    with pytest.raises(ValueError, match="'mul' is an op of gradtape already"):
        tf.primitive(lambda x: x, name="mul")
    with pytest.raises(ValueError, match="a parameter list of any length is not possible"):
        tf.primitive(lambda *x: x, name="np_refused")
    with pytest.raises(
        ValueError, match="the default of 'a' must be None, a bool, a finite number or a word"
    ):
        tf.primitive(lambda x, a=(1, 2): x, name="np_refused")
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="not defined for int32, .*; expected one of float32, float64"
    ):
        np_cube(tf.constant([1, 2]))
    whole = tf.primitive(lambda x: np.asarray(x) + 1, name="np_whole", vjp=None, dtypes=[tf.int32, tf.int64])
    assert whole(tf.constant([1, 2])).dtype is tf.int32


def test_the_contract_finds_mistakes():
    with pytest.raises(ContractError, match="there are no samples to check it on"):
        check_op(tf.primitive(lambda x: tf.sin(x), name="np_no_samples"))
    wrong = tf.primitive(
        lambda x: np.sin(x), name="np_wrong_sine", vjp=lambda g, x, out: g * tf.cos(x) * 1.001,
        jvp=lambda t, x, out: t * tf.cos(x) * 0.999, samples=[call((3,))],
    )  # fmt: skip
    with pytest.raises(ContractError, match="np_wrong_sine: gradient of x in sample 0"):
        check_op(wrong)
    with pytest.raises(ContractError, match="np_wrong_sine: jvp in sample 0"):
        check_op(wrong, ["jvp"])
    shape = tf.primitive(
        lambda x: np.sin(x), name="np_wrong_shape", vjp=None, shape=lambda x: (7,), samples=[call((3,))]
    )
    with pytest.raises(ContractError, match="np_wrong_shape: inferred shape"):
        check_op(shape)
