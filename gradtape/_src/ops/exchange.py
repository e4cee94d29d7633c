"""Sharing tensors with other libraries without a copy, by DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.ops.table import composite
from gradtape._src.tensors import conversion


@composite("experimental.dlpack.to_dlpack")
def to_dlpack(tf_tensor: Any) -> Any:
    """A DLPack capsule that shares the memory of a tensor.

    Tensors are immutable: the consumer of the capsule must not write to it.
    """
    return _core.to_dlpack(tf_tensor)


@composite("experimental.dlpack.from_dlpack")
def from_dlpack(dlcapsule: Any) -> _core.Tensor:
    """A tensor that shares the memory of a DLPack capsule, or of an object that can make one
    (`__dlpack__`: NumPy, PyTorch, JAX). Data that is not dense, not aligned or read-only is copied.

    Raises:
      TypeError: if it is neither, or its element type has no counterpart.
      ValueError: if a capsule was used before, or its data is not contiguous or not on the CPU.

    >>> import numpy as np
    >>> from gradtape._src.ops import exchange
    >>> exchange.from_dlpack(np.ones(2, np.float32)).shape
    TensorShape([2])
    """
    make = getattr(dlcapsule, "__dlpack__", None)
    if make is None:
        if type(dlcapsule).__name__ != "PyCapsule":
            raise TypeError(
                "from_dlpack: expected a DLPack capsule or an object with __dlpack__; got "
                f"{type(dlcapsule).__name__}."
            )
        return _core.from_dlpack(dlcapsule)
    if isinstance(dlcapsule, _core.Tensor):
        return dlcapsule
    where = getattr(dlcapsule, "__dlpack_device__", lambda: (1, 0))()
    if where[0] != 1:
        raise ValueError(
            f"from_dlpack: the data is not in the memory of the CPU; got device {tuple(where)}. Hint: move "
            "it first."
        )
    try:
        return _core.from_dlpack(make())
    except (ValueError, BufferError):
        array = dlcapsule if isinstance(dlcapsule, np.ndarray) else np.from_dlpack(dlcapsule)
        return conversion.convert(np.array(array, order="C"))
