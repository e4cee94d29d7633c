"""keras-tuner as its users write: searches over a small model, by each of its oracles, and the files they write."""

import json

import keras
import keras_tuner
import numpy as np
import pytest
import tensorflow as tf

RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 4)).astype("float32")
Y = (X @ np.array([[1.0], [-2.0], [0.5], [0.0]], "float32") + 0.1).astype("float32")

# What TensorFlow 2.21 finds.
RANDOM = [1.8268323, 3.6134286, 4.7826591, 4.8872209]
BEST_RANDOM = {
    "layers": 1, "units_0": 8, "activation": "relu", "dropout": False, "rate": 0.08520876742029873, "units_1": 8,
}  # fmt: skip
HYPERBAND = [0.3833272, 0.6031895, 0.7201951]
BAYESIAN = 1.1124876
GRID = [5.4323225, 0.0917987, 5.9491367, 0.434747]
OWN = [0.0104742, 0.172185, 3.1604788]


@pytest.fixture(autouse=True)
def seeded():
    keras.utils.set_random_seed(3)


def build_model(hp):
    model = keras.Sequential([keras.Input((4,))])
    for i in range(hp.Int("layers", 1, 2)):
        model.add(
            keras.layers.Dense(hp.Int(f"units_{i}", 4, 12, step=4), hp.Choice("activation", ["relu", "tanh"]))
        )
    if hp.Boolean("dropout"):
        model.add(keras.layers.Dropout(0.1, seed=1))
    model.add(keras.layers.Dense(1))
    model.compile(keras.optimizers.Adam(hp.Float("rate", 1e-3, 1e-1, sampling="log")), "mse", metrics=["mae"])
    return model


def search(tuner, epochs=2):
    tuner.search(X[:48], Y[:48], epochs=epochs, validation_data=(X[48:], Y[48:]), verbose=0, batch_size=16)
    return tuner


def scores(tuner):
    return [t.score for t in tuner.oracle.get_best_trials(20)]


def test_backend_is_tensorflow():
    assert keras.backend.backend() == "tensorflow"
    assert keras_tuner.src.backend.config.backend() == "tensorflow"


def test_random_search(tmp_path):
    tuner = search(
        keras_tuner.RandomSearch(
            build_model, "val_loss", max_trials=4, seed=1, directory=tmp_path, project_name="r"
        )
    )
    found = scores(tuner)
    np.testing.assert_allclose(found, RANDOM, rtol=1e-4)
    assert tuner.get_best_hyperparameters()[0].values == BEST_RANDOM
    # The best model has the weights of its best epoch.
    best = tuner.get_best_models()[0]
    loss, mae = best.evaluate(X[48:], Y[48:], verbose=0)
    assert loss == pytest.approx(found[0], rel=1e-4)
    np.testing.assert_allclose(mae, np.abs(best.predict(X[48:], verbose=0) - Y[48:]).mean(), rtol=1e-5)
    trial = json.loads(next(tmp_path.glob("r/trial_0/trial.json")).read_text())
    assert trial["status"] == "COMPLETED"


def test_a_search_continues_where_it_stopped(tmp_path):
    def made(overwrite=False):
        return keras_tuner.RandomSearch(
            build_model,
            "val_loss",
            max_trials=2,
            seed=1,
            directory=tmp_path,
            project_name="g",
            overwrite=overwrite,
        )

    before = scores(search(made(), epochs=1))
    again = made()
    assert scores(again) == before
    search(again, epochs=1)  # nothing is left to try
    assert scores(again) == before
    assert scores(made(overwrite=True)) == []


def test_hyperband(tmp_path):
    tuner = keras_tuner.Hyperband(
        build_model,
        keras_tuner.Objective("val_mae", "min"),
        max_epochs=4,
        factor=2,
        seed=2,
        directory=tmp_path,
    )
    search(tuner)
    trials = tuner.oracle.trials.values()
    assert {t.hyperparameters.values["tuner/epochs"] for t in trials} == {1, 2, 4}
    # Later rounds start from the weights of earlier ones.
    later = [t for t in trials if "tuner/trial_id" in t.hyperparameters.values]
    assert later and all(t.hyperparameters.values["tuner/trial_id"] in tuner.oracle.trials for t in later)
    np.testing.assert_allclose(scores(tuner)[:3], HYPERBAND, rtol=1e-4)


