"""`tf.map_fn` and `tf.vectorized_map` over composite tensors, and with results that are composite.

Rows and results are encoded as tensors by their specs (`BatchableTypeSpec`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape._src.base import dtypes, nest
from gradtape._src.base.type_spec import TypeSpec
from gradtape._src.tensors.conversion import as_tensor


def map_encoded(map_fn: Callable, fn: Callable, elems: Any, signature: Any, infer_shape: bool) -> Any:
    """`map_fn(fn, elems, fn_output_signature=signature)`, in terms of a `map_fn` over plain tensors.

    Raises:
      ValueError: if a result does not fit the signature.
    """
    row_specs, columns = _columns(elems)
    if signature is None:
        kinds = [c.dtype if s is None else s for s, c in zip(row_specs, columns, strict=True)]
        signature = nest.pack_sequence_as(elems, kinds)
    result_specs = nest.flatten(signature)

    def encoded(rows: list) -> list:
        result = fn(_row(elems, row_specs, rows))
        nest.assert_same_structure(signature, result)
        return [_written(s, v) for s, v in zip(result_specs, nest.flatten(result), strict=True)]

    flat = [s._flat_tensor_specs if _is_more(s) else s for s in result_specs]
    stacked = map_fn(encoded, columns, infer_shape=infer_shape, fn_output_signature=flat)
    count = nest.flatten(columns)[0].shape[0]
    out = [
        s._batch(count)._from_compatible_tensor_list(m) if _is_more(s) else m
        for s, m in zip(result_specs, stacked, strict=True)
    ]
    return nest.pack_sequence_as(signature, out)


def map_at_once(vectorized_map: Callable, traceable: Callable, fn: Callable, elems: Any) -> Any:
    """`vectorized_map(fn, elems)` in terms of a `vectorized_map` over plain tensors; specs are taken from the results.

    `vectorized_map(traceable, fn, columns)` traces `traceable`, and calls `fn` row by row if that fails.
    """
    row_specs, columns = _columns(elems)
    of_row: list = []  # the result for one row, and the specs of its leaves

    def encoded(f: Callable) -> Callable:
        def call(rows: list) -> list:
            result = f(_row(elems, row_specs, rows))
            flat = nest.flatten(result)
            specs = [_spec_of_result(x) for x in flat]
            of_row[:] = result, specs
            return [x if s is None else s._to_tensor_list(x) for s, x in zip(specs, flat, strict=True)]

        return call

    stacked = vectorized_map(encoded(traceable), encoded(fn), columns)
    result, specs = of_row
    out = [
        m if s is None else s._batch(m[0].shape[0])._from_compatible_tensor_list(m)
        for s, m in zip(specs, stacked, strict=True)
    ]
    return nest.pack_sequence_as(result, out) if nest.is_nested(result) else out[0]


def _spec_of_result(x: Any) -> Any:
    """The spec that encodes a result as tensors; None for tensors, and for sparse gradients, which become dense."""
    spec = x._type_spec if nest.is_composite(type(x)) else None
    return spec if hasattr(spec, "_batch") else None


def _columns(elems: Any) -> tuple[list, list]:
    """For each leaf the spec of its rows (None for plain tensors), and the tensors that encode the leaf."""
    given = nest.flatten(elems)
    specs = [x._type_spec if nest.is_composite(type(x)) else None for x in given]
    of_rows = [None if s is None else s._unbatch() for s in specs]
    columns = [
        as_tensor(x) if s is None else s._to_batched_tensor_list(x) for s, x in zip(specs, given, strict=True)
    ]
    return of_rows, columns


def _row(elems: Any, specs: list, rows: list) -> Any:
    """One row, in the structure of `elems`."""
    parts = [r if s is None else s._from_compatible_tensor_list(r) for s, r in zip(specs, rows, strict=True)]
    return nest.pack_sequence_as(elems, parts) if nest.is_nested(elems) else parts[0]


def _is_more(kind: Any) -> bool:
    """Whether a result is declared to be a composite tensor."""
    return isinstance(kind, TypeSpec) and nest.is_composite(type(kind))


def _written(spec: Any, value: Any) -> Any:
    if not _is_more(spec):
        return value
    if not spec.is_compatible_with(value):
        own_spec = (
            value._type_spec if nest.is_composite(type(value)) else dtypes.as_dtype(as_tensor(value).dtype)
        )
        raise ValueError(
            f"Error in map_fn:\n  Expected `fn` to return a:\n    {spec}\n  But it returned a:\n    {own_spec}\n    "
            f"(value={value})\n  To fix, update the `fn_output_signature` (or `dtype`) argument to `map_fn`."
        )
    return spec._to_tensor_list(value)
