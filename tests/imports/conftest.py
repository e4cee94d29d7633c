"""A new Python process for each test, since it tests imports."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments, code=None, status=0, **environment):
    """Runs Python outside of this folder, and returns its output."""
    command = [sys.executable, *arguments, *(["-c", code] if code is not None else [])]
    clean = {k: v for k, v in os.environ.items() if k not in ("KERAS_BACKEND", "GRADTAPE_AS_TENSORFLOW")}
    done = subprocess.run(
        command, cwd="/", capture_output=True, text=True, check=False,
        env={**clean, "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))), **environment},
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    return (done.stdout + done.stderr).strip()


@pytest.fixture
def python():
    """`python(*arguments, code=, status=, **environment)`."""
    return run
