"""Rows for products of a sparse and a dense matrix; the public functions are in `tf.sparse`."""

from __future__ import annotations

import numpy as np

from gradtape._src.ops.arithmetic import conjugate
from gradtape._src.ops.samples import at, call, ints
from gradtape._src.ops.table import ANY, NUMBER, indexed, opaque

__all__: list[str] = []


def _numpy_product(places, values, b, a_shape, transpose_a=False):
    a = np.zeros(a_shape, values.dtype)
    np.add.at(a, tuple(places.T), values)
    return np.matmul(a.T if transpose_a else a, b)


def _numpy_dots(places, x, y):
    return (x[places[:, 0]] * y[places[:, 1]]).sum(-1, dtype=x.dtype)


def _wrt_values(g, places, values, b, out, a_shape, transpose_a):
    b = conjugate(b)
    return sparse_dots(places, b, g) if transpose_a else sparse_dots(places, g, b)


def _wrt_b(g, places, values, b, out, a_shape, transpose_a):
    return sparse_matmul(places, conjugate(values), g, a_shape, not transpose_a)


_PLACES = [[0, 1], [1, 0], [1, 2], [3, 2]]
_TURNED = [[3, 2], [0, 1], [1, 2], [1, 0]]
_NONE = at(np.zeros(0))

sparse_matmul = indexed(
    "sparse_matmul", NUMBER, "a_indices:Index a_values b a_shape:Shape transpose_a:Bool=False",
    linear="a_values b", xla="sparse_products.sparse_matmul", rule=(None, _wrt_values, _wrt_b), numpy=_numpy_product,
    samples=[
        call(ints(_PLACES, "int64"), (4,), (3, 2), a_shape=(4, 3)),
        call(ints(_PLACES), (4,), (3, 70), a_shape=(4, 3)),
        call(ints(_TURNED, "int64"), (4,), (3, 5), a_shape=(4, 3)),
        call(ints(_PLACES, "int64"), (4,), (4, 2), a_shape=(4, 3), transpose_a=True),
        call(ints([[1, 1], [1, 1], [0, 0]], "int64"), (3,), (2, 3), a_shape=(3, 2)),
        call(ints(np.zeros([0, 2], int), "int64"), _NONE, (3, 2), a_shape=(2, 3)),
        call(ints(_PLACES, "int64"), (4,), (3, 0), a_shape=(4, 3)),
    ],
    bad=[
        (call(ints([[0, 3]], "int64"), (1,), (3, 2), a_shape=(2, 3)), "InvalidArgumentError",
         "k (3) from index[0,1] out of bounds (>=3)"),
        (call(ints([[0, 0], [-1, 0]], "int64"), (2,), (3, 2), a_shape=(2, 3)), "InvalidArgumentError",
         "m (-1) from index[1,0] out of bounds (>=2)"),
        (call(ints([[2, 0]], "int64"), (1,), (2, 2), a_shape=(2, 3), transpose_a=True), "InvalidArgumentError",
         "m (2) from index[0,0] out of bounds (>=2)"),
        (call(ints(_PLACES, "int64"), (4,), (4, 2), a_shape=(4, 3)), "InvalidArgumentError",
         "inner dimension does not match: 3 vs. 4"),
        (call(ints(_PLACES, "int64"), (3,), (3, 2), a_shape=(4, 3)), "InvalidArgumentError",
         "Number of rows of a_indices does not match"),
        (call(ints([0, 1], "int64"), (2,), (3, 2), a_shape=(4, 3)), "InvalidArgumentError", "'a_indices' must be a matrix"),
        (call(ints(_PLACES, "int64"), (4,), (3,), a_shape=(4, 3)), "InvalidArgumentError", "'b' is not a matrix"),
        (call(ints(_PLACES, "int64"), (4,), (3, 2), a_shape=(4, 3, 1)), "InvalidArgumentError", "must have 2 elements"),
    ],
    doc="The product of a sparse matrix of shape `a_shape`, or its transpose, and a dense matrix.",
)  # fmt: skip


def _numpy_rows(places, a_shape):
    order = np.argsort(places[:, 0], kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(places[:, 0], minlength=a_shape[0]))])
    return starts, places[order, 1].astype(np.int32), bool((np.diff(places[:, 0]) >= 0).all())


