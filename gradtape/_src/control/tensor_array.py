"""`tf.TensorArray`: a list of tensors of one type that loops write and read; and `tf.TensorArraySpec`."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes, errors
from gradtape._src.base.shape import TensorShape
from gradtape._src.base.type_spec import TypeSpec, register_type_spec_from_value_converter
from gradtape._src.control.counters import trips
from gradtape._src.graph.static import folded


def _index(value: Any) -> int:
    return int(value._read()) if isinstance(value, _core.Variable) else int(value)


def _size(value: Any) -> int:
    if isinstance(value, _core.Tensor) and value._symbol is not None:
        value = folded(value)
        if value is None:
            raise errors.Untraceable("TensorArray: its size depends on the values of tensors.")
    return _index(value)


def _symbolic(*values: Any) -> bool:
    return any(isinstance(v, _core.Tensor) and v._symbol is not None for v in values)


def _out_of_range(text: str) -> errors.OpError:
    """The error for an index out of range: TensorFlow's arrays in graphs raise another class."""
    kind = errors.OutOfRangeError if _core.current_trace() is None else errors.InvalidArgumentError
    return kind(None, None, text)


def _own(method: Callable) -> Callable:
    """Calls the method of the array's own class, because programs call `tf.TensorArray.stack` on recorded arrays too."""

    @functools.wraps(method)
    def call(self: TensorArray, *args: Any, **kwargs: Any) -> Any:
        if type(self) is TensorArray:
            return method(self, *args, **kwargs)
        own = getattr(type(self), method.__name__)
        return (method if own is call else own)(self, *args, **kwargs)

    return call


