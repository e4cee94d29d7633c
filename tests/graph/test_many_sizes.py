"""Functions of unknown sizes that meet many of them keep little: programs and notes of sizes have a bound."""

import gc

import gradtape as tf
from gradtape._src.functions import recorded

spec = tf.TensorSpec


def _kept(function):
    (trace,) = function._concrete.values()
    return trace


def _live():
    gc.collect()
    info = tf.config.memory_info()
    return info["live_bytes"], info["live_tensors"]


def test_ten_thousand_sizes():
    runs = []

    @tf.function(input_signature=[spec([None, 2], tf.int8)])
    def f(x):
        runs.append(None)
        return tf.reduce_sum(x, 1) * x[:, 0]

    def use(sizes):
        for n in sizes:
            assert f(tf.ones([n, 2], tf.int8)).shape == (n,)

    use(range(1, 1001))
    before = _live()
    use(range(1001, 10_001))
    assert _live() == before
    trace = _kept(f)
    assert len(trace.programs) == 0 and len(trace._seen) <= recorded._MOST_SEEN
    assert len(runs) == f.experimental_get_tracing_count() == 1


def test_programs_that_do_not_come_back_are_let_go():
    @tf.function(input_signature=[spec([None])])
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x * tf.range(tf.cast(tf.size(x), tf.float32)))
        return tape.gradient(y, x)

    def use(sizes):
        for n in sizes:
            for _ in range(2):
                assert f(tf.ones([n])).shape == (n,)

    most = recorded._MOST_PROGRAMS
    use(range(1, most + 1))
    use(range(1000, 1000 + most))
    full = _live()
    use(range(2000, 2000 + most))
    bytes_now, tensors_now = _live()
    assert len(_kept(f).programs) == most
    assert tensors_now == full[1]
    assert bytes_now <= 2.1 * full[0]  # each program holds the numbers of its range, twice as many now
