"""Packages that import TensorFlow, under the alias: the drivers of those that are installed, each in a process of its own.

`make ecosystem` runs them all in environments of their own, with the packages' own tests, on TensorFlow too.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PLACE = Path(__file__).resolve().parent
ROOT = PLACE.parents[1]
PACKAGES = {path.stem: json.loads(path.read_text()) for path in sorted((PLACE / "packages").glob("*.json"))}
DRIVERS = sorted((PLACE / "drivers").glob("test_*.py"))


def _module(package):
    """The name under which a package is imported."""
    return package.get("module", package["name"].replace("-", "_"))


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda path: path.stem.removeprefix("test_"))
def test_a_driver(driver, tmp_path):
    package = next(p for p in PACKAGES.values() if f"test_{p['name'].replace('-', '_')}" == driver.stem)
    for module in [_module(package), *package.get("imports", ())]:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: make ecosystem ARGS={package['name']} runs it")
    command = [sys.executable, "-m", "gradtape", "run", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    alone = ["-o", "addopts=", "-o", "filterwarnings=", "--noconftest"]  # our settings are not the package's
    options = [*alone, f"--rootdir={tmp_path}", str(driver)]
    path = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("GRADTAPE_", "KERAS_"))}
    settings = clean | {"PYTHONPATH": path, "MPLBACKEND": "agg"} | package.get("environ", {})
    done = subprocess.run(command + options, cwd=tmp_path, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.parametrize("stem", PACKAGES)
def test_a_package_says_what_it_needs(stem):
    """A file that the tool can read, named after its package, with a driver or tests of the package's own."""
    package = PACKAGES[stem]
    assert package["name"].replace("-", "_").lower() == stem.replace("-", "_").lower()
    assert (
        package["requirement"].lower().replace("_", "-").startswith(package["name"].lower().replace("_", "-"))
    )
    known = {
        "name", "module", "imports", "requirement", "without", "bare", "extra", "tests", "environ", "excluded",
        "sample", "why_not", "status",
    }  # fmt: skip
    assert set(package) <= known, set(package) - known
    assert all(why for why in package.get("excluded", {}).values())
    driver = PLACE / "drivers" / f"test_{package['name'].replace('-', '_')}.py"
    assert driver.exists() or package.get("tests") or package.get("status")
