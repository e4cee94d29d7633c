"""A GAN: one network draws digits, the other tells them from real ones, and both learn from it.

    python examples/gan.py            # draws gan.png: what the generator made as it learned
    python examples/gan.py --quick    # a few steps

Two models, two optimizers, two tapes over the same computation: each tape computes the gradients of its own model.
Convolutions and transposed convolutions of Keras.
"""

import sys

import numpy as np
from drawn_digits import SIDE, draw_digits

import gradtape as tf

LATENT = 32


def make_generator():
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input([LATENT]),
            layers.Dense(4 * 4 * 64, use_bias=False),
            layers.BatchNormalization(),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Reshape([4, 4, 64]),
            layers.Conv2DTranspose(32, 4, strides=2, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Conv2DTranspose(1, 4, strides=2, padding="same", activation="sigmoid"),
        ],
        name="generator",
    )


def make_discriminator():
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input([SIDE, SIDE, 1]),
            layers.Conv2D(32, 4, strides=2, padding="same"),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Conv2D(64, 4, strides=2, padding="same"),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Flatten(),
            layers.Dense(1),
        ],
        name="discriminator",
    )


cross_entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True)


def discriminator_loss(real_output, fake_output):
    # Labels of 0.9 instead of 1 keep the discriminator from becoming certain.
    real_loss = cross_entropy(0.9 * tf.ones_like(real_output), real_output)
    fake_loss = cross_entropy(tf.zeros_like(fake_output), fake_output)
    return real_loss + fake_loss


def generator_loss(fake_output):
    return cross_entropy(tf.ones_like(fake_output), fake_output)


def main(quick=False):
    tf.keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    images = draw_digits(1000 if quick else 20000, rng, noise=0.02, variety=0.6)[0].reshape(-1, SIDE, SIDE, 1)
    generator, discriminator = make_generator(), make_discriminator()
    generator_optimizer = tf.keras.optimizers.Adam(1e-3, beta_1=0.5)
    discriminator_optimizer = tf.keras.optimizers.Adam(3e-4, beta_1=0.5)
    steps, batch = (5, 16) if quick else (3000, 64)

    @tf.function
    def train_step(images, noise):
        with tf.GradientTape() as gen_tape, tf.GradientTape() as disc_tape:
            generated = generator(noise, training=True)
            real_output = discriminator(images, training=True)
            fake_output = discriminator(generated, training=True)
            gen_loss = generator_loss(fake_output)
            disc_loss = discriminator_loss(real_output, fake_output)
        gen_gradients = gen_tape.gradient(gen_loss, generator.trainable_variables)
        disc_gradients = disc_tape.gradient(disc_loss, discriminator.trainable_variables)
        generator_optimizer.apply_gradients(zip(gen_gradients, generator.trainable_variables))
        discriminator_optimizer.apply_gradients(zip(disc_gradients, discriminator.trainable_variables))
        return gen_loss, disc_loss

    seeds = tf.constant(rng.normal(size=(10, LATENT)), tf.float32)
    losses, shown = [], {}
    for k in range(1, steps + 1):
        real = images[rng.integers(0, len(images), batch)]
        noise = rng.normal(size=(batch, LATENT)).astype(np.float32)
        losses.append([float(loss) for loss in train_step(tf.constant(real), tf.constant(noise))])
        if k in (steps // 30, steps // 10, steps // 3, steps):
            shown[k] = generator(seeds, training=False).numpy()
            g, d = np.mean(losses[-100:], axis=0)
            print(f"step {k:5}  generator {g:.3f}  discriminator {d:.3f}")
    if not quick:
        draw(shown, images[:10], losses)
    return [x for pair in losses for x in pair]


def draw(shown, real, losses):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.3), layout="constrained", width_ratios=[1.7, 1])
    rows = [*shown.values(), real]
    pixels = np.stack(rows)[..., 0].transpose(0, 2, 1, 3).reshape(len(rows) * SIDE, -1)
    left.imshow(pixels, cmap="gray_r", vmin=0, vmax=1)
    left.set(xticks=[], title="the same ten seeds as the generator learns")
    left.set_yticks(SIDE * (np.arange(len(rows)) + 0.5), [*(f"step {k}" for k in shown), "real digits"])
    for curve, name in zip(np.transpose(losses), ["generator", "discriminator"]):
        smooth = np.convolve(curve, np.ones(25) / 25, "valid")
        right.plot(smooth, lw=0.8, label=name)
    right.set(xlabel="step", ylabel="loss (mean of 25 steps)", title="training")
    right.legend()
    figure.savefig("gan.png", dpi=110)
    print("drawn to gan.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
