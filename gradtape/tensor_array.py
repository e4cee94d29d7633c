"""`tf.TensorArray`: a list of tensors of one type that loops write and read."""

from __future__ import annotations

from typing import Any

from gradtape import _core, dtypes, errors
from gradtape.shape import TensorShape


def _index(value: Any) -> int:
    return int(value._read()) if isinstance(value, _core.Variable) else int(value)


class TensorArray:
    """A list of tensors; `write` returns the array to go on with.

    Gradients pass through `write`, `read`, `stack` and the others like through any op.

    >>> import gradtape as tf
    >>> ta = tf.TensorArray(tf.float32, size=2)
    >>> ta = ta.write(0, 1.0).write(1, 2.0)
    >>> ta.stack().numpy()
    array([1., 2.], dtype=float32)

    Args:
      dtype: the type of the elements.
      size: the number of elements.
      dynamic_size: whether writing behind the end makes the array longer.
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
        if handle is not None:
            raise ValueError("TensorArray: Cannot provide `handle` when eager execution is enabled.")
        if size is None:
            raise ValueError("Size must be declared for TensorArrays when eager execution is enabled.")
        self._dtype = dtypes.as_dtype(dtype)
        self._dynamic_size = bool(dynamic_size)
        self._clear_after_read = True if clear_after_read is None else bool(clear_after_read)
        self._infer_shape = infer_shape
        self._element_shape = TensorShape(element_shape)
        self._tensors: list = [None] * _index(size)
        self._cleared: set[int] = set()

    # ---- what it is -------------------------------------------------------------------------

    @property
    def dtype(self) -> dtypes.DType:
        """The type of the elements."""
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        """Whether writing behind the end makes the array longer."""
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
        """A scalar that stands for the order of graph ops; it has no meaning here."""
        from gradtape import ops

        return ops.constant(0)

    def size(self, name: str | None = None) -> Any:
        """The number of elements, as a tensor."""
        from gradtape import ops

        return ops.constant(len(self._tensors))

    def __len__(self) -> int:
        return len(self._tensors)

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

    def read(self, index: Any, name: str | None = None) -> Any:
        """The element at `index`; with `clear_after_read` it can be read once.

        Raises:
          OutOfRangeError: if there is no such element.
          InvalidArgumentError: if it was read before and cleared.
        """
        index = _index(index)
        if index < 0:
            raise errors.OutOfRangeError(
                None, None, f"Reading from negative indices (index {index}) is not allowed."
            )
        if index >= len(self._tensors):
            raise errors.OutOfRangeError(
                None, None, f"Tried to read from index {index} but array size is: {len(self._tensors)} "
            )
        if self._tensors[index] is None and index in self._cleared:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Could not read index {index} twice because it was cleared after a previous read (perhaps "
                "try setting clear_after_read = false?)",
            )
        tensor = self._element(index)
        if self._clear_after_read:
            self._tensors[index] = None
            self._cleared.add(index)
        return tensor

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Puts `value` at `index`.

        Raises:
          OutOfRangeError: behind the end, unless `dynamic_size`.
          InvalidArgumentError: for a value of another type.
          ValueError: for a value of another shape than the elements before.
        """
        self._write(_index(index), value)
        return self

    def _element(self, index: int) -> Any:
        """An element; zeros if nothing was written."""
        if self._tensors[index] is None:
            from gradtape import ops

            if not self._element_shape.is_fully_defined():
                raise ValueError(
                    f"TensorArray: nothing was written at index {index}, and the shape of the elements is "
                    "not known."
                )
            self._tensors[index] = ops.zeros(self._element_shape, self._dtype)
        return self._tensors[index]

    def _write(self, index: int, value: Any) -> None:
        if index < 0:
            raise errors.OutOfRangeError(
                None, None, f"Writing to negative indices (index {index}) is not allowed."
            )
        size = len(self._tensors)
        if index >= size:
            if not self._dynamic_size:
                raise errors.OutOfRangeError(
                    None,
                    None,
                    f"Tried to write to index {index} but array is not resizeable and size is: {size} ",
                )
            self._tensors.extend([None] * (index - size + 1))
        self._tensors[index] = self._checked(value)

    def _checked(self, value: Any) -> Any:
        from gradtape import ops

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

    def stack(self, name: str | None = None) -> Any:
        """All elements as one tensor with a new first axis."""
        return self._stacked(range(len(self._tensors)))

    def gather(self, indices: Any, name: str | None = None) -> Any:
        """The elements at `indices` as one tensor."""
        return self._stacked(self._indices(indices))

    def _stacked(self, indices: Any) -> Any:
        from gradtape import ops

        elements = [self._element(i) for i in indices]
        if not elements:
            shape = self._element_shape.as_list() if self._element_shape.is_fully_defined() else []
            return ops.zeros([0, *shape], self._dtype)
        return ops.stack(elements, 0)

    def concat(self, name: str | None = None) -> Any:
        """All elements joined along their first axis."""
        from gradtape import ops

        return ops.concat([self._element(i) for i in range(len(self._tensors))], 0)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Fills the array with the rows of `value`."""
        tensors = self._rows(value)
        if len(tensors) > len(self._tensors) and not self._dynamic_size:
            raise ValueError(
                f"Cannot unstack {len(tensors)} tensors into a TensorArray of static size "
                f"{len(self._tensors)} "
            )
        self._tensors = [self._checked(t) for t in tensors]
        return self

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Puts the rows of `value` at `indices`."""
        for index, row in zip(self._indices(indices), self._rows(value), strict=False):
            self._write(index, row)
        return self

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Fills the array with pieces of `value` of the given lengths along the first axis."""
        from gradtape import ops

        pieces = ops.split(ops.convert_to_tensor(value, dtype_hint=self._dtype), self._indices(lengths), 0)
        if len(pieces) > len(self._tensors) and not self._dynamic_size:
            raise ValueError(
                f"TensorArray's size is not equal to the size of lengths ({len(self._tensors)} vs. "
                f"{len(pieces)}), and the TensorArray is not marked as dynamically resizeable."
            )
        self._tensors = list(pieces)
        return self

    def _rows(self, value: Any) -> list:
        from gradtape import ops

        return list(ops.unstack(ops.convert_to_tensor(value, dtype_hint=self._dtype), axis=0))

    @staticmethod
    def _indices(indices: Any) -> list[int]:
        from gradtape import ops

        return [int(i) for i in ops.convert_to_tensor(indices, dtype_hint=dtypes.int32).numpy().reshape(-1)]
