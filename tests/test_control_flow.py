"""cond, case, switch_case, loops, maps, folds, TensorArray and Python functions, eagerly."""

import numpy as np
import pytest

import gradtape as tf

X = tf.constant([1.0, 2.0, 3.0])


def gradient(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


# ---- branches -----------------------------------------------------------------------------------


def test_w1_cond_runs_one_branch_and_returns_it_unconverted():
    ran = []
    assert tf.cond(tf.constant(True), lambda: 1, lambda: ran.append(1)) == 1
    assert tf.cond(False, lambda: 1, lambda: {"a": 2}) == {"a": 2}
    assert not ran
    with pytest.raises(TypeError, match="'true_fn' must be callable"):
        tf.cond(True, 1, 2)


def test_gradient_passes_the_branch_taken():
    f = lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x * x, lambda: x)  # noqa: E731
    np.testing.assert_array_equal(gradient(f, X), [2.0, 4.0, 6.0])


def test_switch_case():
    branches = [lambda: "a", lambda: "b"]
    assert [tf.switch_case(tf.constant(i), branches) for i in (0, 1, 5, -1)] == ["a", "b", "b", "b"]
    assert tf.switch_case(tf.constant(1), {0: lambda: 1, 3: lambda: 2}, default=lambda: 9) == 9
    assert tf.switch_case(tf.constant(0), [(1, lambda: 7), (0, lambda: 8)]) == 8
    with pytest.raises(ValueError, match="at least one"):
        tf.switch_case(tf.constant(0), [])
    with pytest.raises(TypeError, match="must be an integer"):
        tf.switch_case(tf.constant(1.0), branches)


def test_case():
    no, yes = tf.constant(False), tf.constant(True)
    assert tf.case([(no, lambda: 1), (yes, lambda: 2)]) == 2
    assert tf.case([(no, lambda: 1)], default=lambda: 3) == 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="None of conditions evaluated as True"):
        tf.case([(no, lambda: 1)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="More than one condition"):
        tf.case([(yes, lambda: 1), (yes, lambda: 2)], exclusive=True)
    with pytest.raises(TypeError, match="must be a list, tuple, or dict"):
        tf.case(3)


# ---- loops --------------------------------------------------------------------------------------


def test_w2_while_loop():
    i, x = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), [0, 1.0])
    assert (i.numpy(), x.numpy()) == (3, 8.0) and i.dtype is tf.int32
    assert tf.while_loop(lambda i: False, lambda i: [i], [0])[0].numpy() == 0
    out = tf.while_loop(lambda i: i < 10, lambda i: [i + 1], [0], maximum_iterations=4)
    assert out[0].numpy() == 4


def test_w2_structures():
    with pytest.raises(TypeError, match="same nested structure"):
        tf.while_loop(lambda i, j: i < 3, lambda i, j: (i + 1, j), [0, 1], maximum_iterations=2)
    with pytest.raises(ValueError, match="same nested structure"):
        tf.while_loop(lambda i: i < 3, lambda i: (i + 1, i), [0])
    with pytest.raises(TypeError, match="'int' object is not iterable"):
        tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    with pytest.raises(ValueError, match="'loop_vars' must be provided"):
        tf.while_loop(lambda: True, lambda: (), [])
    with pytest.raises(TypeError, match="'cond' must be callable"):
        tf.while_loop(3, lambda i: i, [0])


def test_gradient_through_while_loop():
    power = lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, x))[1]  # noqa: E731
    np.testing.assert_allclose(gradient(power, X), 4 * X.numpy() ** 3)


def test_w3_map_fn():
    np.testing.assert_array_equal(tf.map_fn(lambda a: a * 2, X), [2.0, 4.0, 6.0])
    np.testing.assert_array_equal(tf.map_fn(lambda a: 3, X), [3.0, 3.0, 3.0])
    to_int = lambda a: tf.cast(a, tf.int32)  # noqa: E731
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="dtype is float32 but Op is trying to write dtype int32"
    ):
        tf.map_fn(to_int, X)
    assert tf.map_fn(to_int, X, fn_output_signature=tf.int32).dtype is tf.int32
    assert tf.map_fn(to_int, X, dtype=tf.int32).dtype is tf.int32
    total = tf.map_fn(lambda ab: ab[0] + ab[1], (X, X), fn_output_signature=tf.float32)
    np.testing.assert_array_equal(total, [2.0, 4.0, 6.0])
    pair = tf.map_fn(
        lambda a: {"x": a, "y": a * 2}, X, fn_output_signature={"x": tf.float32, "y": tf.float32}
    )
    np.testing.assert_array_equal(pair["y"], [2.0, 4.0, 6.0])


