"""A custom training step in a Keras model: `fit`, metrics and callbacks stay as they are.

    python examples/custom_train_step.py            # a table, and custom_train_step.png
    python examples/custom_train_step.py --quick    # a few batches

`SharpnessAware` overrides `train_step`. It climbs to the worst point near the weights, takes the gradient there and
applies it to the original weights (Foret et al. 2021): two tapes a step. A third of the labels are wrong; the plain
model ends up learning them by heart, the other one does not.
"""

import sys

import numpy as np
from drawn_digits import SIDE, draw_digits

import gradtape as tf


class SharpnessAware(tf.keras.Model):
    def __init__(self, network, radius=0.3):
        super().__init__()
        self.network, self.radius = network, radius

    def call(self, x, training=None):
        return self.network(x, training=training)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x=x, y=y, y_pred=self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        scale = self.radius / (tf.linalg.global_norm(gradients) + 1e-12)
        climb = [g * scale for g in gradients]
        for v, e in zip(self.trainable_variables, climb):
            v.assign_add(e)

        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(x=x, y=y, y_pred=y_pred)
        gradients = tape.gradient(loss, self.trainable_variables)
        for v, e in zip(self.trainable_variables, climb):
            v.assign_sub(e)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))

        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}


def network():
    layers = tf.keras.layers
    hidden = [layers.Dense(256, activation="relu") for _ in range(2)]
    return tf.keras.Sequential([tf.keras.Input([SIDE * SIDE]), *hidden, layers.Dense(10)])


def main(quick=False):
    rng = np.random.default_rng(0)
    count, epochs = (512, 2) if quick else (4000, 40)
    x, labels = draw_digits(count, rng)
    y = np.where(rng.random(count) < 1 / 3, rng.integers(0, 10, count), labels).astype(np.int32)
    unseen = draw_digits(2000, rng)

    histories = {}
    for name in ("plain", "sharpness-aware"):
        tf.keras.utils.set_random_seed(0)
        model = network() if name == "plain" else SharpnessAware(network())
        model.compile(
            optimizer=tf.keras.optimizers.Adam(1e-3),
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
        done = model.fit(
            x, y, batch_size=128, epochs=epochs, shuffle=False, validation_data=unseen, verbose=0
        )
        histories[name] = done.history

    print(f"{epochs} epochs; a third of the labels were drawn at random")
    print("                   fits the labels   right on unseen digits   at best")
    for name, h in histories.items():
        last, best = h["val_accuracy"][-1], max(h["val_accuracy"])
        print(f"{name:18} {h['accuracy'][-1]:15.1%}   {last:22.1%}   {best:7.1%}")
    if not quick:
        draw(histories)
    return [v for h in histories.values() for key in ("loss", "val_loss") for v in h[key]]


def draw(histories):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for name, h in histories.items():
        epochs = np.arange(1, len(h["loss"]) + 1)
        (line,) = left.plot(epochs, h["accuracy"], label=f"{name}: labels of the training set")
        left.plot(epochs, h["val_accuracy"], "--", color=line.get_color(), label=f"{name}: unseen digits")
        right.plot(epochs, h["loss"], label=f"{name}: training set")
        right.plot(epochs, h["val_loss"], "--", color=line.get_color(), label=f"{name}: unseen digits")
    left.set(xlabel="epoch", ylabel="accuracy", title="a third of the labels is random", ylim=(0, 1.02))
    right.set(xlabel="epoch", ylabel="cross-entropy", title="loss")
    for panel in (left, right):
        panel.legend(fontsize=8)
    figure.savefig("custom_train_step.png", dpi=120)
    print("drawn to custom_train_step.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
