"""Sparse Jacobians, in as many passes as the pattern has colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape._src import ops
from gradtape._src.autodiff.functions import _call, _place, _watching
from gradtape._src.batching.jacobian import Pullback, in_chunks, pullback, transposed
from gradtape._src.batching.linear import is_linear
from gradtape._src.batching.sparsity import colours, pattern
from gradtape._src.tapes.tape import _differentiable
from gradtape._src.tensors.conversion import leaf_of


def sparse_jacobian(f: Callable, x: Any) -> Any:
    """The Jacobian of `f` at `x` as a `scipy.sparse` matrix `[f(x) elements, x elements]`.

    The sparsity pattern is derived from the tape. Columns (or rows) that have no row
    (column) in common are computed together: a tridiagonal Jacobian takes three passes, whatever its
    size. The passes run as one batch, as in `tape.jacobian`.

    >>> import gradtape as tf
    >>> x = tf.constant([1.0, 2.0, 3.0, 4.0])
    >>> j = tf.autodiff.sparse_jacobian(lambda x: x[1:] ** 2 - x[:-1], x)
    >>> j.toarray()
    array([[-1.,  4.,  0.,  0.],
           [ 0., -1.,  6.,  0.],
           [ 0.,  0., -1.,  8.]], dtype=float32)

    Args:
      f: a function of one tensor that returns one tensor.
      x: a tensor or Variable of any shape.

    Raises:
      ImportError: without SciPy: `pip install gradtape[sparse]`.
    """
    try:
        import scipy.sparse as sparse
    except ImportError as e:
        raise ImportError("autodiff.sparse_jacobian needs SciPy. Hint: pip install gradtape[sparse].") from e
    x = _place(x)
    leaf = leaf_of(x)
    if leaf is None:
        raise TypeError(
            f"autodiff.sparse_jacobian: expected one tensor or Variable as x; got {type(x).__name__!r}."
        )
    with _watching(x, persistent=True) as tape:
        y = _call(f, x)
    if leaf_of(y) is None:
        raise TypeError(
            f"autodiff.sparse_jacobian: the function must return one tensor; got {type(y).__name__!r}."
        )
    for what, t in (("x", leaf), ("the result", y)):
        if not t.dtype.is_floating:
            raise TypeError(f"autodiff.sparse_jacobian: {what} must be floating; got {t.dtype.name}.")
    shape = (int(np.prod(y.shape)), int(np.prod(leaf.shape)))
    pull = pullback(tape, y, [leaf]) if _differentiable(y) else None
    if pull is None:
        dense = tape.jacobian(y, x, unconnected_gradients="zero")
        return sparse.csr_matrix(dense.numpy().reshape(shape))
    if pull.places[0] is None:
        return sparse.csr_matrix(shape, dtype=y.dtype.as_numpy_dtype)
    return _compressed(pull, y, leaf, shape)


class Sparsity:
    """The pattern of a Jacobian and its colours."""

    def __init__(self, pull: Pullback) -> None:
        p = pattern(pull.function.graph, pull.residuals, pull.places[0]).T.tocsr()  # rows: y, columns: x
        p.sum_duplicates()
        p.sort_indices()
        self.pattern = p
        by_column, by_row = colours(p), colours(p.T.tocsr())
        self.forward = by_column.max(initial=-1) < by_row.max(initial=-1) and is_linear(pull.function)
        self.colours = by_column if self.forward else by_row
        self.passes = int(self.colours.max(initial=-1)) + 1

    def seeds(self, dtype: Any, shape: Any) -> Any:
        s = np.zeros((self.passes, len(self.colours)), dtype.as_numpy_dtype)
        s[self.colours, np.arange(len(self.colours))] = 1
        return ops.convert_to_tensor(s.reshape(self.passes, *shape))


def _sparsity(pull: Pullback) -> Sparsity:
    """Cached with the structure of the pass, while the indices in it stay the same."""
    indices = [np.asarray(t) for t in pull.residuals if t.dtype.is_integer or t.dtype.is_bool]
    cached = pull.function.sparsity
    if cached is not None and all(np.array_equal(a, b) for a, b in zip(cached[0], indices, strict=True)):
        return cached[1]
    sparsity = Sparsity(pull)
    pull.function.sparsity = (indices, sparsity)
    return sparsity


def _compressed(pull: Pullback, y: Any, x: Any, shape: tuple[int, int]) -> Any:
    import scipy.sparse as sparse

    s = _sparsity(pull)
    if not s.passes:
        return sparse.csr_matrix(shape, dtype=y.dtype.as_numpy_dtype)
    seeds = s.seeds(*((x.dtype, x.shape) if s.forward else (y.dtype, y.shape)))
    place = pull.places[0]
    function = transposed(pull.function, place) if s.forward else pull.function
    rows = in_chunks(function, pull.residuals, lambda start, count: seeds[start : start + count], s.passes)
    compressed = rows[0 if s.forward else place].numpy().reshape(s.passes, -1)
    p = s.pattern
    at = np.repeat(np.arange(shape[0]), np.diff(p.indptr))
    data = compressed[s.colours[p.indices], at] if s.forward else compressed[s.colours[at], p.indices]
    return sparse.csr_matrix((data, p.indices.copy(), p.indptr.copy()), shape=shape)
