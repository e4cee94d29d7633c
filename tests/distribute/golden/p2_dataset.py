"""How batches are divided: even, uneven, fewer rows than replicas, from a function, by hand."""


def program(tf, strategy):
    def parts(batches):
        return [[x.numpy().tolist() for x in strategy.experimental_local_results(b)] for b in batches]

    ten = tf.data.Dataset.range(10)
    result = {
        "batch of 4": parts(strategy.experimental_distribute_dataset(ten.batch(4))),
        "batch of 3": parts(strategy.experimental_distribute_dataset(ten.batch(3))),
        "drop_remainder": parts(strategy.experimental_distribute_dataset(ten.batch(4, drop_remainder=True))),
    }

    def make(context):
        size = context.get_per_replica_batch_size(4)
        result["context"] = [
            context.num_input_pipelines,
            context.input_pipeline_id,
            context.num_replicas_in_sync,
            size,
        ]
        return ten.batch(size)

    result["from function"] = parts(strategy.distribute_datasets_from_function(make))
    values = strategy.experimental_distribute_values_from_function(
        lambda c: tf.constant([c.replica_id_in_sync_group, c.num_replicas_in_sync])
    )
    result["values"] = [x.numpy().tolist() for x in strategy.experimental_local_results(values)]
    pairs = strategy.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(({"x": [1.0, 2.0, 3.0, 4.0]}, [0, 1, 2, 3])).batch(4)
    )
    ((features, labels),) = list(pairs)
    result["nest"] = [
        [x.numpy().tolist() for x in strategy.experimental_local_results(t)] for t in (features["x"], labels)
    ]
    it = iter(strategy.experimental_distribute_dataset(ten.batch(4)))
    next(it)
    result["second"] = [x.numpy().tolist() for x in strategy.experimental_local_results(next(it))]
    return result
