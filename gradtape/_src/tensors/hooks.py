"""What the native core asks Python for: the rare conversions, and the types it cannot know.

The core calls these functions where speed does not matter: an operand that is no number and no
tensor, an index that is a mask, the sum of two sparse gradients. `install()` hands them over.
"""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes, errors, log, settings
from gradtape._src.base.errors import NeedsConstants, Untraceable
from gradtape._src.base.shape import TensorShape
from gradtape._src.tensors import above
from gradtape._src.tensors.indexed_slices import IndexedSlices

_INT32 = dtypes.int32._code
_DERIVATIVE = _core.rule_kinds()["Derivative"]


def convert(value: Any, code: int = -1) -> _core.Tensor:
    """Any value as a tensor; of type number `code` unless that is -1."""
    if isinstance(value, (_core.Tensor, _core.Variable)):
        wanted = dtypes.BY_CODE[code].name
        raise ValueError(
            f"Tensor conversion requested dtype {wanted} for Tensor with dtype {value.dtype.name}: "
            f"{value!r}. "
            f"Hint: tf.cast(x, tf.{wanted})."
        )
    if isinstance(value, (list, tuple)):
        return _from_sequence(value, code)
    if hasattr(type(value), "__tf_tensor__"):
        return value.__tf_tensor__(None if code < 0 else dtypes.BY_CODE[code])
    if isinstance(value, TensorShape):
        return _from_array(value.as_list(), code if code >= 0 or None in value.as_list() else _INT32)
    return _from_array(value, code)


def _from_sequence(value: list | tuple, code: int) -> _core.Tensor:
    if not _holds_tensors(value):
        return _from_array(value, code)
    if code < 0:
        code = next((_dtype_code(v) for v in _leaves(value) if _dtype_code(v) >= 0), code)
    return above.ops.stack([_element(v, code) for v in value], 0)


def _element(value: Any, code: int) -> _core.Tensor:
    if isinstance(value, _core.Variable):
        value = value._read()
    return value if isinstance(value, _core.Tensor) else convert(value, code)


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


def _frozen(value: list | tuple) -> tuple:
    """Lists as tuples: NumPy crashes when what it asks of an element changes the list that it reads."""
    return tuple(_frozen(v) if isinstance(v, list) else v for v in value)


_NONE = (
    "Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to a Tensor. Hint: a gradient "
    "that does not exist is None." + errors.more("none-gradients")
)


