"""Shapes and signatures: `TensorShape`, `TensorSpec` and static broadcasting.

Nothing here reads values. `TensorShape` is what `t.shape` returns, so it is created on every access and kept small:
one slot, a tuple of sizes (None for an unknown size), or None for an unknown rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gradtape._src.base import dtypes
from gradtape._src.base.dimension import Dimension, TensorShapeProto, size_of
from gradtape._src.base.type_spec import BatchableTypeSpec, TypeSpec

Dims = tuple[int | None, ...]


class TensorShape:
    """The shape of a tensor, possibly partly unknown.

    Behaves as a tuple of its sizes: it has a length, can be indexed, sliced, iterated, added
    to and compared with tuples and lists.

    Args:
      dims: sizes (None where unknown), one size for a vector, another shape, or None for a
        shape of unknown rank.

    >>> from gradtape._src.base.shape import TensorShape
    >>> s = TensorShape([None, 3])
    >>> s
    TensorShape([None, 3])
    >>> print(s, s.rank, s[1], s == (None, 3))
    (None, 3) 2 3 True
    >>> (8,) + s[1:]
    TensorShape([8, 3])
    >>> s.is_compatible_with([5, 3]), s.is_fully_defined()
    (True, False)
    """

    __slots__ = ("_dims",)

    _dims: Dims | None

    def __init__(self, dims: Any) -> None:
        self._dims = _as_dims(dims)

    @staticmethod
    def _from_dims(dims: Dims) -> TensorShape:
        """A shape from a tuple that is known to be valid: unchecked, for the native core."""
        shape = _new(TensorShape)
        shape._dims = dims
        return shape

    # --- properties -----------------------------------------------------------------------

    @property
    def rank(self) -> int | None:
        """The number of dimensions, or None if unknown."""
        return None if self._dims is None else len(self._dims)

    ndims = rank

    @property
    def dims(self) -> list[Dimension] | None:
        """The sizes as a list of `tf.compat.v1.Dimension`, or None if the rank is unknown."""
        return None if self._dims is None else [Dimension(d) for d in self._dims]

    def as_proto(self) -> TensorShapeProto:
        """The shape as TensorFlow's message, in which an unknown size is -1."""
        if self._dims is None:
            return TensorShapeProto(unknown_rank=True)
        return TensorShapeProto([TensorShapeProto.Dim(-1 if d is None else d) for d in self._dims])

    experimental_as_proto = as_proto

    def as_list(self) -> list[int | None]:
        """The sizes as a list.

        Raises:
          ValueError: if the rank is unknown.
        """
        if self._dims is None:
            raise ValueError(
                "as_list: as_list() is not defined on an unknown TensorShape; expected a known "
                "rank; got <unknown>. Hint: ask for `shape.rank` first."
            )
        return list(self._dims)

    def num_elements(self) -> int | None:
        """The product of the sizes, or None if one is unknown."""
        if not self.is_fully_defined():
            return None
        product = 1
        for size in self._dims:  # type: ignore[union-attr]
            product *= size  # type: ignore[operator]
        return product

    def is_fully_defined(self) -> bool:
        """Whether every size is known."""
        return self._dims is not None and None not in self._dims

    # --- as a sequence ---------------------------------------------------------------------

    def __len__(self) -> int:
        if self._dims is None:
            raise ValueError("len: Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __bool__(self) -> bool:
        # The shape of a scalar is true, because it is known; false means an unknown shape.
        return self._dims is not None

    def __iter__(self) -> Iterator[Any]:  # int, or None where it is not known
        if self._dims is None:
            raise ValueError(
                "Cannot iterate over a shape with unknown rank: how many dimensions the tensor has is not known while the "
                "function is traced. Hint: tf.shape(x) gives them when it runs; a rank in the signature, as in "
                "tf.TensorSpec([None, None]), or x.set_shape(...) says it now."
            )
        return iter(self._dims)

    def __getitem__(self, key: Any) -> Any:
        dims = self._dims
        if dims is None:
            return _item_of_unknown(key)
        if isinstance(key, slice):
            return self._from_dims(dims[key])
        try:
            return dims[key]
        except IndexError:
            raise IndexError(
                f"shape: index {key} is out of range; expected {-len(dims)} to {len(dims) - 1}; "
                f"got shape {self}."
            ) from None

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    __concat__ = __add__

    def __radd__(self, other: Any) -> TensorShape:
        return as_shape(other).concatenate(self)

    def concatenate(self, other: Any) -> TensorShape:
        """This shape followed by `other`; unknown if either is."""
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return TensorShape(None)
        return self._from_dims(self._dims + other._dims)

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, TensorShape):
            return self._dims == other._dims
        if isinstance(other, tuple):
            return self._dims == other
        try:
            return self._dims == _as_dims(other)
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __str__(self) -> str:
        return "<unknown>" if self._dims is None else str(self._dims)

    def __repr__(self) -> str:
        return f"TensorShape({None if self._dims is None else list(self._dims)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (self._dims,)

    # --- against another shape -------------------------------------------------------------

    def is_compatible_with(self, other: Any) -> bool:
        """Whether one tensor could have both shapes."""
        mine, theirs = self._dims, _as_dims(other)
        if mine is None or theirs is None:
            return True
        return len(mine) == len(theirs) and all(
            a == b or a is None or b is None for a, b in zip(mine, theirs, strict=True)
        )

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError unless `is_compatible_with(other)`."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {as_shape(other)} are incompatible")

    def merge_with(self, other: Any) -> TensorShape:
        """The shape with every size that is known to either; ValueError if they contradict each other."""
        other = as_shape(other)
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are not compatible")
        if self._dims is None or other._dims is None:
            return other if self._dims is None else self
        return self._from_dims(
            tuple(b if a is None else a for a, b in zip(self._dims, other._dims, strict=True))
        )

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """The narrowest shape that covers both: sizes that differ become None."""
        mine, theirs = self._dims, _as_dims(other)
        if mine is None or theirs is None or len(mine) != len(theirs):
            return TensorShape(None)
        return self._from_dims(tuple(a if a == b else None for a, b in zip(mine, theirs, strict=True)))

    def most_specific_common_supertype(self, others: Iterable[Any]) -> TensorShape | None:
        """The narrowest shape that covers this one and all `others`."""
        result = self
        for other in others:
            if not isinstance(other, TensorShape):
                return None
            result = result.most_specific_compatible_shape(other)
        return result

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every tensor of this shape is also of shape `other`."""
        if not isinstance(other, TensorShape):
            return False
        if other._dims is None:
            return True
        return (
            self._dims is not None
            and len(self._dims) == len(other._dims)
            and all(b is None or a == b for a, b in zip(self._dims, other._dims, strict=True))
        )

    def _with_tensor_ranks_only(self) -> TensorShape:
        return self if self._dims is None else self._from_dims((None,) * len(self._dims))

    # --- checks on the rank ----------------------------------------------------------------

    def assert_has_rank(self, rank: int) -> None:
        """Raises ValueError unless the rank is `rank` or unknown."""
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def assert_same_rank(self, other: Any) -> None:
        """Raises ValueError unless the ranks are equal or one is unknown."""
        other = as_shape(other)
        if self.rank is not None and other.rank not in (None, self.rank):
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def assert_is_fully_defined(self) -> None:
        """Raises ValueError if a size is unknown."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def with_rank(self, rank: int) -> TensorShape:
        """This shape, or `[None] * rank` if its rank is unknown; ValueError if different."""
        self.assert_has_rank(rank)
        return self._from_dims((None,) * rank) if self._dims is None else self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """This shape; ValueError if it has fewer dimensions."""
        if self._dims is not None and len(self._dims) < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """This shape; ValueError if it has more dimensions."""
        if self._dims is not None and len(self._dims) > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self


