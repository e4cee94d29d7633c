"""Runs Keras' own tests on gradtape: `pytest -p keras_gradtape.pytest_plugin .../keras/src/...`.

The Keras wheel contains its tests, but not their configuration; the parts that the tests need are here.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

import keras_gradtape  # noqa: F401  before anything imports Keras

import keras  # isort: skip
import gradtape  # isort: skip
from gradtape import backend  # isort: skip
from keras_gradtape.src import ops  # isort: skip


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "requires_trainable_backend: the backend must be able to train")
    config.addinivalue_line("markers", "multi_device: tests of several devices")
    for kind in ("DeprecationWarning", "FutureWarning", "ImportWarning", "RuntimeWarning", "UserWarning"):
        config.addinivalue_line("filterwarnings", f"ignore::{kind}")
    # A test compares the signatures of the backend with Keras', which has no annotations.
    for part in ("core", "image", "linalg", "math", "nn", "numpy"):
        for function in vars(getattr(ops, part)).values():
            if isinstance(function, (FunctionType, backend.OneCall)):
                inspect.unwrap(function).__annotations__ = {}


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Every test starts from the same random numbers: many draw their data, and compare with a tolerance."""
    keras.utils.set_random_seed(1)


# ---- replacements for Keras' own conftest.py ---------------------------------------------------


def _skip_if_backend(given_backend: str, reason: str) -> Any:
    return pytest.mark.skipif(keras.backend.backend() == given_backend, reason=reason)


conftest = ModuleType("conftest")
conftest.skip_if_backend = _skip_if_backend  # type: ignore[attr-defined]
sys.modules.setdefault("conftest", conftest)


def _name_for_trainers(real: Callable[[], str]) -> Callable[[], str]:
    """The name of the backend; trainer_test.py, which has tables of names, gets one that is in them.

    It then finds our trainer in place of NumPy's, and the CPU under its name in JAX. Tests of distributions only
    run on JAX, which our implementation uses, too.
    """

    def name() -> str:
        asking = sys._getframe(1)
        if asking.f_code.co_filename.endswith("trainer_test.py"):
            if asking.f_code.co_name == "<module>" and "Trainer" not in asking.f_globals:
                return "numpy"
            if asking.f_code.co_name == "__getitem__":
                return "jax"
        if asking.f_code.co_filename.endswith("distribution_lib_test.py"):
            return "jax"
        return real()

    return name


keras.src.backend.backend = _name_for_trainers(keras.src.backend.backend)


def _sharding(variable: Any) -> Any:
    """How the value of a variable is cut over devices, under the name that tests of distributions know."""
    return backend.mesh.sharding_of(variable)


gradtape.Variable.sharding = property(_sharding)  # type: ignore[attr-defined]

# ---- excluded tests, with reasons ----------------------------------------------------------------

EXCLUDED = Path(__file__).with_name("excluded_tests.txt")


@functools.cache
def exclusions() -> list[tuple[str, str]]:
    """Names of tests, classes or files, or how names start ("...*"), and the reason why they fail."""
    out = []
    for line in EXCLUDED.read_text().splitlines():
        test, _, reason = line.partition("  # ")
        if test.strip() and not test.startswith("#"):
            out.append((test.strip(), reason.strip()))
    return out


def _reason(name: str) -> str:
    """Why a file or a test is excluded; nothing if it is not."""
    for part, reason in exclusions():
        if name == part or name.startswith(part[:-1] if part.endswith("*") else part + "::"):
            return reason
    return ""


def pytest_collection_modifyitems(items: list) -> None:
    """An excluded test is run and must fail, unless it is marked as "not run"."""
    if any(item.path.name == "distribution_lib_test.py" for item in items) and find_spec("jax"):
        import jax

        jax.config.update("jax_num_cpu_devices", 8)  # the number of devices that such tests expect
    for item in items:
        # By path, since the beginning of a test's id depends on where pytest starts.
        reason = _reason(
            item.path.as_posix().rpartition("keras/src/")[2] + "::" + item.nodeid.partition("::")[2]
        )
        if reason.startswith("not run: "):
            item.add_marker(pytest.mark.skip(reason=f"excluded: {reason}"))
        elif reason:
            item.add_marker(pytest.mark.xfail(reason=f"excluded: {reason}", strict=True))


# ---- tests that need other libraries -------------------------------------------------------------

_NEEDED = re.compile(
    r"No module named '(tensorflow|tensorboard|torch|jax|grain|pandas|sklearn|scipy|tree|orbax|requests|PIL|onnxruntime)\b"
    r"|requires the '?([\w.-]+)'? (?:module|package)|requires (?:installing )?(TensorFlow)"
)


def _skipped_if_missing(report: Any, words: str, where: str) -> Any:
    """A report as one of a test that is skipped, if a library is missing that is compared with."""
    needed = _NEEDED.search(words)
    if report.failed and needed:
        report.outcome = "skipped"
        report.longrepr = (where, 0, f"Skipped: not installed: {next(filter(None, needed.groups()))}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    report = yield
    return (
        report
        if call.excinfo is None
        else _skipped_if_missing(report, str(call.excinfo.value), str(item.path))
    )


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: Any) -> Any:
    report = yield
    return _skipped_if_missing(report, str(report.longrepr), str(getattr(collector, "path", "")))
