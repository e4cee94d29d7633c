"""model.compile / fit / evaluate / predict under a strategy: the numbers of one device with the global batch."""

import numpy as np


def program(tf, strategy):
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((48, 6)).astype("f"), rng.integers(0, 3, 48)

    def train(scope):
        with scope:
            model = tf.keras.Sequential(
                [tf.keras.Input((6,)), tf.keras.layers.Dense(8, "tanh"), tf.keras.layers.Dense(3)]
            )
            draw = np.random.default_rng(2)
            model.set_weights([draw.standard_normal(w.shape).astype("f") * 0.3 for w in model.get_weights()])
            model.compile(
                tf.keras.optimizers.Adam(0.01),
                tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                metrics=["accuracy"],
            )
        history = model.fit(X, Y, batch_size=16, epochs=3, shuffle=False, verbose=0).history
        return {
            "history": history, "evaluate": model.evaluate(X, Y, batch_size=16, verbose=0),
            "predict": model.predict(X[:5], verbose=0), "weights": model.get_weights()[-1],
            "iterations": int(np.asarray(model.optimizer.iterations)),
        }  # fmt: skip

    import contextlib

    return {"strategy": train(strategy.scope()), "alone": train(contextlib.nullcontext())}
