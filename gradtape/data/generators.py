"""`from_generator`: datasets of the values that Python generators yield."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes, nest
from gradtape._src.base.shape import TensorShape, TensorSpec, as_shape
from gradtape._src.base.type_spec import TypeSpec
from gradtape.data.base import Run, invalid
from gradtape.data.dataset import Dataset
from gradtape.data.structure import is_spec_of_composite, normalise, to_numpy

_MISFIT = "did not match the expected structure. The expected structure was"


class _GeneratorDataset(Dataset):
    """The values of a generator, checked against a signature."""

    def __init__(
        self, generator: Callable, output_types: Any, output_shapes: Any, args: Any, output_signature: Any
    ) -> None:
        super().__init__()
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        self._signature = _signature(output_types, output_shapes, output_signature)
        self._specs = nest.flatten(self._signature)
        self._is_nested = nest.is_nested(self._signature)
        # As in TensorFlow: then 1.5 becomes 1 for int32; otherwise it is an error.
        self._through_arrays = (
            self._is_nested
            or getattr(self._specs[0], "shape", None) is not None
            and (self._specs[0].shape.rank is not None)
        )
        self._generator = generator
        self._args = [to_numpy(normalise(a)) for a in (() if args is None else args)]

    def _spec(self, look: bool = False) -> Any:
        return self._signature

    def _elements(self, run: Run) -> Iterator[Any]:
        return map(self._convert, _Yielded(self._generator, self._args))

    def _convert(self, value: Any) -> Any:
        try:
            flat = _flat_like(self._signature, value)
        except (TypeError, ValueError, KeyError) as e:
            shown = nest.map_structure(lambda s: s.dtype, self._signature)
            raise invalid(
                f"TypeError: `generator` yielded an element that {_MISFIT} {shown}, but the yielded element was {value!r}."
            ) from e
        parts = [self._fit(v, s) for v, s in zip(flat, self._specs, strict=True)]
        return nest.pack_sequence_as(self._signature, parts) if self._is_nested else parts[0]

    def _fit(self, value: Any, spec: Any) -> Any:
        """A yielded value as a tensor of its spec."""
        if is_spec_of_composite(spec):
            if not spec.is_compatible_with(value):
                raise invalid(
                    f"TypeError: `generator` yielded an element that {_MISFIT} {spec}, but the yielded element was {value}."
                )
            return value
        try:
            is_tensor = isinstance(value, (_core.Tensor, _core.Variable))
            if is_tensor or spec.dtype is dtypes.string or not self._through_arrays:
                tensor = ops.convert_to_tensor(value, spec.dtype)
            else:
                tensor = ops.convert_to_tensor(np.asarray(value, dtype=spec.dtype.as_numpy_dtype), spec.dtype)
        except (TypeError, ValueError, OverflowError) as e:
            wrong = "could not be converted to the expected type. The expected type was"
            what = f"{wrong} {spec.dtype.name}" if self._through_arrays else f"{_MISFIT} {spec}"
            raise invalid(
                f"TypeError: `generator` yielded an element that {what}, but the yielded element was {value}."
            ) from e
        if not spec.shape.is_compatible_with(tensor.shape):
            raise invalid(
                f"TypeError: `generator` yielded an element of shape {tensor.shape} where an element of shape {spec.shape} "
                "was expected."
            )
        return tensor


class _Yielded:
    """The values of a generator. Unlike a Python generator, it can continue after an error, if its source can."""

    def __init__(self, generator: Callable, args: Sequence[Any]) -> None:
        self._begin = lambda: generator(*args)
        self._source: Iterator[Any] | None = None

    def __iter__(self) -> _Yielded:
        return self

    def __next__(self) -> Any:
        # The generator function is called for the first element, so that an unused iterator does nothing.
        if self._source is None:
            try:
                self._source = iter(self._begin())
            except TypeError as e:
                raise invalid(
                    f"TypeError: from_generator: {e}; `generator` must return something to iterate over."
                ) from e
        return next(self._source)


def _flat_like(structure: Any, value: Any) -> list:
    """The parts of `value` at the places of the leaves of `structure`. A list is not a tuple."""
    if not nest.is_nested(structure):
        return [value]
    if isinstance(structure, dict):
        if set(structure) != set(value):
            raise ValueError("the keys differ")
        return [x for key in sorted(structure) for x in _flat_like(structure[key], value[key])]
    if isinstance(value, (list, dict, str, bytes, np.ndarray)) or len(value) != len(structure):
        raise TypeError("not a tuple of the right length")
    return [x for s, v in zip(structure, value, strict=True) for x in _flat_like(s, v)]


def _signature(output_types: Any, output_shapes: Any, output_signature: Any) -> Any:
    """The specs of an element, from either form of the arguments."""
    if output_signature is not None:
        for given, what in ((output_types, "output_types"), (output_shapes, "output_shapes")):
            if given is not None:
                raise TypeError(
                    f"The `{what}` argument can not be used together with the `output_signature` argument."
                )
        for s in nest.flatten(output_signature):
            if not isinstance(s, TypeSpec):
                raise TypeError(
                    "`output_signature` must contain objects that are subclass of `tf.TypeSpec` but found "
                    f"{type(s)} which is not."
                )
            if not (isinstance(s, TensorSpec) or is_spec_of_composite(s)):
                raise NotImplementedError(f"Dataset.from_generator: gradtape has no values of {s!r}.")
        return _no_lists(output_signature)
    if output_types is None:
        raise TypeError(
            "To specify the output signature you need to provide either the `output_signature` argument or the "
            "`output_types` argument."
        )
    types = nest.map_structure(dtypes.as_dtype, _no_lists(output_types))
    if output_shapes is None:
        return nest.map_structure(lambda t: TensorSpec(None, t), types)
    shapes = [_as_shape(s) for s in nest.flatten_up_to(types, _no_lists(output_shapes, types))]
    specs = [TensorSpec(s, t) for s, t in zip(shapes, nest.flatten(types), strict=True)]
    return nest.pack_sequence_as(types, specs)


def _no_lists(value: Any, like: Any = None) -> Any:
    """A structure in which lists at the top level become tuples."""
    if isinstance(value, list) and (like is None or nest.is_nested(like)):
        return tuple(value)
    return value


def _as_shape(shape: Any) -> TensorShape:
    return as_shape(shape if isinstance(shape, (list, tuple, TensorShape)) or shape is None else [shape])
