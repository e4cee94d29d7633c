"""Models of Keras 2: arguments of `compile` and `fit` that are gone, generators, `metrics_names`."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import numpy as np
from keras.src.layers.core.input_layer import InputLayer
from keras.src.models.functional import Functional
from keras.src.models.model import Model
from keras.src.models.sequential import Sequential
from keras.src.trainers import compile_utils

from keras_gradtape.src.trainer import BaseTrainer, Trainer

_OF_QUEUES = frozenset(("workers", "use_multiprocessing", "max_queue_size"))
_OF_COMPILE = frozenset(
    (
        "experimental_run_tf_function", "sample_weight_mode", "target_tensors", "distribute",
        "pss_evaluation_shards", "cloning",
    )
)  # fmt: skip


def install(keras: ModuleType) -> None:
    BaseTrainer.compile = _compile(BaseTrainer.compile)
    for name in ("fit", "evaluate", "predict"):
        setattr(Trainer, name, _without(getattr(Trainer, name), _OF_QUEUES))
    Trainer.fit_generator = _generator("fit")
    Trainer.evaluate_generator = _generator("evaluate")
    Trainer.predict_generator = _generator("predict")
    for name in ("train_on_batch", "test_on_batch"):
        setattr(Trainer, name, _keeping_metrics(getattr(Trainer, name)))
    BaseTrainer.metrics_names = property(_metrics_names)
    Model.state_updates = property(lambda self: [])
    Functional._maybe_warn_inputs_struct_mismatch = _of_several(Functional._maybe_warn_inputs_struct_mismatch)
    Sequential.input = property(lambda self: _only(self.inputs))
    Sequential.output = property(lambda self: _only(self.outputs))
    Sequential.add = _with_batch_size(Sequential.add)
    Sequential.predict_classes = _predict_classes
    Sequential.predict_proba = lambda self, x, **options: self.predict(x, **options)


def _of_several(check: Any) -> Any:
    """`Model([x], y)(x)`: with one input the meaning is clear, so there is no warning."""

    @functools.wraps(check)
    def called(self: Any, inputs: Any, raise_exception: bool = False) -> None:
        if raise_exception or len(self._inputs) > 1:
            check(self, inputs, raise_exception=raise_exception)

    return called


def _only(tensors: list) -> Any:
    """Of a model that has inputs of its own, whether it was called or not."""
    return tensors[0] if len(tensors) == 1 else tensors


def _with_batch_size(add: Any) -> Any:
    """`batch_input_shape` of a first layer gives the batch size, which stateful layers need."""

    @functools.wraps(add)
    def called(self: Any, layer: Any, rebuild: bool = True) -> None:
        if not self._layers and getattr(layer, "_batch_size_arg", None) is not None:
            shape = (layer._batch_size_arg, *layer._input_shape_arg)
            add(self, InputLayer(batch_shape=shape), rebuild=False)
        add(self, layer, rebuild=rebuild)

    return called


def _without(method: Any, gone: frozenset) -> Any:
    @functools.wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(self, *args, **{k: v for k, v in kwargs.items() if k not in gone})

    return called


def _compile(compile: Any) -> Any:
    @functools.wraps(compile)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        steps = kwargs.pop("experimental_steps_per_execution", None)
        if steps is not None:
            kwargs["steps_per_execution"] = steps
        kwargs = {k: v for k, v in kwargs.items() if k not in _OF_COMPILE}
        if kwargs.get("run_eagerly", False) is None:
            kwargs["run_eagerly"] = False
        return compile(self, *args, **kwargs)

    return called


def _generator(name: str) -> Any:
    def called(self: Any, generator: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self, name)(generator, *args, **kwargs)

    called.__doc__ = f"`{name}`, which takes generators itself."
    return called


def _keeping_metrics(method: Any) -> Any:
    """`reset_metrics=False` went on with the metrics of the batches before."""

    @functools.wraps(method)
    def called(self: Any, *args: Any, reset_metrics: bool = True, **kwargs: Any) -> Any:
        if reset_metrics:
            return method(self, *args, **kwargs)
        self.__dict__["reset_metrics"] = lambda: None
        try:
            return method(self, *args, **kwargs)
        finally:
            del self.__dict__["reset_metrics"]

    return called


def _metrics_names(self: Any) -> list[str]:
    """The names of what `evaluate` returns, in its order."""
    names: list[str] = []
    for metric in self.metrics:
        if isinstance(metric, compile_utils.CompileMetrics):
            names += [m.name for m in metric.metrics]
        else:
            names.append(metric.name)
    return names


def _predict_classes(self: Any, x: Any, batch_size: int = 32, verbose: int = 0) -> np.ndarray:
    """The class with the largest probability; for a single output whether it is over one half."""
    p = self.predict(x, batch_size=batch_size, verbose=verbose)
    return p.argmax(-1) if p.shape[-1] > 1 else (p > 0.5).astype("int32")
