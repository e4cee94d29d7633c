"""`Collective`: exchanges as ops of a graph, over a group of threads; values, gradients, tracing, batching."""

import threading

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.control.collective import all_gather, all_reduce, broadcast


class Threads:
    """A group of threads that exchange tensors: a minimal class with the interface of a group."""

    def __init__(self, size):
        self.size, self._local = size, threading.local()
        self._slots, self._barrier = [None] * size, threading.Barrier(size, timeout=60)
        self.exchanges = 0

    @property
    def rank(self):
        return self._local.rank

    def _swap(self, tensors):
        self._slots[self.rank] = tensors
        if self._barrier.wait() == 0:
            self.exchanges += 1
        seen = list(self._slots)
        self._barrier.wait()
        return seen

    def all_reduce(self, tensors):
        return [tf.add_n(list(column)) for column in zip(*self._swap(tensors), strict=True)]

    def all_gather(self, tensors):
        return [list(column) for column in zip(*self._swap(tensors), strict=True)]

    def broadcast(self, tensors, root):
        return list(self._swap(tensors)[root])

    def run(self, f):
        """`f(rank)` in all threads; the results, or the first error."""
        results, errors = [None] * self.size, []

        def replica(rank):
            self._local.rank = rank
            try:
                results[rank] = f(rank)
            except BaseException as e:
                errors.append(e)
                self._barrier.abort()

        threads = [threading.Thread(target=replica, args=(r,)) for r in range(self.size)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(120)
        if errors:
            raise next((e for e in errors if not isinstance(e, threading.BrokenBarrierError)), errors[0])
        return results


@pytest.fixture(params=[1, 2, 3])
def group(request):
    return Threads(request.param)


def as_is(f):
    return f


MODES = pytest.mark.parametrize("mode", [as_is, tf.function], ids=["eager", "function"])


@MODES
def test_values(group, mode):
    def replica(rank):
        f = mode(lambda x, y: (*all_reduce(group, [x, y]), *all_reduce(group, [x], mean=True)))
        return [t.numpy() for t in f(tf.constant([1.0, 2.0]) * float(rank + 1), tf.constant(rank))]

    n = group.size
    total = n * (n + 1) / 2
    for x, y, mean in group.run(replica):
        np.testing.assert_allclose(x, [total, 2 * total])
        assert y == n * (n - 1) // 2
        np.testing.assert_allclose(mean, np.array([total, 2 * total]) / n, rtol=1e-6)
    assert group.exchanges == 2


@MODES
def test_gather_and_broadcast(group, mode):
    def replica(rank):
        x = tf.fill([2, 1], float(rank))
        rows, columns = mode(lambda x: (all_gather(group, [x], 0)[0], all_gather(group, [x], 1)[0]))(x)
        return rows.numpy(), columns.numpy(), mode(lambda x: broadcast(group, [x])[0])(x + 1.0).numpy()

    for rows, columns, first in group.run(replica):
        ranks = np.arange(group.size)
        np.testing.assert_array_equal(rows[:, 0], np.repeat(ranks, 2))
        np.testing.assert_array_equal(columns, [ranks, ranks])
        np.testing.assert_array_equal(first, np.ones((2, 1)))


def losses(group, x, rank):
    """A result of each collective, with different weights in each replica."""
    (total,) = all_reduce(group, [x * x])
    (mean,) = all_reduce(group, [tf.sin(x)], mean=True)
    (rows,) = all_gather(group, [x**3], 0)
    (first,) = broadcast(group, [tf.exp(x)])
    weights = tf.range(1.0, float(rows.shape[0]) + 1.0)
    return (
        (rank + 1.0) * tf.reduce_sum(total * mean)
        + tf.reduce_sum(weights * rows) * (rank + 2.0)
        + tf.reduce_sum(first)
    )


def whole(xs):
    """The same without a group, on the values of all replicas: the reference for gradients."""
    n = len(xs)
    total, mean = tf.add_n([x * x for x in xs]), tf.add_n([tf.sin(x) for x in xs]) / n
    rows, first = tf.concat([x**3 for x in xs], 0), tf.exp(xs[0])
    weights = tf.range(1.0, float(rows.shape[0]) + 1.0)
    out = 0.0
    for rank in range(n):
        out += (rank + 1.0) * tf.reduce_sum(total * mean) + tf.reduce_sum(weights * rows) * (rank + 2.0)
        out += tf.reduce_sum(first)
    return out


def given(rank):
    return tf.constant([0.3, -0.7]) + 0.2 * rank


def referee(n):
    """First and second derivatives of the sum of all replicas' losses: by one tape, without any exchange."""
    xs = [given(float(r)) for r in range(n)]
    with tf.GradientTape() as outer:
        outer.watch(xs)
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = whole(xs)
        gs = tape.gradient(y, xs)
        z = tf.add_n([tf.reduce_sum(g * g) for g in gs])
    return [g.numpy() for g in gs], [g.numpy() for g in outer.gradient(z, xs)]


@pytest.mark.parametrize("where", ["eager", "inside", "outside", "both"])
def test_gradients_of_both_orders(group, where):
    """Each replica differentiates its own loss and gets the gradient of the sum of all losses."""

    def loss(x, rank):
        return losses(group, x, rank)

    traced = tf.function(loss) if where in ("outside", "both") else loss

    def gradients(x, rank):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = traced(x, rank)
            g = tape.gradient(y, x)
            z = tf.reduce_sum(g * g)
        return g, outer.gradient(z, x)

    step = tf.function(gradients) if where in ("inside", "both") else gradients

    def replica(rank):
        got = [
            step(given(float(rank)), tf.constant(float(rank))) for _ in range(3)
        ]  # passes are compiled the second time
        return [[t.numpy() for t in pair] for pair in got]

    first, second = referee(group.size)
    for rank, rounds in enumerate(group.run(replica)):
        for g, gg in rounds:
            np.testing.assert_allclose(g, first[rank], rtol=2e-5)
            np.testing.assert_allclose(gg, second[rank], rtol=2e-5)


@MODES
def test_branches_and_loops_that_all_replicas_take_alike(group, mode):
    def f(x, n):
        total = tf.zeros([])
        if n > 2:
            for _ in tf.range(n):
                (s,) = all_reduce(group, [x * x])
                total = total + s
        else:
            (total,) = all_reduce(group, [x])
        return total

    def replica(rank):
        x = tf.Variable(float(rank + 1))
        g = mode(f)
        out = []
        for n in (3, 1):
            with tf.GradientTape() as tape:
                y = g(x, tf.constant(n))
            out += [float(y), float(tape.gradient(y, x))]
        return out

    n = group.size
    squares, plain = sum((r + 1.0) ** 2 for r in range(n)), sum(r + 1.0 for r in range(n))
    for rank, got in enumerate(group.run(replica)):
        assert got == [3 * squares, 3 * n * 2.0 * (rank + 1), plain, n]


def test_one_exchange_carries_all_operands_and_their_cotangents(group):
    def replica(rank):
        xs = [tf.constant(float(i)) for i in range(5)]
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = tf.add_n(all_reduce(group, xs))
        return [float(g) for g in tape.gradient(y, xs)]

    assert group.run(replica) == [[float(group.size)] * 5] * group.size
    assert group.exchanges == 2


def test_sparse_gradients_become_dense(group):
    def replica(rank):
        table = tf.Variable(tf.zeros([4, 2]))
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(table, [rank, 3]))
        return all_reduce(group, [tape.gradient(y, table)])[0].numpy()

    expected = np.zeros((4, 2))
    expected[3] = group.size
    expected[: group.size] += 1
    for got in group.run(replica):
        np.testing.assert_array_equal(got, expected)


