"""What the native core asks Python for: the rare conversions, and the types it cannot know.

The core calls these functions where speed does not matter: an operand that is no number and no
tensor, an index that is a mask, the sum of two sparse gradients. `install()` hands them over.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core, dtypes, errors
from gradtape.indexed_slices import IndexedSlices
from gradtape.shape import TensorShape

_INT32 = dtypes.int32._code
_FLOAT = frozenset(d._code for d in dtypes.BY_CODE if d.is_floating or d.is_complex)


def convert(value: Any, code: int = -1) -> _core.Tensor:
    """Any value as a tensor; of type number `code` unless that is -1."""
    if isinstance(value, (_core.Tensor, _core.Variable)):
        wanted = dtypes.BY_CODE[code].name
        raise ValueError(
            f"Tensor conversion requested dtype {wanted} for Tensor with dtype {value.dtype.name}: {value!r}. "
            f"Hint: tf.cast(x, tf.{wanted})."
        )
    if isinstance(value, IndexedSlices):
        dense = value._dense()
        return dense if code in (-1, dense.dtype._code) else convert(dense, code)
    if isinstance(value, (list, tuple)):
        return _from_sequence(value, code)
    if hasattr(type(value), "__tf_tensor__"):
        return value.__tf_tensor__(None if code < 0 else dtypes.BY_CODE[code])
    if isinstance(value, TensorShape):
        return convert(np.array(value.as_list(), np.int32 if code < 0 else None), code)
    return _from_array(value, code)


def _from_sequence(value: list | tuple, code: int) -> _core.Tensor:
    if not _holds_tensors(value):
        return _from_array(value, code)
    from gradtape import ops

    first = next((_dtype_code(v) for v in _leaves(value) if _dtype_code(v) >= 0), code)
    return ops.stack([_core_tensor(v, code if code >= 0 else first) for v in value], 0)


def _core_tensor(value: Any, code: int) -> _core.Tensor:
    if isinstance(value, _core.Tensor):
        return value
    return value._read() if isinstance(value, _core.Variable) else _number(value, code)


def _number(value: Any, code: int) -> _core.Tensor:
    return convert(value, code)


def _leaves(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        for v in value:
            yield from _leaves(v)
    else:
        yield value


def _dtype_code(value: Any) -> int:
    return value.dtype._code if isinstance(value, (_core.Tensor, _core.Variable)) else -1


def _holds_tensors(value: list | tuple, depth: int = 0) -> bool:
    if depth > 32:
        raise ValueError("convert_to_tensor: lists are nested more than 32 deep (does one contain itself?)")
    return any(
        _holds_tensors(v, depth + 1)
        if isinstance(v, (list, tuple))
        else isinstance(v, (_core.Tensor, _core.Variable)) or hasattr(type(v), "__tf_tensor__")
        for v in value
    )


def _from_array(value: Any, code: int) -> _core.Tensor:
    plain = not hasattr(value, "dtype")
    if value is None:
        raise ValueError("Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to a Tensor.")
    try:
        array = np.asarray(value)
    except ValueError as e:
        raise ValueError(f"convert_to_tensor: {value!r} is not rectangular; every row must have the same length") from e
    if array.dtype.kind in "OUSVMm":
        raise _unsupported(value, array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if plain and array.dtype == np.float64 and code < 0:
        array = array.astype(np.float32)
    elif plain and array.dtype.kind == "i" and code < 0:
        array = _narrow(array)
    elif plain and array.dtype.kind == "u" and code < 0:
        raise ValueError(f"convert_to_tensor: {value!r} does not fit into int64")
    if code >= 0:
        array = _to_code(array, code, value)
        return _core.from_buffer(np.ascontiguousarray(array).reshape(array.shape), code)
    dtype = dtypes.from_numpy(array.dtype)
    if dtype is dtypes.bfloat16:
        array = array.view(np.uint16)
    return _core.from_buffer(np.ascontiguousarray(array).reshape(array.shape), dtype._code)


def _narrow(array: np.ndarray) -> np.ndarray:
    """Python ints are int32 where they fit, as in TensorFlow."""
    small = np.iinfo(np.int32)
    if array.size == 0 or (array.min() >= small.min and array.max() <= small.max):
        return array.astype(np.int32)
    return array


def _to_code(array: np.ndarray, code: int, value: Any) -> np.ndarray:
    wanted = dtypes.BY_CODE[code]
    kind = array.dtype.kind
    loses = (
        (kind in "fc" and not (wanted.is_floating or wanted.is_complex) and array.size > 0)
        or (kind == "c" and not wanted.is_complex)
        or (wanted.is_bool and kind != "b" and array.size > 0)
    )
    if loses:
        shown = value if np.ndim(value) == 0 else f"an array of {array.dtype}"
        raise TypeError(f"Cannot convert {shown} to EagerTensor of dtype {wanted.name}. Hint: tf.cast the tensor, or the value.")
    if wanted.is_integer and kind in "iu" and array.size:
        limits = np.iinfo(wanted.as_numpy_dtype)
        if array.min() < limits.min or array.max() > limits.max:
            raise ValueError(f"Can't convert Python sequence with out-of-range integer to Tensor of dtype {wanted.name}: {value!r}")
    if wanted is dtypes.bfloat16:
        from gradtape import ops

        wide = _core.from_buffer(np.ascontiguousarray(array, np.float32).reshape(array.shape), dtypes.float32._code)
        return np.asarray(ops.cast(wide, wanted)).view(np.uint16)
    return array.astype(wanted.as_numpy_dtype, copy=False)


def _unsupported(value: Any, array: np.ndarray) -> Exception:
    if array.dtype.kind in "US":
        return TypeError(
            f"convert_to_tensor: {value!r} is text, and gradtape has no string tensors. Hint: keep text in Python lists."
        )
    for leaf in _leaves(value) if isinstance(value, (list, tuple)) else [value]:
        if leaf is None:
            return ValueError("Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to a Tensor.")
    return ValueError(f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to a Tensor.")


def index(x: _core.Tensor, key: Any) -> _core.Tensor:
    """`x[key]` for keys the core does not know: boolean masks, and errors."""
    from gradtape import ops

    mask = key
    if isinstance(mask, np.ndarray) and mask.dtype == bool:
        mask = convert(mask)
    if isinstance(mask, (_core.Tensor, _core.Variable)) and mask.dtype is dtypes.bool:
        return ops.boolean_mask(x, mask)
    if isinstance(key, (tuple, list)) and any(isinstance(k, np.integer) for k in key):
        return x[tuple(int(k) if isinstance(k, np.integer) else k for k in key)]
    if isinstance(key, np.integer):
        return x[int(key)]
    raise TypeError(
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are "
        f"valid indices, got {key!r}. Hint: tf.gather(x, indices) takes rows, tf.boolean_mask(x, mask) selects."
    )


def accumulate(g: Any, h: Any) -> Any:
    """The sum of two gradients, at least one of them sparse."""
    from gradtape import ops

    if isinstance(g, IndexedSlices) and isinstance(h, IndexedSlices):
        indices = [g.indices, h.indices]
        if indices[0].dtype is not indices[1].dtype:
            indices = [ops.cast(i, dtypes.int64) for i in indices]
        return IndexedSlices(ops.concat([g.values, h.values], 0), ops.concat(indices, 0), g._dense_shape)
    return densify(g) + densify(h)


def densify(g: Any) -> _core.Tensor:
    """A sparse gradient as a tensor; a tensor as it is."""
    return g._dense() if isinstance(g, IndexedSlices) else g if isinstance(g, _core.Tensor) else convert(g)


class _Probe:
    """Stands for a value while a rule is traced, and notes whether the rule computes with it."""

    def __init__(self) -> None:
        self.used = False

    def trace(self, op: Any, operands: tuple, results: tuple, attrs: tuple) -> None:
        for x in operands:
            if x._symbol is not None:
                x._symbol.used = True
        for r in results:
            r._symbol = _Probe()


def reads(op: Any, operands: tuple, outputs: tuple, attrs: tuple) -> list[int]:
    """For each rule of `op`, the values (operands, then results) that it computes with, as bits.

    Found by running the rule once on tensors without a value. Shapes and types may be looked
    at freely: they are always kept.
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
            _core.symbolic(tuple(v.shape), v.dtype._code, p) for v, p in zip((*operands, *outputs), probes, strict=True)
        ]
        ins, outs = values[: len(operands)], values[len(operands) :]
        gs = [_core.symbolic(tuple(o.shape), o.dtype._code, _Probe()) for o in outs]
        many = row.many
        g, out = (tuple(gs), tuple(outs)) if many else (gs[0], outs[0])
        variadic = row.operands[0].kind == "Operands"
        arguments = (tuple(ins),) if variadic else tuple(ins)
        try:
            given = rule(*arguments, out) if kind == 3 else rule(g, *arguments, out, *attrs)
        except Exception:
            masks.append(everything)  # a rule that needs real values: keep all of them
            continue
        for returned in given if isinstance(given, (tuple, list)) else (given,):
            if isinstance(returned, _core.Tensor) and returned._symbol is not None:
                returned._symbol.used = True
        # Bit 62 stands for all operands from the 63rd on, bit 63 for all results beyond.
        bits = 0
        for i, probe in enumerate(probes):
            if probe.used:
                bits |= 1 << min(i, 62 if i < len(operands) else 63)
        masks.append(bits)
    return masks


