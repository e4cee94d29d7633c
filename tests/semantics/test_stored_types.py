"""Tensors of types that are only stored and cast: 8-bit floats and smaller types. Moving their elements, casts to
other types, and ops that are rejected."""

import pickle
import sys

import numpy as np
import pytest

from .lib import ON_TENSORFLOW, differs_on_tensorflow, tf

dtypes = tf.dtypes.experimental
E5M2, E4M3 = dtypes.float8_e5m2, dtypes.float8_e4m3fn
INT4, UINT4 = dtypes.int4, dtypes.uint4
FLOATS = [
    E5M2,
    E4M3,
    dtypes.float8_e4m3fnuz,
    dtypes.float8_e4m3b11fnuz,
    dtypes.float8_e5m2fnuz,
    dtypes.float4_e2m1fn,
]
INTEGERS = [INT4, UINT4, dtypes.int2, dtypes.uint2]
ALL = FLOATS + INTEGERS
INF, NAN = float("inf"), float("nan")

more_than_tensorflow = differs_on_tensorflow("TensorFlow has kernels for few of these")


def numbers(x):
    """The values of a tensor, in plain floats."""
    return np.asarray(x.numpy()).astype(np.float64).tolist()


# ---- casts ----------------------------------------------------------------------------------------

# Verified on TensorFlow 2.21. Halves go to even; 464 is half of 448 and the 480 that e4m3fn lacks.
ROUNDED = [
    (E5M2, [0.3, 1.1, 1.125, 1.375, -1.3, 100, 57344, 61439, 61440, 1e9, -INF, 2**-16, 2**-17, 2**-18, -0.0],
     [0.3125, 1, 1, 1.5, -1.25, 96, 57344, 57344, INF, INF, -INF, 2**-16, 0, 0, -0.0]),
    (E4M3, [0.3, 1.06, 1.0625, 1.1875, -1.3, 100, 448, 464, 464.1, 1e9, -INF, 2**-9, 2**-10, 3 * 2**-11, -0.0],
     [0.3125, 1, 1, 1.25, -1.25, 96, 448, 448, NAN, NAN, NAN, 2**-9, 0, 2**-9, -0.0]),
]  # fmt: skip


@pytest.mark.parametrize("source", [tf.float32, tf.float64])
@pytest.mark.parametrize(("dtype", "given", "expected"), ROUNDED, ids=["e5m2", "e4m3fn"])
def test_floats_are_rounded_to_even(dtype, given, expected, source) -> None:
    x = tf.cast(tf.constant(given, source), dtype)
    assert x.dtype == dtype
    np.testing.assert_array_equal(tf.cast(x, source).numpy(), expected)
    assert np.signbit(tf.cast(x, source).numpy()[-1])
    assert np.isnan(tf.cast(tf.cast(tf.constant(NAN, source), dtype), source).numpy())


def test_doubles_are_rounded_once() -> None:
    """By way of float32 both would be ties, rounded to even."""
    x = tf.constant([1.125 + 2.0**-40, 1.375 - 2.0**-40], tf.float64)
    assert numbers(tf.cast(tf.cast(x, E5M2), tf.float64)) == [1.25, 1.25]


@pytest.mark.parametrize(
    ("dtype", "given", "target", "expected"),
    [
        (E5M2, [1.75, -1.75, 320.0, INF, NAN], tf.int32, [1, -1, 320, -(2**31), -(2**31)]),
        (E5M2, [1.75, 160.0, 320.0, -INF], tf.int8, [1, -96, 64, 0]),
        (E4M3, [-1.75, 448.0], tf.uint8, [255, 192]),
        (E4M3, [-1.0, NAN], tf.uint64, [2**64 - 1, 2**63]),
        (E5M2, [0.0, -0.0, 2.0, NAN], tf.bool, [False, False, True, True]),
        (E4M3, [1.5], tf.complex64, [1.5 + 0j]),
        (E5M2, [1.5, -57344.0, INF], tf.bfloat16, [1.5, -57344.0, INF]),
        (E5M2, [1.5, 448.0, 512.0], E4M3, [1.5, 448.0, NAN]),
        (E4M3, [1.125, 448.0, NAN], E5M2, [1.0, 448.0, NAN]),
    ],
)
def test_as_other_types(dtype, given, target, expected) -> None:
    x = tf.cast(tf.cast(tf.constant(given), dtype), target)
    assert x.dtype == target
    np.testing.assert_array_equal(np.asarray(x.numpy()).astype(np.array(expected).dtype), expected)


