"""`gradtape.dtypes`: what TensorFlow's DType objects answer, verified on TensorFlow 2.21."""

import copy
import pickle
import sys

import numpy as np
import pytest

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
    ("string", -1, 7, 0),
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


@pytest.mark.parametrize("other", [None, "nope", 1, 3, dtypes.float64, float("nan"), Unrelated])
def test_not_equal(other):
    assert dtypes.float32 != other
    assert (dtypes.float32 == other) is False


def test_equal_to_python_types():
    assert dtypes.float32 == float  # noqa: E721
    assert dtypes.bool == bool  # noqa: E721
    assert dtypes.float64 != float  # noqa: E721
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
