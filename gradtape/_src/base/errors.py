"""`tf.errors`: the exceptions of ops, with TensorFlow's classes, codes and constructors.

The native core raises these classes with only a message, `InvalidArgumentError("text")`; TensorFlow's form
`InvalidArgumentError(node_def, op, message)` works as well. There is one class per error code, with the names and
codes that existing `except` clauses use. `more` is the last line of a message that has a help page
(`gradtape/_src/help`).
"""

from __future__ import annotations

import importlib
from typing import Any

from gradtape import _core

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


def more(topic: str) -> str:
    """The last line of a message: the command that shows its help page, offline. `core/help.h` is the same in C++.

    >>> more("none-gradients")
    '\\n  More: python -m gradtape help none-gradients'
    """
    return f"\n  More: python -m gradtape help {topic}"


def in_users_words(text: str) -> str:
    """A message of the core with the name that the user called (`reduce_sum: ...`) instead of that of the row."""
    head = text.partition(":")[0].partition("(")[0]
    if not head.isidentifier():
        return text
    called = importlib.import_module("gradtape._src.public.called")  # needed for messages only
    return called.renamed(head, text)


class OpError(Exception):
    """An op could not do what it was asked; the base of all classes here.

    Args:
      node_def: the graph node, or None in eager mode. A single string argument is the
        message.
      op: the op, or None.
      message: what went wrong.
      error_code: one of the codes of this module.

    >>> from gradtape._src.base import errors
    >>> error = errors.InvalidArgumentError("add: shapes do not match")
    >>> error.message, error.error_code == errors.INVALID_ARGUMENT
    ('add: shapes do not match', True)
    >>> str(errors.NotFoundError(None, None, "no such file"))
    'no such file'
    """

    # The code of a subclass; the constructor of `OpError` may set another one.
    _code = UNKNOWN

    def __init__(
        self,
        node_def: Any = None,
        op: Any = None,
        message: Any = None,
        error_code: int | None = None,
        *args: Any,
    ) -> None:
        if message is None and op is None and isinstance(node_def, str):
            node_def, message = None, in_users_words(node_def)
        self._message = "" if message is None else message
        self._node_def = node_def
        self._op = op
        self._error_code = self._code if error_code is None else error_code
        self._payloads = args[0] if args and isinstance(args[0], dict) else {}
        # Only the text: TensorFlow leaves `args` empty, so that `repr(error)` would be empty too.
        super().__init__(self._message)

    @property
    def message(self) -> str:
        """What went wrong."""
        return self._message

    @property
    def op(self) -> Any:
        """The op that failed, or None."""
        return self._op

    @property
    def node_def(self) -> Any:
        """The graph node that failed, or None."""
        return self._node_def

    @property
    def error_code(self) -> int:
        """The code of the error."""
        return self._error_code

    @property
    def experimental_payloads(self) -> dict[str, Any]:
        """Details added by the code that raised the error: bytes by the names of their types."""
        return self._payloads

    def __str__(self) -> str:
        return str(self._message)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (
            type(self),
            self._node_def,
            self._op,
            self._message,
            self._error_code,
        )


def _rebuild(cls: type[OpError], node_def: Any, op: Any, message: str, code: int) -> OpError:
    """Unpickles: sets the fields directly, since subclasses may have other constructors."""
    error = cls.__new__(cls)
    OpError.__init__(error, node_def, op, message, code)
    return error


def set_message(error: Exception, message: str) -> None:
    """Replaces the text of an error."""
    error.args = (message,)
    if isinstance(error, OpError):
        error._message = message


_NOTE = "in user code:\n\n"


def locate(error: BaseException, line: Any) -> None:
    """Names a line of the user's program (`source.Line`) in a note to an error, unless it names one already."""
    if line is not None and line.number:
        annotate(
            error,
            [f'    File "{line.file}", line {line.number}', *([f"        {line.text}"] if line.text else [])],
        )


def annotate(error: BaseException, lines: list[str]) -> None:
    """Adds lines of the user's code in a note to an error, unless it has such a note."""
    if lines and not any(n.startswith(_NOTE) for n in getattr(error, "__notes__", ())):
        error.add_note(_NOTE + "\n".join(lines))


class _CodedError(OpError):
    """A class with a fixed code: TensorFlow's constructor `(node_def, op, message, *args)`."""

    def __init__(self, node_def: Any = None, op: Any = None, message: Any = None, *args: Any) -> None:
        super().__init__(node_def, op, message, None, *args)


def core_type_error(text: str) -> TypeError:
    """The core's TypeError, with the name that the user called."""
    return TypeError(in_users_words(text))


def core_value_error(text: str) -> ValueError:
    """The core's ValueError, with the name that the user called."""
    return ValueError(in_users_words(text))


class CancelledError(_CodedError):
    """The operation was stopped from outside."""

    _code = CANCELLED


class UnknownError(OpError):
    """An error that fits no other class."""

    _code = UNKNOWN


