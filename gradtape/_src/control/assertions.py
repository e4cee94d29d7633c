"""`tf.debugging`: assertions about values, shapes and types of tensors, and numerical checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes, settings
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.shape import TensorShape
from gradtape._src.graph.effects import deferred

_SUMMARY = 3


def _tensor(x: Any, like: Any = None) -> Any:
    return ops.convert_to_tensor(x, dtype_hint=None if like is None else like.dtype)


def _shown(x: Any, summarize: int | None) -> str:
    """The first elements, `1.0, 2.0, ...`."""
    if not isinstance(x, (_core.Tensor, _core.Variable)):
        return x if isinstance(x, str) else str(x)
    most = _SUMMARY if summarize is None else summarize if summarize >= 0 else x.numpy().size
    flat = np.asarray(x.numpy()).reshape(-1)
    return ", ".join([str(v) for v in flat[:most]] + (["..."] if flat.size > most else []))


@deferred
def Assert(condition: Any, data: Any, summarize: int | None = None, name: str | None = None) -> None:
    """Raises InvalidArgumentError with the values of `data` unless `condition` holds."""
    if isinstance(data, (_core.Tensor, _core.Variable, str)):
        raise TypeError("values must be a sequence: Assert takes a list of tensors as `data`.")
    if not condition:
        shown = "\n".join(_shown(d, summarize) for d in data)
        raise InvalidArgumentError(None, None, f"Expected '{condition}' to be true. Summarized data: {shown}")


# ---- values -------------------------------------------------------------------------------------


@deferred
def _compare(sign: str, holds: Callable, x: Any, y: Any, message: str | None, summarize: int | None) -> None:
    """Raises unless `x sign y` holds for all elements; the error shows where it does not."""
    x = _tensor(x)
    y = _tensor(y, x)
    condition = holds(x, y)
    if bool(ops.reduce_all(condition)):
        return
    most = _SUMMARY if summarize is None else summarize
    a, b, ok = np.broadcast_arrays(x.numpy(), y.numpy(), condition.numpy())
    where = np.argwhere(~ok) if ok.ndim else np.zeros((1, 0), int)
    shown = len(where) if most < 0 else min(most, len(where))
    lines = [f"Condition x {sign} y did not hold."]
    if ok.ndim:
        lines += [
            f"Indices of first {shown} different values:",
            str(where[:shown]),
            "Corresponding x values:",
            str(a[~ok][:shown]),
            "Corresponding y values:",
            str(b[~ok][:shown]),
        ]
    for name, value in (("x", x), ("y", y)):
        flat = np.asarray(value.numpy()).reshape(-1)
        count = flat.size if most < 0 else min(most, flat.size)
        lines += [f"First {count} elements of {name}:", str(flat[:count])]
    raise InvalidArgumentError(None, None, "\n".join(([message] if message else []) + lines))


@one_call
def assert_equal(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raises InvalidArgumentError unless `x == y` for all elements.

    Args:
      message: the first line of the error.
      summarize: how many elements the error shows, 3 by default.

    >>> import gradtape as tf
    >>> tf.debugging.assert_equal(tf.constant([1, 2]), [1, 2])
    """
    _compare("==", ops.equal, x, y, message, summarize)


