"""`tf.sparse`: tensors of which only the elements that are not 0 are kept.

In reading order: `tensor` (SparseTensor and its type), `ordering` (places as numbers), `arranging` (making, cutting,
joining and reshaping), `arithmetic`, `reducing`, `products`, `crossing`, then what is found in other namespaces:
`embedding` and `sequences` (tf.nn), `dispatch` (functions of tf that take sparse tensors, too).

The places of elements are looked at in NumPy, values go through ops: so gradients with respect to the values are there,
and a function that is traced calls these functions when its sizes are known.
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
