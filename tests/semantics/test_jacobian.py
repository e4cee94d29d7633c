"""GradientTape.jacobian and GradientTape.batch_jacobian."""

import numpy as np
import pytest

from .lib import assert_close, differs_on_tensorflow, tf

XS = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "float32")
WS = np.array([[1.0, -1.0], [2.0, 0.5], [0.0, 3.0]], "float32")


def record(f, *values, persistent=False):
    """The tape, the target `f(*sources)` and the watched sources."""
    sources = [tf.constant(v) for v in values]
    with tf.GradientTape(persistent=persistent) as tape:
        tape.watch(sources)
        y = f(*sources)
    return tape, y, sources


def test_T44_shape_is_target_shape_then_source_shape():
    tape, y, (x, w) = record(tf.matmul, XS, WS, persistent=True)
    jx, jw = tape.jacobian(y, x), tape.jacobian(y, w)
    assert_close(jx, np.einsum("ac,db->abcd", np.eye(2), WS))
    assert_close(jw, np.einsum("ac,bd->abcd", XS, np.eye(2)))


def test_T44_sources_may_be_nested():
    tape, y, (x, w) = record(tf.matmul, XS, WS)
    result = tape.jacobian(y, {"x": x, "rest": [w]})
    assert result["x"].shape == [2, 2, 2, 3]
    assert result["rest"][0].shape == [2, 2, 3, 2]


def test_T44_variable_source():
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = v * v
    assert_close(tape.jacobian(y, v), [[2.0, 0.0], [0.0, 4.0]])


def test_T44_scalar_target():
    tape, y, (x,) = record(lambda x: tf.reduce_sum(x * x), XS)
    assert_close(tape.jacobian(y, x), 2 * XS)


def test_T44_scalar_source():
    tape, y, (x,) = record(lambda x: x * tf.constant([1.0, 2.0]), np.float32(3.0))
    assert_close(tape.jacobian(y, x), [1.0, 2.0])


def test_T44_empty_target():
    tape, y, (x,) = record(lambda x: x[:0] * 2.0, XS)
    assert tape.jacobian(y, x).shape == [0, 3, 2, 3]


def test_T44_integer_target_is_unconnected():
    tape, y, (x,) = record(lambda x: tf.cast(x, tf.int32), XS)
    assert tape.jacobian(y, x) is None


def test_T44_list_as_target_is_an_error():
    tape, y, (x,) = record(lambda x: [x * x, x], XS)
    with pytest.raises(AttributeError):
        tape.jacobian(y, x)


@pytest.mark.parametrize("use_pfor", [True, False])
def test_T45_persistent_tape(use_pfor):
    tape, y, (x,) = record(lambda x: x * x, XS[0], persistent=True)
    for _ in range(2):
        j = tape.jacobian(y, x, experimental_use_pfor=use_pfor)
        assert_close(j, np.diag(2 * XS[0]))


@differs_on_tensorflow("TensorFlow wants a persistent tape without pfor", raises=RuntimeError)
def test_T45_without_pfor_on_a_non_persistent_tape():
    tape, y, (x,) = record(lambda x: x * x, XS[0])
    assert_close(tape.jacobian(y, x, experimental_use_pfor=False), np.diag(2 * XS[0]))


@differs_on_tensorflow("TensorFlow's pfor refuses parallel_iterations here", raises=ValueError)
def test_T46_parallel_iterations_on_a_non_persistent_tape():
    tape, y, (x,) = record(lambda x: x * x, XS[0])
    assert_close(tape.jacobian(y, x, parallel_iterations=2), np.diag(2 * XS[0]))


def test_T47_unconnected():
    tape, y, (x,) = record(lambda x: x * x, XS[0], persistent=True)
    other = tf.constant(WS)
    assert tape.jacobian(y, other) is None
    assert tape.jacobian(y, other, unconnected_gradients="none") is None
    assert_close(tape.jacobian(y, other, unconnected_gradients="zero"), np.zeros([3, 3, 2]))


def test_T47_jacobian_of_gather_is_dense():
    tape, y, (x,) = record(lambda x: tf.gather(x, [1, 1]), np.float32([5.0, 6.0, 7.0]))
    assert_close(tape.jacobian(y, x), [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])


