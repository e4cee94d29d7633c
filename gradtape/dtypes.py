"""tf.dtypes: the types of elements."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

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
    resource,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
    variant,
)

if _TYPE_CHECKING:
    from gradtape._typing.dtypes import *  # noqa: F403

__all__ = [
    "DType",
    "as_dtype",
    "bfloat16",
    "bool",
    "complex128",
    "complex64",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int16",
    "int32",
    "int64",
    "int8",
    "resource",
    "string",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "variant",
]
