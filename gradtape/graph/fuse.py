"""Groups element-wise nodes, and the reductions behind them, into clusters.

A cluster runs as one loop over tiles of its iteration space, so what its members pass to each
other never reaches memory. Members have results of one shape; operands fill that shape, or
repeat along rows, along columns, or everywhere. Reductions of a member can end a cluster.
"""

from __future__ import annotations

from typing import NamedTuple

from gradtape.graph.ir import Callback, Graph, Node, Value

FULL, SCALAR, ROW, COLUMN = range(4)
OVER_ALL, OVER_ROWS, OVER_COLUMNS = range(3)

# Reductions that can be put together from the parts of several tiles.
TAILS = {
    "sum": "sum",
    "sum_to": "sum",
    "max": "max",
    "min": "min",
    "prod": "prod",
    "any": "any",
    "all": "all",
}
# Rows longer than this do not fit into a tile, so they are not reduced in one.
_LONGEST_ROW = 8192


class Split(NamedTuple):
    """How the iteration space is seen as [outer, inner]; inner is 0 while nothing decided it."""

    outer: int
    inner: int


class Cluster:
    """Nodes that run as one step."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.nodes: list[Node] = []
        self.members = 0  # bits of the indices of the nodes
        self.above = 0  # bits of the members and of all that they depend on
        self.outside = 0  # bits of the nodes elsewhere that members read
        self.needs = 0  # bits of those and of all that they depend on
        self.read = False  # whether a node elsewhere reads a member
        self.inner = 0  # 0: undecided, any split will do
        self.tails: list[Node] = []


def fuse(graph: Graph) -> list[Node | Cluster]:
    """The steps of the graph in an order in which they can run."""
    index = {node: i for i, node in enumerate(graph.nodes)}
    ancestors = [0] * len(graph.nodes)
    of: dict[Node, Cluster] = {}
    clusters: dict[Cluster, None] = {}
    called: Node | None = None  # the callback before this one: they run in the order of the graph
    after: dict[Node, Node] = {}
    for i, node in enumerate(graph.nodes):
        bits = 0
        for v in node.operands:
            if v.node is not None:
                bits |= ancestors[index[v.node]] | 1 << index[v.node]
        if isinstance(node.op, Callback) and not node.op.is_barrier:
            if called is not None:
                bits |= ancestors[index[called]] | 1 << index[called]
                after[node] = called
            called = node
        ancestors[i] = bits
        if _is_member(node):
            _join(node, i, of, index, ancestors, clusters)
        elif node.name in TAILS:
            _join_tail(node, i, of, index, ancestors)
        for v in node.operands:
            home = of.get(v.node) if v.node is not None else None
            if home is not None and home is not of.get(node):
                home.read = True
    return _schedule(graph, of, after)


def _is_member(node: Node) -> bool:
    return (node.op.row.kind == "elementwise" or node.name == "cast") and len(node.operands) <= 4


def spread_of(shape: tuple[int, ...], whole: tuple[int, ...]) -> tuple[int, int] | None:
    """How an operand of `shape` fills `whole`: (kind, inner), or None when it cannot be said."""
    size = _size(shape)
    if size == 1:
        return SCALAR, 0
    if size == _size(whole):
        return FULL, 0
    padded = (1,) * (len(whole) - len(shape)) + shape
    first = next(i for i, d in enumerate(padded) if d != 1)
    if padded[first:] == whole[first:]:
        return ROW, _size(whole[first:])
    last = max(i for i, d in enumerate(padded) if d != 1)
    if padded[: last + 1] == whole[: last + 1]:
        return COLUMN, _size(whole[last + 1 :])
    return None


def _size(shape: tuple[int, ...]) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


def _inner_of(node: Node) -> int | None:
    """The length of a row that the operands ask for: 0 for any, None when they disagree."""
    inner = 0
    for v in node.operands:
        spread = spread_of(v.shape, node.results[0].shape)
        if spread is None or (spread[1] and inner and spread[1] != inner):
            return None
        inner = inner or spread[1]
    return inner


def _join(
    node: Node,
    i: int,
    of: dict[Node, Cluster],
    index: dict[Node, int],
    ancestors: list[int],
    clusters: dict[Cluster, None],
) -> None:
    inner = _inner_of(node)
    shape = node.results[0].shape
    if inner is None or _size(shape) == 0:
        return
    home: Cluster | None = None
    for v in node.operands:
        cluster = of.get(v.node) if v.node is not None else None
        if cluster is None or cluster is home or cluster.shape != shape:
            continue
        if any(u.node in cluster.tails for u in node.operands):  # known only when all tiles are done
            continue
        if cluster.inner and inner and cluster.inner != inner:
            continue
        if home is None:
            mine = _needs(_outside(node, cluster.members, index), ancestors)
            if cluster.read and _reaches(mine, cluster.members, clusters):
                continue
            home = cluster
            inner = home.inner = home.inner or inner
        elif not _reads_tail(home, cluster, index) and not _reads_tail(cluster, home, index):
            members = home.members | cluster.members
            outside = (home.outside | cluster.outside) & ~members
            crossing = home.outside & cluster.members or cluster.outside & home.members
            needs = _needs(outside, ancestors) if crossing else home.needs | cluster.needs
            if _reaches(needs | _needs(_outside(node, members, index), ancestors), members, clusters):
                continue
            home.inner = home.inner or cluster.inner
            inner = home.inner
            home.nodes = sorted((*home.nodes, *cluster.nodes), key=index.__getitem__)
            home.tails += cluster.tails
            home.members, home.outside, home.needs = members, outside, needs
            home.above |= cluster.above
            home.read |= cluster.read
            del clusters[cluster]
            for moved in cluster.nodes:
                of[moved] = home
    if home is None:
        home = Cluster(shape)
        home.inner = inner
        clusters[home] = None
    _enter(node, i, home, of, index, ancestors)


def _reads_tail(reader: Cluster, cluster: Cluster, index: dict[Node, int]) -> bool:
    """Whether a cluster reads what another one reduces: that is known only when all tiles are done."""
    return any(reader.outside >> index[tail] & 1 for tail in cluster.tails)


def _enter(
    node: Node,
    i: int,
    cluster: Cluster,
    of: dict[Node, Cluster],
    index: dict[Node, int],
    ancestors: list[int],
) -> None:
    outside = _outside(node, cluster.members, index)
    cluster.outside |= outside
    cluster.needs |= _needs(outside, ancestors)
    cluster.nodes.append(node)
    cluster.members |= 1 << i
    cluster.above |= 1 << i | ancestors[i]
    of[node] = cluster


def _outside(node: Node, members: int, index: dict[Node, int]) -> int:
    """Bits of the nodes that a node reads and that are no members."""
    bits = 0
    for v in node.operands:
        if v.node is not None:
            bits |= 1 << index[v.node]
    return bits & ~members


def _needs(bits: int, ancestors: list[int]) -> int:
    """Bits of some nodes and of all that they depend on."""
    out = bits
    while bits:
        i = bits.bit_length() - 1
        out |= ancestors[i]
        # The youngest comes first: what it depends on need not be looked at again.
        bits &= ~(ancestors[i] | 1 << i)
    return out


def _reaches(needs: int, members: int, clusters: dict[Cluster, None]) -> bool:
    """Whether what is needed from outside depends on the members: then they cannot run together.

    A cluster runs as one, so whoever waits for one of its nodes waits for all that any of them needs.
    """
    bits = needs
    pending = [c for c in clusters if not c.members & members]
    while not bits & members:
        waited_for = [c for c in pending if c.members & bits]
        if not waited_for:
            return False
        for c in waited_for:
            bits |= c.above
        pending = [c for c in pending if not c.members & bits or c.above & ~bits]
    return True


def tail_over(node: Node) -> tuple[int, int] | None:
    """What a reduction sums over, and the row length it needs; None when it cannot be a tail."""
    (x,) = node.operands
    out = node.results[0]
    if _size(x.shape) == 0:
        return None
    if out.size == 1:
        return OVER_ALL, 0
    if node.name == "sum_to":
        spread = spread_of(out.shape, x.shape)
    else:
        axes = node.attrs[0]
        spread = spread_of(tuple(1 if i in axes else d for i, d in enumerate(x.shape)), x.shape)
    if spread is None or spread[0] == FULL or spread[1] > _LONGEST_ROW:
        return None
    return (OVER_ROWS, spread[1]) if spread[0] == ROW else (OVER_COLUMNS, spread[1])


def _join_tail(
    node: Node, i: int, of: dict[Node, Cluster], index: dict[Node, int], ancestors: list[int]
) -> None:
    (x,) = node.operands
    cluster = of.get(x.node) if x.node is not None else None
    over = tail_over(node)
    if cluster is None or x.node in cluster.tails or over is None or cluster.shape != x.shape:
        return
    if over[1] and cluster.inner and over[1] != cluster.inner:
        return
    if x.dtype not in (0, 11, 12):  # sums of integers and halves are made in wider types elsewhere
        return
    cluster.inner = cluster.inner or over[1]
    if over[0] != OVER_ALL and cluster.inner > _LONGEST_ROW:
        return
    cluster.tails.append(node)
    _enter(node, i, cluster, of, index, ancestors)


def _schedule(graph: Graph, of: dict[Node, Cluster], after: dict[Node, Node]) -> list[Node | Cluster]:
    """Orders the steps: each as early as what it reads allows, in the order of the graph."""
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
    # A cluster of one element-wise node without a tail is just that node.
    return [s.nodes[0] if isinstance(s, Cluster) and len(s.nodes) == 1 else s for s in steps]


def used_outside(steps: list[Node | Cluster], outputs: list[Value]) -> dict[Cluster, list[Value]]:
    """For each cluster the results that others read."""
    readers: dict[Value, set[int]] = {}
    for number, step in enumerate(steps):
        for node in step.nodes if isinstance(step, Cluster) else [step]:
            for v in node.operands:
                readers.setdefault(v, set()).add(number)
    leaving = set(outputs)
    return {
        step: [
            r for node in step.nodes for r in node.results
            if r in leaving or node in step.tails or readers.get(r, set()) - {number}
        ]
        for number, step in enumerate(steps)
        if isinstance(step, Cluster)
    }  # fmt: skip
