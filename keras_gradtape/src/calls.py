"""A fast path for ordinary calls of layers and models.

`Layer.__call__` of Keras handles everything a call might involve: symbolic inputs, nests, masks, mixed types,
layers that are not built, quantized ones. That takes 40 us, while a small layer computes for 2. After a layer has
been called on a tensor the slow way, a note stores what was found; the same kind of call then only checks that this
still holds. Any other call takes the slow way, and so do errors, so that their messages are Keras'.
"""

from __future__ import annotations

import functools
import inspect
import math
from typing import Any

import numpy as np
from keras.src import tree
from keras.src.backend.common import global_state, keras_tensor
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.layers.layer import CallContext, Layer
from keras.src.losses.loss import Loss, reduce_weighted_values, squeeze_or_expand_to_same_rank
from keras.src.losses.losses import LossFunctionWrapper
from keras.src.models.functional import Functional
from keras.src.utils import python_utils, traceback_utils

import gradtape as tf
from gradtape.backend import BY_CODE
from keras_gradtape.src.ops.core import Variable, convert_to_tensor
from keras_gradtape.src.replicas import scale_loss_for_distribution

Tensor = tf.Tensor
_MOST_SHAPES = 16
# Attributes that a layer's note depends on.
_DEPENDS_ON = frozenset(
    ("dtype_policy", "_dtype_policy", "autocast", "activity_regularizer", "_activity_regularizer", "input_spec",
     "_input_spec", "supports_masking", "_supports_masking", "call", "compute_mask", "_convert_input_args",
     "_remat_mode", "_functional", "_is_quantized")
)  # fmt: skip


class Note:
    """What is known about a layer's calls."""

    __slots__ = ("code", "shapes", "trains", "default", "alone", "casts")

    def __init__(self, layer: Any, code: int) -> None:
        self.code = code  # the code of the element type of its inputs
        self.shapes: set[tuple] = set()  # shapes of inputs that were accepted
        self.trains = layer._call_has_training_arg
        parameters = layer._call_signature.parameters
        default = parameters["training"].default if self.trains else None
        self.default = None if default is inspect.Parameter.empty else default
        # The type that arrays of other floating types are cast to, or None.
        casts = (layer._convert_input_args and layer.autocast) or isinstance(layer, Functional)
        name = BY_CODE[code].name
        self.casts = name if casts and BY_CODE[code].is_floating else None
        # A Keras layer without inner layers: nothing reads the context of its call.
        self.alone = not layer._layers and type(layer).__module__.startswith("keras.src.layers.")

    def __deepcopy__(self, memo: dict) -> None:
        return None

    def __reduce__(self) -> tuple:
        return type(None), ()


def _note(layer: Any, x: Any, out: Any) -> None:
    """Stores a note about a call that took the slow way, if it was of the ordinary kind."""
    own = layer.__dict__
    if (
        not layer.built
        or layer.activity_regularizer is not None
        or layer._remat_mode
        or layer.compute_dtype != layer.variable_dtype
        or layer.quantization_mode is not None
        or (layer._convert_input_args and x.dtype.name != layer.input_dtype)
        or layer._call_context_args != {"training"}
        or any(getattr(t, "_keras_mask", None) is not None for t in (x, *tree.flatten(out)))
        or not (
            python_utils.is_default(layer.compute_mask) or type(layer).__module__.startswith("keras.src.")
        )
    ):
        return
    note = own.get("_note")
    if note is None or note.code != x.dtype._code:
        note = own["_note"] = Note(layer, x.dtype._code)
    if len(note.shapes) < _MOST_SHAPES:
        note.shapes.add(x._dims)


