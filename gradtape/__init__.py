"""gradtape: TensorFlow's GradientTape as a library of its own.

>>> import gradtape as tf
>>> x = tf.Variable(3.0)
>>> with tf.GradientTape() as tape:
...     y = x ** 2
>>> tape.gradient(y, x).numpy()
np.float32(6.0)
"""

import os as _os
from typing import Any as _Any

from gradtape import _absent as _absent
from gradtape import _blas as _blas
from gradtape import api as _api
from gradtape import autodiff as autodiff
from gradtape import config as config
from gradtape import debugging as debugging
from gradtape import dtypes as dtypes
from gradtape import errors as errors
from gradtape import exchange as exchange
from gradtape import initializers as initializers
from gradtape import nest as nest
from gradtape import ops as _ops
from gradtape import random as random
from gradtape import scopes as _scopes
from gradtape import tensor as _tensor
from gradtape import test as test
from gradtape import version as version
from gradtape._core import Tensor as Tensor
from gradtape.control_flow import (
    case,
    cond,
    foldl,
    foldr,
    map_fn,
    numpy_function,
    py_function,
    scan,
    switch_case,
    vectorized_map,
    while_loop,
)
from gradtape.custom_gradient import custom_gradient, grad_pass_through, recompute_grad
from gradtape.debugging import Assert, assert_equal, assert_greater, assert_less, assert_rank
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
from gradtape.function import function
from gradtape.graph import trace as _trace
from gradtape.indexed_slices import IndexedSlices
from gradtape.initializers import (
    constant_initializer,
    ones_initializer,
    random_normal_initializer,
    random_uniform_initializer,
    zeros_initializer,
)
from gradtape.module import Module
from gradtape.primitive import primitive
from gradtape.printing import print_ as print
from gradtape.registry import RegisterGradient, no_gradient
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
from gradtape.symbolic import gradients, hessians
from gradtape.tape import GradientTape, UnconnectedGradients
from gradtape.tensor_array import TensorArray
from gradtape.variable import Variable, VariableAggregation, VariableSynchronization

__version__ = version.FULL
newaxis = None

_api.fill(globals(), _ops.PUBLIC)
_scopes.install_hooks(lift=_trace.lift, in_graph=_trace.is_tracing)

if _os.environ.get("GRADTAPE_LINES") == "1":
    _lines = _absent.lookup("debug").lines()
    _lines.__enter__()
if _os.environ.get("GRADTAPE_NUMERICS") == "1":
    _absent.lookup("debug").check_numerics.enable()


def __getattr__(name: str) -> _Any:
    return _absent.lookup(name)
