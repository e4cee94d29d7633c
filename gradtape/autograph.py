"""tf.autograph: Python control flow over tensors inside `tf.function`.

`convert(f)` rewrites the source of a function (`transform`), after `return`, `break` and `continue`
were replaced by flags (`jumps`), using an analysis of its variables (`variables`). The rewritten code
calls `operators`, which trace where the condition is a tensor. `conversion` decides which functions
are converted.
"""

import ast as _ast
import enum as _enum
import sys as _sys
import types as _types
from collections.abc import Callable as _Callable
from typing import Any as _Any

from gradtape._src.autograph.conversion import convert as _convert
from gradtape._src.autograph.conversion import do_not_convert
from gradtape._src.autograph.options import set_loop_options
from gradtape._src.autograph.transform import rewritten as _rewritten
from gradtape._src.public import absent as _absent


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Accepted and ignored: warnings go through Python's logging, logger "gradtape"."""


def to_code(entity: _Any, recursive: bool = True, experimental_optional_features: object = None) -> str:
    """The source of a function as AutoGraph rewrites it; calls of `ag__` are the operators it inserts.

    Args:
      entity: a Python function, or a `tf.function`.

    Raises:
      ValueError: if its source cannot be found.
    """
    function = getattr(entity, "python_function", entity)
    function = getattr(function, "__func__", function)
    if not isinstance(function, _types.FunctionType):
        raise ValueError(f"autograph.to_code: expected a Python function; got {entity!r}.")
    try:
        node = _rewritten(function)
    except OSError as e:
        raise ValueError(f"autograph.to_code: the source of {function!r} cannot be found: {e}.") from e
    node.name = f"tf__{function.__name__}" if function.__name__.isidentifier() else "tf__lambda"
    return _ast.unparse(_ast.fix_missing_locations(node))


def to_graph(
    entity: _Any, recursive: bool = True, experimental_optional_features: object = None
) -> _Callable:
    """The function that AutoGraph makes of a Python function, to be called while tracing."""
    return _convert(getattr(entity, "python_function", entity))


def trace(*args: object) -> None:
    """Prints its arguments while a function is traced."""
    print(*args)


class Feature(_enum.Enum):
    """Parts of AutoGraph that TensorFlow can turn on one by one; gradtape always has all of them on."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"


experimental = _types.ModuleType(
    "gradtape.autograph.experimental", "TensorFlow's namespace `tf.autograph.experimental`."
)
vars(experimental).update(do_not_convert=do_not_convert, set_loop_options=set_loop_options, Feature=Feature)
del Feature
_sys.modules[experimental.__name__] = experimental

__getattr__, __dir__ = _absent.of("autograph")
