"""Callbacks of Keras on gradtape, and compiled steps with code that needs concrete values."""

from __future__ import annotations

import csv
import logging

import numpy as np
import pytest

import gradtape as tf
import keras_gradtape  # noqa: F401  before Keras

keras = pytest.importorskip("keras")
layers = keras.layers
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
_rng = np.random.default_rng(2)
X = _rng.normal(size=(32, 4)).astype("float32")
Y = X[:, :1] * 2 + 1


def _model(rate=0.05):
    keras.utils.set_random_seed(5)
    model = keras.Sequential([layers.Input((4,)), layers.Dense(3, "tanh", name="first"), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(rate, momentum=0.9), "mse")
    return model


# ---- TensorBoard --------------------------------------------------------------------------------


def _tags(folder):
    """The tags that were written in a folder, with their counts."""
    found: dict[str, int] = {}
    for path in folder.glob("events*"):
        for record in tf.data.TFRecordDataset(str(path)):
            for name in (
                b"batch_loss",
                b"epoch_loss",
                b"epoch_learning_rate",
                b"largest",
                b"keras",
                b"first/kernel/histogram",
            ):
                found[name.decode()] = found.get(name.decode(), 0) + (name in record.numpy())
    return {name: count for name, count in found.items() if count}


def test_tensorboard_without_tensorflow(tmp_path):
    board = keras.callbacks.TensorBoard(tmp_path, histogram_freq=1, update_freq=1, write_images=True)
    _model().fit(X, Y, batch_size=8, epochs=2, validation_data=(X, Y), callbacks=[board], verbose=0)
    written = _tags(tmp_path / "train")
    assert written["batch_loss"] == 8
    assert written["epoch_loss"] == written["epoch_learning_rate"] == 2
    assert written["first/kernel/histogram"] == 2
    assert written["keras"] >= 1
    assert _tags(tmp_path / "validation")["epoch_loss"] == 2


def test_summaries_from_a_compiled_step(tmp_path):
    class Seen(layers.Layer):
        def call(self, x):
            tf.summary.scalar("largest", tf.reduce_max(x))
            return x

    model = keras.Sequential([layers.Input((4,)), Seen(), layers.Dense(1)])
    model.compile("sgd", "mse")
    board = keras.callbacks.TensorBoard(tmp_path, update_freq=1, write_graph=False)
    model.fit(X, Y, batch_size=8, validation_data=(X, Y), callbacks=[board], verbose=0)
    assert _tags(tmp_path / "train")["largest"] == 4
    assert _tags(tmp_path / "validation")["largest"] == 4


# ---- others -------------------------------------------------------------------------------------


def test_checkpoints_early_stopping_rates_and_logs(tmp_path):
    pytest.importorskip("h5py", reason="without it, the first checkpoint would leave the log open")
    model = _model()
    callbacks = [
        keras.callbacks.ModelCheckpoint(tmp_path / "best.keras", monitor="loss", save_best_only=True),
        keras.callbacks.ModelCheckpoint(tmp_path / "at{epoch}.weights.h5", save_weights_only=True),
        keras.callbacks.EarlyStopping("loss", min_delta=1e9, patience=2, restore_best_weights=True),
        keras.callbacks.ReduceLROnPlateau("loss", min_delta=1e9, patience=1, factor=0.5),
        keras.callbacks.CSVLogger(tmp_path / "log.csv"),
        keras.callbacks.TerminateOnNaN(),
    ]
    history = model.fit(X, Y, epochs=10, callbacks=callbacks, verbose=0)
    assert history.epoch == [0, 1, 2]
    assert float(model.optimizer.learning_rate) == pytest.approx(0.0125)
    with open(tmp_path / "log.csv") as f:
        assert [float(row["loss"]) for row in csv.DictReader(f)] == pytest.approx(history.history["loss"])
    first = _model()
    first.load_weights(tmp_path / "at1.weights.h5")
    np.testing.assert_array_equal(
        first.predict(X, verbose=0), model.predict(X, verbose=0)
    )  # the best was the first
    assert (
        keras.models.load_model(tmp_path / "best.keras").evaluate(X, Y, verbose=0)
        < history.history["loss"][0]
    )


def test_learning_rates_by_a_function_and_changed_between_steps():
    rates = []

    class Watch(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            rates.append(float(self.model.optimizer.learning_rate))
            self.model.optimizer.learning_rate = rates[-1] / 2

    model = _model()
    before = model.layers[1].bias.numpy()
    scheduler = keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 / (epoch + 1))
    model.fit(X, Y, batch_size=16, epochs=2, callbacks=[scheduler, Watch()], verbose=0)
    assert rates == pytest.approx([0.1, 0.05, 0.05, 0.025])
    assert not np.array_equal(model.layers[1].bias.numpy(), before)


def test_training_continues_where_it_was_interrupted(tmp_path):
    class Stop(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 2:
                raise RuntimeError("stopped")

    def fit(model, *more):
        backup = keras.callbacks.BackupAndRestore(tmp_path / "backup", delete_checkpoint=False)
        return model.fit(X, Y, epochs=4, shuffle=False, callbacks=[backup, *more], verbose=0)

    with pytest.raises(RuntimeError, match="stopped"):
        fit(_model(), Stop())
    again = _model(0.3)  # its weights are replaced by the restored ones
    assert fit(again).epoch == [2, 3]
    whole = _model()
    whole.fit(X, Y, epochs=4, shuffle=False, verbose=0)
    np.testing.assert_array_equal(again.predict(X, verbose=0), whole.predict(X, verbose=0))


def test_averages_of_weights_are_swapped_in_for_evaluation():
    model = _model()
    model.compile(keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5), "mse")
    seen = {}

    class Look(keras.callbacks.Callback):
        def on_test_begin(self, logs=None):
            seen["test"] = self.model.layers[0].kernel.numpy()

        def on_epoch_end(self, epoch, logs=None):
            seen["epoch"] = self.model.layers[0].kernel.numpy()

    callbacks = [keras.callbacks.SwapEMAWeights(), Look()]
    model.fit(X, Y, batch_size=8, validation_data=(X, Y), callbacks=callbacks, verbose=0)
    assert not np.array_equal(seen["test"], seen["epoch"])


# ---- code that needs values -- ------------------------------------------------------------------


def test_a_metric_that_reads_values_makes_the_step_run_eagerly(caplog):
    class Median(keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="median")
            self.last = self.add_weight(name="last", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.last.assign(float(np.median(keras.ops.convert_to_numpy(y_pred))))

        def result(self):
            return self.last.value

    model = _model()
    model.compile("sgd", "mse", metrics=[Median()])
    with caplog.at_level(logging.WARNING, "gradtape"):
        history = model.fit(X, Y, batch_size=32, epochs=2, verbose=0).history
    assert "runs eagerly" in caplog.text
    assert "convert_to_numpy" in caplog.text
    assert history["median"][0] != history["median"][1]
    assert history["loss"][1] < history["loss"][0]
