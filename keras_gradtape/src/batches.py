"""The batches of an epoch: arrays, datasets of `tf.data`, generators, Keras' own PyDatasets.

Keras can handle all kinds of input (its *data adapters*). Two kinds are added: arrays in memory, sliced by a simple
loop, and gradtape's `tf.data`, which Keras does not recognise.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
from keras.src import tree
from keras.src.trainers import data_adapters
from keras.src.trainers.data_adapters import array_slicing, data_adapter_utils
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter
from keras.src.trainers.data_adapters.data_adapter import DataAdapter
from keras.src.trainers.epoch_iterator import EpochIterator

import gradtape as tf
from gradtape.backend import Seeds, from_buffer, from_strings, isolated, isolated_seeds, strings_of
from keras_gradtape.src.ops.core import is_ragged

Tensor = tf.Tensor
_STRING = tf.string._code


class Batches(EpochIterator):
    """The batches of an epoch, in lists of as many as one execution takes; in the same order in all workers of a group."""

    def __init__(
        self, x: Any, y: Any = None, sample_weight: Any = None, group: Any = None, **options: Any
    ) -> None:
        self._group = group
        if any(map(is_ragged, tree.flatten((x, y)))):
            x, y, sample_weight = _dataset_of_rows(x, y, sample_weight, options), None, None
        if _is_dataset(x):
            x = _adapted(x, y, sample_weight, options)
            y = sample_weight = None
        else:
            x, y, sample_weight = map(_numbers_as_array, (x, y, sample_weight))
        super().__init__(x, y, sample_weight, **options)

    def _get_iterator(self) -> Iterator:
        adapter = self.data_adapter
        if type(adapter) is ArrayDataAdapter:
            return _array_batches(adapter, self._group)
        return adapter.get_numpy_iterator()

    def __next__(self) -> tuple:
        begin, end, iterator = next(self._epoch_iterator)
        batches = list(itertools.islice(iterator, self.steps_per_execution))
        if len(batches) < self.steps_per_execution:
            # The last execution of an epoch may have fewer batches; fewer than expected is worth a warning.
            if self.steps_per_epoch or self._num_batches is None or begin + len(batches) < self._num_batches:
                with self.catch_stop_iteration():  # warns that the input ran out
                    raise StopIteration
            if not batches:
                raise StopIteration
        return begin, end, batches


# ---- arrays ---------------------------------------------------------------------------------------


def _numbers_as_array(x: Any) -> Any:
    """A list of numbers, or of lists of them, counts as one array; a list of arrays as several inputs."""
    if not isinstance(x, (list, tuple)) or not x:
        return x
    first = x
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    return np.array(x) if isinstance(first, (bool, int, float)) else x


def _dataset_of_rows(x: Any, y: Any, sample_weight: Any, options: dict) -> Any:
    """Arrays some of which are ragged tensors, as a dataset of batches."""
    data = data_adapter_utils.pack_x_y_sample_weight(x, y, sample_weight)
    rows = tf.data.Dataset.from_tensor_slices(data)
    if options.get("shuffle"):
        rows = rows.shuffle(len(rows))
    return rows.batch(options.get("batch_size") or 32)


def _array_batches(adapter: Any, group: Any = None) -> Iterator:
    """Rows of arrays in memory, as tensors, in the same order as Keras on TensorFlow.

    There they are shuffled by a function of a dataset, so with a global seed every epoch has the same order.
    """
    # Keras' slices do not support strings, so row numbers are used in their place.
    words = [_words(x) for x in tree.flatten(adapter._inputs)]
    numbered = tree.map_structure(lambda x: x if _words(x) is None else np.arange(len(x)), adapter._inputs)
    inputs = array_slicing.convert_to_sliceable(numbered, target_backend="numpy")
    leaves = tree.flatten(inputs)
    if not all(s is None or type(s) is array_slicing.NumpySliceable for s in leaves):
        yield from adapter.get_numpy_iterator()
        return
    arrays = [None if s is None else np.ascontiguousarray(s.array) for s in leaves]
    codes = [None if a is None else _code(a) for a in arrays]
    for k, w in enumerate(words):
        if w is not None:
            arrays[k], codes[k] = w, _STRING
    pack = _packer(inputs)
    count, size, shuffle = adapter._num_samples, adapter._batch_size, adapter._shuffle
    seeds = _common_seeds(group) if shuffle else None
    order = _shuffled(0, count, seeds) if shuffle and shuffle != "batch" else None
    for start in range(0, count, size):
        stop = min(start + size, count)
        if order is not None:
            rows: Any = order[start:stop]
        elif shuffle:
            rows = _shuffled(start, stop, seeds)
        else:
            rows = slice(start, stop)
        yield pack([
            None if a is None else a[rows] if code is None
            else from_strings(a[rows]) if code == _STRING else from_buffer(a[rows], code)
            for a, code in zip(arrays, codes, strict=True)
        ])  # fmt: skip


def _words(x: Any) -> np.ndarray | None:
    """The strings of a tensor, or of an array of `str`; None for anything else."""
    if isinstance(x, np.ndarray) and x.dtype == object and all(isinstance(e, str) for e in x):
        x = tf.convert_to_tensor(x)
    return strings_of(x) if isinstance(x, Tensor) and x.dtype is tf.string else None


def _common_seeds(group: Any) -> Any:
    """Seeds of a shuffle; those of worker 0 in all workers, which take parts of the same batches."""
    seeds = isolated_seeds()
    if group is None or group.size == 1:
        return seeds
    given = secrets.randbits(31) if seeds.given is None else seeds.given
    (common,) = group.broadcast([tf.constant(given, tf.int64)])
    return Seeds(int(common))


def _shuffled(start: int, stop: int, seeds: Any) -> np.ndarray:
    """The numbers from `start` to `stop` in random order."""
    with isolated(seeds):
        return tf.random.shuffle(tf.range(start, stop, dtype=tf.int64)).numpy()


def _code(array: np.ndarray) -> int | None:
    """The type code of tensors with such elements; None for values that are not tensors (text)."""
    if array.dtype.kind in "OUSVMm" or not array.dtype.isnative:
        return None
    return tf.convert_to_tensor(array[:0]).dtype._code


def _packer(structure: Any) -> Any:
    """A function that puts a list of leaves into a structure."""
    if type(structure) is tuple and not any(tree.is_nested(s) for s in structure):
        return tuple
    if not tree.is_nested(structure):
        return lambda leaves: leaves[0]
    return lambda leaves: tree.pack_sequence_as(structure, leaves)


# ---- datasets -------------------------------------------------------------------------------------


def _is_dataset(x: Any) -> bool:
    return hasattr(x, "element_spec") and isinstance(x, (tf.data.Dataset, tf.distribute.DistributedDataset))


def _adapted(x: Any, y: Any, sample_weight: Any, options: dict) -> DatasetAdapter:
    if y is not None:
        data_adapters.raise_unsupported_arg("y", "the targets", "tf.data.Dataset")
    if sample_weight is not None:
        data_adapters.raise_unsupported_arg("sample_weights", "the sample weights", "tf.data.Dataset")
    if isinstance(x, tf.distribute.DistributedDataset) and options.get("class_weight"):
        raise ValueError(
            "fit: `class_weight` is not supported for a distributed dataset. Hint: weights in the dataset."
        )
    return DatasetAdapter(x, options.get("class_weight"))


class DatasetAdapter(DataAdapter):
    """A `tf.data.Dataset` of batches, with the interface that Keras expects."""

    def __init__(self, dataset: Any, class_weight: dict | None = None) -> None:
        self._dataset = dataset if class_weight is None else dataset.map(_with_weights(class_weight))

    def get_numpy_iterator(self) -> Iterator:
        return iter(self._dataset)

    @property
    def num_batches(self) -> int | None:
        count = self._dataset.cardinality
        count = int(count() if callable(count) else count)  # a property of distributed ones
        return count if count >= 0 else None  # otherwise infinite, or unknown until its end

    @property
    def batch_size(self) -> int | None:
        first = tree.flatten(self._dataset.element_spec)[0]
        first = first.shape if hasattr(first, "shape") else tf.TensorShape(None)
        return first[0] if first.rank else None

    @property
    def has_partial_batch(self) -> None:
        return None

    @property
    def partial_batch_size(self) -> None:
        return None


def _with_weights(class_weight: dict) -> Any:
    table = np.ones(max(class_weight) + 1, np.float32)
    table[list(class_weight)] = list(class_weight.values())

    def weighted(*data: Any) -> tuple:
        x, y, weights = data_adapter_utils.unpack_x_y_sample_weight(data)
        if weights is not None:
            raise ValueError("You cannot `class_weight` and `sample_weight` at the same time.")
        if tree.is_nested(y):
            raise ValueError("`class_weight` is only supported for Models with a single output.")
        classes = y
        if y.shape.rank > 1:
            classes = tf.argmax(y, -1) if y.shape[-1] != 1 else tf.squeeze(y, -1)
        classes = tf.cast(tf.round(classes) if classes.dtype.is_floating else classes, tf.int32)
        # Classes without a weight have weight one.
        valid = tf.where((classes >= 0) & (classes < len(table)), classes, 0)
        return x, y, tf.where(valid == classes, tf.gather(table, valid), 1.0)

    return weighted
