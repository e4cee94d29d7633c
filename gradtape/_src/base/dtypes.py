"""The element types of tensors: class `DType`, its singletons, and `as_dtype`.

There is one `DType` object per type (`float32`, `int64`, ...), made from the native core's table
(`core/dtypes.def`). The core identifies types by small integers: `BY_CODE[code]` is the object for a code,
`dtype._code` the code of an object. Casting values is not done here (see `gradtape._src.ops`).

Strings, and the types of 8 bits and less that are only stored and cast, have codes too, but no kernels (`HELD`):
see `gradtape._src.tensors`. `resource`, `variant` and the quantized types exist so that code that names them can
import and compare them; there are no tensors of them (`_code` is -1).
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from gradtape import _core

_NO_CODE = -1


class DType:
    """The type of a tensor's elements.

    Use the singletons of this module; `as_dtype` finds one from a name, a NumPy type or a
    Python type. A `DType` equals anything that `as_dtype` would turn into it.

    >>> from gradtape._src.base import dtypes
    >>> dtypes.float32
    tf.float32
    >>> print(dtypes.float32)
    <dtype: 'float32'>
    >>> dtypes.float32 == "float32", dtypes.float32 == np.float32
    (True, True)
    >>> dtypes.complex64.real_dtype, dtypes.int8.max, dtypes.float64.size
    (tf.float32, 127, 8)

    Attributes:
      name: TensorFlow's name of the type, `"float32"`.
      as_datatype_enum: TensorFlow's number for the type (`DT_FLOAT` is 1).
      size: bytes of one element; 0 for types without tensors.
      is_floating, is_complex, is_integer, is_unsigned, is_bool, is_numeric, is_quantized: its kind. As in
      TensorFlow a complex type is not "floating", and bool is neither numeric nor an integer.
    """

    __slots__ = (
        "name",
        "as_datatype_enum",
        "size",
        "is_floating",
        "is_complex",
        "is_integer",
        "is_unsigned",
        "is_bool",
        "is_numeric",
        "is_quantized",
        "_code",
        "_kind",
        "_numpy",
        "_base",
        "__weakref__",
    )

    name: str
    as_datatype_enum: int
    size: int
    is_floating: builtins.bool
    is_complex: builtins.bool
    is_integer: builtins.bool
    is_unsigned: builtins.bool
    is_bool: builtins.bool
    is_numeric: builtins.bool
    is_quantized: builtins.bool
    _code: int
    _kind: str
    _numpy: Any
    _base: DType

    def __new__(cls, type_enum: int) -> DType:
        """The type with TensorFlow's number `type_enum`; TypeError if there is none."""
        if not isinstance(type_enum, int):
            raise _not_a_dtype(type_enum)
        return as_dtype(int(type_enum))

    @classmethod
    def _make(cls, name: str, code: int, enum: int, numpy_type: Any, kind: str, size: int = 0) -> DType:
        """Makes a singleton; `kind` is NumPy's letter: b, i, u, f, c, or q for quantized ones, s for those that are only
        stored, and O for the rest. `numpy_type` is a type, None where there is none, or the name of one of
        `ml_dtypes`."""
        self = object.__new__(cls)
        self.name = name
        self._kind = kind
        self.as_datatype_enum = enum
        # As in TensorFlow, where types that are only stored are not among the numeric ones.
        self.is_numeric = kind in "iufcq"
        if kind == "s":
            kind, size = _STORED[name.removesuffix("_ref")][0], 1
        self.is_floating = kind == "f"
        self.is_complex = kind == "c"
        self.is_integer = kind in "iu"
        self.is_unsigned = kind == "u"
        self.is_bool = kind == "b"
        self.is_quantized = kind == "q"
        self._code = code
        self._numpy = numpy_type
        self._base = self
        self.size = size
        return self

    # --- NumPy -----------------------------------------------------------------------------

    @property
    def as_numpy_dtype(self) -> Any:
        """The NumPy scalar type, `np.float32`.

        NumPy has no bfloat16, and no types of 8 bits and less besides its integers: they are those of the package
        `ml_dtypes` if it is installed, otherwise `np.float32`, `np.int8` or `np.uint8`, which represent all of
        their values exactly.
        """
        if isinstance(self._numpy, str):
            numpy_type = _of_ml_dtypes(self._numpy)
            if numpy_type is None:
                return np.float32 if self.is_floating else np.uint8 if self.is_unsigned else np.int8
            return numpy_type
        if self._numpy is None:
            raise TypeError(
                f"DType.as_numpy_dtype: {self.name} has no NumPy type; expected a type that "
                f"tensors can have; got {self!r}."
            )
        return self._numpy

    @property
    def is_numpy_compatible(self) -> builtins.bool:
        """Whether NumPy has a type for it."""
        return self._numpy is not None

    # --- range -----------------------------------------------------------------------------

    @property
    def min(self) -> Any:
        """The most negative finite value."""
        return self._extreme("min")

    @property
    def max(self) -> Any:
        """The largest finite value."""
        return self._extreme("max")

    def _extreme(self, which: str) -> Any:
        word = "minimum" if which == "min" else "maximum"
        if not (self.is_integer or self.is_floating):
            raise TypeError(
                f"DType.{which}: Cannot find {word} value of {self}; expected an integer or "
                f"floating type; got {self!r}."
            )
        if self._base is bfloat16:
            # 0x7f7f, the largest finite bfloat16, is exactly this float32.
            largest = self.as_numpy_dtype(3.3895313892515355e38)
            return largest if which == "max" else -largest
        if self._kind == "s":
            value = _STORED[self._base.name][1 if which == "min" else 2]
            return self.as_numpy_dtype(value) if self.is_floating else value
        facts = np.iinfo if self.is_integer else np.finfo
        return getattr(facts(self.as_numpy_dtype), which)

    @property
    def limits(self) -> tuple[Any, Any]:
        """The (low, high) range of an image of this type: (0, 255), (0, 1), ..."""
        if self._code >= 0 and self._kind in "iu":
            return 0, self.max
        if self is bool:
            return 0, True
        if self in (float32, float64):
            return 0, 1
        raise ValueError(
            f"DType.limits: {self} does not have defined limits; expected an integer type, "
            f"bool, float32 or float64; got {self!r}."
        )

    # --- relations -------------------------------------------------------------------------

    @property
    def real_dtype(self) -> DType:
        """The type of the real part: float32 of complex64; itself if not complex."""
        return BY_CODE[_FACTS[self._code][5]] if self.is_complex else self

    @property
    def base_dtype(self) -> DType:
        """The type itself; float32 of `float32_ref`, which no tensor has."""
        return self._base

    def is_compatible_with(self, other: Any) -> builtins.bool:
        """Whether a value of type `other` can be used where this type is required."""
        other = as_dtype(other)
        return self is other or self is other.base_dtype

    def is_subtype_of(self, other: Any) -> builtins.bool:
        """Whether `other` is the same type (types form no hierarchy)."""
        return self is other

    def most_specific_common_supertype(self, others: Any) -> DType | None:
        """Itself if all `others` are the same type, else None."""
        return self if all(self is other for other in others) else None

    def __eq__(self, other: Any) -> builtins.bool:
        if self is other:
            return True
        # `as_dtype` accepts `int`, `complex` and strings; as in TensorFlow, no type is *equal* to them.
        if other is None or isinstance(other, DType) or (isinstance(other, type) and other in _NOT_EQUAL):
            return False
        try:
            return self is as_dtype(other)
        except TypeError:
            return False

    def __ne__(self, other: Any) -> builtins.bool:
        return not self == other

    def __hash__(self) -> int:
        return self.as_datatype_enum

    def __str__(self) -> str:
        return f"<dtype: '{self.name}'>"

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies and pickles return the singleton, so `is` remains a valid comparison.
        return as_dtype, (self.name,)


