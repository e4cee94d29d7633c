"""Less common functions: parts of arrays, grids, reductions that skip NaN, polynomials, bits."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

import gradtape as tf
from gradtape.tnp import elementwise as _elementwise
from gradtape.tnp.algebra import take
from gradtape.tnp.arrays import array, as_inexact, axes_of, meet
from gradtape.tnp.shapes import concatenate, flip, moveaxis, ravel, split, swapaxes

# ---- joining and splitting -----------------------------------------------------------------------------


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """Appends `values` along an axis; without `axis`, both are flattened."""
    return concatenate([arr, values], axis)


def dstack(tup: Any) -> Any:
    """Joins arrays along the third axis."""
    return concatenate([atleast_3d(t) for t in tup], 2)


def atleast_3d(*arys: Any) -> Any:
    """Arrays with at least three axes."""
    out = []
    for a in map(array, arys):
        sizes = list(a.shape)
        shape = {0: [1, 1, 1], 1: [1, *sizes, 1], 2: [*sizes, 1]}.get(len(sizes), sizes)
        out.append(tf.reshape(a, shape))
    return out[0] if len(out) == 1 else out


def _split(ary: Any, indices_or_sections: Any, axis: int) -> list[Any]:
    ary = array(ary)
    if np.ndim(indices_or_sections) == 0 and ary.shape[axis] % indices_or_sections:
        raise ValueError(
            f"array split does not result in an equal division: {ary.shape[axis]} elements along axis {axis}, "
            f"{indices_or_sections} parts."
        )
    return split(ary, indices_or_sections, axis)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Splits along the second axis (the first of a vector)."""
    return _split(ary, indices_or_sections, 0 if len(array(ary).shape) == 1 else 1)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Splits along the first axis."""
    return _split(ary, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Splits along the third axis."""
    return _split(ary, indices_or_sections, 2)


def broadcast_arrays(*args: Any, **kwargs: Any) -> list[Any]:
    """Broadcasts arrays to a common shape."""
    arrays = [array(a) for a in args]
    shape = np.broadcast_shapes(*(tuple(a.shape) for a in arrays))
    return [tf.broadcast_to(a, shape) for a in arrays]


def fliplr(m: Any) -> Any:
    """Reverses the order of columns."""
    return flip(m, 1)


def flipud(m: Any) -> Any:
    """Reverses the order of rows."""
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """Rotates by `k` right angles in the plane of two axes."""
    m, (first, second) = array(m), axes
    turns = int(k) % 4
    if turns == 2:
        return flip(flip(m, first), second)
    if turns == 1:
        return swapaxes(flip(m, second), first, second)
    return m if turns == 0 else flip(swapaxes(m, first, second), second)


# ---- chosen elements ----------------------------------------------------------------------------------


def compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    """The slices for which a condition holds."""
    places = np.flatnonzero(np.asarray(array(condition)).astype(builtins.bool))
    return take(a, places, axis)


def take_along_axis(arr: Any, indices: Any, axis: int | None) -> Any:
    """The elements at `indices` along an axis, separately for each position along the others."""
    arr, indices = array(arr), array(indices)
    if axis is None:
        return tf.gather(ravel(arr), indices)
    rows, places = moveaxis(arr, axis, -1), moveaxis(indices, axis, -1)
    lead = np.broadcast_shapes(tuple(rows.shape)[:-1], tuple(places.shape)[:-1])
    rows = tf.broadcast_to(rows, [*lead, rows.shape[-1]])
    places = tf.broadcast_to(places, [*lead, places.shape[-1]])
    places = tf.where(places < 0, places + tf.cast(rows.shape[-1], places.dtype), places)
    return moveaxis(tf.gather(rows, places, batch_dims=len(lead)), -1, axis)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """For each element, the choice that belongs to the first true condition."""
    *choices, out = meet(*choicelist, default)
    for condition, choice in reversed(list(zip(condlist, choices, strict=True))):
        out = tf.where(tf.cast(array(condition), tf.bool), choice, out)
    return out


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """A diagonal of two axes, as the last axis."""
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    rows, columns = a.shape[-2], a.shape[-1]
    if not -rows < offset < columns:
        return tf.zeros([*a.shape[:-2], 0], a.dtype)
    return tf.linalg.diag_part(a, k=offset)


def diagflat(v: Any, k: int = 0) -> Any:
    """A matrix with the flattened elements on a diagonal."""
    return tf.linalg.diag(ravel(v), k=k)


def diag_indices(n: int, ndim: int = 2) -> Any:
    """The indices of the main diagonal, one tensor per axis."""
    return (tf.range(n, dtype=tf.int64),) * ndim


