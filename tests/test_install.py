"""Installations that cannot work: an ImportError that says what is wrong, and what to do."""

import importlib.machinery
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

from gradtape import _core
from gradtape._src.base import blas, install

ROOT = Path(__file__).resolve().parents[1]
OTHER = "_core.cpython-39-x86_64-linux-gnu.so"


@pytest.fixture
def damaged(tmp_path):
    """The files of the package without its core, and how `import gradtape` ends there."""
    for package in ("gradtape", "gradtape_imports"):
        ignored = shutil.ignore_patterns("_core.*", "__pycache__")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)

    def run(before=""):
        # Without the finder of an editable install, which knows where the core is.
        code = (
            "import sys; sys.meta_path = [f for f in sys.meta_path if 'Redirecting' not in type(f).__name__]\n"
            f"sys.path.insert(0, {str(tmp_path)!r})\n{before}\nimport gradtape"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 1
        return done.stderr.splitlines()[-1]

    return tmp_path, run


def test_the_core_is_missing(damaged):
    folder, run = damaged
    said = run()
    assert said.startswith("ImportError: gradtape's native core is missing: the installation in")
    assert str(folder) in said and "--force-reinstall gradtape" in said


def test_the_core_is_missing_in_a_folder_of_sources(damaged):
    folder, run = damaged
    (folder / "CMakeLists.txt").touch()
    assert "this is a folder of its sources" in (said := run()) and "make dev" in said


def test_the_core_is_of_another_python(damaged):
    folder, run = damaged
    (folder / "gradtape" / OTHER).touch()
    said = run()
    assert (
        said.startswith("ImportError: gradtape's native core was built for another Python") and OTHER in said
    )
    assert importlib.machinery.EXTENSION_SUFFIXES[0] in said


def test_the_core_cannot_be_loaded(damaged):
    folder, run = damaged
    (folder / "gradtape" / Path(_core.__file__).name).write_bytes(b"not a library")
    said = run()
    assert said.startswith("ImportError: gradtape's native core cannot be loaded") and "Hint" in said


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="other systems' files say their length elsewhere"
)
@pytest.mark.parametrize("part", (0, 40, 3000, 0.5, 0.99))
def test_the_core_is_cut_off(damaged, part):
    """A copy that was interrupted. The loader maps such a file, and the process dies with SIGBUS when it is used."""
    folder, run = damaged
    whole = Path(_core.__file__).read_bytes()
    size = part if isinstance(part, int) else int(len(whole) * part)
    (folder / "gradtape" / Path(_core.__file__).name).write_bytes(whole[:size])
    said = run()
    assert (
        said.startswith("ImportError: gradtape's native core cannot be loaded: ")
        and "--force-reinstall" in said
    )
    assert f"has {size:,} bytes, and should have at least" in said


def test_the_core_is_whole():
    """What is found to be the end of the file of the core is not behind its end, in this installation."""
    assert install.path_of_core() == _core.__file__


def linked(folder):
    """The core that these tests run with, in the folder of a damaged installation."""
    (folder / "gradtape" / Path(_core.__file__).name).symlink_to(_core.__file__)


def test_the_core_is_of_another_version(damaged):
    """An update that was interrupted, or files of two versions in one folder."""
    folder, run = damaged
    linked(folder)
    version = folder / "gradtape" / "version.py"
    text = version.read_text()
    assert f'GRADTAPE = "{_core.VERSION}"' in text
    version.write_text(text.replace(f'GRADTAPE = "{_core.VERSION}"', 'GRADTAPE = "99.1"'))
    said = run()
    assert said.startswith(
        "ImportError: gradtape's files are of different versions: 99.1 in Python, and the native core"
    )
    assert f"is of {_core.VERSION}. Hint: python -m pip install --force-reinstall gradtape" in said
    (folder / "CMakeLists.txt").touch()
    assert run().endswith("Hint: build it again with `make dev`.")


def test_the_core_is_of_a_newer_c_library():
    why = "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by _core.so)"
    assert (
        "the C library of this system is older" in (said := install.hint(why))
        and "--no-binary gradtape" in said
    )


def test_python_is_too_old():
    with pytest.raises(
        ImportError, match=r"needs Python 3\.11 or newer, and this is 3\.10 \(.*Hint: make an env"
    ):
        install.check(_core.VERSION, (3, 10, 4))
    install.check(_core.VERSION)


def other_pythons():
    """Older Pythons of this machine that can run."""
    found = (shutil.which(f"python3.{minor}") for minor in range(6, install.OLDEST[1]))
    return [
        path
        for path in found
        if path and not subprocess.run([path, "-c", ""], capture_output=True).returncode
    ]


@pytest.mark.skipif(not other_pythons(), reason="there is no older Python here")
def test_older_pythons_say_so():
    """No file that is read before the check has syntax that they do not know; 3.6 lacks a feature of all files."""
    for path in other_pythons():
        done = subprocess.run([path, "-c", "import gradtape"], capture_output=True, text=True, cwd=ROOT)
        said = done.stderr.splitlines()[-1]
        if "annotations" not in said:
            assert said.startswith("ImportError: gradtape needs Python 3.11 or newer, and this is 3."), (
                path,
                said,
            )
            assert path in said or "python" in said


def test_numpy_is_missing(damaged):
    linked(damaged[0])
    said = damaged[1]("sys.modules['numpy'] = None")
    assert said.startswith("ModuleNotFoundError: gradtape needs NumPy, which is not installed. Hint: ")
    assert '"numpy>=1.26"' in said


