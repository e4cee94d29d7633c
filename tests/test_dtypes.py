"""`gradtape.dtypes`: what TensorFlow's DType objects answer, verified on TensorFlow 2.21."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.base import dtypes

# name, native code, TensorFlow's enum, size in bytes
ROWS = [
    ("bool", 0, 10, 1),
    ("int8", 1, 6, 1),
    ("int16", 2, 5, 2),
    ("int32", 3, 3, 4),
    ("int64", 4, 9, 8),
    ("uint8", 5, 4, 1),
    ("uint16", 6, 17, 2),
    ("uint32", 7, 22, 4),
    ("uint64", 8, 23, 8),
    ("float16", 9, 19, 2),
    ("bfloat16", 10, 14, 2),
    ("float32", 11, 1, 4),
    ("float64", 12, 2, 8),
    ("complex64", 13, 8, 8),
    ("complex128", 14, 18, 16),
    ("string", 15, 7, 0),
    ("resource", -1, 20, 0),
    ("variant", -1, 21, 0),
]
ALL = [row[0] for row in ROWS]


@pytest.mark.parametrize(("name", "code", "enum", "size"), ROWS)
def test_row(name, code, enum, size):
    dtype = getattr(dtypes, name)
    assert (dtype.name, dtype._code, dtype.as_datatype_enum, dtype.size) == (name, code, enum, size)
    assert hash(dtype) == enum
    assert str(dtype) == f"<dtype: '{name}'>"
    assert repr(dtype) == f"tf.{name}"
    assert dtype.base_dtype is dtype
    if code >= 0:
        assert dtypes.BY_CODE[code] is dtype


@pytest.mark.parametrize(
    ("attribute", "names"),
    [
        ("is_floating", "float16 bfloat16 float32 float64"),
        ("is_complex", "complex64 complex128"),
        ("is_integer", "int8 int16 int32 int64 uint8 uint16 uint32 uint64"),
        ("is_unsigned", "uint8 uint16 uint32 uint64"),
        ("is_bool", "bool"),
        ("is_quantized", ""),
    ],
)
def test_classification(attribute, names):
    assert {n for n in ALL if getattr(getattr(dtypes, n), attribute)} == set(names.split())


def test_numeric_and_numpy_compatible():
    not_numeric = {"bool", "string", "resource", "variant"}
    assert {n for n in ALL if not getattr(dtypes, n).is_numeric} == not_numeric
    assert {n for n in ALL if not getattr(dtypes, n).is_numpy_compatible} == {"resource", "variant"}


@pytest.mark.parametrize("name", [n for n in ALL if n not in ("bfloat16", "string", "resource", "variant")])
def test_numpy_round_trip(name):
    dtype = getattr(dtypes, name)
    numpy_type = dtype.as_numpy_dtype
    assert np.dtype(numpy_type).name == name
    assert dtypes.from_numpy(np.dtype(numpy_type)) is dtype
    assert dtypes.from_numpy(np.dtype(numpy_type).newbyteorder()) is dtype
    assert dtype == numpy_type
    assert dtype == np.dtype(numpy_type)
    assert np.dtype(numpy_type) == dtype
    assert dtype == name
    assert dtypes.as_dtype(np.zeros(1, numpy_type)) is dtype


def test_numpy_types_without_dtype():
    with pytest.raises(TypeError, match="has no NumPy type"):
        _ = dtypes.resource.as_numpy_dtype
    with pytest.raises(TypeError, match="Cannot convert"):
        dtypes.from_numpy(np.dtype("M8[s]"))
    assert dtypes.from_numpy(np.dtype("U3")) is dtypes.string


def test_bfloat16_without_ml_dtypes_is_shown_as_float32(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    assert dtypes.bfloat16.as_numpy_dtype is np.float32
    assert dtypes.bfloat16.max == np.float32(3.3895314e38)


def test_bfloat16_with_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is an optional package")
    assert dtypes.bfloat16.as_numpy_dtype is ml_dtypes.bfloat16
    assert dtypes.from_numpy(np.dtype(ml_dtypes.bfloat16)) is dtypes.bfloat16
    assert dtypes.as_dtype(ml_dtypes.bfloat16) is dtypes.bfloat16
    assert float(dtypes.bfloat16.max) == float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (dtypes.int8, "int8"),
        ("half", "float16"),
        ("float", "float32"),
        ("double", "float64"),
        (float, "float32"),
        (int, "int32"),
        (bool, "bool"),
        (complex, "complex128"),
        (object, "string"),
        (np.str_, "string"),
        (np.int64, "int64"),
        (np.float32(3), "float32"),
        (1, "float32"),
    ],
)
def test_as_dtype(value, name):
    assert dtypes.as_dtype(value) is getattr(dtypes, name)


class Unrelated:
    """A class that means no dtype."""


@pytest.mark.parametrize("value", [None, "foo", "f4", "int", 999, [], Unrelated, 1.5])
def test_as_dtype_refuses(value):
    with pytest.raises(TypeError, match="Cannot convert the argument `type_value`"):
        dtypes.as_dtype(value)


def test_aliases():
    assert dtypes.half is dtypes.float16
    assert dtypes.double is dtypes.float64


@pytest.mark.parametrize("other", [None, "nope", 3, 2.5, dtypes.float64, float("nan"), Unrelated])
def test_not_equal(other):
    assert dtypes.float32 != other
    assert (dtypes.float32 == other) is False


def test_equal_to_python_types():
    assert dtypes.float32 == float  # noqa: E721
    assert dtypes.bool == bool  # noqa: E721
    assert dtypes.float64 != float  # noqa: E721
    assert dtypes.int32 != int and dtypes.complex128 != complex  # noqa: E721
    assert dtypes.int32 == 3 and dtypes.int64 == np.dtype("int64")
    assert dtypes.float32 in ["float32"]
    assert dtypes.float32 in {dtypes.float32: 1}


def test_range():
    assert (dtypes.int8.min, dtypes.int8.max) == (-128, 127)
    assert dtypes.uint64.max == 2**64 - 1
    assert dtypes.float32.max == np.finfo(np.float32).max
    assert dtypes.float16.min == np.float16(-65504)
    for dtype in (dtypes.bool, dtypes.complex64, dtypes.string):
        with pytest.raises(TypeError, match="Cannot find m"):
            _ = dtype.min
        with pytest.raises(TypeError, match="Cannot find m"):
            _ = dtype.max


def test_limits():
    assert dtypes.uint8.limits == (0, 255)
    assert dtypes.int32.limits == (0, 2147483647)
    assert dtypes.float32.limits == dtypes.float64.limits == (0, 1)
    assert dtypes.bool.limits == (0, True)
    for dtype in (dtypes.float16, dtypes.bfloat16, dtypes.complex64, dtypes.string):
        with pytest.raises(ValueError, match="does not have defined limits"):
            _ = dtype.limits


def test_relations():
    assert dtypes.complex64.real_dtype is dtypes.float32
    assert dtypes.complex128.real_dtype is dtypes.float64
    assert dtypes.int8.real_dtype is dtypes.int8
    assert dtypes.float32.is_compatible_with("float32")
    assert not dtypes.float32.is_compatible_with(dtypes.float64)
    assert dtypes.float32.most_specific_common_supertype([dtypes.float32]) is dtypes.float32
    assert dtypes.float32.most_specific_common_supertype([dtypes.int32]) is None


@pytest.mark.parametrize("name", ALL)
def test_copies_are_the_singleton(name):
    dtype = getattr(dtypes, name)
    assert copy.deepcopy(dtype) is dtype
    assert copy.copy(dtype) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype


STORED = (
    "float8_e5m2 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2fnuz int4 uint4 int2 uint2 float4_e2m1fn"
).split()


def test_types_that_tensorflow_only_stores():
    assert [dtypes.as_dtype(n).as_datatype_enum for n in STORED] == list(range(24, 34))
    assert [dtypes.as_dtype(n).is_floating for n in STORED] == [True] * 5 + [False] * 4 + [True]
    assert not any(dtypes.as_dtype(n).is_numeric for n in STORED)
    assert dtypes.as_dtype("uint4").is_unsigned and dtypes.as_dtype("int4").is_integer
    with pytest.raises(ValueError, match="does not have defined limits"):
        _ = dtypes.as_dtype("int4").limits
    assert tf.dtypes.experimental.float8_e5m2 is dtypes.as_dtype(24)


@pytest.mark.parametrize(
    ("name", "low", "high"), [("float8_e5m2", -57344, 57344), ("float8_e4m3fn", -448, 448), ("int4", -8, 7)]
)
def test_their_range(name, low, high):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is an optional package")
    dtype = dtypes.as_dtype(name)
    assert (float(dtype.min), float(dtype.max)) == (low, high)
    assert dtype.as_numpy_dtype is getattr(ml_dtypes, name) and dtypes.as_dtype(dtype.as_numpy_dtype) is dtype


def test_quantized_types():
    assert [d.name for d in tf.dtypes.QUANTIZED_DTYPES] == ["qint8", "quint8", "qint32", "qint16", "quint16"]
    assert [d.size for d in tf.dtypes.QUANTIZED_DTYPES] == [1, 1, 4, 2, 2]
    assert all(d.is_quantized and d.is_numeric and not d.is_integer for d in tf.dtypes.QUANTIZED_DTYPES)
    assert tf.qint8 is dtypes.as_dtype(11) and tf.qint8.as_numpy_dtype == np.dtype([("qint8", "i1")])
    with pytest.raises(TypeError, match="Cannot find minimum value"):
        _ = tf.qint8.min
    with pytest.raises(TypeError, match="no tensors of type qint8"):
        tf.cast([1], tf.qint8)


def test_references():
    ref = dtypes.as_dtype("float32_ref")
    assert ref is dtypes.as_dtype(101) and ref.base_dtype is dtypes.float32 and ref != dtypes.float32
    assert repr(ref) == "tf.float32_ref" and ref.is_floating and ref.size == 4
    assert dtypes.float32.is_compatible_with(ref) and not ref.is_compatible_with(dtypes.float32)
    assert pickle.loads(pickle.dumps(ref)) is ref


def test_made_of_a_number():
    assert dtypes.DType(1) is dtypes.float32 and dtypes.DType(dtypes.string.as_datatype_enum) is dtypes.string
    for wrong in (0, 99, "float32"):
        with pytest.raises(TypeError, match="Cannot convert"):
            dtypes.DType(wrong)


def test_numpy_knows_bfloat16_by_name_once_it_was_used():
    """`ml_dtypes` is imported when a bfloat16 meets NumPy, not before: imports of gradtape stay quick."""
    pytest.importorskip("ml_dtypes", reason="ml_dtypes is an optional package")
    code = (
        "import sys, gradtape as tf, numpy as np; print('ml_dtypes' in sys.modules); "
        "array = tf.ones([2], tf.bfloat16).numpy(); print(np.dtype('bfloat16') == array.dtype == tf.bfloat16)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_without_ml_dtypes_they_have_numpy_types_with_the_same_values(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    found = [dtypes.as_dtype(n).as_numpy_dtype for n in STORED]
    assert found == [np.float32] * 5 + [np.int8, np.uint8] * 2 + [np.float32]
    assert dtypes.as_dtype("float8_e4m3fn").max == np.float32(448) and dtypes.as_dtype("uint4").max == 15
