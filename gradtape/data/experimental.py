"""`tf.data.experimental`: older names of methods of `Dataset`, as functions for `Dataset.apply`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gradtape._src import ops
from gradtape._src.base import dtypes, errors, nest
from gradtape._src.base.contexts import aside
from gradtape._src.public import absent as _absent
from gradtape.data.base import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Run, invalid, number
from gradtape.data.csv_files import CsvDataset, make_csv_dataset
from gradtape.data.dataset import Dataset, Unary
from gradtape.data.functions import DataFunction, arguments, set_debug
from gradtape.data.grouping import ListDataset
from gradtape.data.iterator import Optional
from gradtape.data.options import (
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ServiceOptions,
    ThreadingOptions,
)
from gradtape.data.order import AssertCardinality
from gradtape.data.records import SqlDataset, make_batched_features_dataset, parse_example_dataset
from gradtape.data.structure import normalise, spec_of

__all__ = [
    "AUTOTUNE", "AutoShardPolicy", "AutotuneAlgorithm", "AutotuneOptions", "Counter", "CsvDataset",
    "DistributeOptions", "ExternalStatePolicy", "INFINITE_CARDINALITY", "OptimizationOptions", "Optional",
    "RandomDataset", "Reducer", "SHARD_HINT", "ServiceOptions", "SqlDataset", "TFRecordWriter", "ThreadingOptions",
    "UNKNOWN_CARDINALITY", "assert_cardinality", "at", "bucket_by_sequence_length", "cardinality",
    "choose_from_datasets", "copy_to_device", "dense_to_ragged_batch", "dense_to_sparse_batch",
    "enable_debug_mode", "enumerate_dataset", "from_list", "get_next_as_optional", "get_single_element",
    "get_structure", "group_by_reducer", "group_by_window", "ignore_errors", "load", "make_batched_features_dataset",
    "make_csv_dataset", "map_and_batch", "pad_to_cardinality", "parallel_interleave", "parse_example_dataset",
    "prefetch_to_device", "rejection_resample", "sample_from_datasets",
    "save", "scan", "shuffle_and_repeat", "snapshot", "take_while", "unbatch", "unique",
]  # fmt: skip

SHARD_HINT = -1


def _step(method: str) -> Callable:
    """A function that returns steps for `Dataset.apply`, from the name of a method."""

    def make(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        return lambda dataset: getattr(dataset, method)(*args, **kwargs)

    make.__name__ = make.__qualname__ = method
    make.__doc__ = f"A step for `Dataset.apply`: see `Dataset.{method}`."
    return make


bucket_by_sequence_length = _step("bucket_by_sequence_length")
enumerate_dataset = _step("enumerate")
group_by_window = _step("group_by_window")
ignore_errors = _step("ignore_errors")
rejection_resample = _step("rejection_resample")
scan = _step("scan")
snapshot = _step("snapshot")
take_while = _step("take_while")
unbatch = _step("unbatch")
unique = _step("unique")
dense_to_ragged_batch = _step("ragged_batch")
dense_to_sparse_batch = _step("sparse_batch")


def map_and_batch(
    map_func: Callable,
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: bool = False,
    num_parallel_calls: Any = None,
) -> Callable[[Any], Any]:
    """A step for `Dataset.apply`: `map`, then `batch`."""
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise ValueError(
            "`map_and_batch` allows only one of `num_parallel_batches` and `num_parallel_calls` to be set, but "
            f"`num_parallel_batches` was set to {num_parallel_batches} and `num_parallel_calls` as set to "
            f"{num_parallel_calls}."
        )
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Callable[[Any], Any]:
    """A step for `Dataset.apply`: `shuffle`, then `repeat`."""
    if count is not None and (repeats := number(count, "shuffle_and_repeat", "count")) < 1 and repeats != -1:
        raise invalid(f"shuffle_and_repeat: count must be greater than zero or equal to -1; got {repeats}.")
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def parallel_interleave(
    map_func: Callable,
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: bool = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Callable[[Any], Any]:
    """A step for `Dataset.apply`: `interleave`."""
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length)


def prefetch_to_device(device: Any, buffer_size: Any = None) -> Callable[[Any], Any]:
    """A step for `Dataset.apply`: `prefetch`; there is one device."""
    return lambda dataset: dataset.prefetch(AUTOTUNE if buffer_size is None else buffer_size)


def copy_to_device(target_device: Any, source_device: Any = "/cpu:0") -> Callable[[Any], Any]:
    """A step for `Dataset.apply` that does nothing: there is one device."""
    return lambda dataset: dataset


def assert_cardinality(expected_cardinality: Any) -> Callable[[Any], Any]:
    """A step for `Dataset.apply`: declares the number of elements; a different number is an error."""
    return lambda dataset: AssertCardinality(dataset, expected_cardinality)


def pad_to_cardinality(cardinality: Any, mask_key: str = "valid") -> Callable[[Any], Any]:
    """A step for `Dataset.apply`: pads a dataset of dicts with elements of zeros, and adds a mask of valid elements."""
    count = number(cardinality, "pad_to_cardinality", "cardinality")

    def pad(dataset: Any) -> Any:
        spec, size = dataset.element_spec, dataset._size()
        if not isinstance(spec, dict):
            raise ValueError(f"pad_to_cardinality: expected elements that are dicts; got {spec}.")
        if size < 0 or size > count:
            raise ValueError(
                f"pad_to_cardinality: expected a dataset of at most {count} elements, whose number is known; got {size}."
            )
        zeros = nest.map_structure(lambda s: ops.zeros([d or 0 for d in s.shape], s.dtype), spec)
        filler = Dataset.from_tensors({**zeros, mask_key: False}).repeat()
        return dataset.map(lambda x: {**x, mask_key: True}).concatenate(filler).take(count)

    return pad


# ---- functions of datasets ----------------------------------------------------------------------


def cardinality(dataset: Any) -> Any:
    """The number of elements of a dataset."""
    return dataset.cardinality()


def get_single_element(dataset: Any) -> Any:
    """The only element of a dataset."""
    return dataset.get_single_element()


def get_structure(dataset_or_iterator: Any) -> Any:
    """The spec of the elements."""
    try:
        return dataset_or_iterator.element_spec
    except AttributeError:
        raise TypeError(
            "Invalid `dataset_or_iterator`. `dataset_or_iterator` must be a `tf.data.Dataset` or tf.data.Iterator "
            f"object but got {type(dataset_or_iterator)}."
        ) from None


def get_next_as_optional(iterator: Any) -> Any:
    """The next element of an iterator, if there is one."""
    return iterator.get_next_as_optional()


def at(dataset: Any, index: Any) -> Any:
    """The element at an index, without iterating. Shuffled datasets have a separate order for this.

    Raises:
      OutOfRangeError: if there is no such element.
      FailedPreconditionError: if the number of elements is unknown or infinite.
      UnimplementedError: if elements can only be made in sequence, as by generators and filters.
    """
    place, size = number(index, "at", "index"), dataset._size()
    if type(dataset)._at is not Dataset._at and size >= 0 and not 0 <= place < size:
        raise errors.OutOfRangeError(None, None, f"Index out of range [0, {size}):{place}")
    if size < 0 and type(dataset)._at is not Dataset._at:
        words = "an infinite" if size == INFINITE_CARDINALITY else "an unknown"
        raise errors.FailedPreconditionError(
            None, None, f"Random access needs a number of elements; the dataset has {words} one."
        )
    with aside():
        return dataset._at(place)


def choose_from_datasets(datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool = False) -> Any:
    """The same as `Dataset.choose_from_datasets`."""
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def sample_from_datasets(
    datasets: Any, weights: Any = None, seed: Any = None, stop_on_empty_dataset: bool = False
) -> Any:
    """The same as `Dataset.sample_from_datasets`."""
    return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)


def Counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64) -> Any:  # noqa: N802
    """The same as `Dataset.counter`."""
    return Dataset.counter(start, step, dtype)


def RandomDataset(seed: Any = None, rerandomize_each_iteration: Any = None, name: Any = None) -> Any:  # noqa: N802
    """The same as `Dataset.random`."""
    return Dataset.random(seed, rerandomize_each_iteration)


def from_list(elements: Any, name: str | None = None) -> Any:
    """A dataset of the elements of a list, which must have the same structure."""
    if not elements:
        raise ValueError("Invalid `elements`. `elements` should not be empty. If you want an empty dataset, use "
                         "`tf.data.Dataset.range(0)`.")  # fmt: skip
    normalised = [normalise(e) for e in elements]
    for e in normalised[1:]:
        try:
            nest.assert_same_structure(normalised[0], e)
        except (TypeError, ValueError) as error:
            raise ValueError(f"Elements have different structures: {error}") from error
    return ListDataset(normalised)


def save(
    dataset: Any, path: Any, compression: Any = None, shard_func: Any = None, checkpoint_args: Any = None
) -> None:
    """The same as `Dataset.save`."""
    dataset.save(path, compression, shard_func, checkpoint_args)


def load(path: Any, element_spec: Any = None, compression: Any = None, reader_func: Any = None) -> Any:
    """The same as `Dataset.load`."""
    return Dataset.load(path, element_spec, compression, reader_func)


def enable_debug_mode() -> None:
    """Makes the functions of datasets run eagerly, element by element."""
    set_debug(True)


# ---- groups -------------------------------------------------------------------------------------


class Reducer:
    """Three functions that combine values: the initial state, the next state, and the result."""

    def __init__(self, init_func: Callable, reduce_func: Callable, finalize_func: Callable) -> None:
        self.init_func, self.reduce_func, self.finalize_func = init_func, reduce_func, finalize_func


class _GroupByReducer(Unary):
    """One value per key, computed by a reducer."""

    def __init__(self, source: Any, key_func: Callable, reducer: Reducer) -> None:
        super().__init__(source)
        self._key = DataFunction(key_func, "group_by_reducer")
        self._reducer = reducer
        self._reduce = DataFunction(reducer.reduce_func, "group_by_reducer")
        self._finalize = DataFunction(reducer.finalize_func, "group_by_reducer")

    def _spec(self, look: bool = False) -> Any:
        return spec_of(self._first()) if look else None

    def _likely(self) -> Any:
        return None

    def _kinds(self) -> list | None:
        return None

    def _size(self) -> int:
        return UNKNOWN_CARDINALITY

    def _elements(self, run: Run) -> Iterator[Any]:
        states: dict[int, Any] = {}
        for element in self._input._iterate(run):
            key = self._key(*arguments(element))
            k = int(key)
            if k not in states:
                states[k] = normalise(self._reducer.init_func(key))
            states[k] = self._reduce(states[k], element)
        for k in sorted(states):
            yield self._finalize(*arguments(states[k]))


def group_by_reducer(key_func: Callable, reducer: Reducer) -> Callable[[Any], Any]:
    """A step for `Dataset.apply`: one value per key."""
    return lambda dataset: _GroupByReducer(dataset, key_func, reducer)


class TFRecordWriter:
    """Writes a dataset of strings to a TFRecord file."""

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        self._filename, self._compression = filename, compression_type

    def write(self, dataset: Any) -> None:
        """Writes all elements."""
        from gradtape import io

        if dataset.element_spec.dtype is not dtypes.string:
            raise invalid("TFRecordWriter: expected a dataset of strings.")
        with io.TFRecordWriter(self._filename, self._compression) as writer:
            for record in dataset.as_numpy_iterator():
                writer.write(record)


_ABSENT = {
    "service": "gradtape has no data service. Hint: Dataset.shard divides a dataset between processes.",
    "distributed_save": "gradtape has no data service. Hint: Dataset.save.",
    "table_from_dataset": "gradtape has no tables from datasets. Hint: tf.lookup.KeyValueTensorInitializer.",
    "index_table_from_dataset": "gradtape has no tables from datasets. Hint: tf.lookup.StaticVocabularyTable.",
    "DatasetInitializer": "gradtape has no tables from datasets. Hint: tf.lookup.KeyValueTensorInitializer.",
    "from_variant": "gradtape has no variant tensors.",
    "to_variant": "gradtape has no variant tensors.",
    "get_model_proto": "gradtape does not tune pipelines by a model.",
    "make_saveable_from_iterator": "tf.train.Checkpoint(iterator=iterator) saves an iterator.",
}


def __getattr__(name: str) -> Any:
    raise _absent.missing("data.experimental", name, _ABSENT.get(name, ""))


def __dir__() -> list[str]:
    return __all__
