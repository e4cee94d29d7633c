"""Lowers a graph to a native program: simplify, join products, fuse, compute stacks in place, find bands, plan, and
write the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, NamedTuple

from gradtape import _core
from gradtape._src.base.collection import uncollected
from gradtape._src.base.contexts import aside
from gradtape._src.base.dtypes import SIZES, WIDE
from gradtape._src.engines.native import bands, fuse, in_place, joins, plan, products
from gradtape._src.graph import simplify
from gradtape._src.graph.ir import Callback, Graph, Node, Value

_INPUT, _OUTPUT, _SCRATCH = range(3)
_REDUCED = ("mul.sum",)  # pairs of an operation and a reduction of rows (core/kernels/norms.cpp)


class Step:
    """One step of a program before it is numbered."""

    __slots__ = ("what", "object", "operands", "results", "attrs", "nodes", "line")

    def __init__(
        self,
        what: str,
        obj: Any,
        operands: list[Value],
        results: list[Value],
        attrs: tuple = (),
        nodes: tuple[Node, ...] = (),
    ) -> None:
        self.nodes = nodes  # that it computes
        self.line = nodes[0].line if nodes else None  # of the user's program, for errors
        self.what = what
        self.object = obj
        self.operands = operands
        self.results = results
        self.attrs = attrs


class Lowered(NamedTuple):
    """A graph as the steps of a program."""

    graph: Graph  # after the last passes
    steps: list[Step]
    aliases: dict[Value, Value]  # values that are other values in another shape
    parts: dict[Value, joins.Part]  # values that are parts of others in memory
    over: list[int]  # for each output, the input that it may overwrite, or -1


@uncollected
def compile_graph(
    graph: Graph, updates: list[int] | None = None, local: bool = False, checked: bool = False
) -> Any:
    """The program that computes the outputs of `graph` from its inputs.

    `updates`: for each output, the input whose new value it is and that it may overwrite, or -1. `local`: nothing
    else refers to those inputs, as with the variables of a loop. `checked`: no index is out of range.
    """
    return _write(lowered(graph, updates, local, checked))


def lowered(
    graph: Graph, updates: list[int] | None = None, local: bool = False, checked: bool = False
) -> Lowered:
    """The steps of the program of a graph; arguments as for `compile_graph`."""
    graph = products.transpose_once(products.join_products(simplify.simplify(graph, final=True)))
    order = fuse.fuse(graph)
    leaving = fuse.used_outside(order, graph.outputs)
    steps: list[Step] = []
    aliases: dict[Value, Value] = {}
    for item in order:
        if isinstance(item, Node):
            if item.is_held and (
                item.op.row.native or (isinstance(item.op, Callback) and item.op.is_barrier)
            ):
                steps.append(Step("call", _eager(item), list(item.operands), list(item.results), (), (item,)))
            elif item.op.row.alias:
                aliases[item.results[0]] = aliases.get(item.operands[0], item.operands[0])
            elif isinstance(item.op, Callback) and item.op.is_barrier:
                aliases.update(
                    (r, aliases.get(v, v)) for r, v in zip(item.results, item.operands, strict=True)
                )
            elif isinstance(item.op, Callback):
                steps.append(Step("call", item.op.run, list(item.operands), list(item.results), (), (item,)))
            elif not item.op.row.native:
                steps.append(
                    Step("call", item.op.step(item), list(item.operands), list(item.results), (), (item,))
                )
            else:
                steps.append(
                    Step("op", item.op, list(item.operands), list(item.results), item.attrs, (item,))
                )
        else:
            same = _same(item)
            aliases.update((v, same[v]) for v in leaving[item] if v in same)
            results = dict.fromkeys(same.get(v, v) for v in leaving[item])
            steps.append(_cluster_step(item, [v for v in results if v.node in item.nodes]))
    over = in_place.in_place(graph, steps, aliases, updates, local, checked) if updates else []
    steps, parts = joins.join(graph, steps, aliases, _copy)
    return Lowered(graph, steps, aliases, parts, over)


def _copy(stack: Step, operand: Value, result: Value) -> Step:
    """The copy of one operand of a stack, as a stack of one."""
    return Step("op", stack.object, [operand], [result], (0,), stack.nodes)


def _eager(node: Node) -> Callable[..., list]:
    """The node as a call: an op on strings, which have no place in the memory of a program."""
    if isinstance(node.op, Callback):
        return lambda *operands: list(operands)

    def run(*operands: Any) -> list:
        with aside():
            return list(_core.apply(node.op, list(operands), node.attrs))

    return run


def _same(cluster: fuse.Cluster) -> dict[Value, Value]:
    """The values of a cluster that are other values in another shape."""
    same: dict[Value, Value] = {}
    for node in cluster.nodes:
        if node.op.row.alias:
            same[node.results[0]] = same.get(node.operands[0], node.operands[0])
    return same


def _cluster_step(cluster: fuse.Cluster, leaving: list[Value]) -> Step:
    """Assigns registers: numbers for operands and results, reused tile buffers for everything else."""
    size = 1
    for d in cluster.shape:
        size *= d
    inner = cluster.inner or size
    operands: dict[Value, int] = {}
    registers: list[tuple[int, int, int, int]] = []
    register: dict[Value, int] = {}  # of the members' results
    outside: dict[tuple[Value, int], int] = {}  # of operands, by the way they are broadcast
    results = {v: i for i, v in enumerate(leaving)}

    loops = _loops(cluster, results)
    last_use: dict[Value, int] = {}
    for i, (_, _, inputs) in enumerate(loops):
        for v in inputs:
            last_use[v] = i

    def of(v: Value, column: bool) -> int:
        if v in register:
            return register[v]
        if column:
            kind = fuse.SCALAR if v.size == 1 else fuse.COLUMN
        else:
            broadcast = fuse.broadcast_of(v.shape, cluster.shape)
            assert broadcast is not None  # fuse made sure of it
            kind = broadcast[0]
        if (v, kind) not in outside:
            outside[v, kind] = len(registers)
            registers.append((_INPUT, kind, SIZES[v.dtype], operands.setdefault(v, len(operands))))
        return outside[v, kind]

    # Epilogues run after all other members of a tile, so the buffers of their operands cannot be reused.
    reduced = {node.operands[0] for node in cluster.epilogues}
    free: dict[tuple[int, int], list[int]] = {}  # free buffers, by kind and width of their last values
    scratch = 0
    ops, epilogues = [], []
    for i, (kernel, node, inputs) in enumerate(loops):
        reduces = not node.op.row.fuses
        column = node in cluster.columns
        kind = fuse.COLUMN if column else fuse.FULL
        ins = [of(v, column and not reduces) for v in inputs]
        if node in cluster.epilogues:
            over = fuse.reduced_over(node)
            assert over is not None
            out = node.results[0]
            epilogues.append((node.op.row.epilogue, out.dtype, over[0], ins[0], results[out]))
            continue
        dying = {
            v: registers[register[v]]
            for v in inputs
            if v in register
            and last_use[v] == i
            and v not in reduced
            and registers[register[v]][0] == _SCRATCH
        }
        width = SIZES[node.results[0].dtype]
        buffers = free.setdefault((kind, width), [])
        # A result may reuse the buffer of an operand that dies, if its elements have the same size.
        for v, (_, its_kind, wide, buffer) in list(dying.items()):
            if (its_kind, wide) == (kind, width) and not reduces:
                buffers.append(buffer)
                del dying[v]
        for out in node.results:
            register[out] = len(registers)
            if out in results:
                registers.append((_OUTPUT, kind, width, results[out]))
                continue
            if not buffers:
                buffers.append(scratch)
                scratch += 1
            registers.append((_SCRATCH, kind, width, buffers.pop()))
        for _, its_kind, wide, buffer in dying.values():
            free.setdefault((its_kind, wide), []).append(buffer)
        for out in node.results:  # one of two results that is never read
            if out not in last_use and out not in results:
                buffers.append(registers[register[out]][3])
        into = [register[out] for out in node.results]
        ops.append((kernel, inputs[-1].dtype, node.results[0].dtype, into if reduces else into[0], ins))
    description = (size // inner, inner, registers, ops, epilogues, scratch)
    return Step("cluster", description, list(operands), leaving, (), tuple(cluster.nodes))


def _loops(cluster: fuse.Cluster, leaving: Container[Value]) -> list[tuple[str, Node, tuple[Value, ...]]]:
    """The loops of a cluster over a tile: kernel, the node whose result it computes, operands.

    An operation whose result only the next one reads is computed together with it, which saves a pass over the tile.
    """
    same = _same(cluster)
    uses: dict[Value, int] = {}
    for node in cluster.nodes:
        if not node.op.row.alias:
            for v in node.operands:
                uses[same.get(v, v)] = uses.get(same.get(v, v), 0) + 1
    loops: dict[Node, tuple[str, Node, tuple[Value, ...]]] = {}
    for node in cluster.nodes:
        if node.op.row.alias:
            continue
        kernel = node.op.row.native if node.op.row.fuses else node.op.row.each_row
        given = tuple(same.get(v, v) for v in node.operands)
        loops[node] = (kernel, node, given)
        reduces = not node.op.row.fuses
        if (
            not node.op.row.second
            or node.results[0].dtype not in WIDE
            or (reduces and node not in cluster.columns)
        ):
            continue
        for side, v in enumerate(given):
            before = v.node
            narrow = node in cluster.columns and not reduces
            if before is None or before not in loops or (before in cluster.columns) != narrow:
                continue
            name, _, operands = loops[before]
            # A node that is already paired with the one before it cannot start another pair.
            if name == before.op.row.native and before.op.row.first and uses[v] == 1 and v not in leaving:
                x, y = operands[0], operands[-1]  # both are the operand of a square
                pair = f"{before.op.row.first}.{node.op.row.second[side]}"
                if reduces and (pair not in _REDUCED or not cluster.along(x) or not cluster.along(y)):
                    continue
                loops[node] = (pair, node, (x, y) if reduces else (x, y, given[1 - side]))
                del loops[before]
                break
    return list(loops.values())


def _write(lowered: Lowered) -> Any:
    graph, steps, aliases, parts, over = lowered
    cut = bands.find(graph, steps, aliases, parts, over)
    places, arena = plan.plan(graph, steps, aliases, parts, cut)
    numbers: dict[Value, int] = {}
    values: list = []
    for v, (place, at) in places.items():
        numbers[v] = len(values)
        values.append((v.dtype, v.shape, place, numbers[at] if isinstance(at, Value) else at, v.constant))
    written = [
        (s.what, s.object, [numbers[v] for v in s.operands], [numbers[v] for v in s.results], s.attrs, s.line)
        for s in steps
    ]
    results = [numbers[v] for v in graph.outputs]
    return _core.Program(len(graph.inputs), values, written, results, arena, over, cut)
