"""A custom loop that continues from its last checkpoint: `resumed_loop.py FOLDER [WHO DIES AT STEP]`. Prints losses."""

import os
import signal
import sys
import tempfile

import numpy as np

import gradtape as tf

folder, who, at = sys.argv[1], *map(int, sys.argv[2:4] or (-1, -1))
strategy = tf.distribute.MultiWorkerMirroredStrategy()
is_chief = strategy.extended.should_checkpoint
rank = strategy.cluster_resolver.task_id
rng = np.random.default_rng(0)
X, Y = rng.standard_normal((48, 5)).astype("f"), rng.standard_normal((48, 1)).astype("f")
with strategy.scope():
    w = tf.Variable(tf.zeros([5, 1]))
    optimizer = tf.optimizers.Adam(0.05)
    optimizer.build([w])
    step = tf.Variable(0, dtype=tf.int64, trainable=False)
checkpoint = tf.train.Checkpoint(w=w, optimizer=optimizer, step=step)
checkpoint.restore(tf.train.latest_checkpoint(folder))
manager = tf.train.CheckpointManager(checkpoint, folder if is_chief else tempfile.mkdtemp(), max_to_keep=2)


@tf.function
def train(x, y):
    def in_replica(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((tf.matmul(x, w) - y) ** 2) / 8.0
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss

    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(in_replica, args=(x, y)), axis=None)


data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8).repeat(3)
batches = strategy.experimental_distribute_dataset(data.skip(int(step)))
for x, y in batches:
    if rank == who and int(step) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    print("LOSS", int(step), float(train(x, y)), flush=True)
    step.assign_add(1)
    if int(step) % 3 == 0:
        manager.save()
