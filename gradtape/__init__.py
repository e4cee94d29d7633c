"""gradtape: TensorFlow's GradientTape as a library of its own.

>>> import gradtape as tf
>>> x = tf.Variable(3.0)
>>> with tf.GradientTape() as tape:
...     y = x ** 2
>>> tape.gradient(y, x).numpy()
np.float32(6.0)
"""

from typing import Any as _Any

from gradtape import version as version
from gradtape._src.base import (
    environment as _environment,
)  # before the core, which reads the variables it sets
from gradtape._src.base import install as _install

_install.check(version.GRADTAPE)

# isort: split
from gradtape._core import Tensor as Tensor
from gradtape._src import ops as _ops
from gradtape._src.base import blas as _blas
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
from gradtape._src.base.scopes import (
    control_dependencies,
    executing_eagerly,
    get_current_name_scope,
    group,
    init_scope,
    inside_function,
    name_scope,
    no_op,
    variable_creator_scope,
)
from gradtape._src.base.shape import TensorShape, TensorSpec, broadcast_static_shape
from gradtape._src.base.type_spec import NoneTensorSpec, TypeSpec, type_spec_from_value
from gradtape._src.public import absent as _absent
from gradtape._src.public import modules as _modules
from gradtape._src.state import variable_spec as _variable_spec
from gradtape._src.state.module import Module
from gradtape._src.state.variable import Variable, VariableAggregation, VariableSynchronization
from gradtape._src.tapes.tape import GradientTape, UnconnectedGradients
from gradtape._src.tensors import tensor as _tensor
from gradtape._src.tensors.conversion import register as register_tensor_conversion_function
from gradtape._src.tensors.indexed_slices import IndexedSlices, IndexedSlicesSpec
from gradtape_imports import start as _start

__version__ = version.FULL
newaxis = None

_modules.install()
_start.wait_for_keras()

if _environment.is_on("GRADTAPE_LINES"):
    _lines = _absent.lookup("debug").lines()
    _lines.__enter__()
if _environment.is_on("GRADTAPE_NUMERICS"):
    _absent.lookup("debug").check_numerics.enable()


def __getattr__(name: str) -> _Any:
    return _absent.lookup(name)


def __dir__() -> list[str]:
    return _absent.names()
