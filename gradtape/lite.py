"""`tf.lite`: names for `isinstance` and annotations. TensorFlow Lite converts TensorFlow's graphs; gradtape has none."""

from __future__ import annotations

import enum
from typing import Any

from gradtape._src.public import absent as _absent

_WORDS = "TensorFlow Lite converts TensorFlow's graphs, which gradtape does not have. Hint: concrete.export, model.export."


class OpsSet(enum.Enum):
    """The sets of ops that a converted model may use."""

    TFLITE_BUILTINS = "TFLITE_BUILTINS"
    SELECT_TF_OPS = "SELECT_TF_OPS"
    TFLITE_BUILTINS_INT8 = "TFLITE_BUILTINS_INT8"


class Optimize(enum.Enum):
    """Options for making a converted model smaller."""

    DEFAULT = "DEFAULT"
    OPTIMIZE_FOR_SIZE = "OPTIMIZE_FOR_SIZE"
    OPTIMIZE_FOR_LATENCY = "OPTIMIZE_FOR_LATENCY"


class Interpreter:
    """For `isinstance` only: it cannot be instantiated."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"tf.lite.Interpreter: {_WORDS}")


class TFLiteConverter:
    """For `isinstance` only: it cannot be instantiated."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"tf.lite.TFLiteConverter: {_WORDS}")

    @classmethod
    def from_keras_model(cls, model: Any) -> Any:
        """Raises NotImplementedError."""
        return cls(model)

    @classmethod
    def from_saved_model(cls, saved_model_dir: Any, **kwargs: Any) -> Any:
        """Raises NotImplementedError."""
        return cls(saved_model_dir)

    @classmethod
    def from_concrete_functions(cls, funcs: Any, trackable_obj: Any = None) -> Any:
        """Raises NotImplementedError."""
        return cls(funcs)


__getattr__, __dir__ = _absent.of("lite")