_new = object.__new__


def as_shape(shape: Any) -> TensorShape:
    """`shape` itself if it is a `TensorShape`, else one made from it."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def unknown_shape(rank: int | None = None) -> TensorShape:
    """A shape of `rank` unknown sizes, or of unknown rank."""
    return TensorShape(None if rank is None else (None,) * rank)


def dimension_value(dimension: Any) -> Any:
    """`tf.compat.dimension_value`: the size of a `Dimension`; anything else unchanged."""
    return dimension.value if isinstance(dimension, Dimension) else dimension


def _as_dims(dims: Any) -> Dims | None:
    """A given shape, checked: a tuple of ints and Nones, or None."""
    if dims is None:
        return None
    if isinstance(dims, TensorShape):
        return dims._dims
    if isinstance(dims, (tuple, list)):
        return tuple([size_of(d, "TensorShape") for d in dims])
    if isinstance(dims, TensorShapeProto):
        return None if dims.unknown_rank else tuple([None if d.size < 0 else d.size for d in dims.dim])
    if isinstance(dims, (str, bytes)):
        raise _bad_size(dims)
    if hasattr(type(dims), "__iter__"):
        try:
            return tuple([size_of(d, "TensorShape") for d in dims])
        except TypeError:
            # A 0-d array or tensor has an __iter__ that raises; it is a single size.
            if getattr(dims, "ndim", None) != 0:
                raise
    return (size_of(dims, "TensorShape"),)


def _bad_size(size: Any) -> TypeError:
    return TypeError(
        "TensorShape: Dimension value must be integer or None or have an __index__ method; "
        f"expected sizes such as [2, None]; got {size!r} of type {type(size).__name__}."
    )


def _item_of_unknown(key: Any) -> Any:
    """An item or slice of a shape of unknown rank, as far as it is known."""
    if not isinstance(key, slice):
        return None
    if key.step is not None:
        raise ValueError("shape: Steps are not yet handled for a shape of unknown rank.")
    start, stop = key.start or 0, key.stop
    if stop is None or start < 0 or stop < 0:
        return TensorShape(None)
    return unknown_shape(max(stop - start, 0))


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The shape of an element-wise op on operands of the two shapes.

    Raises:
      ValueError: if they do not broadcast.

    >>> from gradtape._src.base.shape import broadcast_static_shape
    >>> broadcast_static_shape([4, 1], [3])
    TensorShape([4, 3])
    """
    x, y = _as_dims(shape_x), _as_dims(shape_y)
    if x is None or y is None:
        return TensorShape(None)
    rank = max(len(x), len(y))
    pairs = zip((1,) * (rank - len(x)) + x, (1,) * (rank - len(y)) + y, strict=True)
    out: list[int | None] = []
    for a, b in pairs:
        if a == b or b == 1:
            out.append(a)
        elif a == 1:
            out.append(b)
        elif a is None or b is None:
            # The unknown size must be 1 or equal the other one, so the result is known.
            out.append(b if a is None else a)
        else:
            raise ValueError(
                "broadcast_static_shape: Incompatible shapes for broadcasting; expected sizes "
                f"that are equal or 1, counted from the last; got {TensorShape(x)} and "
                f"{TensorShape(y)}."
            )
    return TensorShape._from_dims(tuple(out))


