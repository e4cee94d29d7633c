"""Functions of unknown sizes that are called with many sizes keep little: stored programs and sizes are bounded.

Live objects are counted in a separate process, in which nothing else is created or freed.
"""

import json
import subprocess
import sys

_COMMON = """
import gc, json
import gradtape as tf
from gradtape._src.graph import segments

def live():
    gc.collect()
    info = tf.config.memory_info()
    return info["live_bytes"], info["live_tensors"]

def say(**found):
    print(json.dumps(found))
"""

_MANY = """
runs = []

@tf.function(input_signature=[tf.TensorSpec([None, 2], tf.int8)])
def f(x):
    runs.append(None)
    return tf.reduce_sum(x, 1) * x[:, 0]

def use(sizes):
    for n in sizes:
        assert f(tf.ones([n, 2], tf.int8)).shape == (n,)

use(range(1, 1001))
before = live()
use(range(1001, 10_001))
after = live()
(trace,) = f._concrete
(segment,) = trace.recording.steps
say(before=before, after=after, programs=len(trace.programs), seen=len(segment._sightings), most=segments._MOST_SIZES,
    runs=len(runs), traces=f.experimental_get_tracing_count())
"""

_PROGRAMS = """
@tf.function(input_signature=[tf.TensorSpec([None])])
def f(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x * tf.range(tf.cast(tf.size(x), tf.float32)))
    return tape.gradient(y, x)

def use(sizes):
    for n in sizes:
        for _ in range(2):
            assert f(tf.ones([n])).shape == (n,)

most = segments._MOST_PROGRAMS
segments._MAY_WAIT = 3 * most  # as if every program had paid for itself
use(range(1, most + 1))
use(range(1000, 1000 + most))
before = live()
use(range(2000, 2000 + most))
after = live()
(trace,) = f._concrete
say(before=before, after=after, programs=len(trace.programs), most=most)
"""


def _alone(program):
    """The output of a program in a separate process."""
    command = [sys.executable, "-c", _COMMON + program]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=600).stdout)


def test_ten_thousand_sizes():
    found = _alone(_MANY)
    assert found["after"] == found["before"]
    assert found["programs"] == 0 and found["seen"] <= found["most"]
    assert found["runs"] == found["traces"] == 1


def test_programs_that_are_not_repeated_are_freed():
    found = _alone(_PROGRAMS)
    (bytes_before, tensors_before), (bytes_after, tensors_after) = found["before"], found["after"]
    assert found["programs"] == found["most"]
    assert tensors_after <= tensors_before
    # Each program holds the numbers of its range, twice as many now.
    assert bytes_after <= 2.1 * bytes_before
