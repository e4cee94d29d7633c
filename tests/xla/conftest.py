"""Tests of the XLA engine: skipped where JAX is not installed. They import it when they run, and run on its CPU client."""

from importlib.util import find_spec

import pytest

import gradtape as tf

_HERE = __file__.removesuffix("conftest.py")


def pytest_collection_modifyitems(items):
    if find_spec("jax") is None:
        skip = pytest.mark.skip(reason='JAX is not installed: pip install "gradtape[xla]"')
        for item in items:
            if str(item.path).startswith(_HERE) and not item.get_closest_marker("without_jax"):
                item.add_marker(skip)


def pytest_configure(config):
    config.addinivalue_line("markers", "without_jax: runs where JAX is not installed, too")


@pytest.fixture(autouse=True)
def native_unless_asked():
    """These tests choose XLA themselves, so GRADTAPE_ENGINE is removed."""
    tf.config.set_engine("native")


@pytest.fixture
def engine(native_unless_asked):
    """Uses XLA as the engine of this test."""
    tf.config.set_engine("xla")


@pytest.fixture
def fetched(monkeypatch):
    """A list of the arrays that are fetched from the device to the host.

    Only those of bfloat16: other arrays on a CPU export their memory without a call of the hook.
    """
    from gradtape._src.tensors import hooks

    seen = []
    fetch = hooks.fetch

    def counting(array):
        seen.append(array)
        return fetch(array)

    monkeypatch.setattr(hooks, "fetch", counting)
    hooks.install()
    yield seen
    monkeypatch.undo()
    hooks.install()
