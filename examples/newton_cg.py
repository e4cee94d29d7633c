"""Newton's method with Hessian-vector products: second derivatives without the Hessian.

    python examples/newton_cg.py            # Newton-CG against gradient descent, draws newton_cg.png
    python examples/newton_cg.py --quick    # a few steps

Logistic regression. Each Newton step solves H d = -g by conjugate gradients, and each product H v is
one backward pass through a backward pass: an outer tape differentiates what an inner tape computed.
"""

import sys

import numpy as np

import gradtape as tf


def problem(count=400, features=20):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, features)) * np.logspace(0, -1.5, features)  # badly scaled, as data is
    w = rng.normal(size=features) * 2
    y = (rng.uniform(size=count) < 1 / (1 + np.exp(-x @ w))).astype(np.float64)
    return tf.constant(x), tf.constant(y)


def main(quick=False):
    x, y = problem()

    def loss_of(w):
        logits = tf.linalg.matvec(x, w)
        data = tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits)
        return tf.reduce_mean(data) + 1e-4 * tf.reduce_sum(w * w)

    @tf.function
    def loss_and_gradient(w):
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = loss_of(w)
        return loss, tape.gradient(loss, w)

    @tf.function
    def hessian_times(w, v):
        with tf.GradientTape() as outer:
            outer.watch(w)
            with tf.GradientTape() as inner:
                inner.watch(w)
                loss = loss_of(w)
            slope = inner.gradient(loss, w)
        return outer.gradient(slope, w, output_gradients=v)

    def solve(w, g, rounds=60):
        """Conjugate gradients for H d = -g."""
        d = tf.zeros_like(g)
        r = p = -g
        rr = tf.reduce_sum(r * r)
        for _ in range(rounds):
            if rr < 1e-20:
                break
            hp = hessian_times(w, p)
            a = rr / tf.reduce_sum(p * hp)
            d, r = d + a * p, r - a * hp
            before, rr = rr, tf.reduce_sum(r * r)
            p = r + rr / before * p
        return d

    w = tf.zeros([x.shape[1]], tf.float64)
    losses = []
    for _ in range(4 if quick else 10):
        loss, g = loss_and_gradient(w)
        losses.append(float(loss))
        w = w + solve(w, g)

    plain, v = [], tf.zeros_like(w)
    for _ in range(20 if quick else 400):
        loss, g = loss_and_gradient(v)
        plain.append(float(loss))
        v = v - 4.0 * g
    print("Newton-CG        ", "  ".join(f"{loss:.10f}" for loss in losses))
    print(f"gradient descent  {plain[-1]:.10f} after {len(plain)} steps")
    if not quick:
        draw(losses, plain)
    return losses + plain


def draw(newton, plain):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    least = min(newton) - 1e-16
    figure, axes = plt.subplots(figsize=(6.5, 3.5), layout="constrained")
    axes.loglog(np.arange(1, len(plain) + 1), np.array(plain) - least, label="gradient descent")
    axes.loglog(np.arange(1, len(newton) + 1), np.array(newton) - least, "o-", label="Newton-CG")
    axes.set(xlabel="step", ylabel="loss above the minimum", title="logistic regression, badly scaled")
    axes.legend()
    figure.savefig("newton_cg.png", dpi=120)
    print("drawn to newton_cg.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
