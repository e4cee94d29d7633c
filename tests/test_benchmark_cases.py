"""The benchmark's cases of growth and of whole models: they run at small sizes, and all ways to run them agree.

Nothing here measures time.
"""

from __future__ import annotations

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
    assert slow.startswith("too long: 100 took so long that this would take 110 s")
    large = growth.skipped(axis, 1000, figures(1.0, 100, mb=1050.0), 100)
    assert large.startswith("too much memory: 100 took so much that this would take 9.8 GB")
    failed = growth.skipped(axis, 1000, {"missing": "too long: no answer in 100 s"}, 100)
    assert failed == "too long: no answer in 100 s at 100"
    assert growth.skipped(axis, 10_000, {"missing": failed}, 1000) == failed


def test_growth_is_measured_in_processes_of_their_own(bench, monkeypatch):  # noqa: F811
    """Real processes, of gradtape: the smallest size goes first, and the peak is that of the size at hand."""
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
    small = bench.peers.Peer("gradtape", memory=0.8)
    answer = small.ask(do="prepare", key="k", **chain)
    assert "error" in answer
    small.close()
    brief = bench.peers.Peer("gradtape", memory=4)
    brief._patience = 0.01
    assert brief.ask(do="prepare", key="k", **chain)["error"] == "too long: no answer in 0.01 s"
    assert not brief.alive
    brief.close()


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
