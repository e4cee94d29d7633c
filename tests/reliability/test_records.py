"""Records of tapes lie side by side, each as long as its values need (core/slabs.h): of all shapes, in any order."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest

import gradtape as tf


@pytest.mark.parametrize("rank", range(13))
def test_values_of_different_ranks_in_one_record(rank):
    x, y = tf.constant(3.0), tf.constant(np.arange(2.0**rank).reshape((2,) * rank))
    x = tf.cast(x, y.dtype)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = x * y * y
        total = tf.reduce_sum(z)
    gx, gy = tape.gradient(total, [x, y])
    assert gx.shape == () and gy.shape == (2,) * rank
    np.testing.assert_allclose(gx.numpy(), np.sum(y.numpy() ** 2))
    np.testing.assert_allclose(gy.numpy(), 6 * y.numpy())


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 40, 500])
def test_records_of_many_values(n):
    xs = [tf.constant([float(k)]) for k in range(n)]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = tf.concat(xs, 0)
        total = tf.reduce_sum(y * y)
    for k, g in enumerate(tape.gradient(total, xs)):
        np.testing.assert_array_equal(g.numpy(), [2.0 * k])


def test_records_that_go_in_any_order():
    rng = random.Random(3)
    v = tf.Variable(0.5)
    held = []
    for number in range(3000):
        x = tf.constant(np.full((2,) * rng.randrange(4), 0.5 + number % 7))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(rng.randrange(1, 6)):
                y = rng.choice([lambda y, x=x: y * x, lambda y: y + 1, lambda y: y * tf.cast(v, y.dtype)])(y)
            y = y * y
        held.append((tape, x, y, np.sum(y.numpy())))
        while len(held) > rng.randrange(1, 400):
            tape, x, y, total = held.pop(rng.randrange(len(held)))
            if rng.random() < 0.5:
                g = tape.gradient(y, x, unconnected_gradients="zero")
                assert g.shape == x.shape and np.isfinite(g.numpy()).all()
            np.testing.assert_allclose(np.sum(y.numpy()), total)


_GROWTH = """
import gradtape as tf

def resident():
    return [int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmRSS")][0]

def chain(n):
    x = tf.constant(0.7)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(n // 2):
            y = tf.sin(y) * x
    return tape, y

chain(100)
before = resident()
kept = chain(100_000)
print((resident() - before) / 100_000)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc how much memory it has")
def test_a_record_of_scalars_is_short():
    out = subprocess.run([sys.executable, "-c", _GROWTH], capture_output=True, text=True, check=True).stdout
    assert float(out) < 600  # bytes, with the value that it keeps