def ix_(*args: Any) -> list[Any]:
    """Open mesh: index arrays that select the cross product of the given indices."""
    out = []
    for i, indices in enumerate(args):
        a = array(indices)
        a = tf.where(a)[:, 0] if a.dtype == tf.bool else a
        out.append(tf.reshape(a, [-1 if j == i else 1 for j in range(len(args))]))
    return out


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:  # noqa: N803
    """A matrix with ones on and below a diagonal."""
    return tf.constant(np.tri(N, M, k, np.float64 if dtype is None else dtype))


def _matrix(name: str, m: Any) -> Any:
    m = array(m)
    if len(m.shape) < 2:
        raise ValueError(f"Argument to {name} must have rank at least 2; got shape {m.shape}.")
    return m


def tril(m: Any, k: int = 0) -> Any:
    """The lower triangle: zeros above a diagonal."""
    m = _matrix("tril", m)
    return tf.where(np.tri(m.shape[-2], m.shape[-1], k, builtins.bool), m, tf.zeros_like(m))


def triu(m: Any, k: int = 0) -> Any:
    """The upper triangle: zeros below a diagonal."""
    m = _matrix("triu", m)
    return tf.where(np.tri(m.shape[-2], m.shape[-1], k - 1, builtins.bool), tf.zeros_like(m), m)


# ---- grids of numbers, polynomials, products --------------------------------------------------------


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: Any = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Powers of `base` with evenly spaced exponents."""
    exponents = _linspace(start, stop, num, endpoint, axis)
    out = tf.pow(tf.cast(base, exponents.dtype), exponents)
    return out if dtype is None else tf.cast(out, dtype)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: Any = True, dtype: Any = None, axis: int = 0
) -> Any:
    """Numbers evenly spaced on a log scale."""
    first, last = as_inexact(start, stop)
    sign = tf.sign(first)
    out = tf.exp(_linspace(tf.math.log(first * sign), tf.math.log(last * sign), num, endpoint, axis)) * sign
    return out if dtype is None else tf.cast(out, dtype)


def _linspace(start: Any, stop: Any, num: int, endpoint: Any, axis: int) -> Any:
    start, stop = as_inexact(start, stop)
    steps = tf.cast(np.linspace(0.0, 1.0, num, endpoint=bool(endpoint)), start.dtype)
    return moveaxis(start[..., None] + (stop - start)[..., None] * steps, -1, axis)


def vander(x: Any, N: int | None = None, increasing: Any = False) -> Any:  # noqa: N803
    """The Vandermonde matrix: powers of the elements in columns."""
    x = array(x)
    powers = np.arange(x.shape[0] if N is None else N)
    return tf.pow(x[:, None], tf.cast(powers if increasing else powers[::-1], x.dtype))


def polyval(p: Any, x: Any) -> Any:
    """The values of a polynomial, whose coefficients start with the highest power."""
    p, x = meet(p, x)
    out = tf.zeros_like(x)
    for coefficient in tf.unstack(p):
        out = out * x + coefficient
    return out


def kron(a: Any, b: Any) -> Any:
    """The Kronecker product."""
    a, b = meet(a, b)
    rank = builtins.max(len(a.shape), len(b.shape))
    a, b = array(a, ndmin=rank), array(b, ndmin=rank)
    left = tf.reshape(a, [size for d in a.shape for size in (d, 1)])
    right = tf.reshape(b, [size for d in b.shape for size in (1, d)])
    return tf.reshape(left * right, [m * n for m, n in zip(a.shape, b.shape, strict=True)])


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """The cross product of vectors with two or three elements."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = meet(moveaxis(a, axisa, -1), moveaxis(b, axisb, -1))
    for x in (a, b):
        if x.shape[-1] not in (2, 3):
            raise ValueError(f"cross: vectors must have 2 or 3 elements; got shape {x.shape}.")
    (x1, y1, *z1), (x2, y2, *z2) = tf.unstack(a, axis=-1), tf.unstack(b, axis=-1)
    last = x1 * y2 - y1 * x2
    if not z1 and not z2:
        return last
    first, second = (z1 or [tf.zeros_like(x1)])[0], (z2 or [tf.zeros_like(x2)])[0]
    return moveaxis(tf.stack([y1 * second - first * y2, first * x2 - x1 * second, last], -1), -1, axisc)


# ---- reductions -----------------------------------------------------------------------------------------


def average(a: Any, axis: Any = None, weights: Any = None, returned: Any = False) -> Any:
    """The weighted mean; with `returned` also the sum of weights."""
    a = as_inexact(a)[0]
    if weights is None:
        w = tf.ones_like(a)
    else:
        a, w = as_inexact(a, weights)
        if w.shape != a.shape:
            if len(w.shape) != 1 or axis is None:
                raise ValueError("average: `axis` must be given when the shapes of a and weights differ.")
            w = tf.broadcast_to(moveaxis(tf.reshape(w, [1] * (len(a.shape) - 1) + [-1]), -1, axis), a.shape)
    total = tf.reduce_sum(w, axes_of(w, axis))
    mean = tf.reduce_sum(a * w, axes_of(a, axis)) / total
    return (mean, total) if returned else mean


