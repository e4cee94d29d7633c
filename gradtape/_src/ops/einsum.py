"""`einsum`: sums of products in index notation, as diagonals, sums, transposes and matrix products.

The equation is planned once for given shapes (`_plan`), and the plan is cached; a call runs the steps
of the plan, each of which is an op with a gradient of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from gradtape._src.base.calls import one_call
from gradtape._src.base.dtypes import int8, int32
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops import diagonals, movement
from gradtape._src.ops.casting import cast
from gradtape._src.ops.contraction import matmul, products_of_bytes
from gradtape._src.ops.reduction import reduce_sum
from gradtape._src.ops.table import composite
from gradtape._src.tensors.conversion import as_tensor

__all__ = ["einsum"]

# Axes are labelled by their letter, those of an ellipsis by their distance from its end.
Label = str | int
Labels = tuple[Label, ...]


class _Prepare(NamedTuple):
    """What is done to one operand first: axes of size 1 that broadcast are dropped, diagonals taken, axes summed."""

    reshapes: list[list[int]]
    diagonals: list[tuple[int, int]]
    sums: list[int]


class _Layout(NamedTuple):
    """An operand of a pairwise step: a transpose (or None) and a reshape (or None)."""

    perm: list[int] | None
    shape: list[int] | None


class _Step(NamedTuple):
    """Contracts operands `i` and `j`, by a matrix product or an element-wise one."""

    i: int
    j: int
    left: _Layout
    right: _Layout
    flags: tuple[bool, bool] | None  # transposes of the matrix product; None: element by element
    shape: list[int]


class _Plan(NamedTuple):
    prepare: list[_Prepare | None]
    steps: list[_Step]
    perm: list[int] | None  # transposes the last result


# ---- the equation ----


def _parse(equation: str, ranks: list[int]) -> tuple[list[Labels], Labels]:
    """The labels of every operand and of the result."""
    text = equation.replace(" ", "")
    match = re.fullmatch(r"((?:[a-zA-Z,]|\.\.\.)*)(?:->((?:[a-zA-Z]|\.\.\.)*))?", text)
    if not match:
        raise ValueError(f"einsum: Subscripts have incorrect format: {equation}")
    terms, result = match[1].split(","), match[2]
    if len(terms) != len(ranks):
        raise ValueError(f'einsum: Got {len(ranks)} inputs for equation "{equation}", expecting {len(terms)}')
    if any(t.count("...") > 1 for t in (*terms, result or "")):
        raise ValueError(f"einsum: Subscripts have more than one ellipsis in a term: {equation}")
    operands, hidden = [], 0
    for k, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        named = len(term.replace("...", ""))
        rest = rank - named
        if rest < 0 or (rest > 0 and "..." not in term):
            least = " at least" if "..." in term else ""
            raise InvalidArgumentError(
                f"einsum: Expected input {k} to have rank{least} {named} but got: {rank} in {equation}"
            )
        operands.append(_labels(term, rest))
        hidden = max(hidden, rest if "..." in term else 0)
    counts: dict[str, int] = {}
    for term in terms:
        for label in term.replace("...", ""):
            counts[label] = counts.get(label, 0) + 1
    if result is None:
        return operands, (*_labels("...", hidden), *sorted(label for label, n in counts.items() if n == 1))
    letters = result.replace("...", "")
    if len(set(letters)) != len(letters):
        raise ValueError(f"einsum: Output subscripts contain a label appearing more than once: {equation}")
    for label in letters:
        if label not in counts:
            raise ValueError(
                f"einsum: Output subscripts contain the label {label} not present in the input subscripts."
            )
    if hidden and "..." not in result:
        raise InvalidArgumentError(
            f"einsum: Output contains {hidden} broadcasting dimension(s) but no ellipsis (...) was found in "
            f"the output subscripts."
        )
    return operands, _labels(result, hidden)


def _labels(term: str, hidden: int) -> Labels:
    before, dots, after = term.partition("...")
    return (*before, *(range(-hidden, 0) if dots else ()), *after)


def _sizes(operands: list[Labels], shapes: tuple[tuple[int, ...], ...]) -> dict[Label, int]:
    sizes: dict[Label, int] = {}
    for labels, shape in zip(operands, shapes, strict=True):
        for axis, (label, n) in enumerate(zip(labels, shape, strict=True)):
            size = sizes.setdefault(label, n)
            if size == n:
                continue
            broadcasts = isinstance(label, int) and 1 in (size, n)
            if not broadcasts:
                text = ",".join(map(str, shape))
                raise InvalidArgumentError(
                    f"einsum: Expected dimension {size} at axis {axis} of the input shaped [{text}] but "
                    f"got dimension {n}"
                )
            sizes[label] = n if size == 1 else size
    return sizes


# ---- the plan ----


@lru_cache(maxsize=512)
def _plan(equation: str, shapes: tuple[tuple[int, ...], ...]) -> _Plan:
    operands, result = _parse(equation, [len(s) for s in shapes])
    sizes = _sizes(operands, shapes)
    prepare, current = [], []
    for k, (labels, shape) in enumerate(zip(operands, shapes, strict=True)):
        needed = set(result).union(*(set(other) for m, other in enumerate(operands) if m != k))
        first, labels = _preparation(labels, shape, sizes, needed)
        prepare.append(first)
        current.append(labels)
    steps = []
    while len(current) > 1:
        i, j = _cheapest(current, result, sizes)
        needed = set(result).union(*(labels for m, labels in enumerate(current) if m not in (i, j)))
        step, labels = _pair(i, j, current[i], current[j], needed, result, sizes)
        steps.append(step)
        current = [labels for m, labels in enumerate(current) if m not in (i, j)] + [labels]
    last = current[0]
    perm = None if last == result else [last.index(label) for label in result]
    return _Plan(prepare, steps, perm)


def _preparation(
    labels: Labels, shape: tuple[int, ...], sizes: dict, needed: set
) -> tuple[_Prepare | None, Labels]:
    reshapes, diagonals, sums = [], [], []
    keep = [a for a, label in enumerate(labels) if not (shape[a] == 1 and sizes[label] != 1)]
    if len(keep) < len(labels):
        labels = tuple(labels[a] for a in keep)
        reshapes.append([shape[a] for a in keep])
    while len(set(labels)) < len(labels):
        second = next(a for a, label in enumerate(labels) if label in labels[:a])
        diagonals.append((labels.index(labels[second]), second))
        labels = (*labels[:second], *labels[second + 1 :])
    sums = [a for a, label in enumerate(labels) if label not in needed]
    labels = tuple(label for label in labels if label in needed)
    return (_Prepare(reshapes, diagonals, sums) if reshapes or diagonals or sums else None), labels


def _cheapest(current: list[Labels], result: Labels, sizes: dict) -> tuple[int, int]:
    """The pair to contract next: the one whose result is smallest, compared with its operands."""
    if len(current) == 2:
        return 0, 1
    best, choice = None, (0, 1)
    for i in range(len(current)):
        for j in range(i + 1, len(current)):
            needed = set(result).union(*(labels for m, labels in enumerate(current) if m not in (i, j)))
            union = set(current[i]) | set(current[j])
            result_size = prod(sizes[label] for label in union & needed)
            operand_sizes = sum(prod(sizes[label] for label in current[m]) for m in (i, j))
            cost = (result_size - operand_sizes, prod(sizes[label] for label in union))
            if best is None or cost < best:
                best, choice = cost, (i, j)
    return choice


def _layout(labels: Labels, groups: list[Labels], sizes: dict, shape: list[int]) -> _Layout:
    order = [label for group in groups for label in group]
    perm = None if tuple(order) == labels else [labels.index(label) for label in order]
    return _Layout(perm, None if shape == [sizes[label] for label in order] else shape)


def _pair(
    i: int, j: int, a: Labels, b: Labels, needed: set, result: Labels, sizes: dict
) -> tuple[_Step, Labels]:
    shared = [label for label in a if label in b]
    inner = [label for label in shared if label not in needed]
    if not inner:
        return _elements(i, j, a, b, result, sizes)
    # Batch axes in the order of the first operand, so that it needs no transpose.
    batch = tuple(label for label in shared if label in needed)
    rows = tuple(label for label in a if label not in shared)
    columns = tuple(label for label in b if label not in shared)
    if _place(columns, result) < _place(rows, result):  # the result has them in the other order
        i, j, a, b, rows, columns = j, i, b, a, columns, rows
    # The summed axes in the order of an operand in which they are adjacent.
    sums = next((s for s in (_run(a, inner), _run(b, inner)) if s), tuple(inner))
    outer = [sizes[label] for label in batch]
    m, n, k = (prod(sizes[label] for label in group) for group in (rows, columns, sums))
    transpose_left = (*batch, *sums, *rows) == a and bool(rows)
    transpose_right = (*batch, *columns, *sums) == b and bool(columns)
    left = _layout(
        a,
        [batch, sums, rows] if transpose_left else [batch, rows, sums],
        sizes,
        [*outer, *((k, m) if transpose_left else (m, k))],
    )
    right = _layout(
        b,
        [batch, columns, sums] if transpose_right else [batch, sums, columns],
        sizes,
        [*outer, *((n, k) if transpose_right else (k, n))],
    )
    labels = (*batch, *rows, *columns)
    return _Step(
        i, j, left, right, (transpose_left, transpose_right), [sizes[label] for label in labels]
    ), labels


def _place(labels: Labels, result: Labels) -> int:
    return min((result.index(label) for label in labels if label in result), default=len(result))


def _run(labels: Labels, inner: list[Label]) -> Labels | None:
    """The labels `inner` in the order of `labels`, if they are adjacent there."""
    at = sorted(labels.index(label) for label in inner)
    return tuple(labels[p] for p in at) if at[-1] - at[0] + 1 == len(at) else None


def _elements(i: int, j: int, a: Labels, b: Labels, result: Labels, sizes: dict) -> tuple[_Step, Labels]:
    """An element-wise product with broadcasting, if no axis is summed."""
    labels = tuple(dict.fromkeys((*(label for label in result if label in a or label in b), *a, *b)))
    layouts = []
    for operand in (a, b):
        order = [label for label in labels if label in operand]
        perm = None if tuple(order) == operand else [operand.index(label) for label in order]
        shape = [sizes[label] if label in operand else 1 for label in labels]
        while shape and labels[len(labels) - len(shape)] not in operand:
            shape = shape[1:]  # broadcasting adds leading axes
        layouts.append(_Layout(perm, None if shape == [sizes[label] for label in order] else shape))
    left, right = layouts
    return _Step(i, j, left, right, None, []), labels


# ---- running it ----


def _diagonal(x: Any, first: int, second: int) -> Any:
    """The diagonal of two axes, in the place of the first of them."""
    rank = len(x.shape)
    others = [a for a in range(rank) if a not in (first, second)]
    y = diagonals.matrix_diag_part(movement.transpose(x, [*others, first, second]), 0)
    back = list(range(rank - 2))
    back.insert(first, rank - 2)
    return y if back == list(range(rank - 1)) else movement.transpose(y, back)


def _lay(x: Any, layout: _Layout) -> Any:
    if layout.perm is not None:
        x = movement.transpose(x, layout.perm)
    return x if layout.shape is None else movement.reshape(x, layout.shape)


@composite("einsum linalg.einsum")
def einsum(equation, *inputs, **kwargs):
    """Sums of products in index notation (Einstein summation).

    Each operand has one letter per axis. Axes with the same letter share an index; letters missing after
    `->` are summed over. `...` stands for any number of axes, which broadcast.
    Without `->` the result has all letters that occur once, in alphabetical order.

    Example:
      >>> import gradtape as tf
      >>> tf.einsum("ij,jk->ik", [[1.0, 2.0]], [[3.0], [4.0]]).numpy()
      array([[11.]], dtype=float32)
    """
    unknown = set(kwargs) - {"name", "optimize", "greedy"}
    if unknown:
        raise TypeError(
            f"einsum: Invalid keyword arguments for einsum: {', '.join(sorted(unknown))}. Valid arguments: name, "
            f"optimize, greedy."
        )
    like = next((x for x in inputs if hasattr(x, "dtype") and hasattr(x.dtype, "_code")), None)
    return _evaluate(equation, [as_tensor(x, like) for x in inputs], lambda x: x, matmul)


@one_call
def einsum_of_bytes(equation: str, *inputs: Any) -> Any:
    """`einsum` of int8 tensors, computed in int32: products of int8 do not fit into int8. Operands of matrix
    products are not converted first."""

    def wide(x: Any) -> Any:
        return cast(x, int32)

    def product(x: Any, y: Any, *flags: bool) -> Any:
        if x.dtype is y.dtype is int8:
            return products_of_bytes(x, y, *flags)
        return matmul(wide(x), wide(y), *flags)

    return wide(_evaluate(equation, [as_tensor(x) for x in inputs], wide, product))


def _evaluate(equation: str, values: list, wide: Callable[[Any], Any], product: Callable[..., Any]) -> Any:
    """Runs the steps of a plan: `product` multiplies matrices, `wide` converts the operands of all other steps."""
    plan = _plan(equation, tuple(tuple(x.shape) for x in values))
    for k, first in enumerate(plan.prepare):
        if first is None:
            continue
        for shape in first.reshapes:
            values[k] = movement.reshape(values[k], shape)
        for axis, other in first.diagonals:
            values[k] = _diagonal(values[k], axis, other)
        if first.sums:
            values[k] = reduce_sum(wide(values[k]), first.sums)
    for step in plan.steps:
        x, y = _lay(values[step.i], step.left), _lay(values[step.j], step.right)
        if step.flags is None:
            out = wide(x) * wide(y)
        else:
            out = movement.reshape(product(x, y, *step.flags), step.shape)
        values = [v for m, v in enumerate(values) if m not in (step.i, step.j)] + [out]
    return values[0] if plan.perm is None else movement.transpose(values[0], plan.perm)
