"""Small composites of arithmetic: scalar_mul, accumulate_n, polyval, identity_n, unravel_index."""

from __future__ import annotations

import numpy as np

from gradtape import _core
from gradtape._src.base import errors
from gradtape._src.ops import activations, arithmetic
from gradtape._src.ops.arithmetic import divide_no_nan
from gradtape._src.ops.casting import cast
from gradtape._src.ops.creation import zeros_like
from gradtape._src.ops.join import add_n
from gradtape._src.ops.movement import identity, reshape
from gradtape._src.ops.samples import pairs
from gradtape._src.ops.scan import cumprod
from gradtape._src.ops.table import WIDE, composite, elementwise
from gradtape._src.tensors.conversion import as_tensor, convert
from gradtape._src.tensors.indexed_slices import IndexedSlices

__all__ = ["nextafter", "polyval", "scalar_mul"]

composite("math.softsign")(activations.softsign)

nextafter = elementwise(
    "nextafter", WIDE, args="x1 x2", xla="jnp.nextafter",
    linear="x1+x2", vjp=(lambda g, x, y, out: g, lambda g, x, y, out: 0 * g),
    numpy=np.nextafter, samples=pairs(), names="math.nextafter",
    doc="The floating-point number next to `x1` in the direction of `x2`. The derivatives are 1 and 0.",
)  # fmt: skip


@composite("scalar_mul math.scalar_mul")
def scalar_mul(scalar, x, name=None):
    """`scalar * x`; the values of IndexedSlices are multiplied and stay sparse."""
    sparse = isinstance(x, IndexedSlices)
    values = x.values if sparse else as_tensor(x)
    factor = as_tensor(scalar, values)
    if factor.dtype is not values.dtype:
        factor = convert(factor, values.dtype._code)  # which raises ValueError
    if factor.ndim:
        raise ValueError(f"scalar_mul: The input scalar must be a 0-D value. Received shape {factor.shape}.")
    return IndexedSlices(factor * values, x.indices, x.dense_shape) if sparse else factor * values


@composite("math.accumulate_n")
def accumulate_n(inputs, shape=None, tensor_dtype=None, name=None):
    """The sum of a list of tensors of one shape and type."""
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise ValueError(
            "accumulate_n: inputs must be a list of at least one Tensor/IndexedSlices with the same dtype and shape."
        )
    tensors = [as_tensor(x) for x in inputs]
    if any(t.dtype is not tensors[0].dtype or t.shape != tensors[0].shape for t in tensors):
        raise ValueError(
            "accumulate_n: inputs must be a list of at least one Tensor/IndexedSlices with the same dtype and shape."
        )
    if tensor_dtype is not None and tensor_dtype != tensors[0].dtype:
        raise TypeError(
            f"accumulate_n: tensor_dtype is {tensor_dtype}, but input is of type {tensors[0].dtype}."
        )
    if shape is not None and not tensors[0].shape.is_compatible_with(shape):
        raise ValueError(f"accumulate_n: Shapes {shape} and {tensors[0].shape} are not compatible")
    return add_n(tensors)


@composite("math.reciprocal_no_nan")
def reciprocal_no_nan(x, name=None):
    """`1 / x`, and 0 where `x` is 0."""
    x = as_tensor(x)
    return divide_no_nan(as_tensor(1, x), x)


@composite("math.polyval")
def polyval(coeffs, x, name=None):
    """The polynomial with the coefficients `coeffs`, highest power first, at `x` (Horner's scheme).

    Raises:
      ValueError: if `coeffs` is not a list.
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"polyval: Argument coeffs must be list type. Received type {type(coeffs)}.")
    x = as_tensor(x)
    if not coeffs:
        return zeros_like(x)
    total = as_tensor(coeffs[0], x)
    for c in coeffs[1:]:
        total = c + total * x
    return total


@composite("identity_n")
def identity_n(input, name=None):
    """The tensors of a list as they are."""
    return [identity(x) for x in input]


@composite("tuple")
def tuple_(tensors, control_inputs=None, name=None):
    """The list `tensors` as it is. `control_inputs` have no effect: ops run in the order of the program."""
    return [
        None if t is None else t if isinstance(t, (IndexedSlices, _core.Variable)) else as_tensor(t)
        for t in tensors
    ]


@composite("guarantee_const")
def guarantee_const(input, name=None):
    """`input` as it is."""
    return identity(input)


@composite("unravel_index")
def unravel_index(indices, dims, name=None):
    """Converts flat indices into a tensor of shape `dims` to coordinates, one column per index."""
    flat, shape = as_tensor(indices), as_tensor(dims)
    if flat.dtype is not shape.dtype:
        shape = cast(shape, flat.dtype)
    strides = cumprod(shape, exclusive=True, reverse=True)  # the stride of each axis, in elements
    columns = reshape(flat, [1, -1]) if flat.ndim else flat
    rows = reshape(strides, [-1, 1]) if flat.ndim else strides
    sizes = reshape(shape, [-1, 1]) if flat.ndim else shape
    if flat._symbol is None and shape._symbol is None:
        total = int(np.prod(shape.numpy()))
        outside = np.asarray(flat.numpy()).reshape(-1)
        outside = outside[(outside < 0) | (outside >= total)]
        if outside.size:
            raise errors.InvalidArgumentError(
                f"unravel_index: index is out of bound as with dims; got {outside[0]} of {total}."
            )
    return arithmetic.floormod(arithmetic.floordiv(columns, rows), sizes)
