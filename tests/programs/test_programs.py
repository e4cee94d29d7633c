"""Every program of the corpus in every mode gives the same results, and those of TensorFlow.

The reference is eager with the tape's own compiler off. `compiled` runs a program three times in
a row, so that its backward passes run as native programs the last two times.
"""

import functools
import json
from pathlib import Path

import pytest

import gradtape as tf
from gradtape import _core
from gradtape._src.functions.function import Function, function

from . import runner
from .runner import CORPUS

REFERENCE = json.loads((Path(__file__).parent / "reference.json").read_text())
# Modes of the corpus, and how often a program runs in each of them.
MODES = {"compiled": 3, "function": 2, "outside": 2, "around": 2}


@pytest.fixture(autouse=True)
def _compile_setting():
    before = _core.is_compiling()
    yield
    _core.set_compile(before)


@functools.cache
def eager(name):
    """The results with the tape's compiler off."""
    before = _core.is_compiling()
    _core.set_compile(False)
    try:
        return runner.run(tf, name, "eager", 1, function)[0]
    finally:
        _core.set_compile(before)


@pytest.mark.parametrize("name", CORPUS)
def test_as_tensorflow(name):
    results = eager(name)
    wrong = runner.summary_difference(
        runner.summary(results), REFERENCE[name], results, CORPUS[name].tolerance
    )
    assert wrong is None, wrong


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CORPUS)
def test_as_eager(name, mode):
    entry = CORPUS[name]
    if mode in entry.without:
        pytest.skip(entry.without[mode])
    _core.set_compile(True)
    _core.clear_compiled()
    expected = eager(name)
    runs = runner.run(tf, name, "eager" if mode == "compiled" else mode, MODES[mode], function)
    for k, results in enumerate(runs):
        wrong = runner.difference(results, expected, entry.tolerance, mode in ("outside", "around"))
        assert wrong is None, f"run {k + 1}: {wrong}"
    info = _core.compile_info()
    # A tape around functions of another engine runs its rules one by one.
    if tf.config.get_engine() == "native":
        assert info["failures"] == 0, f"{info['failures']} backward passes could not be compiled"
    if mode == "compiled" and entry.objective:
        assert info["hits"] > 0, "nothing was compiled"


# ---- every size unknown ---------------------------------------------------------------------------

# Their Python code needs a size, which is unknown in TensorFlow too.
SIZES_IN_PYTHON = {
    "collatz_like_recursion": "ends when a size is 1",
    "exponential_smoothing": "unstacks",
    "gru": "unstacks",
    "lagrangian_acceleration": "unstacks",
    "lstm": "zeros of x.shape[0] rows",
    "planar_flow": "zeros of x.shape[0] rows",
    "transformer_block": "a mask of x.shape",
    "several_targets_and_output_gradients": "output gradients whose shape is known",
}


class OfUnknownSizes(Function):
    """A function that is traced as if its signature had None for every size."""

    def _traced(self, given, statics, engine):
        return super()._traced(given, [tuple(None for _ in s) for s in statics], engine)


@pytest.mark.parametrize("mode", ["function", "around"])
@pytest.mark.parametrize("name", [n for n in CORPUS if n not in SIZES_IN_PYTHON])
def test_with_unknown_sizes(name, mode, caplog):
    entry = CORPUS[name]
    if mode in entry.without:
        pytest.skip(entry.without[mode])
    # The first run executes the calls one by one, the second compiles them, the third runs the program.
    for k, results in enumerate(runner.run(tf, name, mode, 3, OfUnknownSizes)):
        wrong = runner.difference(results, eager(name), entry.tolerance, mode == "around")
        assert wrong is None, f"run {k + 1}: {wrong}"
    assert "eagerly" not in caplog.text


def test_the_corpus_is_refereed():
    assert set(CORPUS) == set(REFERENCE)
    assert len(CORPUS) >= 60
