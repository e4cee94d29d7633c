"""What is known about tensors while a function is traced: their shapes, and values that do not depend on any size."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base.contexts import aside
from gradtape._src.graph.callable import GraphFunction, extract
from gradtape._src.graph.calls import recorded_value
from gradtape._src.graph.ir import Callback, Node
from gradtape._src.graph.trace import current_recording


def narrow(tensor: Any, shape: Any) -> None:
    """Refines the shape of a tensor of a recording: `tensor.set_shape(shape)`."""
    recording, value = current_recording(), recorded_value(tensor)
    merged = tensor.shape.merge_with(shape)
    if recording is None or value is None or merged.rank is None:
        return
    value.static, value.unknown_rank = tuple(merged.as_list()), False
    _core.set_static_shape(tensor, value.static)
    for world in recording.worlds:
        x = world.frame[value]
        world.frame[value] = world.fresh(world.shape_of(value.static), value.dtype, [x], linear=True)


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The value of a tensor as an array, if it is known while a function is traced.

    Args:
      partial: has no effect; TensorFlow then returns a list of the elements that are known.

    Returns:
      An array, or None if the value is known only when the function runs.
    """
    if isinstance(tensor, _core.Variable):
        return None
    if not isinstance(tensor, _core.Tensor):
        return tensor
    if tensor._symbol is None:
        return tensor.numpy()
    recording, value = current_recording(), recorded_value(tensor)
    if recording is None or value is None:
        return folded(tensor)
    tensors = [world.frame[value] for world in recording.worlds]
    if any(x._symbol is not None for x in tensors):
        return None
    first, *others = [x.numpy() for x in tensors]
    return first if all(np.array_equal(first, other) for other in others) else None


def folded(tensor: Any) -> np.ndarray | None:
    """The value of a tensor computed only from constants of the trace (`Trace.keep_constant`), or None."""
    symbol = tensor._symbol
    if not getattr(symbol.graph, "keeps_constants", False):
        return None
    needed: set[Node] = set()
    values = [symbol]
    while values:
        value = values.pop()
        if value.constant is not None or value.node in needed:
            continue
        if value.node is None or isinstance(value.node.op, Callback):
            return None  # captured, random, or another effectful op
        needed.add(value.node)
        if value.node.op.row.pattern != "nothing":  # "nothing": it reads shapes only
            values += value.node.operands
    graph = extract([node for node in symbol.graph.nodes if node in needed], (), [symbol])
    with aside():
        return GraphFunction(graph).program.run([])[0].numpy()
