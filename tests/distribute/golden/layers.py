"""Shared by the programs with Keras models: one model, trained with parts of some size."""

import numpy as np


def trained(tf, strategy, layers, size, weights=False):
    """The results of `fit`, `evaluate` and `predict` under a strategy."""
    rng = np.random.default_rng(5)
    X, Y = rng.standard_normal((27, 4)).astype("f"), rng.standard_normal((27, 1)).astype("f")
    W = rng.uniform(0.5, 1.5, 27).astype("f")
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input((4,)), *layers, tf.keras.layers.Dense(1)])
        draw = np.random.default_rng(2)
        model.set_weights(
            [np.abs(draw.standard_normal(w.shape)).astype("f") * 0.3 for w in model.get_weights()]
        )
        model.compile(
            tf.keras.optimizers.SGD(0.1, momentum=0.5), "mse", metrics=["mae"], weighted_metrics=["mse"]
        )
    more = {"sample_weight": W} if weights else {}
    history = model.fit(X, Y, batch_size=size, epochs=2, shuffle=False, verbose=0, **more).history
    return {
        "history": history, "evaluate": model.evaluate(X, Y, batch_size=size, verbose=0),
        "predict": model.predict(X[:5], batch_size=3, verbose=0).tolist(),
        "weights": [w.tolist() for w in model.get_weights()],
    }  # fmt: skip
