"""The package as a whole: a silent and light import, imports that point one way, files of a readable size."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gradtape as tf
from gradtape._src.ops import PUBLIC, TABLE

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "gradtape").rglob("*.py"))
SOURCES = sorted([*MODULES, *(p for p in (ROOT / "core").rglob("*") if p.suffix in (".cpp", ".h"))])
MOST_LINES = 600

# The rooms of gradtape/_src, from the ground up (docs/design.md): a room imports from its own floor and those below.
# Above them stand the namespaces that users import, the wing: nothing in _src imports any of it.
_FLOORS = (
    {"base"},
    {"tensors"},
    {"ops"},
    {"state"},
    {"graph", "engines"},
    {"control"},
    {"batching"},
    {"tapes"},
    {"autograph"},
    {"functions"},
    {"autodiff"},
    {"optimizers"},
    {"debug"},
    {"contract", "doctor", "help", "public"},
    {"wing"},
)


def python(code):
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)


def test_import_prints_nothing():
    done = python("import gradtape")
    assert (done.stdout, done.stderr) == ("", "")


def test_import_needs_numpy_alone():
    done = python(
        "import sys, numpy; before = set(sys.modules); import gradtape;"
        "print(*{m.partition('.')[0] for m in set(sys.modules) - before} - sys.stdlib_module_names)"
    )
    assert set(done.stdout.split()) <= {"gradtape", "numpy"}


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks Linux for the libraries of a process")
def test_import_does_not_load_blas():
    """It is 20 MB, and a program without a matrix product never needs it."""
    maps = python("import gradtape; print(open('/proc/self/maps').read())").stdout
    # NumPy brings an OpenBLAS of its own, in a folder of another name.
    assert "scipy_openblas32" not in maps


def test_version_is_that_of_the_project():
    project = (ROOT / "pyproject.toml").read_text()
    assert re.search(r'^version = "(.*)"', project, re.MULTILINE)[1] == tf.version.GRADTAPE
    # Programs compare `tf.__version__` with versions of TensorFlow.
    assert tf.__version__ == f"{tf.version.VERSION}+gradtape.{tf.version.GRADTAPE}"


# ---- public names ---------------------------------------------------------------------------


EXPORTS = """
    Tensor Variable GradientTape UnconnectedGradients Module IndexedSlices TensorShape TensorSpec constant
    convert_to_tensor reduce_sum reduce_mean matmul stop_gradient clip_by_global_norm nest errors
    config dtypes float32 bfloat16 newaxis name_scope device random nn math linalg autodiff test
"""


@pytest.mark.parametrize("name", EXPORTS.split())
def test_package_exports(name):
    assert hasattr(tf, name)


def test_public_names_are_found_where_tensorflow_has_them():
    for name, value in PUBLIC.items():
        found = tf
        for part in name.split("."):
            found = getattr(found, part)
        assert found is value, name


def test_aliases_are_one_op():
    assert tf.tanh is tf.math.tanh is tf.nn.tanh


def test_every_op_has_a_sentence():
    for row in TABLE.values():
        assert row.doc.strip().endswith((".", ")", "`")), row.name


# ---- files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SOURCES, ids=[str(p.relative_to(ROOT)) for p in SOURCES])
def test_file_is_short_and_says_what_it_is(path):
    text = path.read_text()
    assert text.count("\n") <= MOST_LINES
    assert text.startswith('"""' if path.suffix == ".py" else "//")


def floor_of(room):
    return next(floor for floor, rooms in enumerate(_FLOORS) if room in rooms)


def room_of(module):
    """The room of a module of gradtape, or None for the core and the package itself."""
    parts = module.split(".")
    if len(parts) == 1 or parts[1] == "_core":
        return None
    return "wing" if parts[1] != "_src" else parts[2] if len(parts) > 2 else "base"


def imports_of(path):
    """Modules of gradtape that a file imports at its top."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "gradtape":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith("gradtape."))


@pytest.mark.parametrize("path", MODULES, ids=[str(p.relative_to(ROOT)) for p in MODULES])
def test_imports_point_downwards(path):
    room = room_of(".".join(path.relative_to(ROOT).with_suffix("").parts)) or "wing"
    for name in imports_of(path):
        other = room_of(name)
        assert other is None or floor_of(other) <= floor_of(room), (
            f"{room} imports {name}, which stands above it"
        )
