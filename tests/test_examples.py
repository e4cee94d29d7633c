"""Every program of examples/: it runs in its short form, draws its picture, and is as short and plain as it should be.

`make parity` runs the same programs on TensorFlow and compares their losses (tests/against_tensorflow/examples.py).
"""

import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples"
IMPORT = "import gradtape as tf"
FILES = sorted(FOLDER.glob("*.py"))
EXAMPLES = [p for p in FILES if IMPORT in p.read_text()]
HAS_KERAS = importlib.util.find_spec("keras") is not None
HAS_JAX = importlib.util.find_spec("jax") is not None

# The quick form, but with its picture: what is drawn has to work as well.
RUN = """
import json, pathlib, sys, types
path = sys.argv[1]
source = pathlib.Path(path).read_text()
assert source.count("if not quick:") == 1, "draws in one place, if not quick"
module = sys.modules["example"] = types.ModuleType("example")
exec(compile(source.replace("if not quick:", "if True:"), path, "exec"), module.__dict__)
print(json.dumps([float(x) for x in module.main(True)]))
"""


def run(*command, cwd):
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT), str(FOLDER)]))
    done = subprocess.run(
        [sys.executable, "-W", "error", *command],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("path", EXAMPLES, ids=[p.stem for p in EXAMPLES])
def test_runs_and_draws(path, tmp_path):
    if "tf.keras" in path.read_text() and not HAS_KERAS:
        pytest.skip("Keras is an extra")
    if "keras.distribution" in path.read_text() and not HAS_JAX:
        pytest.skip("JAX is an extra")
    lines = run("-c", RUN, str(path), cwd=tmp_path).stdout.splitlines()
    losses = json.loads(lines[-1])
    assert losses and all(math.isfinite(x) for x in losses)
    picture = tmp_path / f"{path.stem}.png"
    assert lines[-2] == f"drawn to {picture.name}"
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize("name", ["digits", "drawn_digits", "linear_regression"])
def test_runs_as_a_program(name, tmp_path):
    done = run(str(FOLDER / f"{name}.py"), "--quick", cwd=tmp_path)
    assert done.stdout
    assert not done.stderr
    assert not list(tmp_path.glob("*.png"))


@pytest.mark.parametrize("path", FILES, ids=[p.stem for p in FILES])
def test_is_short_and_differs_by_one_line(path):
    source = path.read_text()
    assert len(source.splitlines()) <= 150
    if path in EXAMPLES:
        assert source.count("gradtape") == 1, "`import gradtape as tf` is all that names the library"
        assert f"python examples/{path.name}  " in source
        assert f"python examples/{path.name} --quick" in source
        assert f"{path.stem}.png" in source


def test_readme_lists_them():
    text = (FOLDER / "README.md").read_text()
    listed = re.findall(r"^\| !\[.*\]\(pictures/(\w+)\.png\) \| \[(\w+)\]\((\w+)\.py\) \|", text, re.M)
    assert [name for _, name, _ in listed] == sorted(p.stem for p in EXAMPLES)
    for picture, name, file in listed:
        assert file == picture == name
