"""Random numbers: bit for bit TensorFlow's (the numbers below are those of TensorFlow 2.21)."""

import subprocess
import sys

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core


def f32(*values):
    return np.array(values, np.float32)


@pytest.fixture(autouse=True)
def seeded():
    tf.random.set_seed(42)


def test_sequence_after_set_seed():
    for _ in range(2):
        tf.random.set_seed(42)
        np.testing.assert_array_equal(tf.random.normal([2]), f32(0.3274685, -0.8426258))
        np.testing.assert_array_equal(tf.random.normal([2]), f32(0.08422458, -0.86090374))
        np.testing.assert_array_equal(tf.random.uniform([3]), f32(0.7413678, 0.62854624, 0.017384648))
        np.testing.assert_array_equal(
            tf.random.truncated_normal([3]), f32(0.65648675, -0.4130517, 0.33997506)
        )


def test_op_seed_continues():
    np.testing.assert_array_equal(tf.random.uniform([2], seed=1), f32(0.15012848, 0.63992536))
    np.testing.assert_array_equal(tf.random.uniform([2], seed=1), f32(0.3665805, 0.8912455))
    double = tf.random.uniform([2], seed=1, dtype=tf.float64)
    np.testing.assert_array_equal(double, [0.20102799057946608, 0.54302283440851])


def test_integers():
    np.testing.assert_array_equal(tf.random.uniform([3], 1, 10, tf.int32), [8, 6, 9])
    expected = [283259706865, 444516511674, 214284529967]
    np.testing.assert_array_equal(tf.random.uniform([3], 1, 10**12, tf.int64), expected)
    with pytest.raises(ValueError, match="Must specify maxval for integer dtype tf.int32"):
        tf.random.uniform([2], dtype=tf.int32)
    with pytest.raises(ValueError, match="Accepted dtypes are"):
        tf.random.uniform([2], 0, 10, tf.uint8)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Need minval < maxval, got 5 >= 5"):
        tf.random.uniform([2], 5, 5, tf.int32)


def test_shuffle():
    np.testing.assert_array_equal(tf.random.shuffle(tf.range(8)), [7, 2, 0, 4, 3, 1, 5, 6])
    np.testing.assert_array_equal(tf.random.shuffle(tf.range(8), seed=3), [2, 5, 3, 0, 4, 7, 6, 1])
    np.testing.assert_array_equal(tf.random.shuffle(tf.range(8), seed=3), [3, 4, 1, 7, 0, 6, 2, 5])


def test_categorical():
    draws = tf.random.categorical([[1.0, 2.0, 0.5], [0.0, 0.0, 0.0]], 5)
    assert draws.dtype is tf.int64
    np.testing.assert_array_equal(draws, [[1, 1, 1, 2, 1], [1, 0, 1, 0, 0]])
    np.testing.assert_array_equal(tf.random.categorical([[1.0, 2.0, 0.5]], 3, seed=2), [[2, 2, 1]])
    np.testing.assert_array_equal(tf.random.categorical([[1.0, 2.0, 0.5]], 3, tf.int32, seed=2), [[2, 2, 1]])
    np.testing.assert_array_equal(tf.random.categorical([[1.0, 2.0, 0.5]], 3, seed=2), [[0, 2, 0]])


def test_gamma_and_poisson():
    expected = [[0.14891692, 1.7685554], [0.0030763915, 0.7081953]]
    np.testing.assert_allclose(tf.random.gamma([2], [0.5, 3.0]), expected, rtol=1e-6)
    np.testing.assert_allclose(tf.random.gamma([3], 2.0, 3.0), [0.201712, 1.2145679, 0.10126144], rtol=1e-6)
    tf.random.set_seed(42)
    np.testing.assert_array_equal(tf.random.poisson([4], 3.0), [4, 3, 5, 1])
    np.testing.assert_array_equal(tf.random.poisson([2], [2.0, 50.0]), [[2, 49], [0, 50]])


