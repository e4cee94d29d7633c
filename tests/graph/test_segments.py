"""Where the segments of a recording begin and end, and when they get programs. Values: tests/semantics/test_segments.py."""

import threading

import numpy as np

import gradtape as tf
from gradtape._src.graph import segments
from gradtape._src.graph.segments import Segment

spec = tf.TensorSpec


def steps_of(function):
    """The names of calls outside segments, and lists of the names in segments."""
    (trace,) = function._concrete
    return [
        [n.op.op_name for n in step.nodes] if isinstance(step, Segment) else step.op.op_name
        for step in trace.recording.steps
    ]


def programs_of(function):
    (trace,) = function._concrete
    return trace.programs


def test_without_sizes_of_values_everything_is_one_segment():
    v = tf.Variable([1.0, 2.0])

    @tf.function(input_signature=[spec([None, 2])])
    def f(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(x * v)
        v.assign_sub(tape.gradient(y, v))
        return y

    f(tf.ones([3, 2]))
    (segment,) = steps_of(f)
    assert "gradient" in segment


def test_calls_of_a_tape_around_a_mask_are_outside_segments():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            a = tf.sin(x) * 2.0
            b = tf.boolean_mask(a, x > 0.0)
            y = tf.reduce_sum(b * b)
        return tape.gradient(y, x) + 1.0

    f(tf.ones([3]))
    alone = [s for s in steps_of(f) if isinstance(s, str)]
    assert alone == ["GradientTape", "enter_tape", "watch", "boolean_mask", "exit_tape", "gradient"]
    assert sum(isinstance(s, list) for s in steps_of(f)) == 3


def test_a_tape_on_one_side_of_a_mask_is_in_a_program():
    @tf.function
    def f(x):
        kept = tf.boolean_mask(x, x > 0.0)
        with tf.GradientTape() as tape:
            tape.watch(kept)
            y = tf.reduce_sum(kept * kept)
        return tape.gradient(y, kept)

    f(tf.ones([3]))
    assert [s for s in steps_of(f) if isinstance(s, str)] == ["boolean_mask"]


def test_segments_of_known_sizes_are_programs_at_once():
    @tf.function
    def f(x):
        kept = tf.boolean_mask(tf.exp(x), x > 0.0)
        return kept * 2.0

    f(tf.constant([1.0, 2.0, -3.0]))
    assert len(programs_of(f)) == 1  # before the mask
    f(tf.constant([1.0, 2.0, -3.0]))
    assert len(programs_of(f)) == 2


def test_programs_wait_until_others_have_paid():
    @tf.function(input_signature=[spec([None])])
    def f(x):
        return x * 2.0 + 1.0

    def use(n, times):
        for _ in range(times):
            np.testing.assert_array_equal(f(tf.ones([n])), np.full(n, 3.0))

    for n in range(1, segments._MAY_WAIT + 1):
        use(n, 2)
    assert len(programs_of(f)) == segments._MAY_WAIT
    use(100, 3)
    assert len(programs_of(f)) == segments._MAY_WAIT
    use(100, 1)
    assert len(programs_of(f)) == segments._MAY_WAIT + 1
    for n in (1, 2, 3, 4, 100):
        use(n, segments._RUNS_TO_PAY)
    use(200, 2)
    assert len(programs_of(f)) == segments._MAY_WAIT + 2


def test_a_loop_that_runs_call_by_call_has_programs_in_its_body():
    @tf.function
    def f(x):
        y = x
        for _i in tf.range(20):
            if tf.size(tf.boolean_mask(y, y > 0.0)) > 0:
                y = tf.tanh(y) * 0.5 + x
        return y

    x = np.array([1.0, -2.0, 0.5], np.float32)
    want = x
    for _ in range(20):
        want = np.tanh(want) * 0.5 + x
    np.testing.assert_allclose(f(tf.constant(x)), want, rtol=1e-5)
    (trace,) = f._concrete
    (loop,) = [s for s in trace.recording.steps if not isinstance(s, Segment)]
    body = loop.op.step.steps
    assert any(isinstance(s, Segment) and s.programs for s in body)


def test_threads_share_segments():
    @tf.function(input_signature=[spec([None])])
    def f(x):
        kept = tf.boolean_mask(x * 2.0, x > 0.0)
        return tf.reduce_sum(kept), tf.map_fn(lambda r: r + tf.reduce_sum(kept), kept)

    wrong = []

    def use(seed):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            x = rng.standard_normal(rng.integers(1, 6)).astype(np.float32)
            total, rows = f(tf.constant(x))
            kept = 2 * x[x > 0]
            if not np.allclose(total, kept.sum()) or not np.allclose(rows, kept + kept.sum()):
                wrong.append((x, total, rows))

    threads = [threading.Thread(target=use, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
