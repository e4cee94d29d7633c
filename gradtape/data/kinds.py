"""The kinds of datasets, and the functions that trace them; each is imported on first use.

Kinds extend `Dataset`, and methods of `Dataset` create kinds. This module breaks the circle: `kinds._MapDataset` is
looked up in its module when it is needed.
"""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = {
    "batching": "_BatchDataset _RebatchDataset _UnbatchDataset",
    "caching": "_CacheDataset _SnapshotDataset",
    "combine": "_ConcatenateDataset _ZipDataset choose_from_datasets sample_from_datasets",
    "dataset": "Dataset",
    "generators": "_GeneratorDataset",
    "grouping": "ListDataset _GroupByWindowDataset example _WindowDataset bucket_by_sequence_length",
    "in_graph": "DatasetArgument IteratorArgument for_elements next_element next_optional",
    "mapping": (
        "_FilterDataset _FlatMapDataset _IgnoreErrorsDataset _InterleaveDataset _MapDataset _ScanDataset "
        "_TakeWhileDataset reduce"
    ),
    "order": "_OptionsDataset _RepeatDataset _ShardDataset _ShuffleDataset _SkipDataset _TakeDataset _UniqueDataset",
    "padding": "_PaddedBatchDataset",
    "prefetch": "_PrefetchDataset",
    "ragged": "_RaggedBatchDataset ragged_spec",
    "readers": "list_files",
    "resampling": "rejection_resample",
    "sources": "_CounterDataset _RandomDataset _RangeDataset _TensorDataset _TensorSliceDataset",
    "sparse": "_SparseBatchDataset dense sparse_spec",
    "storage": "load save",
}
MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"gradtape.data.{MODULES[name]}"), name)
    return value
