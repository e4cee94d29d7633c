"""The cost of made-up sizes while a function of unknown sizes is traced: small, whatever the ranks.

In a separate process with a memory limit, because a mistake here takes more memory than any machine has.
"""

import subprocess
import sys

import pytest

import gradtape as tf
from gradtape._src.graph import worlds

_COMMON = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
import gradtape as tf

def traced(f, rank):
    function = tf.function(f, input_signature=[tf.TensorSpec([None] * rank)])
    return function(tf.ones([2] * rank))
"""

_PROGRAMS = {
    "jacobian": """
def f(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sin(x) * x
    return tape.jacobian(y, x)

for rank in (2, 3, 4):
    assert traced(f, rank).shape == (2,) * (2 * rank)
""",
    "jacobian of a function": """
assert traced(lambda x: tf.autodiff.jacobian(lambda z: z * z, x), 3).shape == (2,) * 6
""",
    "batch_jacobian": """
def f(x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        j = tape.batch_jacobian(y, x)
        assert j.shape.as_list() == [None] * 5
    return outer.gradient(j, x)

assert (traced(f, 3).numpy() == 2.0).all()
""",
    "values": """
for rank in (3, 4, 5, 6, 9, 12):
    assert traced(lambda x: tf.boolean_mask(x, x > 0.0), rank).shape == (2**rank,)
    assert traced(lambda x: tf.unique(tf.reshape(x, [-1]))[0], rank).shape == (1,)
""",
    "constants": """
for rank in (3, 5, 7, 12):
    assert traced(lambda x: tf.ones(tf.shape(x)) + x, rank).shape == (2,) * rank
""",
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory are Linux'")
@pytest.mark.parametrize("name", _PROGRAMS)
def test_memory_of_made_up_sizes(name):
    done = subprocess.run(
        [sys.executable, "-c", _COMMON + _PROGRAMS[name]], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", [MemoryError, RecursionError, AssertionError, KeyboardInterrupt])
def test_errors_that_have_nothing_to_do_with_sizes_are_raised(kind, monkeypatch):
    """A call with sizes that do not fit is tried with others; a call that fails otherwise is not."""

    def fails(*_):
        raise kind("not this way")

    f = tf.function(lambda x: tf.boolean_mask(x, x > 0.0), input_signature=[tf.TensorSpec([None])])
    monkeypatch.setattr(worlds.World, "_example", fails)
    with pytest.raises(kind, match="not this way"):
        f(tf.ones([2]))
    monkeypatch.undo()
    assert f(tf.ones([2])).shape == (2,)
