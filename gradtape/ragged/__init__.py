"""`tf.ragged`, and `tf.RaggedTensor`: tensors whose rows have different lengths.

A ragged tensor consists of flat values and row splits (`tensor`, `partitions`). Functions of rows are arithmetic on
splits (`rows`); the values move in one gather, which tapes record, so nothing here needs a gradient rule of its own.
"""

from gradtape._src.public import absent as _absent
from gradtape._src.tensors import dispatch as _dispatch
from gradtape.ragged import dispatching as _dispatching
from gradtape.ragged import methods as _methods
from gradtape.ragged.arrays import boolean_mask as boolean_mask
from gradtape.ragged.arrays import stack_dynamic_partitions as stack_dynamic_partitions
from gradtape.ragged.crossing import cross as cross
from gradtape.ragged.crossing import cross_hashed as cross_hashed
from gradtape.ragged.factory import constant as constant
from gradtape.ragged.functional import map_flat_values as map_flat_values
from gradtape.ragged.functional import range_ as range  # noqa: F401
from gradtape.ragged.functional import row_splits_to_segment_ids as row_splits_to_segment_ids
from gradtape.ragged.functional import segment_ids_to_row_splits as segment_ids_to_row_splits
from gradtape.ragged.joining import stack as stack
from gradtape.ragged.value import RaggedTensorValue as RaggedTensorValue

for _cls, _handler in _dispatching.CLASSES.items():
    _dispatch.register(_cls, _handler)
del _methods

__getattr__, __dir__ = _absent.of("ragged")
