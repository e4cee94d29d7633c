"""The Jacobian of a network's outputs with respect to its weights, at certain epochs: how its kernel learns.

    python examples/jacobian_epochs.py            # a table, and the kernels in jacobian_epochs.png
    python examples/jacobian_epochs.py --quick    # a few epochs

J has a row for each example and a column for each weight. K = J J^T is the neural tangent kernel: a step of
gradient descent on one example moves the output of another by K times the error. In wide networks it
hardly changes; here it turns towards the target while the network learns.
"""

import sys

import numpy as np

import gradtape as tf


class TangentKernel(tf.keras.callbacks.Callback):
    """Records K at the start and after the given epochs."""

    def __init__(self, x, epochs):
        super().__init__()
        self.x, self.epochs, self.kernels = x, epochs, {}

    def on_train_begin(self, logs=None):
        self.kernels[0] = self.kernel()

    def on_epoch_end(self, epoch, logs=None):
        if epoch + 1 in self.epochs:
            self.kernels[epoch + 1] = self.kernel()

    def kernel(self):
        with tf.GradientTape() as tape:
            outputs = tf.squeeze(self.model(self.x), axis=1)
        jacobians = tape.jacobian(outputs, self.model.trainable_variables)
        rows = tf.concat([tf.reshape(j, [len(self.x), -1]) for j in jacobians], axis=1)
        return tf.matmul(rows, rows, transpose_b=True).numpy()


def figures(kernel, first, y):
    """Trace, effective rank, agreement with the target, and how far it is from the first kernel."""
    eigenvalues = np.maximum(np.linalg.eigvalsh(kernel.astype(np.float64)), 0)
    parts = eigenvalues / eigenvalues.sum()
    rank = np.exp(-np.sum(parts[parts > 0] * np.log(parts[parts > 0])))
    centred = y - y.mean()
    alignment = centred @ kernel @ centred / (np.linalg.norm(kernel) * (centred @ centred))
    cosine = np.sum(kernel * first) / (np.linalg.norm(kernel) * np.linalg.norm(first))
    return eigenvalues.sum(), rank, alignment, np.degrees(np.arccos(min(cosine, 1.0)))


def main(quick=False):
    tf.keras.utils.set_random_seed(0)
    x = np.linspace(-1, 1, 32 if quick else 96, dtype=np.float32)[:, None]
    y = np.where(np.sin(5 * x) > 0, 1.0, -1.0).astype(np.float32) * (0.5 + 0.5 * x)
    epochs = [2, 4] if quick else [20, 200, 2000]

    model = tf.keras.Sequential(
        [
            tf.keras.Input([1]),
            tf.keras.layers.Dense(64, activation="tanh", kernel_initializer="he_normal"),
            tf.keras.layers.Dense(64, activation="tanh"),
            tf.keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer=tf.keras.optimizers.Adam(3e-3), loss="mse")
    watcher = TangentKernel(x, epochs)
    history = model.fit(
        x, y, batch_size=len(x), epochs=epochs[-1], shuffle=False, verbose=0, callbacks=[watcher]
    )
    losses = history.history["loss"]

    first = watcher.kernels[0]
    table = {k: figures(kernel, first, y[:, 0]) for k, kernel in watcher.kernels.items()}
    print(f"{model.count_params()} weights, {len(x)} examples")
    print("epoch      loss     trace K   effective rank   alignment with y   angle to K(0)")
    for k, (trace, rank, alignment, angle) in table.items():
        print(f"{k:5}  {losses[max(k - 1, 0)]:8.5f}  {trace:10.1f}   {rank:14.2f}", end="")
        print(f"   {alignment:16.3f}   {angle:9.1f} deg")
    if not quick:
        draw(x[:, 0], y[:, 0], model(x).numpy()[:, 0], watcher.kernels)
    return losses + [float(v) for row in table.values() for v in row[:3]]


def draw(x, y, prediction, kernels):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 3, figsize=(11, 6.6), layout="constrained")
    panels = panels.flat
    for panel, (epoch, kernel) in zip(panels, kernels.items()):
        panel.imshow(kernel / np.max(kernel), extent=(-1, 1, 1, -1), cmap="magma", vmin=0)
        panel.set(title=f"K at epoch {epoch}", xlabel="x'", ylabel="x")
    for epoch, kernel in kernels.items():
        panels[4].semilogy(np.linalg.eigvalsh(kernel)[::-1][:25], ".-", label=f"epoch {epoch}")
    panels[4].set(xlabel="number", ylabel="eigenvalue", title="spectrum of K", ylim=(1e-4, None))
    panels[4].legend(fontsize=8)
    panels[5].plot(x, y, ".", color="0.6", ms=4, label="data")
    panels[5].plot(x, prediction, color="tab:red", label="network")
    panels[5].set(xlabel="x", ylabel="y", title="after training")
    panels[5].legend(fontsize=8)
    figure.savefig("jacobian_epochs.png", dpi=110)
    print("drawn to jacobian_epochs.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