@one_call
def assert_none_equal(
    x: Any, y: Any, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> None:
    """Raises InvalidArgumentError unless `x != y` for all elements."""
    _compare("!=", ops.not_equal, x, y, message, summarize)


@one_call
def assert_less(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raises InvalidArgumentError unless `x < y` for all elements."""
    _compare("<", ops.less, x, y, message, summarize)


@one_call
def assert_less_equal(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raises InvalidArgumentError unless `x <= y` for all elements."""
    _compare("<=", ops.less_equal, x, y, message, summarize)


@one_call
def assert_greater(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raises InvalidArgumentError unless `x > y` for all elements."""
    _compare(">", ops.greater, x, y, message, summarize)


@one_call
def assert_greater_equal(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raises InvalidArgumentError unless `x >= y` for all elements."""
    _compare(">=", ops.greater_equal, x, y, message, summarize)


@one_call
@deferred
def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Raises InvalidArgumentError unless `|x - y| <= atol + rtol · |y|` for all elements.

    Args:
      rtol, atol: ten times the precision of the type by default.
    """
    x = _tensor(x)
    y = _tensor(y, x)
    if y.dtype is not x.dtype:
        raise ValueError(f"assert_near: expected `y` to be {x.dtype.name}; got {y.dtype.name}.")
    if not (x.dtype.is_floating or x.dtype.is_complex):
        raise ValueError(f"assert_near: expected floats; got {x.dtype.name}.")
    kind = np.float32 if x.dtype is dtypes.bfloat16 else x.dtype.as_numpy_dtype
    eps = 10 * float(2.0**-7 if x.dtype is dtypes.bfloat16 else np.finfo(kind).eps)
    # The tolerances and sizes of complex numbers are real.
    size = ops.abs_(y)
    relative = _tensor(eps if rtol is None else rtol, size)
    absolute = _tensor(eps if atol is None else atol, size)
    if bool(ops.reduce_all(ops.abs_(x - y) <= absolute + relative * size)):
        return
    lines = [
        f"x and y not equal to tolerance rtol = {relative.numpy()}, atol = {absolute.numpy()}",
        f"x (shape={x.shape} dtype={x.dtype.name}) = ",
        _shown(x, summarize),
        f"y (shape={y.shape} dtype={y.dtype.name}) = ",
        _shown(y, summarize),
    ]
    raise InvalidArgumentError(None, None, _prefix(message) + "\n".join(lines))


def _prefix(message: str | None) -> str:
    return f"{message}.  " if message else ""


@deferred
def _compare_zero(sign: str, holds: Callable, x: Any, message: str | None, summarize: int | None) -> None:
    x = _tensor(x)
    if bool(ops.reduce_all(holds(x, ops.zeros([], x.dtype)))):
        return
    most = _SUMMARY if summarize is None else summarize
    flat = [str(v) for v in np.asarray(x.numpy()).reshape(-1)]
    shown = flat if most < 0 or len(flat) <= most else [*flat[:most], "..."]
    raise InvalidArgumentError(
        None,
        None,
        f"{_prefix(message)}\nCondition x {sign} 0 did not hold element-wise:\n"
        f"x (shape={x.shape} dtype={x.dtype.name}) = \n{shown}",
    )


def assert_positive(
    x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raises InvalidArgumentError unless `x > 0` for all elements."""
    _compare_zero(">", ops.greater, x, message, summarize)


def assert_negative(
    x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raises InvalidArgumentError unless `x < 0` for all elements."""
    _compare_zero("<", ops.less, x, message, summarize)


def assert_non_negative(
    x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raises InvalidArgumentError unless `x >= 0` for all elements."""
    _compare_zero(">=", ops.greater_equal, x, message, summarize)


def assert_non_positive(
    x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raises InvalidArgumentError unless `x <= 0` for all elements."""
    _compare_zero("<=", ops.less_equal, x, message, summarize)


# ---- shapes -------------------------------------------------------------------------------------


def _wrong_rank(message: str | None, expected: str, x: Any) -> ValueError:
    return ValueError(
        f"{_prefix(message)}Tensor must have rank {expected}.  Received rank {x.ndim}, shape {x.shape}"
    )


def _rank(rank: Any) -> int:
    given = _tensor(rank)
    if given.ndim:
        raise ValueError("Rank must be a scalar.")
    if not given.dtype.is_integer:
        raise TypeError(f"rank must be of type {dtypes.int32!r}; got {given.dtype!r}")
    return int(given)


@one_call
def assert_rank(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless `x` has this rank."""
    x, expected = _tensor(x), _rank(rank)
    if x.ndim != expected:
        raise _wrong_rank(message, str(expected), x)


@one_call
def assert_rank_at_least(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless `x` has this rank or a higher one."""
    x, least = _tensor(x), _rank(rank)
    if x.ndim < least:
        raise _wrong_rank(message, f"at least {least}", x)


@one_call
def assert_rank_in(x: Any, ranks: Iterable, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless the rank of `x` is one of `ranks`."""
    x = _tensor(x)
    allowed = tuple(_rank(r) for r in ranks)
    if x.ndim not in allowed:
        raise _wrong_rank(message, f"in {allowed}", x)


@one_call
def assert_scalar(tensor: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless `tensor` is a scalar."""
    x = _tensor(tensor)
    if x.ndim:
        raise ValueError(f"{_prefix(message)}Expected scalar shape, saw shape: {x.shape}.")


@one_call
def assert_shapes(
    shapes: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """Raises ValueError unless tensors have the shapes described, with names for equal sizes.

    Args:
      shapes: a dict or a list of pairs `(tensor, shape)`. A shape is a tuple of sizes, names (the
        same name is the same size everywhere), `None` or "." for any size, and possibly a leading
        or trailing "..." or "*" for any number of axes.

    >>> import gradtape as tf
    >>> x, y = tf.zeros([4, 2]), tf.zeros([4])
    >>> tf.debugging.assert_shapes([(x, ("N", 2)), (y, ("N",))])
    """
    pairs = list(shapes.items() if isinstance(shapes, dict) else shapes)
    sizes: dict[Any, tuple[int, str]] = {}
    for value, given in pairs:
        x = _tensor(value.deref() if hasattr(value, "deref") else value)
        for axis, symbol in _described(x, given, message):
            size = x.shape[axis]
            if isinstance(symbol, int):
                expected, source = symbol, "Specified explicitly"
            else:
                where = f"Specified by tensor shape={x.shape} dtype={x.dtype.name} dimension {axis}"
                expected, source = sizes.setdefault(symbol, (size, where))
            if size != expected:
                raise ValueError(
                    f"{_prefix(message)}{source}.  Tensor shape={x.shape} dtype={x.dtype.name} dimension "
                    f"{axis} must have size {expected}.  Received size {size}, shape {x.shape}"
                )


def _described(x: Any, given: Any, message: str | None) -> list[tuple[int, Any]]:
    """The axes of `x` that a description constrains: pairs of an axis and a size or name."""
    if isinstance(given, TensorShape):
        given = given.as_list()
    if not isinstance(given, (list, tuple, str)):
        raise ValueError(
            f"{_prefix(message)}Tensor shape={x.shape} dtype={x.dtype.name}.  Specified shape "
            "must be an iterable.  An iterable has the attribute `__iter__` or `__getitem__`.  Received "
            f"specified shape: {given}"
        )
    symbols = list(given)
    if not symbols and x.ndim == 0:
        return []
    rest = next((i for i, s in enumerate(symbols) if isinstance(s, str) and s in ("*", "...")), None)
    if rest is None:
        if len(symbols) != x.ndim:
            raise _wrong_rank(message, str(len(symbols)), x)
        places = list(enumerate(symbols))
    else:
        if rest not in (0, len(symbols) - 1):
            raise ValueError(
                f"{_prefix(message)}assert_shapes: '...' may only be first or last; got {given}."
            )
        if x.ndim < len(symbols) - 1:
            raise _wrong_rank(message, f"at least {len(symbols) - 1}", x)
        shift = x.ndim - len(symbols)
        places = [(i + shift if rest == 0 else i, s) for i, s in enumerate(symbols) if i != rest]
    return [(i, s) for i, s in places if s is not None and s != "."]


# ---- types --------------------------------------------------------------------------------------


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises TypeError unless `tensor` has this element type."""
    expected, x = dtypes.as_dtype(tf_type), _tensor(tensor)
    if x.dtype is not expected:
        raise TypeError(f"{_prefix(message)}tensor must be of type {expected!r}; got {x.dtype!r}")


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises TypeError unless `x` holds integers."""
    x = _tensor(x)
    if not x.dtype.is_integer:
        raise TypeError(
            f'{_prefix(message)}Expected "x" to be integer type.  Found: tensor of dtype {x.dtype}'
        )


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether it is a tensor of numbers; a variable is not, as in TensorFlow."""
    if not isinstance(tensor, _core.Tensor):
        return False
    return bool(tensor.dtype.is_integer or tensor.dtype.is_floating or tensor.dtype.is_complex)


def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> dtypes.DType:
    """The one float type of all `tensors` and `dtype`; float32 if neither is given.

    Raises:
      ValueError: if the types differ or are not floating.
    """
    expected, first = None if dtype is None else dtypes.as_dtype(dtype), None
    for t in tensors or []:
        if t is None:
            continue
        if expected is None:
            expected, first = dtypes.as_dtype(t.dtype), t
        elif dtypes.as_dtype(t.dtype) is not expected:
            as_first = "" if first is None else f" as {first}"
            raise ValueError(f"{t}, type={t.dtype}, must be of the same type ({expected}){as_first}.")
    expected = dtypes.float32 if expected is None else expected
    if not expected.is_floating:
        raise ValueError(f"Expected floating point type, got {expected}.")
    return expected


def assert_proper_iterable(values: Any) -> None:
    """Raises TypeError unless `values` is an iterable such as a list or tuple: not a tensor, array or string."""
    if isinstance(values, (_core.Tensor, _core.Variable, np.ndarray, bytes, str)):
        raise TypeError(f'Expected argument "values" to be a "proper" iterable.  Found: {type(values)}')
    if not hasattr(values, "__iter__"):
        raise TypeError(f'Expected argument "values" to be iterable.  Found: {type(values)}')


# ---- numerics -----------------------------------------------------------------------------------


@one_call
def check_numerics(tensor: Any, message: str, name: str | None = None) -> Any:
    """`tensor`, if it contains no NaN or infinity; its gradient is checked as well.

    Raises:
      InvalidArgumentError: `message : Tensor had NaN values`.
    """
    x = _tensor(tensor)
    if not x.dtype.is_floating:
        raise InvalidArgumentError(None, None, f"check_numerics: expected floats; got {x.dtype.name}.")
    _want_finite(x, message)

    words = f"{message}: Not a number (NaN) or infinity (Inf) values detected in gradient."
    if _core.current_trace() is None:
        out = x._detach()
        _core.record((out,), (x,), lambda g: [check_numerics(g, words)])
        return out
    from gradtape._src.tapes.custom_gradient import custom_gradient

    def checked(g: Any) -> Any:
        # The gradient of the gradient is not checked: a trace would follow it for ever.
        _want_finite(g, words)
        return g

    return custom_gradient(lambda t: (ops.identity(t), checked))(x)


@deferred
def _want_finite(x: Any, message: str) -> None:
    values = np.asarray(x.numpy())
    if not np.isfinite(values).all():
        kinds = [k for k, test in (("Inf", np.isinf), ("NaN", np.isnan)) if test(values).any()]
        raise InvalidArgumentError(None, None, f"{message} : Tensor had {' and '.join(kinds)} values")


@one_call
def assert_all_finite(x: Any, message: str, name: str | None = None) -> Any:
    """`x`, if it contains no NaN or infinity."""
    return check_numerics(x, message)


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """From now on, an op whose result has a NaN or an infinity raises an error that shows where and why.

    Ops that only move values are not checked. In the meantime functions run eagerly and tapes are not
    compiled, so that every op is seen: use this to find a mistake, not for training.

    Args:
      stack_height_limit: how many lines of the program the error shows at most.
      path_length_limit: the largest number of characters of a file's path.

    >>> import gradtape as tf
    >>> tf.debugging.enable_check_numerics()
    >>> try:
    ...     tf.math.log(tf.constant([1.0, 0.0]))
    ... except tf.errors.InvalidArgumentError as e:
    ...     print(e.message.splitlines()[0])
    ... finally:
    ...     tf.debugging.disable_check_numerics()
    !!! Detected Infinity or NaN in output 0 of eagerly-executing op "log" (# of outputs: 1) !!!
    """
    from gradtape._src.debug import numerics

    numerics.enable_as_tensorflow(stack_height_limit, path_length_limit)


def disable_check_numerics() -> None:
    """Ends what `enable_check_numerics` began."""
    from gradtape._src.debug import numerics

    numerics.disable_as_tensorflow()


# ---- accepted, without effect ------------------------------------------------------------------

_flags = {"filtering": True}


def enable_traceback_filtering() -> None:
    """Accepted: tracebacks are short anyway."""
    _flags["filtering"] = True


def disable_traceback_filtering() -> None:
    """Accepted: tracebacks are short anyway."""
    _flags["filtering"] = False


def is_traceback_filtering_enabled() -> bool:
    """What was set last."""
    return _flags["filtering"]


def set_log_device_placement(enabled: bool) -> None:
    """Whether the log says on which device a function runs, once for each of its programs. Eager ops run on the CPU."""
    settings.log_device_placement = bool(enabled)


def get_log_device_placement() -> bool:
    """What was set last."""
    return settings.log_device_placement


class experimental:
    """`tf.debugging.experimental`: TensorFlow's second debugger, which gradtape does not have."""

    @staticmethod
    def enable_dump_debug_info(dump_root: str, *args: Any, **kwargs: Any) -> None:
        """Raises NotImplementedError: nothing is dumped. Hint: `enable_check_numerics`."""
        raise NotImplementedError(
            "tf.debugging.experimental.enable_dump_debug_info: gradtape writes no debug information. Hint: "
            "tf.debugging.enable_check_numerics() finds the op that makes a NaN; GRADTAPE_COMPILE=0 and "
            "tf.config.run_functions_eagerly(True) let Python's debugger see every op."
        )

    @staticmethod
    def disable_dump_debug_info() -> None:
        """Nothing to stop."""
