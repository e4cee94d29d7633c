"""Packages that a project imports or requires: which run on gradtape, and how the project is started ("door").

For each package that imports TensorFlow itself, the table has the result of its own tests (`make ecosystem`,
docs/ecosystem.md). Any other package is assumed to need nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gradtape._src.doctor.read import Finding


class Package(NamedTuple):
    """A package of PyPI that imports TensorFlow."""

    name: str
    runs: bool
    words: str = ""

    @property
    def verdict(self) -> str:
        """What the doctor says about it."""
        if not self.runs:
            return f"{self.name} does not run on gradtape: {self.words}"
        return f"{self.name} runs on gradtape under the alias" + (f"; {self.words}" if self.words else ".")


_NATIVE = "it calls TensorFlow's own compiled code."

# By import name.
KNOWN = {
    "alibi": Package("alibi", True, "the explainers that use tapes; those on TensorFlow 1 do not."),
    "art": Package("adversarial-robustness-toolbox", True),
    "bayesflow": Package("bayesflow", True),
    "deepxde": Package("deepxde", True, "set DDE_BACKEND=tensorflow."),
    "einops": Package("einops", True),
    "gpflow": Package("gpflow", True),
    "gpflux": Package("gpflux", True, "models of one layer."),
    "keras_cv": Package("keras-cv", True),
    "keras_hub": Package("keras-hub", True, "what needs tensorflow-text does not."),
    "keras_tuner": Package("keras-tuner", True),
    "sonnet": Package("dm-sonnet", True),
    "tensorflow_addons": Package("tensorflow-addons", False, _NATIVE),
    "tensorflow_datasets": Package("tensorflow-datasets", False, "it was not tried, and writes TensorFlow's files."),
    "tensorflow_federated": Package("tensorflow-federated", False, _NATIVE),
    "tensorflow_hub": Package("tensorflow-hub", False, "it loads graphs of TensorFlow's."),
    "tensorflow_model_optimization": Package("tensorflow-model-optimization", False, "it rewrites graphs of TensorFlow's."),
    "tensorflow_probability": Package("tensorflow-probability", True),
    "tensorflow_text": Package("tensorflow-text", False, _NATIVE),
    "tensorflow_transform": Package("tensorflow-transform", False, "it runs graphs of TensorFlow 1."),
    "tensorflowjs": Package("tensorflowjs", False, "it converts TensorFlow's files."),
    "tf_agents": Package("tf-agents", True, "set TF_USE_LEGACY_KERAS=1; install it without its old dependencies."),
    "tf_keras": Package("tf_keras", True),
    "tf_keras_vis": Package("tf-keras-vis", True),
    "tf_slim": Package("tf-slim", False, "it stands on graphs, collections and sessions of TensorFlow 1."),
    "trieste": Package("trieste", True),
    "xplique": Package("xplique", True),
    "zfit": Package("zfit", True),
}  # fmt: skip

NAMES = {package.name.lower().replace("_", "-"): package for package in KNOWN.values()}
_TENSORFLOW = frozenset(
    ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "tensorflow-macos", "intel-tensorflow")
)
_REQUIREMENT = re.compile(r"\s*['\"]?([A-Za-z0-9][A-Za-z0-9._-]*)")


def required(path: Path) -> Iterator[Finding]:
    """Findings about the requirement files of a project."""
    if path.is_file():
        return
    for file in sorted({*path.glob("*requirements*.txt"), *path.glob("requirements/*.txt")}):
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        yield from _about(file, enumerate(lines, 1))
    project = path / "pyproject.toml"
    if project.is_file():
        yield from _about(project, _of_project(project))
    for name in ("setup.cfg", "environment.yml", "environment.yaml", "Pipfile"):
        file = path / name
        if file.is_file():
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
            yield from _about(file, ((i, line.strip().lstrip("- ")) for i, line in enumerate(lines, 1)))


def _of_project(file: Path) -> Iterator[tuple[int, str]]:
    """The dependencies in a pyproject.toml, with their lines."""
    text = file.read_text(encoding="utf-8", errors="replace")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    project = table.get("project", {})
    asked = [
        *project.get("dependencies", ()),
        *(r for extra in project.get("optional-dependencies", {}).values() for r in extra),
    ]
    asked += table.get("tool", {}).get("poetry", {}).get("dependencies", {})
    lines = text.splitlines()
    for requirement in asked:
        yield next((i for i, line in enumerate(lines, 1) if requirement in line), 1), requirement


def _about(file: Path, lines: Iterator[tuple[int, str]] | enumerate[str]) -> Iterator[Finding]:
    for number, line in lines:
        match = _REQUIREMENT.match(line)
        name = match[1].lower().replace("_", "-") if match else ""
        place = f"{file}:{number}"
        if name in _TENSORFLOW:
            words = f"{name}: gradtape takes its place; leave it out of the environment."
            yield Finding(place, number, "note", words, name)
        elif name in NAMES:
            package = NAMES[name]
            yield Finding(place, number, "note" if package.runs else "missing", package.verdict, name)


def door(tensorflow: bool, keras: bool, others: bool) -> str:
    """How to start the project.

    Args:
      tensorflow: whether its own files import TensorFlow.
      keras: whether they import Keras separately.
      others: whether it needs packages, or internal modules, that import `tensorflow` by that name.
    """
    if others:
        return (
            "To run it: `python -m gradtape run script.py` (or GRADTAPE_AS_TENSORFLOW=1): packages it uses import "
            "tensorflow themselves."
        )
    if tensorflow:
        return (
            "To run it: `import gradtape as tf` instead of `import tensorflow as tf`; or, without a change, `python -m "
            "gradtape run script.py`."
        )
    if keras:
        return (
            "To run it, change nothing: `import keras` uses gradtape where TensorFlow is not installed; otherwise set "
            "KERAS_BACKEND=gradtape."
        )
    return ""
