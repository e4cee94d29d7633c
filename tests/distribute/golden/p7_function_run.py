"""tf.function around, as, and inside the function of a replica; loops over distributed datasets in functions."""

from run import error


def program(tf, strategy):
    S = tf.distribute.ReduceOp.SUM
    local = strategy.experimental_local_results
    with strategy.scope():
        total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
        steps = tf.Variable(0)

    def number():
        return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)

    @tf.function
    def step(x):
        total.assign_add(tf.reduce_sum(x))
        return tf.distribute.get_replica_context().all_reduce(S, x * (number() + 1.0))

    values = strategy.experimental_distribute_values_from_function(
        lambda c: tf.constant([1.0, 2.0]) * (c.replica_id_in_sync_group + 1.0)
    )
    result = {
        "a function that runs": [x.numpy().tolist() for x in local(strategy.run(step, args=(values,)))],
        "total": total.numpy(),
    }
    ten = tf.data.Dataset.range(10).map(lambda x: tf.cast(x, tf.float32)).batch(4, drop_remainder=True)
    data = strategy.experimental_distribute_dataset(ten)

    @tf.function
    def epoch(data):
        seen = tf.constant(0.0)
        for x in data:
            parts = strategy.run(lambda x: tf.reduce_sum(x) * (number() + 1.0), args=(x,))
            seen += strategy.reduce(S, parts, axis=None)
            steps.assign_add(1)
        return seen

    result["loop"] = [epoch(data).numpy(), epoch(data).numpy(), steps.numpy()]

    @tf.function
    def two(iterator):
        out = []
        for _ in range(2):
            out.append(
                strategy.reduce(
                    S, strategy.run(lambda x: tf.reduce_sum(x), args=(next(iterator),)), axis=None
                )
            )
        return out

    result["iterator"] = [x.numpy() for x in two(iter(data))]
    result["run in run"] = error(lambda: strategy.run(lambda: strategy.run(lambda: 1.0)))[0]
    result["reduce in run"] = error(
        lambda: strategy.run(lambda: strategy.reduce(S, tf.constant(1.0), axis=None))
    )[0]
    result["scope in run"] = error(lambda: strategy.run(lambda: strategy.scope().__enter__()))[0]
    result["merge"] = [
        x.numpy()
        for x in local(
            strategy.run(
                lambda: tf.distribute.get_replica_context().merge_call(
                    lambda s, i: s.reduce("SUM", i, axis=None), args=(number() + 1.0,)
                )
            )
        )
    ]
    return result
