"""`tf.sparse`: tensors that store only their nonzero elements.

In reading order: `tensor` (SparseTensor and its spec), `ordering` (positions as numbers), `arranging` (creating,
slicing, joining and reshaping), `arithmetic`, `reducing`, `products`, `crossing`; then functions of other
namespaces: `embedding` and `sequences` (tf.nn), `dispatch` (functions of tf that support sparse tensors).

The positions of elements are computed in NumPy, values go through ops, so gradients with respect to values exist;
in a traced function, these functions are called when the sizes are known.
"""

from __future__ import annotations

from gradtape._src.base.calls import one_call_each
from gradtape._src.public import absent as _absent
from gradtape.sparse import dispatch as _dispatch
from gradtape.sparse.arithmetic import add, map_values, maximum, minimum, softmax
from gradtape.sparse.arranging import (
    concat,
    expand_dims,
    eye,
    fill_empty_rows,
    from_dense,
    mask,
    reorder,
    reset_shape,
    reshape,
    retain,
    slice,
    split,
    to_dense,
    to_indicator,
    transpose,
)
from gradtape.sparse.crossing import cross, cross_hashed
from gradtape.sparse.products import sampled_addmm, sparse_dense_matmul
from gradtape.sparse.reducing import (
    bincount,
    reduce_max,
    reduce_sum,
    segment_mean,
    segment_sqrt_n,
    segment_sum,
)
from gradtape.sparse.tensor import SparseTensor

one_call_each(globals())

__getattr__, __dir__ = _absent.of("sparse")