def _layer_call(long_way: Any) -> Any:
    @functools.wraps(long_way)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or (kwargs and (len(kwargs) > 1 or "training" not in kwargs)):
            return long_way(self, *args, **kwargs)
        x = args[0]
        note = self.__dict__.get("_note")
        if type(x) is not Tensor:
            if type(x) is not np.ndarray or x.dtype.kind != "f":
                return long_way(self, *args, **kwargs)
            if note is None or note.casts is None:
                out = long_way(self, *args, **kwargs)
                if self.built and "float" in self.input_dtype:
                    _note(self, convert_to_tensor(x, self.input_dtype), out)
                return out
            x = convert_to_tensor(x, note.casts)
        state = global_state.GLOBAL_STATE_TRACKER.__dict__  # of this thread, until clear_session
        if (
            note is None
            or x.dtype._code != note.code
            or x._dims not in note.shapes
            or state.get("autocast_scope") is not None
            or state.get("distribution") is not None
            or getattr(x, "_keras_mask", None) is not None
            or "_keras_mask_dict" in state
        ):
            out = long_way(self, x, **kwargs)
            if state.get("autocast_scope") is None:
                _note(self, x, out)
            return out
        context = state.get("current_call_ctx")
        entered = context is None and not note.alone
        try:
            if entered:
                context = CallContext(entry_layer=self)
                state["current_call_ctx"] = context
                self._clear_losses()
            elif context is None and self._losses:
                self._clear_losses()
            # Given in the call, by an outer call, or by the signature.
            training = kwargs["training"] if kwargs else None
            if not kwargs:
                if context is not None:
                    training = getattr(context, "training", None)
                if training is None:
                    training = note.default
            if context is not None and not note.alone:
                context.training = training
            try:
                if training is not None and note.trains:
                    return self.call(x, training=training)
                return self.call(x)
            except Exception as e:
                _explain(self, e, x, training if note.trains else None)
        finally:
            if entered:
                state["current_call_ctx"] = None

    return __call__


def _explain(layer: Any, e: Exception, x: Any, training: Any) -> None:
    """Raises the error of `call` again, in the form that Keras gives it."""

    @functools.wraps(layer.call)
    def fail(*_: Any, **__: Any) -> None:
        raise e

    name = f"{type(layer).__name__}.call()"
    given = {} if training is None else {"training": training}
    if hasattr(traceback_utils, "inject_argument_info_in_error"):  # Keras 3.16
        e = traceback_utils.inject_argument_info_in_error(e, layer.call, (x,), given, name)
    else:
        fail = traceback_utils.inject_argument_info_in_traceback(fail, name)
    traceback_utils.filter_traceback(fail)(x, **given)


def _set_attribute(long_way: Any) -> Any:
    @functools.wraps(long_way)
    def __setattr__(self: Any, name: str, value: Any) -> None:
        if name in _DEPENDS_ON:
            self.__dict__.pop("_note", None)
        long_way(self, name, value)

    return __setattr__


# ---- models ---------------------------------------------------------------------------------------


def _functional_call(long_way: Any) -> Any:
    @functools.wraps(long_way)
    def call(self: Any, inputs: Any, training: Any = None, mask: Any = None, **kwargs: Any) -> Any:
        plan = self.__dict__.get("_plan")
        if plan is None:
            plan = self.__dict__["_plan"] = _Plan(self)
        if (
            not plan.takes(inputs)
            or mask is not None
            or kwargs
            or getattr(inputs, "_keras_mask", None) is not None
        ):
            return long_way(self, inputs, training=training, mask=mask, **kwargs)
        return plan.run(inputs, training)

    return call


