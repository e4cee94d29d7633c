"""A physics-informed network solves Burgers' equation, and is compared with the analytic solution.

    python examples/pinn_burgers.py            # trains, draws pinn_burgers.png
    python examples/pinn_burgers.py --quick    # a few steps

u_t + u u_x = nu u_xx on [-1, 1] with u(0, x) = -sin(pi x): a sine wave that steepens into a shock. The
network never sees a solution. Its loss is the equation itself, at random points: derivatives with respect to x and t
come from an inner tape, the second derivative from an outer one, the gradient for Adam from a third.
"""

import sys

import numpy as np

import gradtape as tf

VISCOSITY = 0.02 / np.pi


def exact(x, t):
    """The solution of Cole and Hopf, its integrals by Gauss-Hermite quadrature."""
    z, weights = np.polynomial.hermite.hermgauss(100)
    y = x[..., None] - np.sqrt(4 * VISCOSITY * t)[..., None] * z
    # The largest exponent is taken off: it cancels in the fraction.
    f = weights * np.exp((1 - np.cos(np.pi * y)) / (2 * np.pi * VISCOSITY) - 1 / (np.pi * VISCOSITY))
    return -np.sum(np.sin(np.pi * y) * f, -1) / np.sum(f, -1)


class Solution(tf.Module):
    """u(t, x), built so that it meets the initial and the boundary conditions whatever its weights are."""

    def __init__(self, width=32, depth=4):
        super().__init__()
        sizes = [2] + [width] * depth + [1]
        self.weights = [
            (tf.Variable(tf.random.normal([m, n], stddev=(1 / m) ** 0.5)), tf.Variable(tf.zeros([n])))
            for m, n in zip(sizes[:-1], sizes[1:])
        ]

    def __call__(self, t, x):
        h = tf.concat([2 * t - 1, x], axis=1)
        for w, b in self.weights[:-1]:
            h = tf.tanh(h @ w + b)
        w, b = self.weights[-1]
        return -tf.sin(np.pi * x) + t * (1 - x**2) * (h @ w + b)


def residual(u, t, x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch([t, x])
            value = u(t, x)
        u_t, u_x = inner.gradient(value, [t, x])
    u_xx = outer.gradient(u_x, x)
    return u_t + value * u_x - VISCOSITY * u_xx


def main(quick=False):
    tf.random.set_seed(0)
    rng = np.random.default_rng(0)
    u = Solution()
    variables = u.trainable_variables
    steps, points = (20, 200) if quick else (4000, 1000)
    schedule = tf.optimizers.schedules.CosineDecay(5e-3, decay_steps=steps)
    optimizer = tf.optimizers.Adam(learning_rate=schedule)

    @tf.function
    def step(t, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(residual(u, t, x)))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    losses = []
    for k in range(1, steps + 1):
        t, x = rng.uniform([0, -1], [1, 1], (points, 2)).astype(np.float32).T[..., None]
        losses.append(float(step(tf.constant(t), tf.constant(x))))
        if k % max(1, steps // 10) == 0:
            print(f"step {k:5}  mean squared residual {losses[-1]:.2e}")

    times, places = np.meshgrid(np.linspace(0.01, 1, 100), np.linspace(-1, 1, 257), indexing="ij")
    truth = exact(places, times)
    inputs = [tf.constant(a.reshape(-1, 1).astype(np.float32)) for a in (times, places)]
    solution = u(*inputs).numpy().reshape(truth.shape)
    error = np.linalg.norm(solution - truth) / np.linalg.norm(truth)
    print(f"relative error against the analytic solution: {error:.2%}")
    if not quick:
        draw(times, places, truth, solution, losses)
    return losses


def draw(times, places, truth, solution, losses):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    image = left.pcolormesh(times, places, solution, cmap="RdBu_r", shading="gouraud")
    left.set(xlabel="t", ylabel="x", title="u(t, x) of the network")
    figure.colorbar(image, ax=left)
    for k, colour in zip([0, 24, 49, 99], ["0.6", "tab:blue", "tab:orange", "tab:red"]):
        middle.plot(places[k], truth[k], color=colour, label=f"t = {times[k, 0]:.2f}")
        middle.plot(places[k, ::8], solution[k, ::8], "o", ms=3, color=colour)
    middle.set(xlabel="x", ylabel="u", title="lines: analytic, dots: network")
    middle.legend(fontsize=8)
    right.semilogy(losses, lw=0.5)
    right.set(xlabel="step", ylabel="mean squared residual", title="training")
    figure.savefig("pinn_burgers.png", dpi=120)
    print("drawn to pinn_burgers.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
