"""`tf.experimental.numpy`: NumPy's functions on tensors, differentiable, with NumPy's type promotion.

Operands of different types are promoted as in NumPy (float32 and int32 to float64); Python numbers take the type of
the tensor operand. New arrays are float64 and int64. Axes, shapes and defaults are NumPy's. Most functions are one
line of ops.
"""

from __future__ import annotations

from types import ModuleType as _ModuleType
from typing import Any as _Any

from gradtape._src.public import absent as _absent
from gradtape.tnp import algebra as _algebra
from gradtape.tnp import arrays as _arrays
from gradtape.tnp import elementwise as _elementwise
from gradtape.tnp import more as _more
from gradtape.tnp import shapes as _shapes
from gradtape.tnp.behavior import experimental_enable_numpy_behavior as experimental_enable_numpy_behavior

# Names that the modules import or share, which are not NumPy's.
_NOT_NUMPY = frozenset(
    "tf np builtins dtypes annotations Any Callable Sequence meet axes_of as_inexact settings".split()
)

for _part in (_arrays, _elementwise, _shapes, _algebra, _more):
    globals().update({n: v for n, v in vars(_part).items() if n[0] != "_" and n not in _NOT_NUMPY})


def __getattr__(name: str) -> _Any:
    raise _absent.missing("experimental.numpy", name, "it is not part of gradtape.")


def __dir__() -> list[str]:
    names = (n for n, v in globals().items() if n[0] != "_" and not isinstance(v, _ModuleType))
    return sorted({"random", *names} - {"annotations"})
