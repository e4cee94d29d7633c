"""The operands of composites as tensors. Native ops convert theirs themselves."""

from __future__ import annotations

from typing import Any

from gradtape import _core
from gradtape._src.tensors.hooks import convert


def as_tensor(value: Any, like: Any = None) -> _core.Tensor:
    """`value` as a tensor; a Python value or an array takes the type of `like` if that is a tensor."""
    if isinstance(value, _core.Tensor):
        return value
    if isinstance(value, _core.Variable):
        return value._read()
    return convert(value, like.dtype._code if isinstance(like, (_core.Tensor, _core.Variable)) else -1)


def as_tensors(x: Any, y: Any) -> tuple[_core.Tensor, _core.Tensor]:
    """Two operands of the same type, whichever of them says what it is."""
    x = as_tensor(x, y)
    return x, as_tensor(y, x)
