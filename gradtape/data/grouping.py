"""Datasets of datasets: window, group_by_window, bucket_by_sequence_length."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes, errors, nest
from gradtape._src.base.contexts import aside
from gradtape._src.base.shape import TensorSpec
from gradtape.data.base import UNKNOWN, DatasetBase, Run, invalid, number
from gradtape.data.dataset import Dataset, Unary
from gradtape.data.failures import Failure, Guarded, Raising, filled, flattened
from gradtape.data.functions import DataFunction, arguments
from gradtape.data.structure import DatasetSpec, columns, packer, spec_of


class ListDataset(Dataset):
    """A dataset of given elements."""

    def __init__(self, elements: list, spec: Any = None) -> None:
        super().__init__()
        self._list = elements
        self._known = spec

    def _spec(self, look: bool = False) -> Any:
        if self._known is None and self._list:
            self._known = spec_of(self._list[0])
        if self._known is None and look:
            raise ValueError("element_spec: the dataset is empty, and nothing else says what it would hold.")
        return self._known

    def _size(self) -> int:
        return len(self._list)

    def _observable(self) -> bool:
        return False

    def _at(self, index: int) -> Any:
        return self._list[index]

    def _elements(self, run: Run) -> Iterator[Any]:
        return iter(self._list)


def example(spec: Any) -> Any:
    """An example for a spec, to find the spec of a function's result."""
    if isinstance(spec, DatasetSpec):
        return ListDataset([], spec.element_spec)
    if not isinstance(spec, TensorSpec) or spec.shape.rank is None:
        raise ValueError(f"element_spec: the dataset is empty, and its elements would be of {spec!r}.")
    return ops.zeros([1 if d is None else d for d in spec.shape], spec.dtype)