def _of_ml_dtypes(name: str) -> Any:
    """A type of the package `ml_dtypes`, or None; imported only when NumPy needs such a type."""
    try:
        import ml_dtypes  # type: ignore[import-not-found]
    except ImportError:
        return None
    return getattr(ml_dtypes, name, None)


# Types that TensorFlow only stores and casts: NumPy's letter for the kind, the smallest and the largest number.
_STORED: dict[str, tuple[str, Any, Any]] = {
    "float8_e5m2": ("f", -57344.0, 57344.0), "float8_e4m3fn": ("f", -448.0, 448.0),
    "float8_e4m3fnuz": ("f", -240.0, 240.0), "float8_e4m3b11fnuz": ("f", -30.0, 30.0),
    "float8_e5m2fnuz": ("f", -57344.0, 57344.0), "int4": ("i", -8, 7), "uint4": ("u", 0, 15), "int2": ("i", -2, 1),
    "uint2": ("u", 0, 3), "float4_e2m1fn": ("f", -6.0, 6.0),
}  # fmt: skip
_QUANTIZED = {
    "qint8": (11, "i1"),
    "quint8": (12, "u1"),
    "qint32": (13, "i4"),
    "qint16": (15, "i2"),
    "quint16": (16, "u2"),
}

# The table core/dtypes.def, in the order of the codes; bfloat16 is not a NumPy type.
_FACTS = _core.dtype_table()
BY_CODE: tuple[DType, ...] = tuple(
    DType._make(
        name, code, number, np.dtype(name).type if format else object if kind == "O" else name, kind, size
    )
    for code, (name, kind, size, number, format, _) in enumerate(_FACTS)
)
_BY_NAME: dict[str, DType] = {d.name: d for d in BY_CODE}