@pytest.mark.parametrize("source", [tf.int8, tf.int32, tf.int64])
def test_integers_wrap(source) -> None:
    x = tf.constant([0, 7, 8, -8, -9, 100, -100], source)
    assert numbers(tf.cast(x, INT4)) == [0, 7, -8, -8, 7, 4, -4]
    assert numbers(tf.cast(x, UINT4)) == [0, 7, 8, 8, 7, 4, 12]
    assert numbers(tf.cast(tf.cast(x, INT4), UINT4)) == [0, 7, 8, 8, 7, 4, 12]
    back = tf.cast(tf.cast(x, INT4), tf.uint8)
    assert back.dtype == tf.uint8 and numbers(back) == [0, 7, 248, 248, 7, 4, 252]


def test_all_bits_and_many_floats_agree_with_ml_dtypes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is an optional package")
    rng = np.random.default_rng(0)
    floats = [rng.integers(0, 2**32, 20_000, dtype=np.uint32).view(np.float32)]
    floats.append((rng.normal(size=20_000) * 2.0 ** rng.uniform(-20, 18, 20_000)).astype(np.float32))
    for dtype in [E5M2, E4M3] if ON_TENSORFLOW else FLOATS:
        bits = np.arange(16 if dtype.name.startswith("float4") else 256, dtype=np.uint8)
        array = bits.view(getattr(ml_dtypes, dtype.name))
        values = array.astype(np.float32)
        np.testing.assert_array_equal(tf.cast(tf.constant(array), tf.float32).numpy(), values)
        finite = np.sort(values[np.isfinite(values)])
        x = np.concatenate([*floats, values, (finite[1:] + finite[:-1]) / 2])
        with np.errstate(invalid="ignore"):
            expected = x.astype(array.dtype)
        y = tf.cast(tf.constant(x), dtype).numpy()
        assert y.dtype == array.dtype
        np.testing.assert_array_equal(y.astype(np.float32), expected.astype(np.float32))
        number = ~np.isnan(expected.astype(np.float32))
        np.testing.assert_array_equal(y.view(np.uint8)[number], expected.view(np.uint8)[number])


@more_than_tensorflow
def test_every_type_becomes_every_other() -> None:
    for dtype in ALL:
        for other in (*ALL, tf.bool, tf.int16, tf.uint64, tf.float16, tf.float32, tf.complex128):
            x = tf.cast(tf.cast(tf.constant([0, 1]), dtype), other)
            assert x.dtype == other and [complex(v) for v in x] == [0, 1]


def test_saturate_cast() -> None:
    x = tf.saturate_cast(tf.constant([1e9, -1e9, INF, NAN, 0.3]), E4M3)
    np.testing.assert_array_equal(tf.cast(x, tf.float32), [448, -448, 448, NAN, 0.3125])
    assert numbers(tf.saturate_cast(tf.constant([1000, -1000, 3]), INT4)) == [7, -8, 3]


def test_strings_are_refused() -> None:
    with pytest.raises(tf.errors.UnimplementedError, match="Cast float8_e5m2 to string is not supported"):
        tf.cast(tf.constant([1.0], E5M2), tf.string)
    with pytest.raises(tf.errors.UnimplementedError, match="Cast string to float8_e5m2 is not supported"):
        tf.cast(tf.constant("1"), E5M2)


# ---- made of Python's values and arrays -----------------------------------------------------------


