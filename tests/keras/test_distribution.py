"""`keras.distribution`: on eight devices, in two processes, and Keras' own tests of it."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gradtape as tf
from gradtape._src import engines

keras = pytest.importorskip("keras_gradtape", reason="Keras is not installed") and tf.keras
HERE = Path(__file__).parent
EIGHT = "--xla_force_host_platform_device_count=8"

has_jax = pytest.mark.skipif(
    __import__("importlib.util").util.find_spec("jax") is None,
    reason="meshes are JAX's, which is not installed",
)


def _run(*arguments, flags="", **environment):
    """A new Python process with its own number of devices."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "KERAS_BACKEND": "gradtape", **environment},
    )  # fmt: skip


def _ended_well(process):
    out, _ = process.communicate(timeout=400)
    assert process.returncode == 0, out[-6000:]
    return out


@has_jax
def test_eight_devices():
    """See programs/on_mesh.py."""
    file = HERE / "programs" / "on_mesh.py"
    out = _ended_well(_run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=", "-o", "python_files=on_mesh.py",
        "-o", "python_functions=check_*", "--noconftest", "--tb=short", file, flags=EIGHT,
    ))  # fmt: skip
    assert f"{file.read_text().count(chr(10) + 'def check_')} passed" in out


@has_jax
def test_kerass_own_tests(tmp_path):
    # One file imports tensorflow, for its datasets.
    (tmp_path / "tensorflow.py").write_text("import sys, gradtape\nsys.modules['tensorflow'] = gradtape\n")
    folder = Path(sys.modules["keras"].__file__).parent / "src"
    out = _ended_well(_run(
        "-m", "pytest", "-q", "-p", "keras_gradtape.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:xdist",
        "-o", "addopts=", "--noconftest", "--tb=short", folder / "distribution" / "distribution_lib_test.py",
        folder / "backend" / "jax" / "distribution_lib_test.py", PYTHONPATH=str(tmp_path),
    ))  # fmt: skip
    assert "50 passed" in out and "1 xfailed" in out, out[-3000:]


LOGICAL = """
import gradtape as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)
print(tf.keras.distribution.list_devices())
"""


@has_jax
def test_logical_devices_are_devices_of_a_mesh():
    assert _ended_well(_run("-c", LOGICAL)).strip() == str([f"cpu:{i}" for i in range(8)])


TWO = """
import json, sys
import numpy as np
import gradtape as tf
keras = tf.keras
if len(sys.argv) > 1:
    keras.distribution.initialize(sys.argv[1], 2, int(sys.argv[2]))
keras.utils.set_random_seed(4)
distribution = keras.distribution.DataParallel(auto_shard_dataset=False)
rng = np.random.default_rng(0)
x, y = rng.normal(size=(64, 5)).astype("f"), rng.normal(size=(64, 3)).astype("f")
part = x.reshape(4, 2, 8, 5), y.reshape(4, 2, 8, 3)  # batches, processes, rows
if distribution.num_processes == 2:
    x, y = (a[:, distribution.data_shard_id].reshape(32, -1) for a in part)
with distribution.scope():
    model = keras.Sequential([keras.layers.Input((5,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(3)])
    model.compile(keras.optimizers.Adam(0.01), "mse")
    size = 16 // distribution.num_processes
    history = model.fit(x, y, batch_size=size, epochs=2, shuffle=False, verbose=0).history
    predictions = model.predict(x, batch_size=size, verbose=0)
    assert predictions.shape == (64, 3), predictions.shape  # of all processes
print("LOSSES", json.dumps([distribution.num_processes, len(keras.distribution.list_devices()), history["loss"]]))
"""


@has_jax
def test_two_processes_train_as_one():
    def losses(process):
        line = next(s for s in _ended_well(process).splitlines() if s.startswith("LOSSES"))
        return eval(line.removeprefix("LOSSES "))

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{s.getsockname()[1]}"
    both = [_run("-c", TWO, address, k) for k in range(2)]
    (_, _, alone) = losses(_run("-c", TWO))
    for process in both:
        processes, devices, found = losses(process)
        assert (processes, devices) == (2, 2)
        np.testing.assert_allclose(found, alone, atol=1e-5)


def test_without_jax_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'keras.distribution needs JAX.*pip install "gradtape\[xla\]"'):
        keras.distribution.list_devices()
    with pytest.raises(ImportError, match=r'pip install "gradtape\[xla\]"'):
        keras.distribution.DataParallel()
