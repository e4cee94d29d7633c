"""Tensors: dtypes, operators, conversion, indexing, shapes, text, errors."""

import operator

import numpy as np
import pytest

from .lib import assert_close, differs_on_tensorflow, tf

InvalidArgumentError = tf.errors.InvalidArgumentError


@pytest.mark.parametrize(
    "value, dtype",
    [
        (3, "int32"),
        (2**40, "int64"),
        (3.0, "float32"),
        (3j, "complex128"),
        (True, "bool"),
        ([1, 2], "int32"),
        ([1.0, 2], "float32"),
        ([1, 2.0], "float32"),
        ([], "float32"),
        (np.float64(3), "float64"),
        (np.ones(2), "float64"),
        (np.ones(2, "float16"), "float16"),
        (np.ones(2, "int64"), "int64"),
        (np.ones(2, "uint8"), "uint8"),
        (np.ones(2, bool), "bool"),
        ([np.float64(1), np.float64(2)], "float64"),
    ],
    ids=str,
)
def test_X1_dtype_of_a_value(value, dtype):
    assert tf.constant(value).dtype == dtype
    assert tf.convert_to_tensor(value).dtype == dtype


def test_X1_empty_list():
    assert tf.constant([]).shape == (0,)


def test_X1_none_is_no_tensor():
    with pytest.raises(ValueError, match="None"):
        tf.constant(None)
    with pytest.raises(ValueError, match="None"):
        tf.convert_to_tensor(None)


def test_X1_lists_must_be_rectangular():
    with pytest.raises(ValueError):
        tf.constant([[1.0, 2.0], [3.0]])


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("value", [1e40, -1e39, [1.0, 1e39], (3.5e38,)], ids=str)
def test_X1_a_float_out_of_range_needs_a_type(value):
    for convert in (tf.constant, tf.convert_to_tensor, tf.Variable, lambda v: tf.add(v, 1.0)):
        with pytest.raises(ValueError, match="out of range"):
            convert(value)
    assert np.isinf(np.max(np.abs(tf.constant(value, tf.float32).numpy())))
    assert np.isinf(np.max(np.abs((tf.constant(1.0) * value).numpy())))
    np.testing.assert_array_equal(tf.constant(value, tf.float64).numpy(), value)
    assert np.isinf(np.max(np.abs(tf.function(lambda: tf.constant(value))().numpy())))


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 10**20, 2**100])
def test_X1_integers_of_any_size_become_floats(value):
    for dtype in (tf.float32, tf.float64):
        wanted = np.array(value, dtype.as_numpy_dtype)
        assert tf.constant(value, dtype).numpy() == wanted
        np.testing.assert_array_equal(tf.constant([value, 1], dtype).numpy(), [wanted, 1.0])
    assert (tf.constant(0.5) * value).numpy() == np.float32(value) * 0.5
    assert (tf.constant(1.0, tf.float64) < value).numpy() == (value > 0)
    with pytest.raises(ValueError):
        tf.constant(value)


def test_X1_floats_that_fit_or_are_infinite():
    assert tf.constant([3.4028235e38, float("inf"), -1e400]).numpy().tolist() == [
        float(np.finfo(np.float32).max),
        np.inf,
        -np.inf,
    ]
    assert np.isnan(tf.constant(float("nan")).numpy())
    assert tf.constant(np.float64(1e40)).dtype == tf.float64


def test_X1_list_of_tensors_is_stacked():
    a, b = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    assert_close(tf.convert_to_tensor([a, b]), [[1.0, 2.0], [3.0, 4.0]])


OPERATORS = [operator.add, operator.sub, operator.mul, operator.pow, operator.lt]


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
def test_X2_tensors_of_different_dtypes_do_not_mix(op):
    with pytest.raises(InvalidArgumentError):
        op(tf.ones([2], tf.float64), tf.ones([2]))


def test_X2_nor_in_a_division():
    with pytest.raises(TypeError, match="dtype"):
        tf.ones([2], tf.float64) / tf.ones([2])


