"""Iterators over datasets. What they run, tapes do not see, and traces only as one step of a graph."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import errors, nest
from gradtape._src.base.contexts import aside
from gradtape._src.base.locks import Lock
from gradtape.data import kinds
from gradtape.data.structure import normalise, spec_of, to_numpy

_end = object()


def _state_of(taken: int) -> str:
    """The state of an iterator that has given `taken` elements."""
    return f"{taken}:{zlib.crc32(b'elements %d' % taken):08x}"


class OwnedIterator:
    """What `iter(dataset)` gives: `next(it)`, or TensorFlow's `it.get_next()`."""

    def __init__(self, dataset: Any) -> None:
        if _core.current_trace() is not None:
            raise errors.Untraceable("iter(dataset) is called while it is traced")
        self._dataset = dataset
        self._taken = 0
        self._lock = Lock()  # threads that share an iterator take turns: each element comes once
        with aside():
            self._elements = dataset._begin_pass()

    # A checkpoint (`tf.train.Checkpoint(iterator=...)`) keeps how many elements were taken.
    _checkpoint_by_serializing = True

    def serialize(self) -> str:
        """The number of elements taken so far, with a checksum."""
        return _state_of(self._taken)

    def deserialize(self, string_value: str) -> None:
        """Goes on after as many elements of this pass, or of a new one if it is further already.

        The order of a shuffle with a seed is the same in the same pass of a new program.

        Raises:
          DataLossError: if this is no state that `serialize` gave.
          InvalidArgumentError: if the dataset has fewer elements.
        """
        count = str(string_value).partition(":")[0]
        if not (count.isdecimal() and _state_of(int(count)) == string_value):
            raise errors.DataLossError(
                None,
                None,
                f"This is not the state of a dataset iterator, or it is damaged: {string_value!r}.",
            )
        taken, size = int(count), self._dataset._size()
        with self._lock, aside():
            if self._taken > taken:
                self._taken, self._elements = 0, self._dataset._begin_pass()
            while self._taken < taken and not 0 <= size < taken and next(self._elements, _end) is not _end:
                self._taken += 1
            if self._taken < taken:
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    f"The state of the iterator is after {taken} elements, but the dataset has only "
                    f"{size if 0 <= size < taken else self._taken}.",
                )

    @property
    def element_spec(self) -> Any:
        """What the elements look like."""
        return self._dataset.element_spec

    @property
    def _type_spec(self) -> Any:
        return IteratorSpec(self.element_spec)

    def __iter__(self) -> OwnedIterator:
        return self

    def __next__(self) -> Any:
        if _core.current_trace() is not None:
            return kinds.next_element(self)
        with self._lock:
            if _core.is_recording():
                with aside():
                    element = next(self._elements)
            else:
                element = next(self._elements)
            self._taken += 1
        return element

    def _argument_key(self) -> tuple:
        # How many elements there are does not matter: they are asked for one by one.
        return ("iterator", *self._dataset._argument_key()[2:])

    def _placeholder(self) -> Any:
        return kinds.IteratorArgument(self)

    def _for_in_graph(self, *statement: Any) -> None:
        """A `for` over it in a traced function; see `autograph.operators.for_stmt`."""
        kinds.for_elements(self, *statement)

    def next(self) -> Any:
        """As `next(it)`."""
        return self.__next__()

    def get_next(self, name: str | None = None) -> Any:
        """The next element.

        Raises:
          OutOfRangeError: if there is none.
        """
        try:
            return self.__next__()
        except StopIteration:
            raise errors.OutOfRangeError(None, None, "End of sequence") from None

    def get_next_as_optional(self) -> Any:
        """The next element if there is one: see `Optional`."""
        element = next(self, _end)
        return Optional.empty(self._dataset.element_spec) if element is _end else Optional.from_value(element)


class NumpyIterator:
    """The elements of a dataset as NumPy values."""

    def __init__(self, dataset: Any) -> None:
        self._iterator = OwnedIterator(dataset)

    def __iter__(self) -> NumpyIterator:
        return self

    def __next__(self) -> Any:
        element = to_numpy(next(self._iterator))
        for array in nest.flatten(element):
            if isinstance(array, np.ndarray):
                array.flags.writeable = False  # as in TensorFlow
        return element

    def next(self) -> Any:
        """As `next(it)`."""
        return self.__next__()


class Optional:
    """An element that may be missing."""

    def __init__(self, value: Any, spec: Any = None) -> None:
        self._value, self._spec = value, spec

    @staticmethod
    def from_value(value: Any) -> Optional:
        """An optional that has a value."""
        return Optional(normalise(value))

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """An optional that has none."""
        return Optional(_end, element_spec)

    def has_value(self, name: str | None = None) -> Any:
        """Whether it has a value, a bool tensor."""
        return ops.constant(self._value is not _end)

    def get_value(self, name: str | None = None) -> Any:
        """The value.

        Raises:
          InvalidArgumentError: if there is none.
        """
        if self._value is _end:
            raise errors.InvalidArgumentError(None, None, "The given optional does not have a value.")
        return self._value

    @property
    def element_spec(self) -> Any:
        """What the value looks like."""
        return self._spec if self._value is _end else spec_of(self._value)


class IteratorSpec:
    """What the elements of an iterator look like."""

    def __init__(self, element_spec: Any) -> None:
        self.element_spec = element_spec

    def __repr__(self) -> str:
        return f"IteratorSpec({self.element_spec!r}, TensorShape([]))"
