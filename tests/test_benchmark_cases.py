"""The benchmark's cases of growth and of whole models: they run at small sizes, and all ways to run them agree.

Nothing here measures time.
"""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace

import pytest

import gradtape as tf
from tests.test_benchmarks import bench, cell, rows  # noqa: F401

QUICK = SimpleNamespace(quick=True, rounds=1, seconds=0.0, workloads=None)

AXES = ("chain", "wide", "variables", "orders", "rows", "batch", "sequence", "width")


# ---- growth ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", AXES)
def test_growth_gives_the_same_eagerly_and_compiled(bench, axis):  # noqa: F811
    known = bench.growth.AXES[axis]
    for size in known.sizes[:2]:
        made = {
            mode: bench.growth.case("gradtape", tf, axis, mode, size)
            for mode in ("eager", "function")
            if f"gradtape {mode}" in known.labels
        }
        got = {mode: cases["whole"].check() for mode, cases in made.items()}
        for values in got.values():
            assert values == pytest.approx(got["eager"], rel=1e-4)
            assert all(v > 0 for v in values)
        for case in made["eager"].values():
            case.run(1)
            assert case.count == known.units(size)


def test_growth_has_every_axis(bench):  # noqa: F811
    assert tuple(bench.growth.AXES) == AXES


def test_derivatives_of_higher_orders_are_those_of_the_function(bench):  # noqa: F811
    """sin(x) tanh(x), three times: against differences of the second derivative."""
    import numpy as np

    _, (x,) = bench.growth._program("orders", 3)
    whole = [
        bench.growth._tensorflow(tf, "orders", "eager", n, *bench.growth._program("orders", n))[0]
        for n in (2, 3)
    ]
    f, _ = bench.growth._program("orders", 2)
    h = np.float64(1e-4)
    sides = [
        bench.growth._tensorflow(tf, "orders", "eager", 2, f, [x.astype(np.float64) + s * h])[0]()[0].numpy()
        for s in (1, -1)
    ]
    np.testing.assert_allclose(whole[1]()[0].numpy(), (sides[0] - sides[1]) / (2 * h), rtol=1e-3, atol=1e-3)


def figures(per_unit, units, first_ms=1.0, mb=60.0):
    return {"whole": cell(per_unit) | {"first_ms": first_ms}, "peak": {"mb": mb, "imported_mb": 50.0}}


def test_a_size_that_would_exceed_a_limit_is_not_tried(bench):  # noqa: F811
    growth = bench.growth
    axis = growth.AXES["chain"]
    assert growth.skipped(axis, 10, None, 10) is None
    assert growth.skipped(axis, 1000, figures(1.0, 100), 100) is None
    slow = growth.skipped(axis, 1000, figures(1.0, 100, first_ms=11e3), 100)
    assert slow == "too long: 100 took so long that this would take 110 s or more, and 20 are left"
    assert growth.skipped(axis, 100, figures(1.0, 10, first_ms=11e3), 10) is None  # loads things once
    warm = growth.skipped(axis, 1000, figures(1000.0, 100), 100, left=5.0)
    assert warm == "too long: 100 took so long that this would take 7 s or more, and 5 are left"
    large = growth.skipped(axis, 1000, figures(1.0, 100, mb=1050.0), 100)
    assert large.startswith("too much memory: 100 took so much that this would take 9.8 GB")
    failed = growth.skipped(axis, 1000, {"missing": "too long: no answer in 100 s"}, 100)
    assert failed == "too long: no answer in 100 s at 100"
    assert growth.skipped(axis, 10_000, {"missing": failed}, 1000) == failed


def test_growth_is_measured_in_one_process_for_all_sizes(bench, monkeypatch):  # noqa: F811
    """A real one, of gradtape: the smallest size goes first, and the peak is that of the size at hand."""
    known = bench.growth.AXES["chain"]._replace(labels=("gradtape eager",), sizes=(10, 20_000))
    monkeypatch.setattr(bench.growth, "AXES", {"chain": known})
    part = bench.growth.measure(QUICK)
    assert list(part["cases"]) == ["chain 10", "chain 20000"]
    got = part["cases"]["chain 20000"]["gradtape eager"]
    assert got["whole"]["min"] > 0
    assert got["whole"]["check"] is None
    assert got["peak"]["mb"] > got["peak"]["imported_mb"] + 1
    assert bench.growth.per_unit(part, "bytes")["cases"]["chain 20000"]["gradtape eager"]["unit"]["min"] > 100


def test_a_process_has_no_more_memory_and_time_than_it_was_given(bench):  # noqa: F811
    chain = {"part": "growth", "name": "chain", "mode": "eager", "library": "gradtape", "size": 3_000_000}
    # Without the GIL the interpreter's allocator reserves memory at its start.
    reserved = 1.0 if "free-threading" in sys.version else 0.0
    small = bench.peers.Peer("gradtape", memory=0.8 + reserved)
    answer = small.ask(do="prepare", key="k", **chain)
    assert "error" in answer
    small.close()
    brief = bench.peers.Peer("gradtape", memory=4)
    brief.patience = 0.01
    assert brief.ask(do="prepare", key="k", **chain)["error"] == "too long: no answer in 0.01 s"
    assert not brief.alive
    brief.close()