bool: DType = _BY_NAME["bool"]
int8: DType = _BY_NAME["int8"]
int16: DType = _BY_NAME["int16"]
int32: DType = _BY_NAME["int32"]
int64: DType = _BY_NAME["int64"]
uint8: DType = _BY_NAME["uint8"]
uint16: DType = _BY_NAME["uint16"]
uint32: DType = _BY_NAME["uint32"]
uint64: DType = _BY_NAME["uint64"]
float16: DType = _BY_NAME["float16"]
half: DType = float16
bfloat16: DType = _BY_NAME["bfloat16"]
float32: DType = _BY_NAME["float32"]
float64: DType = _BY_NAME["float64"]
double: DType = float64
complex64: DType = _BY_NAME["complex64"]
complex128: DType = _BY_NAME["complex128"]
string: DType = _BY_NAME["string"]

resource = DType._make("resource", _NO_CODE, 20, None, "O")
variant = DType._make("variant", _NO_CODE, 21, None, "O")
STORED = tuple(d for d in BY_CODE if d._kind == "s")
"""Types of 8 bits and less that are only stored and cast, as in TensorFlow."""

HELD = frozenset(d._code for d in BY_CODE if d._kind in "Os")
"""Codes of the types that no kernel reads: Python holds their values (strings, and `STORED`)."""

QUANTIZED = tuple(
    DType._make(n, _NO_CODE, number, np.dtype([(n, plain)]), "q", int(plain[1]))
    for n, (number, plain) in _QUANTIZED.items()
)
"""Types whose values are integers that stand for real numbers."""
qint8, quint8, qint32, qint16, quint16 = QUANTIZED

SIZES = tuple(size for _, _, size, *_ in _FACTS)
"""Bytes of an element in the core's memory, by code; 0 for those that Python holds."""

DIFFERENTIABLE = frozenset(d._code for d in BY_CODE if d._kind in "fc")
"""Codes of the types that a gradient can flow through."""

WIDE = frozenset((float32._code, float64._code))
"""Codes of the real types that are computed in as they are."""

_ALL = (*BY_CODE, resource, variant, *QUANTIZED)
_BY_NAME.update({d.name: d for d in _ALL}, half=float16, float=float32, double=float64)
_BY_ENUM: dict[int, DType] = {d.as_datatype_enum: d for d in _ALL}
_BY_NUMPY: dict[np.dtype, DType] = {
    np.dtype(d._numpy): d for d in _ALL if d._numpy is not None and not isinstance(d._numpy, str)
}
# The dtype of a Python type: that of a tensor made from such a value. Here int is int32 and complex is complex128,
# for which TensorFlow raises.
_BY_TYPE: dict[Any, DType] = {
    builtins.float: float32,
    builtins.int: int32,
    builtins.bool: bool,
    builtins.complex: complex128,
    builtins.object: string,
    builtins.str: string,
    builtins.bytes: string,
}