@pytest.mark.parametrize(
    "f",
    [
        lambda t: t * 2,
        lambda t: 2 * t,
        lambda t: t * np.ones(2),
        lambda t: np.ones(2) * t,
        lambda t: t + [1.0, 2.0],
        lambda t: [1, 2] + t,
        lambda t: np.float64(2) * t,
        lambda t: t / np.float64(2),
        lambda t: t ** np.int64(2),
    ],
)
def test_X2_python_and_numpy_operands_take_the_dtype_of_the_tensor(f):
    for t in (tf.ones([2]), tf.Variable(tf.ones([2]))):
        result = f(t)
        assert isinstance(result, tf.Tensor)
        assert result.dtype == tf.float32


def test_X2_float_does_not_become_an_integer():
    with pytest.raises(TypeError, match="2.5"):
        tf.constant([1, 2]) * 2.5


def test_X2_division_of_integers_is_float64():
    quotient = tf.constant([1, 2]) / tf.constant([2, 2])
    assert quotient.dtype == tf.float64
    assert_close(quotient, [0.5, 1.0])


def test_X3_numpy_functions_give_arrays():
    assert type(np.sin(tf.ones([2]))) is np.ndarray
    assert type(np.add(tf.ones([2]), 1.0)) is np.ndarray


def test_X3_operators_with_arrays_give_tensors():
    assert isinstance(np.ones(2, "float32") + tf.ones([2]), tf.Tensor)
    assert isinstance(tf.ones([2]) + np.ones(2, "float32"), tf.Tensor)
    assert tf.ones([2]).__array_priority__ == 100


@pytest.mark.parametrize("name", ["reshape", "T", "astype", "sum", "mean", "tolist", "ravel"])
def test_X4_has_no_numpy_methods(name):
    with pytest.raises(AttributeError, match=name):
        getattr(tf.ones([2]), name)


@pytest.mark.parametrize(
    "name",
    [
        "numpy",
        "shape",
        "dtype",
        "ndim",
        "device",
        "get_shape",
        "set_shape",
        "ref",
        "__array__",
        "__len__",
        "__iter__",
        "__index__",
        "__float__",
        "__int__",
        "__bool__",
        "__round__",
        "__dlpack__",
    ],
)
def test_X4_has(name):
    assert hasattr(tf.constant(1), name)


def test_X4_conversions():
    assert float(tf.constant(2.5)) == 2.5
    assert int(tf.constant(2.5)) == 2
    assert bool(tf.constant(2.5)) is True
    assert [10, 20, 30][tf.constant(1)] == 20
    assert len(tf.ones([3, 2])) == 3
    assert [float(row) for row in tf.constant([1.0, 2.0])] == [1.0, 2.0]
    assert tf.ones([3, 2]).ndim == 2
    assert tf.ones([3, 2]).get_shape() == (3, 2)


@differs_on_tensorflow("needs experimental_enable_numpy_behavior()", raises=AttributeError)
def test_X4_round():
    assert round(tf.constant(2.5)) == 2


def test_X4_numpy_of_a_scalar_is_a_numpy_scalar():
    assert isinstance(tf.constant(2.5).numpy(), np.float32)
    assert isinstance(tf.constant([2.5]).numpy(), np.ndarray)


def test_X4_scalars_have_no_length_and_no_items():
    with pytest.raises(TypeError):
        len(tf.constant(1.0))
    with pytest.raises(TypeError):
        iter(tf.constant(1.0))


def test_X4_dlpack():
    assert_close(np.from_dlpack(tf.constant([1.0, 2.0])), [1.0, 2.0])


def test_X5_equality_is_elementwise():
    equal = tf.constant([1.0, 2.0]) == tf.constant([1.0, 3.0])
    assert equal.dtype == tf.bool
    assert equal.numpy().tolist() == [True, False]
    unequal = tf.constant([1.0, 2.0]) != [1.0, 3.0]
    assert unequal.numpy().tolist() == [False, True]


def test_X5_equality_of_incompatible_shapes_is_false():
    a, b = tf.ones([2]), tf.ones([3])
    assert not (a == b)  # noqa: SIM201
    assert a != b


