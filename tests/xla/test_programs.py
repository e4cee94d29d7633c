"""Programs of the corpus (tests/programs) on XLA give what they give eagerly: values, gradients, second gradients.

Each runs once, in one of the modes, since to compile is what takes the time; `make xla-tests` runs all modes.
"""

import functools
import itertools

import pytest

import gradtape as tf
from gradtape._src.functions.function import function
from tests.programs import runner
from tests.programs.runner import CORPUS

MODES = ("function", "outside", "around")
CASES = [
    (name, next(m for m in itertools.islice(itertools.cycle(MODES), k, None) if m not in entry.without))
    for k, (name, entry) in enumerate(CORPUS.items())
    if not set(MODES) <= set(entry.without)
]


@pytest.mark.parametrize(("name", "mode"), CASES, ids=[f"{name}-{mode}" for name, mode in CASES])
def test_as_eager(name, mode):
    entry = CORPUS[name]
    (expected,) = runner.run(tf, name, "eager", 1, function)
    found = runner.run(tf, name, mode, 2, functools.partial(function, jit_compile=True))
    for k, results in enumerate(found):
        wrong = runner.difference(results, expected, entry.tolerance, mode in ("outside", "around"))
        assert wrong is None, f"run {k + 1}: {wrong}"
