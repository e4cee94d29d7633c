"""Every function and method of the core with wrong arguments raises exceptions and does not crash."""

import signal
import sys
import threading

import numpy as np
import pytest

import gradtape as tf
from gradtape import _core
from gradtape._src.ops import fft
from tests.reliability.test_variables_in_threads import in_child

_CALLS = """
import faulthandler
import random
import types
import numpy as np
import gradtape as tf
from gradtape import _core

faulthandler.enable()
draw = random.Random({seed})

class Fickle:
    '''An index that empties the list it is in.'''
    def __init__(self):
        self.list = [self, 1, 2]
    def __index__(self):
        self.list.clear()
        return 1
    def __array__(self, *args, **kwargs):
        self.list.clear()
        return np.ones([2], np.float32)

def pool():
    t, v = tf.ones([2]), tf.Variable([1.0, 2.0])
    f = tf.function(lambda x: x * v + tf.reduce_sum(x))
    f(t)
    program = f.get_concrete_function(t).graph_function.program
    class Symbol:
        def trace(self, *args):
            pass
    tape = tf.GradientTape()
    return [
        None, True, -1, 0, 1, 12, 2**31 - 1, 2**63, -2**70, 1.5, "x", "\\ud800", b"12345678",
        (), [], [None], (1, 2), [-1], {}, set(), object(), t, v, tf.constant([1, 0]), tf.constant(3),
        _core.symbolic((2,), 11, Symbol()), _core.symbolic((), 3, None), _core.symbolic((2, -1), 11, None),
        [t, t], (t,), [v], (v,), [(t, v)], [t, _core.symbolic((2,), 11, None)],
        tf.add, tf.transpose, tf.exp, _core.Op, program, tape, np.ones([2]), np.arange(4), lambda *a: a,
        Fickle().list, Fickle(), [[0, (2,)]], ((11, (2,)),), [(11, (2,)), (11, (-5,)), (99, (2,))],
        [("op", tf.exp, [0], [1], ())], iter([1]),
    ]

def quiet():
    for name in ("set_trace", "set_assign_tracker", "set_op_watcher"):
        getattr(_core, name, lambda _: None)(None)
    if hasattr(_core, "set_num_threads"):
        _core.set_num_threads(0)
    for tape in getattr(_core, "recording_tapes", list)():
        tape._stop()

def drawn(count):
    for _ in range(count):
        objects = pool() if draw.random() < 0.1 else objects_
        yield [draw.choice(objects) for _ in range(draw.choice((0, 1, 1, 2, 2, 3, 4, 5, 6)))]

objects_ = pool()
skipped = {"set_hooks", "set_engine_op", "take_calls", "set_blas_path", "set_compile"}  # they are asked below
calls = failed = 0

def attempt(what, call):
    global calls, failed
    calls += 1
    last[0] = what
    try:
        call()
    except BaseException as e:
        failed += 1
        if not isinstance(e, Exception):
            raise
    quiet()

last = [""]
devices = {"call_on_device", "DeviceCall", "Runner", "Quick", "from_device", "put_on_device", "set_on_device",
           "device_arrays", "has_contexts", "new_generation"}
for name in sorted(dir(_core)):
    thing = getattr(_core, name)
    if name.startswith("__") or name in skipped or not callable(thing) or (name in devices) != {of_devices}:
        continue
    for arguments in drawn(1500 if {of_devices} else 150):
        attempt(f"{name}{[type(a).__name__ for a in arguments]}", lambda: thing(*arguments))

instances = [o for o in objects_ if type(o).__module__.startswith("gradtape")]
elsewhere = {"__class__", "__init_subclass__", "__subclasshook__", "__del__", "profile", "__reduce__", "__reduce_ex__"}
for one in instances:
    for name in dir(type(one)):
        if name in elsewhere:
            continue
        for arguments in drawn(6):
            attempt(f"{type(one).__name__}.{name}", lambda: getattr(one, name)(*arguments))
        field = getattr(type(one), name, None)
        if isinstance(field, types.GetSetDescriptorType) and name != "__dict__":
            fresh = tf.ones([2]) if isinstance(one, _core.Tensor) else tf.Variable([1.0, 2.0])
            for value in objects_[:30]:
                attempt(f"{name} = ", lambda: setattr(fresh, name, value))

for value in objects_:
    attempt("set_engine_op", lambda: _core.set_engine_op("nothing", value))
    attempt("set_engine_op", lambda: _core.set_engine_op("add", value) if not isinstance(value, _core.Op) else None)
    attempt("set_hooks", lambda: _core.set_hooks(value))
    attempt("Op", lambda: tf.exp(**{"\\ud800": value}))
    attempt("assign", lambda: tf.Variable([1.0]).assign(value, **{"\\ud800": value}))

assert (tf.ones([2]) + 1.0).numpy().tolist() == [2.0, 2.0]
assert calls > 5000 and failed > calls // 3, (calls, failed)
print("only exceptions")
"""


@pytest.mark.parametrize(("seed", "of_devices"), [(1, False), (2, False), (3, True), (4, True)])
def test_wrong_arguments(seed, of_devices):
    """Functions for values on devices are tested separately, because they change the objects passed to them."""
    code = _CALLS.replace("{seed}", str(seed)).replace("{of_devices}", str(of_devices))
    assert in_child(code) == "only exceptions\n"


def test_profile_of_a_symbolic_tensor():
    f = tf.function(lambda x: x * 2.0)
    f(tf.ones([3]))
    x = _core.symbolic((3,), 11, None)
    program = f.get_concrete_function(tf.ones([3])).graph_function.program
    with pytest.raises(RuntimeError, match="has no value"):
        program.profile([x], 1)
    with pytest.raises(ValueError, match="inputs"):
        program.profile([], 1)
    with pytest.raises(ValueError, match="made for"):
        program.profile([tf.ones([4])], 1)
    with pytest.raises(ValueError, match="at least one run"):
        program.profile([tf.ones([3])], 0)
    assert program.profile((tf.ones([3]),), 2)


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals are the main thread's"
)
def test_profile_can_be_interrupted():
    f = tf.function(lambda x: x * 2.0)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            f.profile(tf.ones([3]), repeats=2**31 - 1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_lists_that_change_while_they_are_read():
    class Shrinks:
        def __init__(self, items):
            self.items = items

        def __array__(self, dtype=None, copy=None):
            self.items.clear()
            return np.ones([2], np.float32)

        def __index__(self):
            self.items.clear()
            return 1

    items: list = []
    items += [Shrinks(items), np.ones([2], np.float32), np.ones([2], np.float32)]
    assert tf.stack(items).shape == [3, 2]
    axes: list = []
    axes += [Shrinks(axes), 0]
    if "free-threading" in sys.version:  # lists are read as a copy, which stays as it is
        assert tf.transpose(tf.ones([2, 3]), axes).shape == [3, 2]
    else:
        with pytest.raises((tf.errors.InvalidArgumentError, ValueError, TypeError, IndexError)):
            tf.transpose(tf.ones([2, 3]), axes)
    assert axes == []
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError, TypeError)):
        _core.apply(tf.exp, iter([tf.ones([2])]), ())


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
def test_exceptions_raised_by_arguments_propagate(error):
    class Number:
        def __float__(self):
            raise error

    class Shown:
        def __repr__(self):
            raise error

    x = tf.ones([2, 3])
    for call in (
        lambda: fft.rfft_of(x, Number()),
        lambda: fft.rfft_of(x, Shown()),
        lambda: tf.cumsum(x, axis=Shown()),
    ):
        with pytest.raises(error):
            call()
