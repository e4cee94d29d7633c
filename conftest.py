"""Fixtures for every test, the examples in docstrings included: the same random numbers and settings.

Property tests draw the same examples every time (profile "ci"); with HYPOTHESIS_PROFILE=random they draw new ones,
more of them, as in `make fuzz`.
"""

import gc
import os
import random as python_random
import signal
import sys
import types
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from gradtape import _core, config
from gradtape._src import engines
from gradtape._src.base import settings as settings_of_engine
from gradtape._src.ops import generator as generators
from gradtape._src.tensors import random

# No limits in seconds: on a busy machine neither an example nor drawing it counts as slow.
_any_speed = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, max_examples=50, **_any_speed)
settings.register_profile("random", max_examples=300, print_blob=True, **_any_speed)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# XLA programs run only once or twice here, and compiling takes most of the time: without optimisation, a fifth.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
)

# Keras' own module takes its place when it is imported, which pytest does not expect: tests/keras runs its example.
# Libraries that carry values between processes start JAX or MPI when they are imported, which cannot be undone:
# tests/distribute imports them in separate processes.
collect_ignore = [
    "gradtape/keras.py",
    "gradtape/distribute/groups_jax.py",
    "gradtape/distribute/groups_jax_names.py",
    "gradtape/distribute/groups_mpi.py",
    "tests/numpy_behavior.py",  # a program that changes tensors for good
]
collect_ignore_glob = [
    "gradtape/_src/engines/xla/*",  # JAX is imported by the tests that need it
    "tests/ecosystem/drivers/*",  # under the alias, by tests/ecosystem/test_packages.py
]


def pytest_configure():
    """Ctrl-C interrupts, here and in the processes that tests start: a shell starts background jobs without."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _settings_of(owner):
    """The plain values in a module or class: numbers, strings, flags."""
    plain = (bool, int, float, str, types.NoneType)
    return {k: v for k, v in vars(owner).items() if isinstance(v, plain) and not k.startswith("__")}


@pytest.fixture(autouse=True)
def global_settings_are_restored():
    """Restores seeds, `tf.config` and Keras' float type after a test."""
    owners = [config, config.threading, config.optimizer, config.experimental]
    before = [(owner, _settings_of(owner)) for owner in owners]
    visible, logical = config._visible, dict(config._logical)
    engine, placement = (
        engines._default,
        (settings_of_engine.soft_device_placement, settings_of_engine.log_device_placement),
    )
    cpus = settings_of_engine.logical_cpus
    threads = _core.num_threads()
    seeds, generator = dict(vars(random._seeds)), generators._global_generator
    keras = sys.modules.get("keras")
    floatx = keras.config.floatx() if keras else "float32"
    yield
    for owner, held in before:
        for name, value in held.items():
            if getattr(owner, name) is not value:
                setattr(owner, name, value)
    config._visible, settings_of_engine.logical_cpus = visible, cpus
    if engines._default is not engine:
        engines.set_default(engine)
    _core.new_generation()
    settings_of_engine.soft_device_placement, settings_of_engine.log_device_placement = placement
    config._logical.clear()
    config._logical.update(logical)
    if _core.num_threads() != threads:
        _core.set_num_threads(threads)
    vars(random._seeds).update(seeds)
    generators._global_generator = generator
    keras = sys.modules.get("keras")
    if keras and keras.config.floatx() != floatx:
        keras.config.set_floatx(floatx)


_generators = {}  # those in a test module, and their state when it was imported


def pytest_collection_modifyitems(items):
    for module in {getattr(item, "module", None) for item in items} - {None}:
        found = [v for v in vars(module).values() if isinstance(v, np.random.Generator)]
        _generators[module] = [(generator, generator.bit_generator.state) for generator in found]


@pytest.fixture(autouse=True)
def seeded(request, global_settings_are_restored):
    """Every source of random numbers starts from the same seed: Python's, NumPy's, `tf.random`'s and Keras'.

    A generator in a test module is reset as well, so the numbers of a test do not depend on which tests ran before.
    """
    for generator, state in _generators.get(request.module, ()):
        generator.bit_generator.state = state
    python_random.seed(1)
    np.random.seed(1)
    settings_of_engine.raise_compile_errors = True
    random.set_seed(1)
    generators._global_generator = generators.Generator.from_seed(1)
    if keras := sys.modules.get("keras"):
        # As after the import: names of layers count from the start, and default seeds come from Python's random numbers.
        keras.utils.clear_session(free_memory=False)


def _skipped_without_h5py():
    """Keras saves models with h5py, which has no wheel for 3.13t: where it is not installed, such tests are skipped."""
    try:
        return (yield)
    except ImportError as e:
        if "h5py" in str(e) and find_spec("h5py") is None:
            pytest.skip("h5py is not installed")
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup():
    return (yield from _skipped_without_h5py())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    return (yield from _skipped_without_h5py())


@pytest.fixture
def unseeded(seeded):
    """For tests without a global seed: with one, a retraced function would draw the same numbers again."""
    vars(random._seeds).update(vars(random.Seeds()))


@pytest.fixture
def counted_memory():
    """For tests that count tensors or bytes: collects garbage before, and turns collection off meanwhile."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
