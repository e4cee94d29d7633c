"""Settings of a `with` block are undone when it exits, wherever an interrupt comes."""

import contextlib
import gc
import sys
import threading
import weakref

import pytest

import gradtape as tf
from gradtape import _core
from gradtape._src.base import contexts, scopes
from gradtape._src.control import counters
from gradtape._src.debug import lines
from gradtape._src.tensors import random
from gradtape.distribute import strategy
from gradtape.summary import writer

_LIBRARY = (*tf.__path__, contextlib.__file__)


def state():
    """The state of this thread that the contexts below change."""
    return (
        scopes.current_scope(),
        scopes.creators.now(),
        counters._counters.now(),
        random._inside.now().seeds,
        random._replay.now(),
        lines.record(),
        strategy.get_strategy(),
        strategy._place.now(),
        writer.default_writer.get(),
        writer.default_step.get(),
        writer._condition.now(),
        _core.assign_tracker(),
        _core.current_trace(),
        _core.op_watcher(),
        _core.is_watching(),
        _core.recording_tapes(),
        tf.config.functions_run_eagerly(),
    )


class Block(tf.Module):
    @tf.Module.with_name_scope
    def __call__(self):
        return scopes.current_scope()


def entered(make):
    def run():
        with make():
            pass

    return run


def index():
    class Counter:
        _symbol = object()

    return Counter()


_MIRRORED = tf.distribute.MirroredStrategy(["/cpu:0"])
_WRITER = tf.summary.create_noop_writer()
_HELD = tf.name_scope("held")
_BLOCK = Block()
RUNS = {
    "name_scope": entered(lambda: tf.name_scope("a")),
    "the same name_scope": entered(lambda: _HELD),
    "module": lambda: _BLOCK(),
    "variable_creator_scope": entered(lambda: tf.variable_creator_scope(lambda make, **kw: make(**kw))),
    "init_scope": entered(tf.init_scope),
    "lines": entered(tf.debug.lines),
    "check_numerics": entered(tf.debug.check_numerics),
    "isolated": entered(lambda: random.isolated(random.isolated_seeds())),
    "keep_streams": entered(random.keep_streams),
    "same_streams": entered(lambda: random.same_streams([])),
    "counting": entered(lambda: counters.counting(index(), 3)),
    "strategy": entered(_MIRRORED.scope),
    "replica": lambda: _MIRRORED.run(lambda: None),
    "writer": entered(lambda: _WRITER.as_default(step=3)),
    "record_if": entered(lambda: tf.summary.record_if(False)),
    "summary_scope": entered(lambda: tf.summary.experimental.summary_scope("a")),
    "ForwardAccumulator": entered(lambda: tf.autodiff.ForwardAccumulator(tf.constant(1.0), tf.constant(1.0))),
}


class Interrupter:
    """Raises KeyboardInterrupt before one bytecode of the library."""

    def __init__(self, at):
        self.left = at

    def begin(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(_LIBRARY) and frame.f_code.co_name != "run":
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.each

    def each(self, frame, event, arg):
        if event == "opcode":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self.each


@pytest.mark.parametrize("name", RUNS)
def test_interrupted_at_every_bytecode(name):
    run, before = RUNS[name], state()
    run()
    at, done = 0, False
    while not done:
        at += 1
        trace = sys.gettrace()
        sys.settrace(Interrupter(at).begin)
        try:
            run()
            done = True
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(trace)
        gc.collect(0)
        if name == "the same name_scope":
            # A reference elsewhere keeps it alive; Python delivers no interrupt between the block and its end.
            while scopes.current_scope():
                _HELD.__exit__()
        assert state() == before, f"bytecode {at}"
    assert at > 5


def test_a_setting_is_a_threads_own():
    setting = _core.Setting("default")
    seen = []
    with setting.to("inside") as value:
        thread = threading.Thread(target=lambda: seen.append(setting.now()))
        thread.start()
        thread.join()
        assert (value, setting.now(), seen) == ("inside", "inside", ["default"])
    assert setting.now() == "default"


def test_scopes_are_left_in_any_order():
    setting = contexts.stack()
    a, b = setting.to("a"), setting.to("b")
    a.__enter__()
    b.__enter__()
    assert setting.now() == ("a", "b")
    a.__exit__()
    b.__exit__()
    assert setting.now() == ()


def test_one_scope_in_several_threads_and_inside_itself():
    setting = contexts.stack()
    scope, meet, seen = setting.to("x"), threading.Barrier(4), []

    def work():
        with scope, scope:
            meet.wait()
            seen.append(setting.now())
            meet.wait()
        seen.append(setting.now())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(seen) == [()] * 4 + [("x", "x")] * 4
    assert setting.now() == ()


def test_a_join_that_raises_changes_nothing():
    setting = _core.Setting(1, lambda before, value: before // value)
    with setting.to(1):
        with pytest.raises(ZeroDivisionError), setting.to(0):
            pass
        assert setting.now() == 1


def test_scopes_and_settings_are_collected():
    class Value:
        pass

    value = Value()
    value.scope = _core.Setting(None).to(value)
    value.scope.__enter__()
    known = weakref.ref(value)
    del value
    gc.collect()
    assert known() is None


def test_two_watchers_of_a_thread():
    seen = []
    x = tf.constant(1.0)
    with _core.Scope(watcher=lambda op, *_: seen.append("outer")):
        with _core.Scope(watcher=lambda op, *_: seen.append("inner")):
            _ = x + x
            with _core.Scope(watcher=None):
                _ = x + x
                assert _core.is_watching()
        _ = x + x
    _ = x + x
    assert seen == ["outer", "inner", "outer"] and not _core.is_watching()


def test_only_the_thread_that_is_watched_runs_eagerly():
    seen = []
    with tf.debug.check_numerics():
        assert tf.config.functions_run_eagerly()
        thread = threading.Thread(target=lambda: seen.append(tf.config.functions_run_eagerly()))
        thread.start()
        thread.join()
    assert seen == [False] and not tf.config.functions_run_eagerly()
