"""A sample of every fuzzer (`make fuzz` runs them for minutes), and tests that they detect errors."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the fuzzers read /proc")


def fuzz(root, *arguments):
    command = [sys.executable, str(root / "tools/fuzz"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


# The number of cases, not the time, so that every run is the same one.
@pytest.mark.parametrize(
    "kind, seed, cases",
    [
        ("calls", 20, 600),
        ("api", 6, 4),
        ("programs", 3, 6),
        ("interrupts", 3, 40),
        ("threads", 1, 16),
        ("memory", 3, 80),
    ],
)
def test_sample(kind, seed, cases):
    done = fuzz(_ROOT, kind, "--seed", seed, "--cases", cases, "--seconds", 500, "--jobs", 1)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(rf"{kind}: {cases:,} cases, .* bad: 0\n", done.stdout), done.stdout


def test_crashes_and_indecent_exceptions_are_seen(tmp_path):
    """Calls that break something, in various ways, are reported by name; mere mistakes of the caller are not."""
    shutil.copytree(_ROOT / "tools/fuzz", tmp_path / "tools/fuzz")
    for name in ("gradtape", "gradtape_imports", "keras_gradtape", "tests"):
        (tmp_path / name).symlink_to(_ROOT / name)
    with open(tmp_path / "tools/fuzz/hostile.py", "a") as hostile:
        hostile.write(
            "BROKEN = {3: 'abort()', 5: 'evil.nothing[0]', 7: '[][\\'x\\']', 9: '(_ for _ in ()).throw(AssertionError)'}\n"
            "def call_number(seed, number):\n"
            "    return 'float32', 'eager', BROKEN.get(number, 'tf.ones([2])')\n"
        )
    calls = tmp_path / "tools/fuzz/calls.py"
    calls.write_text(
        calls.read_text().replace('"nan": float', '"abort": __import__("os").abort, "nan": float')
    )
    done = fuzz(tmp_path, "calls", "--cases", 12, "--seed", 4)
    assert done.returncode == 1
    assert "calls 3: signal 6" in done.stdout and "[float32, eager] abort()" in done.stdout
    assert "python tools/fuzz calls --seed 4 --only 3" in done.stdout
    assert "calls 9: " in done.stdout and "AssertionError" in done.stdout
    assert "calls 5:" not in done.stdout and "calls 7:" not in done.stdout
    assert re.search(r"^calls: 12 cases, .* bad: 2$", done.stdout, re.MULTILINE)


def test_programs_are_shortened():
    spec = importlib.util.spec_from_file_location("fuzz_harness", _ROOT / "tools/fuzz/harness.py")
    harness = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = harness  # dataclasses look there
    spec.loader.exec_module(harness)
    text = "a = 1\nb = 2\ndef f(x):\n    c = x\n    if c:\n        d = c\n    return c / 0\ne = f(b)\ng = e"

    def sort_of(candidate):
        try:
            exec(candidate, {})
        except Exception as e:
            return type(e).__name__
        return None

    short = harness._shrink(text, "ZeroDivisionError", sort_of)
    assert short.splitlines() == ["b = 2", "", "def f(x):", "    c = x", "    return c / 0", "e = f(b)"]