def _from_array(value: Any, code: int) -> _core.Tensor:
    if value is None:
        raise ValueError(_NONE)
    try:
        array = np.asarray(_frozen(value) if isinstance(value, list) else value)
    except ValueError as e:
        raise ValueError(
            f"convert_to_tensor: {_short(value)} is not rectangular; every row must have the same length"
        ) from e
    if array.dtype.kind in "OUSVMm" and array.dtype.name != "bfloat16":  # ml_dtypes calls its kind V
        raise _unsupported(value, array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    plain = not _is_array(value)
    if code >= 0:
        if plain:
            _check_fits(array, code, value)
        return _cast_array(array, code)
    if plain:
        array = _as_python_values(array, value)
    elif array.dtype.kind in "fc" and array.dtype.itemsize > 8 * (1 + array.dtype.kind.count("c")):
        raise ValueError(
            f"Failed to convert a NumPy array to a Tensor (Unsupported numpy type: {array.dtype})."
        )
    dtype = dtypes.from_numpy(array.dtype)
    if dtype is dtypes.bfloat16:
        array = array.view(np.uint16)
    return _dense(array, dtype._code)


def _is_array(value: Any) -> bool:
    """Whether a value has a type of its own: NumPy's arrays and numbers, and what turns into them (pandas). Other
    buffers are sequences of Python numbers, as in TensorFlow."""
    return hasattr(value, "dtype") or hasattr(value, "__array__") or hasattr(value, "__array_interface__")


def _dense(array: np.ndarray, code: int) -> _core.Tensor:
    return _core.from_buffer(np.ascontiguousarray(array).reshape(array.shape), code)


def _as_python_values(array: np.ndarray, value: Any) -> np.ndarray:
    """The types that Python numbers have as tensors: int32 where they fit, complex128, and float32, unless
    the first element of a list has a float type of its own."""
    kind = array.dtype.kind
    if (
        kind == "f"
        and array.size
        and isinstance(value, (list, tuple))
        and all(map(_holds_integers, _leaves(value)))
    ):
        kind, array = "u", np.array(value, object)  # NumPy makes float64 of int64 and uint64
    if kind in "iu":
        if kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
            raise ValueError(
                f"convert_to_tensor: {_short(value)} holds an out-of-range integer; expected one that fits "
                "into int64"
            )
        small = np.iinfo(np.int32)
        fits = array.size == 0 or (array.min() >= small.min and array.max() <= small.max)
        return array.astype(np.int32 if fits else np.int64)
    if kind == "f":
        first: Any = next(_leaves(value), None) if isinstance(value, (list, tuple)) else None
        own = np.asarray(first if _is_array(first) else np.float32(0)).dtype
        known = own.kind == "f" and own.itemsize <= 8
        return array.astype(own.newbyteorder("=") if known else np.float32, copy=False)
    return array.astype(np.complex128, copy=False) if kind == "c" else array


def _holds_integers(value: Any) -> bool:
    return isinstance(value, int) or (_is_array(value) and np.asarray(value).dtype.kind in "iu")


def _check_fits(array: np.ndarray, code: int, value: Any) -> None:
    """Refuses to turn Python numbers into a type that cannot hold them. NumPy values are cast
    without a question, as in TensorFlow."""
    wanted = dtypes.BY_CODE[code]
    kind = array.dtype.kind
    loses = (
        (kind in "fc" and not (wanted.is_floating or wanted.is_complex))
        or (kind == "c" and not wanted.is_complex)
        or (wanted.is_bool and kind != "b")
    )
    if loses and array.size > 0:
        raise TypeError(
            f"Cannot convert {_short(value)} to EagerTensor of dtype {wanted.name}. Hint: tf.cast the "
            "tensor, or the value."
        )
    if wanted.is_integer and kind in "iu" and array.size:
        limits = np.iinfo(wanted.as_numpy_dtype)
        if array.min() < limits.min or array.max() > limits.max:
            raise ValueError(
                "Can't convert Python sequence with out-of-range integer to Tensor of dtype "
                f"{wanted.name}: {_short(value)}"
            )


def _cast_array(array: np.ndarray, code: int) -> _core.Tensor:
    wanted = dtypes.BY_CODE[code]
    if array.dtype.kind == "c" and not wanted.is_complex:
        array = array.real
    if wanted is dtypes.bfloat16:
        if array.dtype.name == "bfloat16":
            return _dense(array.view(np.uint16), code)
        return above.ops.cast(_cast_array(array, dtypes.float32._code), wanted)
    with np.errstate(over="ignore", invalid="ignore"):
        return _dense(array.astype(wanted.as_numpy_dtype, copy=False), code)


def _short(value: Any) -> str:
    """`repr(value)`, cut where it would fill the screen."""
    return reprlib.repr(value)


class TextError(errors.InvalidArgumentError, TypeError):
    """Text where numbers belong: TensorFlow has tensors of it, and ops that refuse them."""


def _unsupported(value: Any, array: np.ndarray) -> Exception:
    if array.dtype.kind in "US":
        return TextError(
            f"convert_to_tensor: {_short(value)} is text, and gradtape has no string tensors. Hint: keep "
            "text in Python lists."
        )
    if isinstance(value, np.ndarray):
        return ValueError(
            f"Failed to convert a NumPy array to a Tensor (Unsupported object type: dtype {array.dtype}). "
            "Hint: array.astype(np.float32), if it holds numbers of one shape."
        )
    leaves = _leaves(value) if isinstance(value, (list, tuple)) else [value]
    leaf = next((v for v in leaves if not isinstance(v, (bool, int, float, complex, np.number))), value)
    if leaf is None:
        return ValueError(_NONE)
    if isinstance(leaf, (int, float, complex, np.number)):
        return ValueError(
            f"convert_to_tensor: {_short(leaf)} is out of range; expected an integer that fits into int64"
        )
    return ValueError(
        f"Attempt to convert a value ({_short(leaf)}) with an unsupported type ({type(leaf)}) to a Tensor."
    )


def index(x: _core.Tensor, key: Any) -> _core.Tensor:
    """`x[key]` for keys the core does not know: boolean masks, and errors."""
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
    """An integer of NumPy, or an array of one without axes, of a type that TensorFlow takes for an index."""
    if isinstance(k, np.integer):
        return True
    return isinstance(k, np.ndarray) and k.ndim == 0 and k.dtype in (np.int16, np.int32, np.int64)


def _is_symbol(k: Any) -> bool:
    return isinstance(k, _core.Tensor) and k._symbol is not None and k.ndim == 0 and k.dtype.is_integer


def _bounds(k: slice) -> tuple:
    return k.start, k.stop, k.step


def _window(k: slice) -> int | None:
    """The length of a slice that is written `i : i + n`, which is known though `i` is not."""
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
    """`x[parts]` in a trace, with integers that have no value yet: their axes are gathered first."""
    axis = 0
    x = above.ops.identity(x)  # its gradient is dense, which that of a gather alone is not
    for i, k in enumerate(parts):
        if k is Ellipsis:
            axis += x.ndim - sum(p is not None and p is not Ellipsis for p in parts)
            continue
        if isinstance(k, slice) and any(map(_is_symbol, _bounds(k))):
            count = _window(k)
            if count is None:
                raise errors.Untraceable("the length of a slice depends on values")
            x = above.ops.gather(x, k.start + above.ops.range_(count, dtype=k.start.dtype), axis=axis)
            parts[i] = slice(None)
        if _is_symbol(k):
            place = above.ops.select(k < 0, k + x.shape[axis], k)
            x = above.ops.gather(x, above.ops.reshape(place, [1]), axis=axis)
            parts[i] = 0
        axis += k is not None
    return x[tuple(parts)]


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
        raise TypeError(
            f"gradtape has no tensors of type {dtype.name}. Hint: keep such data in Python objects."
        )
    return dtype._code


def _graph_inputs(specs: list) -> tuple:
    return above.backward.graph_inputs(specs)


_said: set[str] = set()


def _not_compiled(error: Exception, ours: bool) -> None:
    """A backward pass runs by its rules, because tracing or compiling it failed. Results do not depend on it."""
    if not ours or isinstance(error, (Untraceable, NeedsConstants)):
        return  # a rule looks at values
    if settings.raise_compile_errors:
        raise error
    words = f"{type(error).__name__}: {error}"
    if words not in _said and len(_said) < 100:
        _said.add(words)
        log.warning("a backward pass could not be compiled and runs by its rules, more slowly: %s", words)


def _graph_program(graph: Any, results: list, dense: bool) -> tuple:
    return above.backward.graph_program(graph, results, dense)


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
                e.Untraceable,
            ),
            "graph_inputs": _graph_inputs,
            "graph_program": _graph_program,
            "not_compiled": _not_compiled,
            "slices": IndexedSlices,
            "dtype_code": dtype_code,
            "np_empty": np.empty,
            "np_dtypes": tuple(
                np.float32 if d is dtypes.bfloat16 else np.dtype(d.as_numpy_dtype).type
                for d in dtypes.BY_CODE
            ),
        }
    )
