"""The core without its BLAS: the error says what to install."""

import subprocess
import sys

_PROGRAM = """
import gradtape as tf
from gradtape import _core
_core.set_blas_path({path!r})
x = tf.ones([300, 300])
for _ in range(2):  # loading is tried again, and raises again
    try:
        tf.matmul(x, x)
    except RuntimeError as e:
        print(e)
"""


def _errors(path):
    run = subprocess.run([sys.executable, "-c", _PROGRAM.format(path=path)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_not_installed():
    lines = _errors("")
    assert len(lines) == 2
    assert all('Hint: pip install "scipy-openblas32>=' in line for line in lines), lines


def test_broken():
    lines = _errors("/nowhere/libopenblas.so")
    assert len(lines) == 2
    assert all(
        "/nowhere/libopenblas.so" in line and 'pip install "scipy-openblas32>=' in line for line in lines
    )
