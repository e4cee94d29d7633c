"""One worker that uses all methods of MultiWorkerMirroredStrategy. Prints RESULT and JSON."""

import json
import sys

import numpy as np

import gradtape as tf

REPLICAS = int(sys.argv[1]) if len(sys.argv) > 1 else 1  # in each process
if REPLICAS > 1:
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * REPLICAS
    )
strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id or 0
D, SUM, MEAN = tf.distribute, tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN
out = {
    "rank": rank,
    "replicas": strategy.num_replicas_in_sync,
    "task": strategy.cluster_resolver.task_type,
    "chief": strategy.extended.should_checkpoint,
}


def local(value):
    return [np.asarray(x).tolist() for x in strategy.experimental_local_results(value)]


# ---- variables -------------------------------------------------------------------------------------
with strategy.scope():
    first = tf.Variable(np.full([2], 0.5 + rank, "f"))  # the values of worker 0 are used
    mean = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
    only_first = tf.Variable(0.0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
    on_read = tf.Variable(
        0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM
    )


def number():
    return tf.cast(D.get_replica_context().replica_id_in_sync_group, tf.float32)


def assign():
    mean.assign(number())
    only_first.assign_add(number() + 1.0)
    on_read.assign_add(number() + 1.0)
    return number()


out["first"] = first.numpy().tolist()
out["numbers"] = local(strategy.run(assign))
tf.function(lambda: strategy.run(assign))()
out["assigned"] = [float(mean), float(only_first), float(on_read)]


# ---- collectives --------------------------------------------------------------------------------------
def together():
    context, x = D.get_replica_context(), number() + 1.0
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = context.all_reduce(SUM, {"a": x * x, "b": [x]})
        y = total["a"] * x
    gathered = context.all_gather(tf.fill([1, 2], x), 0)
    return total["a"], total["b"][0], context.all_reduce(MEAN, x), gathered, tape.gradient(y, x)


out["together"] = [local(v) for v in strategy.run(together)]
out["together, traced"] = [local(v) for v in tf.function(lambda: strategy.run(together))()]
values = strategy.experimental_distribute_values_from_function(
    lambda c: tf.constant([float(c.replica_id_in_sync_group)] * (c.replica_id_in_sync_group + 1))
)
out["reduce"] = [float(strategy.reduce(op, values, axis=0)) for op in (SUM, MEAN)]
out["gather"] = strategy.gather(values, axis=0).numpy().tolist()
tf.random.set_seed(7)  # the same in all workers, and yet their replicas draw different numbers
out["random"] = [
    *local(strategy.run(lambda: tf.random.uniform([]))),
    *local(strategy.run(tf.function(lambda: tf.random.uniform([])))),
]
out["random, stateless"] = local(strategy.run(lambda: tf.random.stateless_uniform([], [1, 2])))

# ---- data: each batch of 8 is shared, the last one has 6 rows -------------------------------------------
rng = np.random.default_rng(0)
X, Y = rng.standard_normal((22, 5)).astype("f"), rng.standard_normal((22, 1)).astype("f")
data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
out["rows"] = [
    local(strategy.run(lambda x: tf.shape(x)[0], args=(x,)))
    for x, _ in strategy.experimental_distribute_dataset(data)
]

# ---- a custom loop --------------------------------------------------------------------------------------
with strategy.scope():
    w = tf.Variable(np.full([5, 1], 0.2, "f"))
    optimizer = tf.optimizers.Adam(0.05)


def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((tf.matmul(x, w) - y) ** 2) / 8.0
    optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    return loss


@tf.function
def train(x, y):
    return strategy.reduce(SUM, strategy.run(step, args=(x, y)), axis=None)


out["losses"] = [
    float(train(x, y)) for _ in range(2) for x, y in strategy.experimental_distribute_dataset(data)
]
out["w"] = w.numpy().tolist()

# ---- rows of a table: sparse gradients, of other rows and another number of them in each replica ------------
words = rng.integers(0, 20, (22, 3))
with strategy.scope():
    table = tf.Variable(rng.standard_normal((20, 4)).astype("f"))
    for_table = tf.optimizers.SGD(0.05)


@tf.function
def learn(x, y):
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((tf.reduce_sum(tf.gather(table, x), [1, 2])[:, None] - y) ** 2) / 8.0
        for_table.apply_gradients([(tape.gradient(loss, table), table)])
        return loss

    return strategy.reduce(SUM, strategy.run(step, args=(x, y)), axis=None)


texts = tf.data.Dataset.from_tensor_slices((words, Y)).batch(8)
out["losses of a table"] = [float(learn(x, y)) for x, y in strategy.experimental_distribute_dataset(texts)]
out["table"] = table.numpy().tolist()

# ---- Keras ------------------------------------------------------------------------------------------------
tf.keras.utils.set_random_seed(rank)  # different initial values: those of worker 0 are used
with strategy.scope():
    model = tf.keras.Sequential(
        [tf.keras.Input((5,)), tf.keras.layers.Dense(7, activation="tanh"), tf.keras.layers.Dense(1)]
    )
    model.compile(optimizer="adam", loss="mse", metrics=["mae"])
even = tf.data.Dataset.from_tensor_slices((X[:16], Y[:16])).batch(8)
out["fit"] = model.fit(even, epochs=2, verbose=0).history
arrays = {"x": X[:16], "y": Y[:16], "batch_size": 8, "verbose": 0}
out["fit of arrays"] = model.fit(shuffle=False, validation_data=(X[:16], Y[:16]), **arrays).history
# Every epoch has all rows once, though the workers share no seed; the mean shows it.
with strategy.scope():
    constant = tf.keras.Sequential(
        [tf.keras.Input((5,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    )
    constant.compile(optimizer=tf.keras.optimizers.SGD(0.0), loss="mse")
out["shuffled"] = constant.fit(X[:16], Y[:16], batch_size=8, epochs=2, verbose=0).history["loss"]
out["evaluate"] = [float(v) for v in model.evaluate(even, verbose=0)]
out["weights"] = [float(np.sum(np.abs(v))) for v in model.get_weights()]
print("RESULT" + json.dumps(out), flush=True)
