"""The fast gradient sign method: pictures that fool a network, and a network that is harder to fool.

    python examples/fgsm.py            # a table of accuracies, and fgsm.png
    python examples/fgsm.py --quick    # a few batches

The gradient of the loss with respect to the *image* says which way to change each pixel; a small step of its sign is
enough. A second network is trained on such pictures, generated again in every step.
"""

import sys

import numpy as np
from drawn_digits import SIDE, draw_digits

import gradtape as tf

loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def make_model():
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input([SIDE, SIDE, 1]),
            layers.Conv2D(16, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10),
        ]
    )


def adversarial(model, images, labels, epsilon):
    """The images, each pixel moved by `epsilon` so that the loss grows."""
    with tf.GradientTape() as tape:
        tape.watch(images)
        loss = loss_object(labels, model(images))
    signed_gradient = tf.sign(tape.gradient(loss, images))
    return tf.clip_by_value(images + epsilon * signed_gradient, 0.0, 1.0)


def train(model, images, labels, steps, epsilon, rng):
    """Plain training for `epsilon` 0, else half of each batch is adversarial."""
    optimizer = tf.keras.optimizers.Adam(2e-3)
    half = 64

    @tf.function
    def step(x, y):
        if epsilon:
            fooling = adversarial(model, x[:half], y[:half], epsilon)
            x = tf.concat([fooling, x[half:]], axis=0)
        with tf.GradientTape() as tape:
            loss = loss_object(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    losses = []
    for _ in range(steps):
        pick = rng.integers(0, len(images), 2 * half)
        losses.append(float(step(tf.constant(images[pick]), tf.constant(labels[pick]))))
    return losses


def main(quick=False):
    rng = np.random.default_rng(0)
    count, steps = (500, 6) if quick else (10000, 1200)
    images, labels = draw_digits(count, rng)
    images = images.reshape(-1, SIDE, SIDE, 1)
    test_images, test_labels = draw_digits(count // 10, rng)
    test_images, test_labels = tf.constant(test_images.reshape(-1, SIDE, SIDE, 1)), tf.constant(test_labels)

    losses, models = [], {}
    for name, epsilon in [("plain", 0.0), ("adversarial", 0.15)]:
        tf.keras.utils.set_random_seed(0)
        models[name] = make_model()
        losses += train(models[name], images, labels, steps, epsilon, rng)

    epsilons = [0.0, 0.03, 0.06, 0.1, 0.15, 0.2]
    accuracies = {}
    print("right answers when every pixel is moved by epsilon")
    print("trained on   " + "".join(f"{e:8.2f}" for e in epsilons))
    for name, model in models.items():
        accuracies[name] = []
        for epsilon in epsilons:
            moved = adversarial(model, test_images, test_labels, epsilon)
            guesses = tf.argmax(model(moved), axis=1, output_type=tf.int32)
            accuracies[name].append(float(np.mean(guesses.numpy() == test_labels.numpy())))
            losses.append(float(loss_object(test_labels, model(moved))))
        print(f"{name:13}" + "".join(f"{a:8.1%}" for a in accuracies[name]))
    if not quick:
        draw(models, test_images[:8], test_labels[:8], epsilons, accuracies)
    return losses


def draw(models, images, labels, epsilons, accuracies):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(12, 4.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1.5, 1])
    grid = left.subplots(3, 8)
    left.suptitle("image, change (epsilon 0.1) and sum; above them what the plain network says", fontsize=11)
    fooled = adversarial(models["plain"], images, labels, 0.1)
    for k, pictures in enumerate((images, fooled - images, fooled)):
        answers = tf.nn.softmax(models["plain"](pictures)).numpy()
        for cell, picture, answer, label in zip(grid[k], pictures.numpy(), answers, labels.numpy()):
            cell.set(xticks=[], yticks=[])
            if k == 1:
                cell.imshow(picture[..., 0], cmap="RdBu_r", vmin=-0.2, vmax=0.2)
            else:
                cell.imshow(picture[..., 0], cmap="gray_r", vmin=0, vmax=1)
                colour = "black" if np.argmax(answer) == label else "tab:red"
                cell.set_title(f"{np.argmax(answer)} ({np.max(answer):.0%})", fontsize=9, color=colour)
    axes = right.subplots()
    for name, values in accuracies.items():
        axes.plot(epsilons, values, "o-", label=f"training: {name}")
    axes.set(xlabel="epsilon", ylabel="accuracy", title="under attack", xticks=epsilons, ylim=(0, 1.02))
    axes.legend()
    figure.savefig("fgsm.png", dpi=110)
    print("drawn to fgsm.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