def test_X5_equality_with_none_is_false():
    assert not (tf.ones([2]) == None)  # noqa: E711, SIM201
    assert tf.ones([2]) != None  # noqa: E711


def test_X5_unhashable_but_its_ref_is():
    x = tf.ones([2])
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    assert {x.ref(): 1}[x.ref()] == 1
    assert x.ref().deref() is x
    assert x.ref() != tf.ones([2]).ref()


def test_X5_truth_of_several_elements_is_ambiguous():
    with pytest.raises(ValueError, match="ambiguous"):
        bool(tf.constant([1.0, 2.0]))


GRID = np.arange(24, dtype="float32").reshape(2, 3, 4)

INDICES = {
    "int": np.s_[1],
    "negative": np.s_[-1],
    "ints": np.s_[1, 2, 3],
    "slice": np.s_[:, 1:],
    "step": np.s_[:, ::2, 1:4:2],
    "negative-step": np.s_[:, ::-1],
    "empty-slice": np.s_[:, 3:],
    "beyond": np.s_[:, 1:100],
    "ellipsis": np.s_[..., 1],
    "ellipsis-middle": np.s_[0, ..., 1],
    "newaxis": np.s_[:, None, 1],
    "newaxis-last": np.s_[..., None],
    "numpy-int": np.s_[np.int64(1)],
}


@pytest.mark.parametrize("name", INDICES)
def test_X6_index(name):
    assert_close(tf.constant(GRID)[INDICES[name]], GRID[INDICES[name]])


def test_X6_newaxis_is_none():
    assert tf.newaxis is None


def test_X6_index_by_scalar_tensor():
    i = tf.constant(1)
    assert_close(tf.constant(GRID)[i], GRID[1])
    assert_close(tf.constant(GRID)[:, i : i + 1], GRID[:, 1:2])
    assert_close(tf.constant(GRID)[tf.constant(1, tf.int64)], GRID[1])


def test_X6_index_by_mask():
    x = tf.constant(GRID)
    assert_close(x[x > 10.0], GRID[GRID > 10.0])


def test_X6_a_list_is_a_tuple_of_indices():
    assert_close(tf.constant(GRID)[[0, 1]], GRID[0, 1])


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.array([0, 1]),
        lambda: tf.constant([0, 1]),
        lambda: 1.0,
        lambda: "a",
        lambda: tf.constant(1.0),
    ],
    ids=["ndarray", "tensor", "float", "str", "float-tensor"],
)
def test_X6_other_indices_are_errors(make):
    with pytest.raises(TypeError, match="valid indices"):
        tf.constant(GRID)[make()]


def test_X6_out_of_range():
    with pytest.raises(InvalidArgumentError, match="out of bounds"):
        tf.constant(GRID)[5]


def test_X6_too_many_indices():
    with pytest.raises(InvalidArgumentError):
        tf.constant(GRID)[0, 0, 0, 0]


def test_X6_tensors_do_not_change():
    with pytest.raises(TypeError, match="item assignment"):
        tf.constant(GRID)[0] = 1.0


def test_X7_shape_of_a_tensor():
    shape = tf.constant(GRID).shape
    assert isinstance(shape, tf.TensorShape)
    assert shape[0] == 2 and type(shape[0]) is int
    assert shape.as_list() == [2, 3, 4]
    assert shape.rank == shape.ndims == len(shape) == 3
    assert shape.num_elements() == 24
    assert shape.is_fully_defined()
    assert list(shape) == [2, 3, 4]


def test_X7_equality():
    shape = tf.constant(GRID).shape
    assert shape == (2, 3, 4) and shape == [2, 3, 4]
    assert (2, 3, 4) == shape  # noqa: SIM300
    assert shape == tf.TensorShape([2, 3, 4])
    assert shape != (2, 3)
    assert not (shape == (2, 3))  # noqa: SIM201


