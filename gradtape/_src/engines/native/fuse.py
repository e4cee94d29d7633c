"""Groups element-wise nodes and reductions into clusters.

A cluster runs as one loop over tiles of its iteration space, so values that its members pass to each other never
reach memory. Members have results of one shape; operands have that shape, or are broadcast along rows, columns, or both.

Reductions of each row are members, too, and so are values computed from their results: *columns*, which have one
element per row. A tile then has whole rows, and the members after a reduction find its result in the tile.
Reductions over all elements, or over rows, are epilogues: their results are known when all tiles are done.

Members may run together if nothing that they read from outside depends on one of them. That is checked with sets of
ancestors, stored as bits of an integer, whose total size grows with the square of the number of nodes. So nodes are
processed in windows: no cluster crosses the edge of a window, so no path from one of its members to another leaves
the window either.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

from gradtape._src.base import dtypes
from gradtape._src.base.dtypes import WIDE
from gradtape._src.graph.ir import Callback, Graph, Node, Value

FULL, SCALAR, ROW, COLUMN = range(4)
OVER_ALL, OVER_ROWS, OVER_COLUMNS = range(3)

# Types that are reduced within a tile without conversion.
_WHOLE = WIDE | {dtypes.bool._code}
# Longer rows do not fit into a tile, so they are not reduced in one.
_LONGEST_ROW = 8192
# Nodes in a window: more than the graph of a training step has in most models. It also limits the registers of a
# cluster, which the native program numbers with 16 bits.
WINDOW = 4096


class Split(NamedTuple):
    """The iteration space as [outer, inner]; inner is 0 while it is undecided."""

    outer: int
    inner: int


class Cluster:
    """Nodes that run as one step. Bits number the nodes of the window."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.nodes: list[Node] = []
        self.members = 0  # bits of the nodes
        self.last = 0  # the highest of these bits
        self.above = 0  # bits of the members and of everything they depend on
        self.outside = 0  # bits of the nodes elsewhere that members read
        self.needs = 0  # bits of those and of everything they depend on
        self.read = False  # whether a node elsewhere reads a member
        self.inner = 0  # 0: undecided, any split will do
        self.epilogues: set[Node] = set()
        self.columns: set[Node] = set()  # members with one element per row
        self.across = 0  # bits of the nodes elsewhere that members read as a row

    def along(self, v: Value) -> bool:
        """Whether a value has an element for every element of a row."""
        broadcast = broadcast_of(v.shape, self.shape)
        return v.node not in self.columns and broadcast is not None and broadcast[0] in (FULL, ROW)


def fuse(graph: Graph) -> list[Node | Cluster]:
    """The steps of the graph in an order in which they can run."""
    of: dict[Node, Cluster] = {}
    called: Node | None = None  # the previous callback: callbacks run in the order of the graph
    after: dict[Node, Node] = {}
    for node in graph.nodes:
        if isinstance(node.op, Callback) and not node.op.is_barrier:
            if called is not None:
                after[node] = called
            called = node
    for first in range(0, len(graph.nodes), WINDOW):
        _Window(graph.nodes[first : first + WINDOW], after, of).fuse()
    return _schedule(graph, of, after)


def _is_member(node: Node) -> bool:
    return node.op.row.fuses and len(node.operands) <= 4 and not node.is_held


@lru_cache(4096)  # equal layers repeat the same calls
def broadcast_of(shape: tuple[int, ...], whole: tuple[int, ...]) -> tuple[int, int] | None:
    """How an operand of `shape` is broadcast to `whole`: (kind, inner); None if it is none of the supported kinds."""
    size = prod(shape)
    if size == 1:
        return SCALAR, 0
    if size == prod(whole):
        return FULL, 0
    padded = (1,) * (len(whole) - len(shape)) + shape
    first = next(i for i, d in enumerate(padded) if d != 1)
    if padded[first:] == whole[first:]:
        return ROW, prod(whole[first:])
    last = max(i for i, d in enumerate(padded) if d != 1)
    if padded[: last + 1] == whole[: last + 1]:
        return COLUMN, prod(whole[last + 1 :])
    return None


def _inner_of(node: Node) -> int | None:
    """The row length that the operands require: 0 for any, None if they contradict each other."""
    inner = 0
    for v in node.operands:
        broadcast = broadcast_of(v.shape, node.results[0].shape)
        if broadcast is None or (broadcast[1] and inner and broadcast[1] != inner):
            return None
        inner = inner or broadcast[1]
    return inner


