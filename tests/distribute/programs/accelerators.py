"""Strategies on accelerators, for which XLA's host devices stand in: prints what runs where."""

import json
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax
import numpy as np

import gradtape as tf
from gradtape import _core
from gradtape._src.engines import placement

found = [placement.Accelerator("GPU", i, d) for i, d in enumerate(jax.local_devices())]
placement.accelerators = lambda: found


def devices_of(x):
    (array,) = _core.device_arrays([x])
    return None if array is None else sorted(d.id for d in array.devices())


result = {"listed": [d.name for d in tf.config.list_physical_devices("GPU")]}
f = tf.function(lambda x: x * 2.0 + 1.0)
with tf.device("/GPU:2"):
    y = f(tf.constant([1.0, 2.0]))
result["tf.device"] = [devices_of(y), y.numpy().tolist()]
result["moved"] = devices_of(f(y))  # called outside of the strategy, so it runs natively
with tf.device("/GPU:1"):
    result["from another"] = devices_of(f(y))


@tf.function
def placed(x):
    with tf.device("/GPU:3"):
        return x + 1.0


result["inside"] = devices_of(placed(tf.constant(1.0)))
one = tf.distribute.OneDeviceStrategy("/gpu:1")
result["one device"] = devices_of(one.run(f, args=(tf.constant([3.0]),)))
strategy = tf.distribute.MirroredStrategy()
result["replicas"] = strategy.num_replicas_in_sync
with strategy.scope():
    v = tf.Variable([1.0, 2.0])


@tf.function
def step(x):
    def replica(x):
        v.assign_sub(tf.distribute.get_replica_context().all_reduce("SUM", x) * 0.1)
        return tf.reduce_sum(v)

    return strategy.reduce("MEAN", strategy.run(replica, args=(x,)), axis=None)


data = tf.data.Dataset.from_tensor_slices(np.ones((4, 2), "f")).batch(4)
for x in strategy.experimental_distribute_dataset(data.map(lambda x: tf.reshape(x, [4, 2]))):
    parts = strategy.experimental_local_results(x)
    loss = step(strategy.run(lambda x: x[0], args=(x,)))
result["mirrored"] = [devices_of(v), v.numpy().tolist(), float(loss), len(parts)]
some = tf.distribute.MirroredStrategy(["GPU:1", "GPU:3"])
with some.scope():
    w = tf.Variable(2.0)
summed = tf.function(
    lambda: some.run(lambda: w.assign_add(tf.distribute.get_replica_context().all_reduce("SUM", 1.0)))
)
summed()
result["two of them"] = [devices_of(w), float(w)]
try:
    tf.distribute.MirroredStrategy(["GPU:7"])
except ValueError as e:
    result["unknown"] = str(e)[:60]
tf.config.set_soft_device_placement(False)
try:
    with tf.device("/GPU:9"):
        pass
except tf.errors.InvalidArgumentError as e:
    result["hard"] = str(e)
found[:] = [a._replace(kind="TPU") for a in found]
resolver = tf.distribute.cluster_resolver.TPUClusterResolver("")
tf.config.experimental_connect_to_cluster(resolver)
tf.tpu.experimental.initialize_tpu_system(resolver)
result["tpus"] = tf.distribute.TPUStrategy(resolver).num_replicas_in_sync
print(json.dumps(result))