def test_numpy_is_too_old(damaged):
    linked(damaged[0])
    said = damaged[1]("import numpy; numpy.__version__ = '1.25.2'")
    assert said.startswith("ImportError: gradtape needs NumPy 1.26 or newer, and this is 1.25.2 (")
    assert '--upgrade "numpy>=1.26"' in said


@pytest.mark.parametrize("version", ("1.26.0rc1", "2.0.0.dev0+git20231208", "10.1"))
def test_numpy_is_new_enough(version):
    """Its versions are compared as numbers."""
    code = f"import numpy; numpy.__version__ = {version!r}; import gradtape"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_the_bounds_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"numpy>={install.OLDEST_NUMPY[0]}.{install.OLDEST_NUMPY[1]}" in project["dependencies"]
    assert project["requires-python"] == f">={install.OLDEST[0]}.{install.OLDEST[1]}"


@pytest.mark.parametrize("level", ("9", "foo", "0", "-1", "v3", "3.0", " 3"))
def test_an_instruction_set_that_does_not_exist(level):
    done = start(GRADTAPE_ISA=level)
    said = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and said == (
        f"ImportError: GRADTAPE_ISA={level!r} means nothing: expected a level of x86-64: 2, 3 or 4. Hint: unset it, "
        "and gradtape takes the highest that the processor has."
    )


@pytest.mark.parametrize("level", ("", "  ", "4"))
def test_an_instruction_set_that_is_no_demand(level):
    """Nothing, and more than a processor may have: not used."""
    done = start(GRADTAPE_ISA=level)
    assert done.returncode == 0 and done.stderr == ""


def start(**settings):
    """`import gradtape` with these environment variables."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GRADTAPE_")} | settings
    return subprocess.run(
        [sys.executable, "-c", "import gradtape"], env=environ, cwd=ROOT, capture_output=True, text=True
    )


@pytest.mark.skipif(
    _core.isa_name() == "generic", reason="there is one copy of the kernels, for all processors"
)
def test_the_processor_is_too_old():
    """As a processor without SSE4.2 would have it: level 1."""
    said = start(GRADTAPE_ISA="1").stderr.splitlines()[-1]
    assert said.startswith(
        "ImportError: this processor cannot run gradtape's kernels: the build has them for x86-64-v"
    )
    assert (
        "the processor is of level 1" in said
        and "Hint: GRADTAPE_ISA asks for less than there is; unset it." in said
    )


def on_processor(name):
    """How `import gradtape` ends on another processor, which qemu plays."""
    qemu = shutil.which("qemu-x86_64-static")
    if not qemu or platform.machine() != "x86_64":
        pytest.skip("qemu-user-static is not installed, or this is no x86-64")
    code = "import gradtape; from gradtape import _core; print(_core.isa_name())"
    # OpenBLAS asks which processor this is: some machines answer for it, and NumPy's would use AVX where there is none.
    env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    command = [qemu, "-cpu", name, sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=env)


def test_a_processor_before_v2():
    done = on_processor("core2duo")
    said = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert said.startswith("ImportError: this processor cannot run gradtape's kernels")
    assert "x86-64-v2" in said


def test_a_processor_of_v2_has_the_kernels_of_its_level():
    done = on_processor("Nehalem")
    assert done.stdout == "x86-64-v2\n", done.stderr


def test_a_build_without_a_compiler_says_what_to_install():
    tools = Path(sys.executable).parent
    if not (tools / "cmake").exists() or not (ROOT / "CMakeLists.txt").exists():
        pytest.skip("CMake is not in this environment")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                tools / "cmake",
                "-S",
                ROOT,
                "-B",
                folder,
                "-G",
                "Ninja",
                f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}",
            ],
            env={**os.environ, "CXX": "/nonexistent"},
            capture_output=True,
            text=True,
        )
    said = " ".join(done.stderr.split())
    assert done.returncode == 1
    assert "there is no wheel for this Python and platform, and there is no C++ compiler" in said
    assert "apt install g++" in said and "set CXX to yours" in said


def products(path):
    """What a product says where OpenBLAS is at `path`."""
    code = (
        "import gradtape as tf; from gradtape import _core\n"
        f"_core.set_blas_path({path!r})\n"
        "try: tf.linalg.solve(tf.eye(4, dtype=tf.float64), tf.ones([4, 1], tf.float64))\n"
        "except RuntimeError as e: print(e)"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_openblas_is_damaged(tmp_path, monkeypatch):
    """A wheel without its library: `import gradtape` works, and the first product names the file."""
    (tmp_path / "scipy_openblas32").mkdir()
    (tmp_path / "scipy_openblas32" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "scipy_openblas32", raising=False)  # of another test
    path = blas.library_path()
    assert path.startswith(str(tmp_path / "scipy_openblas32" / "lib" / "libscipy_openblas"))
    assert path in (said := products(path)) and 'pip install "scipy-openblas32>=' in said


def test_openblas_is_missing():
    assert "the package scipy-openblas32 is not installed" in (said := products(""))
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (bounds,) = (d for d in wanted if d.startswith("scipy-openblas32"))
    assert f'pip install "{bounds}"' in said


def test_openblas_is_another_library():
    """One that can be loaded and has none of its functions: the core itself."""
    said = products(_core.__file__)
    assert "has no function scipy_cblas_sgemm" in said and 'pip install "scipy-openblas32>=' in said
