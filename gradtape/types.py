"""`tf.types.experimental`: names for annotations and `isinstance`."""

from __future__ import annotations

import sys as _sys
import types as _types

import numpy as _np

from gradtape import _core
from gradtape._src.base.type_spec import TypeSpec
from gradtape._src.functions.concrete import ConcreteFunction
from gradtape._src.functions.function import Function
from gradtape._src.public import absent as _absent
from gradtape._src.tensors.indexed_slices import IndexedSlices

experimental = _types.ModuleType(
    "gradtape.types.experimental", "TensorFlow's namespace `tf.types.experimental`."
)
vars(experimental).update(
    Callable=Function,
    ConcreteFunction=ConcreteFunction,
    GenericFunction=Function,
    PolymorphicFunction=Function,
    # The types of arguments by which traces are looked up; gradtape's are TypeSpecs.
    TraceType=TypeSpec,
    SupportsTracingProtocol=object,
    TensorLike=_core.Tensor
    | _core.Variable
    | IndexedSlices
    | int
    | float
    | bool
    | str
    | complex
    | tuple
    | list
    | _np.ndarray,
)
_sys.modules[experimental.__name__] = experimental

__getattr__, __dir__ = _absent.of("types")