def test_a_library_that_has_used_up_its_seconds_leaves_out_the_rest(bench, monkeypatch):  # noqa: F811
    known = bench.growth.AXES["chain"]._replace(labels=("gradtape eager",), sizes=(10, 20_000))
    monkeypatch.setattr(bench.growth, "AXES", {"chain": known})
    monkeypatch.setattr(bench.growth, "_FEWER", {"gradtape eager": 0.0})
    cells = bench.growth.measure(QUICK)["cases"]
    assert "min" in cells["chain 10"]["gradtape eager"]["whole"]
    assert cells["chain 20000"]["gradtape eager"]["missing"].startswith("too long: 10 took so long")


def test_the_table_of_growth_is_of_one_unit(bench):  # noqa: F811
    part = {
        "cases": {
            "chain 10": {"gradtape eager": figures(2.0, 10), "torch eager": figures(3.0, 10)},
            "chain 1000": {
                "gradtape eager": figures(0.5, 1000),
                "torch eager": figures(1.0, 1000, first_ms=4.0),
                "jax jit": {"missing": "too long: 10 took so long"},
            },
        }
    }
    warm, first, size = (rows(t) for t in bench.growth.table(part).split("\n\n")[1::2])
    assert warm[3] == ["ops in a chain, 1,000", "0.500", "1.00", "too long", "2.00"]
    assert first[3] == ["ops in a chain, 1,000", "1.00", "4.00", "too long", "4.0"]
    assert size[2:] == [["ops in a chain, 1,000", "10,486", "10,486", "too long", "1.00"]]


# ---- files ------------------------------------------------------------------------------------------


def test_files_are_written_read_and_decoded(bench, monkeypatch, tmp_path):  # noqa: F811
    files = importlib.import_module("files")
    monkeypatch.setattr(files, "_folder", lambda: str(tmp_path))
    got = {}
    for name in files.CASES:
        case = files.case("gradtape", tf, name, "eager")["call"]
        case.run(case.count or 1)
        (got[name],) = case.check()
    assert got["write a record of 100 bytes"] == 10_000 * 116
    assert got["write a record of 20,000 bytes"] == 500 * 20_016
    assert got["read a record of 100 bytes, batch 128"] == 1_000_000
    assert got["decode PNG 224x224"] == got["decode JPEG 224x224"] == 224 * 224 * 3
    assert got["parse 128 examples"] == 128 * 190 + 20 * sum(range(128))


# ---- whole models -----------------------------------------------------------------------------------

MODELS = (
    "MLP", "tabular", "U-Net", "ResNet50", "MobileNetV2", "EfficientNetB0", "VGG16", "DenseNet121", "GPT",
    "GPT, mixed_bfloat16", "BERT", "LSTM", "GRU", "autoencoder",
)  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_model_trains(bench, name):  # noqa: F811
    import keras

    assert keras.backend.backend() == "gradtape"
    case = bench.keras_models.case("gradtape", tf, name, "Keras", tiny=True)["step"]
    case.run(1)
    if case.check:
        first, *second = case.check()
        assert first > 0
        assert second != [first]
        assert bool(second) == (name != "ResNet50")


def test_the_models_are_those_of_the_words(bench):  # noqa: F811
    assert tuple(bench.keras_models.MODELS) == MODELS
    assert list(bench.keras_models.WORDS) == [*MODELS, "DQN", "PPO", "PINN"]


@pytest.mark.parametrize("name", ["DQN", "PPO", "PINN"])
def test_steps_written_by_hand_are_the_same_in_both_modes(bench, name):  # noqa: F811
    losses = []
    for mode in ("eager", "function"):
        case = bench.keras_models.case("gradtape", tf, name, mode, tiny=True)["step"]
        case.run(1)
        losses.append(case.check())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert losses[0][1] != losses[0][0]


@pytest.mark.parametrize("name", ["DQN", "PPO", "PINN"])
def test_steps_written_by_hand_are_the_same_in_jax(bench, name):  # noqa: F811
    jax = pytest.importorskip("jax")
    losses = []
    for library, module, mode in (("gradtape", tf, "eager"), ("jax", jax, "jit")):
        case = bench.keras_models.case(library, module, name, mode, tiny=True)["step"]
        case.run(1)
        losses.append(case.check())
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_tables_of_models_are_of_the_quickest_way(bench):  # noqa: F811
    def figures(us, first_ms, mb):
        return {"step": cell(us) | {"first_ms": first_ms}, "peak": {"mb": mb, "imported_mb": 40.0}}

    part = {
        "cases": {
            "MLP": {
                "gradtape Keras": figures(500.0, 10.0, 100.0),
                "tensorflow Keras": figures(2000.0, 900.0, 500.0),
                "jax Keras": figures(1000.0, 800.0, 300.0),
                "torch Keras": {"missing": "the process of torch ended (exit code -9)"},
            },
            "PINN": {
                "gradtape eager": figures(400.0, 5.0, 90.0),
                "gradtape function": figures(200.0, 50.0, 95.0),
                "torch eager": figures(800.0, 20.0, 300.0),
            },
        }
    }
    step, first, peak = (rows(t) for t in bench.keras_models.table(part).split("\n\n")[1::2])
    words = bench.keras_models.WORDS
    assert step[0] == ["", "gradtape", "TensorFlow", "PyTorch", "JAX", "best peer / ours"]
    assert step[2] == [words["MLP"], "0.500", "2.00", "died", "1.00", "2.00"]
    assert first[3] == [words["PINN"], "50.0", "", "20.0", "", "**0.40**"]
    assert peak[2] == [words["MLP"], "100", "500", "died", "300", "3.0"]
    lines = rows(bench.keras_models.summary(part))[2:]
    assert lines[0] == ["MLP", "0.500", "1.00 (JAX Keras)", "2.00", "80", "3.0"]
