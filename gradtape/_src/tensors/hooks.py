"""Python functions that the native core calls: rare conversions, and types that are defined in Python.

The core calls these functions where speed does not matter: for an operand that is neither a number nor a tensor, an
index that is a mask, the sum of two sparse gradients. `install()` registers them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes, errors, log, settings
from gradtape._src.base.errors import NeedsConstants, Untraceable
from gradtape._src.base.shape import TensorShape
from gradtape._src.tensors import above, protocol, stored, text
from gradtape._src.tensors.conversion import convert, densify, dtype_code
from gradtape._src.tensors.indexed_slices import IndexedSlices

_DERIVATIVE = _core.rule_kinds()["Derivative"]


def index(x: _core.Tensor, key: Any) -> _core.Tensor:
    """`x[key]` for keys the core does not handle: boolean masks, and errors."""
    mask = key
    if isinstance(mask, np.ndarray) and mask.dtype == bool:
        mask = convert(mask)
    if isinstance(mask, (_core.Tensor, _core.Variable)) and mask.dtype is dtypes.bool:
        return above.ops.boolean_mask(x, mask)
    parts = key if isinstance(key, (tuple, list)) else (key,)
    if any(_is_symbol(k) or (isinstance(k, slice) and any(map(_is_symbol, _bounds(k)))) for k in parts):
        return _index_by_symbols(x, list(parts))
    if any(map(_is_integer, parts)):
        return x[tuple(int(k) if _is_integer(k) else k for k in parts)]
    raise TypeError(
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 "
        "tensors are "
        f"valid indices, got {key!r}. Hint: tf.gather(x, indices) takes rows, tf.boolean_mask(x, mask) "
        "selects."
    )


def _is_integer(k: Any) -> bool:
    """Whether `k` is a NumPy integer, or a scalar array, of a type that TensorFlow accepts as an index."""
    if isinstance(k, np.integer):
        return True
    return isinstance(k, np.ndarray) and k.ndim == 0 and k.dtype in (np.int16, np.int32, np.int64)


def _is_symbol(k: Any) -> bool:
    return isinstance(k, _core.Tensor) and k._symbol is not None and k.ndim == 0 and k.dtype.is_integer


def _bounds(k: slice) -> tuple:
    return k.start, k.stop, k.step


def _window(k: slice) -> int | None:
    """The length of a slice written as `i : i + n`, which is known even if `i` is not."""
    if k.step not in (None, 1) or not (_is_symbol(k.start) and _is_symbol(k.stop)):
        return None
    node = getattr(k.stop._symbol, "node", None)
    if node is None or node.name != "add":
        return None
    for start, length in (node.operands, node.operands[::-1]):
        if start is k.start._symbol and length.constant is not None:
            return max(int(length.constant), 0)
    return None


def _index_by_symbols(x: _core.Tensor, parts: list) -> _core.Tensor:
    """`x[parts]` in a trace, with integers that have no value yet; their axes are gathered first."""
    axis = 0
    for i, k in enumerate(parts):
        if k is Ellipsis:
            axis += x.ndim - sum(p is not None and p is not Ellipsis for p in parts)
            continue
        if isinstance(k, slice) and any(map(_is_symbol, _bounds(k))):
            count = _window(k)
            if count is None:
                raise errors.Untraceable("the length of a slice depends on values")
            x = _gather(x, k.start + above.ops.range_(count, dtype=k.start.dtype), axis)
            parts[i] = slice(None)
        if _is_symbol(k):
            place = above.ops.select(k < 0, k + x.shape[axis], k)
            x = _gather(x, above.ops.reshape(place, [1]), axis)
            parts[i] = 0
        axis += k is not None
    return x[tuple(parts)]


def _gather(x: _core.Tensor, indices: _core.Tensor, axis: int) -> _core.Tensor:
    """`gather`, with a gradient that is also dense along the first axis."""
    return above.ops.indexed.gather_batched(x, indices, axis, 0)


def accumulate(g: Any, h: Any) -> Any:
    """The sum of two gradients, at least one of them sparse."""
    if isinstance(g, IndexedSlices) and isinstance(h, IndexedSlices):
        indices = [g.indices, h.indices]
        if indices[0].dtype is not indices[1].dtype:
            indices = [above.ops.cast(i, dtypes.int64) for i in indices]
        return IndexedSlices(
            above.ops.concat([g.values, h.values], 0), above.ops.concat(indices, 0), g._dense_shape
        )
    return densify(g) + densify(h)


def times_bools(x: Any, y: Any) -> _core.Tensor:
    """`x * y` with at least one tensor of bools: whether both are nonzero integers. As in TensorFlow, never a number."""
    cast = above.ops.cast
    return cast(cast(x, dtypes.int32) * cast(y, dtypes.int32), dtypes.bool)


class _Probe:
    """A placeholder for a value while a rule is traced; records whether the rule computes with it."""

    def __init__(self) -> None:
        self.used = False

    def trace(self, op: Any, operands: tuple, results: tuple, attrs: tuple) -> None:
        for x in operands:
            if x._symbol is not None:
                x._symbol.used = True
        for r in results:
            r._symbol = _Probe()


def reads(op: Any, operands: tuple, outputs: tuple, attrs: tuple) -> list[int]:
    """For each rule of `op`, a bit mask of the values (operands, then results) that it computes with.

    They are found by running the rule once on tensors without values: these are the residuals that must be saved
    for the backward pass. Shapes and types are always available.
    """
    everything = (1 << 64) - 1
    masks = []
    row = op.row
    for kind, rule in row.rules:
        if rule is None:
            masks.append(0)
            continue
        probes = [_Probe() for _ in range(len(operands) + len(outputs))]
        values = [
            _core.symbolic(tuple(v.shape), v.dtype._code, p)
            for v, p in zip((*operands, *outputs), probes, strict=True)
        ]
        ins, outs = values[: len(operands)], values[len(operands) :]
        gs = [_core.symbolic(tuple(o.shape), o.dtype._code, _Probe()) for o in outs]
        many = row.many
        g, out = (tuple(gs), tuple(outs)) if many else (gs[0], outs[0])
        variadic = row.operands[0].kind == "Operands"
        arguments = (tuple(ins),) if variadic else tuple(ins)
        try:
            given = rule(*arguments, out) if kind == _DERIVATIVE else rule(g, *arguments, out, *attrs)
        except Exception:
            masks.append(everything)  # a rule that needs real values: all of them are residuals
            continue
        for returned in given if isinstance(given, (tuple, list)) else (given,):
            if isinstance(returned, _core.Tensor) and returned._symbol is not None:
                returned._symbol.used = True
        # Bit 62 is for all operands from the 63rd on, bit 63 for all further results.
        bits = 0
        for i, probe in enumerate(probes):
            if probe.used:
                bits |= 1 << min(i, 62 if i < len(operands) else 63)
        masks.append(bits)
    return masks


def _graph_inputs(specs: protocol.Specs) -> tuple[Any, list]:
    return above.backward.graph_inputs(specs)


_said: set[str] = set()


def _not_compiled(error: Exception, ours: bool) -> None:
    """Called when tracing or compiling a backward pass failed, so that it runs rule by rule, with the same results."""
    if not ours or isinstance(error, (Untraceable, NeedsConstants)):
        return  # a rule needs values
    if settings.raise_compile_errors:
        raise error
    words = f"{type(error).__name__}: {error}"
    if words not in _said and len(_said) < 100:
        _said.add(words)
        log.warning("a backward pass could not be compiled and runs by its rules, more slowly: %s", words)


def _graph_program(graph: Any, results: list, dense: bool) -> tuple:
    return above.backward.graph_program(graph, results, dense)


def fetch(array: Any) -> np.ndarray:
    """The bytes of an array on a device, in row-major order; on a CPU, its own memory."""
    return np.ascontiguousarray(np.asarray(array)).reshape(-1).view(np.uint8)


def _run_held(op: Any, operands: tuple, attrs: tuple) -> Any:
    """An op on values that Python holds: strings, or types that are only stored."""
    for x in operands:
        if x.dtype._code in dtypes.HELD:
            if not op.row.dtypes >> x.dtype._code & 1:  # an operand that need not have the common type
                raise errors.ArgumentError(
                    f"{op.op_name}: not defined for {x.dtype.name}, which is not in the list of allowed values."
                )
            return (stored if x.dtype._kind == "s" else text).run(op, operands, attrs)
    dtype = next(a for a in attrs if isinstance(a, dtypes.DType) and a._code in dtypes.HELD)
    return (stored if dtype._kind == "s" else text).run(op, operands, attrs)


def install() -> None:
    """Registers the functions above with the core."""
    e = errors
    _core.set_hooks(
        protocol.Hooks(
            convert=convert,
            shape=TensorShape._from_dims,
            dtypes=dtypes.BY_CODE,
            reads=reads,
            index=index,
            accumulate=accumulate,
            densify=densify,
            # in the order of Code in core/error.h
            errors=(
                e.InvalidArgumentError,
                e.ResourceExhaustedError,
                e.UnimplementedError,
                e.core_type_error,
                e.core_value_error,
                IndexError,
                RuntimeError,
                LookupError,
                e.Untraceable,
            ),
            argument_error=e.ArgumentError,
            graph_inputs=_graph_inputs,
            graph_program=_graph_program,
            not_compiled=_not_compiled,
            slices=IndexedSlices,
            dtype_code=dtype_code,
            np_empty=np.empty,
            np_dtypes=tuple(
                np.float32 if isinstance(d._numpy, str) else np.dtype(d._numpy).type for d in dtypes.BY_CODE
            ),
            fetch=fetch,
            held=_run_held,
            stored=stored.shown,
            times_bools=times_bools,
            locate=e.locate,
        )
    )
