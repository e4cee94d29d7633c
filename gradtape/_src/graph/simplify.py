"""Rewrites a graph into a smaller one with the same results.

One walk over the nodes, in order, does constant folding, algebra and common subexpressions: by
the time a node is looked at, its operands are already as simple as they get. A second walk,
backwards, drops what nothing reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base.contexts import unrecorded
from gradtape._src.graph.ir import Callback, Graph, Node, Value
from gradtape._src.ops.table import TABLE
from gradtape._src.tensors import hooks

# Constants up to this many elements are computed when the graph is compiled.
_FOLDED = 4096

# Ops whose result is where their operand is.
ALIASES = frozenset(("reshape", "identity", "expand_dims", "squeeze"))


class Builder:
    """Writes the new graph; rules use it to add nodes."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.seen: dict[tuple, tuple[Value, ...]] = {}
        self.line: Any = None  # of the node that is looked at: new nodes take its place

    def add(self, name: str, *operands: Value, attrs: tuple = ()) -> Value:
        """The result of a primitive on values of the new graph, simplified itself."""
        return self.apply(TABLE[name].op, list(operands), attrs, None)[0]

    def apply(
        self, op: Any, operands: list[Value], attrs: tuple, specs: list[tuple] | None
    ) -> tuple[Value, ...]:
        name = op.op_name
        if isinstance(op, Callback):
            return self._write(op, operands, attrs, specs or [])
        if operands and all(v.constant is not None for v in operands):
            specs = specs or infer(op, operands, attrs)
            if all(_count(shape) <= _FOLDED for shape, _ in specs):
                return self._fold(op, operands, attrs)
        if op.row.kind == "elementwise":
            narrow = [_narrow(self, v) for v in operands]
            shape = np.broadcast_shapes(*(v.shape for v in operands))
            if _count(np.broadcast_shapes(*(v.shape for v in narrow))) < _count(shape):
                (result,) = self.apply(op, narrow, attrs, None)
                return (self.add("broadcast_to", result, attrs=(shape,)),)
            operands = _without_broadcasts(operands, narrow, shape)
        rule = _RULES.get(name)
        if rule is not None:
            simpler = rule(self, operands, attrs)
            if simpler is not None:
                return (simpler,)
        key = (op, tuple(map(id, operands)), attrs)
        known = self.seen.get(key)
        if known is not None:
            return known
        if specs is None:
            specs = infer(op, operands, attrs)
        results = self.seen[key] = self._write(op, operands, attrs, specs)
        return results

    def _write(self, op: Any, operands: list[Value], attrs: tuple, specs: list[tuple]) -> tuple[Value, ...]:
        results = self.graph.add(op, operands, attrs, specs)
        self.graph.nodes[-1].line = self.line
        return results

    def _fold(self, op: Any, operands: list[Value], attrs: tuple) -> tuple[Value, ...]:
        with unrecorded():
            results = _core.apply(op, [v.constant for v in operands], attrs)
        return tuple(self.graph.constant(r) for r in results)

    def scalar(self, number: complex, dtype: int) -> Value:
        return self.graph.constant(hooks.convert(number, dtype))


def _count(shape: tuple[int, ...]) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


def infer(op: Any, operands: list[Value], attrs: tuple) -> list[tuple]:
    """Shapes and types of an op's results."""
    return _core.infer(op, [(v.dtype, v.shape) for v in operands], attrs)


