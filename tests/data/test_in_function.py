"""Datasets inside `tf.function`: loops, iterators, reductions, gradients."""

import numpy as np
import pytest

import gradtape as tf

Dataset = tf.data.Dataset
X = np.arange(10, dtype=np.float32)


def test_loop_is_traced_once_and_runs_each_time():
    traced = []

    @tf.function
    def total(ds):
        traced.append("function")
        s = tf.constant(0, tf.int64)
        for x in ds:
            s += x
        return s

    ds = Dataset.range(5)
    assert total(ds).numpy() == total(ds).numpy() == 10
    assert traced == ["function"]


@pytest.mark.parametrize("size", [2, 3, 4, 20])
def test_last_batch_may_be_short(size):
    @tf.function
    def weighted(ds):
        s, n = 0.0, 0
        for x, y in ds:
            s += tf.reduce_sum(x * y) * tf.cast(tf.shape(x)[0], tf.float32)
            n += 1
        return s, n

    ds = Dataset.from_tensor_slices((X, X)).batch(size).map(lambda a, b: (a + 1, b))
    expected = sum(float(tf.reduce_sum(x * y)) * len(x) for x, y in ds)
    s, n = weighted(ds)
    assert s.numpy() == expected
    assert n.numpy() == len(ds)


def test_break_and_continue():
    @tf.function
    def some(ds):
        s = tf.constant(0, tf.int64)
        for x in ds:
            if x % 2 == 1:
                continue
            s += x
            if s > 5:
                break
        return s

    assert some(Dataset.range(100)).numpy() == 6


def test_break_leaves_the_rest_to_the_iterator():
    @tf.function
    def until(it):
        s = tf.constant(0, tf.int64)
        for x in it:
            s += x
            if s > 3:
                break
        return s

    it = iter(Dataset.range(10))
    assert until(it).numpy() == 6
    assert next(it).numpy() == 4


def test_shuffles_differ_from_call_to_call():
    @tf.function
    def order(ds):
        s, k = tf.constant(0, tf.int64), tf.constant(1, tf.int64)
        for x in ds:
            s += x * k
            k *= 11
        return s

    ds = Dataset.range(10).shuffle(10, seed=1)
    a, b = order(ds).numpy(), order(ds).numpy()
    assert a != b
    again = Dataset.range(10).shuffle(10, seed=1)
    digits = sum(int(x) * 11**i for i, x in enumerate(again))
    assert np.int64(np.uint64(digits % 2**64)) == a


def test_training():
    w = tf.Variable(1.0)

    @tf.function
    def epoch(ds):
        loss = 0.0
        for x, y in ds:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((w * x - 2.0 * y) ** 2)
            w.assign_sub(0.01 * tape.gradient(loss, w))
        return loss

    ds = Dataset.from_tensor_slices((X, X)).shuffle(10, seed=1).batch(4).prefetch(1)
    for _ in range(10):
        loss = epoch(ds)
    assert loss.numpy() < 1e-6
    assert w.numpy() == pytest.approx(2.0, abs=1e-4)


def test_gradient_through_the_loop():
    w = tf.Variable(3.0)

    @tf.function
    def gradient(ds):
        with tf.GradientTape() as tape:
            s = 0.0
            for x in ds:
                s += tf.reduce_sum(w * w * x)
        return tape.gradient(s, w)

    assert gradient(Dataset.from_tensor_slices(X).batch(4)).numpy() == 2 * 3 * X.sum()


def test_nested_loops():
    @tf.function
    def products(a, b):
        s = tf.constant(0, tf.int64)
        for x in a:
            for y in b:
                s += x * y
        return s

    assert products(Dataset.range(4), Dataset.range(5)).numpy() == 6 * 10


def test_structures():
    @tf.function
    def total(ds):
        s = 0.0
        for i, batch in ds.enumerate():
            s += tf.cast(i, tf.float32) * tf.reduce_sum(batch["x"]) + tf.reduce_sum(batch["y"][0])
        return s

    ds = Dataset.from_tensor_slices({"x": X, "y": (X,)}).batch(5)
    assert total(ds).numpy() == 1 * X[5:].sum() + X.sum()


