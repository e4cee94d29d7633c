"""Sixty mistakes: gradtape's message names the cause and what to do, compared with TensorFlow's (record.py)."""

import importlib.util
import json
from pathlib import Path

import pytest

import gradtape as tf

pytest.importorskip("keras", reason="mistakes with models")

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("record_mistakes", HERE / "record.py")
record = importlib.util.module_from_spec(spec)
spec.loader.exec_module(record)

MISTAKES = record.mistakes()


@pytest.fixture(scope="module")
def known():
    return record.names(tf)


@pytest.mark.parametrize("mistake", MISTAKES, ids=[m["title"] for m in MISTAKES])
def test_mistake(mistake, known, tmp_path):
    seen = record.seen(mistake, known, tmp_path, ask=True)
    assert not (missing := [words for words in mistake["says"] if words not in seen]), (missing, seen)


def test_there_are_sixty_with_the_output_of_tensorflow():
    said = json.loads((HERE / "tensorflow.json").read_text(encoding="utf-8"))["said"]
    titles = [m["title"] for m in MISTAKES]
    assert len(titles) == len(set(titles)) >= 60
    assert sorted(said) == sorted(titles), "run tests/mistakes/record.py where TensorFlow is"
