"""MAML: learns to learn. A gradient through gradient descent.

    python examples/maml.py            # meta-training, then a curve it has not seen, draws maml.png
    python examples/maml.py --quick    # a few steps

Each task is a sine of its own height and phase, given by ten points. The outer loss is that of the network
*after* a step of gradient descent on these points, so its gradient goes through the step: second
derivatives. A plain network that learns all sines at once is trained beside it; it finds their mean.
"""

import sys

import numpy as np

import gradtape as tf

SIZES = [1, 40, 40, 1]
INNER_RATE = 0.01


def weights():
    pairs = zip(SIZES[:-1], SIZES[1:])
    return [
        v
        for m, n in pairs
        for v in (tf.Variable(tf.random.normal([m, n], stddev=(1 / m) ** 0.5)), tf.Variable(tf.zeros([1, n])))
    ]


def network(weights, x):
    """`x` [..., points, 1]; weights may have a leading axis: one network for each task."""
    for k in range(0, len(weights), 2):
        x = tf.matmul(x, weights[k]) + weights[k + 1]
        if k + 2 < len(weights):
            x = tf.nn.relu(x)
    return x


def task_losses(weights, x, y):
    return tf.reduce_mean(tf.square(network(weights, x) - y), axis=[-2, -1])


def adapt(weights, x, y):
    """One step of gradient descent for each task, from weights with a leading axis of tasks."""
    with tf.GradientTape() as tape:
        tape.watch(weights)
        loss = tf.reduce_sum(task_losses(weights, x, y))
    gradients = tape.gradient(loss, weights)
    return [w - INNER_RATE * g for w, g in zip(weights, gradients)]


def for_each_task(variables, tasks):
    return [tf.tile(v[tf.newaxis], [tasks, 1, 1]) for v in variables]


def sample(rng, tasks, points):
    height, phase = rng.uniform(0.5, 3, (tasks, 1, 1)), rng.uniform(0, np.pi, (tasks, 1, 1))
    x = rng.uniform(-4, 4, (tasks, points, 1))
    y = height * np.sin(x - phase)
    return tf.constant(x, tf.float32), tf.constant(y, tf.float32)


def main(quick=False):
    tf.random.set_seed(1)
    rng = np.random.default_rng(1)
    tasks, shots = 20, 10
    learner, plain = weights(), weights()
    optimizers = [tf.optimizers.Adam(2e-3), tf.optimizers.Adam(2e-3)]

    @tf.function
    def meta_step(x, y, new_x, new_y):
        with tf.GradientTape() as tape:
            adapted = adapt(for_each_task(learner, tasks), x, y)
            loss = tf.reduce_mean(task_losses(adapted, new_x, new_y))
        optimizers[0].apply_gradients(zip(tape.gradient(loss, learner), learner))
        return loss

    @tf.function
    def plain_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(task_losses(plain, x, y))
        optimizers[1].apply_gradients(zip(tape.gradient(loss, plain), plain))
        return loss

    losses = []
    for _ in range(20 if quick else 8000):
        x, y = sample(rng, tasks, 2 * shots)
        losses.append(float(meta_step(x[:, :shots], y[:, :shots], x[:, shots:], y[:, shots:])))
        losses.append(float(plain_step(x, y)))

    # New tasks: the error after some steps on ten points, from either start.
    x, y = sample(rng, 200, shots + 100)
    errors = {}
    print("mean squared error on 200 new sines after steps of gradient descent on ten points")
    print("steps     " + "".join(f"{k:8}" for k in range(6)))
    for name, start in [("MAML", learner), ("plain", plain)]:
        w = for_each_task(start, 200)
        errors[name] = []
        for _ in range(6):
            errors[name].append(float(tf.reduce_mean(task_losses(w, x[:, shots:], y[:, shots:]))))
            w = adapt(w, x[:, :shots], y[:, :shots])
        print(f"{name:10}" + "".join(f"{e:8.3f}" for e in errors[name]))
    if not quick:
        draw(errors, {"MAML": learner, "plain": plain}, rng, shots)
    return losses + errors["MAML"] + errors["plain"]


def draw(errors, starts, rng, shots):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    x = tf.constant(rng.uniform(-4, 4, (1, shots, 1)), tf.float32)
    y = 2.5 * tf.sin(x - 2.2)
    grid = tf.reshape(tf.linspace(-4.0, 4.0, 200), [1, 200, 1])
    figure, panels = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for panel, (name, start) in zip(panels, starts.items()):
        panel.plot(grid[0], 2.5 * tf.sin(grid - 2.2)[0], color="0.75", lw=3, label="the sine")
        panel.plot(x[0], y[0], "k^", label="the ten points")
        w = for_each_task(start, 1)
        for k in range(6):
            if k in (0, 1, 5):
                style = {0: ":", 1: "--", 5: "-"}[k]
                panel.plot(grid[0], network(w, grid)[0], style, color="C3", label=f"steps: {k}")
            w = adapt(w, x, y)
        panel.set(xlabel="x", ylabel="y", ylim=(-3.6, 3.6), title=f"a new sine, starting from {name} weights")
    panels[0].legend(fontsize=8, loc="lower left")
    for name, values in errors.items():
        panels[2].plot(values, "o-", label=name)
    panels[2].set(xlabel="steps on ten points", ylabel="mean squared error", title="200 new sines")
    panels[2].set_ylim(0, None)
    panels[2].legend()
    figure.savefig("maml.png", dpi=120)
    print("drawn to maml.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