def simplify(graph: Graph, final: bool = False) -> Graph:
    """The graph after constant folding, algebra, common subexpressions and dead code.

    A `final` graph will not be differentiated: gradients of the user's own are left out of it. A graph that
    was simplified before is looked through again only if it has nodes that a final one has not.
    """
    if graph.simplified and not (final and any(map(_is_replaced, graph.nodes))):
        return graph
    builder = Builder()
    new: dict[Value, Value] = {v: builder.graph.input(v.shape, v.dtype) for v in graph.inputs}

    def renew(v: Value) -> Value:
        return new[v] if v.constant is None else builder.graph.constant(v.constant)

    for node in live(graph):
        specs = [(v.shape, v.dtype) for v in node.results]
        if final and isinstance(node.op, Callback) and node.op.passes_on:
            new.update((r, renew(v)) for r, v in zip(node.results, node.operands, strict=False))
            continue
        builder.line = node.line
        operands = [renew(v) for v in node.operands]
        if final and node.name in _DIVISIONS:
            operands[1] = _checked(builder, operands[1])
        inside = _written_out(node) if final else None
        if inside is not None:
            results = _inline(builder, inside, operands)
        else:
            results = builder.apply(node.op, operands, node.attrs, specs)
        new.update(zip(node.results, results, strict=True))
    builder.graph.outputs = [renew(v) for v in graph.outputs]
    builder.graph.nodes = live(builder.graph)
    builder.graph.simplified = True
    return builder.graph


def _is_replaced(node: Node) -> bool:
    """Whether a final graph has something else, or more, in place of a node."""
    if isinstance(node.op, Callback):
        return node.op.passes_on
    return node.name in _DIVISIONS or _written_out(node) is not None


def _written_out(node: Node) -> Graph | None:
    """The ops that an op of the user's own consists of, if it does."""
    if isinstance(node.op, Callback) or node.op.row.native:
        return None
    expand = getattr(node.op, "expand", None)
    return expand and expand([(v.dtype, v.shape) for v in node.operands], node.attrs)


def _inline(builder: Builder, graph: Graph, operands: list[Value]) -> tuple[Value, ...]:
    now = dict(zip(graph.inputs, operands, strict=True))

    def renew(v: Value) -> Value:
        return now[v] if v.constant is None else builder.graph.constant(v.constant)

    for node in graph.nodes:
        specs = [(v.shape, v.dtype) for v in node.results]
        results = builder.apply(node.op, [renew(v) for v in node.operands], node.attrs, specs)
        now.update(zip(node.results, results, strict=True))
    return tuple(renew(v) for v in graph.outputs)


_DIVISIONS = frozenset(("floordiv", "floormod", "truncatediv", "truncatemod"))
_FIRST_FLOAT = 9  # numbers of the types from here on have a result for a zero divisor


def _checked(b: Builder, y: Value) -> Value:
    """An integer divisor that must not be zero: as eager ops do, a program says so."""
    if y.dtype >= _FIRST_FLOAT or (y.constant is not None and np.all(np.asarray(y.constant))):
        return y
    return b.add("divisor", y)


def live(graph: Graph) -> list[Node]:
    """The nodes that an output depends on, in order."""
    needed = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if any(v in needed for v in node.results) or (isinstance(node.op, Callback) and node.op.effect):
            kept.append(node)
            needed.update(node.operands)
    return kept[::-1]


def _narrow(b: Builder, v: Value) -> Value:
    """What a value is a broadcast of; of a constant of one number that number."""
    while v.node is not None and v.node.name == "broadcast_to":
        v = v.node.operands[0]
    if v.constant is not None and v.size > 1 and _number(v) is not None:
        return b.scalar(_number(v), v.dtype)
    return v


def _without_broadcasts(operands: list[Value], narrow: list[Value], shape: tuple[int, ...]) -> list[Value]:
    """Element-wise ops broadcast by themselves: takes explicit broadcasts out of their operands."""
    out = list(operands)
    for i, v in enumerate(narrow):
        trial = [*out[:i], v, *out[i + 1 :]]
        if v is not out[i] and np.broadcast_shapes(*(t.shape for t in trial)) == shape:
            out = trial
    return out


# ---- algebra ------------------------------------------------------------------------------


def _number(v: Value) -> Any:
    """The number that all elements of a constant are; None when it is not a constant or has several."""
    if v.constant is None or not 0 < v.size <= _FOLDED or v.dtype < 9:
        return None
    array = v.constant.numpy().reshape(-1) if v.shape else v.constant.numpy()
    number = array[0] if v.shape else array
    if v.size > 1 and not (array == number).all():
        return None
    return complex(number) if np.iscomplexobj(number) else float(number)


def _is(v: Value, number: float) -> bool:
    return v.constant is not None and _number(v) == number


