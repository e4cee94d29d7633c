"""A custom training loop over several replicas: each takes its part of a batch, gradients are added up.

    python examples/distributed_custom_loop.py            # a table, and distributed_custom_loop.png
    python examples/distributed_custom_loop.py --quick    # a few batches
    python examples/distributed_custom_loop.py --one-device | --central-storage | --tpu    # other strategies

The CPU is split into two logical devices; with GPUs, `MirroredStrategy()` takes those. The loss is divided by the
size of the whole batch, so that the sum over replicas is its mean: two replicas learn what one would.
"""

import sys

import numpy as np
from drawn_digits import SIDE, draw_digits

import gradtape as tf

REPLICAS = 2
BATCH = 128  # of all replicas together


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


def make_strategy(options):
    if "--tpu" in options:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    if "--one-device" in options:
        return tf.distribute.OneDeviceStrategy("/CPU:0")
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * REPLICAS)
    devices = [f"CPU:{i}" for i in range(REPLICAS)]
    if "--central-storage" in options:
        return tf.distribute.experimental.CentralStorageStrategy(devices)
    return tf.distribute.MirroredStrategy(devices)


def main(quick=False, options=()):
    strategy = make_strategy(options)

    rng = np.random.default_rng(0)
    count, epochs = (500, 2) if quick else (4000, 12)
    images, labels = draw_digits(count, rng)
    unseen = draw_digits(1000, rng)
    data = tf.data.Dataset.from_tensor_slices((images.astype("float32"), labels.astype("int64"))).batch(BATCH)
    data = strategy.experimental_distribute_dataset(data)

    with strategy.scope():
        network = Network([SIDE * SIDE, 64, 10], rng)
        optimizer = tf.optimizers.Adam(3e-3)
        optimizer.build(network.trainable_variables)

    def step(x, y):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=network(x))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=BATCH)
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables))  # sums over replicas
        return loss

    @tf.function
    def train(x, y):
        parts = strategy.run(step, args=(x, y))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, parts, axis=None)

    history = []
    for epoch in range(epochs):
        history += [float(train(x, y)) for x, y in data]
        right = np.mean(np.argmax(network(unseen[0].astype("float32")), -1) == unseen[1])
        if epoch % 3 == 0 or epoch == epochs - 1:
            print(f"epoch {epoch + 1:2}: loss {history[-1]:.3f}, {right:.1%} of unseen digits are right")
    if not quick:
        draw(history, network)
    return history


def draw(history, network):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), width_ratios=[2, 1], layout="constrained")
    left.semilogy(history)
    left.set(xlabel="step", ylabel="cross-entropy", title=f"{REPLICAS} replicas, batches of {BATCH}")
    looks = network.kernels[0].numpy().T[:36].reshape(6, 6, SIDE, SIDE).transpose(0, 2, 1, 3)
    right.imshow(looks.reshape(6 * SIDE, 6 * SIDE), cmap="gray")
    right.set(title="what the first layer looks for", xticks=[], yticks=[])
    figure.savefig("distributed_custom_loop.png", dpi=120)
    print("drawn to distributed_custom_loop.png")


if __name__ == "__main__":
    main("--quick" in sys.argv, sys.argv)
