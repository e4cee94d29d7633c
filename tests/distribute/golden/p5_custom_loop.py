"""The loop of TensorFlow's guide: compute_average_loss, gradients, momentum by hand, reduce SUM; 2 epochs.

The last batch is smaller than the others (6 of 8), and still divided by 8.
"""

import numpy as np


def program(tf, strategy):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((22, 5)).astype("f"), rng.standard_normal((22, 1)).astype("f")
    size = 8
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(size)
    with strategy.scope():
        w, b = tf.Variable(np.ones((5, 1), "f") / 5), tf.Variable(np.zeros(1, "f"))
        m = [tf.Variable(tf.zeros_like(v)) for v in (w, b)]

    def step(x, y):
        with tf.GradientTape() as tape:
            each = tf.reduce_sum((tf.matmul(x, w) + b - y) ** 2, -1)
            loss = tf.nn.compute_average_loss(each, global_batch_size=size)
        grads = tape.gradient(loss, [w, b])
        grads = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, grads)

        def update(strategy, grads):
            for v, slot, g in zip((w, b), m, grads, strict=True):
                strategy.extended.update(slot, lambda s, g: s.assign(0.9 * s + g), args=(g,))
                strategy.extended.update(v, lambda v, s: v.assign_sub(0.05 * s), args=(slot,))

        tf.distribute.get_replica_context().merge_call(update, args=(grads,))
        return loss

    @tf.function
    def distributed(x, y):
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, args=(x, y)), axis=None)

    losses = [
        distributed(x, y).numpy() for _ in range(2) for x, y in strategy.experimental_distribute_dataset(data)
    ]
    return {
        "losses": losses,
        "w": w.numpy(),
        "b": b.numpy(),
        "average": tf.nn.compute_average_loss([1.0, 2.0, 6.0], global_batch_size=6),
        "scale": tf.nn.scale_regularization_loss(4.0),
    }
