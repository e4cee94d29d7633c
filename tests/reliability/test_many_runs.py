"""`make runs`, which shows that no test fails by chance: it counts failures, and stops its own load at the end."""

import importlib.util
import sys
from pathlib import Path

import pytest

_TOOL = Path(__file__).resolve().parents[2] / "tools" / "many_runs.py"


@pytest.fixture
def tool(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("many_runs", _TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "LOGS", tmp_path / "logs")
    return module


def test_a_test_that_fails_at_times_is_found(tool, tmp_path, monkeypatch, capsys):
    (tmp_path / "test_it.py").write_text(
        "from pathlib import Path\n"
        "def test_a(): pass\n"
        "def test_b():\n"
        "    seen = Path(__file__).with_name('seen')\n"
        "    assert not seen.exists()\n"
        "    seen.touch()\n"
    )
    monkeypatch.setattr(sys, "argv", ["many_runs.py", "--runs", "2", "--busy", "1", str(tmp_path)])
    assert tool.main() == 1
    first, second, total = capsys.readouterr().out.splitlines()
    assert first.startswith("run 1: 2 passed; ")
    assert second.startswith("run 2, beside a busy machine: 1 failed, 1 passed; ") and "FAILED: see" in second
    assert total == "2 runs, 1 of them beside a busy machine: 1 failures"


def test_the_busy_machine_ends_with_its_run(tool, monkeypatch):
    started = []
    popen = tool.subprocess.Popen

    def start(*args):
        started.append(popen(*args))
        return started[-1]

    monkeypatch.setattr(tool.subprocess, "Popen", start)
    with pytest.raises(KeyError), tool.busy(2):
        assert [process.poll() for process in started] == [None, None]
        raise KeyError
    assert all(process.returncode for process in started)


@pytest.mark.parametrize(
    "log, expected",
    [
        ("908 passed in 24.67s\n", ["908 passed"]),
        ("=== 1 failed, 3 passed, 2 skipped in 300.12s (0:05:00) ===\n", ["1 failed, 3 passed, 2 skipped"]),
        ("5 passed in 1.00s\nmore\n== 1 error in 0.10s ==\n", ["5 passed", "1 error"]),
        ("FAILED tests/test_a.py::test_b - 3 passed\nmake: *** [test] Error 1\n", []),
    ],
)
def test_summaries_of_pytest(tool, log, expected):
    assert tool.summaries(log) == expected
