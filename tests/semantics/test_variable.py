"""tf.Variable: creation, text, assignment, scatters, identity."""

import copy
import pickle

import numpy as np
import pytest

from .lib import assert_close, tf


def test_V1_defaults():
    v = tf.Variable([1.0, 2.0])
    assert v.trainable is True
    assert v.shape == (2,)
    assert v.dtype == tf.float32
    assert v.name == "Variable:0"
    assert_close(v, [1.0, 2.0])


def test_V1_keywords():
    v = tf.Variable(1, trainable=False, name="n", dtype=tf.float64)
    assert v.trainable is False
    assert v.dtype == tf.float64
    assert v.name == "n:0"


@pytest.mark.parametrize(
    "value",
    [np.float32([1, 2]), lambda: tf.constant([1.0, 2.0]), (1.0, 2.0)],
    ids=["ndarray", "callable", "tuple"],
)
def test_V1_initial_values(value):
    assert_close(tf.Variable(value), [1.0, 2.0])


def test_V1_of_a_tensor_and_of_a_variable():
    assert_close(tf.Variable(tf.constant([1.0, 2.0])), [1.0, 2.0])
    first = tf.Variable([1.0, 2.0])
    second = tf.Variable(first)
    second.assign([3.0, 4.0])
    assert_close(first, [1.0, 2.0])


def test_V1_needs_an_initial_value():
    with pytest.raises(ValueError):
        tf.Variable()


def test_V1_initial_value_is_a_copy():
    array = np.float32([1, 2])
    v = tf.Variable(array)
    array[0] = 100.0
    assert_close(v, [1.0, 2.0])


def test_V1_initial_value_of_another_dtype_is_cast():
    assert tf.Variable(np.ones(2), dtype=tf.float32).dtype == tf.float32
    assert tf.Variable([1, 2], dtype=tf.float32).dtype == tf.float32


def test_V1_initial_tensor_of_another_dtype_is_an_error():
    with pytest.raises(ValueError):
        tf.Variable(tf.constant([1, 2]), dtype=tf.float32)


def test_V2_text():
    v = tf.Variable([1.0, 2.0], name="w")
    text = "<tf.Variable 'w:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>"
    assert repr(v) == text and str(v) == text


def test_V2_names_need_not_be_unique():
    assert tf.Variable(1.0, name="w").name == tf.Variable(1.0, name="w").name == "w:0"


def test_V2_name_scopes_prefix_the_name():
    with tf.name_scope("a"):
        assert tf.Variable(1.0, name="v").name == "a/v:0"
        with tf.name_scope("b"):
            assert tf.Variable(1.0, name="v").name == "a/b/v:0"


def test_V3_assignments():
    v = tf.Variable([1.0, 2.0])
    v.assign([3.0, 4.0])
    assert_close(v, [3.0, 4.0])
    v.assign_add([1.0, 1.0])
    assert_close(v, [4.0, 5.0])
    v.assign_sub([2.0, 2.0])
    assert_close(v, [2.0, 3.0])


def test_V3_assignments_can_be_chained():
    v = tf.Variable(1.0)
    result = v.assign(2.0).assign_add(3.0)
    assert_close(result.numpy(), 5.0)
    assert_close(result * 2.0, 10.0)
    assert_close(v, 5.0)


@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
def test_V3_read_value_false_returns_none(method):
    v = tf.Variable(1.0)
    assert getattr(v, method)(2.0, read_value=False) is None


def test_V3_assign_copies():
    v, w = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])
    v.assign(w)
    w.assign([5.0, 6.0])
    assert_close(v, [3.0, 4.0])


def test_V3_tensors_read_before_do_not_change():
    v = tf.Variable([1.0, 2.0])
    before, array = v.read_value(), v.numpy()
    v.assign_add([1.0, 1.0])
    v[0].assign(9.0)
    assert_close(before, [1.0, 2.0])
    assert_close(array, [1.0, 2.0])


