"""`python -m gradtape`: versions, facts as JSON, help that teaches, completion in shells."""

import json
import re
import shutil
import subprocess
import sys

import pytest

import gradtape as tf
from gradtape.__main__ import facts, info, main, parser
from gradtape._src.help.completion import SHELLS, commands, script


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"gradtape {tf.version.GRADTAPE} (as TensorFlow {tf.version.VERSION})\n"


def test_info_as_json_has_the_same_content(capsys):
    assert main(["info", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said.keys() == facts().keys() and said["gradtape"] == tf.version.GRADTAPE
    assert said["packages"]["numpy"] in info() and said["kernels"] in info()
    assert isinstance(said["threads"], int) and said["memory"]["live_bytes"] >= 0


def test_without_a_command_it_lists_the_commands(capsys):
    assert main([]) == 2
    assert "examples:" in capsys.readouterr().err


@pytest.mark.parametrize("command", [c.name for c in commands(parser())])
def test_help_teaches(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    said = capsys.readouterr().out
    assert "examples:" in said and re.search(rf"python -m gradtape {command}", said.partition("examples:")[2])


def complete(line):
    """The completions that bash offers at the end of a line."""
    words = line.split(" ")
    code = (
        f"{script('bash', parser())}\nCOMP_WORDS=({' '.join(w or chr(39) * 2 for w in words)}); "
        f"COMP_CWORD={len(words) - 1}; COMPREPLY=(); _gradtape; echo ${{COMPREPLY[@]}}"
    )
    return subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="asks bash")
def test_bash_completes():
    assert complete("python -m gradtape do") == ["doctor"]
    assert complete("gradtape in") == ["info"]
    assert complete("python3 -m gradtape help none") == ["none-gradients"]
    assert complete("python -m gradtape info --j") == ["--json"]
    assert complete("python -m gradtape completion ") == ["--help", *SHELLS]
    assert complete("python -m gradtape doctor ") == [] == complete("python -m pytest ")  # files


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_are_read_by_their_shells(shell, capsys):
    assert main(["completion", shell]) == 0
    said = capsys.readouterr().out
    assert "launch" in said and "none-gradients" in said and "--json" in said.replace("-l json", "--json")
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=said, text=True, check=True)


def test_the_reader_of_a_pipe_may_stop():
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} -m gradtape info | true"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stderr == ""


def test_info_tells_unknown_settings(monkeypatch, capsys):
    monkeypatch.setenv("GRADTAPE_COMPLE", "1")
    monkeypatch.setenv("GRADTAPE_LINES", "1")
    assert main(["info"]) == 0
    said = capsys.readouterr().out
    assert "GRADTAPE_COMPLE=1 (unknown)" in said and "GRADTAPE_LINES=1 (unknown)" not in said


def test_info_as_json_has_one_fact_in_each_place(capsys):
    assert main(["info", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert "\n" not in said["blas"] and said["blas_library"].endswith(".so")
