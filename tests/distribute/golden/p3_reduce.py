"""strategy.reduce and gather: over replicas, over an axis too, with parts of different sizes."""

from run import error


def program(tf, strategy):
    (batch,) = list(
        strategy.experimental_distribute_dataset(
            tf.data.Dataset.range(1, 4).map(lambda x: tf.cast(x, tf.float32)).batch(3)
        )
    )
    run = strategy.run
    S, M = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN
    scalar = run(lambda x: tf.reduce_sum(x), args=(batch,))
    pair = run(lambda x: {"a": tf.reduce_sum(x), "b": tf.stack([tf.reduce_max(x), 1.0])}, args=(batch,))
    return {
        "sum": strategy.reduce(S, scalar, axis=None),
        "mean": strategy.reduce(M, scalar, axis=None),
        "words": strategy.reduce("SUM", scalar, axis=None),
        "sum axis 0": strategy.reduce(S, batch, axis=0),
        "mean axis 0": strategy.reduce(M, batch, axis=0),  # of all three elements, not of two means
        "nest": strategy.reduce(S, pair, axis=None),
        "gather": strategy.gather(batch, axis=0),
        "plain number": error(lambda: strategy.reduce(S, 2.0, axis=None)),  # not a value of the replicas
        "plain tensor": strategy.reduce(M, tf.constant(2.0), axis=None),
    }
