"""Gradient accumulation and clipping: large batches in small chunks, and steps that cannot explode.

    python examples/clip_and_accumulate.py            # with and without clipping, draws clip_and_accumulate.png
    python examples/clip_and_accumulate.py --quick    # a few steps

A recurrent network adds two marked numbers of a sequence. Its gradients are products of many matrices: now and then
one is hundreds of times larger than the rest, and moves the weights to a region where nothing is learned any more,
unless gradients are clipped. Each step accumulates gradients of small batches in variables; the sum is the gradient
of the large batch, which the program checks.
"""

import sys

import numpy as np

import gradtape as tf

LENGTH, UNITS = 30, 48
LARGE, SMALL = 128, 32  # a step, and the chunks in which it is computed


class Recurrent(tf.Module):
    def __init__(self):
        super().__init__()
        self.inputs = tf.Variable(tf.random.normal([2, UNITS], stddev=0.1), name="inputs")
        self.recurrent = tf.Variable(0.95 * tf.eye(UNITS), name="recurrent")
        self.bias = tf.Variable(tf.zeros([UNITS]), name="bias")
        self.outputs = tf.Variable(tf.random.normal([UNITS, 1], stddev=UNITS**-0.5), name="outputs")

    def __call__(self, sequences):
        state = tf.zeros([sequences.shape[0], UNITS])
        for x in tf.unstack(sequences, axis=1):
            state = tf.nn.relu(x @ self.inputs + state @ self.recurrent + self.bias)
        return tf.squeeze(state @ self.outputs, axis=1)


def adding_problem(count, rng):
    """Sequences of [number, mark] with two marks; the answer is the sum of the marked numbers."""
    numbers, marks = rng.uniform(0, 1, (count, LENGTH)), np.zeros((count, LENGTH))
    marks[np.arange(count), rng.integers(0, LENGTH // 2, count)] = 1
    marks[np.arange(count), rng.integers(LENGTH // 2, LENGTH, count)] = 1
    answers = np.sum(numbers * marks, axis=1)
    return tf.constant(np.stack([numbers, marks], -1), tf.float32), tf.constant(answers, tf.float32)


def train(steps, clip):
    tf.random.set_seed(3)
    rng = np.random.default_rng(3)
    model = Recurrent()
    variables = model.trainable_variables
    sums = [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]
    optimizer = tf.optimizers.SGD(learning_rate=0.01, momentum=0.9)

    def loss_of(x, y):
        return tf.reduce_mean(tf.square(model(x) - y))

    @tf.function
    def accumulate(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(x, y) * SMALL / LARGE  # so that the sum is the mean of the large batch
        for total, g in zip(sums, tape.gradient(loss, variables)):
            total.assign_add(g)
        return loss

    @tf.function
    def apply():
        norm = tf.linalg.global_norm(sums)
        gradients = [tf.convert_to_tensor(s) for s in sums]
        if clip:
            gradients, _ = tf.clip_by_global_norm(gradients, clip, use_norm=norm)
        optimizer.apply_gradients(zip(gradients, variables))
        for s in sums:
            s.assign(tf.zeros_like(s))
        return norm

    losses, norms = [], []
    for k in range(steps):
        x, y = adding_problem(LARGE, rng)
        parts = [accumulate(x[i : i + SMALL], y[i : i + SMALL]) for i in range(0, LARGE, SMALL)]
        losses.append(float(tf.add_n(parts)))
        if k == 0:
            with tf.GradientTape() as tape:
                loss = loss_of(x, y)
            whole = tape.gradient(loss, variables)
            apart = max(float(tf.reduce_max(tf.abs(s - g))) for s, g in zip(sums, whole))
            print(f"sum over {LARGE // SMALL} small batches against one large batch: {apart:.1e} apart")
        norms.append(float(apply()))
    return np.array(losses), np.array(norms)


def main(quick=False):
    steps = 6 if quick else 1500
    results = {}
    for clip in (None, 1.0):
        name = f"clipped to {clip}" if clip else "not clipped"
        losses, norms = results[name] = train(steps, clip)
        print(f"{name:15} loss {np.mean(losses[:5]):.3f} -> {np.mean(losses[-50:]):.4f}", end="")
        print(f"   largest norm of the gradient {np.max(norms):.3g}, median {np.median(norms):.3g}")
    if not quick:
        draw(results)
    return [x for losses, norms in results.values() for x in (*losses, *norms)]


def draw(results):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
    for (name, (losses, norms)), colour in zip(results.items(), ["tab:red", "tab:blue"]):
        left.semilogy(losses, lw=0.7, color=colour, label=name)
        right.semilogy(np.where(norms > 0, norms, np.nan), ".", ms=2, color=colour, label=name)
    left.axhline(1 / 6, color="0.3", ls="--", lw=1, label="always answering 1")
    left.set(xlabel="step", ylabel="mean squared error", title="adding two numbers out of 30")
    right.axhline(1.0, color="k", lw=1)
    right.set(xlabel="step", ylabel="global norm before clipping", title="gradients")
    for panel in (left, right):
        panel.legend(fontsize=8, markerscale=5)
    figure.savefig("clip_and_accumulate.png", dpi=120)
    print("drawn to clip_and_accumulate.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
