"""Compiles backward passes. When a tape meets a structure again, the core asks this module for symbolic
tensors, runs the gradient rules on them, and asks for a program of what they did."""

from __future__ import annotations

from typing import Any

from gradtape._src.base.errors import Untraceable
from gradtape._src.graph.callable import GraphFunction, pack
from gradtape._src.graph.ir import Callback, Graph, symbolic
from gradtape._src.graph.simplify import simplify
from gradtape._src.tensors import conversion


class Pass(Graph):
    """The backward pass of a tape. Functions that run on another engine do not become part of it."""

    __slots__ = ()
    is_pass = True


def graph_inputs(specs: list[tuple[int, tuple[int, ...]]]) -> tuple[Graph, list]:
    """A new graph with these inputs (dtype, shape), and tensors that stand for them."""
    graph = Pass()
    return graph, [symbolic(graph.input(shape, dtype)) for dtype, shape in specs]


def graph_program(graph: Graph, results: list, dense: bool) -> tuple[Any, list]:
    """The function that computes `results`, and for each result its place among the outputs: None, an index,
    or, unless `dense` is true, (values, indices, dense shape)."""
    if not dense and any(isinstance(n.op, Callback) and n.op.exchanges for n in graph.nodes):
        # A program may exchange values in another order than the rules do, and other replicas may still run the rules.
        raise Untraceable("a backward pass that exchanges values with other replicas is not compiled")
    if dense:
        results = [None if g is None else conversion.densify(g) for g in results]
    places, flat = pack(results)
    graph.outputs = [graph.value_of(t) for t in flat]
    function = GraphFunction(simplify(graph), "gradient")
    function.places = places
    return function, places
