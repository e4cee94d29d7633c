"""`sparse_batch`: tensors of different sizes as the rows of sparse tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gradtape._src import ops
from gradtape._src.base import errors
from gradtape._src.base.shape import TensorSpec, as_shape
from gradtape.data.base import Run, invalid
from gradtape.data.batching import Batches, by_count
from gradtape.sparse import to_dense
from gradtape.sparse.tensor import SparseTensor, SparseTensorSpec


def dense(value: Any) -> Any:
    """A sparse tensor in a form that NumPy can represent."""
    return to_dense(value)


def sparse_spec(shape: Any, dtype: Any) -> SparseTensorSpec:
    """The spec of sparse tensors, as stored in files."""
    return SparseTensorSpec(shape, dtype)


class _SparseBatchDataset(Batches):
    """Sparse batches in which every element of the tensors is stored, including zeros."""

    _op = "sparse_batch"

    def __init__(self, source: Any, batch_size: Any, row_shape: Any) -> None:
        super().__init__(source, batch_size, False)
        self._row_shape = as_shape(row_shape)
        spec = source.element_spec
        if not isinstance(spec, TensorSpec):
            raise TypeError(
                f"`dense_to_sparse_batch` requires an input dataset whose elements have a single component, whereas the "
                f"input has {spec}."
            )
        self._element = SparseTensorSpec(as_shape([None]).concatenate(self._row_shape), spec.dtype)

    def _spec(self, look: bool = False) -> Any:
        return self._element

    def _likely(self) -> Any:
        return None

    def _kinds(self) -> list | None:
        return None

    def _elements(self, run: Run) -> Iterator[Any]:
        return by_count(self._input._iterate(run), self._count, self._drop, self._sparse)

    def _sparse(self, elements: list) -> Any:
        row_shape = self._row_shape
        for x in elements:
            shape = list(x.shape)
            if len(shape) != row_shape.rank:
                raise invalid(
                    f"Input element had shape ({shape}) that is incompatible with the row shape ({row_shape})."
                )
            if any(most is not None and n > most for n, most in zip(shape, row_shape, strict=True)):
                words = f"Input element had shape ({shape}) that is larger than the row shape ({row_shape})."
                raise errors.DataLossError(None, None, words)
        longest = np.max([list(x.shape) for x in elements], axis=0).tolist()
        sizes = [n if d is None else d for n, d in zip(longest, row_shape, strict=True)]
        places = [
            np.insert(np.argwhere(np.ones(tuple(x.shape), bool)), 0, i, axis=1)
            for i, x in enumerate(elements)
        ]
        values = ops.concat([ops.reshape(x, [-1]) for x in elements], 0)
        return SparseTensor(np.concatenate(places), values, [len(elements), *sizes])
