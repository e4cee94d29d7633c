"""What a function's bytecode reveals before it is traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

# Functions of the library, and arguments by name, that lead to sizes that depend on values.
_SIZED_BY_VALUES = frozenset(
    (
        "boolean_mask",
        "unique",
        "unique_with_counts",
        "dynamic_partition",
        "set_loop_options",
        "non_max_suppression",
        "dynamic_size",
    )
)
_MOST_FUNCTIONS = 100  # that are looked at


def names_sizes_of_values(function: Callable) -> bool:
    """Whether a function, or one that it calls by name, calls ops whose output sizes depend on values.

    Such a function is recorded at once. Otherwise it would be traced up to the first such call and its Python code
    would run a second time; that is the only cost of a wrong guess.
    """
    todo: list[Any] = [function]
    seen: set[int] = set()
    while todo and len(seen) < _MOST_FUNCTIONS:
        f = todo.pop()
        f = getattr(f, "python_function", f)  # another tf.function
        f = getattr(f, "__func__", f)  # a method
        if not isinstance(f, FunctionType) or id(f) in seen or (f.__module__ or "").startswith("gradtape"):
            continue
        seen.add(id(f))
        names = set(_names(f.__code__))
        if names & _SIZED_BY_VALUES:
            return True
        todo += [f.__globals__[n] for n in names if n in f.__globals__]
        for cell in f.__closure__ or ():
            try:
                todo.append(cell.cell_contents)
            except ValueError:  # it is empty
                continue
    return False


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
        elif isinstance(constant, tuple):
            yield from (name for name in constant if isinstance(name, str))  # arguments of calls
