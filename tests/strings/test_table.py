"""tf.strings, call by call, against what TensorFlow 2.21 gave; the same calls within traced functions."""

import builtins
import importlib.util
from pathlib import Path

import numpy as np
import pytest

import gradtape as tf

_spec = importlib.util.spec_from_file_location("table", Path(__file__).with_name("table.py"))
table = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(table)

NAMES = {name: getattr(tf.strings, name) for name in dir(tf.strings) if name[0] != "_"}
CALLS = [(call, result) for family in table.CASES.values() for call, result in family.items()]
# Known differences: complex numbers can be printed, RE2's \C, a summary of no elements.
DIFFERENT = ("1+2j))", r"\C", "summarize=0")
CALLS = [(call, result) for call, result in CALLS if not any(words in call for words in DIFFERENT)]
RESULTS = [
    (call, result) for call, result in CALLS if not (isinstance(result, tuple) and result[0] == "raises")
]


def plain(value):
    """A result in the format of the table."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "to_list"):
        return "ragged", value.to_list()
    array = value.numpy()
    return value.dtype.name, array.tolist() if hasattr(array, "tolist") else array


def check(call, result, evaluate):
    if isinstance(result, tuple) and result[0] == "raises":
        kind = getattr(tf.errors, result[1], None) or getattr(builtins, result[1])
        with pytest.raises(kind):
            evaluate()
    else:
        got = plain(evaluate())
        assert repr(got) == repr(result), call


@pytest.mark.parametrize("call, result", CALLS, ids=[call for call, _ in CALLS])
def test_call(call, result):
    check(call, result, lambda: eval(call, {**NAMES, "tf": tf, "np": np}))


@pytest.mark.parametrize("call, result", RESULTS, ids=[call for call, _ in RESULTS])
def test_call_in_a_function(call, result):

    f = tf.function(lambda: eval(call, {**NAMES, "tf": tf, "np": np}), autograph=False)
    check(call, result, f)


def test_the_table_is_long():
    assert len(CALLS) > 300