def reduced_over(node: Node) -> tuple[int, int] | None:
    """The kind of a reduction, and the row length it needs; None if it cannot be in a cluster."""
    (x,) = node.operands
    out = node.results[0]
    if x.dtype not in _WHOLE or x.size == 0:  # integers and half floats are reduced in wider types elsewhere
        return None
    if out.size == 1:
        return (OVER_ALL, 0) if node.op.row.epilogue else None
    if node.op.row.attributes[0].kind == "Shape":
        broadcast = broadcast_of(out.shape, x.shape)
    else:
        axes = node.attrs[0]
        broadcast = broadcast_of(tuple(1 if i in axes else d for i, d in enumerate(x.shape)), x.shape)
    if broadcast is None or broadcast[0] == FULL or broadcast[1] > _LONGEST_ROW:
        return None
    if broadcast[0] == COLUMN:
        return OVER_COLUMNS, broadcast[1]
    return (OVER_ROWS, broadcast[1]) if node.op.row.epilogue else None


def _reduces(cluster: Cluster, x: Value, over: tuple[int, int]) -> bool:
    """Whether a reduction of `x`, a member or an operand of a cluster, can be in that cluster."""
    fits = not (over[1] and cluster.inner and over[1] != cluster.inner)
    return fits and cluster.shape == x.shape and x.node not in cluster.epilogues


