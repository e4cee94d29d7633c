"""The elements of datasets: nests of tensors and datasets, and the specs that describe them.

In an element, tuples, namedtuples, dicts, attrs classes and classes with `__tf_flatten__` are structure, and a list
becomes a tensor: `(x, [1, 2])` has two parts. Values are converted to elements once, where they enter a pipeline;
inside it `gradtape._src.base.nest` is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradtape import _core
from gradtape._src.base import nest
from gradtape._src.base.shape import TensorShape, TensorSpec, as_shape
from gradtape._src.base.type_spec import NoneTensorSpec, TypeSpec
from gradtape._src.tensors import conversion
from gradtape.data import kinds


class DatasetSpec(TypeSpec):
    """The spec of a dataset that is an element (of `window`), with the spec of its elements."""

    _is_composite = False  # it is not made of tensors

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self._element_spec = element_spec
        self._dataset_shape = as_shape(dataset_shape)

    @classmethod
    def from_value(cls, value: Any) -> DatasetSpec:
        """The spec of a dataset."""
        return cls(value.element_spec)

    @property
    def element_spec(self) -> Any:
        """The spec of the elements."""
        return self._element_spec

    @property
    def value_type(self) -> Any:
        """The class of the values it describes."""
        return kinds.Dataset

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a dataset, or a dataset of another spec, fits this spec."""
        return hasattr(spec_or_value, "element_spec") and compatible(
            self._element_spec, spec_or_value.element_spec
        )

    def _serialize(self) -> tuple:
        return self._element_spec, self._dataset_shape

    def _traced_example(self) -> Any:
        """A dataset of this spec about which nothing else is known, for traces by spec."""
        return kinds.Dataset.from_generator(lambda: iter(()), output_signature=self._element_spec)

    def _batch(self, batch_size: int | None) -> DatasetSpec:
        return DatasetSpec(self._element_spec, TensorShape([batch_size]).concatenate(self._dataset_shape))

    def _unbatch(self) -> DatasetSpec:
        if self._dataset_shape.rank == 0:
            raise ValueError("Slicing dataset elements is not supported for rank 0.")
        return DatasetSpec(self._element_spec, self._dataset_shape[1:])

    def _stacked(self, values: Sequence[Any]) -> DatasetArray:
        return DatasetArray(list(values))

    def _rows_at(self, value: DatasetArray, at: Any) -> DatasetArray:
        chosen = (
            value.datasets[at] if isinstance(at, slice) else [value.datasets[i] for i in at.numpy().tolist()]
        )
        return DatasetArray(chosen)

    def _row_at(self, value: DatasetArray, at: int) -> Any:
        return value.datasets[at]


class DatasetArray:
    """Several datasets as one part of an element: a batch of parts that are datasets."""

    def __init__(self, datasets: list) -> None:
        self.datasets = datasets

    @property
    def shape(self) -> TensorShape:
        """The number of datasets."""
        return self._type_spec._dataset_shape

    @property
    def _type_spec(self) -> DatasetSpec:
        one = self.datasets[0]._type_spec
        return one.most_specific_common_supertype([d._type_spec for d in self.datasets[1:]])._batch(
            len(self.datasets)
        )


# ---- values -------------------------------------------------------------------------------------


def normalise(value: Any) -> Any:
    """A user's value as an element: every part is a tensor, a dataset, or None.

    Raises:
      TypeError, ValueError: for other parts, as from `tf.convert_to_tensor`.
    """
    if type(value) is _core.Tensor:
        return value
    kind = _container(value)
    if kind is not None:
        return kind.rebuild(value, [normalise(child) for child in kind.children(value)])
    return _leaf(value)


def _container(value: Any) -> Any:
    """How a value that is structure in an element is taken apart; None for a part."""
    kind = nest._kind(value)
    if kind is None or isinstance(value, (tuple, Mapping)):
        return kind
    cls = type(value)
    return kind if hasattr(cls, "__tf_flatten__") or hasattr(cls, "__attrs_attrs__") else None


def _leaf(value: Any) -> Any:
    if isinstance(value, _core.Variable):
        return value._read()
    if value is None or hasattr(value, "_is_dataset") or type(value).__name__ == "Optional":
        return value
    if isinstance(value, list) and value and all(hasattr(v, "_is_dataset") for v in value):
        return DatasetArray(value)
    return value if is_composite(value) else conversion.convert(value)


def is_tensor(leaf: Any) -> bool:
    """Whether a part of an element is a tensor, rather than a dataset or None."""
    return type(leaf) is _core.Tensor


def is_composite(leaf: Any) -> bool:
    """Whether a part of an element is made of several tensors, or datasets."""
    return isinstance(leaf, DatasetArray) or (
        nest.is_composite(type(leaf)) and not isinstance(leaf, TypeSpec)
    )


