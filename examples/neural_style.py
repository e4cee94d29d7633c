"""Neural style: an image is drawn in the manner of a texture, by gradient descent on its pixels.

    python examples/neural_style.py            # draws neural_style.png
    python examples/neural_style.py --quick    # a few steps

A small CNN learns to tell textures apart, which takes some seconds. Then the weights are fixed and the image is
optimized: its deep features should be those of the content, the correlations between features (Gram matrices) those
of the texture.
"""

import sys

import numpy as np

import gradtape as tf

KINDS = ["stripes", "checks", "dots", "bricks", "waves", "blobs"]
SIDE = 96  # of the images that are drawn


def texture(kind, side, rng, period=None):
    """An image [side, side, 3] of a kind of texture, in random colours, turned at random."""
    period = period or rng.uniform(6, 12)
    angle, (u0, v0) = rng.uniform(0, np.pi), rng.uniform(0, 2 * np.pi, 2)
    y, x = np.mgrid[:side, :side] * 2 * np.pi / period
    u, v = np.cos(angle) * x + np.sin(angle) * y + u0, np.cos(angle) * y - np.sin(angle) * x + v0
    shifted = np.pi / 2 * (np.cos(u / 2) > 0)  # every other row of bricks
    pattern = {
        "stripes": lambda: np.sin(u),
        "checks": lambda: 3 * np.sin(u) * np.sin(v),
        "dots": lambda: 3 * (np.cos(u) + np.cos(v) - 0.8),
        "bricks": lambda: 5 - 6 * np.maximum(np.abs(np.cos(u / 2)), np.abs(np.cos(v / 4 + shifted))) ** 8,
        "waves": lambda: 2 * np.sin(u + 1.5 * np.sin(v)),
        "blobs": lambda: sum(np.sin(np.cos(a) * x + np.sin(a) * y + p) for a, p in rng.uniform(0, 6.3, (8, 2))),
    }[kind]()  # fmt: skip
    mix = 1 / (1 + np.exp(-2 * pattern))[..., None]
    first = rng.uniform(0, 1, 3)
    second = (first + 0.5) % 1
    return np.clip(first + (second - first) * mix + rng.normal(0, 0.02, (side, side, 3)), 0, 1)


def picture(side):
    """The content: a boat under the sun."""
    y, x = np.mgrid[:side, :side] / side
    image = np.stack([0.45 + 0.4 * y, 0.65 + 0.2 * y, 0.95 - 0.1 * y], -1)
    image[y > 0.72] = [0.1, 0.3, 0.55]
    image[(x - 0.78) ** 2 + (y - 0.22) ** 2 < 0.11**2] = [1.0, 0.85, 0.2]
    image[(y > 0.68) & (y < 0.8) & (np.abs(x - 0.42) < 0.28 - 0.9 * (y - 0.68))] = [0.45, 0.2, 0.1]
    image[(y > 0.12) & (y < 0.65) & (x > 0.44) & (x - 0.44 < 0.5 * (y - 0.12))] = [0.95, 0.95, 0.9]
    image[(y > 0.22) & (y < 0.65) & (x < 0.42) & (0.42 - x < 0.45 * (y - 0.22))] = [0.85, 0.25, 0.2]
    return image


def make_classifier():
    layers, inputs = tf.keras.layers, tf.keras.Input([None, None, 3])
    x, features = layers.Rescaling(4.0, offset=-2.0)(inputs), []
    for filters, size in [(24, 5), (32, 5), (48, 3)]:
        if features:
            x = layers.AveragePooling2D(2)(x)
        x = layers.Conv2D(filters, size, padding="same", activation="relu")(x)
        features.append(x)
    scores = layers.Dense(len(KINDS))(layers.GlobalAveragePooling2D()(x))
    return tf.keras.Model(inputs, scores), tf.keras.Model(inputs, features)


def gram(features):
    result = tf.linalg.einsum("bijc,bijd->bcd", features, features)
    return result / float(features.shape[1] * features.shape[2])


def distance(x, target):
    return tf.reduce_mean(tf.square(x - target)) / tf.reduce_mean(tf.square(target))


def main(quick=False):
    tf.keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    side, steps = (32, 5) if quick else (SIDE, 200)
    classifier, extractor = make_classifier()
    kinds = rng.integers(0, len(KINDS), 200 if quick else 2000)
    examples = np.stack([texture(KINDS[k], 24, rng) for k in kinds]).astype(np.float32)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    classifier.compile(optimizer=tf.keras.optimizers.Adam(1.5e-3), loss=loss, metrics=["accuracy"])
    history = classifier.fit(examples, kinds, epochs=1 if quick else 12, shuffle=False, verbose=0).history
    print(f"textures told apart: {history['accuracy'][-1]:.1%}")

    content = tf.constant(picture(side)[None], tf.float32)
    styles = {kind: texture(kind, side, rng, period=10) for kind in ("bricks", "waves", "dots", "stripes")}
    losses, drawn = list(history["loss"]), {}
    for kind, style in styles.items():
        wanted_content = extractor(content)[1]
        wanted_grams = [gram(f) for f in extractor(tf.constant(style[None], tf.float32))]
        image = tf.Variable(tf.clip_by_value(content + rng.normal(0, 0.2, tuple(content.shape)), 0.0, 1.0))
        optimizer = tf.keras.optimizers.Adam(0.02, beta_2=0.9)  # gradients shrink a hundredfold

        @tf.function
        def step(image, wanted_content, wanted_grams, optimizer=optimizer):
            with tf.GradientTape() as tape:
                features = extractor(image)
                content_loss = distance(features[1], wanted_content)
                style_loss = tf.add_n([distance(gram(f), w) for f, w in zip(features, wanted_grams)])
                smoothness = tf.reduce_sum(tf.image.total_variation(image)) / side**2
                loss = 0.3 * content_loss + style_loss + 0.02 * smoothness
            optimizer.apply_gradients([(tape.gradient(loss, image), image)])
            image.assign(tf.clip_by_value(image, 0.0, 1.0))
            return loss

        losses += [float(step(image, wanted_content, wanted_grams)) for _ in range(steps)]
        drawn[kind] = image.numpy()[0]
        print(f"{kind:8} loss {losses[-steps]:9.3f} -> {losses[-1]:.3f}")
    if not quick:
        draw(content.numpy()[0], styles, drawn, np.reshape(losses[-steps * len(styles) :], [len(styles), -1]))
    return losses


def draw(content, styles, drawn, curves):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, grid = plt.subplots(2, 5, figsize=(12, 5), layout="constrained")
    grid[0, 0].imshow(content)
    grid[0, 0].set_title("content")
    for column, kind in zip(grid.T[1:], styles):
        column[0].imshow(styles[kind])
        column[0].set_title(kind)
        column[1].imshow(drawn[kind])
    grid[1, 0].semilogy(curves.T, label=list(styles))
    grid[1, 0].set(xlabel="step", ylabel="loss")
    grid[1, 0].legend(fontsize=8)
    for cell in [grid[0, 0], *grid[:, 1:].flat]:
        cell.set(xticks=[], yticks=[])
    figure.savefig("neural_style.png", dpi=110)
    print("drawn to neural_style.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
