"""Objects shared by threads: variables, functions, ops, tapes, caches; with the interpreter's lock and without it."""

import gc
import sys
import threading
import time

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core
from tests.reliability.test_threads import at_once

_STEPS = 200


def _is_free_threaded():
    return not getattr(sys, "_is_gil_enabled", lambda: True)()


@pytest.mark.skipif("free-threading" not in sys.version, reason="an interpreter with its lock")
def test_the_lock_stays_off():
    assert _is_free_threaded()


def test_one_variable_many_tapes():
    """Concurrent passes visit the same leaf of a variable, and each computes its own gradient."""
    w = tf.Variable(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))
    xs = [tf.constant(np.full((2, 3), k + 1, np.float32)) for k in range(8)]

    def gradient(k):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.tanh(xs[k] @ w) ** 2 + tf.reduce_sum(w, axis=0))
        return tape.gradient(y, w).numpy()

    alone = [gradient(k) for k in range(8)]
    for k, found in enumerate(at_once(lambda k: [gradient(k) for _ in range(_STEPS)])):
        assert all(np.array_equal(g, alone[k]) for g in found)


def test_one_tensor_watched_by_many_tapes():
    for _ in range(50):
        x = tf.constant([1.0, 2.0, 3.0])

        def gradient(k, x=x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(x**2 * float(k + 1))
            return tape.gradient(y, x).numpy()

        for k, g in enumerate(at_once(gradient)):
            np.testing.assert_array_equal(g, 2.0 * (k + 1) * x.numpy())


def test_one_persistent_tape():
    w = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        ys = [tf.reduce_sum(tf.sin(w) * float(k + 1)) for k in range(8)]
    found = at_once(lambda k: [tape.gradient(ys[k], w).numpy() for _ in range(_STEPS)])
    for k, gradients in enumerate(found):
        for g in gradients:
            np.testing.assert_allclose(g, (k + 1) * np.cos(w.numpy()), rtol=1e-5)


def test_one_tape_used_up_by_one_thread():
    """Several threads ask a tape that is not persistent for its gradient: each gets it, or an error."""
    for _ in range(50):
        w = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            y = w * w * w

        def gradient(k, tape=tape, y=y, w=w):
            try:
                return tape.gradient(y, w)
            except RuntimeError as e:
                assert "GradientTape.gradient" in str(e) or "once" in str(e) or "persistent" in str(e), e
                return None

        given = [float(g) for g in at_once(gradient, 4) if g is not None]
        assert given
        assert set(given) == {27.0}


def test_records_of_another_thread_come_first():
    """Records are numbered in topological order, even if threads pass tensors to each other under one tape."""
    x = tf.constant(1.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        carried = [x]

        def work():
            with _core.Scope(tapes=(tape,)):
                for _ in range(100):
                    carried[0] = carried[0] * 1.01

        for _ in range(6):
            t = threading.Thread(target=work)
            t.start()
            t.join()
            carried[0] = carried[0] + x
    expected = 1.0
    for _ in range(6):
        expected = expected * 1.01**100 + 1
    np.testing.assert_allclose(tape.gradient(carried[0], x), expected, rtol=1e-4)


def test_several_threads_record_on_one_tape():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)

        def work(k):
            with _core.Scope(tapes=(tape,)):
                y = x
                for _ in range(100):
                    y = y * 1.0 + 0.0
                return y * float(k + 1)

        total = tf.add_n(at_once(work))
    np.testing.assert_allclose(tape.gradient(total, x), [36.0, 36.0])


def test_changes_add_up():
    """assign_add is atomic."""
    v = tf.Variable(np.zeros(64, np.float32))
    one = tf.ones(64)
    at_once(lambda k: [v.assign_add(one, read_value=False) for _ in range(_STEPS)])
    np.testing.assert_array_equal(v.numpy(), np.full(64, 8 * _STEPS, np.float32))


def test_functions_change_all_variables_at_one_moment():
    a, b = tf.Variable(np.zeros(1000, np.float32)), tf.Variable(np.zeros(1000, np.float32))

    @tf.function
    def step(x):
        a.assign_add(x)
        b.assign_add(x)
        return a[0]

    @tf.function
    def look():
        return tf.reduce_max(tf.abs(a - b))

    one = tf.ones(1000)
    step(tf.zeros(1000))
    look()

    def work(k):
        if k % 2:
            return max(float(look()) for _ in range(_STEPS))
        for _ in range(_STEPS):
            step(one)
        return 0.0

    assert max(at_once(work)) == 0.0
    assert np.array_equal(a.numpy(), b.numpy())


def test_optimizer_steps_of_many_models():
    def train(k):
        w = tf.Variable(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
        x = tf.constant(np.full((4, 2), (k + 1) / 8, np.float32))
        optimizer = tf.optimizers.Adam(0.01)
        for _ in range(50):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ w - 1.0) ** 2)
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return w.numpy()

    alone = [train(k) for k in range(8)]
    for mine, found in zip(alone, at_once(train), strict=True):
        np.testing.assert_array_equal(found, mine)


