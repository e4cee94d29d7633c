"""`ragged_batch`: elements of different sizes in one batch, as ragged tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradtape._src.base import dtypes, nest
from gradtape._src.base.shape import TensorSpec
from gradtape.data.base import Run
from gradtape.data.batching import _BatchDataset, by_count, stacked
from gradtape.ragged.spec import RaggedTensorSpec


def ragged_spec(shape: Any, dtype: Any, ragged_rank: int, row_splits_dtype: Any) -> RaggedTensorSpec:
    """The spec of ragged tensors, as stored in files."""
    return RaggedTensorSpec(shape, dtype, ragged_rank, row_splits_dtype)


class _RaggedBatchDataset(_BatchDataset):
    """Elements stacked as ragged tensors where their sizes may differ."""

    _op = "ragged_batch"

    def __init__(self, source: Any, batch_size: Any, drop_remainder: Any, row_splits_dtype: Any) -> None:
        super().__init__(source, batch_size, drop_remainder)
        self._row_splits_dtype = dtypes.as_dtype(row_splits_dtype)
        spec = source._spec(True)
        self._parts = nest.map_structure(self._ragged, spec)

    def _ragged(self, spec: Any) -> Any:
        """The spec of a part whose rows have different lengths."""
        if not isinstance(spec, TensorSpec) or spec.shape.rank is None or spec.shape.is_fully_defined():
            return spec
        return RaggedTensorSpec(spec.shape, spec.dtype, 0, self._row_splits_dtype)

    def _spec(self, look: bool = False) -> Any:
        first = self._count if self._drop else None
        return self._of(self._parts, first)

    def _likely(self) -> Any:
        return None

    def _kinds(self) -> list | None:
        return None

    def _elements(self, run: Run) -> Iterator[Any]:
        return by_count(self._input._iterate(run), self._count, self._drop, self._stacked)

    def _stacked(self, elements: list) -> Any:
        return stacked(elements, nest.flatten(self._parts))
