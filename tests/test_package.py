"""The package as a whole: a silent and light import, imports that point one way, files of a readable size."""

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gradtape as tf
from gradtape import backend
from gradtape._src import ops
from gradtape._src.ops import PUBLIC, TABLE
from gradtape.data import kinds

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "gradtape").rglob("*.py"))
SOURCES = sorted([*MODULES, *(p for p in (ROOT / "core").rglob("*") if p.suffix in (".cpp", ".h"))])
MOST_LINES = 600

# The packages of gradtape/_src in layers, lowest first (docs/design.md): a package imports from its own layer and
# those below. The namespaces that users import are the highest layer: nothing in _src imports any of them.
_LAYERS = (
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
    {"public namespaces"},
)

# Modules of gradtape that may be imported inside functions: those that are seldom used, or part of a cycle.
_LATE = {
    "gradtape._src.autograph.operators": "a cycle: rewritten code calls operators, which rewrite what they call",
    "gradtape._src.autograph.transform": "few programs branch on tensors",
    "gradtape._src.base.reading": "few programs read a vocabulary",
    "gradtape._src.batching.batch_control": "a cycle: graphs are batched node by node, branches and loops are graphs",
    "gradtape._src.batching.jacobian": "few programs ask for Jacobians",
    "gradtape._src.batching.rows": "few programs trace loops over rows",
    "gradtape._src.batching.vectorize": "few programs map over rows",
    "gradtape._src.control.control": "few programs trace branches and loops",
    "gradtape._src.doctor": "a command of its own",
    "gradtape._src.engines.xla": "JAX is imported when a program asks for it",
    "gradtape._src.functions.recorded": "few functions have sizes that are not known",
    "gradtape._src.graph.callable": "a cycle: a traced function calls others that were traced before",
    "gradtape._src.graph.check": "for debugging",
    "gradtape._src.help": "a command of its own",
    "gradtape._src.ops.quadrature": "tables for the references of the contract",
    "gradtape.distribute.cluster": "a namespace that is imported when it is used",
    "gradtape.distribute.launch": "a command of its own",
    "gradtape.image.colour": "a cycle: images are decoded into types that tf.image converts",
    "gradtape.io": "a namespace that is imported when it is used",
    "gradtape.linear_operator": "a cycle: compositions of operators are operators",
    "gradtape.test.case": "unittest is large",
}
# The same for modules of a higher layer than the function that imports them.
_LATE_FROM_BELOW = {
    "gradtape._src.batching.batch": "a graph function has a batched form",
    "gradtape._src.debug": "methods of tapes and functions that explain, draw and profile",
    "gradtape._src.tapes.custom_gradient": "check_numerics in a graph has a gradient of its own",
    "gradtape._src.tapes.tape": "eager code inside a program is differentiated by a tape",
}
MOST_LATE = 46
LARGEST_CYCLE = 9  # modules that import each other, directly or not, late imports included


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
    assert set(done.stdout.split()) <= {"gradtape", "gradtape_imports", "numpy"}


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks Linux for the libraries of a process")
def test_import_does_not_load_blas():
    """OpenBLAS is 20 MB, and a program without a matrix product never needs it."""
    maps = python("import gradtape; print(open('/proc/self/maps').read())").stdout
    # NumPy brings an OpenBLAS of its own, in a folder of another name.
    assert "scipy_openblas32" not in maps


# Only what every program needs is imported at once: each of these modules costs every program.
MOST_AT_IMPORT = 68


def test_import_is_light():
    code = "import sys, gradtape; print(*sorted(m for m in sys.modules if m.startswith('gradtape')))"
    found = python(code).stdout.split()
    assert len(found) <= MOST_AT_IMPORT, found
    assert not {"gradtape._src.functions", "gradtape._src.graph", "gradtape._src.ops.conv"} & set(found)


