"""gradtape: TensorFlow's GradientTape as a library of its own.

>>> import gradtape as tf
>>> x = tf.Variable(3.0)
>>> with tf.GradientTape() as tape:
...     y = x ** 2
>>> tape.gradient(y, x).numpy()
np.float32(6.0)
"""

from gradtape import _blas as _blas
from gradtape import api as _api
from gradtape import config as config
from gradtape import dtypes as dtypes
from gradtape import errors as errors
from gradtape import exchange as exchange
from gradtape import nest as nest
from gradtape import ops as _ops
from gradtape import tensor as _tensor
from gradtape import test as test
from gradtape._core import Tensor as Tensor
from gradtape.dtypes import (
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
from gradtape.indexed_slices import IndexedSlices
from gradtape.module import Module
from gradtape.scopes import (
    control_dependencies,
    device,
    executing_eagerly,
    group,
    init_scope,
    name_scope,
    no_op,
    timestamp,
    variable_creator_scope,
)
from gradtape.shape import TensorShape, TensorSpec, TypeSpec, broadcast_static_shape
from gradtape.tape import GradientTape, UnconnectedGradients
from gradtape.variable import Variable, VariableAggregation, VariableSynchronization

__version__ = "0.1.0"
newaxis = None

_api.fill(globals(), _ops.PUBLIC)
