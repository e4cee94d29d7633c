"""`tf.keras.backend`: the functions `K.mean`, `K.set_value` and so on.

Keras 3 still has most of them, written with TensorFlow's ops; `names` made these use gradtape. Here are the ones
that access variables, need TensorFlow 1, or were removed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import numpy as np
from keras.src import ops
from keras.src.backend import config
from keras.src.backend.common import global_state, standardize_dtype
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.legacy import backend as legacy

import gradtape as tf
from gradtape.backend import Setting
from keras_gradtape.src import rnn as recurrent
from keras_gradtape.src.ops.core import convert_to_tensor

_training = Setting([0])  # the phase of the program, or of a `learning_phase_scope`


def install(keras: ModuleType) -> None:
    for name, value in globals().items():
        if callable(value) and getattr(value, "__module__", None) == __name__ and name[0] != "_":
            setattr(keras.backend, name, value)
            # Functions in that module call each other.
            setattr(legacy, name, value)
    del keras.backend.install
    keras.backend.is_tensor = tf.is_tensor
    keras.backend.in_test_phase = in_test_phase
    keras.backend.symbolic = lambda function: function


# ---- values ---------------------------------------------------------------------------------------


def _tensor(x: Any) -> Any:
    return convert_to_tensor(x)


def get_value(x: Any) -> Any:
    """The value of a variable or tensor as an array; of anything else itself."""
    return x.numpy() if hasattr(x, "numpy") else x


eval = get_value


def set_value(x: Any, value: Any) -> None:
    """Sets a variable."""
    x.assign(np.asarray(value, standardize_dtype(x.dtype)))


def batch_get_value(tensors: Sequence[Any]) -> list[Any]:
    """The values of several variables."""
    return [get_value(x) for x in tensors]


def batch_set_value(tuples: Sequence[tuple[Any, Any]]) -> None:
    """Sets several variables: pairs of variable and value."""
    for x, value in tuples:
        set_value(x, value)


def variable(value: Any, dtype: Any = None, name: str | None = None, constraint: Any = None) -> Any:
    """A `tf.Variable`; of Python and NumPy values in the type `floatx`."""
    if not isinstance(value, tf.Tensor):
        value = np.asarray(value, dtype or config.floatx())
    return tf.Variable(value, dtype=dtype, name=name, constraint=constraint)


def random_normal_variable(
    shape: Any, mean: float, scale: float, dtype: Any = None, name: str | None = None, seed: Any = None
) -> Any:
    """A variable with normally distributed values."""
    dtype = dtype or config.floatx()
    return tf.Variable(tf.random.normal(shape, mean, scale, dtype, seed=seed), name=name)


def random_uniform_variable(
    shape: Any, low: float, high: float, dtype: Any = None, name: str | None = None, seed: Any = None
) -> Any:
    """A variable with uniformly distributed values."""
    dtype = dtype or config.floatx()
    return tf.Variable(tf.random.uniform(shape, low, high, dtype, seed=seed), name=name)


def update(x: Any, new_x: Any) -> Any:
    """Assigns to a variable."""
    return x.assign(new_x)


def update_add(x: Any, increment: Any) -> Any:
    """Adds to a variable."""
    return x.assign_add(increment)


def update_sub(x: Any, decrement: Any) -> Any:
    """Subtracts from a variable."""
    return x.assign_sub(decrement)


def moving_average_update(x: Any, value: Any, momentum: float) -> Any:
    """`x = x * momentum + value * (1 - momentum)`."""
    return x.assign(_tensor(x) * momentum + tf.cast(value, _tensor(x).dtype) * (1 - momentum))


# ---- predicates ---------------------------------------------------------------------------------


def int_shape(x: Any) -> tuple | None:
    """The shape as a tuple."""
    return tuple(x.shape)


def shape(x: Any) -> Any:
    """The shape as a tensor; as a tuple for an input of Keras."""
    return tuple(x.shape) if isinstance(x, KerasTensor) else tf.shape(_tensor(x))


def dtype(x: Any) -> str:
    """The name of the element type."""
    return standardize_dtype(x.dtype)


def set_floatx(value: Any) -> None:
    """Sets the type of weights and inputs of layers made from now on."""
    config.set_floatx(standardize_dtype(value))
    policy = global_state.get_global_attribute("dtype_policy")
    if policy is not None and policy.name in ("float16", "bfloat16", "float32", "float64"):
        global_state.set_global_attribute("dtype_policy", None)  # Keras stores the previous one


def is_sparse(tensor: Any) -> bool:
    """Whether it is a `tf.tf.SparseTensor`."""
    return isinstance(tensor, tf.SparseTensor)


def to_dense(tensor: Any) -> Any:
    """A sparse tensor as a dense one; other tensors unchanged."""
    return tf.sparse.to_dense(tensor) if is_sparse(tensor) else tensor


# ---- functions ------------------------------------------------------------------------------------


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """`log(sum(exp(x)))`, without overflow."""
    return tf.reduce_logsumexp(x, axis, keepdims)


def gather(reference: Any, indices: Any) -> Any:
    """The rows with these numbers."""
    return tf.gather(reference, indices)


def switch(condition: Any, then_expression: Any, else_expression: Any) -> Any:
    """One of two values, or of the results of two functions; element by element if the condition is a tensor."""
    if not isinstance(condition, (tf.Tensor, KerasTensor)):
        condition = tf.convert_to_tensor(condition)
    if condition.dtype != tf.bool and condition.dtype != "bool":
        condition = tf.cast(condition, tf.bool)
    if not len(condition.shape) and callable(then_expression) and callable(else_expression):
        return tf.cond(condition, then_expression, else_expression)
    then, other = (f() if callable(f) else f for f in (then_expression, else_expression))
    missing = (
        max(len(tf.convert_to_tensor(then).shape) - len(condition.shape), 0) if len(condition.shape) else 0
    )
    return tf.where(
        tf.reshape(condition, [*condition.shape, *[1] * missing]) if missing else condition, then, other
    )


def in_top_k(predictions: Any, targets: Any, k: int) -> Any:
    """Whether the targets are among the `k` largest predictions."""
    return tf.math.in_top_k(targets, predictions, k)


def map_fn(fn: Callable, elems: Any, name: str | None = None, dtype: Any = None) -> Any:
    """`fn` of each element."""
    return tf.map_fn(fn, elems, fn_output_signature=dtype)


def foldl(fn: Callable, elems: Any, initializer: Any = None, name: str | None = None) -> Any:
    """Folds the elements from left to right."""
    return tf.foldl(fn, elems, initializer)


def foldr(fn: Callable, elems: Any, initializer: Any = None, name: str | None = None) -> Any:
    """Folds the elements from right to left."""
    return tf.foldr(fn, elems, initializer)


def concatenate(tensors: Sequence[Any], axis: int = -1) -> Any:
    """Tensors joined along an axis."""
    return tf.concat(list(tensors), axis)


def _conv(x: Any, kernel: Any, strides: Any, padding: str, data_format: Any, dilation_rate: Any) -> Any:
    if padding == "causal":
        reach = dilation_rate * (kernel.shape[0] - 1)
        x, padding = temporal_padding(x, (reach, 0)), "valid"
    return ops.conv(x, kernel, strides, padding, data_format, dilation_rate)


def temporal_padding(x: Any, padding: tuple[int, int] = (1, 1)) -> Any:
    """Zeros before and after the steps of sequences."""
    return tf.pad(x, [[0, 0], list(padding), [0, 0]])


def conv1d(
    x: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: Any = None,
    dilation_rate: Any = 1,
) -> Any:
    """Convolution of sequences."""
    return _conv(x, kernel, strides, padding, data_format, dilation_rate)


def conv2d(
    x: Any, kernel: Any, strides: Any = (1, 1), padding: str = "valid", data_format: Any = None,
    dilation_rate: Any = (1, 1),
) -> Any:  # fmt: skip
    """Convolution of images."""
    return _conv(x, kernel, strides, padding, data_format, dilation_rate)


def conv3d(
    x: Any, kernel: Any, strides: Any = (1, 1, 1), padding: str = "valid", data_format: Any = None,
    dilation_rate: Any = (1, 1, 1),
) -> Any:  # fmt: skip
    """Convolution of volumes."""
    return _conv(x, kernel, strides, padding, data_format, dilation_rate)


def rnn(step_function: Callable, inputs: Any, initial_states: Any, *args: Any, **kwargs: Any) -> Any:
    """A recurrent loop over the steps of sequences: last output, outputs, states."""
    kwargs.setdefault("return_all_outputs", True)
    return recurrent.rnn(step_function, inputs, initial_states, *args, **kwargs)


def ctc_batch_cost(y_true: Any, y_pred: Any, input_length: Any, label_length: Any) -> Any:
    """The CTC loss of probabilities whose last class is the blank."""
    lengths = (tf.cast(tf.squeeze(n, -1), tf.int32) for n in (label_length, input_length))
    scores = tf.math.log(y_pred + config.epsilon())
    loss = tf.nn.ctc_loss(
        tf.cast(y_true, tf.int32), scores, *lengths, logits_time_major=False, blank_index=-1
    )
    return tf.expand_dims(loss, 1)


def gradients(loss: Any, variables: Any) -> Any:
    """`tf.gradients`: inside a `tf.function` only."""
    return tf.gradients(loss, variables)


def function(inputs: Any, outputs: Any, updates: Any = None, name: str | None = None, **_: Any) -> Callable:
    """A function from arrays for `inputs` to arrays for `outputs`, both of a model of layers."""
    from keras.src.models.model import Model

    inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    model = Model(inputs, outputs)

    def run(*given: Any) -> Any:
        values = list(given[0]) if len(given) == 1 and isinstance(given[0], (list, tuple)) else list(given)
        results = model(values if len(values) > 1 else values[0], training=bool(learning_phase()))
        # Keras unpacks a single output from its list.
        return tf.nest.pack_sequence_as(outputs, [x.numpy() for x in tf.nest.flatten(results)])

    return run


# ---- the phase ------------------------------------------------------------------------------------


def learning_phase() -> int:
    """1 while training, 0 otherwise, as last set."""
    return _training.now()[0]


def set_learning_phase(value: Any) -> None:
    """Sets the result of `learning_phase`. For a model, use `model(x, training=True)`."""
    _training.now()[0] = _phase(value)


def _phase(value: Any) -> int:
    if int(value) not in (0, 1):
        raise ValueError("Expected learning phase to be 0 or 1.")
    return int(value)


def learning_phase_scope(value: Any) -> AbstractContextManager:
    """A context with another learning phase."""
    return _training.to([_phase(value)])


def in_train_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """`x` while training, else `alt`; either may be a function."""
    chosen = x if (learning_phase() if training is None else training) else alt
    return chosen() if callable(chosen) else chosen


def in_test_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """`x` while not training, else `alt`."""
    return in_train_phase(alt, x, training)


# ---- sessions -------------------------------------------------------------------------------------


def get_session(*_: Any) -> None:
    """Sessions are gone; values are read with `K.get_value`."""
    raise RuntimeError("K.get_session: there are no sessions. Hint: K.get_value(x), or x.numpy().")


def set_session(*_: Any) -> None:
    """Accepted, without effect: there are no sessions."""


def manual_variable_initialization(value: bool) -> None:
    """Accepted: variables are initialised when they are created."""


def get_uid(prefix: str = "") -> int:
    """A number that was not given for this prefix before."""
    _uids[prefix] = _uids.get(prefix, 0) + 1
    return _uids[prefix]


def reset_uids() -> None:
    """Starts `get_uid` again."""
    _uids.clear()


_uids: dict[str, int] = {}
