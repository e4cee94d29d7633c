"""What branches return and loops carry, as tensors: nests of tensors, numbers and TensorArrays.

A value is a nest. Its leaves are tensors (numbers count as such), TensorArrays (carried as one
tensor), or other objects, which must be the same on every path.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import nest
from gradtape._src.base.composites import (
    Parts,
    apart,
    has_composites,
    has_parts,
    is_value,
    map_parts,
    unified,
)
from gradtape._src.base.dtypes import bool as bool_
from gradtape._src.base.errors import Untraceable, more
from gradtape._src.base.shape import TensorShape
from gradtape._src.base.type_spec import TypeSpec
from gradtape._src.control.control_ops import spec_of, zeros
from gradtape._src.control.tensor_array import TensorArray
from gradtape._src.graph.trace import current_recording
from gradtape._src.tensors import conversion
from gradtape._src.tensors.conversion import as_tensor
from gradtape._src.tensors.indexed_slices import IndexedSlicesSpec


class _Undefined:
    """Stands for a variable that has no value yet."""

    def __repr__(self) -> str:
        return "<undefined>"


UNDEFINED = _Undefined()
_NUMBERS = (bool, int, float, complex, np.ndarray, np.generic)
# Prefix of the variables that the source transformation creates.
INTERNAL = "ag__"
RESULT, RETURNED = "ag__retval", "ag__returned"


def settle(value: Any) -> Any:
    """A nest with its sparse gradients made dense; anything else stays as it is."""
    if not has_parts(value):
        return value
    return map_parts(
        lambda p: conversion.densify(p.together()) if isinstance(p.spec, IndexedSlicesSpec) else p, value
    )


def alike(results: Sequence[list], within: Callable[[int, Callable[[], Any]], Any]) -> list[list]:
    """The values of branches: gradients that are not sparse in all branches are made dense.

    `within(k, f)` calls `f` as part of branch `k`.
    """
    out = [list(r) for r in results]
    for i, column in enumerate(zip(*results, strict=True)):
        if any(map(has_parts, column)) and not all(_same_form(column[0], v) for v in column[1:]):
            for k, value in enumerate(column):
                out[k][i] = within(k, functools.partial(settle, value))
    return out


def _same_form(a: Any, b: Any) -> bool:
    try:
        nest.assert_same_structure(a, b)
    except (TypeError, ValueError):
        return False
    return True


def apart_with_shapes(init: Sequence[Any], invariants: Sequence[Any] | None) -> tuple[list, list | None]:
    """The values of a loop taken apart, and the shapes that they have in every iteration, in the same structure.

    Raises:
      TypeError: for an invariant that does not fit.
    """
    if invariants is None or not has_composites(list(init)):
        return [apart(v) for v in init], None if invariants is None else list(invariants)
    start, shapes = [], []
    for value, given in zip(init, invariants, strict=True):
        if given is None or not has_composites(value):
            start.append(apart(value))
            shapes.append(given)
            continue
        leaves = nest.flatten(value)
        pairs = [_with_shape(x, s) for x, s in zip(leaves, nest.flatten_up_to(value, given), strict=True)]
        nested = nest.is_nested(value)
        columns = [list(column) for column in zip(*pairs, strict=True)]
        start.append(nest.pack_sequence_as(value, columns[0]) if nested else columns[0][0])
        shapes.append(nest.pack_sequence_as(value, columns[1]) if nested else columns[1][0])
    return start, shapes


def _with_shape(value: Any, shape: Any) -> tuple[Any, Any]:
    if not is_value(value):
        return value, shape
    parts = Parts.of(value)
    if isinstance(shape, TypeSpec):
        spec = shape
        if not spec.is_compatible_with(value):
            raise TypeError(f"TypeSpec {spec!r} is not compatible with {value!r}")
    elif shape is None:
        spec = parts.spec
    else:
        try:
            spec = value._shape_invariant_to_type_spec(TensorShape(shape))
        except NotImplementedError:
            raise TypeError(
                f"To describe or constrain a {type(value).__name__}, use a {type(parts.spec).__name__} instead of a "
                "TensorShape."
            ) from None
    return Parts(spec, parts.parts), Parts(spec, nest.flatten(spec._component_specs, expand_composites=True))


def kind_of(leaf: Any) -> str:
    """What branches and loops treat a leaf as: a "tensor", an "array", or any other "object"."""
    if isinstance(leaf, _core.Tensor) or (isinstance(leaf, _NUMBERS) and not _is_text(leaf)):
        return "tensor"
    if isinstance(leaf, TensorArray) and leaf._is_tensor():
        return "array"
    return "object"


def _is_text(leaf: Any) -> bool:
    return isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind in "OUS"


def tensor_of(leaf: Any) -> Any:
    """A leaf as a tensor."""
    return leaf._as_tensor() if isinstance(leaf, TensorArray) else as_tensor(leaf)


def _like(leaf: Any, tensor: Any) -> Any:
    """A leaf of the same kind that holds a tensor."""
    if isinstance(leaf, TensorArray) and not isinstance(tensor, TensorArray):
        return leaf._with_tensor(tensor)
    return tensor


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    plain = (bool, int, float, str, bytes, type(None), complex)
    return type(a) is type(b) and isinstance(a, plain) and a == b


def _empty(leaf: Any) -> Any:
    """A placeholder for a leaf before the iteration that creates it."""
    if kind_of(leaf) == "object":
        return leaf._with_zeros() if isinstance(leaf, TensorArray) else leaf
    tensor = tensor_of(leaf)
    # It is never read, so any size will do.
    sizes = () if tensor.shape.rank is None else tuple(d or 0 for d in tensor.shape)
    return _like(leaf, zeros((sizes, tensor.dtype._code)))


def _placeholder(value: Any) -> Any:
    return nest.map_structure(_empty, value) if nest.is_nested(value) else _empty(value)


# ---- loops --------------------------------------------------------------------------------------


class Layout:
    """How a list of values becomes a list of tensors and back."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = list(values)
        self.leaves = [nest.flatten(v) for v in self.values]
        self.tensors = [tensor_of(x) for of in self.leaves for x in of if kind_of(x) != "object"]
        self.specs = [spec_of(t) for t in self.tensors]

    def rebuild(self, tensors: Sequence[Any]) -> list:
        """The values with other tensors in them."""
        given = iter(tensors)
        out = []
        for value, leaves in zip(self.values, self.leaves, strict=True):
            flat = [x if kind_of(x) == "object" else _like(x, next(given)) for x in leaves]
            out.append(nest.pack_sequence_as(value, flat) if nest.is_nested(value) else flat[0])
        return out

    def revise(
        self, result: Sequence[Any], names: Sequence[str] | None, initialized: list[str]
    ) -> list | None:
        """Other initial values, if an iteration shows that these are of the wrong kind."""
        revised, changed = [], False
        for k, (before, after) in enumerate(zip(self.values, result, strict=True)):
            name = names[k] if names else f"loop_vars[{k}]"
            if before is UNDEFINED or before is None:
                if after is before or (before is None and after is UNDEFINED):
                    revised.append(before)
                    continue
                if after is UNDEFINED or after is None:
                    revised.append(after)
                    changed = True
                    continue
                revised.append(_placeholder(after))
                changed = True
                if INTERNAL not in name:
                    initialized.append(name)
                continue
            check_structure(before, after, name, names is not None)
            pairs = zip(nest.flatten(before), nest.flatten(after), strict=True)
            flat = [self._revise_leaf(a, b) for a, b in pairs]
            if any(f is not a for f, a in zip(flat, nest.flatten(before), strict=True)):
                before = nest.pack_sequence_as(before, flat) if nest.is_nested(before) else flat[0]
                changed = True
            revised.append(before)
        return revised if changed else None

    @staticmethod
    def _revise_leaf(a: Any, b: Any) -> Any:
        if kind_of(a) != "object" or _same(a, b):
            return a
        if isinstance(a, _core.Variable):
            return a._read()
        if a is None or (isinstance(a, TensorArray) and isinstance(b, TensorArray)):
            return _empty(b)
        return a

    def tensors_like(self, result: Sequence[Any], names: Sequence[str] | None) -> list:
        """The tensors of an iteration's result, which must have the kinds that the loop began with."""
        out = []
        begun = iter(self.tensors)
        for k, (leaves, after) in enumerate(zip(self.leaves, result, strict=True)):
            name = names[k] if names else None
            for a, b in zip(leaves, nest.flatten(after), strict=True):
                if kind_of(a) == "object":
                    check_same(a, b, name, k)
                    continue
                start = next(begun)
                out.append(_fitting(start, b, name))
        return out


