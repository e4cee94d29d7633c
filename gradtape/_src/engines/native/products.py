"""Shares work between matrix products.

**Sums of products become one product:** a b + c d = [a c] [b; d]. The steps of an unrolled recurrent net, or the
uses of any layer that is applied repeatedly, contribute such a sum to the gradient of their weights. One product
over all steps is read and written once, and products with long inner axes are the fastest. Its factors must first
be concatenated, so this pays if they are smaller than their product.

**A matrix that many products read transposed is transposed once**, such as the weights that the cotangents of all
steps are multiplied by. Kernels can transpose while reading; the cost is hidden in large products, but not in those
of few rows.
"""

from __future__ import annotations

from typing import NamedTuple

from gradtape._src.base.dtypes import WIDE
from gradtape._src.graph.ir import Graph, Node, Value
from gradtape._src.graph.simplify import Builder, live
from gradtape._src.ops.table import TABLE

_FEWEST = 4  # products in a sum, or products that read the same matrix
_FEW_ROWS = 192  # products of more rows read weights without a transpose


def join_products(graph: Graph) -> Graph:
    """The graph with sums of products as single products; the graph itself if there are none that pay."""
    sums = _sums(graph)
    if not sums:
        return graph
    position = {v: k for k, node in enumerate(graph.nodes) for v in node.results}
    # Nodes that do not depend on such a sum are shared with the original graph.
    builder = Builder()
    builder.graph.inputs = graph.inputs
    new: dict[Value, Value] = {}

    def renew(v: Value) -> Value:
        return new.get(v, v)

    replaced = {node for s in sums.values() for node in (*s.products, *s.inside)}
    for node in graph.nodes:
        if node in replaced:
            continue
        builder.line = node.line
        if node in sums:
            s = sums[node]
            # In the order of the first factors, which is the order of time, since other ops may need them stacked
            # in it, too.
            s.products.sort(key=lambda n: position.get(n.operands[0], -1))
            total = _product(
                builder, [[renew(v) for v in n.operands] for n in s.products], s.products[0].attrs
            )
            for v in s.rest:
                total = builder.add("add", total, renew(v))
            new[node.results[0]] = total
        elif new.keys().isdisjoint(node.operands):
            new.update(builder.take(node))
        else:
            specs = [(v.shape, v.dtype) for v in node.results]
            results = builder.apply(node.op, [renew(v) for v in node.operands], node.attrs, specs)
            new.update(zip(node.results, results, strict=True))
    builder.graph.outputs = [renew(v) for v in graph.outputs]
    builder.graph.nodes = live(builder.graph)
    builder.graph.simplified = True
    return builder.graph


def transpose_once(graph: Graph) -> Graph:
    """The graph with a transpose of weights before the products that read them transposed; itself if there are few."""
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        transposed = node.op is TABLE["matmul"].op and node.attrs[1] and _is_plain(node)
        if transposed and node.results[0].shape[0] <= _FEW_ROWS:
            readers.setdefault(node.operands[1], []).append(node)
    chosen = {v: nodes for v, nodes in readers.items() if len(nodes) >= _FEWEST}
    if not chosen:
        return graph
    builder = Builder()
    builder.graph.inputs = graph.inputs
    turned: dict[Value, Value] = {}
    new: dict[Value, Value] = {}
    replaced = {node for nodes in chosen.values() for node in nodes}
    for node in graph.nodes:
        builder.line = node.line
        operands = [new.get(v, v) for v in node.operands]
        if node in replaced:
            b = operands[1]
            if b not in turned:
                (turned[b],) = builder.write(
                    TABLE["transpose"].op, [b], ((1, 0),), [(b.shape[::-1], b.dtype)]
                )
            spec = (node.results[0].shape, node.results[0].dtype)
            flags = (node.attrs[0], False)
            (new[node.results[0]],) = builder.write(node.op, [operands[0], turned[b]], flags, [spec])
        elif new.keys().isdisjoint(node.operands):
            new.update(builder.take(node))
        else:
            specs = [(v.shape, v.dtype) for v in node.results]
            new.update(zip(node.results, builder.apply(node.op, operands, node.attrs, specs), strict=True))
    builder.graph.outputs = [new.get(v, v) for v in graph.outputs]
    builder.graph.simplified = True
    return builder.graph


class _Sum(NamedTuple):
    products: list[Node]
    rest: list[Value]  # other terms
    inside: list[Node]  # the additions except the last one


def _product(b: Builder, factors: list[list[Value]], flags: tuple) -> Value:
    joined = []
    for side in (0, 1):
        axis = int(flags[side]) ^ (
            1 - side
        )  # the axis that is summed over: the last of the first factor, the first of the second
        parts = [pair[side] for pair in factors]
        if axis == 0 and len({v.shape for v in parts}) == 1:
            rows, columns = parts[0].shape
            stacked = b.add("stack", *parts, attrs=(0,))
            joined.append(b.add("reshape", stacked, attrs=((len(parts) * rows, columns),)))
        else:
            joined.append(b.add("concat", *parts, attrs=(axis,)))
    return b.add("matmul", *joined, attrs=flags)


def _sums(graph: Graph) -> dict[Node, _Sum]:
    """The sums of products that pay, by the nodes that end them."""
    matmul, add = TABLE["matmul"].op, TABLE["add"].op
    products = [n for n in graph.nodes if n.op is matmul and _is_plain(n)]
    if len(products) < _FEWEST:
        return {}
    uses = graph.uses()
    inner: set[Value] = set()  # sums that only another sum reads
    for node in graph.nodes:
        if node.op is add:
            inner.update(v for v in node.operands if uses[v] == 1 and _is_sum(v, node))
    plain = {n.results[0]: n for n in products if uses[n.results[0]] == 1}
    sums = {}
    for node in graph.nodes:
        if node.op is not add or node.results[0] in inner or len(node.results[0].shape) != 2:
            continue
        terms, inside = _terms(node, inner)
        by_flags: dict[tuple, list[Node]] = {}
        for v in terms:
            if v in plain and v.shape == node.results[0].shape:
                by_flags.setdefault(plain[v].attrs, []).append(plain[v])
        chosen = max(by_flags.values(), key=len, default=[])
        if len(chosen) >= _FEWEST and _pays(chosen):
            members = {n.results[0] for n in chosen}
            sums[node] = _Sum(chosen, [v for v in terms if v not in members], inside)
    return sums


def _is_plain(node: Node) -> bool:
    return all(len(v.shape) == 2 and v.dtype in WIDE for v in node.operands)


def _is_sum(v: Value, reader: Node) -> bool:
    return v.node is not None and v.node.op is reader.op and v.shape == reader.results[0].shape


def _terms(node: Node, inner: set[Value]) -> tuple[list[Value], list[Node]]:
    """The terms of a sum, and its additions before the last one."""
    terms: list[Value] = []
    inside: list[Node] = []
    waiting = list(node.operands)
    while waiting:
        v = waiting.pop()
        if v in inner and v.node is not None:
            inside.append(v.node)
            waiting += v.node.operands
        else:
            terms.append(v)
    return terms, inside


def _pays(products: list[Node]) -> bool:
    """Whether the factors have fewer elements than the products."""
    factors = sum(v.size for n in products for v in n.operands)
    return factors <= sum(n.results[0].size for n in products)
