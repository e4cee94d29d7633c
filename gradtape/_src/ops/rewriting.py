"""Algebraic simplification of graphs: the `simplify` functions of rows.

`simplify(b, operands, attrs)` of a row inspects the operands of a node, which are values of the graph, and returns an
equal value that is cheaper, or None. It adds nodes by `b.add(name, *operands, attrs=...)`, which simplifies them in
turn (`graph/simplify.py`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base.dtypes import DIFFERENTIABLE, WIDE

# Constants of up to this many elements are folded, and their values read, when a graph is compiled.
FOLDED = _core.Setting(4096)

# ---- what rules ask about values -----------------------------------------------------------------------------


def number_of(v: Any) -> Any:
    """The number that all elements of a constant equal; None if elements differ, or the value is not a constant."""
    if v.constant is None or not 0 < v.size <= FOLDED.now() or v.dtype not in DIFFERENTIABLE:
        return None
    array = v.constant.numpy().reshape(-1) if v.shape else v.constant.numpy()
    number = array[0] if v.shape else array
    if v.size > 1 and not (array == number).all():
        return None
    return complex(number) if np.iscomplexobj(number) else float(number)


def is_number(v: Any, number: float) -> bool:
    return v.constant is not None and number_of(v) == number


def made_by(v: Any, name: str) -> Any:
    """The node that computes a value, if it is a call of that op."""
    return v.node if v.node is not None and v.node.name == name else None


# The shape that shapes broadcast to; cached, since equal layers ask for the same shapes.
broadcast = lru_cache(4096)(np.broadcast_shapes)


def fills(x: Any, *others: Any) -> bool:
    """Whether the other values broadcast to the shape of `x`."""
    return broadcast(x.shape, *(o.shape for o in others)) == x.shape


def _is_ordinary(number: Any) -> bool:
    """Whether a factor is far from the ends of float32."""
    return 1e-37 < abs(number) < 1e37


# ---- arithmetic ---------------------------------------------------------------------------------


def mul(b, operands, attrs):
    x, y = operands
    for p, q in ((x, y), (y, x)):
        if is_number(q, 1) and fills(p, q):
            return p
        if is_number(q, -1) and fills(p, q):
            return b.add("neg", p)
    # (x * c) * d = x * (c * d)
    for p, q in ((x, y), (y, x)):
        inner = made_by(p, "mul")
        if inner and q.constant is not None and q.size == 1:
            for r, s in (inner.operands, inner.operands[::-1]):
                if s.constant is not None and s.size == 1:
                    product = b.add("mul", s, q)
                    if number_of(product) is None or _is_ordinary(number_of(product)):
                        return b.add("mul", r, product)
    return None


def add(b, operands, attrs):
    x, y = operands
    for p, q in ((x, y), (y, x)):
        if is_number(q, 0) and fills(p, q):
            return p
    for p, q in ((x, y), (y, x)):
        if minus := made_by(q, "neg"):
            return b.add("sub", p, minus.operands[0])
    return None


def sub(b, operands, attrs):
    x, y = operands
    if is_number(y, 0) and fills(x, y):
        return x
    if minus := made_by(y, "neg"):
        return b.add("add", x, minus.operands[0])
    return None


def div(b, operands, attrs):
    x, y = operands
    number = number_of(y)
    if number == 1 and fills(x, y):
        return x
    # Exact for powers of two; otherwise one more rounding, which the tolerances of wide types allow for. The
    # reciprocal must be a normal number.
    if number and y.dtype in WIDE and _is_ordinary(number):
        return b.add("mul", x, b.add("reciprocal", y))
    return None


def neg(b, operands, attrs):
    (x,) = operands
    if minus := made_by(x, "neg"):
        return minus.operands[0]
    if difference := made_by(x, "sub"):
        return b.add("sub", *reversed(difference.operands))
    return None


def pow_(b, operands, attrs):
    x, y = operands
    number = number_of(y)
    if number is None or not fills(x, y):
        return None
    if number == 1:
        return x
    if number == 2:
        return b.add("square", x)
    if number == 3:
        return b.add("mul", x, b.add("square", x))
    return None


def cast(b, operands, attrs):
    return operands[0] if attrs[0]._code == operands[0].dtype else None


# ---- shapes -------------------------------------------------------------------------------------


def reshape(b, operands, attrs):
    (x,) = operands
    if attrs[-1] == x.shape:
        return x
    if inner := made_by(x, "reshape"):
        return b.add("reshape", inner.operands[0], attrs=attrs)
    return None


def identity(b, operands, attrs):
    return operands[0]


def transpose(b, operands, attrs):
    (x,) = operands
    (perm,) = attrs
    if perm == tuple(range(len(perm))):
        return x
    if inner := made_by(x, "transpose"):
        return b.add("transpose", inner.operands[0], attrs=(tuple(inner.attrs[0][p] for p in perm),))
    return None


def to_shape(b, operands, attrs):
    """sum_to and broadcast_to that keep the number of elements: at most a reshape."""
    (x,) = operands
    shape = tuple(attrs[0])
    return b.add("reshape", x, attrs=(shape,)) if int(np.prod(shape)) == x.size else None


# ---- reductions ---------------------------------------------------------------------------------


def _of_less(b, name, x, attrs, shape):
    """A sum of negated elements is the negated sum (up to the sign of zero); one of repeated elements a multiple."""
    if x.size == 0:
        return None
    negated = made_by(x, "neg")
    if negated:
        return b.add("neg", b.add(name, negated.operands[0], attrs=attrs))
    repeated = made_by(x, "broadcast_to")
    if repeated and repeated.operands[0].size == 1 and x.dtype in WIDE:
        count = b.constant(x.size // int(np.prod(shape)), x.dtype)
        one = b.add("mul", b.add("reshape", repeated.operands[0], attrs=((),)), count)
        return b.add("broadcast_to", one, attrs=(shape,))
    return None


def sum_to(b, operands, attrs):
    (x,) = operands
    shape = tuple(attrs[0])
    less = _of_less(b, "sum_to", x, attrs, shape)
    if less is not None:
        return less
    inner = made_by(x, "reshape")
    if inner and shape:
        # The number of leading axes does not matter: the sum can end the cluster that computes `before`.
        before = inner.operands[0]
        if before.shape[-len(shape) :] == x.shape[-len(shape) :] == shape:
            return b.add("sum_to", before, attrs=attrs)
    return to_shape(b, operands, attrs)


def sum_(b, operands, attrs):
    """A sum over axes of size 1 or 0."""
    (x,) = operands
    axes, keepdims = attrs
    shape = tuple(1 if i in axes else d for i, d in enumerate(x.shape) if keepdims or i not in axes)
    if any(x.shape[a] != 1 for a in axes):
        return _of_less(b, "sum", x, attrs, shape)
    return b.add("reshape", x, attrs=(shape,))


def mean(b, operands, attrs):
    """A mean as a sum and a factor: the sum can end a cluster."""
    (x,) = operands
    if x.dtype not in WIDE:
        return None
    axes, keepdims = attrs
    count = 1
    for a in axes:
        count *= x.shape[a]
    if count == 0:
        return None
    return b.add("mul", b.add("sum", x, attrs=(axes, keepdims)), b.constant(1 / count, x.dtype))


# ---- products -----------------------------------------------------------------------------------


def matmul(b, operands, attrs):
    """Products read transposed operands in place, and equal rows of a constant only once."""
    flags = list(attrs)
    for side in (0, 1):
        row = _repeated_row(operands[side])
        if row is not None and len(operands[1 - side].shape) == 2:
            return _product_with_rows(b, operands, flags, side, b.constant(row, operands[side].dtype))
    out = list(operands)
    changed = False
    for i, v in enumerate(operands):
        turned = made_by(v, "transpose")
        if turned is None:
            continue
        (perm,) = turned.attrs
        n = len(perm)
        if n >= 2 and perm == (*range(n - 2), n - 1, n - 2):
            out[i] = turned.operands[0]
            flags[i] = not flags[i]
            changed = True
    return b.add("matmul", *out, attrs=tuple(flags)) if changed else None


def _product_with_rows(b, operands, flags, side, row):
    """The product of two matrices, if all rows of the one on this side are equal."""
    other = operands[1 - side]
    shape = (operands[0].shape[int(flags[0])], operands[1].shape[1 - int(flags[1])])
    if flags[side] == bool(side):  # all rows, or all columns, of the result are equal
        product = b.add("matmul", *((row, other) if side == 0 else (other, row)), attrs=tuple(flags))
        return b.add("broadcast_to", product, attrs=(shape,))
    # All elements that are summed have the same factor.
    total = b.add("sum", other, attrs=((int(flags[1 - side]) ^ side,), True))
    column, across = (row, total) if side == 0 else (total, row)
    return b.add(
        "mul",
        b.add("reshape", column, attrs=((shape[0], 1),)),
        b.add("reshape", across, attrs=((1, shape[1]),)),
    )


def _repeated_row(v: Any) -> Any:
    """The one row of a constant matrix whose rows are all equal, as a matrix; None for any other value."""
    if v.constant is None or len(v.shape) != 2 or v.shape[0] < 2 or not 0 < v.size <= FOLDED.now():
        return None
    array = v.constant.numpy()
    return array[:1] if (array == array[0]).all() else None