def test_X7_concatenation_and_slices():
    shape = tf.constant(GRID).shape
    assert isinstance(shape + (5,), tf.TensorShape) and shape + (5,) == (2, 3, 4, 5)
    assert isinstance((5,) + shape, tf.TensorShape) and (5,) + shape == (5, 2, 3, 4)
    assert shape + [5] == (2, 3, 4, 5)
    assert shape.concatenate([5]) == (2, 3, 4, 5)
    assert isinstance(shape[1:], tf.TensorShape) and shape[1:] == (3, 4)
    assert shape[-1] == 4


def test_X7_serves_as_a_shape():
    shape = tf.constant(GRID).shape
    assert tf.zeros(shape).shape == shape
    assert tf.reshape(tf.range(24), shape).shape == shape
    assert np.zeros(shape).shape == (2, 3, 4)


def test_X7_unknown_dimensions():
    shape = tf.TensorShape([None, 3])
    assert shape[0] is None
    assert shape.as_list() == [None, 3]
    assert not shape.is_fully_defined()
    assert shape.num_elements() is None
    assert shape.is_compatible_with([5, 3]) and not shape.is_compatible_with([5, 4])
    assert tf.TensorShape(None).rank is None
    assert str(shape) == "(None, 3)" and repr(shape) == "TensorShape([None, 3])"


def test_X8_text_of_a_tensor():
    x = tf.constant([1.0, 2.0])
    assert str(x) == "tf.Tensor([1. 2.], shape=(2,), dtype=float32)"
    assert repr(x) == ("<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>")
    assert str(tf.constant(3)) == "tf.Tensor(3, shape=(), dtype=int32)"
    assert repr(tf.constant(3)) == "<tf.Tensor: shape=(), dtype=int32, numpy=3>"
    assert repr(tf.constant(1.5)) == "<tf.Tensor: shape=(), dtype=float32, numpy=1.5>"


def test_X8_formatting():
    x = tf.constant(1.23456)
    assert f"{x:.2f}" == "1.23"
    assert "%.2f" % x == "1.23"  # noqa: UP031
    assert "%d" % tf.constant(7) == "7"  # noqa: UP031


def test_X8_dtype():
    assert str(tf.float32) == "<dtype: 'float32'>"
    assert repr(tf.float32) == "tf.float32"
    assert tf.float32 == np.float32 and tf.float32 == "float32" and tf.float32 != tf.float64
    assert tf.float32 == np.dtype("float32")
    assert tf.float32.name == "float32"
    assert tf.float32.as_numpy_dtype is np.float32
    assert tf.float32.is_floating and not tf.int32.is_floating
    assert tf.int32.is_integer and tf.complex64.is_complex
    assert tf.int8.max == 127 and tf.int8.min == -128
    assert tf.float32.max == np.finfo("float32").max
    assert tf.float32.size == 4 and tf.complex128.size == 16
    assert {tf.float32: 1}[tf.constant(1.0).dtype] == 1


def test_X8_as_dtype():
    assert tf.as_dtype("float32") is tf.float32
    assert tf.as_dtype(np.float32) is tf.float32
    assert tf.dtypes.as_dtype(np.dtype("int64")) is tf.int64


@pytest.mark.parametrize(
    "name",
    [
        "InvalidArgumentError",
        "NotFoundError",
        "OutOfRangeError",
        "ResourceExhaustedError",
        "FailedPreconditionError",
        "UnimplementedError",
        "AbortedError",
    ],
)
def test_X9_errors_are_classes(name):
    error = getattr(tf.errors, name)
    assert issubclass(error, tf.errors.OpError) and issubclass(error, Exception)


def test_X9_incompatible_shapes():
    with pytest.raises(InvalidArgumentError):
        tf.ones([2]) + tf.ones([3])


def test_X9_matmul_of_incompatible_shapes():
    with pytest.raises(InvalidArgumentError):
        tf.matmul(tf.ones([2, 3]), tf.ones([2, 3]))


