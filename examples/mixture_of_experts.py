"""Several models in one tape: experts that share out the work, and a gate that learns to choose.

    python examples/mixture_of_experts.py            # draws mixture_of_experts.png
    python examples/mixture_of_experts.py --quick    # a few steps

Three linear experts and a gate are four models with two optimizers. One tape records them all, and
`tape.gradient` takes and returns a dict of lists: the gradients of each model, from one backward pass.
"""

import sys

import numpy as np

import gradtape as tf


def curve(x, rng):
    """Three different laws on three parts of the line."""
    pieces = np.select([x < -1, x < 1], [3 + x, 0.5 - 2.5 * x], 0.8 * x - 2.8)
    return pieces + rng.normal(0, 0.15, x.shape)


def main(quick=False):
    tf.keras.utils.set_random_seed(1)
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, (600, 1)).astype(np.float32)
    y = curve(x, rng).astype(np.float32)

    layers = tf.keras.layers
    experts = [tf.keras.Sequential([tf.keras.Input([1]), layers.Dense(1)]) for _ in range(3)]
    gate = tf.keras.Sequential([tf.keras.Input([1]), layers.Dense(16, "tanh"), layers.Dense(3)])
    optimizers = {"experts": tf.keras.optimizers.Adam(0.02), "gate": tf.keras.optimizers.Adam(0.01)}
    noise = tf.Variable(0.0, name="log_noise")  # how far off the experts are, learned as well

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            answers = tf.concat([expert(x) for expert in experts], axis=1)
            log_choice = tf.nn.log_softmax(gate(x))
            # log p(y) = log sum_k p(k) N(y; answer k, noise)
            errors = -0.5 * tf.square((y - answers) * tf.exp(-noise)) - noise
            loss = -tf.reduce_mean(tf.reduce_logsumexp(log_choice + errors, axis=1))
        sources = {
            "experts": [v for expert in experts for v in expert.trainable_variables] + [noise],
            "gate": gate.trainable_variables,
        }
        gradients = tape.gradient(loss, sources)
        for name, optimizer in optimizers.items():
            optimizer.apply_gradients(zip(gradients[name], sources[name]))
        return loss

    steps = 20 if quick else 1500
    losses = []
    for k in range(1, steps + 1):
        pick = rng.integers(0, len(x), 128)
        losses.append(float(step(tf.constant(x[pick]), tf.constant(y[pick]))))
        if k % (steps // 5) == 0:
            print(f"step {k:5}  negative log-likelihood {losses[-1]:.3f}  noise {float(tf.exp(noise)):.3f}")
    print("what the experts say (true: 3 + x, 0.5 - 2.5 x, -2.8 + 0.8 x; noise 0.15)")
    for k, expert in enumerate(experts):
        slope, offset = (float(tf.squeeze(v)) for v in expert.trainable_variables)
        print(f"  expert {k}: {offset:+.2f} {slope:+.2f} x")
    if not quick:
        draw(x, y, experts, gate, losses)
    return losses


def draw(x, y, experts, gate, losses):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    grid = np.linspace(-3, 3, 300, dtype=np.float32)[:, None]
    choice = tf.nn.softmax(gate(grid)).numpy()
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.5), layout="constrained")
    left.plot(x[:, 0], y[:, 0], ".", color="0.75", ms=3)
    for k, expert in enumerate(experts):
        line = expert(grid).numpy()[:, 0]
        left.plot(grid[:, 0], line, ":", color=f"C{k}", lw=1)
        used = np.where(np.argmax(choice, axis=1) == k, line, np.nan)
        left.plot(grid[:, 0], used, color=f"C{k}", lw=2.5, label=f"expert {k}")
    left.set(xlabel="x", ylabel="y", title="experts, thick where the gate prefers them", ylim=(-4, 4))
    left.legend(fontsize=8)
    middle.stackplot(grid[:, 0], choice.T, labels=["expert 0", "expert 1", "expert 2"], alpha=0.8)
    middle.set(xlabel="x", ylabel="probability", title="the gate", xlim=(-3, 3), ylim=(0, 1))
    right.plot(losses, lw=0.7)
    right.set(xlabel="step", ylabel="negative log-likelihood", title="training")
    figure.savefig("mixture_of_experts.png", dpi=120)
    print("drawn to mixture_of_experts.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