def test_names_of_families_that_are_imported_late_are_up_to_date():
    done = subprocess.run(
        [sys.executable, "tools/late_ops.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_name_imports_its_family_and_no_other():
    python(
        """if True:
        import sys, gradtape as tf
        late = lambda: {f for f in ("conv", "softmax", "fft", "losses") if f"gradtape._src.ops.{f}" in sys.modules}
        assert "softmax" in dir(tf.nn) and "where" in dir(tf) and not late()
        assert tf.nn.softmax is tf.nn.softmax is tf._src.ops.softmax and late() == {"softmax"}
        assert "softmax" in vars(tf.nn)
        from gradtape._src.ops import TABLE, losses, softmax
        assert softmax is tf.nn.softmax and losses.__name__.endswith("losses")  # an op hides its family
        assert TABLE["conv"].name == "conv" and "fft" in TABLE and late() == {"softmax", "losses", "conv"}
        assert TABLE.get("nothing") is None and len(TABLE) > 280 and late() == {"softmax", "losses", "conv", "fft"}
        try:
            tf._src.ops.nothing
        except AttributeError as e:
            assert "'nothing'" in str(e)
        """
    )


def test_an_import_of_a_family_that_was_interrupted_is_made_again():
    python(
        """if True:
        import gradtape as tf
        from gradtape._src.ops import table
        opaque, seen = table.opaque, []
        def interrupted(name, *row, **facts):
            if seen:
                raise KeyboardInterrupt
            seen.append(name)
            return opaque(name, *row, **facts)
        table.opaque = interrupted
        try:
            tf.nn.softmax
        except KeyboardInterrupt:
            table.opaque = opaque
        assert seen and float(tf.reduce_sum(tf.nn.softmax([1.0, 2.0]))) == 1.0
        """
    )


def test_classes_are_registered_when_they_are_first_used():
    python(
        """if True:
        import gradtape as tf
        assert type(tf.type_spec_from_value(tf.Variable(1.0))).__name__ == "VariableSpec"
        assert type(tf.type_spec_from_value(tf.TensorArray(tf.float32, 1))).__name__ == "TensorArraySpec"
        """
    )


def test_everything_can_be_imported_by_a_star():
    python(
        "from gradtape import *; from gradtape.math import *; softmax, where, cond, GradientTape, Variable, lgamma"
    )


def test_every_name_of_a_family_is_a_name_of_ops():
    for path in (ROOT / "gradtape" / "_src" / "ops").glob("[a-z]*.py"):
        family = importlib.import_module(f"gradtape._src.ops.{path.stem}")
        assert [n for n in getattr(family, "__all__", ()) if not hasattr(ops, n)] == [], path.stem


def test_version_is_that_of_the_project():
    # The build reads the version from this file; it is written nowhere else.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    (how,) = project["tool"]["dynamic-metadata"]
    assert re.search(how["regex"], (ROOT / how["input"]).read_text())["value"] == tf.version.GRADTAPE
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


def test_every_op_has_samples():
    code = "from gradtape._src.ops.table import TABLE; print(*(r.name for r in TABLE.values() if not list(r.samples)))"
    assert python(code).stdout.split() == []


def test_every_op_has_a_sentence():
    for row in TABLE.values():
        assert row.doc.strip().endswith((".", ")", "`")), row.name


# ---- files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SOURCES, ids=[str(p.relative_to(ROOT)) for p in SOURCES])
def test_file_is_short_and_says_what_it_is(path):
    text = path.read_text()
    assert text.count("\n") <= MOST_LINES
    assert text.startswith('"""' if path.suffix == ".py" else "//")


def layer_of(package):
    return next(layer for layer, packages in enumerate(_LAYERS) if package in packages)


def package_of(module):
    """The package of _src that a module is in; None for the core and for gradtape itself."""
    parts = module.split(".")
    if len(parts) == 1 or parts[1] == "_core":
        return None
    return "public namespaces" if parts[1] != "_src" else parts[2] if len(parts) > 2 else "base"


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


NAMES = set(map(name_of, MODULES))


def imports_of(path):
    """Modules of gradtape that a file imports: pairs of a name, and whether that is inside a function."""

    def walk(node, late):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gradtape":
            found = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in {n if n in NAMES else node.module for n in found}:
                yield name, late
        elif isinstance(node, ast.Import):
            yield from ((a.name, late) for a in node.names if a.name.startswith("gradtape."))
        for child in ast.iter_child_nodes(node):
            yield from walk(child, late or isinstance(node, (ast.FunctionDef, ast.Lambda)))

    return [(name, late) for name, late in walk(ast.parse(path.read_text()), False) if package_of(name)]


IMPORTS = {name_of(path): imports_of(path) for path in MODULES}


@pytest.mark.parametrize("module", IMPORTS)
def test_imports_point_downwards(module):
    package = package_of(module) or "public namespaces"
    for name, late in IMPORTS[module]:
        other = package_of(name)
        if layer_of(other) > layer_of(package):
            assert late and reason(name, _LATE_FROM_BELOW), (
                f"{package} imports {name}, which is in a higher layer"
            )


def reason(name, table):
    return next((why for prefix, why in table.items() if f"{name}.".startswith(f"{prefix}.")), None)


def test_the_design_page_lists_packages_in_the_order_of_layers():
    page = (ROOT / "docs" / "design.md").read_text().partition("## The op table")[0]
    packages = {p.parent.name for p in (ROOT / "gradtape" / "_src").glob("*/__init__.py")}
    assert packages == set().union(*_LAYERS) - {"public namespaces"}
    places = {package: re.search(rf"^  .*\b{package}/", page, re.MULTILINE).start() for package in packages}
    for package, other in ((a, b) for a in packages for b in packages if layer_of(a) > layer_of(b)):
        assert places[package] < places[other], f"{package} is above {other}"


def test_kinds_of_datasets_are_where_the_table_says():
    for name in kinds.MODULES:
        assert getattr(kinds, name).__name__ == name


def test_imports_inside_functions_have_a_reason():
    late = [(module, name) for module, found in IMPORTS.items() for name, is_late in found if is_late]
    for module, name in late:
        assert reason(name, _LATE | _LATE_FROM_BELOW), f"{module} imports {name} inside a function"
    assert len(late) <= MOST_LATE
    for module in (*_LATE, *_LATE_FROM_BELOW):
        assert any(reason(name, {module: "used"}) for _, name in late), (
            f"no function imports {module} any more"
        )


def cycles(edges):
    """The sets of modules that import each other, directly or not, the largest first."""

    def reached(start):
        seen, todo = set(), [start]
        while todo:
            new = edges[todo.pop()] - seen
            seen |= new
            todo += new
        return seen

    reach = {module: reached(module) for module in edges}
    sets = {frozenset(m for m in reach[module] if module in reach[m]) for module in edges}
    return sorted((sorted(s) for s in sets if len(s) > 1), key=len, reverse=True)


def test_modules_that_import_each_other_are_few():
    every = {module: {n for n, _ in imports if n in NAMES} for module, imports in IMPORTS.items()}
    early = {
        module: {n for n, late in imports if n in NAMES and not late} for module, imports in IMPORTS.items()
    }
    # At import: four families of ops, which import each other's modules and no names from them.
    assert [len(c) for c in cycles(early)] == [4], cycles(early)
    assert len(cycles(every)[0]) <= LARGEST_CYCLE, cycles(every)


# ---- the other packages of the repository ---------------------------------------------------------


def foreign_imports(folder):
    """Imports of gradtape in files outside of it: pairs of a file, and a module or name with its module."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gradtape":
                yield from ((path.name, f"{node.module}.{alias.name}") for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((path.name, a.name) for a in node.names if a.name.split(".")[0] == "gradtape")


def test_the_backend_of_keras_uses_public_names_alone():
    names = set()
    for path, name in foreign_imports("keras_gradtape"):
        if name not in ("gradtape", "gradtape.backend"):
            module, _, last = name.rpartition(".")
            assert module == "gradtape.backend", f"{path} imports {name}: is it a name of gradtape.backend?"
            names.add(last)
    for path in (ROOT / "keras_gradtape").rglob("*.py"):
        text = path.read_text()
        private = re.findall(r"\b(?:tf|gradtape)\.(?:\w+\.)*_(?!code\b)[a-z]\w*", text)
        assert not private, f"{path.name} uses {private}"
        names |= set(re.findall(r"\bbackend\.(mesh|OneCall|need_jax)\b", text))
    assert names == set(backend.__all__), "names that are not used, or not public"


def test_gradtape_imports_uses_one_module_of_the_engine():
    """The finder for namespaces that are not files. `code/` stands for TensorFlow's internals, so it uses ours."""
    private = {(path, name) for path, name in foreign_imports("gradtape_imports") if "._" in name}
    code = {path.name for path in (ROOT / "gradtape_imports" / "code").glob("*.py")}
    assert {name for path, name in private if path not in code} == {"gradtape._src.public.modules"}


def test_every_name_for_backends_exists_and_is_explained():
    for name in backend.__all__:
        assert (name == "mesh" and not importlib.util.find_spec("jax")) or hasattr(backend, name)
        assert re.search(rf"^- .*`{name}[`(]", backend.__doc__, re.MULTILINE), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = backend.nothing


def test_sizes_on_the_design_page_are_about_right():
    """Thousands of lines of code, within a fifth, or a tenth of a thousand."""
    page = (ROOT / "docs" / "design.md").read_text().partition("## The op table")[0]
    found = re.findall(r"^( *)(?:help/, )?([\w/]+)/ +([\d.]+)(?: |$)", page, re.MULTILINE)
    above, sizes = "", {}
    for indent, name, size in found:
        above = above if indent else name
        sizes[f"{above}/{name}" if indent else name] = float(size)
    assert len(sizes) > 20 and {"gradtape/_src/doctor", "core/py"} < {*sizes}
    for name, size in sizes.items():
        places = [ROOT / name] + [ROOT / "gradtape" / "_src" / "help"] * name.endswith("/doctor")
        files = {p for place in places for p in place.rglob("*") if p.suffix in (".py", ".cpp", ".h", ".def")}
        if name == "gradtape":
            files -= {*(ROOT / "gradtape" / "_src").rglob("*")}
        counted = sum(len(p.read_text().splitlines()) for p in files) / 1000
        assert abs(size - counted) <= max(0.2 * counted, 0.1), f"{name}: {counted:.1f}"
