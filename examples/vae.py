"""A variational autoencoder: digits as points of a plane, and what lies between them.

    python examples/vae.py            # draws the plane in vae.png
    python examples/vae.py --quick    # a few steps

The encoder gives a mean and a variance, the decoder decodes a sample of them. The gradient goes through the
sampling (mean + deviation * noise), which is all that makes it an autoencoder of a distribution.
"""

import sys
from statistics import NormalDist

import numpy as np
from drawn_digits import SIDE, draw_digits

import gradtape as tf


def dense_network(sizes, name):
    layers = tf.keras.layers
    hidden = [layers.Dense(n, activation="relu") for n in sizes[1:-1]]
    return tf.keras.Sequential([tf.keras.Input([sizes[0]]), *hidden, layers.Dense(sizes[-1])], name=name)


class VAE(tf.keras.Model):
    def __init__(self, latent=2):
        super().__init__()
        self.encoder = dense_network([SIDE * SIDE, 128, 64, 2 * latent], "encoder")
        self.decoder = dense_network([latent, 64, 128, SIDE * SIDE], "decoder")

    def encode(self, x):
        return tf.split(self.encoder(x), 2, axis=1)

    def decode(self, z):
        return tf.sigmoid(self.decoder(z))

    def loss_terms(self, x):
        mean, log_variance = self.encode(x)
        z = mean + tf.exp(0.5 * log_variance) * tf.random.normal(tf.shape(mean))
        pixels = tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=self.decoder(z))
        reconstruction = tf.reduce_mean(tf.reduce_sum(pixels, axis=1))
        divergence = 0.5 * tf.reduce_sum(mean**2 + tf.exp(log_variance) - 1 - log_variance, axis=1)
        return reconstruction, tf.reduce_mean(divergence)


def main(quick=False):
    tf.keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    images, labels = draw_digits(1000 if quick else 20000, rng, noise=0.02, variety=0.4)
    model = VAE()
    steps, batch = (20, 64) if quick else (5000, 100)
    schedule = tf.keras.optimizers.schedules.CosineDecay(2e-3, steps)
    optimizer = tf.keras.optimizers.Adam(schedule)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            reconstruction, divergence = model.loss_terms(x)
            loss = reconstruction + divergence
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss, reconstruction, divergence

    losses = []
    for k in range(1, steps + 1):
        x = images[rng.integers(0, len(images), batch)]
        loss, reconstruction, divergence = step(tf.constant(x))
        losses.append(float(loss))
        if k % (steps // 5) == 0:
            words = f"reconstruction {float(reconstruction):.2f}, divergence {float(divergence):.2f}"
            print(f"step {k:5}  -ELBO {np.mean(losses[-50:]):.2f}  ({words})")
    if not quick:
        draw(model, images[:3000], labels[:3000])
    return losses


def draw(model, images, labels):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(14, 4.8), layout="constrained", width_ratios=[1.15, 1, 0.6]
    )
    means = model.encode(images)[0].numpy()
    points = left.scatter(*means.T, s=4, c=labels, cmap="tab10", vmin=-0.5, vmax=9.5)
    figure.colorbar(points, ax=left, ticks=range(10), label="digit")
    left.set(xlabel="$z_1$", ylabel="$z_2$", title="where the encoder puts the digits", aspect="equal")

    across = [NormalDist().inv_cdf(p) for p in np.linspace(0.02, 0.98, 16)]  # equal steps of probability
    plane = np.stack(np.meshgrid(across, across[::-1]), -1).reshape(-1, 2).astype(np.float32)
    drawn = model.decode(plane).numpy().reshape(16, 16, SIDE, SIDE)
    middle.imshow(drawn.transpose(0, 2, 1, 3).reshape(16 * SIDE, -1), cmap="gray_r")
    middle.set(xticks=[], yticks=[], xlabel="$z_1$", ylabel="$z_2$", title="what the decoder draws there")

    z = model.encode(images[:8])[0]
    pairs = np.stack([images[:8], model.decode(z).numpy()], 1).reshape(8, 2, SIDE, SIDE)
    right.imshow(pairs.transpose(0, 2, 1, 3).reshape(8 * SIDE, 2 * SIDE), cmap="gray_r")
    right.set(xticks=[], yticks=[], title="image, its reconstruction")
    figure.savefig("vae.png", dpi=110)
    print("drawn to vae.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
