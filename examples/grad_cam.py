"""Why did the network say so? Grad-CAM and integrated gradients, two answers from gradients.

    python examples/grad_cam.py            # trains a CNN on digits among clutter, draws grad_cam.png
    python examples/grad_cam.py --quick    # a few batches

Grad-CAM weighs the last feature maps by how much the score depends on each: where did it look?
Integrated gradients follow the score from a blank image to this one and share out the difference over the
pixels: what counted? Their sum is the difference of the two scores, which the table checks.
"""

import sys

import numpy as np
from drawn_digits import SIDE, draw_digits

import gradtape as tf

CANVAS = 40


def scenes(count, rng):
    """A digit somewhere on a canvas with random strokes; also where it is."""
    digits, labels = draw_digits(count, rng, noise=0.0)
    images = np.zeros((count, CANVAS, CANVAS, 1), np.float32)
    for image in images[..., 0]:
        for _ in range(6):
            row, column = rng.integers(0, CANVAS - 8, 2)
            height, width = (rng.integers(4, 9), 2) if rng.random() < 0.5 else (2, rng.integers(4, 9))
            image[row : row + height, column : column + width] = rng.uniform(0.4, 0.9)
    corners = rng.integers(0, CANVAS - SIDE, (count, 2))
    for image, digit, (row, column) in zip(images[..., 0], digits.reshape(-1, SIDE, SIDE), corners):
        image[row : row + SIDE, column : column + SIDE] = digit
    return np.clip(images + rng.normal(0, 0.05, images.shape), 0, 1).astype(np.float32), labels, corners


def make_model():
    layers = tf.keras.layers
    inputs = tf.keras.Input([CANVAS, CANVAS, 1])
    x = layers.Conv2D(16, 5, strides=2, padding="same", activation="relu")(inputs)
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(64, 3, padding="same", activation="relu", name="last_conv")(x)
    x = layers.GlobalMaxPooling2D()(x)
    return tf.keras.Model(inputs, layers.Dense(10)(x))


def grad_cam(model, images, labels):
    """A map [images, rows, columns] between 0 and 1."""
    both = tf.keras.Model(model.inputs, [model.get_layer("last_conv").output, model.output])
    with tf.GradientTape() as tape:
        maps, scores = both(images)
        score = tf.gather(scores, labels, axis=1, batch_dims=1)
    gradients = tape.gradient(score, maps)
    weights = tf.reduce_mean(gradients, axis=[1, 2], keepdims=True)
    cam = tf.nn.relu(tf.reduce_sum(weights * maps, axis=-1))
    cam = cam / (tf.reduce_max(cam, axis=[1, 2], keepdims=True) + 1e-8)
    return tf.image.resize(cam[..., tf.newaxis], [CANVAS, CANVAS])[..., 0].numpy()


def integrated_gradients(model, image, label, steps=64):
    """The contribution of each pixel to the score, along the path from a blank image."""
    alphas = (tf.range(steps, dtype=tf.float32) + 0.5) / steps
    way = alphas[:, tf.newaxis, tf.newaxis, tf.newaxis] * image
    with tf.GradientTape() as tape:
        tape.watch(way)
        score = model(way)[:, label]
    return (image * tf.reduce_mean(tape.gradient(score, way), axis=0)).numpy()[..., 0]


def main(quick=False):
    tf.keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    count, epochs = (256, 1) if quick else (8000, 6)
    images, labels, _ = scenes(count, rng)
    model = make_model()
    model.compile(
        optimizer=tf.keras.optimizers.Adam(3e-3),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    history = model.fit(images, labels, batch_size=64, epochs=epochs, shuffle=False, verbose=0)

    images, labels, corners = scenes(100 if quick else 500, rng)
    scores = model.predict(images, verbose=0)
    print(f"right on unseen scenes: {np.mean(np.argmax(scores, axis=1) == labels):.1%}")
    cams = grad_cam(model, tf.constant(images), tf.constant(labels))
    peaks = np.stack(np.unravel_index(np.argmax(cams.reshape(len(cams), -1), axis=1), cams.shape[1:]), 1)
    inside = np.all((peaks >= corners) & (peaks < corners + SIDE), axis=1)
    share = SIDE**2 / CANVAS**2
    print(f"the peak of Grad-CAM lies on the digit in {np.mean(inside):.1%} (by chance: {share:.1%})")

    blank = model(tf.zeros([1, CANVAS, CANVAS, 1])).numpy()[0]
    attributions = [integrated_gradients(model, tf.constant(x), int(y)) for x, y in zip(images[:6], labels)]
    print("digit   sum of integrated gradients   difference of scores")
    for attribution, score, label in zip(attributions, scores, labels):
        print(f"{label:5}   {np.sum(attribution):27.3f}   {score[label] - blank[label]:20.3f}")
    if not quick:
        draw(images, labels, cams, attributions)
    sums = [float(np.sum(x)) for x in attributions]
    return history.history["loss"] + sums + cams[:6].mean(axis=(1, 2)).tolist()


def draw(images, labels, cams, attributions):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, grid = plt.subplots(3, 6, figsize=(11, 5.8), layout="constrained")
    for k, column in enumerate(grid.T):
        largest = np.max(np.abs(attributions[k]))
        column[0].imshow(images[k, ..., 0], cmap="gray_r")
        column[0].set_title(f"a {labels[k]}")
        column[1].imshow(images[k, ..., 0], cmap="gray_r")
        column[1].imshow(cams[k], cmap="inferno", alpha=0.65)
        column[2].imshow(attributions[k], cmap="RdBu_r", vmin=-largest, vmax=largest)
    for row, name in zip(grid, ["image", "Grad-CAM", "integrated\ngradients"]):
        row[0].set_ylabel(name)
    for cell in grid.flat:
        cell.set(xticks=[], yticks=[])
    figure.savefig("grad_cam.png", dpi=110)
    print("drawn to grad_cam.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
