"""tf.dtypes: the types of elements."""

import types as _types
from typing import TYPE_CHECKING as _TYPE_CHECKING

from gradtape._src.base.dtypes import (
    QUANTIZED as QUANTIZED_DTYPES,
)
from gradtape._src.base.dtypes import (
    STORED as _STORED,
)
from gradtape._src.base.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    qint8,
    qint16,
    qint32,
    quint8,
    quint16,
    resource,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
    variant,
)
from gradtape._src.public import absent as _absent

experimental = _types.SimpleNamespace(**{d.name: d for d in _STORED})
"""Types of at most 8 bits, which can be stored and cast, as in TensorFlow."""

if _TYPE_CHECKING:
    from gradtape._typing.dtypes import *  # noqa: F403

__all__ = [
    "QUANTIZED_DTYPES",
    "DType",
    "as_dtype",
    "bfloat16",
    "bool",
    "complex128",
    "complex64",
    "double",
    "experimental",
    "float16",
    "float32",
    "float64",
    "half",
    "int16",
    "int32",
    "int64",
    "int8",
    "qint16",
    "qint32",
    "qint8",
    "quint16",
    "quint8",
    "resource",
    "string",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "variant",
]

__getattr__, __dir__ = _absent.of("dtypes")
