"""Symbolic results in graphs that never run: they only carry shapes and dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base.dtypes import BY_CODE, DIFFERENTIABLE, HELD
from gradtape._src.tensors import conversion


def sketch(dims: tuple[int, ...], dtype: int, inputs: Sequence[Any], linear: bool) -> Any:
    """A symbolic tensor of the current trace that depends on `inputs`; its ops never run."""
    kind = BY_CODE[dtype]
    tensors = [x for x in inputs if isinstance(x, _core.Tensor) and x.dtype._code not in HELD]
    if dtype in HELD or not tensors:
        return conversion.convert(np.zeros(dims, kind.as_numpy_dtype))
    sums = [ops.reduce_sum(ops.cast(x, "float32") if x.dtype.name == "bool" else x) for x in tensors]
    total = ops.add_n([ops.cast(t, kind if dtype in DIFFERENTIABLE else "float32") for t in sums])
    return ops.broadcast_to(ops.cast(total if linear else total * total, kind), dims)
