"""Tensor as a Python object: text, arrays, copies, hints (the rest is in tests/semantics)."""

import copy
import pickle

import numpy as np
import pytest

import gradtape as tf


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: tf.constant(True), "<tf.Tensor: shape=(), dtype=bool, numpy=True>"),
        (lambda: tf.constant(1j), "<tf.Tensor: shape=(), dtype=complex128, numpy=1j>"),
        (lambda: tf.constant(float("nan")), "<tf.Tensor: shape=(), dtype=float32, numpy=nan>"),
        (
            lambda: tf.zeros([0, 2]),
            "<tf.Tensor: shape=(0, 2), dtype=float32, numpy=array([], shape=(0, 2), dtype=float32)>",
        ),
        (
            lambda: tf.ones([2, 2]),
            "<tf.Tensor: shape=(2, 2), dtype=float32, numpy=\narray([[1., 1.],\n       [1., 1.]], "
            "dtype=float32)>",
        ),
    ],
)
def test_repr(make, text):
    assert repr(make()) == text


def test_str_and_format():
    assert str(tf.ones([2, 2])) == "tf.Tensor(\n[[1. 1.]\n [1. 1.]], shape=(2, 2), dtype=float32)"
    assert f"{tf.constant(1.5)}" == "1.5" and f"{tf.constant([1.0, 2.0])}" == "[1. 2.]"
    assert f"{tf.constant(3):5d}" == "    3"
    with pytest.raises(TypeError):
        format(tf.constant([1.0]), ".2f")


def test_bfloat16_text_names_its_type():
    x = tf.cast([1.0, 2.0], tf.bfloat16)
    assert "dtype=bfloat16, numpy=array(" in repr(x) and "dtype=bfloat16)>" in repr(x)


def test_arrays_share_memory_and_are_read_only():
    x = tf.constant([1.0, 2.0])
    a, b = np.asarray(x), np.asarray(x)
    assert np.shares_memory(a, b) and not a.flags.writeable
    assert not np.shares_memory(x.numpy(), a) and x.numpy().flags.writeable
    del x
    assert a.tolist() == [1.0, 2.0]


def test_array_protocol():
    x = tf.constant([1.0, 2.0])
    assert np.array(x, dtype="float64").dtype == np.float64
    assert np.array(x).flags.writeable
    assert x.__array__("int32").tolist() == [1, 2]
    assert np.asarray(x, copy=False).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="copy"):
        x.__array__("float64", copy=False)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64", "complex128"]
)
@pytest.mark.parametrize("shape", [(), (0, 2), (2, 3)])
def test_array_of_every_type(dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    x = tf.constant(array)
    assert x.dtype == dtype and x.shape == shape
    for back in (np.asarray(x), np.array(x), x.numpy(), x.__array__()):
        assert back.dtype == dtype and np.array_equal(back, array)


def test_bfloat16_is_an_array_of_its_values():
    x = tf.cast([1.0, 2.5], tf.bfloat16)
    assert np.asarray(x).astype("float32").tolist() == [1.0, 2.5]
    assert np.asarray(x.numpy()).astype("float32").tolist() == [1.0, 2.5]
    assert (x * 2.0).dtype == tf.bfloat16
    assert float(tf.constant(1.5, tf.bfloat16)) == 1.5


def test_copies():
    x = tf.constant([1.0, 2.0])
    assert copy.copy(x) is x and copy.deepcopy(x) is x


@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "float32", "complex128"])
def test_pickle(dtype):
    x = tf.cast(tf.constant([[0, 1], [1, 0]]), dtype)
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype == dtype and y.shape == (2, 2)
    assert np.array_equal(np.asarray(x), np.asarray(y))


def test_names_of_numpy_have_hints():
    x = tf.ones([2])
    with pytest.raises(AttributeError, match=r"'reshape'.*tf\.reshape"):
        x.reshape(2)
    with pytest.raises(AttributeError, match=r"'T'.*tf\.transpose"):
        _ = x.T
    assert not hasattr(x, "sum") and "reshape" not in dir(x) and "numpy" in dir(x)
    assert getattr(x, "mean", None) is None
    with pytest.raises(AttributeError, match="foo"):
        _ = x.foo


def test_attributes_can_be_hung_on_a_tensor():
    x = tf.ones([2])
    x._keras_mask = 1
    assert x._keras_mask == 1 and not hasattr(tf.ones([2]), "_keras_mask")


@pytest.mark.parametrize("name", ["op", "graph", "name"])
def test_graph_attributes_are_undefined(name):
    with pytest.raises(AttributeError, match="eager"):
        getattr(tf.ones([2]), name)


def test_set_shape_checks():
    x = tf.ones([2, 3])
    x.set_shape([None, 3])
    with pytest.raises(ValueError, match="not compatible"):
        x.set_shape([3, 2])


def test_references():
    x, y = tf.ones([2]), tf.ones([2])
    assert x.ref() == x.ref() and x.ref() != y.ref() and len({x.ref(), x.ref(), y.ref()}) == 2
    assert "Reference wrapping" in repr(x.ref())
    with pytest.raises(TypeError, match="unwrapped"):
        _ = x.ref() == x


def test_item_assignment_has_a_hint():
    x = tf.ones([2])
    with pytest.raises(TypeError, match="does not support item assignment.*tensor_scatter_nd_update"):
        x[0] = 1.0
    with pytest.raises(TypeError, match="deletion"):
        del x[0]


def test_truth():
    assert not tf.constant([]) and tf.constant([[3.0]])
    with pytest.raises(ValueError, match="ambiguous"):
        bool(tf.ones([2]))