def test_stateless():
    r = tf.random
    np.testing.assert_array_equal(r.stateless_normal([2], [1, 2]), f32(0.5441101, 0.20738031))
    np.testing.assert_array_equal(r.stateless_uniform([2], [1, 2]), f32(0.8440604, 0.19204533))
    np.testing.assert_array_equal(r.stateless_uniform([3], [1, 2], 0, 10, tf.int32), [0, 9, 4])
    full = [1105988140, 1738052849, -335576002]
    np.testing.assert_array_equal(r.stateless_uniform([3], [1, 2], None, None, tf.int32), full)
    np.testing.assert_allclose(
        r.stateless_truncated_normal([3], [7, 8], 1.0, 2.0), [-0.02997589, 3.4817908, 0.0846138], rtol=1e-5
    )
    logits = [[1.0, 2.0, 0.5], [0.0, 0.0, 0.0]]
    np.testing.assert_array_equal(
        r.stateless_categorical(logits, 5, [3, 4]), [[2, 1, 0, 1, 2], [1, 0, 0, 1, 0]]
    )
    gamma = [[0.043604534, 0.4538316], [0.2556686, 8.89546], [1.3016186, 2.615978]]
    np.testing.assert_allclose(r.stateless_gamma([3, 2], [3, 4], [0.5, 2.0]), gamma, rtol=1e-6)
    np.testing.assert_array_equal(r.stateless_poisson([5], [3, 4], 4.0), [6, 5, 5, 3, 1])
    np.testing.assert_array_equal(r.stateless_poisson([2, 2], [3, 4], [4.0, 40.0]), [[6, 29], [5, 41]])
    seeds = [[-1860230133, -671226999], [-1390659934, 1052501199], [-1503457849, -798298177]]
    np.testing.assert_array_equal(r.split([3, 4], 3), seeds)
    np.testing.assert_array_equal(r.fold_in([3, 4], 5), [-1860230133, 5])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"seed must have shape \[2\], not \[1\]"):
        r.stateless_normal([2], [1])


def test_generator():
    g = tf.random.Generator.from_seed(1)
    np.testing.assert_array_equal(g.state, [1, 0, 0])
    np.testing.assert_array_equal(g.normal([2]), f32(0.43842274, -0.53439844))
    np.testing.assert_array_equal(g.state, [513, 0, 0])
    np.testing.assert_array_equal(g.uniform([2]), f32(0.26456964, 0.24923408))
    np.testing.assert_array_equal(g.uniform([2], 0, 9, tf.int32), [3, 4])
    np.testing.assert_allclose(g.truncated_normal([2], 1.0, 0.5), [0.7752168, 1.8110385], rtol=1e-6)
    np.testing.assert_array_equal(
        g.uniform_full_int([2]), np.array([4221951919872663963, 18117656689606200407], "u8")
    )
    np.testing.assert_array_equal(g.uniform_full_int([2], tf.int32), [-191194327, 575184634])
    np.testing.assert_array_equal(g.make_seeds(2), [[3061938510242338695, 6766078197126147373], [0, 0]])


def test_generator_states():
    make = tf.random.Generator
    np.testing.assert_array_equal(make.from_seed(2**70 + 5).state, [5, 64, 0])
    np.testing.assert_array_equal(make.from_seed([1, 2]).state, [0, 1, 2])
    np.testing.assert_array_equal(make.from_seed(-1).state, [-1, -1, -1])
    np.testing.assert_array_equal(make.from_key_counter(5, [1, 2], "philox").state, [1, 2, 5])
    keys = [int(g.key) for g in make.from_seed(1).split(2)]
    assert keys == [6679402142117448868, 684265014234019051]
    g = make.from_seed(5)
    copy = make(g)
    g.normal([1])
    np.testing.assert_array_equal(copy.state, [5, 0, 0])
    g.reset_from_seed(9)
    np.testing.assert_array_equal(g.state, [9, 0, 0])
    tf.random.set_global_generator(g)
    assert tf.random.get_global_generator() is g
    assert not np.array_equal(
        make.from_non_deterministic_state().state, make.from_non_deterministic_state().state
    )


def test_differentiable_by_the_parameters():
    mean, scale = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        tf.random.set_seed(3)
        y = tf.reduce_sum(tf.random.normal([3], mean, scale)) + tf.reduce_sum(
            tf.random.uniform([3], mean, scale)
        )
        y += tf.reduce_sum(tf.random.truncated_normal([2], mean, scale))
    np.testing.assert_allclose(tape.gradient(y, [mean, scale]), [7.4951344, -3.083871], rtol=1e-5)


def test_same_numbers_for_any_number_of_threads():
    before = _core.num_threads()
    try:
        results = []
        for threads in (1, 2):
            _core.set_num_threads(threads)
            tf.random.set_seed(7)
            results.append(
                [
                    f([200_000]).numpy()
                    for f in (tf.random.normal, tf.random.uniform, tf.random.truncated_normal)
                ]
            )
        for a, b in zip(*results, strict=True):
            np.testing.assert_array_equal(a, b)
    finally:
        _core.set_num_threads(before)


def test_without_a_seed_every_run_differs():
    code = "import gradtape as tf; print(tf.random.normal([4]).numpy().tolist())"
    runs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(runs) == 2


def test_moments():
    x = tf.random.normal([100_000], 3.0, 2.0).numpy()
    assert abs(x.mean() - 3) < 0.05 and abs(x.std() - 2) < 0.05
    assert tf.random.normal([3], dtype=tf.float16).dtype is tf.float16
    assert tf.random.normal(tf.TensorShape([2, 3])).shape == (2, 3)
    with pytest.raises(TypeError, match="floating"):
        tf.random.normal([2], dtype=tf.int32)
    with pytest.raises(TypeError, match="must be an integer"):
        tf.random.set_seed("a")
