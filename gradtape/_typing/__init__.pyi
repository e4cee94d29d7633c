# What parameters of ops may be, under names that TensorFlow's (`bool`, `complex`, `range`) do not hide. For type checkers:
# there is no such module when a program runs.
from collections.abc import Sequence
from typing import Any as Any
from typing import Protocol, TypeAlias

import numpy as np

from gradtape._core import Tensor as Tensor
from gradtape._core import Variable
from gradtape._src.base.dtypes import DType
from gradtape._src.base.shape import TensorShape
from gradtape._src.tensors.indexed_slices import IndexedSlices

class _HasArray(Protocol):
    def __array__(self) -> Any: ...

_Number: TypeAlias = complex | np.generic  # float, int and bool are kinds of complex to a type checker

TensorLike: TypeAlias = Tensor | Variable | IndexedSlices | np.ndarray | _Number | Sequence[Any] | _HasArray
TensorLikes: TypeAlias = Sequence[Any] | TensorLike
Tensors: TypeAlias = tuple[Tensor, ...]
Int: TypeAlias = int | np.integer | Tensor
Ints: TypeAlias = Int | Sequence[Any] | np.ndarray
Axes: TypeAlias = Ints | None
Shape: TypeAlias = Ints | TensorShape
Float: TypeAlias = float | np.number | Tensor
Bool: TypeAlias = bool | np.bool_
DTypeLike: TypeAlias = DType | str | type | np.dtype | None
Name: TypeAlias = str | None