def test_one_cache_while_shapes_change():
    """Threads add structures to the cache of compiled passes, and evict them."""

    def work(k):
        for n in range(1, 60):
            x = tf.Variable(tf.ones(n + k))
            for _ in range(3):
                with tf.GradientTape() as tape:
                    y = tf.reduce_sum(x * x)
                np.testing.assert_array_equal(tape.gradient(y, x), np.full(n + k, 2, np.float32))
            if n % 20 == k:
                _core.clear_compiled()
        return True

    assert all(at_once(work))


def test_lists_that_another_thread_changes():
    """A list may change while it is converted: the tensor has one of its states, or there is an error."""
    items, over = [1.0] * 100, threading.Event()

    def change():
        while not over.is_set():
            items.append(2.0)
            del items[50:]
            items.extend([3.0] * 50)

    t = threading.Thread(target=change)
    t.start()
    try:
        for _ in range(_STEPS):
            x = tf.constant(items).numpy()
            assert set(x) <= {1.0, 2.0, 3.0}
    finally:
        over.set()
        t.join()


def test_garbage_is_collected_beside_tapes():
    def work(k):
        if k == 0:
            for _ in range(30):
                gc.collect()
            return True
        for _ in range(_STEPS):
            w = tf.Variable(2.0)
            with tf.GradientTape() as tape:
                y = w * w
            tape.self = tape  # a reference cycle, which any thread may collect
            assert float(tape.gradient(y, w)) == 4.0
        return True

    assert all(at_once(work))


