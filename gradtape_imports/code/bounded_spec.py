"""`tensorflow.python.framework.tensor_spec.BoundedTensorSpec`: a spec with limits for the values of a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src.base import dtypes
from gradtape._src.base.shape import TensorSpec, broadcast_static_shape


class BoundedTensorSpec(TensorSpec):
    """The spec of a tensor, with the smallest and the largest value of its elements, inclusive."""

    __slots__ = ("_maximum", "_minimum")

    def __init__(self, shape: Any, dtype: Any, minimum: Any, maximum: Any, name: str | None = None) -> None:
        super().__init__(shape, dtype, name)
        self._minimum = self._bound("minimum", minimum)
        self._maximum = self._bound("maximum", maximum)

    def _bound(self, what: str, value: Any) -> np.ndarray:
        if value is None:
            raise ValueError(f"`{what}` can not be None.")
        try:
            broadcast_static_shape(np.shape(value), self.shape)
        except ValueError as error:
            raise ValueError(f"`{what}` {value} is not compatible with shape {self.shape}.") from error
        bound = np.array(value, dtype=self.dtype.as_numpy_dtype)
        bound.setflags(write=False)
        return bound

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> BoundedTensorSpec:
        """The spec of another spec; without bounds there, those of its dtype."""
        dtype = dtypes.as_dtype(spec.dtype)
        lowest, highest = getattr(spec, "minimum", dtype.min), getattr(spec, "maximum", dtype.max)
        return cls(spec.shape, dtype, lowest, highest, name or spec.name)

    @property
    def minimum(self) -> np.ndarray:
        """The least values."""
        return self._minimum

    @property
    def maximum(self) -> np.ndarray:
        """The greatest values."""
        return self._maximum

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, BoundedTensorSpec):
            return False
        return (
            super().__eq__(other)
            and np.allclose(self._minimum, other._minimum)
            and np.allclose(self._maximum, other._maximum)
        )

    __hash__ = TensorSpec.__hash__

    def __repr__(self) -> str:
        return (
            f"BoundedTensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r}, "
            f"minimum={self._minimum!r}, maximum={self._maximum!r})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._shape, self._dtype, self._minimum, self._maximum, self._name)
