"""Iterators over datasets. Tapes do not record their work, and in a trace it is one step of the graph."""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import errors, nest
from gradtape._src.base.contexts import aside
from gradtape._src.base.locks import Lock
from gradtape._src.base.type_spec import TypeSpec
from gradtape.data import kinds
from gradtape.data.structure import normalise, spec_of, to_numpy

_end = object()


def _state_of(taken: int, seeds: dict) -> str:
    """The state of an iterator that has returned `taken` elements, with these seeds."""
    state = json.dumps([taken, seeds])
    return f"{state}:{zlib.crc32(state.encode()):08x}"


def _state_in(string: str) -> tuple[int, dict]:
    """The inverse of `_state_of`.

    Raises: DataLossError: if this is not a state from `serialize`.
    """
    try:
        taken, seeds = json.loads(string.rpartition(":")[0])
        if _state_of(taken, seeds) == string:
            return taken, seeds
    except (TypeError, ValueError):
        pass
    raise errors.DataLossError(
        None, None, f"This is not the state of a dataset iterator, or it is damaged: {string!r}."
    )


class OwnedIterator:
    """The result of `iter(dataset)`: use `next(it)`, or TensorFlow's `it.get_next()`."""

    def __init__(self, dataset: Any) -> None:
        if _core.current_trace() is not None:
            raise errors.Untraceable("iter(dataset) is called while it is traced")
        self._dataset = dataset
        self._taken = 0
        self._lock = Lock()  # threads that share an iterator get different elements
        with aside():
            self._begin()

    def _begin(self, seeds: dict | None = None) -> None:
        self._run = self._dataset._run(seeds)
        self._taken, self._elements = 0, self._dataset._iterate(self._run)

    # A checkpoint (`tf.train.Checkpoint(iterator=...)`) saves the number of elements taken, and the seeds of their order.
    _checkpoint_by_serializing = True

    def serialize(self) -> str:
        """The number of elements taken so far, and the seeds of shuffles, with a checksum."""
        with self._lock:
            return _state_of(self._taken, self._run.drawn)

    def deserialize(self, string_value: str) -> None:
        """Continues after as many elements as the state says, with shuffles in the same order.

        Raises:
          DataLossError: if this is not a state from `serialize`.
          InvalidArgumentError: if the dataset has fewer elements.
        """
        taken, seeds = _state_in(str(string_value))
        size = self._dataset._size()
        with self._lock, aside():
            noted = self._run.drawn
            if self._taken > taken or any(noted[k] != seeds.get(k, [])[: len(noted[k])] for k in noted):
                self._begin(seeds)
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
        """The spec of the elements."""
        return self._dataset.element_spec

    # The spec in the form of TensorFlow 1, in three structures.

    @property
    def output_types(self) -> Any:
        """The types of the parts of an element."""
        return nest.map_structure(lambda s: s.dtype, self.element_spec)

    @property
    def output_shapes(self) -> Any:
        """The shapes of the parts of an element."""
        return nest.map_structure(lambda s: s.shape, self.element_spec)

    @property
    def output_classes(self) -> Any:
        """The classes of the parts of an element."""
        return nest.map_structure(lambda s: s.value_type, self.element_spec)

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
        # The number of elements does not matter: they are requested one by one.
        return ("iterator", *self._dataset._argument_key()[2:])

    def _placeholder(self) -> Any:
        return kinds.IteratorArgument(self)

    def _for_in_graph(self, *statement: Any) -> None:
        """A `for` over it in a traced function; see `autograph.operators.for_stmt`."""
        kinds.for_elements(self, *statement)

    def next(self) -> Any:
        """The same as `next(it)`."""
        return self.__next__()

    def get_next(self, name: str | None = None) -> Any:
        """The next element.

        Raises:
          OutOfRangeError: if there are no more elements.
        """
        try:
            return self.__next__()
        except StopIteration:
            raise errors.OutOfRangeError(None, None, "End of sequence") from None

    def get_next_as_optional(self) -> Any:
        """The next element if there is one; see `Optional`."""
        if _core.current_trace() is not None:
            return kinds.next_optional(self)
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
        """The same as `next(it)`."""
        return self.__next__()


class Optional:
    """An element that may be missing.

    >>> import gradtape as tf
    >>> tf.experimental.Optional.from_value(3).get_value().numpy()
    np.int32(3)
    """

    def __init__(self, value: Any, spec: Any = None) -> None:
        self._value, self._spec = value, spec

    @staticmethod
    def from_value(value: Any) -> Optional:
        """An optional with a value."""
        return Optional(normalise(value))

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """An optional without a value."""
        return Optional(_end, element_spec)

    def has_value(self, name: str | None = None) -> Any:
        """Whether it has a value, a bool tensor."""
        return ops.constant(self._value is not _end)

    def get_value(self, name: str | None = None) -> Any:
        """The value.

        Raises:
          InvalidArgumentError: if there is no value.
        """
        if self._value is _end:
            raise errors.InvalidArgumentError(None, None, "The given optional does not have a value.")
        return self._value

    @property
    def element_spec(self) -> Any:
        """The spec of the value."""
        return self._spec if self._value is _end else spec_of(self._value)

    @property
    def _type_spec(self) -> Any:
        return OptionalSpec(self.element_spec)


class _SpecOfElements(TypeSpec):
    """The spec of an object that holds elements of one spec, but is not made of tensors."""

    _is_composite = False

    def __init__(self, element_spec: Any) -> None:
        self.element_spec = element_spec

    @classmethod
    def from_value(cls, value: Any) -> Any:
        """The spec of a value."""
        return cls(value.element_spec)

    def _serialize(self) -> tuple:
        return (self.element_spec,)


class IteratorSpec(_SpecOfElements):
    """The spec of an iterator, given by that of its elements."""

    @property
    def value_type(self) -> Any:
        """The class of the values it describes."""
        return OwnedIterator

    def _traced_example(self) -> Any:
        """An iterator of this spec, for traces by spec."""
        return iter(kinds.Dataset.from_generator(lambda: iter(()), output_signature=self.element_spec))


class OptionalSpec(_SpecOfElements):
    """The spec of an `Optional`, given by that of its value."""

    @property
    def value_type(self) -> Any:
        """The class of the values it describes."""
        return Optional
