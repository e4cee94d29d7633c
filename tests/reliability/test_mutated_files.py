"""A sample of `python -m tools.fuzz.files`: mutated files of every format give values or TensorFlow's errors."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_mutated_files():
    command = [sys.executable, "-m", "tools.fuzz.files", "--quick", "--files", "600", "--seed", "12"]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.splitlines()[-1].startswith("files: 600 mutated files, ")


def test_the_fuzzer_detects_errors():
    """A reader that does not compare checksums gives other values."""
    code = (
        "import types\n"
        "from gradtape.io import framing\n"
        "def careless(data):\n"
        "    records, at = [], 0\n"
        "    while len(data) - at >= 12:\n"
        "        size = int.from_bytes(data[at : at + 8], 'little')\n"
        "        if len(data) - at < size + 16:\n"
        "            return records, at, size + 16\n"
        "        records.append(data[at + 12 : at + 12 + size])\n"
        "        at += size + 16\n"
        "    return records, at, 12\n"
        "framing._core = types.SimpleNamespace(unframed=careless, crc32c=framing._core.crc32c)\n"
        "from tools.fuzz import files\n"
        "import sys; sys.exit(files.main(['--files', '300', '--format', 'TFRecord', '--seed', '1']))\n"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 1 and "other values, and no error" in done.stdout, (
        done.stdout + done.stderr[-2000:]
    )
