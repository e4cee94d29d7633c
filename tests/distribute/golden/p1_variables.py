"""Variables created in a scope are mirrored; allowed assignments; reads in replicas."""

from run import error


def program(tf, strategy):
    with strategy.scope():
        v = tf.Variable(3.0)
        mean = tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN)
        total = tf.Variable(1.0, aggregation=tf.VariableAggregation.SUM)
        first = tf.Variable(1.0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
    outside = tf.Variable(5.0)

    def number():
        return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)

    def assigns():
        i = number()
        mean.assign(i * 10.0 + 2.0)
        total.assign(i * 10.0 + 2.0)
        first.assign(i * 10.0 + 7.0)
        return v * (i + 1.0)

    seen = strategy.run(assigns)
    result = {
        "replicas": strategy.num_replicas_in_sync,
        "local": strategy.experimental_local_results(seen),
        "mean": mean.numpy(), "sum": total.numpy(), "first": first.numpy(),
    }  # fmt: skip
    v.assign_add(1.0)  # outside of replicas: all copies
    result["after"] = strategy.experimental_local_results(strategy.run(lambda: v + 0.0))
    result["assign without aggregation"] = error(lambda: strategy.run(lambda: v.assign(number() + 40.0)))
    result["what each replica reads then"] = strategy.experimental_local_results(
        strategy.run(lambda: v + 0.0)
    )
    strategy.run(lambda: mean.assign_add(number()))
    result["assign_add mean"] = mean.numpy()
    result["of another scope"] = strategy.experimental_local_results(strategy.run(lambda: outside * 2.0))
    result["created in scope"] = [strategy.extended.variable_created_in_scope(x) for x in (v, outside)]
    return result
