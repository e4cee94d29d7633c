"""A part of Keras' own tests: those of its wheel that need no other library, without the slowest.

All of them run by `make keras-tests`, in an environment of their own.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_keras = importlib.util.find_spec("keras")
if _keras is None:
    pytest.skip("Keras is not installed", allow_module_level=True)
TESTS = Path(_keras.submodule_search_locations[0]) / "src"
if not (TESTS / "ops" / "core_test.py").exists():
    pytest.skip("this wheel of Keras comes without its tests", allow_module_level=True)

# Parts, and how many tests must pass in each: with fewer, some are skipped for a new reason.
PARTS = {
    "ops": (("ops", "random"), 1450),
    "layers": (("layers",), 1150),
    "training": (
        ("optimizers", "losses", "metrics", "models", "trainers", "callbacks", "regularizers", "constraints"),
        1050,
    ),
    "saving": (("saving", "legacy", "backend", "dtype_policies", "initializers", "activations", "tree", "utils"), 690),
}  # fmt: skip
_FOREIGN = re.compile(
    r"^(?:import|from) (?:tensorflow|torch|jax|grain|pandas|sklearn|onnxruntime|requests|tree)\b", re.M
)
_SLOW = re.compile(r"reversible_embedding|einsum_dense|orbax|applications|backend/(?:jax|tensorflow|torch)")
# Compares the result types of thousands of calls with JAX, which is not installed here.
# test_speedup asserts that one duration is less than another.
_WITHOUT = "not DtypeTest and not quantiz and not int4 and not int8 and not gptq and not test_speedup"

_spec = importlib.util.spec_from_file_location("keras_tests", ROOT / "tools" / "keras_tests.py")
suite = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(suite)


def _files(folders):
    for folder in folders:
        for path in sorted((TESTS / folder).rglob("*_test.py")):
            if not _SLOW.search(str(path)) and not _FOREIGN.search(path.read_text()):
                yield str(path)


@pytest.mark.parametrize("part", PARTS)
def test_tests_of_keras(part, tmp_path, monkeypatch):
    if part in ("training", "saving") and importlib.util.find_spec("h5py") is None:
        pytest.skip("h5py, which these import, is not installed")
    monkeypatch.setattr(suite, "HOME", tmp_path)
    folders, least = PARTS[part]
    done = suite.run(Path(sys.executable), part, 900, *_files(folders), "-k", _WITHOUT)
    log = tmp_path / "reports" / f"{part}.log"
    print(log.read_text().rstrip().rpartition("\n")[2])  # pytest's own summary
    rows = done["files"].values()
    failures = [f"{test}: {why}" for row in rows for test, why in row.get("failures", {}).items()]
    assert not failures, "\n".join(failures)
    assert not done["ended"], done["ended"]
    assert sum(row["passed"] for row in rows) >= least


def test_exclusions_have_reasons():
    lines = (ROOT / "keras_gradtape" / "excluded_tests.txt").read_text().splitlines()
    for line in lines:
        if line.startswith("#"):
            continue
        test, mark, reason = line.partition("  # ")
        assert mark, line
        assert len(reason) > 10, line
        assert (TESTS / test.partition("::")[0]).exists(), line


def test_reports_are_counted_by_file(tmp_path):
    """An excluded test that passes is a failure, and so is a file that cannot be imported."""
    (tmp_path / "report.xml").write_text(
        """<testsuites><testsuite>
        <testcase classname="keras.src.ops.math_test.MathTest" name="test_a_1.5" time="1"/>
        <testcase classname="keras.src.ops.math_test.MathTest" name="test_b" time="2">
          <skipped type="pytest.xfail" message="excluded: for a reason"/></testcase>
        <testcase classname="keras.src.ops.math_test.MathTest" name="test_c"><skipped message="no GPU"/></testcase>
        <testcase classname="keras.src.ops.math_test.MathTest" name="test_d">
          <failure message="[XPASS(strict)] excluded: for a reason&#10;..."/></testcase>
        <testcase classname="" name="lib.keras.src.layers.core.dense_test"><error message="no import"/></testcase>
        </testsuite></testsuites>"""
    )
    assert suite._read(tmp_path / "report.xml") == {
        "ops/math_test.py": {
            "passed": 1, "failed": 1, "skipped": 1, "excluded": 1, "seconds": 3,
            "failures": {"MathTest.test_d": "[XPASS(strict)] excluded: for a reason"},
        },
        "layers/core/dense_test.py": {
            "passed": 0, "failed": 1, "skipped": 0, "excluded": 0, "seconds": 0, "failures": {"": "no import"},
        },
    }  # fmt: skip