def test_round():
    assert round(tf.constant(2.6)) == 3 and isinstance(round(tf.constant(2.6)), int)
    assert np.asarray(round(tf.constant([1.26]), 1)).tolist() == pytest.approx([1.3])


def test_iteration_and_membership():
    assert [float(a) for a in tf.constant([1.0, 2.0])] == [1.0, 2.0]
    assert 1.0 in tf.constant([1.0, 2.0]) and 3.0 not in tf.constant([1.0, 2.0])
    a, b = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert b.numpy().tolist() == [3.0, 4.0]


class Frame:
    """Like a DataFrame of pandas: it has an array, and no dtype."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype is None else self.array.astype(dtype)


class Interface:
    def __init__(self, array):
        self.array, self.__array_interface__ = array, array.__array_interface__


@pytest.mark.parametrize("kind", [Frame, Interface])
@pytest.mark.parametrize(
    "dtype", ["float16", "float64", "int8", "int64", "uint64", "bool", "complex64", ">f8"]
)
def test_objects_with_an_array_keep_its_type(kind, dtype):
    array = np.array([[1, 2], [0, 4]]).astype(dtype)
    x = tf.constant(kind(array))
    assert x.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(x, array)
    assert tf.Variable(kind(array)).dtype == x.dtype
    np.testing.assert_array_equal(tf.constant(kind(array), tf.float32), array.real.astype(np.float32))


def test_arrays_inside_say_their_digits():
    assert tf.constant(Frame(np.array([16777217.0]))).numpy()[0] == 16777217
    assert tf.constant([Frame(np.array([16777217.0]))]).numpy()[0, 0] == 16777217
    np.testing.assert_array_equal(tf.constant(Frame(np.array([1.5, -1.5])), tf.int32), [1, -1])


def test_lists_of_numpy_numbers():
    """TensorFlow's types: floats take the type of the first one, integers int32 if they fit, complex128."""
    swapped = np.array([1.0, 2.0], ">f8")
    for value, dtype in (
        ([np.float64(1), 1.0], "float64"), ([1.0, np.float64(1)], "float32"), ([np.float16(1)], "float16"),
        ([np.longdouble(1)], "float32"), ([1, np.uint64(16777217)], "int32"), ([1, np.uint64(2**40)], "int64"),
        ([np.complex64(1)], "complex128"), ([swapped, swapped], "float64"), ([], "float32"), (memoryview(b"12"), "int32"),
    ):  # fmt: skip
        x = tf.constant(value)
        assert x.dtype == dtype, value
        np.testing.assert_array_equal(x, np.asarray(value, dtype))


class Angle:
    def __init__(self, degrees):
        self.degrees = degrees


class Right(Angle):
    pass


def test_conversions_of_your_own():
    tf.register_tensor_conversion_function(
        Angle, lambda value, dtype=None, name=None, as_ref=False: tf.constant(value.degrees, dtype)
    )
    assert float(tf.convert_to_tensor(Angle(90.0))) == 90.0 and float(tf.add(Angle(1.0), Right(2.0))) == 3.0
    assert tf.convert_to_tensor(Right(90.0), tf.float64).dtype is tf.float64
    assert (tf.constant([1.0, 2.0]) * Angle(2.0)).numpy().tolist() == [2.0, 4.0]
    assert tf.stack([Angle(1.0), 2.0]).numpy().tolist() == [1.0, 2.0]
    assert float(tf.function(lambda: tf.square(Angle(3.0)))()) == 9.0
    # A smaller priority comes first, and NotImplemented leaves the value to the next one.
    tf.register_tensor_conversion_function(
        Right, lambda value, dtype=None, name=None, as_ref=False: NotImplemented, priority=0
    )
    assert float(tf.convert_to_tensor(Right(5.0))) == 5.0
    tf.register_tensor_conversion_function(
        Right, lambda value, dtype=None, name=None, as_ref=False: tf.constant(-1.0), priority=10
    )
    assert float(tf.convert_to_tensor(Right(5.0))) == -1.0 and float(tf.convert_to_tensor(Angle(5.0))) == 5.0
    with pytest.raises(RuntimeError, match="incompatible dtype: requested = int32, actual = float32"):
        tf.convert_to_tensor(Right(5.0), tf.int32)


def test_conversions_that_are_refused():
    class Mine:
        pass

    for base, function, text in [
        (4, len, "must be a type or a tuple of types"), (Mine, 4, "must be callable"),
        (int, len, "Python numeric types"), (np.ndarray, len, "NumPy scalars and arrays"),
    ]:  # fmt: skip
        with pytest.raises(TypeError, match=text):
            tf.register_tensor_conversion_function(base, function)
    tf.register_tensor_conversion_function(Mine, lambda value, dtype=None, name=None, as_ref=False: 5)
    with pytest.raises(RuntimeError, match="returned non-Tensor: 5"):
        tf.convert_to_tensor(Mine())


def test_symbolic_tensors():
    seen = []
    tf.function(lambda x: seen.append(tf.is_symbolic_tensor(x)) or x)(tf.constant(1))
    assert seen == [True]
    assert not any(map(tf.is_symbolic_tensor, (tf.constant(1), tf.Variable(1), 1)))


def test_a_number_beside_a_tensor_that_cannot_hold_it():
    for error in (tf.errors.InvalidArgumentError, TypeError):
        with pytest.raises(error, match="Cannot convert 1.5 to EagerTensor of dtype int32"):
            tf.constant([1, 2]) + 1.5


def test_methods_of_graphs():
    for method in (tf.constant(1.0).eval, tf.constant(1.0).consumers):
        with pytest.raises(NotImplementedError, match="when eager execution is enabled"):
            method()