def _beside(owner, others, turns=200):
    """Runs `owner(k)` and `others(k)` in two threads, in step."""
    step, errors = threading.Barrier(2), []

    def work(f):
        try:
            for k in range(turns):
                step.wait(60)
                f(k)
        except BaseException as e:
            errors.append(e)
            step.abort()

    threads = [threading.Thread(target=work, args=(f,)) for f in (owner, others)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise next((e for e in errors if not isinstance(e, threading.BrokenBarrierError)), errors[0])


def test_watchers_and_trackers_that_another_thread_takes_away():
    """While another thread leaves a scope, this one may read the state that the scope set."""

    class Watcher:
        def __init__(self):
            self.seen = [0]

        def __call__(self, op, operands, result):
            self.seen[0] += 1

    class Tracker:
        def assign(self, variable, value):
            self.last = value

        def read(self, variable):
            return None

    x, v = tf.constant(1.0), tf.Variable(0.0)
    left = []

    def owner(k):
        scope = _core.Scope(watcher=Watcher(), tracker=Tracker())
        scope.__enter__()
        left.append(scope)
        del scope
        for _ in range(20):
            tf.identity(x)
            v.assign(x)
            _core.op_watcher()
            _core.assign_tracker()

    def other(k):
        while not left:
            time.sleep(0)
        scope = left.pop()
        scope.__exit__(None, None, None)

    _beside(owner, other)


def test_tapes_that_another_thread_drops():
    """Another thread drops the last reference to a recording tape, while its own thread lists its tapes."""
    w = tf.Variable(1.0)
    open_tapes = []

    def owner(k):
        tape = tf.GradientTape()
        tape.__enter__()
        open_tapes.append(tape)
        del tape
        for _ in range(10):
            assert all(isinstance(t, tf.GradientTape) for t in _core.recording_tapes())
            w * w
        while _core.recording_tapes():
            time.sleep(0)

    def other(k):
        while not open_tapes:
            time.sleep(0)
        open_tapes.pop()

    _beside(owner, other)


def test_settings_of_a_scope_that_another_thread_leaves():
    setting = _core.Setting("usual")
    left = []

    def owner(k):
        scope = setting.to(["another", k])
        scope.__enter__()
        left.append(scope)
        del scope
        for _ in range(20):
            assert setting.now() in ("usual", ["another", k])
        while setting.now() != "usual":
            time.sleep(0)
        assert not _core.has_contexts()

    def other(k):
        while not left:
            time.sleep(0)
        left.pop().__exit__(None, None, None)

    _beside(owner, other)


def test_a_function_of_many_shapes():
    """Traces, the cache of traces and compiled passes are filled by all threads at once."""
    calls = []

    @tf.function
    def f(x, scale):
        calls.append(None)
        return tf.reduce_sum(tf.tanh(x) * scale)

    def work(k):
        found = []
        for n in range(1, 25):
            x = tf.constant(np.linspace(-1, 1, n, dtype=np.float32))
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x, float(n % 3))
            found.append((float(y), tape.gradient(y, x).numpy().tobytes()))
        return found

    found = at_once(work)
    assert all(mine == found[0] for mine in found)
    assert len(calls) < 25 * 3  # a trace for each shape and scale, not for each thread


def test_values_read_while_they_are_assigned():
    """The same for variables whose size changes: each read gives a complete value."""
    v = tf.Variable(np.zeros(4, np.float32), shape=tf.TensorShape([None]))

    def work(k):
        for n in range(1, 150):
            if k < 4:
                v.assign(np.full(n % 40 + k + 1, n, np.float32))
            else:
                x = v.numpy()
                assert len(set(x)) <= 1
                y = tf.identity(v)  # one read: v itself may change between two ops
                assert float(tf.reduce_max(y) - tf.reduce_min(y)) == 0.0
                assert v.shape.rank == 1

    at_once(work)


def test_nested_tapes():
    w = tf.Variable([0.5, -1.0])

    def work(k):
        for _ in range(40):
            with tf.GradientTape() as outer:
                with tf.GradientTape() as inner:
                    y = tf.reduce_sum(w**3) * float(k + 1)
                g = inner.gradient(y, w)
            h = outer.gradient(g, w)
            np.testing.assert_allclose(g, 3.0 * (k + 1) * np.array([0.25, 1.0]), rtol=1e-5)
            np.testing.assert_allclose(h, 6.0 * (k + 1) * np.array([0.5, -1.0]), rtol=1e-5)

    at_once(work)


def test_datasets():
    """One dataset, and an iterator of it in each thread."""
    data = tf.data.Dataset.range(60).map(lambda x: x * 2).shuffle(10, seed=3).batch(4).prefetch(2)
    alone = [x.numpy().tolist() for x in data]
    found = at_once(lambda k: [x.numpy().tolist() for x in data], 4)
    assert all(sorted(sum(mine, [])) == sorted(sum(alone, [])) for mine in found)


def test_symbols_of_other_traces():
    """Symbols of the tapes around a trace are listed while other threads release records on them."""
    w = tf.Variable(2.0)

    def work(k):
        for _ in range(20):

            @tf.function
            def f(x):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = x * x * w
                return tape.gradient(y, x)

            assert float(f(tf.constant(float(k)))) == 4.0 * k

    at_once(work, 4)
