"""Strategies with several replicas in this process; no test leaves a replica's thread running."""

import threading

import pytest

import gradtape as tf

collect_ignore_glob = ["golden/*", "programs/*"]  # programs that tests run


def mirrored(n):
    """A MirroredStrategy over `n` logical devices of the CPU."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * n)
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(n)])


@pytest.fixture
def two():
    """Two replicas."""
    return mirrored(2)


@pytest.fixture
def three():
    """Three replicas."""
    return mirrored(3)


@pytest.fixture(autouse=True)
def replicas_end():
    """Threads of replicas end with the call that started them."""
    yield
    assert [t.name for t in threading.enumerate() if t.name.startswith("replica ")] == []
