"""Small distributed programs have the results of TensorFlow 2.21 with two logical CPUs: golden/*.json.

`python golden/run.py tensorflow p1_variables` writes them, one program at a time: TensorFlow's collectives of two strategies
in one process collide.
"""

import importlib
import importlib.util
import json
import sys
from pathlib import Path

import pytest

import gradtape as tf

FOLDER = Path(__file__).parent / "golden"
HAS_KERAS = importlib.util.find_spec("keras") is not None
PROGRAMS = sorted(p.stem for p in FOLDER.glob("p*_*.py"))


@pytest.fixture
def differences(monkeypatch, two):
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in ("run", "layers", "loops"):
        sys.modules.pop(name, None)

    def found(name):
        run = importlib.import_module("run")
        got = run.plain(importlib.import_module(name).program(tf, two))
        return run.close(json.loads((FOLDER / f"{name}.json").read_text()), got)

    yield found
    for name in ("run", "layers", "loops", *PROGRAMS):
        sys.modules.pop(name, None)


# Known differences, with reasons: the beginning of each message.
KNOWN = {
    # Where copies of a variable could become different, which TensorFlow allows, an error is raised.
    "p1_variables": (".assign without aggregation", ".what each replica reads then"),
    # Each replica of TensorFlow keeps moving averages of its own, and shows the first one's; here they are averaged.
    "p11_keras_batch_norm": (".evaluate", ".predict", ".weights[4]", ".weights[5]"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_tensorflow_agrees(name, differences):
    source = (FOLDER / f"{name}.py").read_text()
    if any(word in source for word in ("keras", "loops", "layers")) and not HAS_KERAS:
        pytest.skip("Keras is an extra")
    lines = differences(name)
    assert [line for line in lines if not line.startswith(KNOWN.get(name, ("nothing",)))] == []
    assert bool(lines) == (name in KNOWN)
