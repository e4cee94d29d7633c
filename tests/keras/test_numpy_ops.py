"""`keras.ops.numpy` on gradtape: values as NumPy's, compiled as eager, gradients as differences."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as tf
import keras_gradtape  # noqa: F401  before Keras

keras = pytest.importorskip("keras")
from keras_gradtape.src.ops import numpy as backend  # noqa: E402  this needs Keras

ops = keras.ops

A = np.array([[0.3, -1.2, 2.1], [1.7, 0.4, -0.6]])
B = np.array([[1.1, 0.9, -0.7], [0.2, -2.3, 1.5]])
P = np.array([[0.3, 0.2, 0.9], [0.7, 0.4, 0.6]])
V = np.array([0.5, -1.5, 2.5, 1.0])
W = np.array([2.0, 0.3, -0.4])
Q = np.array([[2.0, 1.0, 0.1], [0.3, 3.0, 1.0], [0.2, -0.4, 1.5]])
GAPS = np.array([[0.3, np.nan, 2.1], [1.7, 0.4, np.nan]])
I = np.array([[3, 1, 2], [0, 2, 5]])  # noqa: E741
T = np.array([[True, False, True], [False, False, True]])

# Functions of NumPy, with arguments: floats among them have gradients.
SMOOTH = [
    ("add", A, B), ("subtract", A, W), ("multiply", A, B), ("divide", A, B), ("true_divide", A, 2.0),
    ("power", P, B), ("float_power", P, W), ("arctan2", A, B), ("hypot", A, B), ("logaddexp", A, B),
    ("logaddexp2", A, B), ("maximum", A, B), ("minimum", A, W), ("fmax", A, B), ("fmin", 0.5, B), ("copysign", A, B),
    ("arccos", P), ("arccosh", P + 1), ("arcsin", P), ("arcsinh", A), ("arctan", A), ("arctanh", P), ("cbrt", A),
    ("cos", A), ("cosh", A), ("deg2rad", A), ("rad2deg", A), ("exp", A), ("exp2", A), ("expm1", A), ("fabs", A),
    ("absolute", A), ("i0", A), ("log", P), ("log10", P), ("log1p", P), ("log2", P), ("negative", A), ("reciprocal", A),
    ("sin", A), ("sinc", A), ("sinh", A), ("sqrt", P), ("square", A), ("tan", P), ("tanh", A), ("clip", A, -1.0, 1.0),
    ("where", T, A, B), ("sum", A), ("sum", A, 1), ("mean", A, 0), ("prod", A, -1), ("var", A), ("std", A, 1),
    ("max", A, 0), ("min", A), ("ptp", A, 1), ("average", A, 1, W), ("average", A, 0), ("cumsum", A, 1), ("cumsum", A),
    ("cumprod", A, 0), ("diff", A), ("diff", A, 1, 0), ("trapezoid", A), ("trapezoid", A, W),
    ("nansum", GAPS, 0), ("nanmean", GAPS, 1), ("nanvar", GAPS, 1), ("nanstd", GAPS, 1), ("nanmax", GAPS, 0),
    ("nanmin", GAPS, 1), ("nanprod", GAPS), ("nancumsum", GAPS, 1), ("nancumprod", GAPS, 0), ("nanmedian", GAPS, 1),
    ("median", A), ("median", Q, 1), ("quantile", A, 0.3, 1), ("percentile", A, 40.0), ("nanquantile", GAPS, 0.3, 1),
    ("nanpercentile", GAPS, 70.0, 1), ("corrcoef", Q),
    ("reshape", A, (3, 2)), ("ravel", A), ("transpose", A), ("swapaxes", A, 0, 1), ("moveaxis", A, 0, -1),
    ("expand_dims", A, (0, 2)), ("squeeze", A[None], 0), ("broadcast_to", W, (2, 3)), ("flip", A, 1), ("fliplr", A),
    ("flipud", A), ("roll", A, 2), ("roll", A, (1, -1), (0, 1)), ("rot90", A), ("rot90", A, 3), ("tile", W, (2, 2)),
    ("repeat", A, 2), ("repeat", A, [2, 1], 0), ("pad", A, ((1, 0), (0, 2))), ("pad", A, 1, "reflect"),
    ("pad", A, 1, "edge"), ("pad", A, 2, "wrap"), ("take", A, I), ("take", A, [-1, 0], 1),
    ("take_along_axis", A, np.array([[0, 2], [-1, 1]]), 1), ("diag", W), ("diag", Q, 1), ("diagflat", A), ("diagonal", A, 1),
    ("trace", Q), ("trace", Q, -1), ("tril", Q), ("tril", Q, -1), ("triu", Q), ("triu", Q, 1), ("vander", W),
    ("matmul", A, Q), ("matmul", W, Q), ("matmul", A, W), ("dot", A, Q), ("dot", A, W), ("inner", A, B), ("outer", W, V),
    ("vdot", A, B), ("tensordot", A, B, 2), ("kron", A, W), ("cross", A, B), ("correlate", V, W),
    ("correlate", V, W, "same"), ("correlate", W, V, "full"), ("linspace", 0.5, 2.0, 5), ("logspace", 0.5, 2.0, 5),
    ("geomspace", 0.5, 2.0, 5), ("sort", A), ("sort", A, None), ("nan_to_num", A), ("heaviside", A, B),
]  # fmt: skip

# Functions without gradients.
PLAIN = [
    ("argmax", A), ("argmax", A, 1), ("argmin", A, 0), ("nanargmax", GAPS, 1), ("nanargmin", GAPS, 0), ("argsort", A),
    ("all", T, 1), ("any", T, 0), ("count_nonzero", I), ("ceil", A), ("floor", A), ("trunc", A), ("round", A),
    ("round", A, 1), ("sign", A), ("signbit", A), ("isfinite", GAPS), ("isnan", GAPS), ("isinf", A), ("isposinf", A),
    ("isneginf", A), ("isreal", A), ("equal", A, A), ("not_equal", A, B), ("less", A, B), ("less_equal", A, B),
    ("greater", A, B), ("greater_equal", A, A), ("logical_and", T, True), ("logical_or", T, False),
    ("logical_xor", T, True), ("logical_not", T), ("isclose", A, A + 1e-9), ("allclose", A, B), ("mod", A, B),
    ("fmod", A, B), ("mod", I, 3), ("fmod", -I, 3), ("floor_divide", A, B), ("floor_divide", I, 2), ("gcd", I, 12),
    ("lcm", I, np.array([4, 6, 9])), ("bitwise_and", I, 3), ("bitwise_or", I, 4), ("bitwise_xor", I, 1),
    ("bitwise_invert", I), ("left_shift", I, 2), ("right_shift", I, 1), ("ldexp", A, I), ("nextafter", A, B),
    ("nan_to_num", GAPS), ("searchsorted", np.sort(V), A), ("digitize", A, np.sort(V)), ("isin", I, [1, 2]),
    ("unravel_index", I, (2, 3)), ("arange", 7), ("arange", 1.0, 2.0, 0.25), ("eye", 3, 4, 1),
    ("tri", 3), ("identity", 2), ("full", (2, 2), 3.0), ("full_like", A, 2), ("zeros_like", A), ("ones_like", I),
    ("meshgrid", W, V), ("bartlett", 5), ("blackman", 5), ("hamming", 5), ("hanning", 5), ("kaiser", 5, 2.0),
    ("split", A, 3, 1), ("split", V, [1, 3]), ("array_split", V, 3), ("hsplit", A, 3), ("vsplit", A, 2),
    ("select", [T, ~T], [A, B]), ("histogram", V, 4), ("slogdet", Q), ("angle", A), ("real", A), ("imag", A), ("conj", A),
]  # fmt: skip
SIZED_BY_VALUES = [("nonzero", I), ("unique", I), ("bincount", I[0])]

NUMPY = {"slogdet": np.linalg.slogdet, "float_power": np.float_power, "bitwise_invert": np.invert}


def _name(case) -> str:
    return case[0]


def _function(name: str):
    found = getattr(ops, name, None)
    return found if found is not None else getattr(backend, name)


def _leaves(out) -> list:
    return list(out) if isinstance(out, (tuple, list)) else [out]


def _same(got, wanted, **tolerance) -> None:
    got, wanted = _leaves(got), _leaves(wanted)
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(keras.ops.convert_to_numpy(a), b, **tolerance)


@pytest.mark.parametrize("case", SMOOTH + PLAIN + SIZED_BY_VALUES, ids=_name)
def test_values_are_numpys(case) -> None:
    name, *args = case
    reference = NUMPY.get(name) or getattr(np, name)
    # Python numbers alone become float32, arrays of float64 stay what they are.
    _same(_function(name)(*args), reference(*args), rtol=3e-6, atol=1e-6)


@pytest.mark.parametrize("case", SMOOTH + PLAIN, ids=_name)
def test_compiled_as_eager(case) -> None:
    name, *args = case
    tensors = [
        i
        for i, a in enumerate(args)
        if isinstance(a, np.ndarray) and a.size > 1 and name != "take_along_axis"
    ]

    def call(*values):
        new = dict(zip(tensors, values, strict=True))
        return _function(name)(*[new.get(i, a) for i, a in enumerate(args)])

    given = [tf.constant(args[i]) for i in tensors]
    _same(
        tf.function(call, autograph=False)(*given),
        [t.numpy() for t in _leaves(call(*given))],
        rtol=1e-6,
        atol=1e-9,
    )


@pytest.mark.parametrize("case", SMOOTH, ids=_name)
def test_gradients_are_differences(case) -> None:
    name, *args = case
    if name in ("heaviside", "nan_to_num"):
        return
    places = [i for i, a in enumerate(args) if isinstance(a, np.ndarray) and a.dtype == np.float64]

    def total(values):
        new = dict(zip(places, values, strict=True))
        out = _function(name)(*[new.get(i, a) for i, a in enumerate(args)])
        weights = np.cos(np.arange(out.numpy().size)).reshape(out.shape)
        return tf.reduce_sum(tf.where(tf.math.is_nan(out), tf.zeros_like(out), out) * weights)

    values = [tf.constant(args[i]) for i in places]
    if not values:
        return
    with tf.GradientTape() as tape:
        tape.watch(values)
        loss = total(values)
    for k, gradient in enumerate(tape.gradient(loss, values, unconnected_gradients="zero")):
        array = args[places[k]]
        for spot in np.ndindex(array.shape):
            if np.isnan(array[spot]):
                continue
            ends = []
            for step in (1e-6, -1e-6):
                moved = array.copy()
                moved[spot] += step
                ends.append(float(total([*values[:k], tf.constant(moved), *values[k + 1 :]])))
            difference = (ends[0] - ends[1]) / 2e-6
            assert gradient.numpy()[spot] == pytest.approx(difference, rel=1e-5, abs=1e-5), (name, k, spot)


def test_types() -> None:
    x = tf.ones([2], "float64")
    assert ops.multiply(x, 2.0).dtype.name == "float64"
    assert ops.add(x, np.float32(1)).dtype.name == "float64"
    assert ops.sqrt(tf.ones([2], "int32")).dtype.name == "float32"
    assert ops.add(tf.ones([2], "int64"), 1).dtype.name == "int64"
    assert ops.add(tf.ones([2], "bfloat16"), 1.0).dtype.name == "bfloat16"
    assert ops.add(tf.ones([2], "uint8"), tf.ones([2], "int8")).dtype.name == "int16"
    assert ops.sum(tf.ones([2], "uint8")).dtype.name == "uint32"
    assert ops.add(True, False).dtype.name == "bool"
    assert ops.matmul(tf.ones([2, 2], "int8"), tf.ones([2, 2], "int8")).dtype.name == "int32"


def test_default_type_follows_floatx() -> None:
    try:
        keras.config.set_floatx("float64")
        assert ops.add(tf.ones([2], "int32"), 1.5).dtype.name == "float64"
        assert ops.ones((2,)).dtype.name == "float64"
    finally:
        keras.config.set_floatx("float32")
    assert ops.add(tf.ones([2], "int32"), 1.5).dtype.name == "float32"


def test_variables_are_operands() -> None:
    v = keras.Variable(np.ones((2, 2), "float32"))
    with tf.GradientTape() as tape:
        y = ops.sum(ops.multiply(v, 3.0) + ops.matmul(v, v))
    np.testing.assert_allclose(tape.gradient(y, v), np.full((2, 2), 7.0))


def test_unique_of_rows_with_a_fixed_size() -> None:
    rows = np.array([[1, 0], [0, 1], [1, 0]], "int32")

    @tf.function(autograph=False)
    def compiled(x):
        return ops.unique(x, axis=0, size=3, fill_value=9, return_counts=True, return_inverse=True)

    values, inverse, counts = compiled(tf.constant(rows))
    np.testing.assert_array_equal(values, [[0, 1], [1, 0], [9, 9]])
    np.testing.assert_array_equal(inverse, [1, 0, 1])
    np.testing.assert_array_equal(counts, [1, 2, 0])


def test_bytes_seen_as_other_types() -> None:
    x = np.arange(8, dtype="int16").reshape(2, 4)
    for dtype in ("float16", "int32", "uint8", "float64"):
        np.testing.assert_array_equal(ops.view(x, dtype=dtype), x.view(dtype))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ops.split(np.ones(5), 2), "equal parts"),
        (lambda: ops.squeeze(np.ones((2, 3)), 0), "length 1"),
        (lambda: ops.max(np.ones((0, 3)), axis=0), "no elements"),
        (lambda: ops.pad(np.ones(3), 1, mode="mean"), "mode"),
        (lambda: ops.view(np.ones((2, 3), "int16"), dtype="int32"), "whole elements"),
        (lambda: ops.correlate(np.ones(3), np.ones(2), mode="some"), "mode"),
    ],
)
def test_bad_input(call, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_numbers_of_eight_bits_are_rounded_as_ml_dtypes_does(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000) * 10.0 ** rng.uniform(-7, 6, 2000)
    x = np.concatenate([x, [0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, 61439, 61440, 2**-9, 2**-10]])
    x = x.astype("float32")
    wanted = x.astype(getattr(ml_dtypes, name)).astype("float32")
    small = ops.cast(x, name)
    assert small.dtype.name == name
    np.testing.assert_array_equal(ops.cast(small, "float32"), wanted)
    with pytest.raises(ValueError, match="float8"):
        ops.add(small, 1.0)
    v = tf.constant([0.3])
    with tf.GradientTape() as tape:
        tape.watch(v)
        y = ops.cast(ops.cast(v, name), "float32")
    np.testing.assert_array_equal(tape.gradient(y, v), [1.0])
