"""Runs Keras' own tests on gradtape: `pytest -p keras_gradtape.pytest_plugin .../keras/src/...`.

The wheel of Keras has its tests but not the configuration that they are run with; what the tests
need of it is here.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import keras_gradtape  # noqa: F401  before anything imports Keras

import keras  # isort: skip


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "requires_trainable_backend: the backend must be able to train")
    config.addinivalue_line("markers", "multi_device: tests of several devices")
    for kind in ("DeprecationWarning", "FutureWarning", "ImportWarning", "RuntimeWarning", "UserWarning"):
        config.addinivalue_line("filterwarnings", f"ignore::{kind}")


# ---- what Keras' own conftest.py gives to its tests ---------------------------------------------


def _skip_if_backend(given_backend: str, reason: str) -> Any:
    return pytest.mark.skipif(keras.backend.backend() == given_backend, reason=reason)


conftest = ModuleType("conftest")
conftest.skip_if_backend = _skip_if_backend  # type: ignore[attr-defined]
sys.modules.setdefault("conftest", conftest)

# ---- what cannot pass, and why ------------------------------------------------------------------

EXCLUDED = Path(__file__).with_name("excluded_tests.txt")


def exclusions() -> list[tuple[str, str]]:
    """Names of tests, classes or files, or how names start ("...*"), and the reason why they are not run."""
    found = []
    for line in EXCLUDED.read_text().splitlines():
        test, _, reason = line.partition("  # ")
        if test.strip() and not test.startswith("#"):
            found.append((test.strip(), reason.strip()))
    return found


def pytest_collection_modifyitems(items: list) -> None:
    excluded = exclusions()
    for item in items:
        name = item.nodeid.partition("keras/src/")[2]
        for part, reason in excluded:
            if name == part or name.startswith(part[:-1] if part.endswith("*") else part + "::"):
                item.add_marker(pytest.mark.skip(reason=f"excluded: {reason}"))
                break


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Whole files are not even imported: most need a library at the top that is not there."""
    name = str(collection_path).partition("keras/src/")[2]
    return True if name.endswith("_test.py") and name in dict(exclusions()) else None
