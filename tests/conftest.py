"""Settings of all tests: property tests draw the same examples every time, and no test leaves settings behind."""

import sys
import types

import pytest
from hypothesis import settings

from gradtape import _core, config
from gradtape._src.tensors import random

settings.register_profile("gradtape", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("gradtape")


def _settings_of(owner):
    """The plain values that a module or class holds: numbers, texts, flags."""
    plain = (bool, int, float, str, types.NoneType)
    return {k: v for k, v in vars(owner).items() if isinstance(v, plain) and not k.startswith("__")}


@pytest.fixture(autouse=True)
def global_settings_are_restored():
    """Seeds, `tf.config` and Keras' float type are after a test what they were before it."""
    owners = [config, config.threading, config.optimizer, config.experimental]
    before = [(owner, _settings_of(owner)) for owner in owners]
    visible, logical = list(config._visible), dict(config._logical)
    threads = _core.num_threads()
    seeds, generator = dict(vars(random._seeds)), random._global_generator
    keras = sys.modules.get("keras")
    floatx = keras.config.floatx() if keras else "float32"
    yield
    for owner, held in before:
        for name, value in held.items():
            if getattr(owner, name) is not value:
                setattr(owner, name, value)
    config._visible[:] = visible
    config._logical.clear()
    config._logical.update(logical)
    if _core.num_threads() != threads:
        _core.set_num_threads(threads)
    vars(random._seeds).update(seeds)
    random._global_generator = generator
    keras = sys.modules.get("keras")
    if keras and keras.config.floatx() != floatx:
        keras.config.set_floatx(floatx)
