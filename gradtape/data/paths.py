"""File names and the like, which users pass as strings, paths or tensors of strings."""

from __future__ import annotations

import os
from typing import Any

from gradtape._src import ops
from gradtape._src.base import dtypes, errors
from gradtape._src.tensors import text


def strings(value: Any) -> list[str]:
    """A name, or names in any form, as a flat list of str."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    elif isinstance(value, (list, tuple)):
        value = [os.fspath(v) if isinstance(v, os.PathLike) else v for v in value]
    names = ops.convert_to_tensor(value, dtypes.string)
    if names._symbol is not None:
        raise errors.Untraceable("a name is a tensor of the traced function")
    return [os.fsdecode(name) for name in text.array_of(names).reshape(-1).tolist()]
