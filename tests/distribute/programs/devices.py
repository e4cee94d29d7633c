"""A training loop on N logical CPUs, written as for TensorFlow: prints losses, weights and other results of replicas.

python devices.py N [native|xla]
"""

import json
import sys

import numpy as np

import gradtape as tf
from gradtape import _core

count, engine = int(sys.argv[1]), sys.argv[2]
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
tf.config.set_engine(engine)
strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(count)])
SIZE = 16
rng = np.random.default_rng(0)
images = rng.standard_normal((64, 8, 8, 1)).astype("f")
labels = rng.integers(0, 4, 64)
data = tf.data.Dataset.from_tensor_slices((images, labels)).batch(SIZE)

with strategy.scope():
    kernel = tf.Variable(rng.standard_normal((3, 3, 1, 6)).astype("f") * 0.3)
    weights = tf.Variable(rng.standard_normal((96, 4)).astype("f") * 0.1)
    bias = tf.Variable(np.zeros(4, "f"))
    optimizer = tf.optimizers.Adam(0.01)
    rows = tf.Variable(
        0.0,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )
    steps = tf.Variable(0, trainable=False)
    largest = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.MEAN)
variables = [kernel, weights, bias]


def step(x, y):
    context = tf.distribute.get_replica_context()
    with tf.GradientTape() as tape:
        h = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME")), 2, 2, "SAME")
        logits = tf.reshape(h, [-1, 96]) @ weights + bias
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        loss = tf.nn.compute_average_loss(each, global_batch_size=SIZE)
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    rows.assign_add(tf.cast(tf.shape(x)[0], tf.float32))
    steps.assign_add(1)
    largest.assign(tf.cast(context.replica_id_in_sync_group, tf.float32))
    right = tf.cast(tf.argmax(logits, 1) == y, tf.int32)
    return loss, context.all_reduce(tf.distribute.ReduceOp.SUM, tf.reduce_sum(right))


@tf.function
def train(x, y):
    loss, right = strategy.run(step, args=(x, y))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, loss, axis=None), right


losses, rights = [], []
for _ in range(2):
    for batch in strategy.experimental_distribute_dataset(data):
        loss, right = train(*batch)
        losses.append(float(loss))
        rights.append(int(strategy.experimental_local_results(right)[-1]))
noise = tf.function(lambda: strategy.run(lambda: tf.random.normal([2])))()


@tf.function
def differs():
    return strategy.run(lambda: steps.assign(tf.distribute.get_replica_context().replica_id_in_sync_group))


try:
    differs()
    error = ""
except ValueError as e:
    error = str(e)
(array,) = _core.device_arrays([kernel])
print(
    json.dumps(
        {
            "losses": losses, "right": rights, "rows": float(rows), "steps": int(steps), "largest": float(largest),
            "bias": bias.numpy().tolist(), "error": error,
            "devices": 1 if array is None else len(array.devices()),
            "noise": [x.numpy().tolist() for x in strategy.experimental_local_results(noise)],
        }
    )
)  # fmt: skip
