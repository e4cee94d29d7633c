"""A Keras model trained by several workers: every process runs this program, TF_CONFIG says which one it is.

    python examples/multi_worker_keras.py            # one worker: a table, and multi_worker_keras.png
    python examples/multi_worker_keras.py --quick    # a few batches

With several workers, each takes its part of a batch and gradients are added up: apart from rounding, losses are
those of one worker. If workers are killed and started again, training continues from the folder given by --backup,
which the chief writes.
"""

import argparse
import os
import tempfile

import numpy as np
from drawn_digits import SIDE, draw_digits

import gradtape as tf

BATCH = 128  # of all workers together


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


def main(quick=False, backup=None):
    # First of all, so that workers find each other before anything else is done.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    is_chief = strategy.extended.should_checkpoint
    backup = backup or tempfile.mkdtemp()

    rng = np.random.default_rng(0)  # every worker has all data, and takes its part of each batch
    count, epochs = (512, 2) if quick else (3000, 8)
    images, labels = draw_digits(count, rng)
    images, labels = images.astype("float32"), labels.astype("int32")
    unseen = draw_digits(512, rng)

    tf.keras.utils.set_random_seed(0)
    with strategy.scope():
        model = compiled_model()
    history = model.fit(
        images, labels, batch_size=BATCH, epochs=epochs, validation_data=unseen, verbose=2 if is_chief else 0,
        callbacks=[tf.keras.callbacks.BackupAndRestore(os.path.join(backup, "backup"))],
    ).history  # fmt: skip
    loss, accuracy = model.evaluate(*unseen, batch_size=BATCH, verbose=0)
    if is_chief:
        print(
            f"{strategy.num_replicas_in_sync} workers: loss {loss:.4f}, {accuracy:.1%} of unseen digits are right"
        )
        if not quick:
            draw(history, strategy.num_replicas_in_sync)
    return [v for key in ("loss", "val_loss") for v in history[key]]


def draw(history, workers):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    epochs = np.arange(1, len(history["loss"]) + 1)
    for name, label in (("loss", "while training"), ("val_loss", "unseen digits")):
        left.plot(epochs, history[name], label=label)
    right.plot(epochs, history["val_accuracy"])
    left.set(xlabel="epoch", ylabel="cross-entropy", title=f"batches of {BATCH}, workers: {workers}")
    right.set(xlabel="epoch", ylabel="accuracy", title="unseen digits")
    left.legend()
    figure.savefig("multi_worker_keras.png", dpi=120)
    print("drawn to multi_worker_keras.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--backup", help="a folder that all workers, or at least the chief, find again")
    options = parser.parse_args()
    main(options.quick, options.backup)
