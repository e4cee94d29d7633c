"""In interpreters where the core cannot run, importing it raises an ImportError and breaks nothing else."""

import os
import subprocess
import sys
from pathlib import Path

from gradtape import _core
from tests.reliability.test_variables_in_threads import in_child

_ROOT = Path(__file__).resolve().parents[2]

_SUB = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import gradtape as tf
x = tf.ones([2])
code = '''
import sys
sys.path[:] = {path!r}
for _ in range(2):
    try:
        import gradtape
    except ImportError as e:
        assert "subinterpreter" in str(e), e
        assert "numpy" not in sys.modules
    else:
        raise AssertionError("it was imported")
'''.replace("{path!r}", repr(sys.path))
for _ in range(3):
    failed = interpreters.run_string(interpreters.create(), code)
    assert failed is None, failed
assert isinstance(tf.ones([2]), tf.Tensor)
assert (x * 2.0 + tf.Variable([1.0, 2.0])).numpy().tolist() == [3.0, 4.0]
with tf.GradientTape() as tape:
    tape.watch(x)
    y = tf.reduce_sum(x * x)
assert tape.gradient(y, x).numpy().tolist() == [2.0, 2.0]
print("untouched")
"""


def test_a_subinterpreter_is_refused():
    assert in_child(_SUB) == "untouched\n"


def test_a_processor_without_a_copy_of_the_kernels():
    code = f"import sys; sys.path.insert(0, {str(_ROOT)!r}); import gradtape"
    env = os.environ | {"GRADTAPE_ISA": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=300)
    if _core.isa_name() == "generic":
        assert done.returncode == 0
    else:
        assert done.returncode == 1
        assert "ImportError" in done.stderr and "cannot run gradtape's kernels" in done.stderr, done.stderr[
            -1000:
        ]
