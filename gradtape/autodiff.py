"""tf.autodiff: the ways to differentiate.

TensorFlow's two recorders, and transformations of a Python function: each takes `f` and the point
`x` at which to differentiate, and chooses the cheapest mode by itself. A tuple `x` holds the
arguments of `f`; anything else (a tensor, a Variable, a list or dict of them) is its only argument.
If `f` has no parameters and reads Variables, `x` says with respect to which of them.
"""

from __future__ import annotations

import importlib
from typing import Any

from gradtape._src.autodiff import recorded as _recorded  # noqa: F401  registers itself for accumulators
from gradtape._src.autodiff.forward import ForwardAccumulator
from gradtape._src.autodiff.functions import hessian, hvp, jacobian, jvp, laplacian, per_example_gradient, vjp
from gradtape._src.public import absent as _absent
from gradtape._src.tapes.tape import GradientTape

__all__ = [
    "ForwardAccumulator",
    "GradientTape",
    "hessian",
    "hvp",
    "implicit",
    "jacobian",
    "jvp",
    "laplacian",
    "per_example_gradient",
    "sparse_jacobian",
    "vjp",
]

_LATER = {"sparse_jacobian": "gradtape._src.autodiff.sparse", "implicit": "gradtape._src.autodiff.roots"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    return _absent.lookup_in("autodiff", name)


def __dir__() -> list[str]:
    return __all__
