"""tf.image against TensorFlow's own numbers: values, types, shapes, gradients, seeds, classes of errors."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import gradtape as tf

_SPEC = importlib.util.spec_from_file_location("image_cases", Path(__file__).with_name("cases.py"))
cases = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(cases)
EXPECTED = json.loads(cases.REFERENCE.read_text())
# Floats are truncated to integers, so the last bit of a float can change the integer.
TOLERANCE = {"float16": 4e-3, "uint8": 0, "int32": 0}


def test_every_call_has_its_numbers():
    assert set(cases.CALLS) == set(EXPECTED)


@pytest.mark.parametrize("call", cases.CALLS)
def test_as_tensorflow(call):
    found, expected = cases.result_of(tf, call), EXPECTED[call]
    assert found.get("error") == expected.get("error")
    for mine, theirs in zip(found.get("results", ()), expected.get("results", ()), strict=True):
        assert (mine["dtype"], mine["shape"]) == (theirs["dtype"], theirs["shape"])
        limit = TOLERANCE.get(mine["dtype"], 2e-5)
        np.testing.assert_allclose(mine["values"], theirs["values"], limit, limit)
