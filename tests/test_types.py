"""Types: the stubs match gradtape, type checkers know every public name, and programs pass the checks."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
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
    for name in native:  # stubtest does not recognise nanobind's functions
        assert re.search(rf"^def {name}\(", stub, re.MULTILINE), name
    absent = (tensor_module._Absent, tensor_module._OfSlices)  # only the hints in their messages matter
    allowed = [f"gradtape._core.Tensor.{n}" for n, v in vars(_core.Tensor).items() if isinstance(v, absent)]
    allowed += [f"gradtape._core.{n}" for n in native]
    allowed += [
        r"gradtape\._core\.(Tensor|Variable)\.__r?pow__",  # pow(x, y, z) is refused
        r"gradtape\._core\.Tensor\.__buffer__",  # visible in Python from 3.12 on
        r"gradtape\._core\.Variable\.name",  # defined in its only subclass
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


def test_the_stub_of_keras_has_its_names():
    keras = pytest.importorskip("keras._tf_keras.keras", reason="asks Keras")
    written = set(re.findall(r"import (\w+) as \1\n", (ROOT / "gradtape" / "keras.pyi").read_text()))
    # From its file, because its dict also has what was added at run time (keras.experimental).
    names = set(re.findall(r"import (?:\w+ as )?([A-Za-z]\w*)\n", Path(keras.__file__).read_text()))
    assert len(names) > 20
    assert names <= written


# Mistakes in programs whose functions have no types: a name, a keyword, a number of arguments.
TYPOS = """import gradtape as tf

tf.keras.layers.Dens(3)
tf.optimizers.Adam(learning_rat=0.1)
tf.reduce_sum([1.0], axes=0)
tf.random.normal([2], std=1.0)
tf.Variable(1.0, trainabl=True)
tf.Variable(1.0).asign(3.0)
tf.GradientTape(persistant=True)
tf.GradientTape().gradeint(1, 2)
tf.data.Dataset.range(3).bacth(2)
tf.linalg.invv(3)
tf.function(lambda x: x)(1.0, 2.0)
tf.custom_gradient(lambda x: (x, lambda g: g))(1.0, 2)


@tf.function
def f(x: tf.Tensor, n: int) -> tf.Tensor:
    return x * n


class Layer(tf.Module):
    @tf.function(jit_compile=True)
    def call(self, x: tf.Tensor) -> tf.Tensor:
        return f(x, 2)


f(tf.constant(1.0), m=3)  # 28
f(tf.constant(1.0), 3).foo
Layer().call(tf.constant(1.0), 2)
Layer().call(tf.constant(1.0)).bar
"""
_TYPOS_AT = {*range(3, 15), *range(28, 32)}


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_examples_check_and_typos_are_found(checker, tmp_path):
    pytest.importorskip(checker, reason=f"asks {checker}")
    wrong = tmp_path / "wrong.py"
    wrong.write_text(TYPOS)
    if checker == "mypy":
        done = mypy(
            "mypy", "--config-file", ROOT / "pyproject.toml", "--follow-imports=silent", "--check-untyped-defs",
            "--allow-untyped-defs", "--allow-incomplete-defs", "--disable-error-code=var-annotated",
            "--disable-error-code=misc", ROOT / "examples", wrong,
        )  # fmt: skip
    else:
        config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pyright"]
        config |= {
            "include": [str(ROOT / n) for n in config["include"]] + [str(wrong)],
            "extraPaths": [str(ROOT)],
        }
        for place in ("venv", "venvPath"):
            del config[place]
        (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
        done = mypy("pyright", "--pythonpath", sys.executable, "-p", tmp_path)
        if "errors" not in done.stdout:
            pytest.skip(f"pyright needs Node: {done.stderr[-200:]}")
    found = [line for line in done.stdout.splitlines() if re.search(r"\berror\b", line) and ".py:" in line]
    assert [line for line in found if "wrong.py" not in line] == []
    lines = {int(re.search(r"wrong\.py:(\d+)", line)[1]) for line in found}
    skipped = {3} if checker == "mypy" else set()  # Keras, which mypy is configured to ignore
    assert lines == _TYPOS_AT - skipped, done.stdout


COMPLETIONS = {
    "import gradtape as tf\ntf.keras.layers.Den": "Dense",
    "import gradtape as tf\ntf.keras.Sequ": "Sequential",
    "import gradtape as tf\ntf.reduce_su": "reduce_sum",
    "import gradtape as tf\ntf.nn.softm": "softmax",
    "import gradtape as tf\ntf.linalg.ein": "einsum",
    "import gradtape as tf\ntf.Variable(1.0).assign_a": "assign_add",
    "import gradtape as tf\ntf.data.Dataset.range(3).bat": "batch",
    "import gradtape as tf\nwith tf.GradientTape() as tape:\n    tape.grad": "gradient",
    "import gradtape as tf\ntf.reduce_sum([1.0]).nu": "numpy",
    "import gradtape as tf\n@tf.function\ndef f(x): return x\nf.get_conc": "get_concrete_function",
}


@pytest.fixture
def script(monkeypatch):
    """jedi, used as an editor does."""
    jedi = pytest.importorskip("jedi", reason="asks jedi")
    # jedi cannot read the finder of an editable install; a wheel has none.
    finders = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
    monkeypatch.setattr(sys, "meta_path", finders)
    project, environment = jedi.Project(ROOT), jedi.InterpreterEnvironment()
    return lambda code: jedi.Script(code, project=project, environment=environment)


@pytest.mark.parametrize("code", COMPLETIONS)
def test_completion(code, script):
    assert COMPLETIONS[code] in [c.name for c in script(code).complete()]


@pytest.mark.parametrize("call", ["tf.reduce_sum(", "tf.nn.conv2d(", "tf.Variable(", "tf.optimizers.Adam("])
def test_hover_shows_arguments(call, script):
    (signature,) = script(f"import gradtape as tf\n{call}").get_signatures()
    assert len(signature.params) > 2


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