def is_spec_of_composite(spec: Any) -> bool:
    """Whether a spec describes parts that are made of several tensors, or datasets."""
    return isinstance(spec, DatasetSpec) or (isinstance(spec, TypeSpec) and nest.is_composite(type(spec)))


def to_numpy(element: Any) -> Any:
    """An element with arrays, NumPy scalars and bytes in place of tensors."""
    return nest.map_structure(_leaf_to_numpy, element)


def _leaf_to_numpy(leaf: Any) -> Any:
    if type(leaf).__name__ == "SparseTensor":
        leaf = kinds.dense(leaf)
    return leaf if leaf is None else leaf.numpy()


def packer(structure: Any) -> Callable[[Sequence[Any]], Any]:
    """A function that packs a flat sequence of parts into the structure of `structure`."""
    kind = nest._kind(structure)
    if kind is None:
        return lambda flat: flat[0]
    flat_nest = not any(map(nest.is_nested, kind.children(structure)))
    if flat_nest and type(structure) is tuple:
        return tuple
    if flat_nest and type(structure) is dict:
        place = {key: i for i, key in enumerate(sorted(structure))}
        keys = [(key, place[key]) for key in structure]
        return lambda flat: {key: flat[i] for key, i in keys}
    return lambda flat: nest.pack_sequence_as(structure, list(flat))


def columns(elements: Sequence[Any]) -> list[Sequence[Any]]:
    """The parts of elements of the same structure, each part as a sequence over the elements."""
    first = elements[0]
    if not nest.is_nested(first):
        return [elements]
    if type(first) is tuple and not any(map(nest.is_nested, first)):
        return list(zip(*elements, strict=True))
    return list(zip(*map(nest.flatten, elements), strict=True))


# ---- specs --------------------------------------------------------------------------------------


def leaf_spec(leaf: Any) -> Any:
    """The spec of one part."""
    if type(leaf) is _core.Tensor:
        return TensorSpec(leaf.shape, leaf.dtype)
    if leaf is None:
        return NoneTensorSpec()
    return leaf._type_spec


def spec_of(element: Any) -> Any:
    """The spec of an element."""
    return nest.map_structure(leaf_spec, element)


def batched_spec(spec: Any, size: int | None) -> Any:
    """The spec of a batch of elements."""

    def leaf(s: Any) -> Any:
        if isinstance(s, TensorSpec):
            return TensorSpec(TensorShape([size]).concatenate(s.shape), s.dtype)
        if not hasattr(s, "_batch"):
            raise TypeError(f"batch: values of {s!r} cannot be stacked.")
        return s._batch(size)

    return nest.map_structure(leaf, spec)


def row_spec(spec: Any) -> Any:
    """The spec of the rows of elements."""

    def leaf(s: Any) -> Any:
        if isinstance(s, TensorSpec):
            return TensorSpec(s.shape[1:], s.dtype)
        if not hasattr(s, "_unbatch"):
            raise TypeError(f"unbatch: values of {s!r} have no rows.")
        return s._unbatch()

    return nest.map_structure(leaf, spec)


def is_defined(spec: Any) -> bool:
    """Whether the shape of every tensor is known."""
    return all(not isinstance(s, TensorSpec) or s.shape.is_fully_defined() for s in nest.flatten(spec))


def is_plain(spec: Any) -> bool:
    """Whether every part is a tensor of known shape."""
    return all(isinstance(s, TensorSpec) and s.shape.is_fully_defined() for s in nest.flatten(spec))


def same_form(a: Any, b: Any) -> bool:
    """Whether two specs have the same structure and element types."""
    try:
        nest.assert_same_structure(a, b)
    except (TypeError, ValueError):
        return False
    return all(
        type(x) is type(y) and getattr(x, "dtype", None) is getattr(y, "dtype", None)
        for x, y in zip(nest.flatten(a), nest.flatten(b), strict=True)
    )


def compatible(a: Any, b: Any) -> bool:
    """Whether an element could be of both specs."""
    return same_form(a, b) and all(
        x.is_compatible_with(y) for x, y in zip(nest.flatten(a), nest.flatten(b), strict=True)
    )


def common(a: Any, b: Any) -> Any:
    """The narrowest spec that covers both, which have the same structure."""

    def leaf(x: Any, y: Any) -> Any:
        if isinstance(x, TensorSpec):
            return TensorSpec(x.shape.most_specific_compatible_shape(y.shape), x.dtype)
        return x.most_specific_compatible_type(y) if is_spec_of_composite(x) else x

    return nest.map_structure(leaf, a, b)
