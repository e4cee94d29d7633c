"""A Keras model partitioned over a mesh of devices: batches along one axis, wide layers along the other.

    python examples/keras_distribution.py            # a table, and keras_distribution.png
    python examples/keras_distribution.py --quick    # a few batches

`keras.distribution` has one model and one batch, as on one device; a layout says how they are partitioned, and XLA
works out what each device computes. The CPU is split into four logical devices here; GPUs and TPUs are used as they
are. Losses are those of one device, whatever the layout.
"""

import sys

import numpy as np
from drawn_digits import SIDE, draw_digits

import gradtape as tf

keras = tf.keras
DEVICES = 4


def compiled_model():
    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential([
        keras.Input([SIDE * SIDE]), layers.Dense(128, activation="relu", name="wide"), layers.Dropout(0.2),
        layers.Dense(64, activation="relu", name="narrow"), layers.Dense(10),
    ])  # fmt: skip
    model.compile(
        optimizer=keras.optimizers.Adam(3e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def model_parallel():
    mesh = keras.distribution.DeviceMesh(
        (2, DEVICES // 2), ["batch", "model"], keras.distribution.list_devices()
    )
    layouts = keras.distribution.LayoutMap(mesh)
    layouts[".*wide/kernel"] = (None, "model")  # its columns, half of them on a device
    layouts[".*wide/bias"] = ("model",)
    layouts[".*narrow/kernel"] = ("model", None)  # its rows: what comes out is added up over devices
    return keras.distribution.ModelParallel(layout_map=layouts, batch_dim_name="batch")


def main(quick=False):
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * DEVICES)

    rng = np.random.default_rng(0)
    count, epochs = (512, 2) if quick else (3000, 8)
    images, labels = draw_digits(count, rng)
    images, labels = images.astype("float32"), labels.astype("int32")
    unseen = draw_digits(512, rng)

    histories = {}
    ways = {
        "one device": None,
        "data parallel": keras.distribution.DataParallel(),
        "model parallel": model_parallel(),
    }
    for name, distribution in ways.items():
        keras.distribution.set_distribution(distribution)
        model = compiled_model()
        done = model.fit(images, labels, batch_size=128, epochs=epochs, validation_data=unseen, verbose=0)
        histories[name] = done.history
        loss, accuracy = model.evaluate(*unseen, batch_size=128, verbose=0)
        print(f"{name:14}: loss {loss:.4f}, {accuracy:.1%} of unseen digits are right")
    keras.distribution.set_distribution(None)
    if not quick:
        draw(histories)
    return [v for h in histories.values() for key in ("loss", "val_loss") for v in h[key]]


def draw(histories):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for (name, h), style in zip(histories.items(), ("-", "--", ":")):
        epochs = np.arange(1, len(h["loss"]) + 1)
        left.plot(epochs, h["loss"], style, label=name)
        right.plot(epochs, h["val_accuracy"], style, label=name)
    left.set(xlabel="epoch", ylabel="cross-entropy", title="loss while training")
    right.set(xlabel="epoch", ylabel="accuracy", title="unseen digits")
    left.legend()
    figure.savefig("keras_distribution.png", dpi=120)
    print("drawn to keras_distribution.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
