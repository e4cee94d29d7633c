"""Parses examples from records: parse_single_example, parse_example and their sequence forms."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.base.reading import expect, json_of, reading
from gradtape._src.control.text_ops import each, elements, run, tensor
from gradtape.io import wire
from gradtape.io.columns import (
    Column,
    Fixed,
    column_for,
    dtype_of,
    filled,
    nested_lengths,
    ragged,
    shape_of,
    sparse,
    sparse_parts,
    sparse_specs,
    splits_of,
)
from gradtape.io.contents import texts_of
from gradtape.io.features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, VarLenFeature
from gradtape.io.messages import parts as maps_of
from gradtape.io.messages import values


def _columns(features: Any, batch: int | None) -> list[Column]:
    if not features:
        raise ValueError(f"Invalid argument: features cannot be {'None' if features is None else 'empty'}.")
    return [column_for(key, features[key], batch) for key in sorted(features)]


def _parse(
    op: str, x: Any, columns: list[Any], examples_of: Callable[[list[bytes]], list[list]]
) -> list[dict[str, Any]]:
    """The results for groups of columns, each group for one kind of examples."""
    groups = columns
    specs = [spec for group in groups for column in group for spec in column.specs()]

    def forward(x: Any) -> list:
        examples = examples_of(elements(x))
        return [
            part
            for group, some in zip(groups, examples, strict=True)
            for column in group
            for part in column.parts(some)
        ]

    flat = iter(run(op, forward, [x], specs))
    return [
        {c.key: c.result(list(itertools.islice(flat, len(c.specs())))) for c in group} for group in groups
    ]


@one_call
def parse_single_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """The features of one `tf.train.Example`, by name.

    Args:
      serialized: the bytes of the example, as a TFRecord file has them.
      features: a dictionary of names to `FixedLenFeature`, `VarLenFeature`, `RaggedFeature` and so on.

    Raises:
      InvalidArgumentError: if a feature is missing, or has another type or number of values.

    >>> import gradtape as tf
    >>> feature = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 2.0]))
    >>> example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
    >>> features = {"x": tf.io.FixedLenFeature([2], tf.float32)}
    >>> tf.io.parse_single_example(example.SerializeToString(), features)["x"].numpy()
    array([1., 2.], dtype=float32)
    """
    x = texts_of(serialized, "parse_single_example")
    if x._dims:
        raise ValueError("Input serialized must be a scalar")
    return _parse("parse_single_example", x, [_columns(features, None)], _plain)[0]


def _plain(records: list[bytes]) -> list[list]:
    return [[maps_of(record, 1)[0] for record in records]]


@one_call
def parse_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """Like `parse_single_example`, for an array of examples: results have an additional first axis."""
    x = texts_of(serialized, "parse_example")
    if len(x._dims) > 1:
        raise InvalidArgumentError(
            f"Expected serialized to be a scalar or vector, got shape: {list(x._dims)}"
        )
    columns = _columns(features, x._dims[0] if x._dims else None)
    return _parse("parse_example", x, [columns], _plain)[0]


# ---- sequences --------------------------------------------------------------------------------------


class _Steps:
    """A feature of the steps of sequences; `batch` is the number of sequences, None for one."""

    def __init__(self, key: str, spec: Any, batch: int | None) -> None:
        if not isinstance(spec, (FixedLenSequenceFeature, VarLenFeature, RaggedFeature)):
            raise ValueError(
                f"Unsupported feature {key}:{spec}: sequences take FixedLenSequenceFeature, VarLenFeature and "
                "RaggedFeature."
            )
        if isinstance(spec, RaggedFeature) and spec.partitions:
            raise ValueError(f"Unsupported feature {key}: partitions of the steps of a sequence.")
        self.key, self.batch, self.dtype = key, batch, dtype_of(key, spec)
        self.spec: Any = spec
        self.depth = 2 if batch is None else 3
        self.front = () if batch is None else (batch,)
        self.is_dense = isinstance(spec, FixedLenSequenceFeature)

    def specs(self) -> list[tuple]:
        if self.is_dense:
            lengths = [(self.front, dtypes.int64)] if self.front else []
            return [((*self.front, None, *shape_of(self.key, self.spec)), self.dtype), *lengths]
        if isinstance(self.spec, VarLenFeature):
            return sparse_specs(self.depth, self.dtype)
        kind = dtypes.as_dtype(self.spec.row_splits_dtype)
        outer = [((n + 1,), kind) for n in self.front]
        return [((None,), self.dtype), *outer, ((None,), kind)]

    def parts(self, examples: list[dict[str, bytes]]) -> list:
        sequences = [self._sequence(example, k) for k, example in enumerate(examples)]
        if self.is_dense:
            return self._dense(sequences)
        rows = sequences if self.front else sequences[0]
        if isinstance(self.spec, VarLenFeature):
            return sparse_parts(rows, self.depth, self.dtype)
        lengths, flat = nested_lengths(rows, self.depth - 1)
        kind = dtypes.as_dtype(self.spec.row_splits_dtype)
        return [tensor(flat, (len(flat),), self.dtype), *(splits_of(n, kind) for n in lengths)]

    def _sequence(self, example: dict[str, bytes], k: int) -> list:
        """The values of each step of a sequence."""
        data = example.get(self.key)
        if data is None:
            if self.is_dense and not self.spec.allow_missing:
                raise InvalidArgumentError(
                    f"Name: <unknown>, Feature list '{self.key}' is required but could not be found. (example {k}) Did you "
                    "mean to include it in feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?"
                )
            return []
        with reading(f"Feature list '{self.key}': Can't parse serialized Example: ", InvalidArgumentError):
            steps = list(wire.messages(data, 1))
        if not self.is_dense:
            return [values(self.key, step, self.dtype) for step in steps]
        fixed = Fixed(self.key, FixedLenFeature(self.spec.shape, self.spec.dtype), None)
        return [fixed.row(values(self.key, step, self.dtype), k) for step in steps]

    def _dense(self, sequences: list) -> list:
        shape = shape_of(self.key, self.spec)
        flat = [list(itertools.chain.from_iterable(steps)) for steps in sequences]
        out = filled(self.key, self.spec, self.dtype, flat, shape, bool(self.front))
        lengths = [len(steps) for steps in sequences]
        return [out, *([tensor(lengths, self.front, dtypes.int64)] if self.front else [])]

    def result(self, parts: list) -> Any:
        if self.is_dense:
            return tuple(parts)
        return sparse(parts) if isinstance(self.spec, VarLenFeature) else ragged(parts[0], parts[1:])


def _parse_sequences(
    op: str, x: Any, context_features: Any, sequence_features: Any, batch: int | None
) -> list:
    if not context_features and not sequence_features:
        raise ValueError(
            "Both `context_features` and `sequence_features` argument are None, but at least one must have values."
        )
    context = [column_for(key, context_features[key], batch) for key in sorted(context_features or {})]
    steps = [_Steps(key, sequence_features[key], batch) for key in sorted(sequence_features or {})]

    def examples_of(records: list[bytes]) -> list[list]:
        pairs = [maps_of(record, 2) for record in records]
        return [[outer for outer, _ in pairs], [inner for _, inner in pairs]]

    outer, inner = _parse(op, x, [context, steps], examples_of)
    lengths = {key: value[1] for key, value in inner.items() if isinstance(value, tuple) and len(value) > 1}
    return [outer, {k: v[0] if isinstance(v, tuple) else v for k, v in inner.items()}, lengths]


@one_call
def parse_single_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The features of a `tf.train.SequenceExample`: those of the whole sequence, and those of its steps.

    Args:
      context_features: as `features` of `parse_single_example`.
      sequence_features: a dictionary of names to `FixedLenSequenceFeature`, `VarLenFeature` or `RaggedFeature`.
    """
    op = "parse_single_sequence_example"
    x = texts_of(serialized, op)
    if x._dims:
        raise InvalidArgumentError(f"{op}: serialized must be a scalar; got shape {list(x._dims)}.")
    outer, inner, _ = _parse_sequences(op, x, context_features, sequence_features, None)
    return outer, inner