def dtype_code(value: Any) -> int:
    dtype = dtypes.as_dtype(value)
    if dtype._code < 0:
        raise TypeError(f"gradtape has no tensors of type {dtype.name}. Hint: keep such data in Python objects.")
    return dtype._code


def _graph_inputs(specs: list) -> tuple:
    from gradtape.graph import backward

    return backward.graph_inputs(specs)


def _graph_program(graph: Any, results: list) -> tuple:
    from gradtape.graph import backward

    return backward.graph_program(graph, results)


def install() -> None:
    """Gives the functions above to the core."""
    e = errors
    _core.set_hooks(
        {
            "convert": convert,
            "shape": TensorShape._from_dims,
            "dtypes": dtypes.BY_CODE,
            "reads": reads,
            "index": index,
            "accumulate": accumulate,
            "densify": densify,
            # in the order of Code in core/error.h
            "errors": (
                e.InvalidArgumentError,
                e.ResourceExhaustedError,
                e.UnimplementedError,
                TypeError,
                ValueError,
                IndexError,
                RuntimeError,
                LookupError,
            ),
            "graph_inputs": _graph_inputs,
            "graph_program": _graph_program,
            "slices": IndexedSlices,
            "dtype_code": dtype_code,
            "np_empty": np.empty,
            "np_dtypes": tuple(
                np.float32 if d is dtypes.bfloat16 else np.dtype(d.as_numpy_dtype).type for d in dtypes.BY_CODE
            ),
        }
    )
