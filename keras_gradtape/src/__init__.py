"""The backend, in the layout that Keras 3.16 expects of a package `keras_<name>.src`."""

from keras.src.backend.common.name_scope import name_scope

from keras_gradtape.src import distribution_lib, ops, random, rnn
from keras_gradtape.src import sparse as sparse  # registers ops for sparse tensors
from keras_gradtape.src.ops.core import Variable, compute_output_spec, device_scope

IS_THREAD_SAFE = False  # callbacks are called synchronously
SUPPORTS_COMPLEX_DTYPES = True
SUPPORTS_GRADIENT = True
SUPPORTS_RAGGED_TENSORS = True
SUPPORTS_SPARSE_TENSORS = True

__all__ = [
    "IS_THREAD_SAFE",
    "SUPPORTS_COMPLEX_DTYPES",
    "SUPPORTS_GRADIENT",
    "SUPPORTS_RAGGED_TENSORS",
    "SUPPORTS_SPARSE_TENSORS",
    "Variable",
    "compute_output_spec",
    "device_scope",
    "distribution_lib",
    "name_scope",
    "ops",
    "random",
    "rnn",
]