_NOT_EQUAL: tuple[Any, ...] = (builtins.int, builtins.complex, builtins.str, builtins.bytes)


def _reference(base: DType) -> DType:
    """The type of TensorFlow 1's references to values of type `base`, `float32_ref`; no tensor has it."""
    reference = _BY_ENUM.get(base.as_datatype_enum + _REFERENCES)
    if reference is None:
        name, number = f"{base.name}_ref", base.as_datatype_enum + _REFERENCES
        reference = DType._make(name, _NO_CODE, number, base._numpy, base._kind, base.size)
        reference._base = base
        _BY_NAME[name] = _BY_ENUM[number] = reference
    return reference


# The offset from TensorFlow's number of a type to that of its reference type.
_REFERENCES = 100


def is_of_ml_dtypes(np_dtype: np.dtype) -> builtins.bool:
    """Whether it is a type that the package `ml_dtypes` adds to NumPy; their kind is "V", or "f"."""
    return np_dtype.name == "bfloat16" or np_dtype.name in _STORED


def from_numpy(np_dtype: Any) -> DType:
    """The `DType` of a NumPy dtype, whatever its byte order.

    Raises:
      TypeError: for types tensors cannot have (dates, records, longdouble).

    >>> from gradtape._src.base import dtypes
    >>> dtypes.from_numpy(np.dtype("int16"))
    tf.int16
    """
    np_dtype = np.dtype(np_dtype)
    dtype = _BY_NUMPY.get(np_dtype)
    if dtype is not None:
        return dtype
    if np_dtype.kind in "US":
        return string
    if is_of_ml_dtypes(np_dtype):
        _BY_NUMPY[np_dtype] = _BY_NAME[np_dtype.name]
        return _BY_NUMPY[np_dtype]
    if not np_dtype.isnative:
        return from_numpy(np_dtype.newbyteorder("="))
    raise _not_a_dtype(np_dtype)


def as_dtype(type_value: Any) -> DType:
    """The `DType` that `type_value` represents.

    Args:
      type_value: a `DType`, its name, a NumPy dtype or scalar type, a Python type (`float`
        is float32, `int` is int32, `complex` is complex128), TensorFlow's enum number, or
        an object with a `dtype`.

    Raises:
      TypeError: if it does not represent a type.

    >>> from gradtape._src.base import dtypes
    >>> dtypes.as_dtype("half"), dtypes.as_dtype(np.int64), dtypes.as_dtype(float)
    (tf.float16, tf.int64, tf.float32)
    """
    if isinstance(type_value, DType):
        return type_value
    if isinstance(type_value, str):
        dtype = _BY_NAME.get(type_value)
        if dtype is None and type_value.endswith("_ref") and type_value[:-4] in _BY_NAME:
            return _reference(_BY_NAME[type_value[:-4]])
        if dtype is None:
            raise _not_a_dtype(type_value)
        return dtype
    if isinstance(type_value, type):
        dtype = _BY_TYPE.get(type_value)
        if dtype is not None:
            return dtype
        # Only NumPy's (or ml_dtypes') scalar types: NumPy would accept any class, as "object".
        if issubclass(type_value, np.generic):
            return from_numpy(type_value)
        raise _not_a_dtype(type_value)
    if isinstance(type_value, np.dtype):
        return from_numpy(type_value)
    if type(type_value) is int:
        dtype = _BY_ENUM.get(type_value)
        if dtype is not None:
            return dtype
        if type_value - _REFERENCES in _BY_ENUM:
            return _reference(_BY_ENUM[type_value - _REFERENCES])
    inner = getattr(type_value, "dtype", None)
    if inner is not None:
        return as_dtype(inner)
    raise _not_a_dtype(type_value)


def _not_a_dtype(value: Any) -> TypeError:
    return TypeError(
        f"as_dtype: Cannot convert the argument `type_value`: {value!r} to a TensorFlow DType.; "
        "expected a DType, its name, a NumPy dtype or a Python type; got "
        f"{type(value).__name__}. Hint: the names are {', '.join(d.name for d in BY_CODE)}."
    )
