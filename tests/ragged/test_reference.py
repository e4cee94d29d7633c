"""Ragged tensors against TensorFlow's own results: values, types, shapes, classes of errors."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import gradtape as tf

_SPEC = importlib.util.spec_from_file_location("ragged_cases", Path(__file__).with_name("cases.py"))
cases = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(cases)
EXPECTED = json.loads(cases.REFERENCE.read_text())


def test_every_call_has_its_result():
    assert set(cases.CALLS) == set(EXPECTED)


@pytest.mark.parametrize("call", cases.CALLS)
def test_as_tensorflow(call):
    check(cases.result_of(tf, call), EXPECTED[call])


def check(found, expected):
    """Compares numbers with a tolerance, everything else exactly."""
    assert type(found) is type(expected), (found, expected)
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), (found, expected)
        if "error" in expected:
            assert expected["error"] in found["error"]
            return
        for key in expected:
            check(found[key], expected[key])
    elif isinstance(expected, list):
        assert len(found) == len(expected), (found, expected)
        for mine, theirs in zip(found, expected, strict=True):
            check(mine, theirs)
    elif isinstance(expected, float):
        np.testing.assert_allclose(found, expected, 2e-6, 2e-6)
    else:
        assert found == expected
