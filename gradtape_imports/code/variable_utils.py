"""`tensorflow.python.util.variable_utils`: variables among the leaves of structures."""

from __future__ import annotations

from typing import Any

import gradtape as tf
from gradtape._src.base import nest
from gradtape._src.tensors.composite import CompositeTensor


def convert_variables_to_tensors(values: Any) -> Any:
    """A structure with tensors in place of variables, also inside composite values."""

    def converted(x: Any) -> Any:
        if isinstance(x, tf.Variable):
            return tf.convert_to_tensor(x)
        return x._convert_variables_to_tensors() if isinstance(x, CompositeTensor) else x

    return nest.map_structure(converted, values)


def replace_variables_with_atoms(values: Any) -> Any:
    """A structure with the number 0 in place of variables, for what compares structures."""
    return nest.map_structure(lambda x: 0 if isinstance(x, tf.Variable) else x, values)