def test_T47_jacobian_of_embedding_lookup_is_dense():
    table = tf.Variable(WS)
    with tf.GradientTape() as tape:
        y = tf.nn.embedding_lookup(table, [2])
    assert_close(tape.jacobian(y, table), np.eye(6)[4:].reshape(1, 2, 3, 2))


def test_T48_jacobian_of_gradient_is_the_hessian():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x[0] ** 3 * x[1]
        g = inner.gradient(y, x)
    assert_close(outer.jacobian(g, x), [[12.0, 3.0], [3.0, 0.0]])


def test_T48_jacobian_inside_a_persistent_tape_is_differentiable():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x**3
        j = tape.jacobian(y, x)
    assert_close(j, [[3.0, 0.0], [0.0, 12.0]])
    assert_close(tape.gradient(j, x), [6.0, 12.0])


def test_T48_jacobian_of_jacobian():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x**3
        j = inner.jacobian(y, x)
    expected = np.zeros([2, 2, 2])
    expected[0, 0, 0], expected[1, 1, 1] = 6.0, 12.0
    assert_close(outer.jacobian(j, x), expected)


def test_T49_inside_a_function():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sin(x) * tf.reduce_sum(x)
        return tape.jacobian(y, x)

    x = XS[0] / 3
    expected = np.diag(np.cos(x) * x.sum()) + np.sin(x)[:, None]
    for _ in range(2):
        assert_close(f(tf.constant(x)), expected, rtol=1e-4)


