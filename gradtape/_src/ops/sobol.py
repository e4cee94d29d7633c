"""Sobol sequences: points that cover a cube more evenly than random ones."""

from __future__ import annotations

import numpy as np

from gradtape._src.base import dtypes, errors
from gradtape._src.ops.table import composite
from gradtape._src.tensors.conversion import as_tensor

__all__: list[str] = []

# Joe and Kuo, "Constructing Sobol sequences with better two-dimensional projections" (2008): the first numbers of
# each dimension from the second on. Dimensions go through the primitive polynomials in order.
_FIRST = """
1 1,3 1,3,1 1,1,1 1,1,3,3 1,3,5,13 1,1,5,5,17 1,1,5,5,5 1,1,7,11,19 1,1,5,1,1 1,1,1,3,11 1,3,5,5,31 1,3,3,9,7,49
1,1,1,15,21,21 1,3,1,13,27,49 1,1,1,15,7,5 1,3,1,15,13,25 1,1,5,5,19,61 1,3,7,11,23,15,103 1,3,7,13,13,15,69
1,1,3,13,7,35,63 1,3,5,9,1,25,53 1,3,1,13,9,35,107 1,3,1,5,27,61,31 1,1,5,11,19,41,61 1,3,5,3,3,13,69
1,1,7,13,1,19,1 1,3,7,5,13,19,59 1,1,3,9,25,29,41 1,3,5,13,23,1,55 1,3,7,3,13,59,17 1,3,1,3,5,53,69
1,1,5,5,23,33,13 1,1,7,7,1,61,123 1,1,7,9,13,61,49 1,3,3,5,3,55,33 1,3,1,15,31,13,49,245 1,3,5,15,31,59,63,97
1,3,1,11,11,11,77,249 1,3,1,11,27,43,71,9 1,1,7,15,21,11,81,45 1,3,7,3,25,31,65,79 1,3,1,1,19,11,3,205
1,1,5,9,19,21,29,157 1,3,7,11,1,33,89,185 1,3,3,3,15,9,79,71 1,3,7,11,15,39,119,27 1,1,3,1,11,31,97,225
1,1,1,3,23,43,57,177 1,3,7,7,17,17,37,71 1,3,1,5,27,63,123,213 1,1,3,5,11,43,53,133
"""
_BITS = 31


def _is_primitive(polynomial, degree):
    """Whether the polynomial is primitive: x generates all nonzero elements of GF(2^degree)."""
    power = 1
    for k in range(1, 1 << degree):
        power <<= 1
        power ^= polynomial if power >> degree else 0
        if power == 1:
            return k == (1 << degree) - 1
    return False


def _polynomials(degree):
    """The inner coefficients of all primitive polynomials of a degree."""
    inner = range(1 << (degree - 1))
    return [a for a in inner if _is_primitive(1 << degree | a << 1 | 1, degree)]


def _directions(dim):
    """The direction numbers of each dimension: int64[dim, bits]."""
    numbers = [[1] * _BITS]
    degree, waiting = 0, []
    for word in _FIRST.split()[: dim - 1]:
        m = [int(n) for n in word.split(",")]
        if len(m) != degree:
            degree = len(m)
            waiting = _polynomials(degree)
        a = waiting.pop(0)
        for k in range(degree, _BITS):
            last = m[k - degree] ^ m[k - degree] << degree
            for i in range(1, degree):
                last ^= (a >> (degree - 1 - i) & 1) * (m[k - i] << i)
            m.append(last)
        numbers.append(m)
    return np.array([[n << (_BITS - 1 - k) for k, n in enumerate(m)] for m in numbers], np.int64)


@composite("math.sobol_sample")
def sobol_sample(dim, num_results, skip=0, dtype=dtypes.float32, name=None):
    """`num_results` points of the Sobol sequence in `dim` dimensions, after the first `skip`.

    `dim` is at most 53 (21201 in TensorFlow).
    """
    dim, count, skip, dtype = int(dim), int(num_results), int(skip), dtypes.as_dtype(dtype)
    most = len(_FIRST.split()) + 1
    for name_, value in (("dim", dim), ("num_results", count)):
        if value < 1:
            raise errors.InvalidArgumentError(f"sobol_sample: {name_} must be at least one; got {value}.")
    if dim > most:
        raise errors.InvalidArgumentError(f"sobol_sample: dim must be at most {most}; got {dim}.")
    number = np.arange(skip + 1, skip + count + 1)
    gray = number ^ number >> 1
    points = np.zeros((count, dim), np.int64)
    for bit, direction in enumerate(_directions(dim).T):
        points ^= (gray >> bit & 1)[:, None] * direction
    return as_tensor((points / 2.0**_BITS).astype(dtype.as_numpy_dtype))
