"""What the core asks when a tape has seen a structure before: symbols to run the rules on, and
a program of what the rules did with them."""

from __future__ import annotations

from typing import Any

from gradtape.graph.ir import Graph, symbolic
from gradtape.indexed_slices import IndexedSlices


def graph_inputs(specs: list[tuple[int, tuple[int, ...]]]) -> tuple[Graph, list]:
    """A new graph with these inputs (dtype, shape), and tensors that stand for them."""
    graph = Graph()
    return graph, [symbolic(graph.input(shape, dtype)) for dtype, shape in specs]


def graph_program(graph: Graph, results: list) -> tuple[Any, list]:
    """The program that computes `results`, and for each of them where it is among its outputs:
    None, a number, or (number of the values, number of the indices, dense shape)."""
    from gradtape.graph.lower import compile_graph

    found: list = []
    for g in results:
        if g is None:
            found.append(None)
        elif isinstance(g, IndexedSlices):
            found.append((len(graph.outputs), len(graph.outputs) + 1, g._dense_shape))
            graph.outputs += [graph.value_of(g.values), graph.value_of(g.indices)]
        else:
            found.append(len(graph.outputs))
            graph.outputs.append(graph.value_of(g))
    return compile_graph(graph), found
