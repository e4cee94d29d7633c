"""Contexts of a thread are entered and exited: in other threads, generators, tasks, nested, released in any order."""

import asyncio
import gc
import threading

import pytest

import gradtape as tf
from gradtape import _core
from gradtape._src.base.contexts import aside, unrecorded
from gradtape._src.graph.trace import Trace


def in_another_thread(f):
    thread = threading.Thread(target=f)
    thread.start()
    thread.join()


def is_fresh():
    """Whether this thread records, traces and follows nothing, and can differentiate."""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    nothing = (_core.recording_tapes(), _core.current_trace(), _core.assign_tracker(), _core.op_watcher())
    return nothing == ([], None, None, None) and tape.gradient(y, x).numpy() == 6.0


@pytest.mark.parametrize("depth", [1, 8, 9, 64, 65, 200])
def test_any_number_of_nested_tapes(depth):
    x = tf.constant(2.0)
    tapes = [tf.GradientTape() for _ in range(depth)]
    for tape in tapes:
        tape.__enter__()
        tape.watch(x)
    y = x * x
    for tape in reversed(tapes):
        tape.__exit__(None, None, None)
    assert [tape.gradient(y, x).numpy() for tape in tapes] == [4.0] * depth
    assert is_fresh()


def test_a_tape_that_is_left_in_another_thread_stops_recording():
    x = tf.constant(2.0)
    tape = tf.GradientTape(persistent=True)
    tape.__enter__()
    tape.watch(x)
    y = x * x
    in_another_thread(lambda: tape.__exit__(None, None, None))
    z = x * x * x
    assert not tape._recording and is_fresh()
    assert tape.gradient(y, x).numpy() == 4.0
    assert tape.gradient(z, x) is None


def test_an_abandoned_generator_is_collected_in_another_thread():
    """Another thread leaves the tape while this one continues (once it was used after it was freed)."""

    def recording():
        with tf.GradientTape() as tape:
            tape.watch(x)
            yield tape

    x = tf.constant(2.0)
    generator = recording()
    cycle = [generator, next(generator)]
    cycle.append(cycle)
    assert len(_core.recording_tapes()) == 1
    del generator, cycle
    in_another_thread(gc.collect)
    for _ in range(2000):
        x = x * 1.0
    assert is_fresh()


def test_a_tape_that_was_never_left_ends_with_its_last_reference():
    tape = tf.GradientTape()
    tape.__enter__()
    del tape
    gc.collect()
    assert is_fresh()


def test_a_thread_may_end_with_an_open_tape():
    tapes = []

    def work():
        tapes.append(tf.GradientTape())
        tapes[0].__enter__()

    in_another_thread(work)
    assert is_fresh()
    tapes[0].__exit__(None, None, None)
    assert not tapes[0]._recording
    with tapes[0]:
        assert tapes[0]._recording


def test_tapes_may_be_left_in_any_order():
    x = tf.constant(2.0)
    first, second = tf.GradientTape(), tf.GradientTape()
    first.__enter__()
    second.__enter__()
    first.watch(x)
    second.watch(x)
    first.__exit__(None, None, None)
    y = x * x
    second.__exit__(None, None, None)
    assert first.gradient(y, x) is None and second.gradient(y, x).numpy() == 4.0
    assert is_fresh()


def test_tasks_of_one_thread_share_its_tapes():
    """As in TensorFlow: a tape belongs to its thread, so another task's ops are recorded too."""
    x = tf.constant(2.0)
    done = []

    async def recording():
        with tf.GradientTape() as tape:
            tape.watch(x)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        done.append(tape)

    async def computing():
        done.append(x * x)
        await asyncio.sleep(0)

    async def both():
        await asyncio.gather(recording(), computing())

    asyncio.run(both())
    y, tape = done
    assert tape.gradient(y, x).numpy() == 4.0
    assert is_fresh()


def test_scopes_nest_and_leave_in_any_order():
    with tf.GradientTape() as tape:
        with unrecorded():
            assert not _core.is_recording()
            with tf.GradientTape() as inner:
                assert _core.recording_tapes() == [inner]
        assert _core.recording_tapes() == [tape]
        trace = Trace()
        with aside(trace):
            assert _core.current_trace() is trace
            with aside():
                assert _core.current_trace() is None
            assert _core.current_trace() is trace
    outer, inner = aside(Trace()), aside()
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert _core.current_trace() is None
    inner.__exit__(None, None, None)
    assert is_fresh()


def test_a_scope_that_dies_is_left():
    scope = aside(Trace())
    scope.__enter__()
    assert _core.current_trace() is not None
    del scope
    gc.collect()
    assert is_fresh()


def test_wrong_scopes():
    with pytest.raises(TypeError, match="tapes"):
        _core.Scope(tapes=(1,))
    with pytest.raises(TypeError, match="Setting"):
        _core.Scope(setting=1)
    with pytest.raises(TypeError):
        _core.Setting()
    aside().__exit__()  # it was not entered
    tape = tf.GradientTape()
    with tape, pytest.raises(ValueError, match="still recording"):
        tape.__enter__()
    assert is_fresh()


def test_nested_accumulators_of_one_primal():
    """Read after both blocks, as TensorFlow's."""
    x = tf.constant(1.3)
    forward = tf.autodiff.ForwardAccumulator
    with forward(x, tf.constant(2.0)) as outer, forward(x, tf.constant(3.0)) as inner:
        y = tf.sin(x) * x * x
    assert outer.jvp(inner.jvp(y)).numpy() == pytest.approx(10.138184, rel=1e-5)


def test_an_accumulator_is_part_of_what_an_outer_tape_records():
    x = tf.constant(1.3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, tf.constant(3.0)) as inner:
            y = tf.sin(x) * x * x
    assert tape.gradient(inner.jvp(y), x).numpy() == pytest.approx(5.0690923, rel=1e-5)
