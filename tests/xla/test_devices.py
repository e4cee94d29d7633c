"""Where functions run: engines, devices, and messages without JAX."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

import gradtape as tf
from gradtape._src import engines

ROOT = Path(__file__).resolve().parents[2]


def engine_of(f):
    """The engine of the last trace of a function."""
    return f._concrete[-1].graph_function.engine.name


def test_where_a_function_runs():
    f = tf.function(lambda x: x + 1.0)
    x = tf.constant(1.0)
    assert f(x).numpy() == 2.0 and engine_of(f) == "native"
    with tf.device("/XLA_CPU:0"):
        assert f(x).numpy() == 2.0 and engine_of(f) == "xla"
    assert f.experimental_get_tracing_count() == 2
    f(x)
    assert f.experimental_get_tracing_count() == 2
    tf.config.set_engine("xla")
    assert tf.config.get_engine() == "xla"
    f(x)
    assert f.experimental_get_tracing_count() == 2  # the same engine needs no new trace
    g = tf.function(lambda x: x * 2.0)
    assert g(x).numpy() == 2.0 and engine_of(g) == "xla"
    tf.config.set_engine("native")
    assert g(x).numpy() == 2.0
    assert sorted(c.graph_function.engine.name for c in g._concrete) == ["native", "xla"]


def test_a_device_inside_of_a_function():
    @tf.function
    def f(x):
        with tf.device("/XLA_CPU:0"):
            y = x * 2.0
        return y + 1.0

    assert f(tf.constant(2.0)).numpy() == 5.0 and engine_of(f) == "xla"

    @tf.function
    def g(x):
        with tf.device("/CPU:0"):
            return x * 2.0

    assert g(tf.constant(2.0)).numpy() == 4.0 and engine_of(g) == "native"


def test_devices_in_devices():
    f = tf.function(lambda x: x + 1.0)
    with tf.device("/XLA_CPU:0"), tf.device("/CPU:0"):
        f(tf.constant(1.0))
    assert engine_of(f) == "native"
    with tf.device("/XLA_CPU:0"), tf.device(None), tf.device("/job:worker"):
        f(tf.constant(1.0))
    assert {c.graph_function.engine.name for c in f._concrete} == {"native", "xla"}


def test_a_device_that_does_not_exist():
    with tf.device("/GPU:7"):
        assert tf.function(lambda x: x + 1.0)(tf.constant(1.0)).numpy() == 2.0
    tf.config.set_soft_device_placement(False)
    assert not tf.config.get_soft_device_placement()
    with pytest.raises(tf.errors.InvalidArgumentError, match="GPU:7.*CPU:0"), tf.device("/GPU:7"):
        pass
    with tf.device("/CPU:0"), tf.device("/XLA_CPU:0"):
        pass


def test_the_log_says_where_functions_run(caplog):
    tf.debugging.set_log_device_placement(True)
    with caplog.at_level(logging.WARNING, "gradtape"):
        f = tf.function(lambda x: x + 1.0, jit_compile=True)
        f(tf.constant(1.0)), f(tf.constant(1.0))
    assert [r.getMessage() for r in caplog.records if "device:CPU:0" in r.getMessage()] == [
        "<lambda> runs on /job:localhost/replica:0/task:0/device:CPU:0"
    ]


@pytest.mark.without_jax
@pytest.mark.parametrize("name", ["gpu", "XLA", "", None])
def test_an_engine_that_does_not_exist(name):
    with pytest.raises(ValueError, match="there is no such engine"):
        tf.config.set_engine(name)


def test_optimizers_and_derivatives_run_there_too(engine):
    w = tf.Variable([1.0, 2.0])
    optimizer = tf.optimizers.Adam(0.1)
    f = tf.function(lambda: tf.reduce_sum(w * w))
    for _ in range(2):
        with tf.GradientTape() as tape:
            y = f()
        optimizer.apply_gradients([(tape.gradient(y, w), w)])
    (update,) = optimizer._programs._updates.values()
    assert type(update).__name__ == "XlaStep"
    (derivative,) = f._concrete[-1].graph_function._derivatives.values()
    assert derivative.backward.engine.name == derivative.forward.engine.name == "xla"


def test_datasets_stay_native(engine):
    ds = tf.data.Dataset.range(5).map(lambda x: x * 2).filter(lambda x: x > 2).batch(2)
    assert [b.numpy().tolist() for b in ds] == [[4, 6], [8]]
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def f(ds):
        for b in ds:
            total.assign_add(tf.reduce_sum(b))
        return total

    assert f(ds).numpy() == 18


# ---- processes of their own ------------------------------------------------------------------------------------


def python(code, **env):
    import os

    base = {k: v for k, v in os.environ.items() if not k.startswith("GRADTAPE_")}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=base | env,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.mark.without_jax
def test_importing_gradtape_imports_neither_jax_nor_mpi():
    code = """