def check_same(a: Any, b: Any, name: str | None, k: int) -> None:
    """Raises a TypeError for an object that an iteration changes."""
    if not _same(a, b) and INTERNAL not in (name or ""):
        raise TypeError(
            f"'{name or f'loop_vars[{k}]'}' is {a!r} before the loop, but {b!r} after one iteration; only tensors, numbers, "
            "TensorArrays and nests of them can change in a loop over tensors."
        )


def _fitting(a: Any, b: Any, name: str | None) -> Any:
    b = fitting_type(a, b, name)
    if tuple(a.shape) != tuple(b.shape):
        refuse_shape(a, a.shape, b.shape, name)
    return b


def fitting_type(a: Any, b: Any, name: str | None) -> Any:
    """The new value of `a` after an iteration, as a tensor of the same type."""
    if b is None or b is UNDEFINED:
        raise ValueError(f"'{name or 'a loop variable'}' is {b} at the end of the iteration.")
    if kind_of(b) == "object" and not isinstance(b, _core.Variable):
        raise TypeError(f"'{name}' is a tensor before the loop, but {b!r} after one iteration.")
    b = tensor_of(b)
    if a.dtype is b.dtype:
        return b
    if name is None:
        raise TypeError(
            f"Loop var {a!r} enters the loop with type {a.dtype!r} but has type {b.dtype!r} after 1 iteration. Its "
            "type should remain constant."
        )
    raise TypeError(
        f"'{name}' has dtype {a.dtype.name} before the loop, but dtype {b.dtype.name} after one iteration"
    )


