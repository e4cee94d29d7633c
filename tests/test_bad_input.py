"""Wrong input: each a clear exception of the class that TensorFlow's users catch, never a crash."""

import datetime
import decimal

import numpy as np
import pytest

import gradtape as tf

Invalid = tf.errors.InvalidArgumentError
Exhausted = tf.errors.ResourceExhaustedError
c = tf.constant


def ones():
    return tf.ones([2, 3])


def loop():
    """A list that contains itself."""
    x = [1.0]
    x.append(x)
    return x


def tape(use):
    """Calls `use(tape, y, x)` after recording y = x * x."""
    x = ones()
    with tf.GradientTape() as t:
        t.watch(x)
        y = x * x
    return use(t, y, x)


def cases(**named):
    return pytest.mark.parametrize("f, error", list(named.values()), ids=list(named))


@cases(
    ragged=(lambda: c([[1.0, 2.0], [3.0]]), ValueError),
    number_and_list=(lambda: c([1.0, [2.0]]), ValueError),
    set=(lambda: c({1, 2}), ValueError),
    empty_set=(lambda: c(set()), ValueError),
    generator=(lambda: c(i for i in range(3)), ValueError),
    map=(lambda: c(map(int, "12")), ValueError),
    dict=(lambda: c({"a": 1}), ValueError),
    none=(lambda: c(None), ValueError),
    none_inside=(lambda: c([1.0, None]), ValueError),
    date=(lambda: c(datetime.datetime(2020, 1, 1)), ValueError),
    dates=(lambda: c(np.array(["2020-01-01"], "M8")), ValueError),
    decimal=(lambda: c(decimal.Decimal(1)), ValueError),
    object_array=(lambda: c(np.array([1, None], object)), ValueError),
    numbers_in_object_array=(lambda: c(np.array([1.0, 2.0], object)), ValueError),
    lists_in_object_array=(lambda: c(np.array([[1], [1, 2]], object)), ValueError),
    record_array=(lambda: c(np.zeros(2, "i4,f4")), ValueError),
    long_double=(lambda: c(np.longdouble(1)), ValueError),
    object=(lambda: c(object()), ValueError),
    function=(lambda: c(len), ValueError),
    text=(lambda: tf.sin("a"), TypeError),
    texts=(lambda: tf.sin(["a", "b"]), TypeError),
    huge_integer=(lambda: c(2**70), ValueError),
    huge_integers=(lambda: c([2**63]), ValueError),
    too_large_for_type=(lambda: c([2**63], dtype=tf.int64), ValueError),
    negative_unsigned=(lambda: c(-1, dtype=tf.uint64), ValueError),
    float_as_integer=(lambda: c(1.5, dtype=tf.int32), TypeError),
    nan_as_integer=(lambda: c(float("nan"), dtype=tf.int32), TypeError),
    integer_as_bool=(lambda: c(1, dtype=tf.bool), TypeError),
    complex_as_float=(lambda: c(1j, dtype=tf.float32), TypeError),
    text_as_float=(lambda: c("1", dtype=tf.float32), TypeError),
    no_dtype=(lambda: c(1, dtype="floaty"), TypeError),
    list_in_itself=(lambda: c(loop()), ValueError),
    tensors_of_different_shapes=(lambda: c([c([1.0, 2.0]), c([1.0])]), (ValueError, Invalid)),
    tensors_of_different_types=(lambda: c([c(1.0), c(2)]), (ValueError, Invalid)),
    unknown_size=(lambda: c(tf.TensorShape([None, 3])), ValueError),
)
def test_no_tensor(f, error):
    with pytest.raises(error) as caught:
        f()
    assert len(str(caught.value)) < 1000


