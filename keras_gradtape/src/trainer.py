"""Keras' training loop on a GradientTape: `train_step` as users know it, compiled by `tf.function`."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src import callbacks as callbacks_module
from keras.src import metrics as metrics_module
from keras.src import optimizers as optimizers_module
from keras.src import tree
from keras.src.backend import config
from keras.src.trainers import trainer as trainers
from keras.src.trainers.data_adapters import array_slicing, data_adapter_utils
from keras.src.utils import python_utils, traceback_utils

import gradtape as tf
from gradtape.backend import Function, users_level, with_autograph
from keras_gradtape.src import distribution_lib, replicas, workers
from keras_gradtape.src.batches import Batches
from keras_gradtape.src.ops.core import convert_to_numpy, convert_to_tensor, shape

Tensor = tf.Tensor


# Batch shapes that a step is traced for separately; after that it is traced once for all sizes.
_EXACT_TRACES = 3


class Step:
    """A training, test or prediction step: a function of the data of one batch.

    Unless the model runs eagerly, it is traced once for each kind of data. It is not part of copies and pickles of
    a model.
    """

    def __init__(self, step: Callable, eager: bool, jit_compile: bool = False) -> None:
        self.eager = eager
        self.python = step
        options: dict = {
            "name": getattr(step, "__name__", "step"), "autograph": False, "reduce_retracing": True,
            "jit_compile": jit_compile or None,
        }  # fmt: skip
        self.plain = Function(lambda *data: with_autograph(step)(data), **options)
        self.nested = Function(lambda data: with_autograph(step)(data), **options)
        self.plain._exact_traces = self.nested._exact_traces = _EXACT_TRACES

    def __call__(self, data: Any) -> Any:
        distribution = distribution_lib.current()
        if distribution is None or self.eager:
            return self._run(data)
        data = tree.map_structure(_as_tensor, data)
        with distribution_lib.on_mesh(distribution):
            results = self._run(distribution_lib.distributed_batch(distribution, data))
        return distribution_lib.gathered(results)

    def _run(self, data: Any) -> Any:
        if type(data) is tuple and all(type(t) is Tensor for t in data):
            function, args = self.plain, data
        else:
            data = tree.map_structure(_as_tensor, data)
            function, args = self.nested, (data,)
        return self.python(data) if self.eager else function(*args)

    def __deepcopy__(self, memo: dict) -> None:
        return None

    def __reduce__(self) -> tuple:
        return type(None), ()


def _as_tensor(x: Any) -> Any:
    return x if x is None or isinstance(x, tf.distribute.DistributedValues) else convert_to_tensor(x)


# Keras 3.15 calls it Trainer.
BaseTrainer: Any = trainers.BaseTrainer if hasattr(trainers, "BaseTrainer") else trainers.Trainer


class Trainer(BaseTrainer):
    """The base of Keras models that implements `fit`, `evaluate` and `predict`."""

    def __init__(self) -> None:
        super().__init__()
        self.train_function: Any = None
        self.test_function: Any = None
        self.predict_function: Any = None
        # As on TensorFlow, a model belongs to the strategy in whose scope it is created.
        self._distribute_strategy = tf.distribute.get_strategy() if tf.distribute.has_strategy() else None

    def _resolve_auto_jit_compile(self) -> bool:
        """`jit_compile="auto"`: XLA only if it is the engine anyway, so nothing has to be set."""
        return False

    @property
    def distribute_strategy(self) -> Any:
        return self._distribute_strategy or tf.distribute.get_strategy()

    def _aggregate_additional_loss(self, loss: Any) -> Any:
        return replicas.scale_loss_for_distribution(super()._aggregate_additional_loss(loss))

    # ---- one step -------------------------------------------------------------------------------

    def _forward(self, x: Any, training: bool) -> Any:
        return self(x, training=training) if self._call_has_training_arg else self(x)

    def _tracked_loss(self, x: Any, y: Any, y_pred: Any, sample_weight: Any, training: bool) -> Any:
        loss = self._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)
        count = shape(next(v for v in tree.flatten(x) if v is not None))[0]
        self._loss_tracker.update_state(replicas.unscale_loss_for_distribution(loss), sample_weight=count)
        return loss

    def train_step(self, data: Any) -> dict:
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            y_pred = self._forward(x, True)
            loss = self._tracked_loss(x, y, y_pred, sample_weight, True)
            if self.optimizer is not None:
                loss = self.optimizer.scale_loss(loss)
        weights = self.trainable_weights
        if weights:
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        else:
            warnings.warn("The model does not have any trainable weights.", stacklevel=users_level())
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def test_step(self, data: Any) -> dict:
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        y_pred = self._forward(x, False)
        self._tracked_loss(x, y, y_pred, sample_weight, False)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data: Any) -> Any:
        x, _, _ = data_adapter_utils.unpack_x_y_sample_weight(data)
        return self._forward(x, False)

    # ---- steps as functions -----------------------------------------------------------------------

    def _function(self, step: Callable, join: Callable[[list], Any]) -> Callable:
        """A function of batches (a list or an iterator): as many of them as one execution takes."""
        strategy, count = self.distribute_strategy, self.steps_per_execution
        if strategy.num_replicas_in_sync > 1:
            return self._distributed(strategy, step, join)
        compiled = Step(step, self.run_eagerly, self.jit_compile)

        def run(batches: Any) -> Any:
            if count == 1:
                return compiled(next(iter(batches)))
            return join([compiled(batch) for batch in itertools.islice(batches, count)])

        return run

    def _distributed(self, strategy: Any, step: Callable, join: Callable[[list], Any]) -> Callable:
        """The same in the replicas of a strategy, each with its part of a batch."""
        reduction = "concat" if join is _concatenated else "mean"
        compiled = Step(replicas.in_replicas(strategy, with_autograph(step), reduction), self.run_eagerly)
        built: list[bool] = []

        def one(data: Any) -> Any:
            if not built:
                with strategy.scope():
                    self._symbolic_build(data_batch=replicas.whole_batch(data))
                built.append(True)
            out = compiled(replicas.parts_of(strategy, data))
            return replicas.gathered(strategy, out) if reduction == "concat" else out

        def run(batches: Any) -> Any:
            outs = [one(batch) for batch in itertools.islice(batches, self.steps_per_execution)]
            return outs[0] if len(outs) == 1 else join(outs)

        return run

    def make_train_function(self, force: bool = False) -> Any:
        if self.train_function is None or force:
            self.train_function = self._function(self.train_step, lambda done: done[-1])
        return self.train_function

    def make_test_function(self, force: bool = False) -> Any:
        if self.test_function is None or force:
            self.test_function = self._function(self.test_step, lambda done: done[-1])
        return self.test_function

    def make_predict_function(self, force: bool = False) -> Any:
        if self.predict_function is None or force:
            self.predict_function = self._function(self.predict_step, _concatenated)
        return self.predict_function

    # ---- loops ------------------------------------------------------------------------------------

    def _epochs(self, **arguments: Any) -> Batches:
        group = self.distribute_strategy._group
        return Batches(steps_per_execution=self.steps_per_execution, group=group, **arguments)

    def _callbacks(self, given: Any, verbose: Any, batches: Batches, epochs: int = 1, **more: Any) -> Any:
        if isinstance(given, callbacks_module.CallbackList):
            return given
        return callbacks_module.CallbackList(
            given,
            add_progbar=verbose != 0,
            verbose=verbose,
            epochs=epochs,
            steps=batches.num_batches,
            model=self,
            **more,
        )

    @traceback_utils.filter_traceback
    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: Any = 1,
    ) -> Any:
        self._assert_compile_called("fit")
        limit = config.max_epochs()
        if limit and limit < epochs:
            warnings.warn(f"Limiting epochs to {limit}", stacklevel=users_level())
            epochs = limit
        self._eval_epoch_iterator = None
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = array_slicing.train_validation_split(
                (x, y, sample_weight), validation_split=validation_split
            )
        batches = self._epochs(
            x=x,
            y=y,
            sample_weight=sample_weight,
            batch_size=batch_size,
            steps_per_epoch=steps_per_epoch,
            shuffle=shuffle,
            class_weight=class_weight,
        )
        batches.reset()
        callbacks = self._callbacks(callbacks, verbose, batches, epochs, add_history=True)
        workers.prepare(callbacks, self.distribute_strategy)
        self.stop_training = False
        self.make_train_function()
        callbacks.on_train_begin()
        workers.go_on_together(self, callbacks, self.distribute_strategy)
        begins, ends = _batch_hooks(callbacks, "train")
        training_logs: dict = {}
        logs: Any = {}
        for epoch in range(self._initial_epoch or initial_epoch, epochs):
            self.reset_metrics()
            callbacks.on_epoch_begin(epoch)
            for begin, end, data in batches:
                begins(begin)
                logs = self.train_function(data)
                ends(end, logs)
                if self.stop_training:
                    break
            epoch_logs = dict(self._get_metrics_result_or_logs(logs))
            if validation_data is not None and self._should_eval(epoch, validation_freq):
                size = validation_batch_size or batch_size
                epoch_logs.update(self._validated(validation_data, size, validation_steps, callbacks))
            callbacks.on_epoch_end(epoch, epoch_logs)
            training_logs = epoch_logs
            if self.stop_training:
                break
        if isinstance(self.optimizer, optimizers_module.Optimizer) and epochs > 0:
            self.optimizer.finalize_variable_values(self.trainable_weights)
        self._eval_epoch_iterator = None
        callbacks.on_train_end(logs=training_logs)
        return self.history

    def _validated(self, data: Any, batch_size: int | None, steps: int | None, callbacks: Any) -> dict:
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        arguments = {"x": x, "y": y, "sample_weight": sample_weight, "batch_size": batch_size}
        if self._eval_epoch_iterator is None:
            self._eval_epoch_iterator = self._epochs(steps_per_epoch=steps, shuffle=False, **arguments)
        logs = self.evaluate(
            steps=steps, callbacks=callbacks, return_dict=True, _use_cached_eval_dataset=True, **arguments
        )
        return {f"val_{name}": value for name, value in logs.items()}

    @traceback_utils.filter_traceback
    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        return_dict: bool = False,
        **kwargs: Any,
    ) -> Any:
        self._assert_compile_called("evaluate")
        cached = kwargs.pop("_use_cached_eval_dataset", False)
        if kwargs:
            raise ValueError(f"Arguments not recognized: {kwargs}")
        batches = self._eval_epoch_iterator if cached else self._epochs(
            x=x, y=y, sample_weight=sample_weight, batch_size=batch_size, steps_per_epoch=steps, shuffle=False
        )  # fmt: skip
        batches.reset()
        callbacks = self._callbacks(callbacks, verbose, batches)
        self.make_test_function()
        self.stop_evaluating = False
        callbacks.on_test_begin()
        begins, ends = _batch_hooks(callbacks, "test")
        logs: Any = {}
        self.reset_metrics()
        for begin, end, data in batches:
            begins(begin)
            logs = self.test_function(data)
            ends(end, logs)
            if self.stop_evaluating:
                break
        logs = python_utils.pythonify_logs(self._get_metrics_result_or_logs(logs))
        callbacks.on_test_end(logs)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    @traceback_utils.filter_traceback
    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: Any = "auto",
        steps: int | None = None,
        callbacks: Any = None,
    ) -> Any:
        batches = self._epochs(x=x, batch_size=batch_size, steps_per_epoch=steps, shuffle=False)
        callbacks = self._callbacks(callbacks, verbose, batches)
        self.make_predict_function()
        self.stop_predicting = False
        callbacks.on_predict_begin()
        begins, ends = _batch_hooks(callbacks, "predict")
        done: list = []
        for begin, end, data in batches:
            begins(begin)
            done.append(self.predict_function(data))
            ends(end, {"outputs": done[-1]})
            if self.stop_predicting:
                break
        callbacks.on_predict_end()
        if not done:
            raise ValueError(
                f"predict: there is no batch to predict; expected at least one row; got x={x!r}."
            )
        arrays = [tree.map_structure(convert_to_numpy, batch) for batch in done]
        return tree.map_structure(lambda *parts: np.concatenate(parts), *arrays)

    # ---- single batches -----------------------------------------------------------------------------

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        return_dict: bool = False,
    ) -> Any:
        self._assert_compile_called("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError(
                    "Arguments `sample_weight` and `class_weight` cannot be specified at the same time. "
                    f"Received: sample_weight={sample_weight}, class_weight={class_weight}"
                )
            sample_weight = data_adapter_utils.class_weight_to_sample_weights(y, class_weight)
        self.make_train_function()
        self.reset_metrics()
        return self._logs(self.train_function([(x, y, sample_weight)]), return_dict)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False
    ) -> Any:
        self._assert_compile_called("test_on_batch")
        self.make_test_function()
        self.reset_metrics()
        return self._logs(self.test_function([(x, y, sample_weight)]), return_dict)

    def _logs(self, logs: Any, return_dict: bool) -> Any:
        logs = python_utils.pythonify_logs(logs)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    def predict_on_batch(self, x: Any) -> Any:
        self.make_predict_function()
        return tree.map_structure(convert_to_numpy, self.predict_function([(x,)]))

    # ---- as in Keras 2 ------------------------------------------------------------------------------

    @property
    def compiled_metrics(self) -> CompiledMetrics:
        return CompiledMetrics(self)

    def compiled_loss(
        self, y: Any, y_pred: Any, sample_weight: Any = None, regularization_losses: Any = None
    ) -> Any:
        return self.compute_loss(x=None, y=y, y_pred=y_pred, sample_weight=sample_weight)

    def loss(self, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        return self.compiled_loss(y, y_pred, sample_weight)


class CompiledMetrics:
    """`self.compiled_metrics.update_state(y, y_pred)` in a `train_step` written for Keras 2."""

    def __init__(self, model: Any) -> None:
        self.metrics = model.metrics

    def update_state(self, y: Any, y_pred: Any, sample_weight: Any = None) -> None:
        for metric in self.metrics:
            if isinstance(metric, metrics_module.Mean):
                metric.update_state(y_pred, sample_weight=sample_weight)
            else:
                metric.update_state(y, y_pred, sample_weight=sample_weight)


def _batch_hooks(callbacks: Any, kind: str) -> tuple[Callable, Callable]:
    """The functions to call around each batch: none if no callback listens."""

    def listens(name: str) -> bool:
        if type(callbacks) is not callbacks_module.CallbackList:
            return True
        names = [f"on_{kind}_batch_{name}", *([f"on_batch_{name}"] if kind == "train" else [])]
        return any(not python_utils.is_default(getattr(c, n)) for c in callbacks.callbacks for n in names)

    return (
        getattr(callbacks, f"on_{kind}_batch_begin") if listens("begin") else _nothing,
        getattr(callbacks, f"on_{kind}_batch_end") if listens("end") else _nothing,
    )


def _nothing(*_: Any) -> None:
    pass


def _concatenated(done: list) -> Any:
    if len(done) == 1:
        return done[0]
    return tree.map_structure(lambda *parts: tf.concat(list(parts), 0), *done)
