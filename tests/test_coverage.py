"""docs/coverage.md is what gradtape is: written anew, the page is the same."""

import csv
import importlib.util
from pathlib import Path

import pytest

import gradtape as tf

ROOT = Path(__file__).resolve().parents[1]
spec = importlib.util.spec_from_file_location("coverage_page", ROOT / "tools" / "coverage.py")
coverage = importlib.util.module_from_spec(spec)
spec.loader.exec_module(coverage)
SHARED = ROOT.parent / "shared" / "symbols.csv"


def test_the_page_is_up_to_date():
    assert coverage.PAGE.read_text() == coverage.page(tf), "run `make coverage`"


def test_words_are_about_names_that_are_there():
    known = {s.name: s for s in coverage.symbols(tf)}
    for name in (*coverage.STUBS, *coverage.REFUSALS):
        assert known[name].status in (coverage.STUB, coverage.REFUSED), name


def test_nothing_is_missing_without_words():
    """What TensorFlow 2.21 has is there, or says why not."""
    missing = [s.name for s in coverage.symbols(tf) if s.status == coverage.MISSING and not s.absent]
    assert [n for n in missing if not n.startswith("tf.linalg.LinearOperator")] == []


def test_what_a_training_program_needs_works():
    every = coverage.symbols(tf)
    for category, share in (("core", 0.98), ("data", 1.0), ("infra", 0.84), ("io/image/str", 0.9)):
        those = [s for s in every if s.category == category]
        works = sum(s.files for s in those if s.status == coverage.WORKS)
        assert works >= share * sum(s.files for s in those), category


@pytest.mark.parametrize(("name", "status"), [
    ("tf.GradientTape", "works"), ("tf.summary.trace_on", "accepted"), ("tf.Session", "refused"),
    ("tf.no_such_name", "missing"), ("tf.math.no_such_name", "missing"), ("tensorflow.python.eager", "refused"),
])  # fmt: skip
def test_how_names_are_judged(name, status):
    assert coverage.look(tf, name)[0] == status


@pytest.mark.skipif(
    not SHARED.exists(), reason="the list this one was made from is not part of the repository"
)
def test_the_list_is_the_one_that_was_found():
    with open(SHARED) as file:
        found = [r["symbol"] for r in csv.DictReader(file) if not r["symbol"].endswith(".")]
    with open(coverage.SYMBOLS) as file:
        assert [r["symbol"] for r in csv.DictReader(file)] == found
