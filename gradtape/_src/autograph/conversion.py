"""Which functions AutoGraph converts, and a cache of converted functions.

Everything that the user wrote is converted: functions, methods, lambdas, callable objects. gradtape itself,
NumPy, the standard library, classes, builtins, generators, and functions marked `do_not_convert` are not.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes, errors, log
from gradtape._src.base.source import trail
from gradtape._src.graph.ir import is_symbolic

_MARK = "__ag_converted__"
_NEVER = "__ag_do_not_convert__"
# Modules whose functions are not converted, in addition to the standard library.
_LIBRARIES = frozenset(
    [
        "gradtape",
        "numpy",
        "scipy",
        "pandas",
        "sklearn",
        "matplotlib",
        "PIL",
        "torch",
        "jax",
        "tensorflow",
        "tensorflow_probability",
        "tf_keras",
        "keras",
        "keras_gradtape",
        "optree",
        "absl",
        "pytest",
        "_pytest",
        "pluggy",
        "hypothesis",
        "IPython",
        "ipykernel",
        "tqdm",
        "attr",
        "wrapt",
    ]
) | (frozenset(sys.stdlib_module_names) - {"test", "this", "antigravity", "__main__"})

_codes: dict[tuple[types.CodeType, str], types.CodeType | None] = {}


def done(function: Callable) -> Callable:
    """Marks a function whose code is already converted."""
    function.__dict__[_MARK] = True
    return function


def do_not_convert(func: Callable | None = None) -> Callable:
    """Decorator for functions that AutoGraph does not convert."""
    if func is None:
        return do_not_convert
    try:
        setattr(func, _NEVER, True)
    except AttributeError:  # bound methods and builtins
        inner = func
        func = functools.wraps(func)(lambda *args, **kwargs: inner(*args, **kwargs))
        setattr(func, _NEVER, True)
    return func


def conv(f: Any) -> Any:
    """What to call in place of `f`."""
    kind = type(f)
    if kind is types.FunctionType:
        return _converted(f)
    if kind is types.MethodType:
        function = f.__func__
        if type(function) is not types.FunctionType:
            return f
        converted = _converted(function)
        return f if converted is function else types.MethodType(converted, f.__self__)
    if kind is types.BuiltinFunctionType or kind is type:
        return _BUILTINS.get(f, f) if f.__module__ == "builtins" else f
    if kind is functools.partial:
        converted = conv(f.func)
        return f if converted is f.func else functools.partial(converted, *f.args, **f.keywords)
    if isinstance(f, (type, _core.Op)):
        return f
    call = getattr(kind, "__call__", None)  # noqa: B004
    if type(call) is types.FunctionType and call is not None and not is_library(kind.__module__):
        converted = _converted(call)
        return f if converted is call else types.MethodType(converted, f)
    return f


def convert(f: Callable) -> Callable:
    """The converted form of a function whose conversion the user asked for."""
    if isinstance(f, types.MethodType):
        return (
            types.MethodType(convert(f.__func__), f.__self__) if type(f.__func__) is types.FunctionType else f
        )
    if isinstance(f, functools.partial):
        return functools.partial(convert(f.func), *f.args, **f.keywords)
    if type(f) is not types.FunctionType:
        return conv(f)
    return _converted(f, asked=True)


def is_library(module: str | None) -> bool:
    return module is None or module.partition(".")[0] in _LIBRARIES


def _converted(f: types.FunctionType, asked: bool = False) -> Callable:
    marks = f.__dict__
    if _MARK in marks or _NEVER in marks or (not asked and is_library(f.__module__)):
        return f
    code = f.__code__
    key = (code, code.co_filename)
    if key not in _codes:
        _codes[key] = _new_code(f)
    new = _codes[key]
    return f if new is None else _with_code(f, new)


def _new_code(f: types.FunctionType) -> types.CodeType | None:
    if inspect.isgeneratorfunction(f) or inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f):
        return None
    from gradtape._src.autograph.transform import transform  # few programs have anything to rewrite

    try:
        return transform(f)
    except (OSError, SyntaxError, ValueError, RecursionError) as e:
        # Code that was typed in, or run by exec or -c, has no source. If it does not branch, nothing is lost.
        log.log(
            log.WARNING if _branches(f.__code__) else log.INFO,
            "AutoGraph could not transform %r and will run it as-is.\nCause: %s\nAn if, for or while that depends on "
            "tensors needs the source: put the function into a file, or use tf.cond and tf.while_loop. To silence this "
            "warning, decorate it with @tf.autograph.experimental.do_not_convert",
            f,
            e,
        )
        return None


def _branches(code: types.CodeType) -> bool:
    """Whether there is a loop or a condition. Those that `with` and `except` compile to do not count."""
    before = ""
    for i in dis.get_instructions(code):
        own = before in ("WITH_EXCEPT_START", "CHECK_EXC_MATCH")
        if i.opname == "FOR_ITER" or ("JUMP" in i.opname and "_IF_" in i.opname and not own):
            return True
        before = before if i.opname == "TO_BOOL" else i.opname
    return False


def _with_code(f: types.FunctionType, code: types.CodeType) -> types.FunctionType:
    """A function like `f` that runs other code: the same globals, defaults and closure."""
    from gradtape._src.autograph import operators

    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
    cells["ag__"] = types.CellType(operators)
    closure = tuple(cells[name] for name in code.co_freevars)
    new = types.FunctionType(code, f.__globals__, f.__name__, f.__defaults__, closure)
    new.__kwdefaults__ = f.__kwdefaults__
    new.__dict__.update(f.__dict__)
    new.__qualname__, new.__module__, new.__doc__ = f.__qualname__, f.__module__, f.__doc__
    return done(new)


# ---- builtins -----------------------------------------------------------------------------------


def _symbolic(*args: Any) -> bool:
    return any(isinstance(a, (_core.Tensor, _core.Variable)) and is_symbolic(a) for a in args)


def _range(*args: Any) -> Any:
    if not _symbolic(*args):
        return range(*args)
    from gradtape._src.autograph.operators import Range

    return Range(*args)


def _int(x: Any = 0, *args: Any, **kwargs: Any) -> Any:
    return ops.cast(x, dtypes.int32) if _symbolic(x) else int(x, *args, **kwargs)


def _float(x: Any = 0.0) -> Any:
    return ops.cast(x, dtypes.float32) if _symbolic(x) else float(x)


def _len(x: Any) -> Any:
    if _symbolic(x) and x.shape.rank != 0 and (x.shape.rank is None or x.shape[0] is None):
        return ops.shape(x)[0]
    return len(x)


def _sorted(x: Any, /, *, key: Callable | None = None, reverse: bool = False) -> Any:
    if not _symbolic(x):
        return sorted(x, key=key, reverse=reverse)
    direction = "DESCENDING" if reverse else "ASCENDING"
    if key is None:
        return ops.sort(x, direction=direction)
    keys = ops.stack([key(row) for row in ops.unstack(x)])
    return ops.gather(x, ops.argsort(keys, direction=direction, stable=True))


_BUILTINS: dict[Any, Callable] = {range: _range, int: _int, float: _float, len: _len, sorted: _sorted}


# ---- errors -------------------------------------------------------------------------------------


def annotate(error: BaseException) -> None:
    """Adds the lines of the user's code that an error passed through while tracing."""
    errors.annotate(error, trail(error, lambda code: code.co_name.startswith("ag__")))