class _Window:
    """Consecutive nodes of a graph while they are grouped into clusters."""

    def __init__(self, nodes: list[Node], after: dict[Node, Node], of: dict[Node, Cluster]) -> None:
        self.nodes = nodes
        self.after = after
        self.of = of  # the cluster of a node: filled in here
        self.index = {node: i for i, node in enumerate(nodes)}
        self.reads: list[int] = []  # bits of the nodes that each node reads
        self.ancestors: list[int] = []  # bits of the nodes that each node depends on
        self.clusters: dict[Cluster, None] = {}  # in the order of their last members
        self.readers: dict[Value, Node] = {}  # the last member that reads a value as a whole

    def fuse(self) -> None:
        index, of = self.index, self.of
        for i, node in enumerate(self.nodes):
            reads = [v.node for v in node.operands if v.node in index]
            bits = 0
            for n in reads:
                bits |= 1 << index[n]
            self.reads.append(bits)
            before = self.after.get(node)
            if before in index:
                bits |= 1 << index[before]
            self.ancestors.append(self._with_ancestors(bits))
            if _is_member(node):
                self._join(node, i)
            elif node.op.row.each_row:
                self._join_reduction(node, i)
            elif node.op.row.alias:
                self._join_alias(node, i)
            own = of.get(node)
            for n in reads:
                home = of.get(n)
                if home is not None and home is not own:
                    home.read = True
        for i, node in enumerate(self.nodes):
            if node.op.row.epilogue and node not in self.of:
                self._join_late(node, i)
        for cluster in self.clusters:
            cluster.nodes.sort(key=self.index.__getitem__)

    def _join(self, node: Node, i: int) -> None:
        inner = _inner_of(node)
        shape = node.results[0].shape
        if inner is None or prod(shape) == 0:
            return
        home: Cluster | None = None
        for v in node.operands:
            cluster = self._cluster_of(v)
            if cluster is None or cluster is home or not self._fits(node, v, inner, cluster):
                continue
            if home is None:
                if cluster.read and self._reaches(self._needs(i, cluster.members), cluster.members):
                    continue
                home = cluster
            elif self._may_merge(home, cluster):
                members = home.members | cluster.members
                outside = (home.outside | cluster.outside) & ~members
                crossing = home.outside & cluster.members or cluster.outside & home.members
                needs = self._with_ancestors(outside) if crossing else home.needs | cluster.needs
                if self._reaches(needs | self._needs(i, members), members):
                    continue
                home = self._merged(home, cluster)
                home.members, home.outside, home.needs = members, outside, needs
        if home is None:
            home = Cluster(shape)
        if home.shape == shape:
            home.inner = home.inner or inner
        else:
            home.columns.add(node)
        self._enter(node, i, home)

    def _fits(self, node: Node, v: Value, inner: int, cluster: Cluster) -> bool:
        """Whether a node that reads `v`, of a cluster, can be a member: with whole tiles, or with one element per row."""
        shape = node.results[0].shape
        if cluster.shape != shape and (inner or v.node not in cluster.columns):
            return False
        # The results of epilogues are known only when all tiles are done.
        if cluster.epilogues and any(u.node in cluster.epilogues for u in node.operands):
            return False
        if cluster.shape != shape:
            return True
        if cluster.inner and inner and cluster.inner != inner:
            return False
        return not cluster.columns or not any(
            u.node in cluster.columns and broadcast_of(u.shape, shape) != (COLUMN, cluster.inner)
            for u in node.operands
        )

    def _may_merge(self, home: Cluster, cluster: Cluster) -> bool:
        """Whether two clusters can be one, judging by their shapes and the reductions that they read."""
        if self._reads_epilogue(home, cluster) or self._reads_epilogue(cluster, home):
            return False
        # If there are as many rows as columns, a column can be read as a row, too.
        if home.across & cluster.members or cluster.across & home.members:
            return False
        if home.shape != cluster.shape:  # one has one element per row of the other
            narrow = min(home, cluster, key=lambda c: prod(c.shape))
            return not (narrow.inner or narrow.epilogues or narrow.columns)
        return not (home.inner and cluster.inner and home.inner != cluster.inner)

    def _join_reduction(self, node: Node, i: int) -> None:
        (x,) = node.operands
        over = reduced_over(node)
        if over is None:
            return
        # Joins the member that it reduces, or another cluster that reads the same operand.
        cluster = self._cluster_of(x)
        if cluster is None or not _reduces(cluster, x, over):
            cluster = self._reader_of(x)
        if cluster is None or not _reduces(cluster, x, over):
            if over[0] != OVER_COLUMNS:
                return
            cluster = Cluster(x.shape)
        cluster.inner = cluster.inner or over[1]
        (cluster.columns if over[0] == OVER_COLUMNS else cluster.epilogues).add(node)
        self._enter(node, i, cluster)

    def _join_late(self, node: Node, i: int) -> None:
        """Joins a reduction that is still alone to a later cluster that reads the same operand."""
        (x,) = node.operands
        over, cluster = reduced_over(node), self._reader_of(x)
        if over is None or cluster is None or not _reduces(cluster, x, over):
            return
        if not self._reaches(cluster.needs, 1 << i):
            cluster.inner = cluster.inner or over[1]
            cluster.epilogues.add(node)
            cluster.nodes.append(node)
            cluster.members |= 1 << i
            cluster.above |= 1 << i
            self.of[node] = cluster

    def _join_alias(self, node: Node, i: int) -> None:
        """A column in another shape is the same column."""
        cluster = self._cluster_of(node.operands[0])
        if cluster is not None and node.operands[0].node in cluster.columns:
            cluster.columns.add(node)
            self._enter(node, i, cluster)

    def _cluster_of(self, v: Value) -> Cluster | None:
        """The cluster in this window that a value comes from."""
        return self.of.get(v.node) if v.node in self.index else None

    def _reader_of(self, v: Value) -> Cluster | None:
        """The cluster in this window that last read a value as a whole."""
        node = self.readers.get(v)
        return None if node is None else self.of[node]

    def _merged(self, home: Cluster, cluster: Cluster) -> Cluster:
        """Two clusters as one; the nodes of the smaller one move."""
        if (prod(home.shape), len(home.nodes)) < (prod(cluster.shape), len(cluster.nodes)):
            home, cluster = cluster, home
        home.columns |= cluster.columns if home.shape == cluster.shape else set(cluster.nodes)
        home.inner = home.inner or cluster.inner
        home.nodes += cluster.nodes
        home.epilogues |= cluster.epilogues
        home.across |= cluster.across
        home.above |= cluster.above
        home.read |= cluster.read
        del self.clusters[cluster]
        for moved in cluster.nodes:
            self.of[moved] = home
        return home

    def _enter(self, node: Node, i: int, cluster: Cluster) -> None:
        outside = self.reads[i] & ~cluster.members
        cluster.outside |= outside
        cluster.needs |= self._with_ancestors(outside)
        for v in node.operands:
            if v.shape == cluster.shape:
                self.readers[v] = node
            elif v.node in self.index and node not in cluster.columns:
                broadcast = broadcast_of(v.shape, cluster.shape)
                if broadcast is not None and broadcast[0] == ROW:
                    cluster.across |= 1 << self.index[v.node]
        cluster.nodes.append(node)
        cluster.members |= 1 << i
        cluster.last = i
        cluster.above |= 1 << i | self.ancestors[i]
        self.of[node] = cluster
        self.clusters.pop(cluster, None)
        self.clusters[cluster] = None

    def _needs(self, i: int, members: int) -> int:
        """Bits of the nodes that a node reads, except members, and of everything these depend on."""
        return self._with_ancestors(self.reads[i] & ~members)

    def _with_ancestors(self, bits: int) -> int:
        """Bits of some nodes and of everything they depend on."""
        out = bits
        while bits:
            i = bits.bit_length() - 1
            out |= self.ancestors[i]
            # The latest comes first: its ancestors need not be looked at again.
            bits &= ~(self.ancestors[i] | 1 << i)
        return out

    def _reads_epilogue(self, reader: Cluster, cluster: Cluster) -> bool:
        """Whether a cluster reads what another one reduces, which is known only when all tiles are done."""
        return any(reader.outside >> self.index[epilogue] & 1 for epilogue in cluster.epilogues)

    def _reaches(self, needs: int, members: int) -> bool:
        """Whether nodes that are needed from outside depend on the members: then they cannot run together.

        A cluster runs as one, so a node that waits for one of its members waits for everything that any of them needs.
        """
        if needs & members:
            return True
        bits = needs
        first = (members & -members).bit_length() - 1
        pending = []
        for c in reversed(self.clusters):
            if c.last < first:  # it and all clusters before it precede every member
                break
            if not c.members & members:
                pending.append(c)
        while True:
            rest = []
            for c in pending:
                if not c.members & bits:
                    rest.append(c)
                elif c.above & members:
                    return True
                else:
                    bits |= c.above
            if len(rest) == len(pending):
                return False
            pending = rest