class _Plan:
    """The operations of a model of one input and one output, in order."""

    def __init__(self, model: Any) -> None:
        inputs = model._inputs_struct
        self.input = inputs[0] if isinstance(inputs, list) and len(inputs) == 1 else inputs
        single = isinstance(self.input, KerasTensor) and isinstance(
            model._outputs_struct, (KerasTensor, list)
        )
        self.usable = single and len(model._outputs) == 1 and not hasattr(model, "_nnx_op_mapping")
        self.steps: list[tuple] = []
        if not self.usable:
            return
        self.dtype, self.rank = self.input.dtype, len(self.input.shape)
        self.output = id(model._outputs[0])
        available = {id(self.input)}
        for depth in sorted(model._nodes_by_depth, reverse=True):
            for node in model._nodes_by_depth[depth]:
                if (
                    not node.operation
                    or node.is_input
                    or any(id(x) not in available for x in node.input_tensors)
                ):
                    continue
                outs = [id(x) for x in node.outputs]
                available.update(outs)
                trains = "training" in getattr(node.operation, "_call_context_args", ())
                self.steps.append((node.operation, node.arguments.fill_in, trains, outs))
        self.usable = self.output in available

    def __deepcopy__(self, memo: dict) -> None:
        return None

    def __reduce__(self) -> tuple:
        return type(None), ()

    def takes(self, x: Any) -> bool:
        return self.usable and type(x) is Tensor and len(x._dims) == self.rank and x.dtype.name == self.dtype

    def run(self, x: Any, training: Any) -> Any:
        values = {id(self.input): x}
        for operation, fill_in, trains, outs in self.steps:
            args, kwargs = fill_in(values)
            if trains and training is not None:
                kwargs["training"] = training
            y = operation(*args, **kwargs)
            if len(outs) == 1:
                values[outs[0]] = y if type(y) is Tensor else tree.flatten(y)[0]
            else:
                values.update(zip(outs, tree.flatten(y), strict=True))
        return values[self.output]


# ---- losses ---------------------------------------------------------------------------------------


def _loss_call(long_way: Any) -> Any:
    @functools.wraps(long_way)
    def __call__(self: Any, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        if (
            type(y_pred) is not Tensor
            or type(y_true) is not Tensor
            or sample_weight is not None
            or y_pred.dtype.name != self._dtype
            or self.reduction not in ("sum_over_batch_size", "mean", "sum")
            or type(self).call is not LossFunctionWrapper.call
            or getattr(y_pred, "_keras_mask", None) is not None
            or "_keras_mask_dict" in global_state.GLOBAL_STATE_TRACKER.__dict__
        ):
            return long_way(self, y_true, y_pred, sample_weight)
        y_true, y_pred = squeeze_or_expand_to_same_rank(convert_to_tensor(y_true, self._dtype), y_pred)
        losses = self.fn(y_true, y_pred, **self._fn_kwargs)
        dims = losses._dims
        if not dims or 0 in dims or None in dims or losses.dtype.name != self._dtype:
            return reduce_weighted_values(losses, reduction=self.reduction, dtype=self._dtype)
        total = tf.reduce_sum(losses)
        return total if self.reduction == "sum" else scale_loss_for_distribution(total / math.prod(dims))

    return __call__


# ---- symbols --------------------------------------------------------------------------------------


def _any_symbolic_tensors(args: Any = None, kwargs: Any = None, *, _leaves: Any = ()) -> bool:
    """Called at the start of every Keras op: a value of one of the usual types is not a nest."""
    for items in (args or (), kwargs.values() if kwargs else ()):
        for x in items:
            if type(x) in _leaves:
                continue
            if isinstance(x, KerasTensor):
                return True
            if tree.is_nested(x):
                for nested in tree.flatten(x):
                    if isinstance(nested, KerasTensor):
                        return True
    return False


def install() -> None:
    """Gives layers and models of the Keras that was imported the short ways."""
    Layer.__call__ = _layer_call(Layer.__call__)
    Layer.__setattr__ = _set_attribute(Layer.__setattr__)
    Functional.call = _functional_call(Functional.call)
    Loss.__call__ = _loss_call(Loss.__call__)
    # Many modules refer to this function by name, so its body is replaced.
    asked = keras_tensor.any_symbolic_tensors
    asked.__code__ = _any_symbolic_tensors.__code__
    plain = (Tensor, tf.Variable, Variable, np.ndarray, int, float, bool, str, type(None))
    asked.__kwdefaults__ = {"_leaves": frozenset(plain)}
