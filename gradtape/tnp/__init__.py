"""`tf.experimental.numpy`: NumPy's functions on tensors, differentiable, with NumPy's types.

Operands of different types meet in the type NumPy gives them (float32 and int32 in float64);
Python numbers take the type of the tensor beside them. New arrays are float64 and int64.
Axes, shapes and defaults are NumPy's. Most functions are one line over ops.
"""

from __future__ import annotations

import logging as _logging
from typing import Any as _Any

from gradtape import _core
from gradtape.tnp import algebra as _algebra
from gradtape.tnp import arrays as _arrays
from gradtape.tnp import elementwise as _elementwise
from gradtape.tnp import shapes as _shapes

_log = _logging.getLogger("gradtape")
# What the parts import for themselves or share.
_NOT_NUMPY = frozenset(
    "tf np builtins dtypes annotations Any Callable Sequence meet axes_of as_inexact".split()
)

for _part in (_arrays, _elementwise, _shapes, _algebra):
    globals().update({n: v for n, v in vars(_part).items() if n[0] != "_" and n not in _NOT_NUMPY})


def experimental_enable_numpy_behavior(
    prefer_float32: _Any = False, dtype_conversion_mode: str = "legacy"
) -> None:
    """Gives tensors NumPy's methods (`x.T`, `x.reshape`, `x.astype`, ...), for the whole program.

    Operators do not convert types: `float32 + int32` stays an error, and a line in the log says so.
    """
    methods: dict[str, _Any] = {
        "T": property(_shapes.transpose), "astype": _arrays.array, "ravel": _shapes.ravel, "clip": _algebra.clip,
        "reshape": lambda self, *s: _shapes.reshape(self, s[0] if len(s) == 1 else s),
        "transpose": lambda self, *p: _shapes.transpose(self, (p if p and isinstance(p[0], int) else p and p[0]) or None),
        **{name: vars(_elementwise)[name] for name in ("mean", "max", "min", "sum")},
        "size": property(_shapes.size), "tolist": lambda self: self.numpy().tolist(),
        "data": property(lambda self: self.numpy().data),
    }  # fmt: skip
    for name, method in methods.items():
        setattr(_core.Tensor, name, method)
    _log.warning(
        "experimental_enable_numpy_behavior: tensors have NumPy's methods now; operators convert no types."
    )


def __getattr__(name: str) -> _Any:
    raise AttributeError(
        f"module 'gradtape.experimental.numpy' has no attribute {name!r}: it is not part of gradtape."
    )
