"""Sums of matrix products that become one product."""

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.engines.native.products import join_products
from gradtape._src.graph.ir import verify
from gradtape._src.graph.simplify import simplify
from tests.graph.pass_checks import check, names, numbers, trace


def _factors(flags, count=6, rows=30, inner=4, columns=50):
    shapes = [
        (inner, rows) if flags[0] else (rows, inner),
        (columns, inner) if flags[1] else (inner, columns),
    ]
    return numbers(7, *(shapes * count))


@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("rest", [0, 2])
def test_a_sum_of_products_is_one_product(flags, rest):
    def f(*xs):
        xs, more = xs[: len(xs) - rest], xs[len(xs) - rest :]
        total = None
        for k in range(0, len(xs), 2):
            product = tf.matmul(xs[k], xs[k + 1], *flags)
            total = product if total is None else total + product
            if k == 4:
                for x in more:
                    total = total + x
        return tf.sin(total), xs[0] + 1.0

    arrays = [*_factors(flags), *numbers(8, *[(30, 50)] * rest)]
    check(f, *arrays)
    joined = join_products(simplify(trace(f, *arrays), final=True))
    verify(joined)
    assert names(joined).count("matmul") == 1 and names(joined).count("add") == rest + 1


@pytest.mark.parametrize("kind", ["few", "read", "large", "mixed"])
def test_sums_of_products_that_stay(kind):
    def f(*xs):
        products = [tf.matmul(xs[k], xs[k + 1], *flags) for k in range(0, len(xs), 2)]
        total = products[0]
        for p in products[1:]:
            total = total + p
        return (total, *products) if kind == "read" else total

    flags = (True, False)
    arrays = _factors(flags, 3 if kind == "few" else 6, inner=40 if kind == "large" else 4)
    if kind == "mixed":  # float16 is summed up in another type
        arrays = [a.astype("float16") for a in arrays]
    check(f, *arrays)
    graph = simplify(trace(f, *arrays), final=True)
    assert join_products(graph) is graph


def test_joining_products_leaves_the_other_nodes_and_finds_equal_ones():
    flags = (True, False)
    arrays = _factors(flags)

    def f(*xs):
        ys = [tf.sin(x) for x in xs]
        total = tf.matmul(ys[0], ys[1], *flags)
        for k in range(2, len(ys), 2):
            total = total + tf.matmul(ys[k], ys[k + 1], *flags)
        return tf.stack(ys[::2]) * 2.0, total

    graph = simplify(trace(f, *arrays), final=True)
    joined = join_products(graph)
    verify(joined)
    assert [n for n in joined.nodes if n.name == "sin"] == [n for n in graph.nodes if n.name == "sin"]
    assert names(joined).count("stack") == 2  # of the first factors, once for both, and of the second ones
    check(f, *arrays)


def test_steps_of_a_recurrent_net_share_one_gradient_product():
    w = tf.Variable(numbers(9, (24, 24))[0] / 8)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            h = tf.zeros([3, 24])
            for t in range(8):
                h = tf.tanh(h @ w + x[t])
            loss = tf.reduce_sum(h * h)
        return tape.gradient(loss, w)

    x = tf.constant(numbers(10, (8, 3, 24))[0])
    by_hand, delta = np.zeros((24, 24)), None
    states = [np.zeros((3, 24))]
    for t in range(8):
        states.append(np.tanh(states[-1] @ w.numpy() + x.numpy()[t]))
    delta = 2 * states[-1]
    for t in range(7, -1, -1):
        delta = delta * (1 - states[t + 1] ** 2)
        by_hand += states[t].T @ delta
        delta = delta @ w.numpy().T
    np.testing.assert_allclose(step(x), by_hand, rtol=1e-4, atol=1e-5)
    products = [line for line in str(step.profile(x, repeats=1)).splitlines() if "matmul" in line]
    assert sum("[21,24] [21,24]" in line for line in products) == 1
