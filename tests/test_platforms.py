"""The table of platforms: the page is generated from its rows, and a row is a run that passed."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_spec = importlib.util.spec_from_file_location("platforms_tool", ROOT / "tools" / "platforms.py")
platforms = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(platforms)

_REPORT = '<testsuites><testsuite name="pytest" errors="{}" failures="{}" skipped="{}" tests="{}"><testcase failures="9"/>'


def test_the_page_is_that_of_the_rows():
    assert platforms.PAGE.read_text() == platforms.page(), "run: python tools/platforms.py --page"


def test_rows_are_whole():
    rows = platforms.rows()
    assert len({row.target for row in rows}) == len(rows)
    for row in rows:
        assert all(row), row
        assert re.fullmatch(r"[\d,]+ passed, [\d,]+ skipped|compiled and linked, not run", row.tests)
        assert re.fullmatch(r"[0-9a-f]{10}\+?", row.commit) and re.fullmatch(r"\d{4}-\d\d-\d\d", row.date)


def test_passed_tests_are_counted():
    assert platforms.counted(_REPORT.format(0, 0, 12, 2611)) == "2,599 passed, 12 skipped"


@pytest.mark.parametrize("numbers", [(1, 0, 0, 5), (0, 1, 0, 5), (0, 0, 5, 5), (0, 0, 0, 0)])
def test_no_row_of_a_run_that_failed(numbers):
    with pytest.raises(platforms.Failed):
        platforms.counted(_REPORT.format(*numbers))


@pytest.mark.parametrize(
    "said, name",
    [
        ("Debian clang version 16.0.6 (15~deb12u1)\nTarget: x86_64", "clang 16.0.6"),
        ("aarch64-linux-gnu-g++ (Debian 12.2.0-14) 12.2.0", "gcc 12.2.0"),
        ("g++ (Debian 14.2.0-19) 14.2.0\nCopyright", "gcc 14.2.0"),
    ],
)
def test_compilers_are_named(said, name):
    assert platforms.compiler_name(said) == name


def test_a_missing_program_is_named_with_its_package():
    with pytest.raises(platforms.Failed, match="no clang[+][+]-99. Hint: apt install clang-99"):
        platforms.need("clang++-99", "clang-99")


def test_packages_are_those_that_gradtape_wants():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (bounds,) = (d for d in wanted if d.startswith("scipy-openblas32"))
    assert bounds in platforms.NEEDED


def test_the_fast_half_is_there():
    assert all((ROOT / folder).exists() for folder in platforms.FAST)
