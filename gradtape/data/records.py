"""Datasets of examples and of database rows: `make_batched_features_dataset`, `parse_example_dataset`,
`SqlDataset`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.shape import TensorSpec
from gradtape.data.base import AUTOTUNE, Run, invalid
from gradtape.data.dataset import Dataset
from gradtape.data.paths import strings
from gradtape.data.readers import TFRecordDataset, list_files


def parse_example_dataset(
    features: dict, num_parallel_calls: Any = 1, deterministic: bool | None = None
) -> Callable[[Any], Any]:
    """A step for `Dataset.apply`: batches of serialised `tf.train.Example`s as dicts of tensors."""
    if features is None:
        raise ValueError("Argument `features` cannot be None.")

    def parse(serialized: Any) -> Any:
        from gradtape import io

        return io.parse_example(serialized, features)

    return lambda dataset: dataset.map(parse, num_parallel_calls)


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: Any,
    features: dict,
    reader: Any = None,
    label_key: Any = None,
    reader_args: Any = None,
    num_epochs: Any = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: Any = None,
    prefetch_buffer_size: Any = None,
    reader_num_threads: Any = None,
    parser_num_threads: Any = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Any:
    """Batches of the examples of TFRecord files as dicts, with the label beside them if it is named."""
    if label_key is not None and label_key not in features:
        raise ValueError(
            f"The `label_key` provided ({label_key!r}) must be one of the `features` keys: {sorted(features)}."
        )
    read = reader or TFRecordDataset
    dataset = list_files(file_pattern, shuffle, shuffle_seed).interleave(
        lambda name: read(name, *(reader_args or ())), cycle_length=reader_num_threads or 1
    )
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    dataset = dataset.repeat(num_epochs).batch(
        batch_size, drop_remainder=drop_final_batch or num_epochs is None
    )
    dataset = dataset.apply(parse_example_dataset(features, parser_num_threads))
    if label_key is not None:
        dataset = dataset.map(lambda x: (x, x.pop(label_key)))
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


class SqlDataset(Dataset):
    """The rows returned by a query of an SQLite database, a tuple of one value per column.

    Args:
      driver_name: "sqlite".
      data_source_name: the file.
      query: the SQL query.
      output_types: a dtype per column.
    """

    def __init__(self, driver_name: Any, data_source_name: Any, query: Any, output_types: Any) -> None:
        super().__init__()
        if strings(driver_name) != ["sqlite"]:
            raise invalid(f"The database type, {driver_name}, is not supported: expected sqlite.")
        self._file = strings(data_source_name)[0]
        self._query = strings(query)[0]
        self._types = [dtypes.as_dtype(t) for t in output_types]

    def _spec(self, look: bool = False) -> Any:
        return tuple(TensorSpec((), t) for t in self._types)

    def _elements(self, run: Run) -> Iterator[Any]:
        import sqlite3

        connection = sqlite3.connect(f"file:{self._file}?mode=ro", uri=True)
        try:
            for row in connection.execute(self._query):
                if len(row) != len(self._types):
                    raise invalid(
                        f"The number of columns in output_types ({len(self._types)}) must match the number of columns in "
                        f"the result ({len(row)})."
                    )
                yield tuple(_part(v, t) for v, t in zip(row, self._types, strict=True))
        except sqlite3.Error as e:
            raise invalid(f"SqlDataset: {e}") from e
        finally:
            connection.close()


def _part(value: Any, dtype: Any) -> Any:
    if dtype is dtypes.string:
        return ops.constant("" if value is None else value if isinstance(value, bytes) else str(value))
    return ops.convert_to_tensor(np.asarray(0 if value is None else value, dtype.as_numpy_dtype))
