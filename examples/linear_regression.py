"""Linear regression with Adam: the loop that every GradientTape program grows from.

    python examples/linear_regression.py            # prints the fit, draws linear_regression.png
    python examples/linear_regression.py --quick    # a few steps

Record the loss on a tape, ask for its gradients, hand them to an optimizer; `tf.function` compiles the step.
"""

import sys

import numpy as np

import gradtape as tf


def main(quick=False):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (200, 3)).astype(np.float32)
    truth, offset = np.array([1.5, -2.0, 0.5], np.float32), 0.7
    y = x @ truth + offset + rng.normal(0, 0.3, 200).astype(np.float32)

    w = tf.Variable(tf.zeros([3]), name="w")
    b = tf.Variable(0.0, name="b")
    optimizer = tf.optimizers.Adam(learning_rate=0.05)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            prediction = tf.linalg.matvec(x, w) + b
            loss = tf.reduce_mean(tf.square(prediction - y))
        gradients = tape.gradient(loss, [w, b])
        optimizer.apply_gradients(zip(gradients, [w, b]))
        return loss

    losses = [float(step(x, y)) for _ in range(20 if quick else 300)]
    print("true    ", truth, offset)
    print("found   ", np.round(w.numpy(), 3), round(float(b), 3))
    print(f"loss     {losses[0]:.4f} -> {losses[-1]:.4f}")
    if not quick:
        draw(x, y, w.numpy(), float(b), losses)
    return losses


def draw(x, y, w, b, losses):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    left.semilogy(losses)
    left.set(xlabel="step", ylabel="mean squared error", title="training")
    right.plot(y, x @ w + b, ".", alpha=0.6)
    right.plot([y.min(), y.max()], [y.min(), y.max()], "k--", lw=1)
    right.set(xlabel="observed", ylabel="predicted", title="fit")
    figure.savefig("linear_regression.png", dpi=120)
    print("drawn to linear_regression.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
