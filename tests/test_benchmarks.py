"""The benchmark's harness: statistics, turns, tables, pictures, and what is published from a run.

Nothing here measures time.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parent.parent
ADAM = "Adam, 4 tensors of 1,000,000"
OPTIONS = SimpleNamespace(quick=False, rounds=3, seconds=0.0, workloads=None)


@pytest.fixture(scope="module")
def bench():
    """The modules of benchmarks/, which import each other as scripts in one folder."""
    path = str(ROOT / "benchmarks")
    sys.path.insert(0, path)
    before = set(sys.modules)
    names = (
        "cases",
        "worker",
        "peers",
        "parts",
        "report",
        "page",
        "plots",
        "run",
        "ops",
        "overhead",
        "steps",
        "growth",
        "keras_models",
        "work",
    )
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    sys.path.remove(path)
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and path in str(sys.modules[name].__file__):
            del sys.modules[name]


class Peer:
    """Answers like a process of a library; `log` lists commands and libraries in order."""

    version = "1.0"

    def __init__(self, library, log, disturbed=0, broken=False):
        self.library, self.log, self.disturbed, self.broken = library, log, disturbed, broken
        self.alive = True

    def ask(self, do, key=None, **about):
        self.log.append((do, self.library))
        if do == "prepare":
            if self.broken == "dies":
                self.alive = False
                return {"error": "the process of it ended"}
            if self.broken:
                return {"error": "NotImplementedError: no"}
            return {"metrics": {"op": {"first_ms": 5.0, "check": [1.0]}}}
        if do == "sample":
            self.disturbed -= 1
            times = [2.0, 3.0, 4.0]
            return {"clean": [], "other": times} if self.disturbed >= 0 else {"clean": times, "other": [1.0]}
        return {}

    def close(self):
        self.log.append(("close", self.library))


def turns(bench, peers, rounds=3, patience=2):
    commands = {
        f"{name} eager": {"library": name, "part": "x", "name": "y"} for name in ("gradtape", "torch")
    }
    return bench.parts.in_turns(peers, commands, rounds, 0.0, patience)


# ---- statistics and turns -------------------------------------------------------------------------


def test_stats_are_of_undisturbed_samples(bench):
    got = bench.parts.stats([{"clean": [4.0, 2.0, 3.0], "other": [1.0]}, {"clean": [5.0, 6.0], "other": []}])
    assert got == {"min": 2.0, "median": 4.0, "spread": 0.5, "samples": 5, "quiet": True}


def test_stats_without_enough_undisturbed_samples_say_so(bench):
    got = bench.parts.stats([{"clean": [4.0], "other": [1.0, 9.0]}])
    assert (got["min"], got["samples"], got["quiet"]) == (1.0, 3, False)


def test_libraries_take_turns(bench):
    log = []
    result = turns(bench, {name: Peer(name, log) for name in ("gradtape", "torch")})
    sampled = [library for do, library in log if do == "sample"]
    assert sampled == ["gradtape", "torch"] * 3
    assert [do for do, _ in log[:2]] == ["prepare", "prepare"]  # nobody compiles between the turns of others
    assert result["torch eager"]["op"]["min"] == 2.0
    assert result["torch eager"]["op"]["first_ms"] == 5.0


def test_a_disturbed_library_gets_more_turns_up_to_a_limit(bench):
    log = []
    turns(bench, {"gradtape": Peer("gradtape", log), "torch": Peer("torch", log, disturbed=2)})
    sampled = [library for do, library in log if do == "sample"]
    assert (sampled.count("gradtape"), sampled.count("torch")) == (3, 4)
    log.clear()
    result = turns(bench, {"gradtape": Peer("gradtape", log), "torch": Peer("torch", log, disturbed=99)})
    assert [library for do, library in log if do == "sample"].count("torch") == 6
    assert not result["torch eager"]["op"]["quiet"]


def test_what_fails_or_is_absent_stays_out_of_the_turns(bench):
    log = []
    result = turns(bench, {"gradtape": Peer("gradtape", log, broken=True)})
    assert result == {"gradtape eager": {"missing": "NotImplementedError: no"}}
    assert ("sample", "gradtape") not in log


def test_a_quick_run_leaves_out_modes_that_start_slowly(bench, monkeypatch):
    log = []
    monkeypatch.setattr(bench.peers, "start", lambda names, threads: {n: Peer(n, log) for n in names})
    labels = ("gradtape eager", "torch eager", "torch compile", "tensorflow xla")
    todo = {"W1": {label: bench.parts.command(label, "steps", "W1") for label in labels}}
    quick = SimpleNamespace(quick=True, rounds=1, seconds=0.0)
    assert list(bench.parts.measure("workloads", todo, quick)["cases"]["W1"]) == list(labels[:2])
    assert list(bench.parts.measure("workloads", todo, OPTIONS)["cases"]["W1"]) == list(labels)
    assert {library for do, library in log if do == "close"} == {"gradtape", "torch", "tensorflow"}


def test_a_process_that_died_is_started_again_for_the_next_case(bench, monkeypatch):
    log, started = [], []

    def start(names, threads):
        started.extend(names)
        return {n: Peer(n, log, broken="dies" if len(started) == 1 else False) for n in names}

    monkeypatch.setattr(bench.peers, "start", start)
    todo = {name: {"torch eager": bench.parts.command("torch eager", "steps", name)} for name in ("W1", "W2")}
    cases = bench.parts.measure("workloads", todo, OPTIONS)["cases"]
    assert cases["W1"]["torch eager"] == {"missing": "the process of it ended"}
    assert cases["W2"]["torch eager"]["op"]["min"] == 2.0
    assert started == ["torch", "torch"]


def test_a_peer_answers_and_ends(bench):
    """A real process, of gradtape: asked, told nonsense, asked again, closed."""
    peer = bench.peers.Peer("gradtape", threads=1)
    about = {"library": "gradtape", "part": "overhead", "name": "sin ()", "mode": "eager"}
    assert list(peer.ask(do="prepare", key="k", **about)["metrics"]) == ["op"]
    assert "KeyError" in peer.ask(do="prepare", key="k", **(about | {"name": "no such op"}))["error"]
    assert peer.ask(do="sample", key="k/op", seconds=0.0, alone=False).keys() == {"clean", "other"}
    assert peer.alive
    peer.close()
    assert not peer.alive


def test_time_left_is_that_of_this_part_and_the_later_ones(bench):
    now = [0.0]
    plan = bench.parts.Plan({"a": 60.0, "b": 30.0, "c": 10.0}, lambda: now[0])
    plan.begin("b")
    now[0] = 12.0
    assert plan.left() == 28.0
    now[0] = 100.0
    assert plan.left() == 10.0


def test_parts_are_kept_replaced_or_resumed(bench):
    here = bench.run.machine()
    before = {"machine": here, "parts": {"limits": {"old": 1}, "large": {"old": 2}}}
    results, names = bench.run.start(before, [], resume=False)
    assert results["parts"] == {}
    assert names == list(bench.run.PARTS)
    results, names = bench.run.start(before, [], resume=True)
    assert results["parts"] == before["parts"]
    assert names == [n for n in bench.run.PARTS if n not in ("limits", "large")]
    results, names = bench.run.start(before, ["large"], resume=False)
    assert names == ["large"]
    assert results["parts"]["limits"] == {"old": 1}
    elsewhere = before | {"machine": here | {"cores": -1}}
    assert bench.run.start(elsewhere, ["large"], resume=False)[0]["parts"] == {}


# ---- cases ----------------------------------------------------------------------------------------


def test_a_worker_prepares_and_samples_a_case(bench):
    ready = {}
    import gradtape

    command = {"do": "prepare", "key": "k", "library": "gradtape", "part": "ops", "alone": True}
    about = {"name": "add", "mode": "eager", "table": "large", "size": 100}
    metrics = bench.worker.prepare("gradtape", gradtape, command | about, ready)
    assert metrics["op"]["check"][0] == pytest.approx(110, rel=0.2)
    got = bench.worker.sample(ready["k/op"], 0.0, bench.worker.Waiting(), alone=False)
    assert len(got["clean"]) + len(got["other"]) >= 3


@pytest.mark.parametrize("name", ["W1", "W2", "W3", "W8a", "W9", "W10"])
def test_small_workloads_give_the_same_in_both_modes(bench, name):
    import gradtape

    checks = [
        bench.steps.case("gradtape", gradtape, name, mode)["step"].check() for mode in ("eager", "function")
    ]
    assert checks[0] == pytest.approx(checks[1], rel=1e-4)


@pytest.mark.parametrize("table", ["large", "layers", "linalg"])
def test_every_op_of_a_table_has_words_for_each_library_or_none(bench, table):
    for name, row in getattr(bench.ops, table.upper()).items():
        assert row.tf and row.torch and row.jax, name
        for words in row[1:5]:
            compile(words or "None", name, "eval")


@pytest.mark.parametrize("name", ["W2", "W3", "W4", "W6", "W7", "W8a", "W8b", "W10"])
def test_the_products_that_are_counted_are_those_of_the_program(bench, name):
    """A count is the least work: our program has no more products, but for a few of one column or row."""
    import math

    from workloads import data, tensorflow_api

    import gradtape
    from gradtape._src.debug.programs import _steps

    parameters, inputs = data.make(name)
    variables, inputs = [gradtape.Variable(p) for p in parameters], [gradtape.constant(a) for a in inputs]
    if name in data.ADAM:
        step = tensorflow_api.training(gradtape, name, "function", variables)
    else:
        step = tensorflow_api._derivative(gradtape, name, variables)
    concrete = gradtape.function(step).get_concrete_function(*inputs)
    operations = 0.0
    for node in (n for s in _steps(concrete)[1] for n in s.nodes if n.name == "matmul"):
        shapes = [v.shape for v in (*node.operands[:2], node.results[0])]
        # m k, k n and m n, whichever of them are transposed.
        once = math.sqrt(math.prod(s[-1] * s[-2] for s in shapes))
        operations += 2 * once * math.prod(shapes[2][:-2])
    assert bench.work.WORK[name].operations == pytest.approx(operations, rel=0.03)


# ---- tables, pictures, page -----------------------------------------------------------------------


def cell(value, quiet=True):
    return {"first_ms": 10 * value, "check": [1.0], "min": value, "median": value, "spread": 0.0, "samples": 9,
            "quiet": quiet}  # fmt: skip


@pytest.fixture
def results(bench):
    """A run of two workloads and an op, with figures that are easy to check."""
    about = {
        "when": "2026-01-02 03:04",
        "commit": "abc",
        "quick": False,
        "seconds": 1,
        "versions": {"torch": "2"},
    }
    workloads = {
        "W1": {
            "gradtape eager": {"step": cell(10.0)},
            "gradtape function": {"step": cell(4.0)},
            "torch eager": {"step": cell(30.0)},
            "torch eager, fused": {"step": cell(20.0)},
            "jax jit": {"step": cell(8.0, quiet=False)},
        },
        "W2": {
            "gradtape eager": {"step": cell(10.0)},
            "torch eager": {"step": cell(5.0)},
            "autograd numpy": {},
        },
    }
    sizes = {f"add {n}": {"gradtape eager": {"op": cell(n / 1e4)}, "jax eager": {"op": cell(n / 5e3)}}
             for n in (10_000, 100_000)}  # fmt: skip
    peak = {"peak": {"mb": 90.0, "imported_mb": 40.0}}
    return {
        "machine": {"processor": "P", "cores": 2, "threads": 2, "system": "L", "python": "3"},
        "parts": {
            "workloads": about | {"cases": workloads},
            "one_thread": about | {"cases": {"W1": {"gradtape eager": {"step": cell(15.0)}}}},
            "overhead": about | {"cases": {"sin": {"gradtape eager": {"op": cell(0.5)}, "torch eager": {"op": cell(1.0)}}}},
            "large": about | {"cases": sizes},
            "keras_models": about
            | {"cases": {"MLP": {"gradtape Keras": {"step": cell(9.0), **peak}, "jax Keras": {"step": cell(18.0), **peak}}}},
            "growth": about
            | {"cases": {f"chain {n}": {"gradtape eager": {"whole": cell(1.0), "peak": peak["peak"]}} for n in (10, 100)}},
            "memory": about | {"cases": {"W4": {"gradtape eager": peak, "torch eager": peak}}},
            "footprint": about
            | {"import_ms": {"gradtape": {"min": 30.0, "median": 31.0, "samples": 3}},
               "size_mb": {"gradtape": {"numpy": 60.0, "gradtape": 5.5}}},
            "limits": about
            | {"gflops": {"2": {"gradtape eager": 90.0, "torch eager": 100.0}},
               "memory_gb_s": {"2": {"copy": 10.0, "add": 12.0}}},
        },
    }  # fmt: skip


def rows(table):
    return [[c.strip() for c in line.strip("|").split("|")] for line in table.splitlines()]


def test_a_table_has_the_best_variant_and_the_ratio_to_the_best_peer(bench, results):
    head, _, first, second = rows(bench.report.ways(results["parts"]["workloads"]))
    assert head == [
        "",
        "gradtape",
        "gradtape function",
        "torch eager",
        "JAX jit",
        "autograd",
        "best peer / ours",
    ]
    assert first == ["W1", "10.0", "4.00", "20.0", "8.00!", "", "2.00!"]
    assert second == ["W2", "10.0", "", "5.00", "", "", "**0.50**"]


def test_the_summary_compares_best_with_best_and_eager_with_eager(bench, results):
    _, _, first, second = rows(bench.page.summary(results["parts"]["workloads"]))
    assert first == [
        "W1: chain of 200 scalar ops, value and gradient",
        "4.00",
        "8.00! (JAX jit)",
        "2.00!",
        "2.00",
    ]
    assert second[1:] == ["10.0", "5.00 (PyTorch eager)", "**0.50**", "**0.50**"]


def test_losing_cases_stand_first_and_alone(bench, results):
    lines = rows(bench.page.slower(results["parts"]))[2:]
    assert [line[0] for line in lines] == ["Whole steps: W2"]
    results["parts"]["workloads"]["cases"].pop("W2")
    assert bench.page.slower(results["parts"]) == "Nowhere in this run."


def test_different_values_are_reported(bench, results):
    part = results["parts"]["workloads"]
    assert bench.report.disagreements(part) == []
    part["cases"]["W1"]["jax jit"]["step"]["check"] = [1.01]
    assert bench.report.disagreements(part)[0].startswith("W1: jax jit step gives [1.01]")
    part["cases"]["W1"]["jax jit"]["step"]["check"] = [float("nan")]
    assert len(bench.report.disagreements(part)) == 1
    models = results["parts"]["keras_models"]
    models["cases"]["MLP"]["jax Keras"]["step"]["check"] = [1.01]
    assert bench.report.disagreements(models) == ["MLP: jax Keras step gives [1.01], gradtape [1.0]"]


def test_a_module_that_is_missing_ends_the_run(bench, results, monkeypatch, tmp_path):
    part = results["parts"]["workloads"]
    assert bench.report.not_imported(part) == []
    part["cases"]["W1"]["jax jit"] = {"missing": "ModuleNotFoundError: No module named 'gradtape'"}
    monkeypatch.setitem(bench.run.PARTS, "workloads", (lambda options: part, 1))
    monkeypatch.setattr(sys, "argv", ["run.py", "workloads", "--output", str(tmp_path / "results.json")])
    with pytest.raises(SystemExit, match=r"jax jit: ModuleNotFoundError"):
        bench.run.main()
    assert not (tmp_path / "results.json").exists()


def test_the_processes_of_peers_need_no_gradtape(bench):
    modules = {measure.__module__ for measure, _ in bench.run.PARTS.values()}
    code = f"import sys; sys.modules['gradtape'] = None; import worker, {', '.join(modules)}"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT / "benchmarks")


def test_the_distance_to_the_limit_is_that_of_the_longer_one(bench, results):
    rates = results["parts"]["limits"]
    work = bench.work.Work(operations=1e6, bytes=60e3, rest="")
    assert bench.work.limit(work, rates, 2) == (10.0, "products")  # 10^6 at 100 GFLOP/s; 5 us of memory
    assert bench.work.limit(work._replace(bytes=240e3), rates, 2) == (20.0, "memory")
    functions = bench.work.rates_of_functions(
        {"large": {"cases": {"exp 1000": {"gradtape eager": {"op": cell(5.0)}, "torch eager": {"op": cell(2.0)}},
                             "exp 500": {"jax eager": {"missing": "not here"}}}}}
    )  # fmt: skip
    assert functions == {"exp": 2e-3}  # us
    work = work._replace(functions=("exp", "exp"), elements=5e3)
    assert bench.work.limit(work, rates, 2, functions) == (20.0, "functions")


def test_the_table_of_limits_has_a_goal_in_bold_where_it_is_missed(bench, results, monkeypatch):
    W = bench.work.Work
    cases = {"W1": W(0, 12e3, "this"), "W2": W(0, 12e3, "that", 1.5), ADAM: W(0, 1.2e6, "all", 1.2)}
    monkeypatch.setattr(bench.work, "WORK", cases)
    table, _, words = bench.work.near(results["parts"], 2).split("\n\n")
    assert rows(table)[2:] == [
        ["W1", "4.00", "0.0", "0.01", "", "1.00 (memory)", "4.0", ""],
        ["W2", "10.0", "0.0", "0.01", "", "1.00 (memory)", "**10.0**", "at most 1.5"],
    ]
    assert words == "- W1: this\n- W2: that"
    results["parts"]["optimizers"] = {"cases": {ADAM: {"gradtape eager": {"step": cell(110.0)}}}}
    table = bench.work.near(results["parts"], 2).split("\n\n")[0]
    assert rows(table)[-1] == [ADAM, "110", "0.0", "1.20", "", "100 (memory)", "1.10", "at most 1.2"]


def test_every_workload_has_a_count(bench):
    from workloads import data

    assert list(bench.work.WORK) == [*data.WORKLOADS, ADAM]
    assert {n: w.bar for n, w in bench.work.WORK.items() if w.bar} == {
        "W4": 1.5, "W5": 1.5, "W7": 1.5, "W11": 2.0, ADAM: 1.2,
    }  # fmt: skip


def test_a_run_of_changed_files_is_not_published(bench, monkeypatch, tmp_path, capsys):
    done = []
    monkeypatch.setattr(bench.run, "PARTS", {"limits": (lambda options: {"gflops": {}}, 1)})
    monkeypatch.setattr(bench.run.page, "publish", done.append)
    monkeypatch.setattr(bench.run, "commit", lambda: "abc-dirty")
    monkeypatch.setattr(sys, "argv", ["run.py", "limits"])
    before = (ROOT / "benchmarks" / "results.json").read_bytes()
    with pytest.raises(SystemExit):
        bench.run.main()
    assert "abc-dirty has changes: commit first" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["run.py", "limits", "--output", str(tmp_path / "out.json")])
    bench.run.main()
    assert json.loads((tmp_path / "out.json").read_text())["parts"]["limits"]["commit"] == "abc-dirty"
    assert done == []
    assert (ROOT / "benchmarks" / "results.json").read_bytes() == before


def test_what_a_run_writes_does_not_change_its_commit(bench, monkeypatch, tmp_path):
    def git(*words):
        import subprocess

        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True)

    for name in ("README.md", "code.py"):
        (tmp_path / name).write_text("old")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    monkeypatch.setattr(bench.peers, "ROOT", tmp_path)
    clean = bench.run.commit()
    assert re.fullmatch("[0-9a-f]+", clean)
    (tmp_path / "README.md").write_text("new")
    assert bench.run.commit() == clean
    (tmp_path / "code.py").write_text("new")
    assert bench.run.commit() == f"{clean}-dirty"


def test_the_page_has_every_part_and_only_pictures_that_are_drawn(bench, results, tmp_path):
    text = bench.page.page(results)
    for name in results["parts"]:
        assert f"## {bench.page.TITLES[name]}\n" in text
    drawn = {f"benchmarks/{path.name}" for path in bench.plots.draw(results["parts"], tmp_path)}
    assert drawn == set(re.findall(r'(?:src|srcset)="(benchmarks/[\w-]+\.svg)"', text))
    assert "quick run" not in text
    results["parts"]["large"]["quick"] = True
    assert "quick run" in bench.page.page(results)


def test_before_the_first_run_the_page_says_so(bench, results):
    results["parts"] = {}
    for text in (bench.page.page(results), bench.page.readme(results)):
        assert "No run is published yet" in text
        assert "svg" not in text


def test_pictures_are_equal_for_equal_figures(bench, results, tmp_path):
    first = {p.name: p.read_bytes() for p in bench.plots.draw(results["parts"], tmp_path / "a")}
    again = {p.name: p.read_bytes() for p in bench.plots.draw(results["parts"], tmp_path / "b")}
    assert first == again
    assert all(text.startswith(b"<?xml") for text in first.values())


def test_the_block_of_the_readme_is_replaced_and_nothing_else(bench):
    text = "a\n<!-- bench -->\nold\n<!-- /bench -->\nb \\1\n"
    assert bench.page.with_block(text, r"new \1") == "a\n<!-- bench -->\nnew \\1\n<!-- /bench -->\nb \\1\n"
    with pytest.raises(ValueError, match="no block"):
        bench.page.with_block("nothing here", "new")


def test_publishing_writes_page_pictures_and_block(bench, results, tmp_path, capsys):
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- bench -->\n<!-- /bench -->\nafter\n")
    bench.page.publish(results, tmp_path / "docs", readme)
    text = (tmp_path / "docs" / "benchmarks.md").read_text()
    for link in re.findall(r"\]\((benchmarks/\w+\.svg)\)", text):
        assert (tmp_path / "docs" / link).exists()
    block = readme.read_text()
    assert block.startswith("before\n<!-- bench -->\nMeasured 2026-01-02 at abc on P, 2 cores")
    assert "| MLP           |        0.009 | 0.018 (JAX Keras) |              2.00 |" in block
    assert "PyTorch eager takes 2.00 to 2.00 times as long" in block
    assert "gradtape 30.0 ms, 65.5 MB" in block


# ---- publishing -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published():
    return json.loads((ROOT / "benchmarks" / "results.json").read_text())


def test_readme_has_the_figures_of_the_run_and_no_others(bench, published):
    text = (ROOT / "README.md").read_text()
    assert bench.page.with_block(text, bench.page.readme(published)) == text, "run benchmarks/page.py"
    speed = text.split("## Speed\n")[1].split("\n## ")[0]
    outside = re.sub(r"<!-- bench -->.*<!-- /bench -->", "", speed, flags=re.S)
    assert not re.search(r"\d", outside)


def test_the_page_is_that_of_the_run(bench, published):
    text = (ROOT / "docs" / "benchmarks.md").read_text()
    assert text == bench.page.page(published), "run benchmarks/page.py"
    for link in re.findall(r"\]\((benchmarks/\w+\.svg)\)", text):
        assert (ROOT / "docs" / link).exists()


def test_no_published_case_gave_a_wrong_value(bench, published):
    found = [line for part in published["parts"].values() for line in bench.report.disagreements(part)]
    assert found == []


def test_where_figures_are_disturbed_the_mark_is_explained(bench, published):
    for section in re.split(r"\n(?=## )", bench.page.page(published)):
        marked = any(re.search(r"\d!", line) for line in section.splitlines() if line.startswith("|"))
        assert (bench.page._DISTURBED in section) == marked, section.partition("\n")[0]
    assert bench.page._DISTURBED in bench.page.readme(published)
