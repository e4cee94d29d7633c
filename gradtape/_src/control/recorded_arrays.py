"""`tf.TensorArray` in a recording (`graph/recording.py`): its methods are calls, made when the recording runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes, errors
from gradtape._src.base.shape import TensorShape
from gradtape._src.control.tensor_array import TensorArray
from gradtape._src.graph import recording
from gradtape._src.graph.calls import Call, Recorded
from gradtape._src.graph.trace import current_recording
from gradtape._src.graph.worlds import IN_WORLDS, World


class Elements:
    """What is known about the elements of an array and its successors; as in TensorFlow, writes add to it."""

    def __init__(self, shape: Any, infer: bool) -> None:
        self.shape = TensorShape(shape)
        self._infer = infer

    def learn(self, shape: TensorShape) -> None:
        """Takes the shape of a written element into account."""
        if not shape.is_compatible_with(self.shape):
            raise ValueError(f"Inconsistent shapes: saw {shape} but expected {self.shape}")
        if self._infer:
            self.shape = self.shape.merge_with(shape)

    def common(self, other: Elements) -> Elements:
        """What holds for both these elements and the others."""
        if other is self:
            return self
        return Elements(self.shape.most_specific_compatible_shape(other.shape), self._infer and other._infer)


class RecordedArray(TensorArray):
    """An array of a recording."""

    def __init__(self, value: Recorded, sketch: ArraySketch) -> None:
        self._recorded = value
        self._elements = sketch.elements
        self._dtype = sketch.dtype
        self._dynamic_size = sketch.dynamic_size
        self._buffer = None

    @property
    def element_shape(self) -> TensorShape:
        return self._elements.shape

    def __len__(self) -> int:
        raise TypeError(
            "the size of a TensorArray is not known while a function is traced. Hint: array.size()."
        )

    def _is_tensor(self) -> bool:
        return True

    def write(self, index: Any, value: Any, name: str | None = None) -> Any:
        value = self._operand(value)
        self._elements.learn(value.shape)
        return _write(self, index, value)

    def unstack(self, value: Any, name: str | None = None) -> Any:
        value = self._operand(value)
        self._elements.learn(value.shape[1:])
        return _unstack(self, value)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> Any:
        value = self._operand(value)
        self._elements.learn(value.shape[1:])
        return _scatter(self, indices, value)

    def split(self, value: Any, lengths: Any, name: str | None = None) -> Any:
        value = self._operand(value)
        lengths = ops.convert_to_tensor(lengths, dtype_hint=dtypes.int32)
        if lengths._symbol is None and len(sizes := set(self._indices(lengths))) == 1:
            self._elements.learn(TensorShape([*sizes]).concatenate(value.shape[1:]))
        return _split(self, value, lengths)

    def _operand(self, value: Any) -> Any:
        value = ops.convert_to_tensor(value, dtype_hint=self._dtype)
        if value.dtype != self._dtype:
            raise ValueError(
                f"TensorArray dtype is {self._dtype.name} but Op is trying to write dtype {value.dtype.name}"
            )
        return value


METHODS: dict[str, Callable] = {}  # by the name of a method of arrays: the call that it records


def _method(name: str) -> Callable:
    def call(array: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return getattr(array, name)(*args, **kwargs)
        except (errors.OutOfRangeError, ValueError) as e:
            raise errors.InvalidArgumentError(None, None, str(e)) from None  # as in TensorFlow's graphs

    call.__name__ = f"TensorArray.{name}"
    METHODS[call.__name__] = call

    def record(self: RecordedArray, *args: Any, **kwargs: Any) -> Any:
        trace = current_recording()
        assert trace is not None
        return trace.call(call, (self, *args), kwargs)

    return record


_write, _unstack, _scatter, _split = map(_method, ("write", "unstack", "scatter", "split"))
for _name in ("read", "stack", "gather", "concat", "size", "close", "identity"):
    setattr(RecordedArray, _name, _method(_name))


class ArraySketch:
    """An array in a world: the shape and number of its elements, and the values that they depend on."""

    def __init__(
        self,
        world: World,
        dtype: Any,
        elements: Elements,
        size: int | None,
        dynamic: bool,
        inputs: tuple = (),
    ) -> None:
        self.world, self.dtype, self.elements, self.count = world, dtype, elements, size
        self.dynamic_size, self.inputs = dynamic, inputs

    def _as_recorded(self, value: Recorded) -> RecordedArray:
        return RecordedArray(value, self)

    def _with(self, elements: Elements, size: int | None, *inputs: Any) -> ArraySketch:
        return ArraySketch(self.world, self.dtype, elements, size, self.dynamic_size, (*self.inputs, *inputs))

    def in_any_iteration(self) -> ArraySketch:
        """The array at the beginning of any iteration; if it can grow, its size is unknown."""
        return self._with(self.elements, None if self.dynamic_size else self.count)

    def joined(self, others: tuple) -> ArraySketch:
        """What this array and the others have in common."""
        out = self
        for other in others:
            size = out.count if out.count == other.count else None
            out = out._with(out.elements.common(other.elements), size, *other.inputs)
        return out

    def _fresh(self, shape: TensorShape) -> Any:
        static = None if shape.rank is None else tuple(shape.as_list())
        return self.world.fresh(self.world.shape_of(static), self.dtype._code, self.inputs)

    def read(self, index: Any, name: str | None = None) -> Any:
        return self._fresh(self.elements.shape)

    def stack(self, name: str | None = None) -> Any:
        return self._fresh(TensorShape([self.count]).concatenate(self.elements.shape))

    def gather(self, indices: Any, name: str | None = None) -> Any:
        indices = recording.as_operand(indices, dtypes.int32)
        return self._fresh(TensorShape(indices._dims).concatenate(self.elements.shape))

    def concat(self, name: str | None = None) -> Any:
        shape = self.elements.shape
        return self._fresh(shape if shape.rank is None else TensorShape([None]).concatenate(shape[1:]))

    def write(self, index: Any, value: Any) -> ArraySketch:
        return self._with(self.elements, None if self.dynamic_size else self.count, value)

    def unstack(self, value: Any) -> ArraySketch:
        return self._with(self.elements, value._dims[0], value)

    def scatter(self, indices: Any, value: Any) -> ArraySketch:
        return self.write(indices, value)

    def split(self, value: Any, lengths: Any) -> ArraySketch:
        return self._with(self.elements, self.count, value)

    def size(self, name: str | None = None) -> Any:
        return self.world.fresh((), dtypes.int32._code, ())

    def identity(self) -> ArraySketch:
        return self

    def close(self, name: str | None = None) -> None:
        return None


class ArrayOfRun(TensorArray):
    """An array while a recording runs. As in TensorFlow's graphs, its elements can be read again, and may
    differ in unknown sizes."""

    def __init__(self, dtype: Any, size: Any, dynamic_size: Any, element_shape: TensorShape) -> None:
        traced = _core.current_trace() is not None  # in a program all elements have one shape
        super().__init__(dtype, size, dynamic_size, False, infer_shape=traced, element_shape=element_shape)
        self._declared_shape = TensorShape(element_shape)

    def _checked(self, value: Any) -> Any:
        shape = ops.convert_to_tensor(value, dtype_hint=self._dtype).shape
        if self._declared_shape.is_compatible_with(shape) and not self._element_shape.is_compatible_with(
            shape
        ):
            raise errors.Untraceable("TensorArray: its elements have different shapes")
        return super()._checked(value)

    def _element(self, index: int) -> Any:
        if self._tensors[index] is None and not self._element_shape.is_fully_defined():
            like = next((t for t in self._tensors if t is not None), None)
            if like is not None:
                return ops.zeros_like(like)
        return super()._element(index)


def make_array(elements: Elements, dtype: Any, size: Any, dynamic_size: Any) -> Any:
    """A new array, as a recorded call. It starts with everything that the finished recording knows about its elements."""
    return ArrayOfRun(dtype, size, dynamic_size, elements.shape)


def _take_over(array: TensorArray, args: tuple, kwargs: dict) -> None:
    trace = current_recording()
    assert trace is not None
    elements = Elements(kwargs["element_shape"], kwargs["infer_shape"])
    array.__class__ = RecordedArray
    array.__dict__.update(vars(trace.call(make_array, (elements, *args[:3]), {})))


def _sketched(world: World, call: Call) -> ArraySketch:
    def sketch(elements: Elements, dtype: Any, size: Any, dynamic_size: Any) -> ArraySketch:
        count = size if isinstance(size, int) and not dynamic_size else None
        if isinstance(size, _core.Tensor) and size._symbol is None and not dynamic_size:
            count = int(size)
        return ArraySketch(world, dtypes.as_dtype(dtype), elements, count, bool(dynamic_size))

    return Call(sketch, call.args, call.kwargs).make(world.frame)


IN_WORLDS[make_array] = _sketched
recording.TAKEN_OVER[TensorArray] = _take_over