sparse_rows = opaque(
    "sparse_rows", ANY, "a_indices:Index a_shape:Shape", many=True, rule=None, numpy=_numpy_rows,
    samples=[
        call(ints(_PLACES, "int64"), a_shape=(4, 3)), call(ints(_TURNED), a_shape=(4, 3)),
        call(ints(np.zeros([0, 2], int), "int64"), a_shape=(2, 3)), call(ints([[2, 0]], "int64"), a_shape=(6, 1)),
    ],
    bad=[
        (call(ints([[0, 3]], "int64"), a_shape=(2, 3)), "InvalidArgumentError", "k (3) from index[0,1] out of bounds (>=3)"),
        (call(ints([0, 3], "int64"), a_shape=(2, 3)), "InvalidArgumentError", "'a_indices' must be a matrix"),
    ],
    doc="The row starts and columns of the elements of a sparse matrix sorted by rows, and whether they "
        "came in this order.",
)  # fmt: skip

sparse_matmul_rows = indexed(
    "sparse_matmul_rows", NUMBER, "a_indices:Index a_starts:Index a_columns:Index a_values b a_shape:Shape",
    linear="a_values b", xla="sparse_products.sparse_matmul_rows",
    numpy=lambda places, starts, columns, values, b, a_shape: _numpy_product(places, values, b, a_shape),
    rule=(
        None, None, None,
        lambda g, places, starts, columns, values, b, out, a_shape: _wrt_values(g, places, values, b, out, a_shape, False),
        lambda g, places, starts, columns, values, b, out, a_shape: _wrt_b(g, places, values, b, out, a_shape, False),
    ),
    samples=[
        call(ints(_PLACES, "int64"), ints([0, 1, 3, 3, 4], "int64"), ints([1, 0, 2, 2]), (4,), (3, width), a_shape=(4, 3))
        for width in (1, 2, 7, 70)
    ],
    bad=[
        (call(ints(_PLACES, "int64"), ints([0, 1, 3, 5, 4], "int64"), ints([1, 0, 2, 2]), (4,), (3, 2), a_shape=(4, 3)),
         "InvalidArgumentError", "are not those of the rows of a matrix"),
        (call(ints(_PLACES, "int64"), ints([0, 1, 3, 3, 4], "int64"), ints([1, 0, 3, 2]), (4,), (3, 2), a_shape=(4, 3)),
         "InvalidArgumentError", "are not those of the rows of a matrix"),
        (call(ints(_PLACES, "int64"), ints([0, 1, 3, 4], "int64"), ints([1, 0, 2, 2]), (4,), (3, 2), a_shape=(4, 3)),
         "InvalidArgumentError", "must be those of sparse_rows"),
    ],
    doc="As `sparse_matmul`, with the results of `sparse_rows`.",
)  # fmt: skip

sparse_dots = indexed(
    "sparse_dots", NUMBER, "indices:Index x y", linear="x y", xla="sparse_products.sparse_dots",
    rule=(
        None,
        lambda g, places, x, y, out: sparse_matmul(places, g, conjugate(y), (x.shape[0], y.shape[0])),
        lambda g, places, x, y, out: sparse_matmul(places, g, conjugate(x), (x.shape[0], y.shape[0]), True),
    ),
    numpy=_numpy_dots,
    samples=[
        call(ints(_PLACES, "int64"), (4, 2), (3, 2)), call(ints(_TURNED), (4, 70), (3, 70)),
        call(ints(np.zeros([0, 2], int), "int64"), (2, 3), (2, 3)), call(ints(_PLACES, "int64"), (4, 0), (3, 0)),
    ],
    bad=[
        (call(ints([[0, 3]], "int64"), (2, 2), (3, 2)), "InvalidArgumentError", "k (3) from index[0,1] out of bounds (>=3)"),
        (call(ints(_PLACES, "int64"), (4, 2), (3, 3)), "InvalidArgumentError", "must have one length"),
        (call(ints(_PLACES, "int64"), (4,), (3, 3)), "InvalidArgumentError", "'x' is not a matrix"),
    ],
    doc="The elements of `x @ transpose(y)` at `indices`: the dot product of a row of `x` and a row of `y` for each.",
)  # fmt: skip