def not_iterated(names: Sequence[str]) -> str:
    """The error message of a loop that must initialize variables, but does not iterate."""
    return f"assertion failed: [loop must iterate at least once to initialize {', '.join(names)}]"


class ShapeVaries(ValueError):
    """A variable of a loop has another shape after an iteration.

    Attributes:
      name: the name of the variable, if it has one.
      shapes: its shapes before the loop and after an iteration.
    """

    def __init__(self, text: str, name: str | None, before: Any, after: Any) -> None:
        super().__init__(text)
        self.name, self.shapes = name, (TensorShape(before), TensorShape(after))


def refuse_shape(a: Any, before: Any, after: Any, name: str | None) -> None:
    """Raises TensorFlow's error for a loop variable whose shape changes."""
    if name is None:
        raise ShapeVaries(
            f"Input tensor `{a!r}` enters the loop with shape {before}, but has shape {after} after one iteration. To allow "
            "the shape to vary across iterations, use the `shape_invariants` argument of tf.while_loop to specify a "
            "less-specific shape.",
            name, before, after,
        )  # fmt: skip
    raise ShapeVaries(
        f"'{name}' has shape {before} before the loop, but shape {after} after one iteration. Use "
        "tf.autograph.experimental.set_loop_options to set shape invariants.",
        name, before, after,
    )  # fmt: skip


def check_structure(before: Any, after: Any, name: str, named: bool) -> None:
    try:
        nest.assert_same_structure(before, after)
        unified([before, after])
    except (TypeError, ValueError) as e:
        if not named:
            raise
        raise TypeError(
            f"'{name}' does not have the same nested structure after one iteration.\n\n{e}"
        ) from None


# ---- branches -----------------------------------------------------------------------------------


def each_branch(which: Any, run: Callable[[Any], Any], functions: Sequence[Any]) -> list:
    """`run(f)` for each function. The main branch of a condition, which is the last one, runs first, so that
    side effects of its Python code happen in TensorFlow's order."""
    if which.dtype is not bool_:
        return [run(f) for f in functions]
    return [run(f) for f in reversed(functions)][::-1]


class Choice:
    """A value returned by one of several branches: its tensors in each of them."""

    def __init__(self, value: Any, leaves: list[list], changing: list[bool]) -> None:
        self.value = value
        self.leaves = leaves
        self.changing = changing
        self.tensors = [[x for x, c in zip(of, changing, strict=True) if c] for of in leaves]

    def rebuild(self, tensors: Sequence[Any]) -> Any:
        given = iter(tensors)
        flat = [_like(x, next(given)) if c else x for x, c in zip(self.leaves[0], self.changing, strict=True)]
        return nest.pack_sequence_as(self.value, flat) if nest.is_nested(self.value) else flat[0]


