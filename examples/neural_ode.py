"""A neural ODE: the network is the right-hand side of a differential equation.

    python examples/neural_ode.py            # learns how a spiral moves, draws neural_ode.png
    python examples/neural_ode.py --quick    # a few steps

Runge-Kutta steps in a loop over tensors (`for` over `tf.range` becomes a while loop of the graph), and the tape
differentiates the loop. The network learns from short noisy chunks of one trajectory; then it predicts the whole
spiral by itself, also from starting points that it has not seen.
"""

import sys

import numpy as np

import gradtape as tf

STEP = 0.05


def true_change(y):
    """A spiral that turns faster where y is larger."""
    return (y**3) @ tf.constant([[-0.05, 0.8], [-0.8, -0.05]])


class Network(tf.Module):
    def __init__(self, width=50):
        super().__init__()
        self.w1 = tf.Variable(tf.random.normal([2, width], stddev=0.7), name="w1")
        self.b1 = tf.Variable(tf.zeros([width]), name="b1")
        self.w2 = tf.Variable(tf.random.normal([width, 2], stddev=0.1), name="w2")
        self.b2 = tf.Variable(tf.zeros([2]), name="b2")

    def __call__(self, y):
        return tf.tanh((y**3) @ self.w1 + self.b1) @ self.w2 + self.b2


@tf.function
def integrate(change, start, steps):
    """The states [steps + 1, ...] that follow from `start` [..., 2]."""
    states = tf.TensorArray(tf.float32, size=steps + 1, element_shape=start.shape)
    states = states.write(0, start)
    y = start
    for k in tf.range(steps):
        k1 = change(y)
        k2 = change(y + 0.5 * STEP * k1)
        k3 = change(y + 0.5 * STEP * k2)
        k4 = change(y + STEP * k3)
        y = y + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        states = states.write(k + 1, y)
    return states.stack()


def main(quick=False):
    tf.random.set_seed(0)
    rng = np.random.default_rng(0)
    length, chunk = 400, 20
    truth = integrate(true_change, tf.constant([[2.0, 0.0]]), length).numpy()[:, 0]
    measured = (truth + rng.normal(0, 0.02, truth.shape)).astype(np.float32)

    network = Network()
    variables = network.trainable_variables
    steps = 15 if quick else 4000
    optimizer = tf.optimizers.Adam(tf.optimizers.schedules.CosineDecay(0.01, steps))

    @tf.function
    def step(chunks):
        with tf.GradientTape() as tape:
            path = integrate(network, chunks[0], chunk)
            loss = tf.reduce_mean(tf.abs(path - chunks))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    losses = []
    for k in range(1, steps + 1):
        first = rng.integers(0, length - chunk, 64)
        chunks = measured[first + np.arange(chunk + 1)[:, None]]
        losses.append(float(step(tf.constant(chunks))))
        if k % (steps // 5) == 0:
            print(f"step {k:5}  mean distance {losses[-1]:.4f}")

    starts = tf.constant([[2.0, 0.0], [-1.2, 1.2], [0.5, -1.6]])
    learned, true = (integrate(f, starts, length).numpy() for f in (network, true_change))
    apart = np.sqrt(np.mean((learned - true) ** 2, axis=(0, 2)))
    print("distance over the whole way (root mean square), from the start of the data and two new ones:")
    print("  ".join(f"{d:.3f}" for d in apart))
    if not quick:
        draw(network, measured, learned, true)
    return losses


def draw(network, measured, learned, true):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4.1), layout="constrained")
    left.plot(*measured.T, ".", ms=3, color="0.6", label="measured")
    left.plot(*learned[:, 0].T, color="tab:blue", label="neural ODE")
    left.set(xlabel="$y_1$", ylabel="$y_2$", title="the data, and where the network goes from its start")
    side = np.linspace(-2.2, 2.2, 18, dtype=np.float32)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    arrows = network(tf.constant(grid)).numpy()
    size = np.linalg.norm(arrows, axis=1)
    middle.quiver(*grid.T, *(arrows / size[:, None]).T, np.log10(size), scale=28)
    for k in (1, 2):
        middle.plot(*true[:, k].T, color="0.6", lw=3, label="true, new starts" if k == 1 else None)
        middle.plot(*learned[:, k].T, "--", color="tab:red", label="neural ODE" if k == 1 else None)
    middle.set(xlabel="$y_1$", ylabel="$y_2$", title="the field it learned")
    times = STEP * np.arange(len(measured))
    right.plot(times, true[:, 1], color="0.6", lw=3, label=["true", None])
    right.plot(times, learned[:, 1], "--", color="tab:red", label=["neural ODE", None])
    right.set(xlabel="time", ylabel="$y_1, y_2$", title="a start that it has not seen")
    left.legend(fontsize=8, loc="center")
    for panel in (middle, right):
        panel.legend(fontsize=8, loc="upper right")
    figure.savefig("neural_ode.png", dpi=120)
    print("drawn to neural_ode.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
