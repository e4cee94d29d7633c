"""Losses and metrics: `reset_states`, `Reduction.AUTO`, lists as targets, weights named first."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from keras.src.losses import loss as loss_module
from keras.src.metrics import metric as metric_module

from keras_gradtape.src.batches import _numbers_as_array

Loss, Metric = loss_module.Loss, metric_module.Metric


def install(keras: ModuleType) -> None:
    standardize, call = loss_module.standardize_reduction, Loss.__call__

    def standardize_reduction(reduction: Any) -> Any:
        return standardize("sum_over_batch_size" if reduction == "auto" else reduction)

    loss_module.standardize_reduction = standardize_reduction

    @functools.wraps(call)
    def with_lists(self: Any, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        return call(
            self, _numbers_as_array(y_true), _numbers_as_array(y_pred), _numbers_as_array(sample_weight)
        )

    Loss.__call__ = with_lists
    Metric.reset_states = lambda self: self.reset_state()
    for name in ("add_weight", "add_variable"):
        setattr(Metric, name, name_first(getattr(Metric, name)))


def name_first(method: Any) -> Any:
    """`add_weight("kernel", shape)` of Keras 2 as `add_weight(shape=shape, name="kernel")`."""
    gone = ("use_resource", "partitioner", "getter", "collections", "experimental_autocast", "caching_device")

    @functools.wraps(method)
    def add(self: Any, *args: Any, **kwargs: Any) -> Any:
        if args and (isinstance(args[0], str) or (args[0] is None and len(args) > 1)):
            old = ("name", "shape", "dtype", "initializer", "regularizer", "trainable", "constraint")
            if isinstance(self, Metric):
                old = ("name", "shape", "aggregation", "synchronization", "initializer", "dtype")
            kwargs = {**dict(zip(old, args, strict=False)), **kwargs}
            args = ()
        for name in (*gone, *(("synchronization", "aggregation") if isinstance(self, Metric) else ())):
            kwargs.pop(name, None)
        if kwargs.get("synchronization", self) is not self or kwargs.get("aggregation", self) is not self:
            kwargs.pop("synchronization", None)
            kwargs.pop("aggregation", None)
        if (
            "shape" in kwargs
            and kwargs["shape"] is not None
            and not isinstance(kwargs["shape"], (list, tuple))
        ):
            shape = kwargs["shape"]
            kwargs["shape"] = (shape,) if isinstance(shape, int) else tuple(shape)
        return method(self, *args, **kwargs)

    return add