class TensorArray:
    """A list of tensors; `write` returns the array to use afterwards.

    Gradients pass through `write`, `read`, `stack` and so on as through any op.

    >>> import gradtape as tf
    >>> ta = tf.TensorArray(tf.float32, size=2)
    >>> ta = ta.write(0, 1.0).write(1, 2.0)
    >>> ta.stack().numpy()
    array([1., 2.], dtype=float32)

    Args:
      dtype: the type of the elements.
      size: the number of elements.
      dynamic_size: whether writing past the end makes the array longer.
      clear_after_read: whether an element can be read once only (the default).
      infer_shape: whether all elements must have the same shape.
      element_shape: the shape of the elements, as far as it is known.
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        trace = _core.current_trace()
        if getattr(trace, "records", False):
            options = {"infer_shape": infer_shape, "element_shape": element_shape}
            trace.take_over(self, (dtype, size, dynamic_size, clear_after_read), options)
            return
        if handle is not None:
            raise ValueError("TensorArray: Cannot provide `handle` when eager execution is enabled.")
        if size is None:
            raise ValueError("Size must be declared for TensorArrays when eager execution is enabled.")
        self._dtype = dtypes.as_dtype(dtype)
        self._dynamic_size = bool(dynamic_size)
        self._clear_after_read = True if clear_after_read is None else bool(clear_after_read)
        self._infer_shape = infer_shape
        self._element_shape = TensorShape(element_shape)
        self._tensors: list = [None] * _size(size)
        self._cleared: set[int] = set()
        # In a traced loop the elements are rows of one tensor, and arrays are immutable: `write` and the
        # others return a new one.
        self._buffer: Any = None

    # ---- properties -----------------------------------------------------------------------

    @property
    def dtype(self) -> dtypes.DType:
        """The type of the elements."""
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        """Whether writing past the end makes the array longer."""
        return self._dynamic_size

    @property
    def element_shape(self) -> TensorShape:
        """The shape of the elements, as far as it is known."""
        return self._element_shape

    @property
    def handle(self) -> None:
        """None: there is no graph resource."""
        return

    @property
    def flow(self) -> Any:
        """A scalar that carries the order of ops in TensorFlow's graphs; it has no meaning here."""
        return ops.constant(0)

    @_own
    def size(self, name: str | None = None) -> Any:
        """The number of elements, as a tensor."""
        if self._dynamic_size and getattr(_core.current_trace(), "outer", None) is not None:
            raise errors.Untraceable("TensorArray.size: the array grows in a loop or a branch")
        return ops.constant(len(self))

    def __len__(self) -> int:
        return len(self._tensors) if self._buffer is None else self._buffer.shape[0]

    def identity(self) -> TensorArray:
        """The array itself."""
        return self

    def grad(self, source: Any, flow: Any = None, name: Any = None) -> Any:
        """Not available: tapes differentiate through the array by themselves."""
        raise NotImplementedError(
            "TensorArray.grad: use tf.GradientTape, which differentiates through the array."
        )

    def close(self, name: str | None = None) -> None:
        """Forgets the elements."""
        self._tensors = []

    # ---- single elements --------------------------------------------------------------------

    @_own
    def read(self, index: Any, name: str | None = None) -> Any:
        """The element at `index`; with `clear_after_read` it can be read once.

        Raises:
          OutOfRangeError: if there is no such element.
          InvalidArgumentError: if it was read before and cleared.
        """
        if self._buffer is not None or _symbolic(index):
            return ops.gather(self._as_tensor(), index)
        index = _index(index)
        if index < 0:
            raise _out_of_range(f"Reading from negative indices (index {index}) is not allowed.")
        if index >= len(self._tensors):
            raise _out_of_range(f"Tried to read from index {index} but array size is: {len(self._tensors)} ")
        if self._tensors[index] is None and index in self._cleared:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Could not read index {index} twice because it was cleared after a previous read (perhaps "
                "try setting clear_after_read = false?)",
            )
        tensor = self._element(index)
        if self._clear_after_read and _core.current_trace() is None:
            self._tensors[index] = None
            self._cleared.add(index)
        return tensor

    @_own
    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Puts `value` at `index`.

        Raises:
          OutOfRangeError: past the end, unless `dynamic_size`.
          InvalidArgumentError: for a value of another type.
          ValueError: for a value of another shape than the elements before.
        """
        if _core.current_trace() is not None:
            return self._traced_write(index, value)
        self._write(_index(index), value)
        return self

    def _element(self, index: int) -> Any:
        """An element; zeros if nothing was written to it."""
        if self._tensors[index] is None:
            if not self._element_shape.is_fully_defined():
                tracing = _core.current_trace() is not None
                raise (errors.InvalidArgumentError if tracing else ValueError)(
                    f"TensorArray: nothing was written at index {index}, and the shape of the elements is not known."
                )
            self._tensors[index] = ops.zeros(self._element_shape, self._dtype)
        return self._tensors[index]

    def _write(self, index: int, value: Any) -> None:
        if index < 0:
            raise _out_of_range(f"Writing to negative indices (index {index}) is not allowed.")
        size = len(self._tensors)
        if index >= size:
            if not self._dynamic_size:
                raise _out_of_range(
                    f"Tried to write to index {index} but array is not resizeable and size is: {size} "
                )
            self._tensors.extend([None] * (index - size + 1))
        self._tensors[index] = self._checked(value)

    def _checked(self, value: Any) -> Any:
        tensor = ops.convert_to_tensor(value, dtype_hint=self._dtype)
        if tensor.dtype is not self._dtype:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"TensorArray dtype is {self._dtype.name} but Op is trying to write dtype "
                f"{tensor.dtype.name} ",
            )
        if not self._element_shape.is_compatible_with(tensor.shape):
            raise ValueError(
                f"Incompatible shape for value ({tensor.shape}), expected ({self._element_shape})"
            )
        if self._infer_shape and not self._element_shape.is_fully_defined():
            self._element_shape = self._element_shape.merge_with(tensor.shape)
        return tensor

    # ---- all elements -----------------------------------------------------------------------

    @_own
    def stack(self, name: str | None = None) -> Any:
        """All elements as one tensor with a new first axis."""
        if self._buffer is not None:
            return self._buffer
        return self._stacked(range(len(self._tensors)))

    @_own
    def gather(self, indices: Any, name: str | None = None) -> Any:
        """The elements at `indices` as one tensor."""
        if self._buffer is not None or _symbolic(indices):
            return ops.gather(self._as_tensor(), indices)
        return self._stacked(self._indices(indices))

    def _stacked(self, indices: Any) -> Any:
        elements = [self._element(i) for i in indices]
        if not elements:
            shape = self._element_shape.as_list() if self._element_shape.is_fully_defined() else []
            return ops.zeros([0, *shape], self._dtype)
        return ops.stack(elements, 0)

    @_own
    def concat(self, name: str | None = None) -> Any:
        """All elements joined along their first axis."""
        if self._buffer is not None:
            rows = self._buffer.shape
            return ops.reshape(self._buffer, [rows[0] * rows[1], *rows[2:]])
        if not self._tensors and self._element_shape.rank and self._element_shape[1:].is_fully_defined():
            return ops.zeros([0, *self._element_shape[1:]], self._dtype)
        return ops.concat([self._element(i) for i in range(len(self._tensors))], 0)

    @_own
    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Fills the array with the rows of `value`."""
        if _core.current_trace() is not None:
            return self._traced_unstack(value)
        tensors = self._rows(value)
        if len(tensors) > len(self._tensors) and not self._dynamic_size:
            raise ValueError(
                f"Cannot unstack {len(tensors)} tensors into a TensorArray of static size "
                f"{len(self._tensors)} "
            )
        self._tensors = [self._checked(t) for t in tensors]
        return self

    @_own
    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Puts the rows of `value` at `indices`."""
        if _core.current_trace() is not None:
            return self._traced_scatter(indices, value)
        for index, row in zip(self._indices(indices), self._rows(value), strict=False):
            self._write(index, row)
        return self

    @_own
    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Fills the array with chunks of `value`, split along the first axis into the given lengths."""
        if _symbolic(lengths):
            raise errors.Untraceable("TensorArray.split: the lengths are values of tensors")
        array = self if _core.current_trace() is None else copy.copy(self)
        chunks = ops.split(ops.convert_to_tensor(value, dtype_hint=self._dtype), self._indices(lengths), 0)
        if len(chunks) != len(self._tensors) and not self._dynamic_size:
            raise errors.ArgumentError(
                f"TensorArray's size is not equal to the size of lengths ({len(self._tensors)} vs. "
                f"{len(chunks)}), and the TensorArray is not marked as dynamically resizeable."
            )
        array._tensors = list(chunks)
        return array

    def _rows(self, value: Any) -> list:
        return list(ops.unstack(ops.convert_to_tensor(value, dtype_hint=self._dtype), axis=0))

    @staticmethod
    def _indices(indices: Any) -> list[int]:
        return [int(i) for i in ops.convert_to_tensor(indices, dtype_hint=dtypes.int32).numpy().reshape(-1)]

    # ---- in a trace -------------------------------------------------------------------------

    def _is_tensor(self) -> bool:
        """Whether it can be carried through a loop as one tensor."""
        return self._buffer is not None or (self._element_shape.is_fully_defined() and not self._dynamic_size)

    def _as_tensor(self) -> Any:
        """The elements as rows of one tensor."""
        if self._buffer is not None:
            return self._buffer
        if not self._element_shape.is_fully_defined():
            raise errors.InvalidArgumentError(
                None,
                None,
                "TensorArray: nothing was written yet, and the shape of the elements is not known. Hint: element_shape=.",
            )
        if all(t is None for t in self._tensors):
            return ops.zeros([len(self._tensors), *self._element_shape], self._dtype)
        return self._stacked(range(len(self._tensors)))

    def _with_tensor(self, buffer: Any) -> TensorArray:
        """An array like this one, with other elements."""
        new = copy.copy(self)
        new._tensors, new._cleared, new._buffer = [], set(), buffer
        new._element_shape = TensorShape(list(buffer.shape)[1:])
        return new

    def _with_zeros(self) -> TensorArray:
        return self._with_tensor(ops.zeros_like(self._as_tensor()))

    def _traced_write(self, index: Any, value: Any) -> TensorArray:
        new = copy.copy(self)
        new._tensors = list(self._tensors)
        if self._buffer is None and not _symbolic(index):
            new._write(_index(index), value)
            return new
        element = new._checked(value)
        if self._dynamic_size:
            new._grow(index)
        rows = ops.tensor_scatter_update(new._as_tensor(), ops.reshape(index, [1, 1]), element[None])
        return new._with_tensor(rows)

    def _grow(self, index: Any) -> None:
        """Gives an array that grows in a loop the size that it will have after the loop."""
        size = trips(index)
        if self._buffer is None:
            self._tensors += [None] * (size - len(self._tensors))
        elif size > self._buffer.shape[0]:
            more = ops.zeros([size - self._buffer.shape[0], *self._element_shape], self._dtype)
            self._buffer = ops.concat([self._buffer, more], 0)

    def _traced_unstack(self, value: Any) -> TensorArray:
        rows = ops.convert_to_tensor(value, dtype_hint=self._dtype)
        if rows.shape[0] > len(self) and not self._dynamic_size:
            raise ValueError(
                f"Cannot unstack {rows.shape[0]} tensors into a TensorArray of static size {len(self)} "
            )
        # A tape sees the array and not `value`: gradients of its elements are not IndexedSlices of it.
        return self._with_tensor(ops.identity(rows))

    def _traced_scatter(self, indices: Any, value: Any) -> TensorArray:
        rows = ops.convert_to_tensor(value, dtype_hint=self._dtype)
        if self._dynamic_size:
            if _symbolic(indices):
                raise errors.Untraceable(
                    "TensorArray.scatter: the size of the array depends on the values of tensors"
                )
            new = self
            for index, row in zip(self._indices(indices), self._rows(rows), strict=False):
                new = new._traced_write(index, row)
            return new
        new = copy.copy(self)
        new._element_shape = self._element_shape.merge_with(list(rows.shape)[1:])
        places = ops.convert_to_tensor(indices, dtype_hint=dtypes.int32)
        return new._with_tensor(ops.tensor_scatter_update(new._as_tensor(), places[:, None], rows))