class InvalidArgumentError(_CodedError):
    """An operand or attribute is wrong: shapes, dtypes or values that do not fit.

    While a function is traced it is also a `ValueError` and a `TypeError`, which TensorFlow raises when it finds
    shapes and dtypes that do not fit while building a graph.
    """

    _code = INVALID_ARGUMENT

    def __new__(cls, node_def: Any = None, op: Any = None, message: Any = None, *args: Any) -> Any:
        tracing = cls is InvalidArgumentError and _core.current_trace() is not None
        return super().__new__(TracedArgumentError if tracing else cls)


# Phrases of eager errors, extended by those that TensorFlow uses while it builds a graph.
_WORDS = {
    "Incompatible shapes:": "Incompatible shapes (Dimensions must be equal):",
    "operands of different types;": "operands of different types (one has a type that does not match type of the other);",
}


class _TensorFlowsArgumentError(InvalidArgumentError, ValueError, TypeError):
    """An error for which TensorFlow raises one of three classes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if _core.current_trace() is not None:
            text = str(self._message)
            for eager, traced in _WORDS.items():
                text = text.replace(eager, traced)
            set_message(self, text)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (InvalidArgumentError, self._node_def, self._op, self._message, self._error_code)


class TracedArgumentError(_TensorFlowsArgumentError):
    """An `InvalidArgumentError` that was raised while a function was traced."""


class ArgumentError(_TensorFlowsArgumentError):
    """An argument that is wrong for all values: of a type or kind that the op does not accept, or an axis out of range.

    Which of the three classes TensorFlow raises depends on the function and on how it was called.
    """


class DeadlineExceededError(_CodedError):
    """It took longer than allowed."""

    _code = DEADLINE_EXCEEDED


class NotFoundError(_CodedError):
    """A file, checkpoint or other named thing does not exist."""

    _code = NOT_FOUND


class AlreadyExistsError(_CodedError):
    """The thing to be created already exists."""

    _code = ALREADY_EXISTS


class PermissionDeniedError(_CodedError):
    """Not allowed, for instance to write a file."""

    _code = PERMISSION_DENIED


class UnauthenticatedError(_CodedError):
    """The caller did not say who it is."""

    _code = UNAUTHENTICATED


class ResourceExhaustedError(_CodedError):
    """No memory (or disk, or another resource) is left."""

    _code = RESOURCE_EXHAUSTED


# Errors after which no other way of computing a result is tried.
OUT_OF_RESOURCES = (ResourceExhaustedError, MemoryError, RecursionError)


class FailedPreconditionError(_CodedError):
    """The state is not ready for it, such as a variable without a value."""

    _code = FAILED_PRECONDITION


class AbortedError(_CodedError):
    """Given up, usually because of a conflict."""

    _code = ABORTED


class OutOfRangeError(_CodedError):
    """Past the end, as of a dataset's iterator."""

    _code = OUT_OF_RANGE


class UnimplementedError(_CodedError):
    """Not implemented, for these types or at all."""

    _code = UNIMPLEMENTED


class InternalError(_CodedError):
    """A broken invariant: a bug in gradtape."""

    _code = INTERNAL


class UnavailableError(_CodedError):
    """Not reachable now."""

    _code = UNAVAILABLE


class DataLossError(_CodedError):
    """Data that cannot be read any more, such as a damaged checkpoint."""

    _code = DATA_LOSS


class OperatorNotAllowedInGraphError(TypeError):
    """A symbolic tensor was used where Python needs a value: `if t:`, `for x in t`."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)


class InaccessibleTensorError(ValueError, TypeError):
    """A symbolic tensor was used outside of the function in which it was made. TensorFlow raises one of the two
    base classes.

    Args:
      tensor: its text in the message.
    """

    def __init__(self, tensor: str = "a symbolic tensor") -> None:
        super().__init__(
            f"{tensor} is out of scope and cannot be used here: it was made while another function, branch or loop was "
            "traced, and has no value. Hint: Use return values, explicit Python locals or a tf.TensorArray to access it."
            + more("traced-values")
        )


class NeedsConstants(Exception):  # noqa: N818
    """Raised while tracing, by code that differentiates with respect to numbers made in the function: it is traced
    again with them as values of the graph."""


class NeedsVariable(Exception):  # noqa: N818
    """Raised while tracing, by code that keeps state for each variable, as an optimizer does: the function is
    traced for the variable that is its argument, and not for all variables of its kind."""


class Untraceable(TypeError):  # noqa: N818
    """Raised while tracing, by code that needs a value, or whose shape depends on values: such a function runs
    eagerly."""


# Exceptions that are not about the code being traced, but about how, or whether, it can be traced.
SIGNALS = (NeedsConstants, NeedsVariable, Untraceable, *OUT_OF_RESOURCES)


# Users see these classes as `gradtape.errors.X`, also in tracebacks and pickles.
for _value in list(globals().values()):
    if isinstance(_value, type) and issubclass(_value, Exception):
        _value.__module__ = "gradtape.errors"