import sys, gradtape as tf
f = tf.function(lambda x: x + 1.0)
f(tf.constant(1.0)); tf.config.list_physical_devices()
with tf.device("/CPU:0"): f(tf.constant(1.0))
print([m for m in ("jax", "jaxlib", "mpi4py") if m in sys.modules])
"""
    assert python(code).stdout == "[]\n"


WITHOUT = """
import sys, importlib.util, logging
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name.split(".")[0] == "jax" else real(name, *rest)
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("jax", "jaxlib"):
            raise ModuleNotFoundError("No module named " + name)
sys.meta_path.insert(0, Missing())
import gradtape as tf
"""


@pytest.mark.without_jax
def test_without_jax():
    done = python(
        WITHOUT
        + """
f = tf.function(lambda x: x + 1.0, jit_compile=True)
g = tf.function(lambda x: x + 2.0, jit_compile=True)
print(f(tf.constant(1.0)).numpy(), g(tf.constant(1.0)).numpy(), f(tf.constant(2.0)).numpy())
try:
    tf.config.set_engine("xla")
except ImportError as e:
    print("ImportError:", e)
try:
    with tf.device("/XLA_CPU:0"):
        pass
except ImportError as e:
    print("ImportError:", e)
print(tf.config.get_engine(), tf.config.list_physical_devices("GPU"))
with tf.device("/GPU:0"):
    print(tf.function(lambda x: x * 2.0)(tf.constant(4.0)).numpy())
"""
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "2.0 3.0 3.0"
    assert (
        lines[1] == lines[2]
        and lines[1].startswith("ImportError: ")
        and 'pip install "gradtape[xla]"' in lines[1]
    )
    assert lines[3:] == ["native []", "8.0"]
    warnings = [line for line in done.stderr.splitlines() if "gradtape[xla]" in line]
    assert len(warnings) == 1 and "jit_compile=True" in warnings[0]


@pytest.mark.without_jax
def test_the_environment_names_an_engine_that_is_not_installed():
    done = python(WITHOUT + "tf.function(lambda x: x + 1.0)(tf.constant(1.0))", GRADTAPE_ENGINE="xla")
    assert done.returncode and 'pip install "gradtape[xla]"' in done.stderr.splitlines()[-1]


def test_the_environment_sets_the_engine():
    code = """
import gradtape as tf
f = tf.function(lambda x: x + 1.0)
f(tf.constant(1.0))
print(tf.config.get_engine(), f._concrete[0].graph_function.engine.name)
"""
    assert python(code, GRADTAPE_ENGINE="xla").stdout == "xla xla\n"


def test_too_little_memory():
    """More memory than the process may use: ResourceExhaustedError or MemoryError, and nothing has changed."""
    code = """
import resource
import gradtape as tf
v = tf.Variable([1.0, 2.0])
n = tf.constant(1.0)
@tf.function(jit_compile=True)
def f(x):
    v.assign_add([1.0, 1.0])
    big = tf.sort(tf.fill([1 << 31], x) + tf.cast(tf.range(1 << 31), tf.float32))
    return big[:2] + v
@tf.function(jit_compile=True)
def g(x):
    return v.assign_add([1.0, 1.0]) * x
g(n)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (3 << 30), used + (3 << 30)))
try:
    print(f(n).numpy())
except (tf.errors.ResourceExhaustedError, MemoryError) as e:
    print(type(e).__name__)
print(v.numpy().tolist(), g(n).numpy().tolist())
"""
    done = python(code)
    assert done.stdout.splitlines()[1:] == ["[2.0, 3.0] [3.0, 4.0]"], done.stdout + done.stderr
    assert done.stdout.splitlines()[0] in ("ResourceExhaustedError", "MemoryError")


def test_the_engine_has_a_name():
    assert repr(engines.xla_on("cpu")) == "<the XLA engine on /job:localhost/replica:0/task:0/device:CPU:0>"