def test_bayesian_optimization(tmp_path):
    tuner = search(
        keras_tuner.BayesianOptimization(
            build_model, "val_loss", max_trials=5, num_initial_points=3, seed=4, directory=tmp_path
        )
    )
    found = scores(tuner)
    assert len(found) == 5 and found == sorted(found)
    np.testing.assert_allclose(found[0], BAYESIAN, rtol=1e-4)


def test_grid_search(tmp_path):
    def build(hp):
        keras.utils.set_random_seed(0)
        model = keras.Sequential(
            [keras.Input((4,)), keras.layers.Dense(hp.Choice("units", [2, 4])), keras.layers.Dense(1)]
        )
        model.compile(keras.optimizers.SGD(hp.Choice("rate", [0.01, 0.1])), "mse")
        return model

    tuner = search(keras_tuner.GridSearch(build, "val_loss", directory=tmp_path))
    trials = {tuple(t.hyperparameters.values.values()): t.score for t in tuner.oracle.trials.values()}
    np.testing.assert_allclose([trials[k] for k in sorted(trials)], GRID, rtol=1e-4)


def test_hypermodel_with_fit(tmp_path):
    class Hyper(keras_tuner.HyperModel):
        def build(self, hp):
            return build_model(hp)

        def fit(self, hp, model, *args, **kwargs):
            return model.fit(*args, batch_size=hp.Choice("batch", [8, 16]), **kwargs)

    tuner = keras_tuner.RandomSearch(Hyper(), "val_loss", max_trials=2, seed=5, directory=tmp_path)
    tuner.search(X[:48], Y[:48], validation_data=(X[48:], Y[48:]), epochs=1, verbose=0)
    assert {h.get("batch") for h in tuner.get_best_hyperparameters(2)} <= {8, 16}


def test_loop_of_ones_own(tmp_path):
    """`run_trial` with a GradientTape."""

    class Tuner(keras_tuner.RandomSearch):
        def run_trial(self, trial, x, y):
            w = tf.Variable(tf.zeros([4, 1]))
            rate = trial.hyperparameters.Float("rate", 0.01, 0.3)

            @tf.function
            def step():
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean((x @ w - y) ** 2)
                w.assign_sub(rate * tape.gradient(loss, w))
                return loss

            for _ in range(10):
                loss = step()
            return float(loss)

    tuner = Tuner(objective=keras_tuner.Objective("default_objective", "min"), max_trials=3, seed=6, directory=tmp_path,
                  hyperparameters=keras_tuner.HyperParameters())  # fmt: skip
    tuner.search(tf.constant(X), tf.constant(Y))
    np.testing.assert_allclose(scores(tuner), OWN, rtol=1e-4)


def test_datasets_and_callbacks(tmp_path):
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)
    tuner = keras_tuner.RandomSearch(build_model, "val_loss", max_trials=2, seed=1, directory=tmp_path)
    stop = keras.callbacks.EarlyStopping(patience=1)
    tuner.search(data.take(3), validation_data=data.skip(3), epochs=3, callbacks=[stop], verbose=0)
    assert all(np.isfinite(scores(tuner)))
    assert stop.stopped_epoch == 0  # each trial has a copy of its own


def test_image_augmentation():
    space = keras_tuner.HyperParameters()
    model = keras_tuner.applications.HyperImageAugment(input_shape=(8, 8, 3)).build(space)
    images = RNG.uniform(0, 255, size=(2, 8, 8, 3)).astype("float32")
    out = np.asarray(model(images))
    assert out.shape == images.shape and np.isfinite(out).all() and "augment_layers" in space.values
