"""`tf.compat.v1.ragged.RaggedTensorValue`: the arrays of a ragged tensor, as returned by sessions of TensorFlow 1."""

from __future__ import annotations

from typing import Any

import numpy as np


class RaggedTensorValue:
    """Values and row splits as arrays; the values may be ragged again.

    >>> import gradtape as tf
    >>> tf.compat.v1.ragged.RaggedTensorValue([1, 2, 3], [0, 2, 2, 3]).to_list()
    [[1, 2], [], [3]]
    """

    def __init__(self, values: Any, row_splits: Any) -> None:
        self._values = values if isinstance(values, RaggedTensorValue) else np.asarray(values)
        self._row_splits = np.asarray(row_splits)

    row_splits = property(lambda self: self._row_splits, doc="The positions at which rows begin and end.")
    values = property(lambda self: self._values, doc="The rows, one after the other.")
    dtype = property(lambda self: self._values.dtype, doc="The type of the values.")

    @property
    def flat_values(self) -> np.ndarray:
        """The innermost values."""
        return self._values.flat_values if isinstance(self._values, RaggedTensorValue) else self._values

    @property
    def nested_row_splits(self) -> tuple[np.ndarray, ...]:
        """The row splits of all ragged dimensions, the outermost first."""
        inner = self._values.nested_row_splits if isinstance(self._values, RaggedTensorValue) else ()
        return (self._row_splits, *inner)

    @property
    def ragged_rank(self) -> int:
        """The number of ragged dimensions."""
        return len(self.nested_row_splits)

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape, None where rows have different lengths."""
        return (len(self._row_splits) - 1, None, *self._values.shape[1:])

    def to_list(self) -> list:
        """The rows as nested lists."""
        rows = (
            self._values.to_list() if isinstance(self._values, RaggedTensorValue) else self._values.tolist()
        )
        return [rows[a:b] for a, b in zip(self._row_splits[:-1], self._row_splits[1:], strict=True)]

    def __repr__(self) -> str:
        return f"tf.RaggedTensorValue(values={self._values!r}, row_splits={self._row_splits!r})"
