"""Shared by the programs with Keras' optimizers: the loop of TensorFlow's guide, with metrics."""

import numpy as np


def trained(tf, strategy, make):
    """Losses, variables and metrics after two epochs with the optimizer that `make()` returns."""
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal((22, 5)).astype("f"), rng.standard_normal((22, 1)).astype("f")
    size = 8
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(size)
    with strategy.scope():
        w, b = tf.Variable(np.ones((5, 1), "f") / 5), tf.Variable(np.zeros(1, "f"))
        optimizer = make()
        optimizer.build([w, b])
        metric = tf.keras.metrics.MeanSquaredError()
        mean = tf.keras.metrics.Mean()

    def step(x, y):
        with tf.GradientTape() as tape:
            p = tf.matmul(x, w) + b
            loss = tf.nn.compute_average_loss(tf.reduce_sum((p - y) ** 2, -1), global_batch_size=size)
        optimizer.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b], strict=True))
        metric.update_state(y, p)
        mean.update_state(loss)
        return loss

    @tf.function
    def distributed(x, y):
        return strategy.reduce("SUM", strategy.run(step, args=(x, y)), axis=None)

    losses = []
    for _ in range(2):
        metric.reset_state()
        for x, y in strategy.experimental_distribute_dataset(data):
            losses.append(distributed(x, y).numpy())
    return {
        "losses": losses, "w": w.numpy(), "b": b.numpy(), "iterations": int(np.asarray(optimizer.iterations)),
        "metric": float(np.asarray(metric.result())), "mean": float(np.asarray(mean.result())),
    }  # fmt: skip