def test_empty_dataset():
    @tf.function
    def last(ds):
        y = tf.constant(-1, tf.int64)
        for x in ds:
            y = x
        return y

    assert last(Dataset.range(0)).numpy() == -1
    assert last(Dataset.range(3)).numpy() == 2

    @tf.function
    def undefined(ds):
        for x in ds:
            y = x
        return y

    with pytest.raises(tf.errors.InvalidArgumentError, match="at least once to initialize y"):
        undefined(Dataset.range(0))


def test_next_in_a_function():
    @tf.function
    def two(it):
        return next(it) + it.get_next()

    it = iter(Dataset.range(5))
    assert two(it).numpy() == 1
    assert two(it).numpy() == 5
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        two(it)


def test_next_in_a_loop():
    @tf.function
    def steps(it):
        s = tf.constant(0, tf.int64)
        for _ in tf.range(2):
            s += tf.reduce_sum(next(it))
        return s

    it = iter(Dataset.range(8).batch(2))
    assert steps(it).numpy() == 6
    assert steps(it).numpy() == 22


def test_reduce_in_a_function():
    @tf.function
    def total(ds):
        return ds.reduce((np.int64(0), 0.0), lambda s, x: (s[0] + x, s[1] + 1.0))

    s, n = total(Dataset.range(7))
    assert (s.numpy(), n.numpy()) == (21, 7.0)


def test_unknown_shapes_are_traced_once(caplog):
    runs = []

    @tf.function
    def total(ds):
        runs.append(None)
        s = 0.0
        for x in ds:
            s += tf.reduce_sum(x)
        return s

    ds = Dataset.from_generator(lambda: iter([[1.0], [1.0, 2.0]]), output_signature=tf.TensorSpec([None]))
    assert total(ds).numpy() == 4.0
    traced = len(runs)
    assert total(ds).numpy() == 4.0 and len(runs) == traced
    assert "runs eagerly" not in caplog.text
    assert total(ds.padded_batch(2)).numpy() == 4.0


def test_errors_inside_the_loop_leave_nothing_behind():
    @tf.function
    def check(ds):
        s = tf.constant(0, tf.int64)
        for x in ds:
            tf.debugging.assert_less(x, tf.constant(3, tf.int64))
            s += x
        return s

    ds = Dataset.range(5)
    for _ in range(3):
        with pytest.raises(tf.errors.InvalidArgumentError):
            check(ds)
    assert check(Dataset.range(3)).numpy() == 3


def test_datasets_made_of_symbols_run_eagerly():
    @tf.function
    def rows(x):
        s = 0.0
        for row in Dataset.from_tensor_slices(x):
            s += tf.reduce_max(row)
        return s

    assert rows(tf.constant([[1.0, 2.0], [4.0, 3.0]])).numpy() == 6.0


def test_numpy_iterators_are_for_eager_code():
    @tf.function
    def f(ds):
        return next(ds.as_numpy_iterator())

    with pytest.raises(RuntimeError, match="only supported in eager mode"):
        f(Dataset.range(3))


def test_datasets_of_one_kind_share_a_trace():
    traced = []

    @tf.function
    def total(ds):
        traced.append(1)
        s = tf.constant(0, tf.int64)
        for x in ds:
            s += tf.reduce_sum(x)
        return s

    assert [total(Dataset.range(k, k + 5).batch(2)).numpy() for k in range(4)] == [10, 15, 20, 25]
    assert len(traced) == 1
    assert total(Dataset.range(6).batch(2)).numpy() == 15
    assert len(traced) == 2, "other sizes are another kind"


def test_iterators_of_one_kind_share_a_trace_and_are_not_kept():
    import gc
    import weakref

    traced = []

    @tf.function
    def step(it):
        traced.append(1)
        return next(it) * 2

    gone = []
    for epoch in range(4):
        it = iter(Dataset.range(epoch, epoch + 3).prefetch(1))
        gone.append(weakref.ref(it))
        assert [step(it).numpy() for _ in range(3)] == [2 * epoch, 2 * epoch + 2, 2 * epoch + 4]
    del it
    gc.collect()
    assert len(traced) == 1
    assert all(ref() is None for ref in gone)


def test_steps_inside_the_function():
    @tf.function
    def total(ds):
        s = tf.constant(0, tf.int64)
        for x in ds.take(4).map(lambda x: x + 1).batch(2):
            s += tf.reduce_sum(x)
        return s

    assert total(Dataset.range(10)).numpy() == 10
    assert total(Dataset.range(5, 15)).numpy() == 6 + 7 + 8 + 9
