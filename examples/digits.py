"""Trains a small network on handwritten-looking digits with GradientTape, and draws what it learned.

    python examples/digits.py            # full run, writes digits.png
    python examples/digits.py --quick    # a few steps, for tests

Everything is written out: layers, momentum, the loop. The last row of the picture shows gradients with respect to
the input: which pixels does an answer depend on?
"""

import argparse
import sys
import time

import numpy as np
from drawn_digits import SIDE, draw_digits

import gradtape as tf


class Dense(tf.Module):
    def __init__(self, inputs, outputs, name=None):
        super().__init__(name)
        self.w = tf.Variable(tf.random.normal([inputs, outputs], stddev=(2 / inputs) ** 0.5), name="w")
        self.b = tf.Variable(tf.zeros([outputs]), name="b")

    def __call__(self, x):
        return tf.matmul(x, self.w) + self.b


class Network(tf.Module):
    def __init__(self, widths):
        super().__init__()
        self.layers = [Dense(i, o) for i, o in zip(widths[:-1], widths[1:], strict=True)]

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = tf.nn.relu(layer(x))
        return self.layers[-1](x)


class Momentum:
    """Gradient descent with momentum, as plain operations on variables."""

    def __init__(self, variables, rate, momentum=0.9):
        self.variables, self.rate, self.momentum = variables, rate, momentum
        self.speed = [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]

    def apply(self, gradients):
        for v, s, g in zip(self.variables, self.speed, gradients, strict=True):
            s.assign(self.momentum * s + g)
            v.assign_sub(self.rate * s)


def progress(done, total, text):
    """One line that is rewritten in a terminal, and printed ten times elsewhere."""
    filled = round(30 * done / total)
    line = f"[{'#' * filled}{'.' * (30 - filled)}] {done}/{total}  {text}"
    if sys.stdout.isatty():
        print("\r" + line, end="\n" if done == total else "", flush=True)
    elif done == total or done % max(1, total // 10) == 0:
        print(line)


def train(steps, batch=128, seed=0):
    rng = np.random.default_rng(seed)
    tf.random.set_seed(seed)
    model = Network([SIDE * SIDE, 128, 64, 10])
    images, labels = draw_digits(40 * batch, rng)
    descent = Momentum(model.trainable_variables, rate=0.05)
    losses = []
    for step in range(1, steps + 1):
        pick = rng.integers(0, len(images), batch)
        x, y = tf.constant(images[pick]), tf.constant(labels[pick])
        with tf.GradientTape() as tape:
            logits = model(x)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        gradients = tape.gradient(loss, model.trainable_variables)
        gradients, _ = tf.clip_by_global_norm(gradients, 5.0)
        descent.apply(gradients)
        losses.append(float(loss))
        progress(step, steps, f"loss {np.mean(losses[-50:]):.3f}")
    return model, losses


def saliency(model, images, labels):
    """How much each pixel matters to the score of the right digit: a gradient of the input."""
    x = tf.constant(images)
    with tf.GradientTape() as tape:
        tape.watch(x)
        score = tf.reduce_sum(tf.gather(model(x), labels, axis=1, batch_dims=1))
    return tf.abs(tape.gradient(score, x)).numpy()


def main(quick=False, output="digits.png"):
    begin = time.perf_counter()
    model, losses = train(30 if quick else 1500)
    seconds = time.perf_counter() - begin
    images, labels = draw_digits(4000, np.random.default_rng(1))
    right = np.mean(tf.argmax(model(images), axis=1).numpy() == labels)
    print(f"{len(losses)} steps in {seconds:.1f} s; accuracy on 4000 unseen digits: {right:.1%}")
    if not quick:
        draw(output, model, losses, images, labels)
    return losses


def draw(path, model, losses, images, labels):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    guesses = tf.argmax(model(images), axis=1).numpy()
    maps = saliency(model, images[:8], labels[:8])
    figure = plt.figure(figsize=(11, 6.2), layout="constrained")
    curve, panels = figure.subfigures(1, 2, width_ratios=[1, 1.5])
    axes = curve.subplots()
    axes.semilogy(losses, color="0.8", label="each step")
    smooth = np.convolve(losses, np.ones(25) / 25, "valid")
    axes.semilogy(np.arange(len(smooth)) + 12, smooth, color="C0", label="mean of 25")
    axes.set(xlabel="step", ylabel="cross-entropy", title="Training loss")
    axes.legend(frameon=False)
    grid = panels.subplots(4, 8)
    for k, cell in enumerate(grid.flat):
        cell.set(xticks=[], yticks=[])
        if k < 24:
            cell.imshow(images[k].reshape(SIDE, SIDE), cmap="gray_r", vmin=0, vmax=1)
            wrong = guesses[k] != labels[k]
            cell.set_title(str(guesses[k]), fontsize=9, color="C3" if wrong else "black", pad=2)
        else:
            cell.imshow(maps[k - 24].reshape(SIDE, SIDE), cmap="magma")
            cell.set_title(f"d score({labels[k - 24]})", fontsize=7, pad=2)
    words = "Unseen digits with the network's answer; last row: what the first eight answers depend on"
    panels.suptitle(words, fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print(f"drawn to {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few steps and no picture, for tests")
    parser.add_argument("--output", default="digits.png", help="where to write the picture")
    options = parser.parse_args()
    main(options.quick, options.output)
