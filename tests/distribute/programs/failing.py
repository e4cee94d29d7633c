"""One of several workers that train, one of which misbehaves: `failing.py MODE WHO`. Prints RESULT and JSON."""

import json
import os
import signal
import sys
import time

import gradtape as tf

mode, who = sys.argv[1], int(sys.argv[2])
strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id
with strategy.scope():
    v = tf.Variable(tf.zeros([40, 50]))
    optimizer = tf.optimizers.SGD(0.1)


@tf.function
def train(x):
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((v - x) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])
        return loss

    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, args=(x,)), axis=None)


def misbehave():
    if mode == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "stops":
        print("STOPS", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
    if mode == "sleeps":
        time.sleep(600)
    if mode == "leaves":
        sys.exit(7)
    if mode == "fails":
        raise RuntimeError("a mistake of the program")
    if mode == "differs":
        strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.ones([3])))


try:
    for i in range(100000):
        if i == 5 and rank == who:
            misbehave()
        train(tf.fill([40, 50], float(rank)))
except tf.errors.OpError as e:
    print(
        "RESULT" + json.dumps({"kind": type(e).__name__, "said": str(e), "saved": float(v[0, 0])}), flush=True
    )
    raise
