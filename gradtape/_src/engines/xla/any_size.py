"""A graph for all sizes, from graphs for some sizes.

In our graphs every size is a number. To write a StableHLO module for unknown sizes, a function is traced at several
sizes, and the graphs are compared: they must be equal except for numbers. A number that differs is explained by the
sizes: `reshape` to (35, 4) at (5, 7) and to (143, 4) at (11, 13) is `reshape` to (a * b, 4). If a number cannot be
explained at all of the sizes, its op is refused by name. Callers compare the result with native runs at other sizes
before they use it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from typing import Any

import jax.numpy as jnp
import numpy as np

from gradtape._src.base import errors
from gradtape._src.engines.xla.translate import Run, Translation, array_of
from gradtape._src.graph.ir import Callback, Graph, Node, Value
from gradtape._src.graph.simplify import simplify

_MOST_FACTORS = 3  # in a product of sizes
_MOST_ATOMS = 8
_MOST_TERMS = 20  # products that may be terms of a sum
_MOST_DIVISOR = 16
_MOST_ELEMENTS = 64  # limit for constants whose elements are explained one by one


def refused(node: Node | None, why: str) -> errors.UnimplementedError:
    """The error for an op that cannot be part of an exported function."""
    if node is None:
        return errors.UnimplementedError(None, None, f"export: {why}")
    where = "" if node.line is None else f" ({node.line.shown})"
    return errors.UnimplementedError(None, None, f"export: {node.name}{where} {why}")


class Sizes:
    """Sizes at which a function was traced: for each name, a number for each trace."""

    def __init__(
        self, names: Sequence[str], points: Sequence[dict[str, int]], symbols: Sequence[Any]
    ) -> None:
        self.points = list(points)
        # The sizes that others inside the graph are made of: values at each point, and JAX's symbol.
        self._atoms: list[tuple[list[int], Any]] = []
        self._products: list[tuple[list[int], Any]] = []
        for name, symbol in zip(names, symbols, strict=True):
            self._add([p[name] for p in self.points], symbol)

    def _add(self, values: list[int], symbol: Any) -> None:
        """Adds a size that others may be multiples of."""
        if len(self._atoms) < _MOST_ATOMS and all(values != others for others, _ in self._atoms):
            self._atoms.append((values, symbol))
            self._products = [
                (
                    list(map(math.prod, zip(*(v for v, _ in chosen), strict=True))),
                    math.prod(s for _, s in chosen),
                )
                for count in range(1, _MOST_FACTORS + 1)
                for chosen in combinations_with_replacement(self._atoms, count)
            ]

    def integer(self, numbers: Sequence[int]) -> Any:
        """The expression for a number that had these values; None if nothing explains it."""
        if len(set(numbers)) == 1:
            return numbers[0]
        for values, symbol in self._products:
            if values[1] == values[0]:
                continue
            a, rest = divmod(numbers[1] - numbers[0], values[1] - values[0])
            b = numbers[0] - a * values[0]
            if not rest and all(a * v + b == f for v, f in zip(values, numbers, strict=True)):
                if b:
                    self._add(list(numbers), a * symbol + b)
                return a * symbol + b
        for one, other in combinations(self._products[:_MOST_TERMS], 2):
            explained = self._sum(numbers, one, other)
            if explained is not None:
                self._add(list(numbers), explained)
                return explained
        # The newest first: a window usually moves over a size that the op before it has made.
        for values, symbol in (*reversed(self._atoms), *self._products):
            for c in range(2, _MOST_DIVISOR + 1):
                # In the form in which JAX writes the sizes of windows, (n - 3) // 2 + 1; of halves, n // 2;
                # otherwise in any form.
                windows = ((-k, 1) for k in range(1, 2 * _MOST_DIVISOR))
                halves = ((k, 0) for k in range(c))
                others = ((k, numbers[0] - (values[0] + k) // c) for k in range(c))
                for b, d in (*windows, *halves, *others):
                    if all((v + b) // c + d == f for v, f in zip(values, numbers, strict=True)):
                        self._add(list(numbers), (symbol + b) // c + d)
                        return (symbol + b) // c + d
        return None

    @staticmethod
    def _sum(numbers: Sequence[int], one: tuple, other: tuple) -> Any:
        """The number as multiples of two products and a constant."""
        (u, first), (v, second) = one, other
        du, dv, df = ([x[k] - x[0] for k in (1, 2)] for x in (u, v, numbers))
        divisor = du[0] * dv[1] - du[1] * dv[0]
        if not divisor:
            return None
        a, rest = divmod(df[0] * dv[1] - df[1] * dv[0], divisor)
        b, more = divmod(du[0] * df[1] - du[1] * df[0], divisor)
        c = numbers[0] - a * u[0] - b * v[0]
        fits = all(a * x + b * y + c == f for x, y, f in zip(u, v, numbers, strict=True))
        return a * first + b * second + c if fits and not (rest or more) else None

    def number(self, numbers: Sequence[Any], dtype: np.dtype) -> Callable[[], Any] | None:
        """The same for an element of a constant, as a function that computes it."""
        if all(f == numbers[0] for f in numbers) or all(f != f for f in numbers):
            return lambda: jnp.asarray(numbers[0], dtype)
        if dtype.kind in "iu":
            whole = self.integer([int(f) for f in numbers])
            return None if whole is None else lambda: jnp.asarray(whole).astype(dtype)
        if dtype.kind not in "fV":  # of NumPy's kinds, V is bfloat16
            return None
        exact = np.array(numbers, np.float64)
        if np.all(np.isfinite(exact)) and np.all(exact == np.round(exact)):
            whole = self.integer([int(f) for f in exact])
            if whole is not None:
                return lambda: jnp.asarray(whole).astype(dtype)
        near = 4 * float(jnp.finfo(dtype).eps)
        # A number that is proportional to a size, to its inverse, or to the square root of one of these.
        for there, back in _SCALES:
            with np.errstate(all="ignore"):
                scaled = there(exact)
            if not np.all(np.isfinite(scaled)):
                continue
            for values, symbol in self._products:
                v = np.array(values, np.float64)
                if v[1] == v[0]:
                    continue
                a = (scaled[1] - scaled[0]) / (v[1] - v[0])
                b = scaled[0] - a * v[0]
                b = 0.0 if abs(b) < 100 * near * abs(scaled[0]) else _simple(b, near)
                a = _simple(scaled[0] / v[0] if b == 0 else a, near)
                with np.errstate(all="ignore"):
                    again = back(a * v + b)
                if np.allclose(again, exact, rtol=near, atol=0):
                    return _computed(back, a, b, symbol, dtype)
        return None


_SCALES: list[tuple[Callable, Callable]] = [
    (lambda x: x, lambda x: x),
    (lambda x: 1 / x, lambda x: 1 / x),
    (lambda x: 1 / x**2, lambda x: 1 / x**0.5),
    (lambda x: x**2, lambda x: x**0.5),
]


def _simple(x: float, near: float) -> float:
    """The number that was meant, if `x` is a rounded number of few digits."""
    meant = float(Fraction(x).limit_denominator(10_000))
    return meant if abs(meant - x) <= 10 * near * abs(x) else x


def _computed(back: Callable, a: float, b: float, symbol: Any, dtype: np.dtype) -> Callable[[], Any]:
    return lambda: back(a * jnp.asarray(symbol).astype(jnp.float64) + b).astype(dtype)


class Explained:
    """A constant of a graph for all sizes."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


