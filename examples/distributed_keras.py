"""A Keras model trained over several replicas: created in the scope of a strategy, otherwise unchanged.

    python examples/distributed_keras.py            # a table, and distributed_keras.png
    python examples/distributed_keras.py --quick    # a few batches
    python examples/distributed_keras.py --one-device | --central-storage | --tpu    # other strategies

The CPU is split into two logical devices; with GPUs, `MirroredStrategy()` takes those. `fit` cuts each batch in
two, and gradients are added up: apart from rounding, the losses are those of one device with the whole batch.
"""

import sys

import numpy as np
from drawn_digits import SIDE, draw_digits

import gradtape as tf

REPLICAS = 2


def compiled_model():
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        tf.keras.Input([SIDE * SIDE]), layers.Reshape([SIDE, SIDE, 1]), layers.Conv2D(8, 3, activation="relu"),
        layers.MaxPooling2D(), layers.Conv2D(16, 3, activation="relu"), layers.Flatten(), layers.Dense(10),
    ])  # fmt: skip
    model.compile(
        optimizer=tf.keras.optimizers.Adam(3e-3),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


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
    count, epochs = (512, 2) if quick else (3000, 8)
    images, labels = draw_digits(count, rng)
    images, labels = images.astype("float32"), labels.astype("int32")
    unseen = draw_digits(512, rng)

    tf.keras.utils.set_random_seed(0)
    alone = compiled_model()
    with strategy.scope():
        model = compiled_model()
    model.set_weights(alone.get_weights())

    histories = {}
    for name, one in ((f"{strategy.num_replicas_in_sync} replicas", model), ("one device", alone)):
        done = one.fit(
            images, labels, batch_size=128, epochs=epochs, shuffle=False, validation_data=unseen, verbose=0
        )
        histories[name] = done.history
        loss, accuracy = one.evaluate(*unseen, batch_size=128, verbose=0)
        print(f"{name:10}: loss {loss:.4f}, {accuracy:.1%} of unseen digits are right")
    if not quick:
        draw(histories)
    return [v for h in histories.values() for key in ("loss", "val_loss") for v in h[key]]


def draw(histories):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for (name, h), style in zip(histories.items(), ("-", "--")):
        epochs = np.arange(1, len(h["loss"]) + 1)
        left.plot(epochs, h["loss"], style, label=name)
        right.plot(epochs, h["val_accuracy"], style, label=name)
    left.set(xlabel="epoch", ylabel="cross-entropy", title="loss while training")
    right.set(xlabel="epoch", ylabel="accuracy", title="unseen digits")
    left.legend()
    figure.savefig("distributed_keras.png", dpi=120)
    print("drawn to distributed_keras.png")


if __name__ == "__main__":
    main("--quick" in sys.argv, sys.argv)
