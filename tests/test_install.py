"""Installations that cannot work: an ImportError that says what is wrong, and what to do."""

import importlib.machinery
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gradtape import _core
from gradtape._src.base import install

ROOT = Path(__file__).resolve().parents[1]
OTHER = "_core.cpython-39-x86_64-linux-gnu.so"


@pytest.fixture
def damaged(tmp_path):
    """The files of the package without its core, and how `import gradtape` ends there."""
    for package in ("gradtape", "gradtape_imports"):
        ignored = shutil.ignore_patterns("_core.*", "__pycache__")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)

    def run():
        # Without the finder of an editable install, which knows where the core is.
        code = (
            "import sys; sys.meta_path = [f for f in sys.meta_path if 'Redirecting' not in type(f).__name__]\n"
            f"sys.path.insert(0, {str(tmp_path)!r})\nimport gradtape"
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


def test_python_is_too_old():
    with pytest.raises(
        ImportError, match=r"needs Python 3\.11 or newer, and this is 3\.10 \(.*Hint: make an env"
    ):
        install.check((3, 10, 4))
    install.check()


def on_processor(name):
    """How `import gradtape` ends on another processor, which qemu plays."""
    qemu = shutil.which("qemu-x86_64-static")
    if not qemu or platform.machine() != "x86_64":
        pytest.skip("qemu-user-static is not installed, or this is no x86-64")
    code = "import gradtape; from gradtape import _core; print(_core.isa_name())"
    return subprocess.run([qemu, "-cpu", name, sys.executable, "-c", code], capture_output=True, text=True)


def test_the_processor_is_too_old():
    done = on_processor("core2duo")
    said = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert said.startswith("ImportError: this processor cannot run gradtape's kernels")
    assert "x86-64-v2" in said


def test_an_old_processor_has_the_kernels_of_its_level():
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


def test_numpy_is_missing():
    code = "import sys; sys.modules['numpy'] = None; import gradtape"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ModuleNotFoundError" in done.stderr and "numpy" in done.stderr.splitlines()[-1]


def products(path):
    """What a product says where OpenBLAS is at `path`."""
    code = (
        "import gradtape as tf; from gradtape import _core\n"
        f"_core.set_blas_path({path!r})\n"
        "try: tf.linalg.solve(tf.eye(4, dtype=tf.float64), tf.ones([4, 1], tf.float64))\n"
        "except RuntimeError as e: print(e)"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_openblas_is_missing():
    assert "the package scipy-openblas32 is not installed" in (said := products(""))
    assert 'pip install "scipy-openblas32>=' in said


def test_openblas_is_another_library():
    """One that can be loaded and has none of its functions: the core itself."""
    said = products(_core.__file__)
    assert "has no function scipy_cblas_sgemm" in said and 'pip install "scipy-openblas32>=' in said
