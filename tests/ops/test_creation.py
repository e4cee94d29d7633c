"""constant, convert_to_tensor, and tensors made from a shape or a range."""

import numpy as np
import pytest

import gradtape as tf


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, tf.int32), (2**40, tf.int64), (1.5, tf.float32), (True, tf.bool), (1j, tf.complex128),
        ([], tf.float32), ([1.0, 2], tf.float32), (np.ones(2), tf.float64), (np.int8(3), tf.int8),
    ],
)  # fmt: skip
def test_inferred_type(value, dtype):
    assert tf.constant(value).dtype is dtype
    assert tf.convert_to_tensor(value).dtype is dtype
    np.testing.assert_array_equal(tf.constant(value), value)


def test_constant_with_shape():
    np.testing.assert_array_equal(tf.constant(5, shape=[2, 2]), [[5, 5], [5, 5]])
    np.testing.assert_array_equal(tf.constant([1, 2, 3, 4], shape=[2, 2]), [[1, 2], [3, 4]])
    with pytest.raises(TypeError, match=r"has 2 elements, but got `shape` \(3,\) with 3 elements"):
        tf.constant([1, 2], shape=[3])


def test_one_value_in_a_list_is_repeated():
    assert tf.constant([0.5], shape=[2, 2]).numpy().tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert tf.constant(["a"], shape=[2]).numpy().tolist() == [b"a", b"a"]
    assert tf.constant([True], shape=[0]).shape == [0]
    assert tf.constant_initializer([2])([2, 1]).numpy().tolist() == [[2], [2]]
    with pytest.raises(TypeError, match="unsupported shape"):
        tf.constant([1, 2], shape=[4])


def test_constant_of_tensors():
    x = tf.constant([1.0, 2.0])
    assert tf.constant(x) is x
    with pytest.raises(TypeError, match="with dtype tf.float64, but got dtype tf.float32"):
        tf.constant(x, tf.float64)
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.constant(v) * 2
    assert tape.gradient(y, v) is None


@pytest.mark.parametrize("value", [1.5, [1.0, 2.0]])
def test_numbers_must_fit_and_arrays_are_cast(value):
    with pytest.raises(TypeError, match="Cannot convert"):
        tf.constant(value, tf.int32)
    np.testing.assert_array_equal(tf.constant(np.array([1.5]), tf.int32), [1])


def test_signed_zero_and_nan_survive():
    for dtype in (None, tf.float32, tf.float64, tf.float16):
        assert np.signbit(tf.constant(-0.0, dtype).numpy())
        assert np.isnan(tf.constant(np.nan, dtype).numpy())


def test_convert_of_a_variable_has_a_gradient_of_its_own():
    v = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        a = tf.convert_to_tensor(v)
        b = tf.convert_to_tensor(v)
        y = a * a * b
    assert tape.gradient(y, v).numpy() == 27.0
    assert tape.gradient(y, a).numpy() == 18.0
    assert tape.gradient(y, b).numpy() == 9.0
    with pytest.raises(ValueError, match="Incompatible type conversion"):
        tf.convert_to_tensor(v, tf.float64)


def test_convert_hints_and_slices():
    assert tf.convert_to_tensor([1], dtype_hint=tf.float64).dtype is tf.float64
    assert tf.convert_to_tensor([1.5], dtype_hint=tf.int32).dtype is tf.float32
    slices = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([1, 1]), (3, 1))
    np.testing.assert_array_equal(tf.convert_to_tensor(slices), [[0.0], [3.0], [0.0]])
    with pytest.raises(ValueError, match="requested dtype float64"):
        tf.convert_to_tensor(tf.constant(1.0), tf.float64)


def test_is_tensor():
    assert tf.is_tensor(tf.constant(1)) and tf.is_tensor(tf.Variable(1))
    assert not tf.is_tensor(1) and not tf.is_tensor(np.ones(2))


def test_filled():
    assert tf.zeros(3).shape == (3,) and tf.zeros([], tf.bool).numpy() == np.False_
    assert tf.ones(tf.constant([2, 1]), tf.int64).dtype is tf.int64
    assert tf.zeros(tf.TensorShape([2, 3])).shape == (2, 3)
    np.testing.assert_array_equal(tf.zeros_like([1, 2], dtype=tf.float32), [0.0, 0.0])
    np.testing.assert_array_equal(tf.ones_like(np.array([False])), [True])
    assert tf.ones_like(tf.Variable([1.0, 2.0]), tf.int32).dtype is tf.int32
    assert tf.ones_like(tf.zeros([100, 100])).numpy().sum() == 10000
    with pytest.raises(TypeError, match="list of integers"):
        tf.zeros([2.0])


def test_fill_is_differentiable_by_its_value():
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.fill([2, 3], x)
    assert tape.gradient(y, x).numpy() == 6.0


def test_eye():
    np.testing.assert_array_equal(tf.eye(2, 3, dtype=tf.int32), [[1, 0, 0], [0, 1, 0]])
    assert tf.eye(2, batch_shape=[3, 1]).shape == (3, 1, 2, 2)
    assert tf.linalg.eye is tf.eye


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((5,), [0, 1, 2, 3, 4]), ((1, 10, 4), [1, 5, 9]), ((5, 1, -2), [5, 3]), ((0,), []), ((3, 3), []),
        ((1, 2, 0.3), [1.0, 1.3, 1.6, 1.9]), ((3.0,), [0.0, 1.0, 2.0]), ((-3, 0), [-3, -2, -1]),
    ],
)  # fmt: skip
def test_range(args, expected):
    out = tf.range(*args)
    assert out.dtype is (tf.float32 if any(isinstance(a, float) for a in args) else tf.int32)
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_range_types_and_errors():
    assert tf.range(tf.constant(3, tf.int64)).dtype is tf.int64
    assert tf.range(3, dtype=tf.float16).dtype is tf.float16
    assert tf.range(0, tf.constant(3.0), tf.constant(1, tf.int64)).dtype is tf.float32
    assert tf.range(2**40, 2**40 + 2).dtype is tf.int64
    for args, text in [((5, 1), "start <= limit"), ((0, 5, 0), "delta != 0"), (([1, 2],), "scalar")]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            tf.range(*args)


def test_linspace():
    np.testing.assert_allclose(tf.linspace(0.0, 10.0, 7), np.linspace(0, 10, 7), rtol=1e-6)
    assert tf.linspace(0, 1, 5).dtype is tf.float64
    np.testing.assert_allclose(
        tf.linspace([0.0, 1.0], [1.0, 3.0], 3, axis=-1), [[0.0, 0.5, 1.0], [1.0, 2.0, 3.0]]
    )
    assert tf.linspace(0.0, 1.0, 1).numpy().tolist() == [0.0]
    a, b = tf.constant(0.0), tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        y = tf.reduce_sum(tf.linspace(a, b, 5) * [1.0, 2.0, 3.0, 4.0, 5.0])
    np.testing.assert_allclose(tape.gradient(y, [a, b]), [5.0, 10.0])