@pytest.mark.parametrize(
    "sizes, shape, expected",
    [([0, 28, 28], [0, -1], (0, 784)), ([0], [4, 0, -1], (4, 0, 0)), ([0, 10], [0, 4, -1], (0, 4, 2))],
)
def test_X9_reshape_of_an_empty_tensor(sizes, shape, expected):
    assert tuple(tf.reshape(tf.zeros(sizes), shape).shape) == expected


def test_X9_reshape_to_another_size():
    with pytest.raises(InvalidArgumentError):
        tf.reshape(tf.ones([2]), [3])


def test_X9_gather_out_of_range():
    with pytest.raises(InvalidArgumentError, match="5"):
        tf.gather(tf.ones([2]), [5])


def test_X9_error_has_a_message():
    with pytest.raises(InvalidArgumentError) as caught:
        tf.ones([2]) + tf.ones([3])
    assert "2" in caught.value.message and "3" in caught.value.message


def test_X10_mean_of_integers_is_an_integer():
    mean = tf.reduce_mean(tf.constant([1, 2]))
    assert mean.dtype == tf.int32
    assert int(mean) == 1


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8"])
def test_integers_divide_as_floats_in_functions(kind):
    x, y = tf.constant([7, 2, 0], kind), tf.constant([2, 4, 1], kind)
    for f in (lambda a, b: a / b, lambda a, b: 5 / b, lambda a, b: a / 2, tf.divide, tf.math.truediv):
        eager, traced = f(x, y), tf.function(f)(x, y)
        any_size = tf.function(f, input_signature=[tf.TensorSpec([None], kind)] * 2)(x, y)
        assert eager.dtype == traced.dtype == any_size.dtype
        np.testing.assert_array_equal(eager, traced)
        np.testing.assert_array_equal(eager, any_size)


@pytest.mark.parametrize(
    "op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.lt, operator.ge]
)
@pytest.mark.parametrize("other", [None, object(), {"a": 1}, {1}], ids=["None", "object", "dict", "set"])
def test_operators_reject_objects_that_are_no_tensors(op, other):
    for operands in ((tf.constant([1.0]), other), (other, tf.constant([1.0]))):
        with pytest.raises(ValueError, match="unsupported type"):
            op(*operands)


def test_operators_refuse_a_sparse_operand():
    sparse = tf.SparseTensor([[0, 0]], [1.0], [2, 2])
    with pytest.raises(ValueError):
        tf.ones([2, 2]) + sparse
    with pytest.raises(ValueError):
        operator.lt(tf.ones([2, 2]), sparse)


def test_operators_refuse_text():
    for text in ("a", b"a"):
        with pytest.raises(InvalidArgumentError):
            tf.constant([1.0]) + text
        with pytest.raises(TypeError):
            text + tf.constant([1.0])
        with pytest.raises(TypeError):
            operator.lt(tf.constant([1.0]), text)


def test_operators_ask_the_other_operand():
    class Other:
        def __radd__(self, x):
            return "added"

        def __gt__(self, x):
            return "compared"

        def __rpow__(self, x):
            return "raised"

    x = tf.constant(1.0)
    assert x + Other() == "added"
    assert (x < Other()) == "compared"
    assert x ** Other() == "raised"
    with pytest.raises(ValueError):
        x - Other()


def test_products_of_bools():
    # A bool: whether both are, as integers, not 0.
    x = tf.constant([True, True, False])
    for y in (
        tf.constant([2, 0, 3]),
        tf.constant([1.5, 0.5, 1.0]),
        tf.constant([True, False, True]),
        [1, 0, 1],
    ):
        for product in (
            x * y,
            y * x if isinstance(y, tf.Tensor) else x * y,
            tf.function(lambda y=y: x * y)(),
        ):
            assert product.dtype == tf.bool
            np.testing.assert_array_equal(product, [True, False, False])


def test_softmax_of_an_infinite_element():
    for n in (2, 20, 300):
        np.testing.assert_array_equal(tf.nn.softmax([np.inf] + [0.0] * (n - 1)), [np.nan] + [0.0] * (n - 1))
    np.testing.assert_array_equal(tf.nn.softmax(tf.constant([np.inf, 0.0], tf.float64)), [np.nan, np.nan])