def _same_shape(x: Value, *others: Value) -> bool:
    return np.broadcast_shapes(x.shape, *(o.shape for o in others)) == x.shape


def _mul(b: Builder, operands: list[Value], attrs: tuple) -> Value | None:
    x, y = operands
    for p, q in ((x, y), (y, x)):
        if _is(q, 1) and _same_shape(p, q):
            return p
        if _is(q, -1) and _same_shape(p, q):
            return b.add("neg", p)
    # (x * c) * d = x * (c * d)
    for p, q in ((x, y), (y, x)):
        if q.constant is not None and q.size == 1 and p.node is not None and p.node.name == "mul":
            for r, s in (p.node.operands, p.node.operands[::-1]):
                if s.constant is not None and s.size == 1:
                    product = b.add("mul", s, q)
                    if _number(product) is None or 1e-37 < abs(_number(product)) < 1e37:
                        return b.add("mul", r, product)
    return None


def _add(b: Builder, operands: list[Value], attrs: tuple) -> Value | None:
    x, y = operands
    for p, q in ((x, y), (y, x)):
        if _is(q, 0) and _same_shape(p, q):
            return p
    for p, q in ((x, y), (y, x)):
        if q.node is not None and q.node.name == "neg":
            return b.add("sub", p, q.node.operands[0])
    return None


def _sub(b: Builder, operands: list[Value], attrs: tuple) -> Value | None:
    x, y = operands
    if _is(y, 0) and _same_shape(x, y):
        return x
    if y.node is not None and y.node.name == "neg":
        return b.add("add", x, y.node.operands[0])
    return None


def _div(b: Builder, operands: list[Value], attrs: tuple) -> Value | None:
    x, y = operands
    number = _number(y)
    if number == 1 and _same_shape(x, y):
        return x
    # Exact only for powers of two; elsewhere one rounding more, which tolerances of wide types allow
    # for. The reciprocal itself must be an ordinary number.
    if number and y.dtype in (11, 12) and 1e-37 < abs(number) < 1e37:
        return b.add("mul", x, b.add("reciprocal", y))
    return None


def _neg(b: Builder, operands: list[Value], attrs: tuple) -> Value | None:
    (x,) = operands
    if x.node is not None and x.node.name == "neg":
        return x.node.operands[0]
    if x.node is not None and x.node.name == "sub":
        p, q = x.node.operands
        return b.add("sub", q, p)
    return None


def _pow(b: Builder, operands: list[Value], attrs: tuple) -> Value | None:
    x, y = operands
    number = _number(y)
    if number is None or not _same_shape(x, y):
        return None
    if number == 1:
        return x
    if number == 2:
        return b.add("square", x)
    if number == 3:
        return b.add("mul", x, b.add("square", x))
    return None


def _cast(b: Builder, operands: list[Value], attrs: tuple) -> Value | None:
    return operands[0] if attrs[0]._code == operands[0].dtype else None


def _reshape(b: Builder, operands: list[Value], attrs: tuple) -> Value | None:
    (x,) = operands
    if attrs[-1] == x.shape:
        return x
    if x.node is not None and x.node.name == "reshape":
        return b.add("reshape", x.node.operands[0], attrs=attrs)
    return None


def _identity(b: Builder, operands: list[Value], attrs: tuple) -> Value | None:
    return operands[0]


def _transpose(b: Builder, operands: list[Value], attrs: tuple) -> Value | None:
    (x,) = operands
    (perm,) = attrs
    if perm == tuple(range(len(perm))):
        return x
    if x.node is not None and x.node.name == "transpose":
        inner = x.node.attrs[0]
        return b.add("transpose", x.node.operands[0], attrs=(tuple(inner[p] for p in perm),))
    return None


def _to_shape(b: Builder, operands: list[Value], attrs: tuple) -> Value | None:
    """sum_to and broadcast_to of as many elements as there are: another shape at most."""
    (x,) = operands
    shape = tuple(attrs[0])
    return b.add("reshape", x, attrs=(shape,)) if _count(shape) == x.size else None