class AnySize(Translation):
    """A translation of graphs that are equal except for numbers that sizes explain.

    Args:
      graphs: simplified graphs without random streams, one for each point of `sizes`.
    """

    def __init__(self, graphs: Sequence[Graph], sizes: Sizes) -> None:
        self.draws, self.on_host = [], []
        self._constants = {}
        self._sizes = sizes
        self._inside: dict[int, Graph] = {}
        self.graph = self._joined(graphs)

    # ---- the translation --------------------------------------------------------------------------

    def _constant(self, v: Value) -> Any:
        return v.constant.make() if isinstance(v.constant, Explained) else super()._constant(v)

    def inside(self, graph: Graph) -> Translation:
        """The graph of a branch or loop body."""
        part = copy.copy(self)
        part.graph = self._inside[id(graph)]
        return part

    def _results(self, node: Node, operands: list[Any], within: Run) -> Sequence[Any]:
        try:
            return super()._results(node, operands, within)
        except errors.OpError:
            raise
        except Exception as e:
            words = str(e).strip().splitlines()
            raise refused(
                node, f"cannot be written for all sizes: {words[0] if words else type(e).__name__}"
            ) from e

    # ---- comparing graphs ---------------------------------------------------------------------------

    def _joined(self, graphs: Sequence[Graph]) -> Graph:
        if len({(len(g.inputs), len(g.nodes), len(g.outputs)) for g in graphs}) > 1:
            raise refused(
                None,
                "the function does other things at other sizes, such as a loop over them. Hint: "
                'shapes={"x": "batch, 20, 5"} with numbers for such sizes.',
            )
        joined = Graph()
        joined.simplified = True
        new: list[dict[Value, Value]] = [{} for _ in graphs]

        def enter(values: Sequence[Value], node: Node | None, new_node: Node | None) -> Value:
            value = Value(joined, self._shape(values, node), values[0].dtype, new_node)
            for of_graph, v in zip(new, values, strict=True):
                of_graph[v] = value
            return value

        def renew(values: Sequence[Value], node: Node | None) -> Value:
            if all(v.constant is not None for v in values):
                return self._joined_constant(joined, values, node)
            joined_values = {
                id(of_graph.get(v)): of_graph.get(v) for of_graph, v in zip(new, values, strict=True)
            }
            (value, *others) = joined_values.values()
            if others or value is None:
                raise refused(node, "is applied to other things at other sizes.")
            return value

        joined.inputs = [enter(vs, None, None) for vs in zip(*(g.inputs for g in graphs), strict=True)]
        for nodes in zip(*(g.nodes for g in graphs), strict=True):
            node = nodes[0]
            if any(not _same_op(n.op, node.op) or len(n.operands) != len(node.operands) for n in nodes):
                raise refused(node, "is another op at other sizes.")
            operands = [renew(vs, node) for vs in zip(*(n.operands for n in nodes), strict=True)]
            new_node = Node(node.op, tuple(operands), self._attrs([n.attrs for n in nodes], node))
            new_node.line = node.line
            if isinstance(node.op, Callback):
                for parts in zip(*(n.op.graphs() for n in nodes), strict=True):
                    simple = [simplify(p, final=True) for p in parts]
                    self._inside[id(parts[0])] = self._joined(simple)
            new_node.results = tuple(
                enter(vs, node, new_node) for vs in zip(*(n.results for n in nodes), strict=True)
            )
            joined.nodes.append(new_node)
        joined.outputs = [renew(vs, None) for vs in zip(*(g.outputs for g in graphs), strict=True)]
        return joined

    def _shape(self, values: Sequence[Value], node: Node | None) -> tuple:
        if len({len(v.shape) for v in values}) > 1:
            raise refused(node, "has results of another rank at other sizes.")
        return tuple(self._whole(sizes, node) for sizes in zip(*(v.shape for v in values), strict=True))

    def _whole(self, numbers: Sequence[int], node: Node | None) -> Any:
        explained = self._sizes.integer(numbers)
        if explained is None:
            raise refused(
                node,
                f"has a size or attribute that is no simple function of the unknown sizes: {list(numbers)} at "
                f"{self._sizes.points}.",
            )
        return explained

    def _attrs(self, attrs: Sequence[Any], node: Node) -> Any:
        first = attrs[0]
        if isinstance(first, (tuple, list)):
            if any(type(f) is not type(first) or len(f) != len(first) for f in attrs):
                raise refused(node, "has attributes of another length at other sizes.")
            return type(first)(self._attrs(parts, node) for parts in zip(*attrs, strict=True))
        if type(first) is int and all(type(f) is int for f in attrs):
            return self._whole(attrs, node)
        if any(f is not first and not np.array_equal(f, first) for f in attrs):
            raise refused(node, f"has other attributes at other sizes: {list(attrs)}.")
        return first

    def _joined_constant(self, graph: Graph, values: Sequence[Value], node: Node | None) -> Value:
        arrays = [array_of(v.constant) for v in values]
        first = arrays[0]
        if all(a.shape == first.shape and a.tobytes() == first.tobytes() for a in arrays):
            return Value(graph, values[0].shape, values[0].dtype, constant=values[0].constant)
        shape = self._shape(values, node)
        make = self._elements(arrays, shape)
        if make is None:
            raise refused(
                node, f"uses a constant of shape {list(first.shape)} that is no simple function of the unknown sizes."
            )  # fmt: skip
        return Value(graph, shape, values[0].dtype, constant=Explained(make))

    def _elements(self, arrays: Sequence[np.ndarray], shape: tuple) -> Callable[[], Any] | None:
        """A function that computes a constant; None if sizes do not explain it."""
        number, dtype = self._sizes.number, arrays[0].dtype
        if all(a.size and (a == a.flat[0]).all() for a in arrays):
            one = number([a.flat[0] for a in arrays], dtype)
            return None if one is None else lambda: jnp.broadcast_to(one(), shape)
        long = [k for k in range(arrays[0].ndim) if any(a.shape[k] != 1 for a in arrays)]
        if len(long) == 1 and dtype.kind in "iuf" and all(a.size > 1 for a in arrays):
            lines = [a.reshape(-1).astype(np.float64) for a in arrays]
            near = 0 if dtype.kind in "iu" else 4 * float(jnp.finfo(dtype).eps)
            if all(
                np.allclose(x, x[0] + np.arange(len(x)) * (x[1] - x[0]), rtol=near, atol=near) for x in lines
            ):
                start = number([a.flat[0] for a in arrays], dtype)
                step = number([a.flat[1] - a.flat[0] for a in arrays], dtype)
                if start is not None and step is not None:
                    count = shape[long[0]]
                    return lambda: (start() + jnp.arange(count).astype(dtype) * step()).reshape(shape)
        if len(long) == 2:
            return self._triangle(arrays, shape, long)
        if len({a.shape for a in arrays}) == 1 and arrays[0].size <= _MOST_ELEMENTS:
            each = [number(numbers, dtype) for numbers in zip(*(a.reshape(-1) for a in arrays), strict=True)]
            if None not in each:
                return lambda: jnp.stack([e() for e in each if e is not None]).reshape(shape)
        return None

    def _triangle(
        self, arrays: Sequence[np.ndarray], shape: tuple, axes: list[int]
    ) -> Callable[[], Any] | None:
        """A matrix with one number where row and column compare in a certain way, and another elsewhere: a mask."""
        first, dtype = arrays[0].squeeze(), arrays[0].dtype
        if min(first.shape) < 2:
            return None
        for compare in (np.greater_equal, np.greater, np.less_equal, np.less, np.equal, np.not_equal):
            where = compare(*np.ogrid[: first.shape[0], : first.shape[1]])
            inside, outside = first[where][0], first[~where][0]
            if all(
                (
                    a.squeeze()
                    == np.where(compare(*np.ogrid[: a.shape[axes[0]], : a.shape[axes[1]]]), inside, outside)
                ).all()
                for a in arrays
            ):
                rows, columns = shape[axes[0]], shape[axes[1]]
                test = getattr(jnp, compare.__name__)
                return lambda: jnp.where(
                    test(jnp.arange(rows)[:, None], jnp.arange(columns)), inside, outside
                ).astype(dtype).reshape(shape)  # fmt: skip
        return None


def _same_op(a: Any, b: Any) -> bool:
    return a is b or (
        isinstance(a, Callback)
        and type(a) is type(b)
        and (a.op_name, a.xla, len(a.graphs())) == (b.op_name, b.xla, len(b.graphs()))
    )
