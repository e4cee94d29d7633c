"""`tf.data.Dataset`: its methods. The kinds of datasets are in the other files of this folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape._src.base import dtypes
from gradtape.data import kinds
from gradtape.data.base import DatasetBase


class Dataset(DatasetBase):
    """A sequence of elements, which are nests of tensors, produced step by step by a pipeline.

    >>> import gradtape as tf
    >>> ds = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0]).map(lambda x: x * 2).batch(2)
    >>> for x in ds:
    ...     print(x.numpy())
    [2. 4.]
    [6.]
    """

    # ---- sources --------------------------------------------------------------------------------

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """A dataset with one element."""
        return kinds._TensorDataset(tensors)

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """A dataset of the rows of tensors, arrays or lists, in any nest of tuples and dicts.

        Raises:
          ValueError: if something has no rows, or not as many as the others.

        >>> import gradtape as tf
        >>> ds = tf.data.Dataset.from_tensor_slices({"x": [[1, 2], [3, 4]], "y": [5, 6]})
        >>> next(ds.as_numpy_iterator())
        {'x': array([1, 2], dtype=int32), 'y': np.int32(5)}
        """
        return kinds._TensorSliceDataset(tensors)

    @staticmethod
    def from_generator(
        generator: Callable,
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """A dataset of the values that a generator function yields.

        Args:
          generator: called for each iteration; returns an iterable.
          output_types, output_shapes: dtypes and shapes in the structure of an element, or
          output_signature: TensorSpecs in that structure.
          args: passed to `generator` as NumPy values.
        """
        return kinds._GeneratorDataset(generator, output_types, output_shapes, args, output_signature)

    @staticmethod
    def range(*args: Any, **kwargs: Any) -> Dataset:
        """The integers of Python's `range`, as int64, or as `output_type`."""
        return kinds._RangeDataset(args, kwargs.pop("output_type", dtypes.int64))

    @staticmethod
    def counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64, name: str | None = None) -> Dataset:
        """The numbers start, start + step, ..., endlessly."""
        return kinds._CounterDataset(start, step, dtype)

    @staticmethod
    def random(
        seed: Any = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> Dataset:
        """Random integers from 0 to 2**32 - 1, as int64, endlessly."""
        return kinds._RandomDataset(seed, rerandomize_each_iteration)

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: bool | None = None, seed: Any = None, name: str | None = None
    ) -> Dataset:
        """The names of the files that match patterns, in random order unless `shuffle=False`.

        Raises:
          InvalidArgumentError: if no file matches.
        """
        return kinds.list_files(file_pattern, shuffle, seed)

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Tuples of elements of several datasets, until one of them ends."""
        if not args and datasets is None:
            raise TypeError("Must pass at least one dataset to `zip`.")
        if args and datasets is not None:
            raise TypeError("Both `*args` and `datasets` cannot be set.")
        return kinds._ZipDataset(datasets if datasets is not None else args[0] if len(args) == 1 else args)

    @staticmethod
    def choose_from_datasets(
        datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool = True
    ) -> Dataset:
        """The elements of several datasets, in the order given by `choice_dataset` (of int64 indices)."""
        return kinds.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)

    @staticmethod
    def sample_from_datasets(
        datasets: Any,
        weights: Any = None,
        seed: Any = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Dataset:
        """The elements of several datasets, drawn at random with probabilities `weights`."""
        return kinds.sample_from_datasets(
            datasets, weights, seed, stop_on_empty_dataset, rerandomize_each_iteration
        )

    @staticmethod
    def load(
        path: Any,
        element_spec: Any = None,
        compression: Any = None,
        reader_func: Any = None,
        wait: bool = False,
    ) -> Dataset:
        """The dataset that `save` wrote."""
        return kinds.load(path, element_spec, compression, reader_func)

    def save(
        self, path: Any, compression: Any = None, shard_func: Any = None, checkpoint_args: Any = None
    ) -> None:
        """Writes the elements to a folder, in gradtape's own format."""
        kinds.save(self, path, compression, shard_func)

    # ---- selection and order -------------------------------------------------------------------------

    def shuffle(
        self,
        buffer_size: Any,
        seed: Any = None,
        reshuffle_each_iteration: bool = True,
        name: str | None = None,
    ) -> Dataset:
        """The elements in random order, drawn from a buffer of `buffer_size` of them.

        The same seed (or global seed, see `tf.random.set_seed`) gives the same order as in TensorFlow. Each
        iteration has another order unless `reshuffle_each_iteration` is False.
        """
        return kinds._ShuffleDataset(self, buffer_size, seed, reshuffle_each_iteration)

    def repeat(self, count: Any = None, name: str | None = None) -> Dataset:
        """The elements `count` times; endlessly if it is None or -1."""
        return kinds._RepeatDataset(self, count)

    def take(self, count: Any, name: str | None = None) -> Dataset:
        """The first `count` elements; all of them if it is -1."""
        return kinds._TakeDataset(self, count)

    def skip(self, count: Any, name: str | None = None) -> Dataset:
        """All but the first `count` elements; no elements if it is -1."""
        return kinds._SkipDataset(self, count)

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Dataset:
        """Every `num_shards`-th element, from index `index` on."""
        return kinds._ShardDataset(self, num_shards, index)

    def cache(self, filename: Any = "", name: str | None = None) -> Dataset:
        """The same elements, cached in memory (or in a file) during the first full iteration."""
        return kinds._CacheDataset(self, filename)

    def snapshot(
        self,
        path: Any,
        compression: Any = "AUTO",
        reader_func: Any = None,
        shard_func: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """The same elements, cached in a folder during the first full iteration."""
        return kinds._SnapshotDataset(self, path)

    def concatenate(self, dataset: Any, name: str | None = None) -> Dataset:
        """The elements of this dataset, then those of another."""
        return kinds._ConcatenateDataset(self, dataset)

    def enumerate(self, start: Any = 0, name: str | None = None) -> Dataset:
        """Pairs of an int64 index, counted from `start`, and an element."""
        return Dataset.zip((Dataset.counter(start), self))

    def unique(self, name: str | None = None) -> Dataset:
        """Each distinct element once, at its first occurrence."""
        return kinds._UniqueDataset(self)

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Dataset:
        """The same elements, computed up to `buffer_size` ahead on a separate thread.

        Elements that take less time to compute than to pass between threads are computed when they are needed.
        """
        return kinds._PrefetchDataset(self, buffer_size)

    # ---- functions of elements ------------------------------------------------------------------------

    def map(
        self,
        map_func: Callable,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """`map_func` of every element; the parts of a tuple are separate arguments.

        The function is traced, as by `tf.function`; functions that cannot be traced run eagerly. With
        `num_parallel_calls` it runs on several threads; the order is preserved unless `deterministic` (or the
        option of that name) is False.
        """
        if synchronous and num_parallel_calls is not None:
            raise ValueError(
                "`synchronous` is not supported with `num_parallel_calls`, but `num_parallel_calls` was set to "
                f"{num_parallel_calls}."
            )
        return kinds._MapDataset(self, map_func, num_parallel_calls, deterministic)

    def filter(self, predicate: Callable, name: str | None = None) -> Dataset:
        """The elements for which `predicate` is true."""
        return kinds._FilterDataset(self, predicate)

    def take_while(self, predicate: Callable, name: str | None = None) -> Dataset:
        """The elements before the first one for which `predicate` is false."""
        return kinds._TakeWhileDataset(self, predicate)

    def scan(self, initial_state: Any, scan_func: Callable, name: str | None = None) -> Dataset:
        """The outputs of `state, output = scan_func(state, element)`."""
        return kinds._ScanDataset(self, initial_state, scan_func)

    def reduce(self, initial_state: Any, reduce_func: Callable, name: str | None = None) -> Any:
        """The last state of `state = reduce_func(state, element)`.

        >>> import gradtape as tf
        >>> tf.data.Dataset.range(5).reduce(tf.constant(0, tf.int64), lambda a, x: a + x).numpy()
        np.int64(10)
        """
        return kinds.reduce(self, initial_state, reduce_func)

    def flat_map(self, map_func: Callable, name: str | None = None) -> Dataset:
        """The elements of the datasets that `map_func` returns, one dataset after the other."""
        return kinds._FlatMapDataset(self, map_func)

    def interleave(
        self,
        map_func: Callable,
        cycle_length: Any = None,
        block_length: Any = None,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Like `flat_map`, but cycles through `cycle_length` of the datasets, taking `block_length` elements from
        each."""
        return kinds._InterleaveDataset(
            self, map_func, cycle_length, block_length, num_parallel_calls, deterministic
        )

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset:
        """The elements without those that raise an error."""
        return kinds._IgnoreErrorsDataset(self, log_warning)

    def apply(self, transformation_func: Callable) -> Dataset:
        """`transformation_func(self)`, for steps written as functions."""
        result = transformation_func(self)
        if not isinstance(result, DatasetBase):
            raise TypeError(
                f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(result)}."
            )
        return result  # type: ignore[return-value]

    def rejection_resample(
        self, class_func: Callable, target_dist: Any, initial_dist: Any = None, seed: Any = None,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """Pairs of a class and an element; some are left out, so that classes have the frequencies `target_dist`."""
        return kinds.rejection_resample(self, class_func, target_dist, initial_dist, seed)

    # ---- batches --------------------------------------------------------------------------------------

    def batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """`batch_size` elements at a time, stacked; the last batch may be smaller unless it is dropped."""
        return kinds._BatchDataset(self, batch_size, drop_remainder)

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Like `batch`, with elements padded to the same length by zeros, or `padding_values`."""
        return kinds._PaddedBatchDataset(self, batch_size, padded_shapes, padding_values, drop_remainder)

    def ragged_batch(
        self, batch_size: Any, drop_remainder: bool = False, row_splits_dtype: Any = dtypes.int64,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """Like `batch`, with ragged tensors for parts whose sizes differ between elements.

        >>> import gradtape as tf
        >>> ds = tf.data.Dataset.range(4).map(lambda n: tf.range(n)).ragged_batch(2)
        >>> [batch.to_list() for batch in ds]
        [[[], [0]], [[0, 1], [0, 1, 2]]]
        """
        return kinds._RaggedBatchDataset(self, batch_size, drop_remainder, row_splits_dtype)

    def sparse_batch(self, batch_size: Any, row_shape: Any, name: str | None = None) -> Dataset:
        """Tensors of different sizes as rows of sparse tensors; None in `row_shape` means the largest size."""
        return kinds._SparseBatchDataset(self, batch_size, row_shape)

    def unbatch(self, name: str | None = None) -> Dataset:
        """The rows of the elements."""
        return kinds._UnbatchDataset(self)

    def rebatch(self, batch_size: Any, drop_remainder: bool = False, name: str | None = None) -> Dataset:
        """Batches regrouped into `batch_size` rows, or, for a list, into these sizes in turn."""
        return kinds._RebatchDataset(self, batch_size, drop_remainder)

    def window(
        self,
        size: Any,
        shift: Any = None,
        stride: Any = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Datasets of `size` elements, `stride` apart; each window starts `shift` elements after the one before."""
        return kinds._WindowDataset(self, size, shift, stride, drop_remainder)

    def group_by_window(
        self,
        key_func: Callable,
        reduce_func: Callable,
        window_size: Any = None,
        window_size_func: Callable | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Collects elements by a key; `reduce_func` turns every `window_size` of them into a dataset."""
        return kinds._GroupByWindowDataset(self, key_func, reduce_func, window_size, window_size_func)

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable,
        bucket_boundaries: Any,
        bucket_batch_sizes: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Padded batches of elements of similar length."""
        return kinds.bucket_by_sequence_length(
            self, element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes, padding_values,
            pad_to_bucket_boundary, no_padding, drop_remainder,
        )  # fmt: skip

    def with_options(self, options: Any, name: str | None = None) -> Dataset:
        """The same dataset with options."""
        return kinds._OptionsDataset(self, options)


class Unary(Dataset):
    """A dataset derived from another, with elements of the same kinds unless a subclass says otherwise."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self._input = source

    def _spec(self, look: bool = False) -> Any:
        return self._input._spec(look)

    def _likely(self) -> Any:
        return self._input._likely()

    def _kinds(self) -> list | None:
        return self._input._kinds()

    def _size(self) -> int:
        return self._input._size()