def _schedule(graph: Graph, of: dict[Node, Cluster], after: dict[Node, Node]) -> list[Node | Cluster]:
    """Orders the steps: each as early as its operands allow, in the order of the graph."""
    steps: list[Node | Cluster] = []
    done: set[Node | Cluster] = set()

    def place(first: Node | Cluster) -> None:
        stack: list[tuple[Node | Cluster, bool]] = [(first, False)]
        while stack:
            step, ready = stack.pop()
            if step in done:
                continue
            if ready:
                done.add(step)
                steps.append(step)
                continue
            stack.append((step, True))
            if step in after:
                stack.append((after[step], False))
            nodes = step.nodes if isinstance(step, Cluster) else [step]
            for node in reversed(nodes):
                for v in reversed(node.operands):
                    if v.node is not None:
                        before = of.get(v.node, v.node)
                        if before is not step and before not in done:
                            stack.append((before, False))

    for node in graph.nodes:
        place(of.get(node, node))
    return [part for step in steps for part in (_parts(step) if isinstance(step, Cluster) else [step])]


def _parts(cluster: Cluster) -> list[Node | Cluster]:
    """The parts of a cluster. If only one node works on whole tiles, fusing saves nothing: that node, and the rest."""
    if len(cluster.nodes) == 1:
        return [*cluster.nodes]
    if not cluster.columns:
        return [cluster]
    size = prod(cluster.shape)
    wide = [n for n in cluster.nodes if any(v.size == size for v in (*n.operands, *n.results))]
    if len(wide) > 1:
        return [cluster]
    rest = [n for n in cluster.nodes if n is not wide[0]]
    if sum(not n.op.row.alias for n in rest) < 2:
        return [wide[0], *rest]
    after = Cluster(wide[0].results[0].shape)
    after.nodes = rest
    return [wide[0], after]


def used_outside(steps: list[Node | Cluster], outputs: list[Value]) -> dict[Cluster, list[Value]]:
    """For each cluster, the results that others read."""
    readers: dict[Value, set[int]] = {}
    for number, step in enumerate(steps):
        for node in step.nodes if isinstance(step, Cluster) else [step]:
            for v in node.operands:
                readers.setdefault(v, set()).add(number)
    leaving = set(outputs)
    return {
        step: [
            r for node in step.nodes for r in node.results
            if r in leaving or node in step.epilogues or readers.get(r, set()) - {number}
        ]
        for number, step in enumerate(steps)
        if isinstance(step, Cluster)
    }  # fmt: skip
