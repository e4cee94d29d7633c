"""Small slices of a long run: `make soak` takes a million training steps."""

import gc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gradtape as tf

_TOOLS = Path(__file__).resolve().parents[2] / "tools"
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the tools read /proc")


def run(tool, *arguments):
    command = [sys.executable, str(_TOOLS / tool), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@linux
def test_training_does_not_grow():
    done = run("soak.py", "--steps", "20000")
    assert done.returncode == 0, done.stdout
    assert "no growth" in done.stdout


def test_functions_that_come_and_go_leave_nothing():
    w, x = tf.Variable(tf.ones([4, 6])), tf.ones([8, 4])

    def loop(x):
        y = x * 2.0
        i = tf.constant(0)
        while i < 3:
            y, i = y + x, i + 1
        return tf.cond(tf.reduce_sum(y) > 0.0, lambda: tf.reduce_sum(y @ w), lambda: tf.reduce_sum(w))

    def own_gradient(x):
        y = x * 2.0

        @tf.custom_gradient
        def double(z):
            return z * y, lambda g: g * y

        with tf.GradientTape() as tape:
            tape.watch(x)
            out = double(x)
        return tape.gradient(out, x)

    def assigning(x):
        w.assign_add(tf.reduce_sum(x) * tf.ones([4, 6]))

    def failing(x):
        return tf.matmul(w, x * 2.0)

    def once():
        for f in (loop, own_gradient, assigning, lambda x: tf.map_fn(lambda r: r[0] * w[0], x)):
            tf.function(f)(x)
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.function(failing)(x[:, :1])

    def held():
        for _ in range(3):
            gc.collect()
        return len(gc.get_objects()), tf.config.memory_info()["live_tensors"]

    for _ in range(3):
        once()
    objects, tensors = held()
    for _ in range(20):
        once()
    more_objects, more_tensors = held()
    assert more_tensors == tensors
    assert more_objects - objects < 20 * 5, "a function leaves its graph behind"
    assert np.isfinite(w).all()