@cases(
    none_right=(lambda: ones() * None, ValueError),
    none_left=(lambda: None * ones(), ValueError),
    none_variable=(lambda: tf.Variable(1.0) + None, ValueError),
    text=(lambda: ones() + "a", TypeError),
    set=(lambda: ones() + {1}, ValueError),
    dict=(lambda: {"a": 1} + ones(), ValueError),
    object=(lambda: ones() - object(), ValueError),
    list_in_itself=(lambda: ones() + loop(), ValueError),
    shapes=(lambda: ones() + tf.ones([4]), Invalid),
    dtypes=(lambda: ones() + tf.ones([3], tf.float64), Invalid),
    dtypes_of_a_quotient=(lambda: ones() / tf.ones([3], tf.float64), TypeError),
    bools=(lambda: c(True) + c(True), Invalid),
    order_of_complex=(lambda: c(1j) < c(2j), Invalid),
    division_by_zero=(lambda: c(1) // c(0), Invalid),
    remainder_of_zero=(lambda: c(1) % c(0), Invalid),
    shift_of_floats=(lambda: ones() << 1, (TypeError, Invalid)),
    inverse_of_floats=(lambda: ~ones(), (TypeError, Invalid)),
    vectors_as_matrices=(lambda: c([1.0]) @ c([1.0]), Invalid),
    matrices=(lambda: ones() @ ones(), Invalid),
    sine_of_integers=(lambda: tf.sin(c(1)), Invalid),
    operand_none=(lambda: tf.sin(None), ValueError),
    operand_nones=(lambda: tf.sin([None]), ValueError),
    unknown_argument=(lambda: tf.sin(ones(), foo=1), TypeError),
    no_argument=(lambda: tf.sin(), TypeError),
    too_many_arguments=(lambda: tf.sin(ones(), "name", 3), TypeError),
)
def test_operands(f, error):
    with pytest.raises(error):
        f()


@cases(
    int=(lambda x: x[5], Invalid),
    negative=(lambda x: x[-3], Invalid),
    too_many=(lambda x: x[0, 0, 0], Invalid),
    of_a_scalar=(lambda x: c(1.0)[0], Invalid),
    of_nothing=(lambda x: tf.zeros([0, 3])[0], Invalid),
    float=(lambda x: x[1.0], TypeError),
    text=(lambda x: x["a"], TypeError),
    none_like=(lambda x: x[object()], TypeError),
    huge=(lambda x: x[2**70], ValueError),
    huge_stop=(lambda x: x[: 2**70], ValueError),
    float_start=(lambda x: x[1.0:], TypeError),
    step_zero=(lambda x: x[::0], Invalid),
    two_ellipses=(lambda x: x[..., ...], (Invalid, ValueError)),
    mask_of_another_shape=(lambda x: x[c([True, False, True])], (Invalid, ValueError)),
)
def test_indices(f, error):
    for x in (ones(), tf.Variable(ones())):
        with pytest.raises(error):
            f(x)


def test_the_largest_negative_step_is_a_step():
    assert ones()[:: -(2**63)].shape == (1, 3)


@cases(
    zeros=(lambda: tf.zeros([2**50]), Exhausted),
    ones=(lambda: tf.ones([2**25, 2**25]), Exhausted),
    fill=(lambda: tf.fill([2**50], 1.0), Exhausted),
    uncountable=(lambda: tf.zeros([2**40, 2**40]), (Exhausted, Invalid)),
    broadcast=(lambda: tf.broadcast_to(1.0, [2**50]), Exhausted),
    outer_sum=(lambda: tf.zeros([2**25, 1]) + tf.zeros([1, 2**25]), Exhausted),
    tile=(lambda: tf.tile(ones(), [2**40, 2**40]), (Exhausted, Invalid)),
    eye=(lambda: tf.eye(2**30), Exhausted),
    reshape=(lambda: tf.reshape(ones(), [2**62, 4]), Invalid),
    variable=(lambda: tf.Variable(tf.zeros([2**50])), Exhausted),
    negative=(lambda: tf.zeros([-1]), Invalid),
    fraction=(lambda: tf.zeros([1.5]), TypeError),
    text=(lambda: tf.zeros("a"), TypeError),
    rank=(lambda: tf.zeros([1] * 300), Invalid),
)
def test_sizes(f, error):
    with pytest.raises(error):
        f()
    assert float(tf.reduce_sum(tf.ones([3]))) == 3.0  # and life goes on


@cases(
    axis=(lambda: tf.reduce_sum(ones(), axis=5), Invalid),
    negative_axis=(lambda: tf.reduce_sum(ones(), axis=-3), Invalid),
    axis_twice=(lambda: tf.reduce_sum(ones(), axis=[0, 0]), Invalid),
    axis_text=(lambda: tf.reduce_sum(ones(), axis="a"), (TypeError, Invalid)),
    reshape=(lambda: tf.reshape(ones(), [4]), Invalid),
    two_free_sizes=(lambda: tf.reshape(ones(), [-1, -1]), Invalid),
    negative_size=(lambda: tf.reshape(ones(), [-2, 3]), Invalid),
    perm_twice=(lambda: tf.transpose(ones(), [0, 0]), Invalid),
    perm_short=(lambda: tf.transpose(ones(), [0]), Invalid),
    concat=(lambda: tf.concat([ones(), tf.ones([3, 2])], 0), Invalid),
    concat_axis=(lambda: tf.concat([ones(), ones()], 5), Invalid),
    stack=(lambda: tf.stack([ones(), tf.ones([3])]), Invalid),
    gather=(lambda: tf.gather(ones(), [9]), Invalid),
    gather_negative=(lambda: tf.gather(ones(), [-1]), Invalid),
    squeeze=(lambda: tf.squeeze(ones(), 0), Invalid),
    expand=(lambda: tf.expand_dims(ones(), 9), Invalid),
    recursion=(lambda: tf.stack(loop()), ValueError),
)
def test_shapes_and_axes(f, error):
    with pytest.raises(error):
        f()


@cases(
    none=(lambda v: v.assign(None), ValueError),
    text=(lambda v: v.assign("a"), TypeError),
    shape=(lambda v: v.assign([1.0]), ValueError),
    dtype=(lambda v: v.assign(c([1, 2])), ValueError),
    symbol_of_nothing=(lambda v: v.assign(object()), ValueError),
    add_none=(lambda v: v.assign_add(None), ValueError),
    add_shape=(lambda v: v.assign_add([1.0]), Invalid),
    slice_range=(lambda v: v[5].assign(1.0), Invalid),
    slice_shape=(lambda v: v[0].assign([1.0, 2.0]), Invalid),
    slice_mask=(lambda v: v[c([True, False])].assign([1.0]), (TypeError, AttributeError)),
    scatter_range=(lambda v: v.scatter_nd_update([[7]], [1.0]), Invalid),
    scatter_negative=(lambda v: v.scatter_nd_update([[-1]], [1.0]), Invalid),
    scatter_shape=(lambda v: v.scatter_nd_update([[0]], [1.0, 2.0]), Invalid),
    scatter_depth=(lambda v: v.scatter_nd_update([[0, 0]], [1.0]), Invalid),
    scatter_scalar=(lambda v: v.scatter_nd_update(0, 1.0), Invalid),
    scatter_float=(lambda v: v.scatter_nd_update([[0.0]], [1.0]), Invalid),
    scatter_dense=(lambda v: v.scatter_add([1.0, 2.0]), TypeError),
    rows=(lambda v: v.sparse_read([5]), Invalid),
    elements=(lambda v: v.gather_nd([[5]]), Invalid),
    constraint=(lambda v: tf.Variable(1.0, constraint=3), ValueError),
    name=(lambda v: tf.Variable(1.0, name=3), ValueError),
    nothing=(lambda v: tf.Variable(), ValueError),
    generator=(lambda v: tf.Variable(i for i in [1.0]), ValueError),
    truth=(lambda v: bool(v), ValueError),
    number=(lambda v: float(v), TypeError),
)
def test_variables(f, error):
    v = tf.Variable([1.0, 2.0])
    with pytest.raises(error):
        f(v)
    assert v.numpy().tolist() == [1.0, 2.0]


def test_integer_variables_are_not_divided_by_zero():
    v = tf.Variable([1, 2])
    with pytest.raises(Invalid):
        v.scatter_div(tf.IndexedSlices(c([0]), c([0])))
    with pytest.raises(Invalid):
        tf.Variable(True).assign_add(True)


@cases(
    target_none=(lambda t, y, x: t.gradient(None, x), TypeError),
    target_number=(lambda t, y, x: t.gradient(1.0, x), AttributeError),
    target_array=(lambda t, y, x: t.gradient(y.numpy(), x), AttributeError),
    target_in_itself=(lambda t, y, x: t.gradient(loop(), x), ValueError),
    source_in_itself=(lambda t, y, x: t.gradient(y, loop()), ValueError),
    source_text=(lambda t, y, x: t.gradient(y, "a"), (TypeError, AttributeError)),
    source_none=(lambda t, y, x: t.gradient(y, [None]), TypeError),
    weights_of_another_shape=(lambda t, y, x: t.gradient(y, x, output_gradients=tf.ones([5])), Invalid),
    weights_of_another_type=(lambda t, y, x: t.gradient(y, x, tf.ones([2, 3], tf.float64)), Invalid),
    weights_in_themselves=(lambda t, y, x: t.gradient(y, x, output_gradients=loop()), ValueError),
    unconnected=(lambda t, y, x: t.gradient(y, x, unconnected_gradients="x"), ValueError),
    watch_number=(lambda t, y, x: t.watch(1.0), ValueError),
    watch_in_itself=(lambda t, y, x: t.watch(loop()), ValueError),
    used_up=(lambda t, y, x: (t.gradient(y, x), t.gradient(y, x)), RuntimeError),
)
def test_tapes(f, error):
    with pytest.raises(error):
        tape(f)


def test_tensors_of_a_finished_tape_are_constants():
    x = ones()
    with tf.GradientTape() as first:
        first.watch(x)
        y = x * x
    del first
    with tf.GradientTape() as second:
        second.watch(x)
        z = y * x
    assert second.gradient(z, x).numpy().tolist() == ones().numpy().tolist()


@pytest.mark.parametrize("nothing", [lambda x: tf.nest.flatten(x), lambda x: tf.nest.map_structure(abs, x)])
def test_structures_that_contain_themselves(nothing):
    with pytest.raises(ValueError, match="itself"):
        nothing(loop())


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">f4").reshape(2, 3),
        np.arange(6, dtype=">i8").reshape(2, 3),
        np.arange(6.0).reshape(3, 2).T,
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12.0).reshape(2, 6)[:, ::2],
        np.arange(6.0)[::-1].reshape(2, 3),
        np.broadcast_to(np.arange(3), (2, 3)),
        np.zeros((2, 0, 3)),
        np.ma.masked_array([1.0, 2.0], [True, False]),
    ],
    ids=[
        "big-endian",
        "big-endian-int",
        "transposed",
        "fortran",
        "strided",
        "reversed",
        "broadcast",
        "empty",
        "masked",
    ],
)
def test_unusual_arrays_are_taken_as_they_are(array):
    x = c(array)
    assert x.shape == array.shape and np.array_equal(x.numpy(), np.asarray(array))
    assert tf.Variable(array).shape == array.shape
    # as an operand they take the tensor's type
    assert np.array_equal((tf.ones(array.shape) * array).numpy(), np.asarray(array, np.float32))