def test_T49_inside_a_function_with_unknown_batch_size():
    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def f(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.matmul(x * x, tf.constant(WS))
        return tape.jacobian(y, x), tape.batch_jacobian(y, x)

    for x in (XS, XS[:1], np.concatenate([XS, XS])):
        whole, blocks = f(tf.constant(x))
        expected = 2 * x[:, None, :] * WS.T[None]
        assert_close(blocks, expected)
        assert_close(whole, np.einsum("boi,bc->boci", expected, np.eye(len(x))))


def test_T49_the_tape_is_outside_the_function():
    @tf.function
    def f(x):
        return x * x

    tape, y, (x,) = record(f, XS[0])
    assert_close(tape.jacobian(y, x), np.diag(2 * XS[0]))


def test_T49_control_flow_in_a_function():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in tf.range(3):
                y = y * x
            if tf.reduce_sum(x) > 100.0:
                y = -y
        return tape.jacobian(y, x)

    assert_close(f(tf.constant(XS[0])), np.diag(4 * XS[0] ** 3))


@differs_on_tensorflow("TensorFlow's pfor cannot convert the branch", raises=ValueError)
def test_T48_second_order_through_control_flow():
    x = tf.constant([1.0, 2.0])

    @tf.function
    def f(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(tf.cond(x[0] > 0.0, lambda: x**3, lambda: x))
            g = inner.gradient(y, x)
        return outer.jacobian(g, x)

    assert_close(f(x), [[6.0, 0.0], [0.0, 12.0]])


@pytest.mark.parametrize("count", [1, 3])
def test_T48_rows_are_what_a_custom_gradient_makes_of_unit_cotangents(count):
    @tf.custom_gradient
    def clipped(x):
        return tf.identity(x), lambda g: tf.clip_by_value(g, -0.5, 0.5)

    tape, y, (x,) = record(lambda x: tf.tile(clipped(x), [count]), np.float32([1.0, 2.0]))
    assert_close(tape.jacobian(y, x), np.tile(0.5 * np.eye(2), [count, 1]))


def test_T44_complex():
    z = np.array([1 + 2j, 3 - 1j], np.complex64)
    tape, y, (x,) = record(lambda z: z * z, z)
    assert_close(tape.jacobian(y, x), np.diag(np.conj(2 * z)))
    tape, y, (x,) = record(tf.abs, z)
    assert_close(tape.jacobian(y, x), np.diag(z / np.abs(z)))


def test_T44_integer_source():
    n = tf.constant([1, 2])
    with tf.GradientTape() as tape:
        y = tf.cast(n, tf.float32) * 2.0
    assert tape.jacobian(y, n) is None


def test_T44_a_variable_as_target():
    v, w = tf.Variable(WS), tf.Variable(2.0)
    identity = np.eye(6).reshape(3, 2, 3, 2)
    with tf.GradientTape(persistent=True) as tape:
        _ = v * w
    jv, jw = tape.jacobian(v, [v, w])
    assert_close(jv, identity)
    assert jw is None
    assert_close(tape.batch_jacobian(v, v), np.stack([np.eye(2)] * 3))
    with tf.GradientTape() as tape:
        pass
    assert_close(tape.jacobian(v, v), identity)  # read by `jacobian` first of all
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        _ = v * w
    assert tape.jacobian(v, v) is None
    assert_close(tf.function(lambda: jacobian_of_itself(w))(), 1.0)


def jacobian_of_itself(v):
    with tf.GradientTape() as tape:
        pass
    return tape.jacobian(v, v)


def test_T44_the_same_source_twice():
    tape, y, (x,) = record(lambda x: x * x, XS[0])
    for j in tape.jacobian(y, [x, x]):
        assert_close(j, np.diag(2 * XS[0]))


def test_T50_batch_jacobian():
    tape, y, (x,) = record(lambda x: tf.matmul(x * x, tf.constant(WS)), XS)
    assert_close(tape.batch_jacobian(y, x), 2 * XS[:, None, :] * WS.T[None])


def test_T50_batch_jacobian_of_higher_rank():
    values = np.arange(12, dtype="float32").reshape(2, 3, 2)
    tape, y, (x,) = record(lambda x: tf.transpose(x, [0, 2, 1]) * 2.0, values)
    j = tape.batch_jacobian(y, x)
    assert j.shape == [2, 2, 3, 3, 2]
    assert_close(j, 2 * np.einsum("b,il,jk->bijkl", np.ones(2), np.eye(2), np.eye(3)))


@pytest.mark.parametrize("use_pfor", [True, False])
def test_T50_batch_jacobian_on_a_persistent_tape(use_pfor):
    tape, y, (x,) = record(lambda x: x * x, XS, persistent=True)
    j = tape.batch_jacobian(y, x, experimental_use_pfor=use_pfor)
    assert_close(j, 2 * XS[:, :, None] * np.eye(3))


def test_T50_target_of_rank_1_is_an_error():
    tape, y, (x,) = record(lambda x: tf.reduce_sum(x, 1), XS)
    with pytest.raises(ValueError, match="rank at least 2"):
        tape.batch_jacobian(y, x)


def test_T50_source_of_rank_1_is_an_error():
    tape, y, (x,) = record(lambda x: x[:, None] * x, XS[0])
    with pytest.raises(ValueError, match="rank at least 2"):
        tape.batch_jacobian(y, x)


def test_T50_different_batch_sizes_are_an_error():
    tape, y, (x,) = record(lambda x: tf.transpose(x), XS)
    with pytest.raises(ValueError, match="first dimension"):
        tape.batch_jacobian(y, x)


def test_T50_list_as_source_is_an_error():
    tape, y, (x,) = record(lambda x: x * x, XS)
    with pytest.raises(AttributeError):
        tape.batch_jacobian(y, [x])


@pytest.mark.parametrize("unconnected", ["none", "zero"])
def test_T51_unconnected_batch_jacobian_is_zeros(unconnected):
    tape, y, _ = record(lambda x: x * x, XS)
    other = tf.ones([2, 4])
    j = tape.batch_jacobian(y, other, unconnected_gradients=unconnected)
    assert_close(j, np.zeros([2, 3, 4]))


@differs_on_tensorflow("TensorFlow wants a persistent tape without pfor", raises=RuntimeError)
def test_T52_without_pfor_on_a_non_persistent_tape():
    tape, y, (x,) = record(lambda x: x * x, XS)
    j = tape.batch_jacobian(y, x, experimental_use_pfor=False)
    assert_close(j, 2 * XS[:, :, None] * np.eye(3))


@differs_on_tensorflow("TensorFlow wants a persistent tape here", raises=RuntimeError)
def test_T52_parallel_iterations_on_a_non_persistent_tape():
    tape, y, (x,) = record(lambda x: x * x, XS)
    j = tape.batch_jacobian(y, x, parallel_iterations=2)
    assert_close(j, 2 * XS[:, :, None] * np.eye(3))


@differs_on_tensorflow("TensorFlow divides by the batch size", raises=ZeroDivisionError)
def test_T53_empty_batch_gives_an_empty_result():
    tape, y, (x,) = record(lambda x: x * x, np.zeros([0, 3], "float32"))
    assert tape.batch_jacobian(y, x).shape == [0, 3, 3]
