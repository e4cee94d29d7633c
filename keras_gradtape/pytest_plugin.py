"""Runs Keras' own tests on gradtape: `pytest -p keras_gradtape.pytest_plugin .../keras/src/...`.

The wheel of Keras has its tests but not the configuration that they are run with; what the tests
need of it is here.
"""

from __future__ import annotations

from typing import Any

import keras_gradtape  # noqa: F401  before anything imports Keras


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "requires_trainable_backend: the backend must be able to train")
    config.addinivalue_line("markers", "multi_device: tests of several devices")
    for kind in ("DeprecationWarning", "FutureWarning", "ImportWarning", "RuntimeWarning", "UserWarning"):
        config.addinivalue_line("filterwarnings", f"ignore::{kind}")