@pytest.mark.parametrize(
    "value, expected",
    [
        ([c(1.0), 2.0], [1.0, 2.0]),
        ([2, c(1.0)], [2.0, 1.0]),
        ([[c(1.0), 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]),
        ((c(1.0), np.float64(2)), [1.0, 2.0]),
        ([tf.Variable(1.0), c(2.0), 3], [1.0, 2.0, 3.0]),
    ],
)
def test_lists_of_tensors_and_numbers(value, expected):
    x = tf.convert_to_tensor(value)
    assert x.dtype == tf.float32 and x.numpy().tolist() == expected


def test_lists_of_numpy_numbers():
    assert c([np.float64(1), 2.0]).dtype == tf.float64 and c([1.0, np.float64(2)]).dtype == tf.float32
    assert c([np.float16(1)]).dtype == tf.float16 and c([np.uint8(1), np.uint8(2)]).dtype == tf.int32
    assert c([np.ones(2), np.ones(2)]).dtype == tf.float64 and c([np.int64(2**40)]).dtype == tf.int64


def test_numpy_values_are_cast_without_a_question():
    v = tf.Variable([1, 2])
    v.assign(np.array([3.7, np.nan]))
    assert v.numpy()[0] == 3
    assert (c([1, 2]) * np.array([1.5, 2.0])).numpy().tolist() == [1, 4]


def test_not_a_number_as_an_integer_is_some_integer():
    for value in (float("nan"), float("inf"), -float("inf"), 1e30):
        for dtype in (tf.int8, tf.int32, tf.int64, tf.uint8, tf.uint64):
            assert tf.cast(c(value), dtype).dtype == dtype


def test_empty_tensors():
    empty = c([])
    assert (empty + 1.0).shape == (0,) and tf.sin(empty).shape == (0,) and (empty == empty).shape == (0,)
    assert c([[], []]).shape == (2, 0) and repr(empty) and list(empty) == []
    assert np.isnan(float(tf.reduce_mean(empty))) and float(tf.reduce_sum(empty)) == 0.0
    assert tf.matmul(tf.zeros([2, 0]), tf.zeros([0, 3])).numpy().tolist() == [[0.0] * 3] * 2
    v = tf.Variable(tf.zeros([0, 2]))
    v.assign_add(tf.zeros([0, 2]))
    v[:, 0].assign(tf.zeros([0]))
    assert v.shape == (0, 2)
    with tf.GradientTape() as t:
        y = tf.reduce_sum(v * 2.0)
    assert t.gradient(y, v).shape == (0, 2)


def test_an_error_message_never_shows_a_whole_array():
    with pytest.raises((ValueError, TypeError)) as caught:
        c(list(range(100000)) + ["a"])
    assert len(str(caught.value)) < 1000