def test_map_fn_empty_and_wrong():
    assert tf.map_fn(lambda a: a, tf.zeros([0, 3])).shape == (0,)
    assert tf.map_fn(
        lambda a: a, tf.zeros([0, 3]), fn_output_signature=tf.TensorSpec([3], tf.float32)
    ).shape == (0, 3)
    with pytest.raises(ValueError, match="not scalars"):
        tf.map_fn(lambda a: a, 3.0)
    with pytest.raises(ValueError, match="3 and 2 are not compatible"):
        tf.map_fn(lambda a: a, (X, X[:2]))
    with pytest.raises(ValueError, match="Incompatible shape"):
        tf.map_fn(lambda a: tf.zeros([int(a)]), X)
    with pytest.raises(ValueError, match="same nested structure"):
        tf.map_fn(lambda a: (a, a), X)


def test_scan_and_folds():
    add = lambda a, b: a + b  # noqa: E731
    np.testing.assert_array_equal(tf.scan(add, X), [1.0, 3.0, 6.0])
    np.testing.assert_array_equal(tf.scan(add, X, initializer=10.0), [11.0, 13.0, 16.0])
    np.testing.assert_array_equal(tf.scan(add, X, reverse=True), [6.0, 5.0, 3.0])
    s, p = tf.scan(lambda a, b: (a[0] + b, a[1] * b), X, initializer=(0.0, 1.0))
    np.testing.assert_array_equal(s, [1.0, 3.0, 6.0])
    np.testing.assert_array_equal(p, [1.0, 2.0, 6.0])
    assert tf.scan(add, tf.zeros([0]), initializer=1.0).shape == (0,)
    assert tf.foldl(lambda a, b: a - b, X).numpy() == -4.0
    assert tf.foldl(lambda a, b: a - b, X, initializer=1.0).numpy() == -5.0
    assert tf.foldr(lambda a, b: a - b, X).numpy() == 0.0
    assert tf.foldl(lambda a, b: a + b[0] * b[1], (X, X), initializer=0.0).numpy() == 14.0
    with pytest.raises(tf.errors.OutOfRangeError):
        tf.foldl(add, tf.zeros([0]))


def test_gradients_of_maps_and_scans():
    np.testing.assert_array_equal(gradient(lambda x: tf.map_fn(tf.square, x), X), [2.0, 4.0, 6.0])
    np.testing.assert_array_equal(gradient(lambda x: tf.scan(lambda a, b: a + b, x), X), [3.0, 2.0, 1.0])
    np.testing.assert_allclose(gradient(lambda x: tf.foldl(lambda a, b: a * b, x), X), [6.0, 3.0, 2.0])
    np.testing.assert_array_equal(gradient(lambda x: tf.vectorized_map(tf.square, x), X), [2.0, 4.0, 6.0])


def test_vectorized_map():
    a, b = tf.vectorized_map(lambda x: (x, 1), X)
    assert b.dtype is tf.int32 and b.shape == (3,)
    np.testing.assert_array_equal(tf.vectorized_map(lambda x: x[0] + x[1], (X, X[:1])), [2.0, 3.0, 4.0])
    assert tf.vectorized_map(lambda x: x * 2, tf.zeros([0, 3])).shape == (0, 3)
    assert tf.vectorized_map(lambda x: x, X[:1]).shape == (1,)


# ---- TensorArray --------------------------------------------------------------------------------


def test_w4_write_read_stack():
    ta = tf.TensorArray(tf.float32, size=2)
    ta = ta.write(0, 1.0)
    np.testing.assert_array_equal(ta.stack(), [1.0, 0.0])
    assert ta.size().numpy() == 2 and ta.element_shape == () and ta.dtype is tf.float32
    assert ta.read(0).numpy() == 1.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not read index 0 twice"):
        ta.read(0)
    twice = tf.TensorArray(tf.float32, 1, clear_after_read=False).write(0, 1.0)
    assert twice.read(0).numpy() == twice.read(tf.constant(0)).numpy() == 1.0