class _WindowDataset(Unary):
    """Windows over the elements, each a dataset; for elements with several parts, a dataset per part."""

    def __init__(self, source: Any, size: Any, shift: Any, stride: Any, drop_remainder: Any) -> None:
        super().__init__(source)
        self._window = number(size, "window", "size")
        self._shift = self._window if shift is None else number(shift, "window", "shift")
        self._stride = number(stride, "window", "stride")
        self._drop = bool(drop_remainder)
        for value, what in ((self._window, "size"), (self._shift, "shift"), (self._stride, "stride")):
            if value < 1:
                raise invalid(f"Window {what} must be greater than zero; got {value}.")

    def _spec(self, look: bool = False) -> Any:
        spec = self._input._spec(look)
        return None if spec is None else nest.map_structure(DatasetSpec, spec)

    def _likely(self) -> Any:
        return None

    def _kinds(self) -> list | None:
        return None

    def _size(self) -> int:
        n = self._input._size()
        if n < 0:
            return n
        if not self._drop:
            return -(-n // self._shift)
        return max(0, n - (self._window - 1) * self._stride - 1 + self._shift) // self._shift

    def _elements(self, run: Run) -> Iterator[Any]:
        return Raising(self._windows(Guarded(self._input._iterate(run))))

    def _windows(self, source: Guarded) -> Iterator[Any]:
        reach = (self._window - 1) * self._stride + 1
        spec = self._input._spec()
        flat = None if spec is None else nest.flatten(spec)
        buffer: list = []
        pack: Any = None
        while True:
            yield from filled(buffer, reach, source)
            if not buffer or (self._drop and len(buffer) < reach):
                return
            inside = buffer[: reach : self._stride]
            failure = next((x for x in inside if type(x) is Failure), None)
            if failure is not None:
                yield failure
            else:
                pack = pack or packer(inside[0])
                parts = columns(inside)
                specs = flat or [None] * len(parts)
                yield pack([ListDataset(list(p), s) for p, s in zip(parts, specs, strict=True)])
            if self._shift >= len(buffer):
                # Elements between windows are skipped; a short window is the last one.
                last = len(buffer) < reach
                between = self._shift - len(buffer)
                buffer = []
                while between and not last:
                    yield from filled(buffer, 1, source)
                    between, last = between - 1, not buffer
                    buffer.clear()
                if last:
                    return
            else:
                del buffer[: self._shift]


# ---- groups -------------------------------------------------------------------------------------


class _GroupByWindowDataset(Unary):
    """Elements collected by key until there are enough of them."""

    def __init__(
        self,
        source: Any,
        key_func: Callable,
        reduce_func: Callable,
        window_size: Any,
        window_size_func: Callable | None,
        eager: bool = False,
    ) -> None:
        super().__init__(source)
        if (window_size is None) == (window_size_func is None):
            if window_size is None:
                raise ValueError(
                    "Either the `window_size` argument or the `window_size_func` argument must be specified."
                )
            raise ValueError(
                "The `window_size` argument and the `window_size_func` argument cannot be specified at the same time."
            )
        self._key = DataFunction(key_func, "group_by_window", _as_key, eager)
        self._reduce = DataFunction(reduce_func, "group_by_window", self._as_dataset, eager=True)
        if window_size is None:
            assert window_size_func is not None
            self._window = DataFunction(window_size_func, "group_by_window", _as_key, eager)
        else:
            size = number(window_size, "group_by_window", "window_size")
            self._window = DataFunction(
                lambda key: ops.constant(size, dtypes.int64), "group_by_window", _as_key
            )
        likely, spec = source._likely(), source._spec()
        if likely is not None:
            self._key.concrete(arguments(likely))
        key = TensorSpec((), dtypes.int64)
        if not eager:
            self._window.concrete((key,))
        example_result = None if spec is None else self._reduce.sketch((key, DatasetSpec(spec)))
        self._known = None if example_result is None else example_result._spec()

    @staticmethod
    def _as_dataset(result: Any) -> Any:
        if not isinstance(result, DatasetBase):
            raise TypeError(
                "Invalid `reduce_func`. `reduce_func` must return a single `tf.data.Dataset` object but its return type "
                f"is {type(result)}."
            )
        return result

    def _spec(self, look: bool = False) -> Any:
        if self._known is None and look:
            spec = self._input._spec(True)
            with aside():
                key = self._key(*arguments(self._input._example()))
                self._known = self._reduce(key, ListDataset([], spec))._spec(True)
        return self._known

    def _likely(self) -> Any:
        return None

    def _kinds(self) -> list | None:
        return None

    def _size(self) -> int:
        return 0 if self._input._size() == 0 else UNKNOWN

    def _elements(self, run: Run) -> Iterator[Any]:
        groups: dict[int, list] = {}
        sizes: dict[int, int] = {}
        spec = self._input._spec()

        def add(element: Any) -> list:
            """A pair of a key and its elements, if this element completes the window, or nothing."""
            key = self._key(*arguments(element))
            k = int(key)
            if k not in sizes:
                sizes[k] = int(self._window(key))
                if sizes[k] < 1:
                    raise invalid(f"Window size must be greater than zero, but got {sizes[k]}.")
            group = groups.setdefault(k, [])
            group.append(element)
            return [(key, groups.pop(k))] if len(group) == sizes[k] else []

        def rest() -> Iterator[Any]:
            for k in sorted(groups):
                yield ops.constant(k, dtypes.int64), groups[k]

        def reduced(pair: tuple) -> Iterator[Any]:
            return self._reduce(pair[0], ListDataset(pair[1], spec))._iterate(run.inner())

        complete = flattened(self._input._iterate(run), lambda element: iter(add(element)))
        return flattened(chain(complete, rest()), reduced)


def _as_key(result: Any) -> Any:
    """A key or a size: an int64 scalar."""
    if isinstance(result, (_core.Tensor, _core.Variable)) and result.dtype is not dtypes.int64:
        raise ValueError(
            f"Tensor conversion requested dtype int64 for Tensor with dtype {result.dtype.name}: group_by_window needs "
            f"keys of type int64; got {result!r}. Hint: tf.cast(key, tf.int64)."
        )
    key = ops.convert_to_tensor(result, dtypes.int64)
    if key.ndim:
        raise ValueError(
            "Invalid `key_func`. `key_func` must return a single `tf.int64` scalar tensor but its return type is "
            f"{spec_of(key)}."
        )
    return key


def bucket_by_sequence_length(
    dataset: Any,
    element_length_func: Callable,
    bucket_boundaries: Any,
    bucket_batch_sizes: Any,
    padded_shapes: Any,
    padding_values: Any,
    pad_to_bucket_boundary: bool,
    no_padding: bool,
    drop_remainder: bool,
) -> Any:
    """`Dataset.bucket_by_sequence_length`."""
    limits, sizes = list(bucket_boundaries), list(bucket_batch_sizes)
    if len(sizes) != len(limits) + 1:
        raise ValueError(
            "`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but "
            f"`len(bucket_batch_sizes)={len(sizes)}` and `len(bucket_boundaries)={len(limits)}`."
        )
    length_of = DataFunction(element_length_func, "bucket_by_sequence_length", ops.convert_to_tensor)

    def key(*parts: Any) -> Any:
        return ops.constant(bisect_right(limits, int(length_of(*parts))), dtypes.int64)

    def padded(bucket: Any, group: Any) -> Any:
        k = int(bucket)
        if no_padding:
            return group.batch(sizes[k], drop_remainder)
        shapes = padded_shapes
        if pad_to_bucket_boundary:
            if k == len(limits):
                raise errors.InternalError(
                    None,
                    None,
                    "assertion failed: When pad_to_bucket_boundary=True, elements must have length < "
                    f"max(bucket_boundaries); expected less than {limits[-1]}.",
                )
            shapes = _bounded(shapes, group.element_spec, limits[k] - 1)
        return group.padded_batch(sizes[k], shapes, padding_values, drop_remainder)

    def size(bucket: Any) -> Any:
        return ops.constant(sizes[int(bucket)], dtypes.int64)

    return _GroupByWindowDataset(dataset, key, padded, None, size, eager=True)


def _bounded(shapes: Any, spec: Any, limit: int) -> Any:
    """Padded shapes whose open sizes are the upper limit of the bucket."""

    def leaf(s: Any, shape: Any) -> Any:
        return [limit if d is None or d == -1 else d for d in shape]

    shapes_ = nest.map_structure(lambda s: s.shape, spec) if shapes is None else shapes
    flat = [
        leaf(s, shape) for s, shape in zip(nest.flatten(spec), nest.flatten_up_to(spec, shapes_), strict=True)
    ]
    return nest.pack_sequence_as(spec, flat)