def choose(name: str | None, values: Sequence[Any], labels: Sequence[str]) -> Any:
    """The common value of branches that return these values: one object, or a Choice.

    Without a name it is the result of `tf.cond`, whose numbers become tensors.
    """
    if name == RESULT:
        # Nothing was returned on this path yet; a separate flag says so.
        values = filled(values)
    first = values[0]
    if all(v is first for v in values) and not (name is None and kind_of(first) == "tensor"):
        return first
    for value, label in zip(values, labels, strict=True):
        if value is UNDEFINED:
            raise ValueError(
                f"'{name}' must also be initialized in the {label}. Hint: give it a value before, or in both branches: the "
                "graph has both of them." + more("traced-values")
            )
    for value, label in zip(values, labels, strict=True):
        if value is None and name is not None:
            raise ValueError(f"'{name}' is None at the end of the {label}.")
    _check_branches(name, values, labels)
    values = unified(values)
    first = values[0]
    leaves = [nest.flatten(v) for v in values]
    changing = [False] * len(leaves[0])
    for i in range(len(leaves[0])):
        column = [of[i] for of in leaves]
        if all(_same(x, column[0]) for x in column) and not (name is None and kind_of(column[0]) == "tensor"):
            continue
        changing[i] = True
        tensors = [_leaf_tensor(name, x) for x in column]
        _check_alike(name, tensors, labels)
        for of, t in zip(leaves, tensors, strict=True):
            of[i] = t
    if not any(changing):
        return first
    return Choice(first, leaves, changing)


def filled(values: Sequence[Any]) -> list:
    """The values of a variable, with a placeholder of the same kind where it is undefined."""
    example = next((v for v in values if v is not UNDEFINED), UNDEFINED)
    return [_placeholder(example) if v is UNDEFINED else v for v in values]


def _leaf_tensor(name: str | None, leaf: Any) -> Any:
    """Variables are not replaced: the branch reads them."""
    if isinstance(leaf, (_core.Variable, _core.Tensor)):
        return leaf
    if isinstance(leaf, TensorArray):
        if not leaf._is_tensor():
            raise Untraceable(f"'{name}': the size of a TensorArray depends on a condition over tensors.")
        return leaf
    if leaf is None and name is None:
        raise ValueError("Lengths of branch outputs of cond must match: one of them returns None.")
    if kind_of(leaf) != "tensor":
        raise TypeError(
            f"'{name or 'the result'}' must be a tensor, a number, or the same object in all branches of a condition over "
            f"tensors; got {leaf!r}."
        )
    return conversion.convert(leaf)


def _unlike(label: str, value: Any, other: str, than: Any, why: str) -> TypeError:
    """The error for branches that return different structures, in TensorFlow's words."""
    function = "tf.cond" if label == "true_fn" else "tf.switch_case"
    return TypeError(
        f"{label} and {other} arguments to {function} must have the same number, type, and overall structure of return "
        f"values.\n\n{label} output: {value}\n{other} output: {than}\n\nError details:\n{why}"
    )


def _check_branches(name: str | None, values: Sequence[Any], labels: Sequence[str]) -> None:
    for value in values[1:]:
        try:
            nest.assert_same_structure(value, values[0])
            unified([value, values[0]])
        except (TypeError, ValueError) as e:
            if name is None:
                raise _unlike(labels[-1], values[-1], labels[0], values[0], str(e)) from None
            raise TypeError(
                f"'{name}' must have the same nested structure in the main and else branches:\n\n{e}"
            ) from None


def _check_alike(name: str | None, tensors: Sequence[Any], labels: Sequence[str]) -> None:
    last, label = tensors[-1], labels[-1]
    for t, other in zip(tensors, labels, strict=True):
        if isinstance(t, TensorArray) != isinstance(last, TensorArray):
            raise TypeError(f"'{name}' is a TensorArray in one branch only.")
        if t.dtype is not last.dtype:
            if name is None:
                raise _unlike(label, last, other, t, f"{last} and {t} have different types")
            raise TypeError(
                f"'{name}' has dtype {last.dtype.name} in the {label}, but dtype {t.dtype.name} in the {other}"
            )
        if current_recording() is not None:
            continue  # sizes that differ become unknown
        shapes = [tuple((x._as_tensor() if isinstance(x, TensorArray) else x).shape) for x in (last, t)]
        if shapes[0] != shapes[1]:
            raise Untraceable(
                f"'{name or 'the result'}' has shape {shapes[0]} in the {label}, but shape {shapes[1]} in the {other}"
            )
