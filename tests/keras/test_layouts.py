"""The backend follows two layouts: Keras 3.15, whose backend is flat, and 3.16, which has its ops in `backend.ops`.

One of them is installed. For the other one, the tests read the source code.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import keras_gradtape
from gradtape_imports import keras_hook as hook

pytest.importorskip("keras")
from keras_gradtape import src  # noqa: E402  this needs Keras

FOLDER = Path(keras_gradtape.__file__).parent
# Names of `keras.src.backend` that are the same in both.
COMMON = {"Variable", "backend", "config", "common", "epsilon", "floatx", "name_scope", "result_type"}


def test_only_names_that_both_backends_have_are_used():
    """Ops are imported from `keras_gradtape.src.ops`, where they are defined."""
    wrong = []
    for path in FOLDER.rglob("*.py"):
        tree = ast.parse(path.read_text())
        names = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "keras.src"
            for alias in node.names
            if alias.name == "backend"
        }
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in names
            ):
                used = {node.attr}
            elif isinstance(node, ast.ImportFrom) and node.module == "keras.src.backend":
                used = {alias.name for alias in node.names}
            else:
                continue
            wrong += [f"{path.name}:{node.lineno}: {name}" for name in used - COMMON]
    assert not wrong


def test_the_package_is_what_keras_3_16_expects():
    for name in (
        "IS_THREAD_SAFE SUPPORTS_COMPLEX_DTYPES SUPPORTS_GRADIENT SUPPORTS_RAGGED_TENSORS SUPPORTS_SPARSE_TENSORS "
        "Variable compute_output_spec device_scope distribution_lib name_scope ops random rnn"
    ).split():
        assert name in src.__all__ and hasattr(src, name), name
    for name in ("core", "image", "linalg", "math", "nn", "numpy"):
        assert getattr(src.ops, name).__name__ == f"{hook.PACKAGE}.ops.{name}"
    for name in (
        "cast",
        "cond",
        "convert_to_numpy",
        "convert_to_tensor",
        "is_tensor",
        "random_seed_dtype",
        "scan",
    ):
        assert getattr(src.ops, name) is getattr(src.ops.core, name), name


def test_the_package_is_what_keras_3_15_expects():
    """Its modules are imported under other names, and so are the classes in them."""
    for module, names in hook._OLD_NAMES.items():
        ours = __import__(f"{hook.PACKAGE}.{module}", fromlist=["_"])
        assert all(hasattr(ours, name) for name in names.values()), module
    for module, names in hook._FLAT.items():
        ours = __import__(f"{hook.PACKAGE}.{module}", fromlist=["_"])
        assert all(hasattr(ours, name) for name in names), module
