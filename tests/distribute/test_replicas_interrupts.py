"""Ctrl-C anywhere in a run of replicas: it propagates, all replicas stop, variables have consistent values."""

import contextlib
import gc
import sys
import threading

import pytest

import gradtape as tf
from gradtape import _core
from gradtape._src.base import replicas, scopes

context = tf.distribute.get_replica_context
STRIDE = 41  # every so many bytecodes; all of them take half a minute


class Interrupter:
    """Raises KeyboardInterrupt before one bytecode of `gradtape.distribute`, in the thread that runs a strategy."""

    def __init__(self, at):
        self.left = at

    def begin(self, frame, event, arg):
        if "/distribute/" not in frame.f_code.co_filename and frame.f_code.co_filename != contextlib.__file__:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.each

    def each(self, frame, event, arg):
        if event == "opcode":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self.each


def state():
    """The scopes that this thread has open."""
    return _core.current_trace(), _core.recording_tapes(), replicas.place.now(), scopes.creators.now()


@pytest.mark.parametrize("first", [1, 20])
def test_interrupted_at_many_bytecodes(two, first):
    how, read = tf.VariableAggregation, tf.VariableSynchronization.ON_READ
    with two.scope():
        count = tf.Variable(0.0, aggregation=how.SUM, synchronization=read)
        other = tf.Variable(9.0, aggregation=how.SUM, synchronization=read)
        mean = tf.Variable(1.0, aggregation=how.MEAN)

    def step():
        count.assign_add(1.0)
        mean.assign(context().all_reduce("SUM", 1.0))
        return context().merge_call(
            lambda strategy, x: strategy.reduce("SUM", x, axis=None), args=(count + 0.0,)
        )

    two.run(step)
    at, done = first, False
    while not done:
        trace = sys.gettrace()
        sys.settrace(Interrupter(at).begin)
        try:
            two.run(step)
            done = True
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(trace)
        if state() != (None, [], None, ()):
            gc.collect()  # objects of the exception may be in reference cycles
        assert not [t for t in threading.enumerate() if t.name.startswith("replica ") and t.is_alive()], at
        assert state() == (None, [], None, ()), at
        assert other.numpy() == 9.0 and count.numpy() == sum(c.numpy() for c in count._copies), at
        assert mean.numpy() in (1.0, 2.0)
        at += STRIDE
    before = count.numpy()
    two.run(step)
    assert count.numpy() == before + 2.0
