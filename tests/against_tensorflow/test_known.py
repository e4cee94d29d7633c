"""docs/differences.md lists the differences in known.py, and the comparison detects differences."""

import numpy as np
import pytest

import gradtape as tf

from . import compare, known
from .calling import run


def differences(ours, theirs, dtype="float64"):
    """The kinds of differences between two calls, both of gradtape."""
    outcomes = [run(tf, call, "the same numbers", dtype) for call in (ours, theirs)]
    return {d.kind for d in compare.compare(*outcomes)}


def test_the_page_is_up_to_date():
    page = known.PAGE.read_text(encoding="utf-8")
    assert page == known.page(), "run `python tests/against_tensorflow/known.py`"


def test_every_entry_names_its_difference():
    for entry in known.KNOWN:
        assert entry.theirs and entry.here, entry


@pytest.mark.parametrize(("ours", "theirs", "kinds"), [
    (lambda m: tf.sin(m.f(3)), lambda m: tf.sin(m.f(3)), set()),
    (lambda m: tf.sin(m.f(3)), lambda m: tf.sin(m.f(3)) + 1e-6, {"value"}),
    (lambda m: tf.sin(m.f(3)), lambda m: tf.sin(m.f(3))[None], {"shape"}),
    (lambda m: tf.cast(m.f(3), "int32"), lambda m: tf.cast(m.f(3), "int64"), {"dtype"}),
    (lambda m: m.f(3), lambda m: [m.f(3)], {"class"}),
    (lambda m: tf.grad_pass_through(tf.sin)(m.f(3)), lambda m: tf.sin(m.f(3)), {"gradient", "second"}),
    (lambda m: tf.stop_gradient(m.f(3)), lambda m: m.f(3) * 1, {"gradient", "second"}),
    (lambda m: tf.gather(m.f(3), [0]), lambda m: m.f(3)[:1], {"gradient"}),
    (lambda m: m.f(3) + m.f(2), lambda m: m.f(3), {"refused"}),
    (lambda m: m.f(3), lambda m: m.f(3) + m.f(2), {"accepted"}),
    (lambda m: m.f(3) + m.f(2), lambda m: tf.zeros(None), {"error"}),
    (lambda m: m.f(3) + m.f(2), lambda m: tf.reshape(m.f(3), [2]), set()),
])  # fmt: skip
def test_differences_are_detected(ours, theirs, kinds):
    assert differences(ours, theirs) == kinds


def test_operands_are_the_same_numbers_in_both():
    (a,), (b,) = (run(tf, lambda m: (m.f(2, 3),), "words", "float32").results for _ in range(2))
    np.testing.assert_array_equal(a.array, b.array)
    assert not np.array_equal(a.array, run(tf, lambda m: m.f(2, 3), "other words", "float32").results.array)