def test_w4_sizes_shapes_and_types():
    grown = tf.TensorArray(tf.float32, 0, dynamic_size=True).write(1, 1.0)
    np.testing.assert_array_equal(grown.stack(), [0.0, 1.0])
    assert tf.TensorArray(tf.float32, 0, element_shape=[2]).stack().shape == (0, 2)
    with pytest.raises(tf.errors.OutOfRangeError, match="index 5 but array is not resizeable and size is: 2"):
        tf.TensorArray(tf.float32, 2).write(5, 1.0)
    with pytest.raises(tf.errors.OutOfRangeError, match="negative"):
        tf.TensorArray(tf.float32, 2).write(-1, 1.0)
    with pytest.raises(tf.errors.OutOfRangeError, match="array size is: 2"):
        tf.TensorArray(tf.float32, 2).read(7)
    with pytest.raises(tf.errors.InvalidArgumentError, match="float32 but Op is trying to write dtype int32"):
        tf.TensorArray(tf.float32, 2).write(0, tf.constant(1))
    with pytest.raises(ValueError, match=r"Incompatible shape for value \(\(2,\)\), expected \(\(1,\)\)"):
        tf.TensorArray(tf.float32, 2).write(0, [1.0]).write(1, [1.0, 2.0])
    with pytest.raises(ValueError, match="Size must be declared"):
        tf.TensorArray(tf.float32)


def test_w4_whole_arrays():
    ta = tf.TensorArray(tf.float32, 3)
    np.testing.assert_array_equal(ta.unstack(X).gather([2, 0]), [3.0, 1.0])
    np.testing.assert_array_equal(
        tf.TensorArray(tf.float32, 3).scatter([2, 0], [1.0, 2.0]).stack(), [2.0, 0.0, 1.0]
    )
    np.testing.assert_array_equal(tf.TensorArray(tf.float32, 2).split(X, [1, 2]).read(1), [2.0, 3.0])
    ragged = tf.TensorArray(tf.float32, 2, infer_shape=False).write(0, [1.0]).write(1, [1.0, 2.0])
    np.testing.assert_array_equal(ragged.concat(), [1.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="Cannot unstack 3 tensors"):
        tf.TensorArray(tf.float32, 2).unstack(X)


def test_w4_gradient():
    def f(x):
        ta = tf.TensorArray(tf.float32, 3).unstack(x)
        out = tf.TensorArray(tf.float32, 3)
        for i in range(3):
            out = out.write(i, ta.read(i) ** 2)
        return out.stack()

    np.testing.assert_array_equal(gradient(f, X), [2.0, 4.0, 6.0])


# ---- Python functions ---------------------------------------------------------------------------


def test_w5_py_function():
    f = lambda x: tf.py_function(lambda a: a * a, [x], tf.float32)  # noqa: E731
    np.testing.assert_array_equal(f(X), [1.0, 4.0, 9.0])
    np.testing.assert_array_equal(gradient(f, X), [2.0, 4.0, 6.0])
    assert isinstance(tf.py_function(lambda a: a, [X], [tf.float32]), list)
    assert tf.py_function(lambda a: np.float64(3), [X], tf.float32).dtype is tf.float32
    assert tf.py_function(lambda a: None, [X], []) == []
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected 2 results"):
        tf.py_function(lambda a: a, [X], [tf.float32, tf.float32])


def test_w5_numpy_function():
    f = lambda x: tf.numpy_function(lambda a: a * 2, [x], tf.float32)  # noqa: E731
    np.testing.assert_array_equal(f(X), [2.0, 4.0, 6.0])
    assert gradient(f, X) is None
    assert tf.numpy_function(lambda a: None, [1.0], []) is None


def test_arguments_that_are_refused_as_in_tensorflow():
    with pytest.raises(TypeError, match="'branch_index' must be a Tensor"):
        tf.switch_case(1, [lambda: 1, lambda: 2])
    with pytest.raises(ValueError, match="'maximum_iterations' must be a scalar"):
        tf.while_loop(
            lambda i: True, lambda i: (i + 1,), [tf.constant(0)], maximum_iterations=tf.constant([4])
        )
    with pytest.raises(tf.errors.InvalidArgumentError, match="not equal to the size of lengths"):
        tf.TensorArray(tf.float32, 3).split([1.0, 2.0, 3.0], [1, 2])
