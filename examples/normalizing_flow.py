"""A normalising flow learns a density by turning it, step by step, into a Gaussian.

    python examples/normalizing_flow.py            # draws the density in normalizing_flow.png
    python examples/normalizing_flow.py --quick    # a few steps

Coupling layers (RealNVP): one coordinate scales and shifts the other, by amounts that a small network
computes. Each layer is inverted in closed form and its log-determinant is a sum, so the likelihood is exact.
The data are two interleaved moons.
"""

import sys

import numpy as np

import gradtape as tf


class Coupling(tf.Module):
    """Moves one coordinate of the plane by an affine map that depends on the other."""

    def __init__(self, moved, width=64):
        super().__init__()
        self.mask = tf.one_hot(1 - moved, 2)  # the coordinate that stays
        sizes = [2, width, width, 4]
        self.layers = [
            (tf.Variable(tf.random.normal([m, n], stddev=(2 / m) ** 0.5)), tf.Variable(tf.zeros([n])))
            for m, n in zip(sizes[:-1], sizes[1:])
        ]
        self.layers[-1][0].assign(tf.zeros([width, 4]))  # the flow starts as the identity

    def scale_and_shift(self, half):
        h = half
        for w, b in self.layers[:-1]:
            h = tf.nn.relu(tf.matmul(h, w) + b)
        w, b = self.layers[-1]
        scale, shift = tf.split(tf.matmul(h, w) + b, 2, axis=1)
        moved = 1 - self.mask
        return moved * 2 * tf.tanh(scale / 2), moved * shift

    def forward(self, x):
        scale, shift = self.scale_and_shift(x * self.mask)
        return x * tf.exp(scale) + shift, tf.reduce_sum(scale, axis=1)

    def inverse(self, y):
        scale, shift = self.scale_and_shift(y * self.mask)
        return (y - shift) * tf.exp(-scale)


class Flow(tf.Module):
    def __init__(self, depth=8):
        super().__init__()
        self.steps = [Coupling(k % 2) for k in range(depth)]

    def log_density(self, x):
        total = tf.zeros([x.shape[0]])
        for step in self.steps:
            x, log_determinant = step.forward(x)
            total += log_determinant
        return total - 0.5 * tf.reduce_sum(x**2, axis=1) - np.log(2 * np.pi)

    def stages(self, z):
        """Samples of the Gaussian on their way to the data, one array per step."""
        stages = [z]
        for step in reversed(self.steps):
            stages.append(step.inverse(stages[-1]))
        return stages


def moons(count, rng):
    angle, which = rng.uniform(0, np.pi, count), rng.integers(0, 2, count)
    side = np.where(which, -1, 1)
    points = np.stack([side * np.cos(angle) + which - 0.5, side * np.sin(angle) + 0.5 * which - 0.25], 1)
    return (1.3 * points + rng.normal(0, 0.1, (count, 2))).astype(np.float32)


def main(quick=False):
    tf.random.set_seed(0)
    rng = np.random.default_rng(0)
    flow = Flow()
    variables = flow.trainable_variables
    steps = 20 if quick else 4000
    optimizer = tf.optimizers.Adam(tf.optimizers.schedules.CosineDecay(2e-3, steps))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(flow.log_density(x))
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, variables), 10.0)
        optimizer.apply_gradients(zip(gradients, variables))
        return loss

    losses = []
    for k in range(1, steps + 1):
        losses.append(float(step(tf.constant(moons(256, rng)))))
        if k % (steps // 5) == 0:
            print(f"step {k:5}  negative log-likelihood {np.mean(losses[-50:]):.3f}")
    unseen = -float(tf.reduce_mean(flow.log_density(tf.constant(moons(5000, rng)))))
    print(f"on unseen points: {unseen:.3f} (a Gaussian of the same covariance: {gaussian(rng):.3f})")
    if not quick:
        draw(flow, rng)
    return [*losses, unseen]


def gaussian(rng):
    covariance = np.cov(moons(5000, rng).T)
    return 1 + np.log(2 * np.pi) + 0.5 * np.linalg.slogdet(covariance)[1]


def draw(flow, rng):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 6, figsize=(15, 2.7), layout="constrained", sharex=True, sharey=True)
    data = moons(1500, rng)
    panels[0].scatter(*data.T, s=2, color="0.4")
    panels[0].set(title="data", aspect="equal", ylabel="$x_2$", xlim=(-2.7, 2.7), ylim=(-2.2, 2.2))
    z = rng.normal(size=(1500, 2)).astype(np.float32)
    stages = flow.stages(tf.constant(z))
    for panel, k in zip(panels[1:5], [0, 3, 6, 8]):
        panel.scatter(*stages[k].numpy().T, s=2, c=np.arctan2(z[:, 1], z[:, 0]), cmap="twilight")
        panel.set(title="Gaussian" if k == 0 else f"after {k} of 8 steps back", aspect="equal")
    grid = np.stack(np.meshgrid(np.linspace(-3, 3, 200), np.linspace(-3, 3, 200)), -1).astype(np.float32)
    density = tf.exp(flow.log_density(tf.constant(grid.reshape(-1, 2)))).numpy().reshape(200, 200)
    panels[5].imshow(density, origin="lower", extent=(-3, 3, -3, 3), cmap="magma")
    panels[5].set(title="density of the flow")
    for panel in panels:
        panel.set(xlabel="$x_1$")
    figure.savefig("normalizing_flow.png", dpi=120)
    print("drawn to normalizing_flow.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
