"""Variables with a value per replica: SUM, MEAN, the first; reading, assigning and adding, in and outside replicas."""

from run import error


def program(tf, strategy):
    A, R = tf.VariableAggregation, tf.VariableSynchronization.ON_READ
    local = strategy.experimental_local_results
    with strategy.scope():
        total = tf.Variable(4.0, aggregation=A.SUM, synchronization=R)
        mean = tf.Variable(1.0, aggregation=A.MEAN, synchronization=R)
        first = tf.Variable(1.0, aggregation=A.ONLY_FIRST_REPLICA, synchronization=R)

    def number():
        return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)

    def change():
        i = number()
        for v in (total, mean, first):
            v.assign_add(i + 1.0)
        return total + 0.0, mean + 0.0, first + 0.0

    result = {}
    for name, call in (
        ("eager", lambda: strategy.run(change)),
        ("function", tf.function(lambda: strategy.run(change))),
    ):
        total.assign(6.0)
        mean.assign(2.0)
        first.assign(3.0)
        result[name] = [[x.numpy() for x in local(part)] for part in call()]
        result[name + " between"] = [v.read_value().numpy() for v in (total, mean, first)]
        result[name + " again"] = [[x.numpy() for x in local(part)] for part in call()]
        result[name + " between again"] = [v.numpy() for v in (total, mean, first)]
    result["add between"] = error(lambda: total.assign_add(1.0))[0]
    mean.assign_add(1.0)
    result["mean"] = mean.numpy()
    result["trainable"] = [v.trainable for v in (total, mean, first)]
    return result