def _sum_to(b: Builder, operands: list[Value], attrs: tuple) -> Value | None:
    (x,) = operands
    shape = tuple(attrs[0])
    if x.node is not None and x.node.name == "reshape" and shape:
        # Which leading axes there are does not matter: the sum can be the tail of what computes `before`.
        before = x.node.operands[0]
        if before.shape[-len(shape) :] == x.shape[-len(shape) :] == shape:
            return b.add("sum_to", before, attrs=attrs)
    return _to_shape(b, operands, attrs)


def _sum(b: Builder, operands: list[Value], attrs: tuple) -> Value | None:
    """A sum over axes of length one."""
    (x,) = operands
    axes, keepdims = attrs
    if any(x.shape[a] != 1 for a in axes):
        return None
    shape = x.shape if keepdims else tuple(d for i, d in enumerate(x.shape) if i not in axes)
    return b.add("reshape", x, attrs=(shape,))


def _mean(b: Builder, operands: list[Value], attrs: tuple) -> Value | None:
    """A mean is a sum and a factor: the sum can be the tail of a cluster."""
    (x,) = operands
    if x.dtype not in (11, 12):
        return None
    axes, keepdims = attrs
    count = 1
    for a in axes:
        count *= x.shape[a]
    if count == 0:
        return None
    return b.add("mul", b.add("sum", x, attrs=(axes, keepdims)), b.scalar(1 / count, x.dtype))


def _matmul(b: Builder, operands: list[Value], attrs: tuple) -> Value | None:
    """Products read transposed operands as they are, and constant rows that are all the same once."""
    flags = list(attrs)
    for side in (0, 1):
        row = _repeated_row(operands[side])
        if row is not None and len(operands[1 - side].shape) == 2:
            return _product_with_rows(b, operands, flags, side, b.graph.constant(row))
    out = list(operands)
    changed = False
    for i, v in enumerate(operands):
        if v.node is None or v.node.name != "transpose":
            continue
        (perm,) = v.node.attrs
        n = len(perm)
        if n >= 2 and perm == (*range(n - 2), n - 1, n - 2):
            out[i] = v.node.operands[0]
            flags[i] = not flags[i]
            changed = True
    return b.add("matmul", *out, attrs=tuple(flags)) if changed else None


def _product_with_rows(b: Builder, operands: list[Value], flags: list, side: int, row: Value) -> Value:
    """The product of two matrices, of which the one on this side has the same row everywhere."""
    other = operands[1 - side]
    shape = (operands[0].shape[int(flags[0])], operands[1].shape[1 - int(flags[1])])
    if flags[side] == bool(side):  # rows of the result, or columns of it, are the same
        product = b.add("matmul", *((row, other) if side == 0 else (other, row)), attrs=tuple(flags))
        return b.add("broadcast_to", product, attrs=(shape,))
    # What is summed over has the same factor everywhere.
    total = b.add("sum", other, attrs=((int(flags[1 - side]) ^ side,), True))
    column, across = (row, total) if side == 0 else (total, row)
    return b.add(
        "mul",
        b.add("reshape", column, attrs=((shape[0], 1),)),
        b.add("reshape", across, attrs=((1, shape[1]),)),
    )


def _repeated_row(v: Value) -> Any:
    """The row that all rows of a constant matrix are, as a matrix; None if it is no such thing."""
    if v.constant is None or len(v.shape) != 2 or v.shape[0] < 2 or not 0 < v.size <= _FOLDED:
        return None
    array = v.constant.numpy()
    return hooks.convert(array[:1], v.dtype) if (array == array[0]).all() else None


_RULES: dict[str, Callable[[Builder, list[Value], tuple], Value | None]] = {
    "mul": _mul,
    "add": _add,
    "sub": _sub,
    "div": _div,
    "neg": _neg,
    "pow": _pow,
    "cast": _cast,
    "reshape": _reshape,
    "identity": _identity,
    "transpose": _transpose,
    "broadcast_to": _to_shape,
    "sum_to": _sum_to,
    "sum": _sum,
    "mean": _mean,
    "matmul": _matmul,
}
