"""`gradtape.config`: sensible answers on a machine with a CPU."""

import copy
import types

import pytest

from gradtape import config
from gradtape._src.base import settings

CPU = config.PhysicalDevice("/physical_device:CPU:0", "CPU")


@pytest.fixture(autouse=True)
def unchanged_config(monkeypatch):
    """Gives each test its own settings."""
    for name in ("_visible", "_logical"):
        monkeypatch.setattr(config, name, copy.copy(getattr(config, name)))
    monkeypatch.setattr(settings, "soft_device_placement", settings.soft_device_placement)
    monkeypatch.setattr(settings, "run_functions_eagerly", settings.run_functions_eagerly)
    for space in (config.threading, config.optimizer, config.experimental):
        for name in ("_inter_op", "_jit", "_options", "_tensor_float_32", "_synchronous", "_policy"):
            if hasattr(space, name):
                monkeypatch.setattr(space, name, copy.copy(getattr(space, name)))


@pytest.fixture
def core(monkeypatch):
    """A stand-in for the native core that records the calls."""
    fake = types.ModuleType("gradtape._core")
    fake.calls = []
    fake.num_threads = lambda: 7
    fake.set_num_threads = lambda n: fake.calls.append(("threads", n))
    fake.memory_info = lambda: {"live_bytes": 8, "live_tensors": 1, "cached_bytes": 64, "peak": 16}
    fake.reset_peak_memory = lambda: fake.calls.append("reset")
    fake.release_cached_memory = lambda: fake.calls.append("release")
    monkeypatch.setattr(config, "_core", fake)
    return fake


def test_physical_devices():
    assert config.list_physical_devices() == config.list_physical_devices("CPU") == [CPU]
    assert config.list_physical_devices("GPU") == config.list_physical_devices("TPU") == []
    assert repr(CPU) == "PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')"
    assert config.experimental.list_physical_devices("GPU") == []


def test_logical_devices():
    assert config.list_logical_devices() == [config.LogicalDevice("/device:CPU:0", "CPU")]
    assert config.list_logical_devices("GPU") == []
    assert config.get_logical_device_configuration(CPU) is None
    halves = [config.LogicalDeviceConfiguration(memory_limit=3)] * 2
    config.set_logical_device_configuration(CPU, halves)
    assert config.get_logical_device_configuration(CPU) == halves
    assert [d.name for d in config.list_logical_devices()] == ["/device:CPU:0", "/device:CPU:1"]


def test_visible_devices():
    assert config.get_visible_devices() == [CPU] and config.get_visible_devices("GPU") == []
    config.set_visible_devices([], "GPU")
    assert config.get_visible_devices() == [CPU]
    config.set_visible_devices([], "CPU")
    assert config.get_visible_devices() == config.list_logical_devices() == []
    config.set_visible_devices(CPU)
    assert config.get_visible_devices() == [CPU]
    with pytest.raises(ValueError, match="Unrecognized device: 3"):
        config.set_visible_devices([3])
    with pytest.raises(ValueError, match="of type GPU"):
        config.set_visible_devices([CPU], "GPU")


def test_the_usual_gpu_loop():
    for gpu in config.experimental.list_physical_devices("GPU"):
        config.experimental.set_memory_growth(gpu, True)
    with pytest.raises(ValueError, match="non-GPU"):
        config.experimental.set_memory_growth(CPU, True)


def test_run_functions_eagerly():
    assert config.functions_run_eagerly() is False
    config.run_functions_eagerly(True)
    assert config.functions_run_eagerly() is True
    config.experimental_run_functions_eagerly(False)
    assert config.experimental_functions_run_eagerly() is False


def test_settings_are_remembered():
    assert config.get_soft_device_placement() is True
    config.set_soft_device_placement(False)
    assert config.get_soft_device_placement() is False
    assert config.optimizer.get_jit() == ""
    config.optimizer.set_jit(True)
    assert config.optimizer.get_jit() == "autoclustering"
    config.optimizer.set_experimental_options({"layout_optimizer": False})
    assert config.optimizer.get_experimental_options()["layout_optimizer"] is False
    config.threading.set_inter_op_parallelism_threads(2)
    assert config.threading.get_inter_op_parallelism_threads() == 2
    config.experimental.enable_tensor_float_32_execution(False)
    assert config.experimental.tensor_float_32_execution_enabled() is False
    config.experimental.set_device_policy("warn")
    assert config.experimental.get_device_policy() == "warn"
    config.experimental.set_synchronous_execution(False)
    assert config.experimental.get_synchronous_execution() is False


def test_calls_without_effect():
    config.experimental.enable_op_determinism()
    config.experimental_connect_to_cluster("resolver")
    assert config.experimental.get_device_details(CPU) == {}


def test_threads(core):
    config.threading.set_intra_op_parallelism_threads(3)
    config.threading.set_intra_op_parallelism_threads(0)
    assert core.calls == [("threads", 3), ("threads", 0)]
    assert config.threading.get_intra_op_parallelism_threads() == 7
    with pytest.raises(ValueError, match="negative"):
        config.threading.set_intra_op_parallelism_threads(-1)


def test_memory(core):
    assert config.memory_info() == {
        "live_bytes": 8,
        "live_tensors": 1,
        "cached_bytes": 64,
        "peak": 16,
    }
    assert config.experimental.get_memory_info("CPU:0") == {"current": 8, "peak": 16}
    assert config.experimental.get_memory_usage("CPU:0") == 8
    config.reset_peak_memory()
    config.release_cached_memory()
    config.experimental.reset_memory_stats("CPU:0")
    assert core.calls == ["reset", "release", "reset"]
