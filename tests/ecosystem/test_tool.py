"""`tools/ecosystem.py` and its pytest plugin: recorded results, samples, and wrong names."""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

PLACE = Path(__file__).resolve().parent
TOOL = PLACE.parents[1] / "tools" / "ecosystem.py"
CASES = """
import os
import pytest

@pytest.mark.parametrize("i", range(200))
def test_many(i):
    pass

def test_fails():
    assert 1 == 2, "one is not two"

def test_is_skipped():
    pytest.skip("no")

def test_dies():
    os._exit(3)
"""


def run(tmp_path, *arguments, **settings):
    file = tmp_path / "test_cases.py"
    file.write_text(CASES)
    found = tmp_path / "cases"
    found.unlink(missing_ok=True)
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "cases", "-p", "no:cacheprovider", f"--rootdir={tmp_path}",
        f"{file}", *arguments,
    ]  # fmt: skip
    search = os.pathsep.join((str(PLACE), os.environ.get("PYTHONPATH", "")))
    subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": search, "ECOSYSTEM_CASES": str(found)} | settings,
        capture_output=True,
    )
    return [json.loads(line) for line in found.read_text().splitlines()]


def tool(*arguments, **settings):
    environment = os.environ | settings
    return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True, env=environment)


def test_cases_are_written_down_as_they_end_and_so_is_the_one_that_kills_its_process(tmp_path):
    lines = run(tmp_path, "-k", "not many")
    name = "test_cases.py::test_"
    assert lines[0] == [name + "fails", None] and lines[1][0] == name + "fails"
    assert "one is not two" in lines[1][1]
    assert lines[2:] == [[name + "is_skipped", None], [name + "is_skipped", "skipped"], [name + "dies", None]]


def test_a_sample_is_the_same_each_time_and_another_by_another_seed(tmp_path):
    first, again, other = (
        {name for name, _ in run(tmp_path, "-k", "many", ECOSYSTEM_SAMPLE=sample)}
        for sample in ("10 1", "10 1", "10 2")
    )
    assert first == again != other and 8 <= len(first) <= 40


def test_wrong_arguments():
    done = tool("no-such-package")
    assert done.returncode == 1 and "no package 'no-such-package'" in done.stderr and "gpflow" in done.stderr
    done = tool("--seconds", "0", "einops")
    assert done.returncode == 2 and "above 0" in done.stderr


def test_a_package_is_run_by_one_process_at_a_time(tmp_path):
    (tmp_path / "einops").mkdir()
    with (tmp_path / "einops" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = tool("einops", GRADTAPE_ECOSYSTEM=str(tmp_path))
    assert done.returncode == 1 and "another process is at work on einops" in done.stderr