class TensorArraySpec(TypeSpec):
    """The spec of a `tf.TensorArray`: the type and shape of its elements, and whether it grows.

    >>> import gradtape as tf
    >>> tf.TensorArraySpec.from_value(tf.TensorArray(tf.float32, 3, element_shape=[2]))
    TensorArraySpec(TensorShape([2]), tf.float32, False, True)
    """

    __slots__ = ("_element_shape", "_dtype", "_dynamic_size", "_infer_shape")

    _is_composite = False

    def __init__(
        self,
        element_shape: Any = None,
        dtype: Any = dtypes.float32,
        dynamic_size: bool = False,
        infer_shape: bool = True,
    ) -> None:
        self._element_shape = TensorShape(element_shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._dynamic_size = dynamic_size
        self._infer_shape = infer_shape

    @classmethod
    def from_value(cls, value: Any) -> TensorArraySpec:
        """The spec of an array.

        Raises:
          TypeError: if it is something else.
        """
        if not isinstance(value, TensorArray):
            raise TypeError(f"Expected value to be a TensorArray, but got: {type(value)}.")
        return cls(value.element_shape, value.dtype, value.dynamic_size, value._infer_shape)

    @property
    def value_type(self) -> type[TensorArray]:
        """The class of the values it describes."""
        return TensorArray

    def _serialize(self) -> tuple:
        return self._element_shape, self._dtype, self._dynamic_size, self._infer_shape


register_type_spec_from_value_converter(TensorArray, TensorArraySpec.from_value, allow_subclass=True)
