"""Equal clusters run together, and short updates overwrite their inputs: results stay the same."""

import threading

import numpy as np
import pytest

import gradtape as tf

RANDOM = np.random.default_rng(0)


def variables(sizes, dtype="float32"):
    return [tf.Variable(RANDOM.normal(size=n).astype(dtype)) for n in sizes]


def arrays(vs):
    return [v.numpy().copy() for v in vs]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(
    "sizes",
    [
        [3] * 40,
        [1, 2, 1025, 7, 5000, 64, 3],
        [700] * 9,
        [0, 4, 0, 4],
        [100_000, 5, 5],
        [97, 96, 95] * 40,
        [1500] * 60,
    ],
    ids=str,
)
def test_steps_of_many_variables_are_the_steps_of_each(sizes, dtype):
    vs, alone = variables(sizes, dtype), []
    alone = [tf.Variable(v) for v in vs]
    together = tf.optimizers.Adam(0.1)
    apart = [tf.optimizers.Adam(0.1) for _ in vs]
    for _ in range(3):
        grads = [tf.constant(RANDOM.normal(size=n).astype(dtype)) for n in sizes]
        together.apply_gradients(zip(grads, vs, strict=True))
        for opt, g, v in zip(apart, grads, alone, strict=True):
            opt.apply_gradients([(g, v)])
    for v, w in zip(vs, alone, strict=True):
        assert np.array_equal(v.numpy(), w.numpy())


def test_functions_too():
    vs = variables([5] * 30 + [3000])
    expected = [2 * np.tanh(a) + a for a in arrays(vs)]

    @tf.function
    def step():
        for v in vs:
            v.assign(2.0 * tf.tanh(v) + v)

    step()
    for v, want in zip(vs, expected, strict=True):
        assert np.allclose(v.numpy(), want, atol=1e-6)


def test_dependent_clusters_run_in_order():
    vs = variables([6] * 5)
    want = arrays(vs)
    for i in range(1, 5):
        want[i] = (want[i - 1] * 2 + want[i]).astype("float32")

    @tf.function
    def step():
        for i in range(1, 5):
            vs[i].assign(vs[i - 1] * 2.0 + vs[i])

    step()
    assert all(np.allclose(v.numpy(), a, atol=1e-5) for v, a in zip(vs, want, strict=True))


def test_each_with_a_number_of_its_own():
    vs, rates = variables([4] * 6), [tf.Variable(float(i)) for i in range(6)]
    want = [a * i for i, a in enumerate(arrays(vs))]

    @tf.function
    def step():
        for v, r in zip(vs, rates, strict=True):
            v.assign(v * r)

    step()
    assert all(np.allclose(v.numpy(), a) for v, a in zip(vs, want, strict=True))


def test_shared_values_are_not_overwritten():
    vs = variables([4] * 3)
    opt = tf.optimizers.SGD(1.0)
    ones = [tf.ones([4])] * 3
    opt.apply_gradients(zip(ones, vs, strict=True))
    held, before = tf.identity(vs[1]), arrays(vs)
    view = vs[2].numpy()
    for _ in range(3):
        opt.apply_gradients(zip(ones, vs, strict=True))
    assert np.array_equal(held.numpy(), before[1]) and np.array_equal(view, before[2])
    assert all(np.allclose(v.numpy(), a - 3) for v, a in zip(vs, before, strict=True))


def test_a_gradient_that_is_the_variable_itself():
    v = tf.Variable([1.0, 2.0])
    opt = tf.optimizers.SGD(0.5)
    for _ in range(3):
        opt.apply_gradients([(v.value(), v)])
    assert np.allclose(v.numpy(), [0.125, 0.25])


def test_threads():
    """Steps of different optimizers over different variables, while others read them."""

    def work(out):
        vs, opt = [tf.Variable(tf.zeros([8])) for _ in range(20)], tf.optimizers.SGD(1.0)
        grads = [tf.ones([8])] * 20
        for _ in range(200):
            opt.apply_gradients(zip(grads, vs, strict=True))
        out.append([v.numpy() for v in vs])

    found = []
    threads = [threading.Thread(target=work, args=(found,)) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 4 and all(np.all(a == -200) for arrays_ in found for a in arrays_)
