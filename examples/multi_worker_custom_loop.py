"""A custom training loop in several workers: every process runs this program, TF_CONFIG says which one it is.

    python examples/multi_worker_custom_loop.py            # one worker: a table, and multi_worker_custom_loop.png
    python examples/multi_worker_custom_loop.py --quick    # a few batches

Gradients are added up over workers. The chief saves a checkpoint now and then. When a worker is lost, the others
raise an error that names it, and exit; started again with the same --folder, all continue from the last checkpoint.
"""

import argparse
import tempfile

import numpy as np
from drawn_digits import SIDE, draw_digits

import gradtape as tf

BATCH = 128  # of all workers together


class Network(tf.Module):
    def __init__(self, sizes, rng):
        super().__init__()
        pairs = list(zip(sizes[:-1], sizes[1:]))
        self.kernels = [
            tf.Variable(rng.normal(0, (2 / n) ** 0.5, (n, m)).astype("float32")) for n, m in pairs
        ]
        self.biases = [tf.Variable(tf.zeros([m])) for _, m in pairs]

    def __call__(self, x):
        for w, b in zip(self.kernels[:-1], self.biases[:-1]):
            x = tf.nn.relu(x @ w + b)
        return x @ self.kernels[-1] + self.biases[-1]


def main(quick=False, folder=None):
    # First of all, so that workers find each other before anything else is done.
    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=120)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    is_chief = strategy.extended.should_checkpoint

    rng = np.random.default_rng(0)  # every worker has all data, and takes its part of each batch
    count, epochs = (500, 2) if quick else (4000, 12)
    images, labels = draw_digits(count, rng)
    unseen = draw_digits(1000, rng)
    data = tf.data.Dataset.from_tensor_slices((images.astype("float32"), labels.astype("int64"))).batch(BATCH)
    data = strategy.experimental_distribute_dataset(data)

    with strategy.scope():
        network = Network([SIDE * SIDE, 64, 10], rng)
        optimizer = tf.optimizers.Adam(3e-3)
        optimizer.build(network.trainable_variables)
        epoch = tf.Variable(0, dtype=tf.int64, trainable=False)
    checkpoint = tf.train.Checkpoint(network=network, optimizer=optimizer, epoch=epoch)
    folder = folder or tempfile.mkdtemp()
    checkpoint.restore(tf.train.latest_checkpoint(folder))
    # Other workers write to a folder that is not used.
    manager = tf.train.CheckpointManager(
        checkpoint, folder if is_chief else tempfile.mkdtemp(), max_to_keep=2
    )

    def step(x, y):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=network(x))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=BATCH)
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables))  # sums over workers
        return loss

    @tf.function
    def train(x, y):
        parts = strategy.run(step, args=(x, y))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, parts, axis=None)

    history = []
    while int(epoch) < epochs:
        history += [float(train(x, y)) for x, y in data]
        epoch.assign_add(1)
        manager.save()
        right = np.mean(np.argmax(network(unseen[0].astype("float32")), -1) == unseen[1])
        if is_chief and (int(epoch) % 3 == 1 or int(epoch) == epochs):
            print(
                f"epoch {int(epoch):2}: loss {history[-1]:.3f}, {right:.1%} of unseen digits are right",
                flush=True,
            )
    if not is_chief:
        return history  # the others have nothing to show
    if not quick:
        draw(history, network, strategy.num_replicas_in_sync)
    return history


def draw(history, network, workers):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), width_ratios=[2, 1], layout="constrained")
    left.semilogy(history)
    left.set(xlabel="step", ylabel="cross-entropy", title=f"batches of {BATCH}, workers: {workers}")
    looks = network.kernels[0].numpy().T[:36].reshape(6, 6, SIDE, SIDE).transpose(0, 2, 1, 3)
    right.imshow(looks.reshape(6 * SIDE, 6 * SIDE), cmap="gray")
    right.set(title="what the first layer looks for", xticks=[], yticks=[])
    figure.savefig("multi_worker_custom_loop.png", dpi=120)
    print("drawn to multi_worker_custom_loop.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--folder", help="where checkpoints are, for all workers")
    options = parser.parse_args()
    main(options.quick, options.folder)