@pytest.mark.parametrize("value", [[1.0], [[1.0, 2.0]], 1.0], ids=["(1,)", "(1, 2)", "()"])
def test_V3_assigning_another_shape_is_an_error(value):
    v = tf.Variable([1.0, 2.0])
    with pytest.raises(ValueError, match="[Ss]hape"):
        v.assign(value)


def test_V3_assigning_a_tensor_of_another_dtype_is_an_error():
    v = tf.Variable([1.0, 2.0])
    with pytest.raises(ValueError, match="dtype"):
        v.assign(tf.constant([1, 2]))


def test_V3_numpy_and_python_values_are_cast():
    v = tf.Variable([1.0, 2.0])
    v.assign(np.array([3.0, 4.0]))
    assert v.dtype == tf.float32
    v.assign([5, 6])
    assert_close(v, [5.0, 6.0])


def iadd(v):
    v += 1.0


def isub(v):
    v -= 1.0


def imul(v):
    v *= 2.0


def itruediv(v):
    v /= 2.0


def ipow(v):
    v **= 2.0


@pytest.mark.parametrize("operation", [iadd, isub, imul, itruediv, ipow])
def test_V4_in_place_operators_are_errors(operation):
    v = tf.Variable(1.0)
    with pytest.raises(RuntimeError, match="not supported"):
        operation(v)
    assert_close(v, 1.0)


def test_V5_slices_can_be_assigned():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    v[0].assign([7.0, 8.0])
    assert_close(v, [[7, 8], [3, 4], [5, 6]])
    v[1:].assign([[0.0, 0.0], [1.0, 1.0]])
    assert_close(v, [[7, 8], [0, 0], [1, 1]])
    v[:, 1].assign([4.0, 4.0, 4.0])
    assert_close(v, [[7, 4], [0, 4], [1, 4]])
    v[2, 0].assign(9.0)
    assert_close(v, [[7, 4], [0, 4], [9, 4]])


SCATTERS = {
    "scatter_update": [[4, 4], [6, 6], [2, 2]],
    "scatter_add": [[8, 8], [6, 6], [4, 4]],
    "scatter_sub": [[0, 0], [6, 6], [0, 0]],
    "scatter_mul": [[16, 16], [6, 6], [4, 4]],
    "scatter_div": [[1, 1], [6, 6], [1, 1]],
    "scatter_min": [[4, 4], [6, 6], [2, 2]],
    "scatter_max": [[4, 4], [6, 6], [2, 2]],
}


@pytest.mark.parametrize("method", SCATTERS)
def test_V5_scatters(method):
    v = tf.Variable([[4.0, 4.0], [6.0, 6.0], [2.0, 2.0]])
    slices = tf.IndexedSlices(tf.constant([[2.0, 2.0], [4.0, 4.0]]), tf.constant([2, 0]))
    result = getattr(v, method)(slices)
    assert_close(v, np.float32(SCATTERS[method]))
    assert_close(result, np.float32(SCATTERS[method]))


def test_V5_scatter_min_and_max():
    slices = tf.IndexedSlices(tf.constant([1.0, 5.0]), tf.constant([0, 1]))
    low, high = tf.Variable([3.0, 3.0]), tf.Variable([3.0, 3.0])
    low.scatter_min(slices)
    high.scatter_max(slices)
    assert_close(low, [1.0, 3.0])
    assert_close(high, [3.0, 5.0])


def test_V5_scatter_wants_slices():
    v = tf.Variable([1.0, 2.0])
    with pytest.raises(TypeError):
        v.scatter_add(tf.constant([1.0, 2.0]))


@pytest.mark.parametrize(
    "method, expected",
    [
        ("scatter_nd_update", [10.0, 2.0, 20.0]),
        ("scatter_nd_add", [11.0, 2.0, 23.0]),
        ("scatter_nd_sub", [-9.0, 2.0, -17.0]),
    ],
)
def test_V5_scatter_nd(method, expected):
    v = tf.Variable([1.0, 2.0, 3.0])
    getattr(v, method)([[0], [2]], [10.0, 20.0])
    assert_close(v, expected)


