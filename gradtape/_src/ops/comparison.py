"""Element-wise comparisons, logic, tests for special values, and selection."""

from __future__ import annotations

import numpy as np

from gradtape._src.ops.arithmetic import _MISFIT
from gradtape._src.ops.samples import at, bools, call, floats, pairs
from gradtape._src.ops.table import ALL, BOOL, FLOAT, REAL, elementwise

_TIES = [*pairs(), call(at([1.0, 2.0, np.nan]), at([1.0, 3.0, np.nan]))]
_TRUTH = [call(bools([[True], [False]]), bools([True, False])), call((0, 3), (3,))]

equal = elementwise(
    "equal", ALL, args="x y", deriv=None, xla="jnp.equal",
    numpy=np.equal, samples=_TIES, bad=_MISFIT, doc="Whether `x == y`, element-wise.",
)  # fmt: skip

not_equal = elementwise(
    "not_equal", ALL, args="x y", deriv=None, xla="jnp.not_equal",
    numpy=np.not_equal, samples=_TIES, bad=_MISFIT, doc="Whether `x != y`, element-wise.",
)  # fmt: skip

less = elementwise(
    "less", REAL, args="x y", deriv=None, xla="jnp.less",
    numpy=np.less, samples=_TIES, names="less math.less", bad=_MISFIT, doc="Whether `x < y`, element-wise.",
)  # fmt: skip

less_equal = elementwise(
    "less_equal", REAL, args="x y", deriv=None, xla="jnp.less_equal",
    numpy=np.less_equal, samples=_TIES, names="less_equal math.less_equal", bad=_MISFIT,
    doc="Whether `x <= y`, element-wise.",
)  # fmt: skip

greater = elementwise(
    "greater", REAL, args="x y", deriv=None, xla="jnp.greater",
    numpy=np.greater, samples=_TIES, names="greater math.greater", bad=_MISFIT,
    doc="Whether `x > y`, element-wise.",
)  # fmt: skip

greater_equal = elementwise(
    "greater_equal", REAL, args="x y", deriv=None, xla="jnp.greater_equal",
    numpy=np.greater_equal, samples=_TIES, names="greater_equal math.greater_equal", bad=_MISFIT,
    doc="Whether `x >= y`, element-wise.",
)  # fmt: skip

logical_and = elementwise(
    "logical_and", BOOL, args="x y", numpy=np.logical_and, samples=_TRUTH, xla="jnp.logical_and",
    names="logical_and math.logical_and", doc="Whether `x` and `y` are both true, element-wise.",
)  # fmt: skip

logical_or = elementwise(
    "logical_or", BOOL, args="x y", numpy=np.logical_or, samples=_TRUTH, xla="jnp.logical_or",
    names="logical_or math.logical_or", doc="Whether `x` or `y` is true, element-wise.",
)  # fmt: skip

logical_xor = elementwise(
    "logical_xor", BOOL, args="x y", numpy=np.logical_xor, samples=_TRUTH, xla="jnp.logical_xor",
    names="math.logical_xor", doc="Whether exactly one of `x` and `y` is true, element-wise.",
)  # fmt: skip

logical_not = elementwise(
    "logical_not", BOOL, numpy=np.logical_not, samples=[call(bools([True, False]))], xla="jnp.logical_not",
    names="logical_not math.logical_not", doc="`not x`, element-wise.",
)  # fmt: skip

_SPECIAL = [*floats(), call(at([np.nan, np.inf, -np.inf, 1.0]))]

is_nan = elementwise(
    "is_nan", FLOAT, deriv=None, numpy=np.isnan, samples=_SPECIAL, names="math.is_nan", xla="jnp.isnan",
    doc="Whether each element is NaN.",
)  # fmt: skip

is_inf = elementwise(
    "is_inf", FLOAT, deriv=None, numpy=np.isinf, samples=_SPECIAL, names="math.is_inf", xla="jnp.isinf",
    doc="Whether each element is infinite.",
)  # fmt: skip

is_finite = elementwise(
    "is_finite", FLOAT, deriv=None, numpy=np.isfinite, samples=_SPECIAL, names="math.is_finite", xla="jnp.isfinite",
    doc="Whether each element is neither infinite nor NaN.",
)  # fmt: skip

positive = elementwise(
    "positive", REAL, xla="comparison.positive",
    deriv=None, numpy=lambda x: (x > 0).astype(x.dtype), samples=floats(),
    doc="1 where `x > 0`, else 0, in the type of `x`; used by rules.",
)  # fmt: skip

select = elementwise(
    "select", ALL, args="condition:Condition x y", linear="x+y", xla="jnp.where",
    vjp=(None, lambda g, c, x, y, out: select(c, g, 0), lambda g, c, x, y, out: select(c, 0, g)),
    numpy=np.where,
    samples=[
        call(bools([True, False, True]), (3,), (3,)),
        call(bools([[True], [False]]), (3,), ()),
        call(bools(True), (2, 3), (2, 3)),
        call(bools([[True], [False]]), (2, 0), (1,)),
    ],
    doc="Elements of `x` where `condition` is true, of `y` elsewhere.",
)  # fmt: skip
