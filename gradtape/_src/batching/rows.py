"""`map_fn`, `scan`, `foldl`, `foldr` and Python functions as ops, while a function is traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import nest
from gradtape._src.base.errors import Untraceable
from gradtape._src.control import control
from gradtape._src.control.control_ops import Eager
from gradtape._src.control.tensor_array import TensorArray
from gradtape._src.graph.ir import Callback, symbolic


def _loop(count: int, skip: int, reverse: bool, values: Sequence[Any], body: Callable) -> list:
    """Runs `values = body(i, values)` for the rows from `skip` on; in reverse, from the last row but `skip` down."""

    def step(carry: list) -> list:
        place = count - 1 - carry[0] if reverse else carry[0]
        return [carry[0] + 1, *body(place, carry[1:])]

    first, *init = [skip, *values]
    return control.loop([first, *init], None, lambda carry: carry[0] < count, step, iterates=count > skip)[1:]


def _row(elems: Any, tensors: Sequence[Any], i: Any) -> Any:
    return nest.pack_sequence_as(elems, [ops.gather(t, i) for t in tensors])


def _tensors(elems: Any) -> list:
    return [ops.convert_to_tensor(e) for e in nest.flatten(elems)]


def map_rows(fn: Callable, elems: Any, signature: Any, arrays: list[TensorArray]) -> Any:
    """`tf.map_fn`: the results of each row go into `arrays`."""
    tensors = _tensors(elems)

    def body(i: Any, carry: list) -> list:
        result = fn(_row(elems, tensors, i))
        nest.assert_same_structure(signature, result)
        return [array.write(i, value) for array, value in zip(carry, nest.flatten(result), strict=True)]

    done = _loop(tensors[0].shape[0], 0, False, arrays, body)
    return nest.pack_sequence_as(signature, [array.stack() for array in done])


def scan_rows(fn: Callable, elems: Any, initializer: Any, reverse: bool, keep: bool) -> Any:
    """`tf.scan`, or without `keep` a fold."""
    tensors = _tensors(elems)
    count = tensors[0].shape[0]
    structure = elems if initializer is None else initializer
    if initializer is None:
        value = [t[count - 1 if reverse else 0] for t in tensors]
    else:
        value = _tensors(initializer)
    n = len(value)
    arrays = [TensorArray(v.dtype, count, element_shape=v.shape) for v in value] if keep else []
    if initializer is None:
        arrays = (
            [a.write(count - 1 if reverse else 0, v) for a, v in zip(arrays, value, strict=True)]
            if keep
            else []
        )

    def body(i: Any, carry: list) -> list:
        result = fn(nest.pack_sequence_as(structure, carry[:n]), _row(elems, tensors, i))
        nest.assert_same_structure(structure, result)
        flat = _tensors(result)
        return [*flat, *(a.write(i, v) for a, v in zip(carry[n:], flat if keep else [], strict=True))]

    done = _loop(count, 0 if initializer is not None else 1, reverse, [*value, *arrays], body)
    flat = [a.stack() for a in done[n:]] if keep else done[:n]
    return nest.pack_sequence_as(structure, flat)


def python_op(
    name: str, run: Callable[[list], list], inputs: Sequence[Any], specs: Sequence[Any], grads: bool
) -> list:
    """A Python function that runs each time the graph runs. Its results must have known shapes.

    Args:
      specs: for each result its (type, shape or None).
      grads: whether tapes follow what it does.
    """
    kinds = []
    for dtype, shape in specs:
        if shape is None or not shape.is_fully_defined():
            raise Untraceable(
                f"{name}: the shapes of its results are not known. Hint: Tout=tf.TensorSpec(shape, dtype)"
            )
        kinds.append((tuple(shape), dtype._code))
    if grads:
        return Eager(name, run, kinds, effect=True)(list(inputs))
    op = Callback(name, lambda *xs: run(list(xs)), effect=True)
    trace = _core.current_trace()
    results = trace.add(op, [trace.value_of(x) for x in inputs], (), kinds)
    return [symbolic(v) for v in results]