def test_constants() -> None:
    assert numbers(tf.constant([[1.3, 100.0]], E5M2)) == [[1.25, 96]]
    assert numbers(tf.constant(1.25, E4M3)) == 1.25
    assert numbers(tf.constant([1, 100], INT4)) == [1, 4]
    assert numbers(tf.constant(1, UINT4, shape=[2])) == [1, 1]
    assert numbers(tf.constant(np.float32([1.3, -INF]), E5M2)) == [1.25, -INF]
    assert numbers(tf.constant(np.int32([1, 2]), E5M2)) == [1, 2]
    assert numbers(tf.constant([], E5M2)) == []
    for value, dtype in (("a", E5M2), ([1.5], INT4)):
        with pytest.raises(TypeError, match=f"Cannot convert .* to EagerTensor of dtype {dtype.name}"):
            tf.constant(value, dtype)
    with pytest.raises(
        ValueError, match="Tensor conversion requested dtype float8_e5m2 for Tensor with dtype float32"
    ):
        tf.convert_to_tensor(tf.constant(1.0), E5M2)


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.name)
def test_arrays_in_and_out(dtype) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is an optional package")
    kind = getattr(ml_dtypes, dtype.name)
    array = np.array([[0, 1], [1, 0]], kind)
    x = tf.convert_to_tensor(array)
    assert x.dtype == dtype and x.shape == (2, 2)
    for back in (x.numpy(), np.asarray(x)):
        assert back.dtype == kind and back.tolist() == array.tolist()
    assert tf.reshape(x, [4]).numpy().tolist() == array.reshape(4).tolist()
    assert repr(x) == f"<tf.Tensor: shape=(2, 2), dtype={dtype.name}, numpy=\n{array!r}>"
    assert str(x) == f"tf.Tensor(\n{array}, shape=(2, 2), dtype={dtype.name})"
    scalar = tf.constant(kind(1))
    assert scalar.dtype == dtype and isinstance(scalar.numpy(), kind)
    assert (float(scalar), int(scalar), bool(scalar)) == (1.0, 1, True)


