"""The public functions of both libraries, and whether they take the same parameters."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from typing import Any

from gradtape._src.ops.table import PUBLIC

from .rows import find

SPACES = (
    "", "math", "math.special", "nn", "nn.experimental", "linalg", "signal", "image", "random",
    "random.experimental", "bitwise", "sets", "sparse", "ragged", "strings",
    "quantization", "dtypes", "debugging", "nest", "experimental.numpy",
)  # fmt: skip

# Functions whose results cannot be compared call by call; they are tested elsewhere.
NOT_COMPARED = {
    "control_dependencies device init_scope name_scope variable_creator_scope": "contexts (tests/semantics)",
    "print timestamp get_logger": "output, time",
    "make_ndarray make_tensor_proto": "protocol buffers (tests/test_infra.py)",
    "no_gradient": "graphs of TensorFlow 1",
    "register_tensor_conversion_function": "changes the library for good (tests/test_tensor.py)",
    "experimental.numpy.experimental_enable_numpy_behavior experimental.numpy.finfo": "settings; NumPy's own",
    "random.set_seed random.get_global_generator random.set_global_generator "
    "random.experimental.get_global_generator random.experimental.set_global_generator": "state (tests/test_random.py)",
    "debugging.enable_check_numerics debugging.disable_check_numerics debugging.enable_traceback_filtering "
    "debugging.disable_traceback_filtering debugging.set_log_device_placement": "settings",
    "image.decode_bmp image.decode_gif image.decode_jxl image.decode_webp": "need files (tests/test_io.py)",
}  # fmt: skip
_SKIPPED = {name for names in NOT_COMPARED for name in names.split()}


def _join(space: str, name: str) -> str:
    return f"{space}.{name}" if space else name


def has(lib: Any, name: str) -> bool:
    try:
        find(lib, name)
    except AttributeError:
        return False
    return True


def _functions(module: Any) -> list[str]:
    found = []
    for name in dir(module):
        value = getattr(module, name, None)
        if not name.startswith("_") and callable(value) and not isinstance(value, types.ModuleType):
            found.append(name)
    return found


def theirs(tensorflow: Any, space: str) -> list[str]:
    """TensorFlow's public functions and classes of a namespace."""
    return [_join(space, n) for n in _functions(find(tensorflow, space) if space else tensorflow)]


def only_here(tensorflow: Any, space: str) -> list[str]:
    """Names of ours that TensorFlow does not have."""
    ours = [n for n in PUBLIC if n.rpartition(".")[0] == space]
    return sorted(n for n in ours if not has(tensorflow, n))


def to_compare(tensorflow: Any, gradtape: Any, space: str) -> list[str]:
    """Functions, not classes, that both have and that can be compared."""
    return [
        name for name in theirs(tensorflow, space)
        if not inspect.isclass(find(tensorflow, name)) and has(gradtape, name) and name not in _SKIPPED
    ]  # fmt: skip


def parameters(function: Any) -> list[tuple[str, bool]] | None:
    """Names of parameters, and whether they can be left out; None for those of Python's `*args`."""
    row = getattr(function, "row", None)
    if row is not None:
        return [(p.name, p.default is not ...) for p in row.params]
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    found = []
    for p in signature.parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            return None
        found.append((p.name, p.default is not p.empty))
    return found


def signature_differences(ours: Any, theirs: Any) -> Iterator[str]:
    """Parameters that a call of TensorFlow's function could name and ours would not take."""
    a, b = parameters(ours), parameters(theirs)
    if a is None or b is None:
        return
    # A name is never given by position.
    a, b = ([p for p in some if p[0] != "name"] for some in (a, b))
    for k, (name, optional) in enumerate(b):
        if k >= len(a) or a[k][0] != name:
            shown = [n for n, _ in a], [n for n, _ in b]
            yield f"parameters: here ({', '.join(shown[0])}), TensorFlow ({', '.join(shown[1])})"
            return
        if optional and not a[k][1]:
            yield f"{name} can be left out in TensorFlow"
