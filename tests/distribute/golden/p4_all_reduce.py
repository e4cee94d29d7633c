"""ReplicaContext.all_reduce and all_gather inside replicas, nests of them, and gradients through them."""


def program(tf, strategy):
    S, M = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN
    local = strategy.experimental_local_results

    def inside():
        context = tf.distribute.get_replica_context()
        i = tf.cast(context.replica_id_in_sync_group, tf.float32)
        x = tf.stack([i + 1.0, 10.0 * (i + 1.0)])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = context.all_reduce(S, x * x)
            loss = tf.reduce_sum(y) * (i + 1.0)
        through = tape.gradient(loss, x)
        nest = context.all_reduce(M, [x, {"k": i}])
        rows = context.all_gather(tf.reshape(x, [1, 2]), axis=0)
        cols = context.all_gather(tf.reshape(x, [1, 2]), axis=1)
        return y, through, nest, rows, cols

    def flat(results):
        return [
            tf.nest.map_structure(lambda t, r=r: local(t)[r], results)
            for r in range(strategy.num_replicas_in_sync)
        ]

    once = strategy.run(inside)
    compiled = tf.function(lambda: strategy.run(inside))()
    return {"eager": flat(once), "function": flat(compiled)}
