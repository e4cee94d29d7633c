"""Types: the stubs are what gradtape is, every public name is seen by a type checker, and programs check."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradtape import _core
from gradtape._src.ops import PUBLIC
from gradtape._src.public import absent
from gradtape._src.tensors import tensor as tensor_module

pytest.importorskip("mypy", reason="asks mypy")

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = Path(__file__).parent / "programs" / "typed.py"

spec = importlib.util.spec_from_file_location("stubs", ROOT / "tools" / "stubs.py")
stubs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(stubs)


def mypy(module, *arguments):
    # One cache for all runs: the first reads the whole of gradtape.
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"MYPYPATH": str(ROOT)}
    )


def test_the_stubs_are_up_to_date():
    for path, text in stubs.files().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run `make stubs`"


def test_the_package_says_that_it_has_types():
    assert (ROOT / "gradtape" / "py.typed").exists()


def test_the_stub_of_the_core_is_the_core(tmp_path):
    native = [n for n in dir(_core) if type(getattr(_core, n)).__name__ == "nb_func"]
    stub = (ROOT / "gradtape" / "_core.pyi").read_text()
    for name in native:  # nanobind's functions are no functions to stubtest
        assert re.search(rf"^def {name}\(", stub, re.MULTILINE), name
    absent = (tensor_module._Absent, tensor_module._OfSlices)  # they say what to write instead
    allowed = [f"gradtape._core.Tensor.{n}" for n, v in vars(_core.Tensor).items() if isinstance(v, absent)]
    allowed += [f"gradtape._core.{n}" for n in native]
    allowed += [
        r"gradtape\._core\.(Tensor|Variable)\.__r?pow__",  # pow(x, y, z) is refused
        r"gradtape\._core\.Tensor\.__buffer__",  # seen by Python from 3.12 on
        r"gradtape\._core\.Variable\.name",  # of its one subclass
    ]
    (tmp_path / "allowed").write_text("\n".join(allowed))
    done = mypy(
        "mypy.stubtest", "gradtape._core", "--allowlist", tmp_path / "allowed", "--mypy-config-file",
        ROOT / "pyproject.toml", "--ignore-disjoint-bases", "--ignore-unused-allowlist",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


WRONG = """import gradtape as tf

tf.no_such_name
tf.math.no_such_name
tf.tanh(None)
tf.reduce_sum([1.0], axes=0)
x: int = tf.constant(1.0) + 1.0
tape: tf.GradientTape = tf.Variable(1.0)
"""


def test_programs_and_names(tmp_path):
    """One run for a program, for every public name, and for mistakes that must be found."""
    names = [n for n in PUBLIC if not n.startswith("compat.")]
    names += [n for n in absent._ELSEWHERE if not n.startswith(("experimental.", "linalg.exp"))]
    every, wrong = tmp_path / "every.py", tmp_path / "wrong.py"
    every.write_text("import gradtape as tf\n\n" + "\n".join(f"tf.{n}" for n in sorted(names)) + "\n")
    wrong.write_text(WRONG)
    done = mypy("mypy", "--config-file", ROOT / "pyproject.toml", "--strict", "--follow-imports=silent",
                "--no-warn-unused-ignores", PROGRAM, every, wrong)  # fmt: skip
    found = [line for line in done.stdout.splitlines() if "error:" in line]
    assert [line for line in found if "wrong.py" not in line] == []
    lines = {int(line.split(":")[1]) for line in found}
    assert lines == set(range(3, WRONG.count("\n") + 1)), done.stdout
