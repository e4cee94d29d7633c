"""`padded_batch`: elements of different lengths in one batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes, errors, nest
from gradtape._src.base.shape import TensorShape, TensorSpec, as_shape
from gradtape._src.tensors import text
from gradtape.data.base import Run
from gradtape.data.batching import Batches, by_count, stack
from gradtape.data.structure import (
    DatasetSpec,
    batched_spec,
    columns,
    is_spec_of_composite,
    normalise,
    packer,
    row_spec,
)


class _PaddedBatchDataset(Batches):
    """Elements padded to the same length, and stacked.

    Args:
      padded_shapes: shapes in the structure of an element; None (or -1) means the longest in the batch, which is
        the default for every size.
      padding_values: the values to pad with, in that structure; 0, "" or False by default.
    """

    _op = "padded_batch"

    def __init__(
        self, source: Any, batch_size: Any, padded_shapes: Any, padding_values: Any, drop_remainder: Any
    ) -> None:
        super().__init__(source, batch_size, drop_remainder)
        spec = source._spec()
        for s in [] if spec is None else nest.flatten(spec):
            if isinstance(s, DatasetSpec):
                raise TypeError("`padded_batch` is not supported for datasets of datasets")
            if is_spec_of_composite(s):
                raise TypeError(
                    "`padded_batch` is only supported for datasets that produce tensor elements but type spec of elements "
                    f"in the input dataset is not a subclass of TensorSpec: `{s}`."
                )
        self._shapes: list | None = None
        self._values = padding_values
        if padded_shapes is not None:
            self._shapes = self._given_shapes(
                padded_shapes, self._input.element_spec if spec is None else spec
            )
        elif spec is not None:
            for i, s in enumerate(nest.flatten(spec)):
                if isinstance(s, TensorSpec) and s.shape.rank is None:
                    raise ValueError(
                        f"You must provide `padded_shapes` argument because component {i} has unknown rank."
                    )
        if spec is not None:
            self._fillings(nest.flatten(spec))

    def _given_shapes(self, given: Any, spec: Any) -> list:
        try:
            flat = nest.flatten_up_to(spec, given)
        except ValueError as e:
            raise TypeError(
                f"Dataset.padded_batch: padded_shapes must have the structure of an element; expected {spec}; got {given}."
            ) from e
        shapes = list(map(_as_shape, flat))
        for shape, s in zip(shapes, nest.flatten(spec), strict=True):
            if s.shape.rank is not None and (
                shape.rank != s.shape.rank
                or any(p is not None and d is not None and p < d for p, d in zip(shape, s.shape, strict=True))
            ):
                raise ValueError(
                    f"The padded shape {shape} is not compatible with the shape {s.shape} of the corresponding "
                    "input component."
                )
        return shapes

    def _fillings(self, kinds: Sequence[Any]) -> list:
        """The padding value of each part; `kinds` are objects with a dtype."""
        values = self._values
        if values is None:
            flat: list = [None] * len(kinds)
        elif nest.is_nested(values) and not isinstance(values, list):
            flat = nest.flatten(values)
            if len(flat) != len(kinds):
                raise ValueError(
                    f"Dataset.padded_batch: expected {len(kinds)} padding_values; got {len(flat)}."
                )
        else:
            flat = [values] * len(kinds)
        return [_filling(v, k.dtype) for v, k in zip(flat, kinds, strict=True)]

    def _spec(self, look: bool = False) -> Any:
        spec = self._input._spec(look)
        if spec is None:
            return None
        first = TensorShape([self._count if self._drop else None])
        if self._shapes is None:
            return batched_spec(spec, first[0])
        specs = zip(self._shapes, nest.flatten(spec), strict=True)
        return nest.pack_sequence_as(spec, [TensorSpec(first.concatenate(p), s.dtype) for p, s in specs])

    def _likely(self) -> Any:
        return self._defined()

    def _defined(self) -> Any:
        """The spec of a full batch, if padding gives all parts one shape."""
        spec = self._spec()
        flat = [] if spec is None else nest.flatten(spec)
        if not flat or not all(s.shape[1:].is_fully_defined() for s in flat):
            return None
        sizes = self._sizes() or [self._count]
        return batched_spec(row_spec(spec), sizes[0])

    def _kinds(self) -> list | None:
        defined, sizes = self._defined(), self._sizes()
        if defined is None or sizes is None:
            return None
        return [batched_spec(row_spec(defined), size) for size in sizes]

    def _elements(self, run: Run) -> Iterator[Any]:
        fillings: list = []

        def padded(elements: list) -> Any:
            parts = columns(elements)
            if not fillings:
                fillings.extend(self._fillings([p[0] for p in parts]))
            shapes = self._shapes or [None] * len(parts)
            filled = [_padded(p, s, f) for p, s, f in zip(parts, shapes, fillings, strict=True)]
            return packer(elements[0])(filled)

        return by_count(self._input._iterate(run), self._count, self._drop, padded)


def _as_shape(shape: Any) -> TensorShape:
    if isinstance(shape, _core.Tensor):
        shape = shape.numpy().tolist()
    if isinstance(shape, (list, tuple)):
        if any(isinstance(d, (list, tuple)) for d in shape):
            raise ValueError(f"Dataset.padded_batch: a padded shape has sizes and None; got {shape}.")
        shape = [None if d is None or int(d) < 0 else int(d) for d in shape]
    return as_shape(shape)


def _filling(value: Any, dtype: Any) -> Any:
    """A padding value as a NumPy value of the type of its part."""
    if value is None:
        return b"" if dtype is dtypes.string else dtype.as_numpy_dtype(0)
    filling = normalise(value)
    if filling.shape.rank:
        raise ValueError(
            f"Invalid `padding_values`. `padding_values` values should be scalars, but got {filling.shape}."
        )
    if filling.dtype is not dtype:
        raise TypeError(
            f"Invalid `padding_values`. `padding_values` values type {filling.dtype} does not match type {dtype} of "
            f"the corresponding input component. Hint: tf.constant({value!r}, tf.{dtype.name})."
        )
    return filling.numpy()


def _padded(parts: Sequence[Any], shape: TensorShape | None, filling: Any) -> Any:
    """One part of several elements as one tensor, padded to the longest, or to `shape`."""
    arrays = [text.array_of(p) if text.is_text(p) else np.asarray(p) for p in parts]
    rank = arrays[0].ndim
    if any(a.ndim != rank for a in arrays):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"All elements in a batch must have the same rank; got {sorted({a.ndim for a in arrays})}.",
        )
    longest = [max(a.shape[i] for a in arrays) for i in range(rank)]
    if shape is not None:
        for i, (size, most) in enumerate(zip(shape, longest, strict=True)):
            if size is not None and size < most:
                raise errors.DataLossError(
                    None,
                    None,
                    "Attempted to pad to a smaller size than the input element: "
                    f"padded_shapes has {size} where an element has {most}, along axis {i}.",
                )
            longest[i] = most if size is None else size
    if all(list(a.shape) == longest for a in arrays):
        return stack(parts)
    out = np.full([len(arrays), *longest], filling, dtype=arrays[0].dtype)
    for i, a in enumerate(arrays):
        out[i][tuple(slice(n) for n in a.shape)] = a
    return text.make(out) if text.is_text(parts[0]) else ops.convert_to_tensor(out)