@pytest.mark.skipif(ON_TENSORFLOW, reason="TensorFlow needs ml_dtypes")
def test_without_ml_dtypes_arrays_have_types_with_the_same_values(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    for dtype, kind in ((E5M2, np.float32), (INT4, np.int8), (UINT4, np.uint8)):
        x = tf.cast(tf.constant([3, 4]), dtype)
        assert x.numpy().dtype == kind and x.numpy().tolist() == [3, 4] and x[0].numpy() == kind(3)
        assert f"dtype={dtype.name})>" in repr(x)
        assert numbers(tf.constant(np.array([3, 4]), dtype)) == [3, 4]
        assert np.asarray(x, np.float64).tolist() == [3, 4]
    assert (E4M3.min, E4M3.max, INT4.min, UINT4.max) == (-448, 448, -8, 15)


# ---- ops ------------------------------------------------------------------------------------------

X = [[1.0, 0.5], [-2.0, INF]]

MOVED = [
    (lambda x: tf.reshape(x, [4]), [1, 0.5, -2, INF]),
    (lambda x: tf.transpose(x), [[1, -2], [0.5, INF]]),
    (lambda x: x[0], [1, 0.5]),
    (lambda x: x[:, ::-1], [[0.5, 1], [INF, -2]]),
    (lambda x: tf.slice(x, [1, 0], [1, 1]), [[-2]]),
    (lambda x: tf.gather(x, [1, 0, 1]), [[-2, INF], [1, 0.5], [-2, INF]]),
    (lambda x: tf.gather_nd(x, [[0, 1]]), [0.5]),
    (lambda x: tf.concat([x, x[:1]], 0), [[1, 0.5], [-2, INF], [1, 0.5]]),
    (lambda x: tf.stack([x[0], x[1]], 1), [[1, -2], [0.5, INF]]),
    (lambda x: tf.unstack(x)[1], [-2, INF]),
    (lambda x: tf.split(x, 2)[1], [[-2, INF]]),
    (lambda x: tf.identity(x), X),
    (lambda x: tf.stop_gradient(x), X),
    (lambda x: tf.expand_dims(x, 0), [X]),
    (lambda x: tf.squeeze(x[:1]), [1, 0.5]),
    (lambda x: tf.broadcast_to(x[0], [2, 2]), [[1, 0.5], [1, 0.5]]),
    (lambda x: tf.boolean_mask(x, [False, True]), [[-2, INF]]),
    (lambda x: tf.nn.embedding_lookup(x, [1]), [[-2, INF]]),
]  # fmt: skip

MORE = [
    (lambda x: tf.map_fn(lambda row: row[::-1], x), [[0.5, 1], [INF, -2]]),
    (lambda x: tf.tile(x[0], [2]), [1, 0.5, 1, 0.5]),
    (lambda x: tf.pad(x[0], [[1, 0]]), [0, 1, 0.5]),
    (lambda x: tf.reverse(x, [0]), [[-2, INF], [1, 0.5]]),
    (lambda x: tf.where([True, False], x[0], x[1]), [1, INF]),
    (lambda x: tf.zeros_like(x[0]), [0, 0]),
    (lambda x: tf.fill([2], x[0, 1]), [0.5, 0.5]),
    (lambda x: tf.tensor_scatter_nd_update(x, [[1]], x[:1]), [[1, 0.5], [1, 0.5]]),
    (lambda x: tf.zeros([2], x.dtype), [0, 0]),
    (lambda x: tf.ones([2], x.dtype), [1, 1]),
    (lambda x: tf.eye(2, dtype=x.dtype), [[1, 0], [0, 1]]),
]  # fmt: skip


def check(call, expected, dtype) -> None:
    x = tf.constant(X, dtype)
    for y in (call(x), tf.function(call)(x)):
        assert y.dtype == dtype and numbers(y) == expected


@pytest.mark.parametrize(("call", "expected"), MOVED)
def test_elements_move(call, expected) -> None:
    check(call, expected, E5M2)


@more_than_tensorflow
@pytest.mark.parametrize(("call", "expected"), MORE)
def test_elements_move_in_more_ops(call, expected) -> None:
    check(call, expected, E5M2)
    ones = tf.ones([2, 3], INT4)
    assert ones.dtype == INT4 and numbers(tf.transpose(ones)) == [[1, 1]] * 3


@more_than_tensorflow
def test_values_are_compared_not_bits() -> None:
    x = tf.constant([0.0, NAN, 1.0], E5M2)
    y = tf.constant([-0.0, NAN, 1.0], E5M2)
    assert (x == y).numpy().tolist() == [True, False, True]
    assert tf.not_equal(x, y).numpy().tolist() == [False, True, False]
    values, at = tf.unique(tf.constant([0.0, -0.0, 1.0], E5M2))
    assert values.dtype == E5M2 and numbers(values) == [0, 1] and at.numpy().tolist() == [0, 0, 1]


REFUSED = [
    lambda x: x + x, lambda x: x + 1, lambda x: x - x, lambda x: x * x, lambda x: -x, lambda x: abs(x), lambda x: x @ x,
    lambda x: x < x, tf.exp, tf.sqrt, tf.reduce_sum, tf.reduce_max, tf.argmax, tf.sort, tf.cumsum, tf.math.is_nan,
    tf.nn.relu, lambda x: tf.maximum(x, x), lambda x: tf.add_n([x, x]), lambda x: tf.bitcast(x, tf.uint8),
    lambda x: tf.bitcast(tf.constant([1], tf.uint8), x.dtype), lambda x: tf.Variable(x).assign_add(x),
    lambda x: tf.clip_by_value(x, x, x),
    lambda x: tf.io.decode_raw(tf.constant(b"ab"), x.dtype), lambda x: tf.stack([x, tf.cast(x, tf.float32)]),
]  # fmt: skip


@pytest.mark.parametrize("call", REFUSED)
def test_arithmetic_is_refused(call) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        call(tf.constant(X, E5M2))
    if not ON_TENSORFLOW:
        with pytest.raises(tf.errors.InvalidArgumentError):
            call(tf.constant([[1, 2], [3, 4]], INT4))


def test_other_refusals() -> None:
    x = tf.constant(X, E5M2)
    with pytest.raises(TypeError):
        x / x
    with pytest.raises(ValueError):
        tf.random.uniform([2], dtype=E5M2)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.random.normal([2], dtype=E5M2)
    with pytest.raises(tf.errors.NotFoundError):
        tf.scatter_nd([[1]], x[:1], [2, 2])


@pytest.mark.skipif(ON_TENSORFLOW, reason="TensorFlow has tensors of them")
def test_quantized_types_have_no_tensors() -> None:
    with pytest.raises(TypeError, match="no tensors of type qint8. Hint: use int8, with its scale beside it"):
        tf.constant([1], tf.qint8)


# ---- around them ----------------------------------------------------------------------------------


def test_variables() -> None:
    v = tf.Variable([1.0, 0.3], dtype=E5M2)
    assert v.dtype == E5M2 and numbers(v) == [1, 0.3125]
    v.assign([3.0, 1e9])
    assert numbers(v) == [3, INF]
    v.assign(v[::-1])
    assert numbers(v) == [INF, 3]
    v[0].assign(tf.constant(2.0, E5M2))
    assert numbers(v) == [2, 3]
    with pytest.raises((ValueError, TypeError)):
        v.assign(tf.constant([1.0, 2.0]))
    assert numbers(tf.Variable([1, -2], dtype=INT4)) == [1, -2]


def test_in_functions() -> None:
    v = tf.Variable([1.0, 1.0], dtype=E4M3)

    @tf.function
    def step(x):
        v.assign(tf.cast(x, E4M3))
        return tf.cast(v, tf.float32) * 2

    assert numbers(step(tf.constant([0.3, 100.0]))) == [0.625, 192] and numbers(v) == [0.3125, 96]
    assert numbers(tf.function(lambda: tf.cast(tf.constant([1.1]), E5M2))()) == [1]

    @tf.function(input_signature=[tf.TensorSpec([None], E5M2)])
    def any_size(x):
        return tf.cast(tf.concat([x, x], 0), tf.float32) + 1

    assert numbers(any_size(tf.constant([1.0], E5M2))) == [2, 2]
    assert numbers(any_size(tf.constant([1.0, 0.5], E5M2))) == [2, 1.5, 2, 1.5]


@more_than_tensorflow
def test_in_control_flow_and_datasets() -> None:
    @tf.function
    def grow(x):
        for _ in tf.range(3):
            x = tf.cast(tf.cast(x, tf.float32) * 1.3, E5M2)
        return x

    assert numbers(grow(tf.constant([1.0, 2.0], E5M2))) == [2, 4]
    dataset = tf.data.Dataset.from_tensor_slices([0.3, 1.0]).map(lambda x: tf.cast(x, E5M2)).batch(2)
    assert [numbers(x) for x in dataset] == [[0.3125, 1]]


def test_no_gradient_goes_through_them() -> None:
    x = tf.constant([1.0, 0.3])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(tf.cast(x, E5M2), tf.float32) * x
    np.testing.assert_array_equal(tape.gradient(y, x), [1.0, 0.3125])
    v = tf.Variable([1.0], dtype=E5M2)
    with tf.GradientTape() as tape:
        y = tf.cast(v, tf.float32) * 2
    assert tape.gradient(y, v) is None


def test_files(tmp_path) -> None:
    v, w = tf.Variable([1.0, 0.3], dtype=E5M2), tf.Variable([1, -2], dtype=INT4)
    path = tf.train.Checkpoint(v=v, w=w).save(str(tmp_path / "c"))
    v2, w2 = tf.Variable([0.0, 0.0], dtype=E5M2), tf.Variable([0, 0], dtype=INT4)
    tf.train.Checkpoint(v=v2, w=w2).restore(path).assert_consumed()
    assert numbers(v2) == [1, 0.3125] and numbers(w2) == [1, -2]
    for dtype in (E5M2, INT4):
        array = tf.constant([1, -2] if dtype == INT4 else [1.0, -2.0], dtype).numpy()
        assert tf.make_ndarray(tf.make_tensor_proto(array)).tolist() == array.tolist()


@pytest.mark.skipif(ON_TENSORFLOW, reason="TensorFlow has no kernels for it")
def test_every_type_in_files(tmp_path) -> None:
    for dtype in ALL:
        x = tf.cast(tf.constant([1, 0, 1]), dtype)
        v = tf.Variable(tf.zeros([3], dtype))
        path = tf.train.Checkpoint(v=tf.Variable(x)).save(str(tmp_path / dtype.name / "c"))
        tf.train.Checkpoint(v=v).restore(path).assert_consumed()
        tf.data.Dataset.from_tensors(x).save(str(tmp_path / dtype.name / "d"))
        (loaded,) = tf.data.Dataset.load(str(tmp_path / dtype.name / "d"))
        for y in (
            v,
            loaded,
            tf.io.parse_tensor(tf.io.serialize_tensor(x), dtype),
            pickle.loads(pickle.dumps(x)),
        ):
            assert y.dtype == dtype and numbers(y) == [1, 0, 1]
        assert tf.make_ndarray(tf.make_tensor_proto(x.numpy()[0])) == 1
