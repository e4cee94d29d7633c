"""Fits a physical model to data: a pendulum with friction, integrated inside the tape.

    python examples/fit_physics.py            # finds length and friction, draws fit_physics.png
    python examples/fit_physics.py --quick    # a few steps

The model is the program: Runge-Kutta steps of theta'' = -g/L sin(theta) - c theta'. The tape goes
through all of them, so length and friction are found by gradient descent on the measured angles.
"""

import sys

import numpy as np

import gradtape as tf

GRAVITY = 9.81
STEP = 0.02


def simulate(length, friction, start, steps):
    """The angles at all times, starting from rest."""

    def change(angle, speed):
        return speed, -GRAVITY / length * tf.sin(angle) - friction * speed

    angle, speed = start, tf.zeros_like(start)
    angles = []
    for _ in range(steps):
        a1, s1 = change(angle, speed)
        a2, s2 = change(angle + 0.5 * STEP * a1, speed + 0.5 * STEP * s1)
        a3, s3 = change(angle + 0.5 * STEP * a2, speed + 0.5 * STEP * s2)
        a4, s4 = change(angle + STEP * a3, speed + STEP * s3)
        angle = angle + STEP / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        speed = speed + STEP / 6 * (s1 + 2 * s2 + 2 * s3 + s4)
        angles.append(angle)
    return tf.stack(angles)


def main(quick=False):
    steps = 40 if quick else 150
    rng = np.random.default_rng(0)
    truth = {"length": 1.3, "friction": 0.4}
    start = tf.constant(1.2)
    clean = simulate(tf.constant(truth["length"]), tf.constant(truth["friction"]), start, steps)
    measured = tf.constant(clean.numpy() + rng.normal(0, 0.03, steps).astype(np.float32))

    # Logarithms, so that both stay positive.
    log_length, log_friction = tf.Variable(0.0, name="log_length"), tf.Variable(-2.0, name="log_friction")
    variables = [log_length, log_friction]
    optimizer = tf.optimizers.Adam(learning_rate=0.03)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            angles = simulate(tf.exp(log_length), tf.exp(log_friction), start, steps)
            loss = tf.reduce_mean(tf.square(angles - measured))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    losses = [float(step()) for _ in range(10 if quick else 300)]
    fitted_values = {"length": float(tf.exp(log_length)), "friction": float(tf.exp(log_friction))}
    for name in truth:
        print(f"{name:9} true {truth[name]:.3f}   found {fitted_values[name]:.3f}")
    print(f"loss      {losses[0]:.5f} -> {losses[-1]:.5f}")
    if not quick:
        fitted = simulate(
            tf.constant(fitted_values["length"]), tf.constant(fitted_values["friction"]), start, steps
        )
        first = simulate(tf.constant(1.0), tf.exp(-2.0), start, steps)
        draw(measured.numpy(), fitted.numpy(), first.numpy())
    return losses


def draw(measured, fitted, first):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    times = STEP * np.arange(1, len(measured) + 1)
    figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    axes.plot(times, measured, ".", ms=4, color="0.5", label="measured")
    axes.plot(times, first, "--", color="tab:orange", label="first guess")
    axes.plot(times, fitted, color="tab:blue", label="fitted")
    axes.set(xlabel="time [s]", ylabel="angle [rad]", title="a pendulum with friction")
    axes.legend()
    figure.savefig("fit_physics.png", dpi=120)
    print("drawn to fit_physics.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