@one_call
def parse_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Like `parse_single_sequence_example`, for an array of examples, and with the lengths of dense sequences."""
    op = "parse_sequence_example"
    x = texts_of(serialized, op)
    if len(x._dims) != 1:
        raise InvalidArgumentError(f"{op}: serialized must be a vector; got shape {list(x._dims)}.")
    outer, inner, lengths = _parse_sequences(op, x, context_features, sequence_features, x._dims[0])
    return outer, inner, lengths


# ---- JSON -------------------------------------------------------------------------------------------


@one_call
def decode_json_example(json_examples: Any, name: str | None = None) -> Any:
    """JSON examples converted to the bytes that `parse_example` reads."""
    return each("decode_json_example", _from_json, texts_of(json_examples, "decode_json_example"))


def _from_json(data: bytes) -> bytes:
    with reading(f"decode_json_example: Error while parsing JSON: {data[:80]!r}: ", InvalidArgumentError):
        features = json_of(data)["features"]["feature"]
        entries = []
        for key, feature in expect(features, dict).items():
            ((kind, holder),) = feature.items()
            values = expect(expect(holder, dict).get("value", []), list)
            if kind in ("bytesList", "bytes_list"):
                some = b"".join(wire.message(1, base64.b64decode(v)) for v in values)
                packed = wire.message(1, some)
            elif kind in ("floatList", "float_list"):
                packed = wire.message(2, wire.message(1, np.array(values, "<f4").tobytes()))
            elif kind in ("int64List", "int64_list"):
                packed = wire.message(3, wire.packed(1, map(int, values)))
            else:
                raise ValueError(f"{kind!r} is not a kind of feature")
            entries.append(wire.message(1, wire.text(1, key) + wire.message(2, packed)))
        return wire.message(1, b"".join(entries))
