"""Environment variables: an invalid value gives one warning and the default; the docs list the settings of the code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradtape._src.base import environment

ROOT = Path(__file__).resolve().parents[1]


def run(code, **settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith("GRADTAPE_")} | settings
    return subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=ROOT, capture_output=True, text=True, check=True
    )


SHOW = """
import gradtape as tf
from gradtape import _core
print(_core.is_compiling(), tf.config.threading.get_intra_op_parallelism_threads(), _core.isa_name())
with tf.GradientTape() as tape:
    v = tf.Variable(1.0)
    y = v * v
print(tape.gradient(y, v).numpy())
"""


def test_an_invalid_value_warns_once_and_has_no_effect():
    plain = run(SHOW)
    names = [
        s.name for s in environment.SETTINGS if s.ignored
    ]  # the other one is tested in tests/test_install.py
    assert [s.name for s in environment.SETTINGS if not s.ignored] == ["GRADTAPE_ISA"]
    for value in ("many", "-1", "99999999999999999999"):
        done = run(SHOW, **dict.fromkeys(names, value))
        assert done.stdout == plain.stdout
        lines = done.stderr.splitlines()
        assert len(lines) == len(names)
        for name, line in zip(names, lines, strict=True):
            assert (
                line.startswith(f"{name}={value!r} means nothing: expected ")
                and "the default is used" in line
            )
    assert plain.stderr == ""


def test_valid_values_give_no_warning():
    done = run(SHOW, GRADTAPE_COMPILE="0", GRADTAPE_NUM_THREADS="3", GRADTAPE_LINES="1", GRADTAPE_DEBUG="0")
    assert done.stderr == "" and done.stdout.startswith("False")
    assert run("import gradtape", **{s.name: "" for s in environment.SETTINGS}).stderr == ""


@pytest.mark.parametrize("setting", environment.SETTINGS, ids=lambda s: s.name)
def test_the_table_in_the_docs(setting):
    row = f"| `{setting.name}` | {setting.expected} | {setting.default} | {setting.meaning} |"
    assert row in (ROOT / "docs/training.md").read_text()