def test_unknown_sizes(group):
    """A function of unknown sizes is recorded first: nothing is exchanged while trial sizes are traced."""

    def replica(rank):
        f = tf.function(
            lambda x: all_reduce(group, [tf.reduce_sum(x, 0)])[0],
            input_signature=[tf.TensorSpec([None, 2], tf.float32)],
        )
        return [f(tf.ones([n, 2])).numpy().tolist() for n in (3, 4, 3)]

    n = float(group.size)
    assert group.run(replica) == [[[3 * n] * 2, [4 * n] * 2, [3 * n] * 2]] * group.size
    assert group.exchanges == 3


def test_over_a_batch_all_rows_travel_at_once(group):
    def replica(rank):
        x = tf.reshape(tf.range(6.0), [3, 2]) + float(rank)
        y = tf.vectorized_map(lambda row: all_reduce(group, [row * 2.0])[0], x)
        z = tf.vectorized_map(lambda row: all_gather(group, [row], 0)[0], x)
        return y.numpy(), z.numpy()

    n = group.size
    x = [np.arange(6.0).reshape(3, 2) + r for r in range(n)]
    for y, z in group.run(replica):
        np.testing.assert_array_equal(y, 2 * sum(x))
        np.testing.assert_array_equal(z, np.concatenate(x, 1))
    assert group.exchanges == 2


def test_parts_of_different_lengths_have_their_own_gradients(group):
    def replica(rank):
        x = tf.ones([rank + 1])
        with tf.GradientTape() as tape:
            tape.watch(x)
            (rows,) = all_gather(group, [x], 0)
            y = tf.reduce_sum(rows * tf.range(float(rows.shape[0])))
        return tape.gradient(y, x).numpy().tolist()

    n, at = group.size, 0
    for rank, got in enumerate(group.run(replica)):
        assert got == [float(n * i) for i in range(at, at + rank + 1)]
        at += rank + 1


def test_wrong_axis():
    group = Threads(1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="axis 1 is out of range for a tensor of rank 1"):
        group.run(lambda rank: all_gather(group, [tf.ones([2])], 1))
