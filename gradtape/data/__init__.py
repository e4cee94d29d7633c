"""`tf.data`: input pipelines.

Where things are: `dataset` has the methods, `base` their common base; `sources`, `generators`, `readers`,
`csv_files` and `storage` create datasets; `order`, `mapping`, `batching`, `padding`, `grouping`, `combine`,
`caching`, `prefetch` and `resampling` transform them. `rows` is the fast path over arrays in memory, `functions`
runs user functions, `in_graph` is for loops inside `tf.function`.
"""

from gradtape._src.public import absent as _absent
from gradtape.data import experimental as experimental
from gradtape.data.base import AUTOTUNE as AUTOTUNE
from gradtape.data.base import INFINITE_CARDINALITY as INFINITE_CARDINALITY
from gradtape.data.base import UNKNOWN_CARDINALITY as UNKNOWN_CARDINALITY
from gradtape.data.dataset import Dataset as Dataset
from gradtape.data.iterator import IteratorSpec as IteratorSpec
from gradtape.data.iterator import NumpyIterator as NumpyIterator
from gradtape.data.iterator import OwnedIterator as Iterator
from gradtape.data.options import Options as Options
from gradtape.data.options import ThreadingOptions as ThreadingOptions
from gradtape.data.readers import FixedLengthRecordDataset as FixedLengthRecordDataset
from gradtape.data.readers import TextLineDataset as TextLineDataset
from gradtape.data.readers import TFRecordDataset as TFRecordDataset
from gradtape.data.structure import DatasetSpec as DatasetSpec

__getattr__, __dir__ = _absent.of("data")
