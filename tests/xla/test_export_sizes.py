"""Random functions of unknown sizes: an exported program agrees at new sizes, or raises an error for them."""

import random

import numpy as np
import pytest

import gradtape as tf

pytest.importorskip("jax", reason="export is written by JAX, which is not installed")
pytest.importorskip("flatbuffers", reason="JAX writes files with flatbuffers, which is not installed")

STEPS = {
    "centred": lambda x, n, m: x - tf.reduce_mean(x, 0, keepdims=True),
    "tail": lambda x, n, m: x[1:],
    "padded": lambda x, n, m: tf.pad(x, [[1, 0], [0, 2]]),
    "tiled": lambda x, n, m: tf.tile(x, [2, 1]),
    "flat and back": lambda x, n, m: tf.reshape(tf.reshape(x, [n * m]), [n, m]),
    "half": lambda x, n, m: x[: n // 2 + 1],
    "the first 30": lambda x, n, m: x[:, : tf.minimum(m, 30)],
    "positions": lambda x, n, m: x + tf.cast(tf.range(m), tf.float32) * 0.01,
    "by a root": lambda x, n, m: x / tf.sqrt(tf.cast(m, tf.float32)),
    "one more": lambda x, n, m: tf.concat([x, x[:1]], 0),
    "at most 19": lambda x, n, m: x * tf.minimum(tf.cast(n, tf.float32), 19.0),
    "every second": lambda x, n, m: x[:, ::2],
    "products": lambda x, n, m: tf.matmul(x, x, transpose_b=True) / tf.cast(m, tf.float32),
    "transposed": lambda x, n, m: tf.transpose(x),
    "softmax": lambda x, n, m: tf.nn.softmax(x, 0),
    "pooled": lambda x, n, m: tf.nn.max_pool1d(x[:, :, None], 2, 2, "VALID")[:, :, 0],
    "scaled": lambda x, n, m: x * tf.cast(n * n + m, tf.float32) / 100.0,
}
SIZES = ((1, 1), (2, 3), (4, 4), (19, 29), (30, 31), (57, 44), (101, 20), (8, 130))


def _program(seed):
    names = random.Random(seed).choices(list(STEPS), k=2 + seed % 3)

    def f(x):
        for name in names:
            x = STEPS[name](x, tf.shape(x)[0], tf.shape(x)[1])
        return x

    return names, f


@pytest.mark.parametrize("seed", range(16))
def test_never_wrong(seed, tmp_path):
    names, f = _program(seed)
    concrete = tf.function(f).get_concrete_function(tf.TensorSpec([None, None]))
    try:
        concrete.export(tmp_path / "f", platforms=["cpu"])
    except tf.errors.UnimplementedError as e:
        assert str(e).startswith("export: ")
        return
    loaded = tf.export.load(tmp_path / "f")
    for shape in SIZES:
        x = np.random.default_rng(shape).normal(size=shape).astype("f")
        try:
            got = np.asarray(loaded(x))
        except ValueError:
            continue  # the program is not for this size
        want = f(tf.constant(x)).numpy()
        assert got.shape == want.shape, (names, shape)
        np.testing.assert_allclose(
            got, want, rtol=2e-3, atol=2e-3 * np.abs(want).max(initial=1), err_msg=str(names)
        )


def test_most_of_them_are_exported(tmp_path):
    """Most programs are exported: `test_never_wrong` also accepts a refusal."""
    done = 0
    for seed in range(8):
        try:
            concrete = tf.function(_program(seed)[1]).get_concrete_function(tf.TensorSpec([None, None]))
            concrete.export(tmp_path / str(seed), platforms=["cpu"])
            done += 1
        except tf.errors.UnimplementedError:
            pass
    assert done >= 5
