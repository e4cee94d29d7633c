"""Kinds of arguments: what a trace was made for, and what its calls must match.

A kind is a nest, with `Parts` for composite tensors. Its leaves are TensorSpecs, `VariableSpec`s, Python values
(`Literal`), other objects (`Same`), and datasets and iterators (`Source`). `cast` fits a value to a kind; `text` shows a
kind as TensorFlow does.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import nest
from gradtape._src.base.composites import Parts
from gradtape._src.base.shape import TensorSpec
from gradtape._src.state.variable_spec import CastError
from gradtape._src.tensors import conversion

PLAIN = (bool, int, float, complex, str, bytes, type(None), type)


class Literal:
    """A Python value that a function was traced for."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def cast(self, value: Any) -> Any:
        """The value, if it is the one of the trace."""
        if isinstance(value, (_core.Tensor, np.ndarray)) or value != self.value:
            raise CastError(f"Can not cast {value!r} to {self!r}")
        return value

    def __repr__(self) -> str:
        return f"Literal[{self.value!r}]"


class Same:
    """An object that a function was traced for. It is not kept alive."""

    def __init__(self, value: Any) -> None:
        self._reference = weakref.ref(value)

    @property
    def value(self) -> Any:
        """The object, or None if it is gone."""
        return self._reference()

    def cast(self, value: Any) -> Any:
        """The object, if it is the trace's, or equal to it."""
        if value is not self.value and value != self.value:
            raise CastError(f"Can not cast {value!r} to {self!r}")
        return value

    def __repr__(self) -> str:
        return f"Weakref[{self._reference!r}]"


class Source:
    """A dataset or an iterator that is an argument: any with elements of the same spec matches.

    Without a key, it is one that an `input_signature` declares, or that a trace was made for by its spec.
    """

    def __init__(self, key: tuple | None, spec: Any) -> None:
        self.key = key
        self.value = spec

    def cast(self, value: Any) -> Any:
        """The dataset or iterator, if it has such elements."""
        if value == self.value:
            return value
        if not hasattr(value, "_argument_key") or not self._takes(value):
            raise CastError(f"Can not cast {value!r} to {self!r}")
        return value

    def _takes(self, value: Any) -> bool:
        if self.key is None:
            return isinstance(value, self.value.value_type) and self.value.is_compatible_with(value)
        return value._argument_key() == self.key

    def __repr__(self) -> str:
        return repr(self.value)


def of_python(value: Any) -> Literal | Same:
    """The kind of an argument that is not a tensor."""
    if not isinstance(value, PLAIN):
        try:
            return Same(value)
        except TypeError:  # it has no weak references
            pass
    return Literal(value)


def in_structure(structure: Any, leaves: Iterator) -> Any:
    """Kinds in the structure of an argument. A container that cannot hold kinds (a bytearray) is one Python value."""
    mine = [next(leaves) for _ in nest.flatten(structure)]
    try:
        return nest.pack_sequence_as(structure, mine)
    except (TypeError, ValueError):
        return of_python(structure)


# ---- fitting a value to a kind --------------------------------------------------------------------


def cast(kind: Any, value: Any) -> Any:
    """`value` with a tensor for each TensorSpec of `kind`.

    Raises:
      CastError: if it does not fit.
    """
    if isinstance(kind, TensorSpec):
        return _as_tensor(kind, value)
    if isinstance(kind, Parts):
        return _as_parts(kind, value)
    if not nest.is_nested(kind):
        return kind.cast(value)
    if isinstance(kind, Mapping):
        if not isinstance(value, Mapping):
            raise CastError(f"Can not cast {value!r} to a Dict type.")
        if set(value) != set(kind):
            raise CastError(f"{value!r} has different keys with the TraceType {text(kind)}.")
        parts = {k: cast(kind[k], value[k]) for k in kind}
        return parts if type(kind) is dict else nest.pack_sequence_as(kind, nest.flatten(parts))
    fields = getattr(kind, "_fields", None)
    if fields is None and type(kind) in (list, tuple):
        if not isinstance(value, type(kind)):
            raise CastError(f"Can not cast {value!r} to {type(kind).__name__} type.")
        if len(value) != len(kind):
            raise CastError(f"Expected {value!r} to have length of {len(kind)}")
        return type(kind)([cast(k, v) for k, v in zip(kind, value, strict=True)])
    if type(value) is not type(kind):
        raise CastError(f"Cannot cast {value!r} to type {type(kind)}.")
    if fields is not None:
        return type(kind)(*[cast(k, v) for k, v in zip(kind, value, strict=True)])
    leaves = zip(nest.flatten(kind), nest.flatten_up_to(kind, value), strict=True)
    return nest.pack_sequence_as(kind, [cast(k, v) for k, v in leaves])


def _as_parts(kind: Parts, value: Any) -> Parts:
    given = Parts.of(value) if nest.is_composite(type(value)) else value
    if not isinstance(given, Parts) or not kind.spec.is_compatible_with(given.spec):
        raise CastError(f"Can not cast {value!r} to {kind.spec!r}")
    return Parts(kind.spec, [cast(k, v) for k, v in zip(kind.parts, given.parts, strict=True)])


def _as_tensor(spec: TensorSpec, value: Any) -> Any:
    if isinstance(value, Parts):
        value = value.together()
    if isinstance(value, TensorSpec):
        have = value
    else:
        if isinstance(value, _core.Variable):
            value = value._read()
        elif not isinstance(value, _core.Tensor):
            try:
                value = conversion.convert(value, spec.dtype._code)
            except (TypeError, ValueError) as e:
                raise CastError(str(e)) from e
        if value.dtype is spec.dtype and spec.shape.is_compatible_with(value.shape):
            return value
        have = TensorSpec(value.shape, value.dtype)
    if have.dtype is not spec.dtype or not have.shape.is_subtype_of(spec.shape):
        raise CastError(f"Can not cast {have} to {spec}")
    return value


# ---- showing a kind -------------------------------------------------------------------------------


def text(kind: Any) -> str:
    """A kind in TensorFlow's words: `List[TensorSpec(...), Literal[3]]`."""
    if isinstance(kind, Parts):
        return repr(kind.spec)
    if not nest.is_nested(kind):
        return repr(kind)
    if isinstance(kind, Mapping):
        return f"Dict[{', '.join(f'[{k!r}, {text(v)}]' for k, v in kind.items())}]"
    if hasattr(kind, "_fields"):
        fields = zip(kind._fields, kind, strict=True)
        return f"{type(kind).__name__}[{', '.join(f'[{k!r}, {text(v)}]' for k, v in fields)}]"
    if isinstance(kind, (list, tuple)):
        return f"{type(kind).__name__.capitalize()}[{', '.join(map(text, kind))}]"
    return repr(kind)


def named(kind: Any, name: str) -> Any:
    """A kind as signatures list it: Python values as they are, and a name for each TensorSpec that has none."""

    def leaf(path: tuple, x: Any) -> Any:
        if isinstance(x, TensorSpec):
            return TensorSpec(x.shape, x.dtype, x.name or "_".join([name, *map(str, path)]))
        return x.value

    return nest.pack_sequence_as(kind, [leaf(path, x) for path, x in nest.flatten_with_path(kind)])