def test_V5_batch_scatter_update():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    slices = tf.IndexedSlices(tf.constant([[10.0], [20.0]]), tf.constant([[1], [0]]))
    v.batch_scatter_update(slices)
    assert_close(v, [[1.0, 10.0], [20.0, 4.0]])


def test_V5_sparse_read_and_gather_nd():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    assert_close(v.sparse_read([1, 1]), [[3.0, 4.0], [3.0, 4.0]])
    assert_close(v.gather_nd([[1, 0], [0, 1]]), [3.0, 2.0])


def test_V5_reading():
    v = tf.Variable([1.0, 2.0])
    for read in (v.read_value(), v.value(), tf.identity(v), tf.convert_to_tensor(v)):
        assert isinstance(read, tf.Tensor)
        assert_close(read, [1.0, 2.0])
    assert isinstance(v.numpy(), np.ndarray)
    assert isinstance(np.asarray(v), np.ndarray)
    assert float(tf.Variable(1.5)) == 1.5 and int(tf.Variable(3)) == 3
    assert_close(v[1], 2.0)
    assert bool(v.is_initialized())


def test_V5_ref():
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    assert v.ref().deref() is v
    assert v.ref() == v.ref() and v.ref() != w.ref()
    assert {v.ref(): "v", w.ref(): "w"}[w.ref()] == "w"


def test_V5_set_shape():
    v = tf.Variable([1.0, 2.0])
    v.set_shape([2])
    with pytest.raises(ValueError):
        v.set_shape([3])


def test_V5_variable_of_unknown_shape():
    v = tf.Variable([1.0, 2.0], shape=tf.TensorShape(None))
    assert v.shape.rank is None
    v.assign([[1.0], [2.0], [3.0]])
    assert_close(v, [[1.0], [2.0], [3.0]])


def test_V5_variable_of_partly_unknown_shape():
    v = tf.Variable([[1.0, 2.0]], shape=[None, 2])
    v.assign([[1.0, 2.0], [3.0, 4.0]])
    assert_close(tf.reduce_sum(v), 10.0)
    with pytest.raises(ValueError):
        v.assign([[1.0, 2.0, 3.0]])


def test_V6_unhashable():
    with pytest.raises(TypeError, match="unhashable"):
        hash(tf.Variable(1.0))


def test_V6_no_length():
    with pytest.raises(TypeError):
        len(tf.Variable([1.0, 2.0]))


def test_V6_iterable():
    assert [float(x) for x in tf.Variable([1.0, 2.0])] == [1.0, 2.0]


def test_V6_equality_is_elementwise():
    equal = tf.Variable([1.0, 2.0]) == tf.constant([1.0, 3.0])
    assert np.asarray(equal).tolist() == [True, False]


def test_V6_in_compares_by_value():
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    assert v in [w]
    assert v not in [tf.Variable(2.0)]


def test_V6_deepcopy():
    v = tf.Variable([1.0, 2.0], name="w", trainable=False)
    w = copy.deepcopy(v)
    v.assign([3.0, 4.0])
    assert_close(w, [1.0, 2.0])
    assert w.ref() != v.ref()
    assert w.trainable is False


def test_V6_pickle():
    v = tf.Variable([1.0, 2.0], name="w", trainable=False)
    w = pickle.loads(pickle.dumps(v))
    assert_close(w, [1.0, 2.0])
    assert w.name == "w:0" and w.trainable is False


def test_V7_constraint_is_kept_for_the_optimizer():
    v = tf.Variable(-1.0, constraint=tf.nn.relu)
    assert v.constraint is tf.nn.relu
    v.assign(-2.0)
    assert_close(v, -2.0)
    assert tf.Variable(1.0).constraint is None


def test_V8_frozen_by_the_name_behind_trainable():
    """As GPflow's `set_trainable` does: the property itself cannot be set in TensorFlow."""
    v = tf.Variable(3.0)
    v._trainable = False
    with tf.GradientTape() as tape:
        y = v * v
    assert v.trainable is False and tape.gradient(y, v) is None
    v._trainable = True
    with tf.GradientTape() as tape:
        y = v * v
    assert_close(tape.gradient(y, v), 6.0)