class DenseSpec(TypeSpec):
    """The spec of a value with a shape, an element type and perhaps a name: tensors, and values treated as tensors."""

    __slots__ = ("_shape", "_dtype", "_name")

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> None:
        self._shape = as_shape(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._name = name

    @property
    def shape(self) -> TensorShape:
        """The shape, possibly partly unknown."""
        return self._shape

    @property
    def dtype(self) -> dtypes.DType:
        """The element type."""
        return self._dtype

    @property
    def name(self) -> str | None:
        """The name of the argument it describes, or None."""
        return self._name

    def _serialize(self) -> tuple:
        return self._shape, self._dtype, self._name


class TensorSpec(DenseSpec, BatchableTypeSpec):
    """The spec of a tensor: shape, dtype and an optional name. Immutable.

    Describes the arguments of a `function` (`input_signature`) and of datasets.

    >>> from gradtape._src.base.shape import TensorSpec
    >>> spec = TensorSpec([None, 2], "float32", name="x")
    >>> spec
    TensorSpec(shape=(None, 2), dtype=tf.float32, name='x')
    >>> TensorSpec([None]).is_compatible_with(TensorSpec([3]))
    True
    """

    __slots__ = ()

    _is_composite = False

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        """The spec of another spec, renamed if `name` is given."""
        return cls(spec.shape, spec.dtype, name or getattr(spec, "name", None))

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """The spec of `tensor`.

        Raises:
          ValueError: if it is not a tensor or variable (a NumPy array has no spec).
        """
        if not _is_tensor_like(tensor):
            raise ValueError(
                "TensorSpec.from_tensor: `tensor` should be a tf.Tensor; expected a tensor or "
                f"variable; got {type(tensor).__name__}. Hint: tf.convert_to_tensor(value)."
            )
        return cls(tensor.shape, tensor.dtype, name)

    @property
    def value_type(self) -> Any:
        """The class of the values described: `tf.Tensor`."""
        from gradtape import Tensor  # type: ignore[attr-defined]  # above this module

        return Tensor

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether the tensor, or a tensor of the spec, fits this spec."""
        if not isinstance(spec_or_value, TensorSpec) and not _is_tensor_like(spec_or_value):
            return False
        return self._dtype == spec_or_value.dtype and self._shape.is_compatible_with(spec_or_value.shape)

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every tensor of this spec also fits `other`."""
        return (
            isinstance(other, TensorSpec)
            and self._name == other._name
            and self._dtype is other._dtype
            and self._shape.is_subtype_of(other._shape)
        )

    def most_specific_common_supertype(self, others: Iterable[Any]) -> TensorSpec | None:
        """The narrowest spec that covers this one and all `others`, or None."""
        shape = self._shape
        for other in others:
            if (
                not isinstance(other, TensorSpec)
                or other._dtype is not self._dtype
                or other._name != self._name
            ):
                return None
            shape = shape.most_specific_compatible_shape(other._shape)
        return TensorSpec(shape, self._dtype, self._name)

    # --- components: the tensor itself ---------------------------------------------

    @property
    def _component_specs(self) -> TensorSpec:
        return self

    def _to_components(self, value: Any) -> Any:
        return value

    def _from_components(self, components: Any) -> Any:
        return components

    @property
    def _flat_tensor_specs(self) -> list:
        return [self]

    def _to_tensor_list(self, value: Any) -> list:
        return [value]

    _to_batched_tensor_list = _to_tensor_list

    def _from_compatible_tensor_list(self, tensor_list: Any) -> Any:
        (tensor,) = tensor_list
        return tensor

    def _batch(self, batch_size: int | None) -> TensorSpec:
        return TensorSpec(TensorShape([batch_size]).concatenate(self._shape), self._dtype)

    def _unbatch(self) -> TensorSpec:
        if self._shape.rank == 0:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        return TensorSpec(self._shape[1:], self._dtype)

    def _without_tensor_names(self) -> TensorSpec:
        return self if self._name is None else TensorSpec(self._shape, self._dtype)

    def _to_legacy_output_types(self) -> dtypes.DType:
        return self._dtype

    def _to_legacy_output_shapes(self) -> TensorShape:
        return self._shape

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return (self._shape, self._dtype, self._name) == (other._shape, other._dtype, other._name)

    def __hash__(self) -> int:
        return hash((self._shape, self._dtype))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._shape, self._dtype, self._name)


def _is_tensor_like(value: Any) -> bool:
    """Whether it is a tensor, variable or symbolic tensor: has a `dtype` of ours."""
    return isinstance(getattr(value, "dtype", None), dtypes.DType) and hasattr(value, "shape")
