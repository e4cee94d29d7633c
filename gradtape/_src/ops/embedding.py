"""`embedding_lookup`: rows of tables. `gradtape/sparse/embedding.py` has sums and means of rows, for sparse ids."""

from __future__ import annotations

from gradtape._src.ops.clipping import clip_by_norm
from gradtape._src.ops.indexed import gather
from gradtape._src.ops.join import concat
from gradtape._src.ops.table import composite
from gradtape._src.tensors.conversion import as_tensor

__all__ = ["embedding_lookup"]


@composite("nn.embedding_lookup")
def embedding_lookup(params, ids, max_norm=None, name=None):
    """The rows of an embedding table at `ids`.

    Args:
      params: the table, or a list of tables to concatenate.
      max_norm: rows with a larger L2 norm are scaled down to this norm.
    """
    if params is None:
        raise ValueError("embedding_lookup: params must be specified")
    if isinstance(params, (list, tuple)):
        if not params:
            raise ValueError("embedding_lookup: Length of params is currently 0. Need at least one param.")
        params = params[0] if len(params) == 1 else concat(params, 0)
    if max_norm is None:
        return gather(params, ids)
    ids = as_tensor(ids)
    rows = gather(params, ids)
    return clip_by_norm(rows, max_norm, axes=list(range(ids.ndim, rows.ndim)))
