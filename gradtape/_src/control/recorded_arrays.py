"""`tf.TensorArray` in a recording (`graph/recording.py`): its methods are calls, made when the recording runs."""

from __future__ import annotations

from typing import Any

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.shape import TensorShape
from gradtape._src.control.tensor_array import TensorArray
from gradtape._src.graph import recording
from gradtape._src.graph.calls import Call, Recorded
from gradtape._src.graph.worlds import IN_WORLDS, World


class RecordedArray(TensorArray):
    """An array of a recording. What it is like is known of one world."""

    def __init__(self, value: Recorded, sketch: ArraySketch) -> None:
        self._recorded = value
        self._sketch = sketch
        self._dtype = sketch.dtype
        self._dynamic_size = sketch.dynamic_size
        self._buffer = None

    @property
    def element_shape(self) -> TensorShape:
        return self._sketch.element_shape

    def __len__(self) -> int:
        raise TypeError(
            "the size of a TensorArray is not known while a function is traced. Hint: array.size()."
        )

    def _is_tensor(self) -> bool:
        return True


def _method(name: str) -> Any:
    def call(array: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(array, name)(*args, **kwargs)

    call.__name__ = f"TensorArray.{name}"

    def record(self: RecordedArray, *args: Any, **kwargs: Any) -> Any:
        trace = recording.current()
        assert trace is not None
        return trace.call(call, (self, *args), kwargs)

    return record


for _name in (
    "write",
    "read",
    "stack",
    "gather",
    "concat",
    "unstack",
    "scatter",
    "split",
    "size",
    "close",
    "identity",
):
    setattr(RecordedArray, _name, _method(_name))


class ArraySketch:
    """An array in a world: the shape of its elements, and what was written."""

    def __init__(
        self, world: World, dtype: Any, element: tuple | None, size: int | None, dynamic: bool, infer: bool,
        inputs: tuple = (),
    ) -> None:  # fmt: skip
        self.world, self.dtype, self.element, self.count = world, dtype, element, size
        self.dynamic_size, self.infer, self.inputs = dynamic, infer, inputs

    def _as_recorded(self, value: Recorded) -> RecordedArray:
        return RecordedArray(value, self)

    @property
    def element_shape(self) -> TensorShape:
        if self.element is None:
            return TensorShape(None)
        return TensorShape([None if d == self.world.sample else d for d in self.element])

    def _with(self, element: tuple | None, size: int | None, *inputs: Any) -> ArraySketch:
        return ArraySketch(
            self.world, self.dtype, element, size, self.dynamic_size, self.infer, (*self.inputs, *inputs)
        )

    def in_any_iteration(self) -> ArraySketch:
        """The array at the beginning of any iteration: one that grows has any size."""
        return self._with(self.element, None if self.dynamic_size else self.count)

    def joined(self, others: tuple) -> ArraySketch:
        """What is true of this array and of the others."""
        out = self
        for other in others:
            element = out.element if other.element is None else other.element
            if out.element is not None and other.element is not None and out.element != other.element:
                same = len(out.element) == len(other.element)
                element = (
                    tuple(
                        a if a == b else self.world.sample
                        for a, b in zip(out.element, other.element, strict=True)
                    )
                    if same
                    else None
                )
            out = out._with(element, out.count if out.count == other.count else None, *other.inputs)
        return out

    def _fresh(self, *dims: Any) -> Any:
        known = [self.world.sample if d is None else d for d in dims]
        return self.world.fresh((*known, *(self.element or ())), self.dtype._code, self.inputs)

    def write(self, index: Any, value: Any, name: str | None = None) -> ArraySketch:
        value = recording.as_operand(value, self.dtype)
        dims = value._dims
        if self.infer and self.element is not None and self.element != dims:
            raise ValueError(
                f"Incompatible shape for value ({TensorShape(dims)}), expected ({TensorShape(self.element)})"
            )
        return self._with(dims, None if self.dynamic_size else self.count, value)

    def read(self, index: Any, name: str | None = None) -> Any:
        return self._fresh()

    def stack(self, name: str | None = None) -> Any:
        return self._fresh(self.count)

    def gather(self, indices: Any, name: str | None = None) -> Any:
        return self._fresh(*recording.as_operand(indices, dtypes.int32)._dims)

    def concat(self, name: str | None = None) -> Any:
        element = self.element or (self.world.sample,)
        return self.world.fresh((self.world.sample, *element[1:]), self.dtype._code, self.inputs)

    def unstack(self, value: Any, name: str | None = None) -> ArraySketch:
        value = recording.as_operand(value, self.dtype)
        return self._with(value._dims[1:], value._dims[0], value)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> ArraySketch:
        value = recording.as_operand(value, self.dtype)
        return self._with(value._dims[1:], None if self.dynamic_size else self.count, value)

    def split(self, value: Any, lengths: Any, name: str | None = None) -> ArraySketch:
        value = recording.as_operand(value, self.dtype)
        return self._with((self.world.sample, *value._dims[1:]), self.count, value)

    def size(self, name: str | None = None) -> Any:
        return self.world.fresh((), dtypes.int32._code, ())

    def identity(self) -> ArraySketch:
        return self

    def close(self, name: str | None = None) -> None:
        return None


def make_array(*args: Any, **kwargs: Any) -> Any:
    """A new array, as a call of a recording."""
    return TensorArray(*args, **kwargs)


def _take_over(array: TensorArray, args: tuple, kwargs: dict) -> None:
    trace = recording.current()
    assert trace is not None
    array.__class__ = RecordedArray
    array.__dict__.update(vars(trace.call(make_array, args, kwargs)))


def _sketched(world: World, call: Call) -> ArraySketch:
    def sketch(
        dtype: Any, size: Any = None, dynamic_size: Any = None, clear_after_read: Any = None,
        tensor_array_name: Any = None, handle: Any = None, flow: Any = None, infer_shape: bool = True,
        element_shape: Any = None, colocate_with_first_write_call: bool = True, name: Any = None,
    ) -> ArraySketch:  # fmt: skip
        shape = TensorShape(element_shape)
        element = (
            None if shape.rank is None else tuple(world.sample if d is None else d for d in shape.as_list())
        )
        known = size if isinstance(size, int) and not dynamic_size else None
        if isinstance(size, _core.Tensor) and size._symbol is None and not dynamic_size:
            known = int(size)
        return ArraySketch(world, dtypes.as_dtype(dtype), element, known, bool(dynamic_size), infer_shape)

    return Call(sketch, call.args, call.kwargs).make(world.frame)


IN_WORLDS[make_array] = _sketched
recording.TAKEN_OVER[TensorArray] = _take_over