def _without_nan(a: Any, instead: Any) -> Any:
    a = array(a)
    return tf.where(tf.math.is_nan(a), tf.cast(instead, a.dtype), a) if a.dtype.is_floating else a


def nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """The sum, with NaN as zero."""
    return vars(_elementwise)["sum"](_without_nan(a, 0), axis, dtype, keepdims)


def nanprod(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """The product, with NaN as one."""
    return vars(_elementwise)["prod"](_without_nan(a, 1), axis, dtype, keepdims)


def nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = None) -> Any:
    """The mean of the elements that are not NaN."""
    a = as_inexact(array(a, dtype))[0]
    axes, keepdims = axes_of(a, axis), bool(keepdims)
    count = tf.reduce_sum(tf.cast(~tf.math.is_nan(a), a.dtype), axes, keepdims)
    return tf.reduce_sum(_without_nan(a, 0), axes, keepdims) / count


# ---- elements -----------------------------------------------------------------------------------------


def _whole(*values: Any) -> list[Any]:
    parts = meet(*values)
    if not all(p.dtype.is_integer or p.dtype.is_bool for p in parts):
        raise TypeError(f"expected integers or bools; got {parts[0].dtype.name}.")
    return parts


def _bits(names: dict[str, tuple[Any, Any]]) -> None:
    def make(name: str, of_integers: Any, of_bools: Any) -> Any:
        def function(*args: Any) -> Any:
            parts = _whole(*args)
            return (of_bools if parts[0].dtype.is_bool else of_integers)(*parts)

        function.__name__ = function.__qualname__ = name
        function.__doc__ = f"NumPy's `{name}`, element by element."
        return function

    for name, (of_integers, of_bools) in names.items():
        globals()[name] = make(name, of_integers, of_bools)


_bits({
    "bitwise_and": (tf.bitwise.bitwise_and, tf.logical_and), "bitwise_or": (tf.bitwise.bitwise_or, tf.logical_or),
    "bitwise_xor": (tf.bitwise.bitwise_xor, tf.math.logical_xor), "bitwise_not": (tf.bitwise.invert, tf.logical_not),
})  # fmt: skip


def gcd(x1: Any, x2: Any) -> Any:
    """The greatest common divisor."""
    a, b = (tf.abs(x) for x in _whole(x1, x2))
    a, b = a + tf.zeros_like(b), b + tf.zeros_like(a)
    return tf.while_loop(
        lambda a, b: tf.reduce_any(b > 0),
        lambda a, b: (tf.where(b > 0, b, a), tf.where(b > 0, a % tf.maximum(b, 1), b)),
        (a, b),
    )[0]


def lcm(x1: Any, x2: Any) -> Any:
    """The least common multiple."""
    a, b = _whole(x1, x2)
    common = gcd(a, b)
    return tf.where(common > 0, tf.abs(a) // tf.maximum(common, 1) * tf.abs(b), tf.zeros_like(common))


def fix(x: Any) -> Any:
    """Rounds towards zero."""
    x = as_inexact(x)[0]
    return tf.where(x < 0, tf.math.ceil(x), tf.floor(x))


def nextafter(x1: Any, x2: Any) -> Any:
    """The next representable number after `x1` towards `x2`."""
    return tf.math.nextafter(*as_inexact(x1, x2))


def signbit(x: Any) -> Any:
    """Whether the sign bit is set: a number below zero, or minus zero."""
    x = array(x)
    if x.dtype.is_floating:
        return tf.bitcast(x, {2: tf.int16, 4: tf.int32, 8: tf.int64}[x.dtype.size]) < 0
    return tf.zeros_like(x, tf.bool) if x.dtype.is_bool or x.dtype.is_unsigned else x < 0


def isneginf(x: Any) -> Any:
    """Whether a number is minus infinity."""
    x = as_inexact(x)[0]
    return tf.equal(x, -np.inf)


def isposinf(x: Any) -> Any:
    """Whether a number is infinity."""
    x = as_inexact(x)[0]
    return tf.equal(x, np.inf)


def iscomplexobj(x: Any) -> bool:
    """Whether the type is complex."""
    return array(x).dtype.is_complex


def isrealobj(x: Any) -> bool:
    """Whether the type is not complex."""
    return not iscomplexobj(x)


def iscomplex(x: Any) -> Any:
    """Whether the imaginary part is nonzero."""
    x = array(x)
    return tf.not_equal(tf.math.imag(x), 0) if x.dtype.is_complex else tf.zeros_like(x, tf.bool)


def isreal(x: Any) -> Any:
    """Whether the imaginary part is zero."""
    return ~iscomplex(x)


def isscalar(num: Any) -> bool:
    """Whether the argument is a number, or an array without axes."""
    return np.isscalar(num) or (hasattr(num, "shape") and len(num.shape) == 0)
