"""Ops that move elements: reshape, transpose, broadcast, tile, repeat, pad, roll, and identity.

Their rules read shapes only, so a tape keeps none of their operands alive. Diagonals are in
`diagonals`, slices in `slicing`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src.base.dtypes import bool as boolean
from gradtape._src.base.dtypes import string
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.ops import arithmetic, batching, indexed, reduction, rewriting, slicing
from gradtape._src.ops.samples import call
from gradtape._src.ops.static import array_of, axis_of, ints_of
from gradtape._src.ops.table import ALL, NUMBER, composite, movement, opaque
from gradtape._src.tensors.conversion import as_tensor

__all__ = [
    "adjoint", "broadcast_to", "expand_dims", "identity", "matrix_transpose", "meshgrid", "mirror_pad", "pad",
    "repeat",
    "reshape", "reverse", "roll", "squeeze", "stop_gradient", "tile", "transpose",
]  # fmt: skip

# ---- the same elements in the same order ----

identity = movement(
    "identity", ALL, "input", transpose=lambda g, x, out: g, alias=True, simplify=rewriting.identity,
    xla="jnp.asarray",
    numpy=lambda x: x, samples=[call(()), call((2, 3)), call((0, 3))], names="identity",
    doc="A tensor with the values of `input`; for a variable, its current value.",
)  # fmt: skip

stop_gradient = opaque(
    "stop_gradient", ALL, "input", rule=None, native="identity", xla="lax.stop_gradient",
    batch="leading",
    numpy=lambda x: x, samples=[call(()), call((2, 3))], names="stop_gradient",
    doc="The values of `input`, treated as constant: no gradient passes through.",
)  # fmt: skip

reshape = movement(
    "reshape", ALL, "tensor shape:Reshape", alias=True, simplify=rewriting.reshape, xla="jnp.reshape",
    transpose=lambda g, x, out, shape: reshape(g, x.shape),
    numpy=lambda x, shape: np.reshape(x, shape),
    samples=[
        call((), shape=[]), call((), shape=[1, 1]), call((2, 3), shape=[6]), call((2, 3), shape=[3, -1]),
        call((2, 3), shape=-1), call((0, 3), shape=[3, 0]), call((2, 3, 4), shape=(4, 3, 2)),
    ],
    bad=[
        (call((2, 3), shape=[4]), "InvalidArgumentError", "Input to reshape is a tensor with 6 values"),
        (call((2, 3), shape=[-1, 4]), "InvalidArgumentError", "requires a multiple of 4"),
        (call((2, 3), shape=[-1, -1]), "InvalidArgumentError", "only one dimension"),
        (call((2, 3), shape=[6.0]), "TypeError", "expected a list of integers"),
    ],
    names="reshape", doc="The elements of `tensor` in another shape; one size may be -1 and follows from "
        "the others.",
)  # fmt: skip

expand_dims = movement(
    "expand_dims", ALL, "input axis:NewAxis", alias=True, xla="jnp.expand_dims",
    transpose=lambda g, x, out, axis: reshape(g, x.shape),
    numpy=lambda x, axis: np.expand_dims(x, axis),
    samples=[
        call((), axis=0), call((2, 3), axis=0), call((2, 3), axis=1), call((2, 3), axis=-1),
        call((0,), axis=-2),
    ],
    bad=[
        (call((2, 3), axis=3), "InvalidArgumentError", "out of range"),
        (call((2,), axis=None), "ValueError", "integer"),
    ],
    names="expand_dims", doc="`input` with a dimension of size 1 inserted at `axis`.",
)  # fmt: skip


def _numpy_squeeze(x, axis=None):
    return np.squeeze(x, (tuple(axis) or None) if isinstance(axis, list) else axis)


squeeze_axes = movement(
    "squeeze_axes", ALL, "input axis:Axes", alias=True, xla="movement.reshaped",
    transpose=lambda g, x, out, axis: reshape(g, x.shape),
    numpy=_numpy_squeeze,
    samples=[
        call((1, 2, 1), axis=0), call((1, 2, 1), axis=[0, -1]), call((1, 2, 1), axis=[]),
        call((1, 0), axis=[0]),
    ],
    bad=[
        (
            call((2, 3), axis=0), "InvalidArgumentError",
            "Can not squeeze dim[0], expected a dimension of 1, got 2",
        ),
        (call((1, 3), axis=2), "InvalidArgumentError", "out of range"),
    ],
    doc="`input` without the dimensions `axis`, which must have size 1; without all of these if the list is "
        "empty.",
)  # fmt: skip

squeeze = movement(
    "squeeze", ALL, "input axis:Extra=None", fallback=squeeze_axes, alias=True, xla="jnp.squeeze",
    batch=batching.squeeze,
    transpose=lambda g, x, out: reshape(g, x.shape),
    numpy=_numpy_squeeze,
    samples=[call(()), call((1, 2, 1)), call((2, 3)), call((1, 1)), call((1, 0))],
    names="squeeze", doc="`input` without its dimensions of size 1, or without those that `axis` names.",
)  # fmt: skip

# ---- the elements in another order ----


def _inverse(perm):
    places = [0] * len(perm)
    for i, p in enumerate(perm):
        places[p] = i
    return places


def _transpose_conjugate(a: Any, perm: Any = None, conjugate: bool = False, name: str | None = None) -> Any:
    a = as_tensor(a)
    return transpose(arithmetic.conj(a) if conjugate and a.dtype.is_complex else a, perm)


transpose = movement(
    "transpose", ALL, "a perm:Perm=None conjugate:Extra=False", fallback=_transpose_conjugate,
    xla="jnp.transpose",
    simplify=rewriting.transpose,
    transpose=lambda g, x, out, perm: transpose(g, _inverse(perm)),
    numpy=lambda x, perm=None: np.transpose(x, perm),
    samples=[
        call(()), call((3,)), call((2, 3)), call((2, 3, 4), perm=[2, 0, 1]), call((2, 3, 4), perm=(-1, 0, 1)),
        call((2, 1, 3), perm=[1, 0, 2]), call((0, 3)), call((2, 3, 2, 2), perm=[0, 2, 1, 3]),
    ],
    bad=[
        (call((2, 3), perm=[0]), "InvalidArgumentError", "transpose expects a vector of size 2"),
        (call((2, 3), perm=[0, 0]), "InvalidArgumentError", "twice"),
        (call((2, 3), perm=[0, 2]), "InvalidArgumentError", "out of range"),
    ],
    names="transpose", doc="`a` with its axes in the order `perm`, by default reversed; `conjugate` "
        "also conjugates.",
)  # fmt: skip

reverse = movement(
    "reverse", ALL, "tensor axis:Axes", xla="lax.rev",
    transpose=lambda g, x, out, axis: reverse(g, axis),
    numpy=lambda x, axis: np.flip(x, tuple(axis)),
    samples=[
        call((3,), axis=[0]), call((2, 3), axis=[-1]), call((2, 3, 4), axis=[0, 2]), call((2, 3), axis=[]),
        call((0, 3), axis=[1]), call((), axis=[]),
    ],
    bad=[
        (call((2, 3), axis=[2]), "InvalidArgumentError", "out of range"),
        (call((2, 3), axis=[0, 0]), "InvalidArgumentError", "duplicate"),
    ],
    names="reverse", doc="`tensor` with the elements along each `axis` reversed.",
)  # fmt: skip

rolled = movement(
    "roll", ALL, "input shift:Ints axis:Ints", xla="movement.roll",
    batch=batching.roll,
    transpose=lambda g, x, out, shift, axis: rolled(g, [-s for s in shift], axis),
    numpy=lambda x, shift, axis: np.roll(x, tuple(shift), tuple(axis)),
    samples=[
        call((4,), shift=[1], axis=[0]), call((2, 3), shift=[-1, 5], axis=[0, 1]),
        call((2, 3), shift=[1, 1], axis=[1, 1]),
        call((0, 3), shift=[2], axis=[1]), call((2, 3), shift=[], axis=[]),
    ],
    bad=[
        (call((2, 3), shift=[1], axis=[2]), "InvalidArgumentError", "axis 2 is out of range"),
        (
            call((2, 3), shift=[1], axis=[0, 1]), "InvalidArgumentError",
            "shift and axis must have the same size",
        ),
    ],
    doc="`input` with its elements shifted by `shift` along `axis`; those shifted out re-enter at the "
        "other end.",
)  # fmt: skip


@composite("roll")
def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Any:
    """`input` with its elements shifted by `shift` along `axis`; those shifted out re-enter at the other end."""
    x = as_tensor(input)
    return rolled(x, ints_of(shift), [axis_of("roll", a, x.ndim) for a in ints_of(axis)])


@composite("linalg.matrix_transpose")
def matrix_transpose(a: Any, name: str | None = None, conjugate: bool = False) -> Any:
    """`a` with its last two axes exchanged; with `conjugate`, the conjugate transpose.

    Raises:
      ValueError: if `a` has fewer than two dimensions.
    """
    a = as_tensor(a)
    rank = a.ndim
    if rank < 2:
        raise ValueError(
            f"matrix_transpose: Argument `a` should be a (batch) matrix with rank >= 2. Received `a` of shape {a.shape}."
        )
    return transpose(a, [*range(rank - 2), rank - 1, rank - 2], conjugate)


@composite("linalg.adjoint")
def adjoint(matrix: Any, name: str | None = None) -> Any:
    """`a` with its last two axes exchanged, conjugated."""
    return matrix_transpose(matrix, conjugate=True)


# ---- elements more than once ----

broadcast_to = movement(
    "broadcast_to", ALL, "input shape:Shape", simplify=rewriting.to_shape, xla="jnp.broadcast_to",
    batch=batching.broadcast_to,
    transpose=lambda g, x, out, shape: reduction.sum_to(g, x.shape),
    numpy=lambda x, shape: np.broadcast_to(x, shape),
    samples=[
        call((), shape=[]), call((), shape=[2, 3]), call((3,), shape=[2, 3]), call((2, 1), shape=[2, 3]),
        call((1, 3), shape=[4, 2, 3]), call((2, 3), shape=[2, 3]), call((1, 3), shape=[0, 3]),
        call((0, 1), shape=[0, 3]),
    ],
    bad=[
        (call((2, 3), shape=[3]), "InvalidArgumentError", "Incompatible shapes: [2,3] vs. [3]"),
        (call((2,), shape=[3]), "InvalidArgumentError", "Incompatible shapes"),
        (call((2,), shape=[-1]), "InvalidArgumentError", "must be >= 0"),
    ],
    names="broadcast_to", doc="`input` repeated along new axes and axes of size 1 until it has `shape`.",
)  # fmt: skip


def _untile(g, x, out, multiples):
    shape, axes = [], []
    for size, times in zip(x.shape, multiples, strict=True):
        if times != 1:
            axes.append(len(shape))
            shape.append(times)
        shape.append(size)
    return reduction.reduce_sum(reshape(g, shape), axes) if axes else g


tile = movement(
    "tile", ALL, "input multiples:Ints", transpose=_untile, xla="jnp.tile",
    batch=batching.tile,
    numpy=lambda x, multiples: np.tile(x, multiples),
    samples=[
        call((), multiples=[]), call((3,), multiples=[2]), call((2, 3), multiples=[1, 3]),
        call((2, 3), multiples=[2, 2]),
        call((2, 1), multiples=[1, 1]), call((2, 3), multiples=[0, 2]), call((0, 3), multiples=[2, 2]),
    ],
    bad=[
        (call((2, 3), multiples=[2]), "InvalidArgumentError", "to be a vector of length 2 but got length 1"),
        (call((2, 3), multiples=[-1, 1]), "InvalidArgumentError", "Expected multiples[0] >= 0, but got -1"),
    ],
    names="tile", doc="`input` repeated `multiples[i]` times along each axis i.",
)  # fmt: skip


def _unrepeat(g, x, out, repeats, axis):
    shape = list(x.shape)
    return reduction.reduce_sum(reshape(g, [*shape[: axis + 1], repeats, *shape[axis + 1 :]]), axis + 1)


repeated = movement(
    "repeat", ALL, "input repeats:Int axis:Axis", transpose=_unrepeat, xla="jnp.repeat",
    batch="leading",
    numpy=lambda x, repeats, axis: np.repeat(x, repeats, axis),
    samples=[
        call((3,), repeats=2, axis=0), call((2, 3), repeats=3, axis=-1), call((2, 3), repeats=1, axis=0),
        call((0, 2), repeats=2, axis=1),
    ],
    bad=[
        (call((2,), repeats=-1, axis=0), "InvalidArgumentError", "non-negative"),
        (call((2,), repeats=1, axis=1), "InvalidArgumentError", "out of range"),
    ],
    doc="`input` with each element along `axis` repeated `repeats` times.",
)  # fmt: skip


@composite("repeat")
def repeat(input: Any, repeats: Any, axis: Any = None, name: str | None = None) -> Any:
    """`input` with each element along `axis` repeated; without an axis, the flattened tensor.

    Args:
      repeats: the number of repetitions, one for all elements or one for each.
    """
    x, times = as_tensor(input), array_of(repeats)
    if times.dtype.kind not in "iu" and times.size:
        raise TypeError(
            f"repeat: Argument `tensor` (name: repeats) must be of type integer. Received `tensor` = {repeats}"
        )
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    axis = axis_of("repeat", axis, x.ndim)
    if times.size == 1:
        return repeated(x, int(times.reshape(())), axis)
    if times.ndim != 1 or times.size != x.shape[axis]:
        raise ValueError(
            f"repeat: Dimensions {x.shape[axis]} and {times.size} are not compatible; expected one number "
            f"of repeats, "
            f"or one for each element along axis {axis}; got {times.size}."
        )
    if times.min() < 0:
        raise InvalidArgumentError("repeat: repeats must be non-negative.")
    # With batch_dims=0: the gradient of `gather` itself would be an IndexedSlices.
    return indexed.gather_batched(x, np.repeat(np.arange(times.size), times), axis, 0)


@composite("meshgrid")
def meshgrid(*args: Any, **kwargs: Any) -> list:
    """The coordinates of the points of a grid: one tensor for each of the vectors `args`.

    Args:
      indexing: "xy" (the first vector runs along the second axis) or "ij".
    """
    indexing = kwargs.pop("indexing", "xy")
    kwargs.pop("name", None)
    if kwargs:
        raise TypeError(f"meshgrid: '{next(iter(kwargs))}' is an invalid keyword argument for this function")
    if indexing not in ("xy", "ij"):
        raise ValueError(
            f"meshgrid: Argument `indexing` parameter must be either 'xy' or 'ij', got '{indexing}'"
        )
    vectors = [reshape(x, [-1]) for x in args]
    count = len(vectors)
    places = [1, 0, *range(2, count)] if indexing == "xy" and count > 1 else list(range(count))
    shape = [0] * count
    for x, place in zip(vectors, places, strict=True):
        shape[place] = x.shape[0]
    return [
        broadcast_to(reshape(x, [-1 if i == place else 1 for i in range(count)]), shape)
        for x, place in zip(vectors, places, strict=True)
    ]


# ---- borders ----


def _numpy_pad(x, value, paddings):
    return np.pad(x, np.reshape(paddings, (-1, 2)), constant_values=value) if x.ndim else x


padded = movement(
    "pad", ALL, "tensor constant_values paddings:Ints", xla="movement.pad",
    batch=batching.pad,
    # As in TensorFlow the constant has no gradient.
    transpose=(
        lambda g, x, value, out, paddings: slicing.index(g, paddings[::2], [1] * x.ndim, x.shape, x.shape),
        None,
    ),
    numpy=_numpy_pad,
    samples=[
        call((), (), paddings=[]), call((3,), (), paddings=[1, 2]), call((2, 3), (), paddings=[0, 0, 2, 1]),
        call((0, 3), (), paddings=[1, 1, 0, 0]), call((2, 3), (), paddings=[0, 0, 0, 0]),
    ],
    bad=[
        (
            call((2, 3), (), paddings=[1, 1]), "InvalidArgumentError",
            "The first dimension of paddings must be the rank",
        ),
        (call((2,), (), paddings=[1, -1]), "InvalidArgumentError", "Paddings must be non-negative: 1 -1"),
        (call((2,), (2,), paddings=[1, 1]), "InvalidArgumentError", "must be a scalar"),
    ],
    doc="`tensor` with a border of `constant_values`; `paddings` has the width before and after, axis by "
        "axis.",
)  # fmt: skip

_MODES = ("reflect", "symmetric")


def _numpy_mirror(x, paddings, mode):
    return np.pad(x, np.reshape(paddings, (-1, 2)), mode=_MODES[mode])


def _numpy_unmirror(g, paddings, mode):
    shape = [n - paddings[2 * i] - paddings[2 * i + 1] for i, n in enumerate(g.shape)]
    places = _numpy_mirror(np.arange(int(np.prod(shape))).reshape(shape), paddings, mode)
    out = np.zeros(int(np.prod(shape)), g.dtype)
    np.add.at(out, places.reshape(-1), g.reshape(-1))
    return out.reshape(shape)


mirror_pad = movement(
    "mirror_pad", ALL, "tensor paddings:Ints mode:Int", xla="movement.mirror_pad",
    batch=batching.mirror_pad,
    transpose=lambda g, x, out, paddings, mode: mirror_unpad(g, paddings, mode),
    numpy=_numpy_mirror,
    samples=[
        call((3,), paddings=[2, 1], mode=0), call((3,), paddings=[3, 1], mode=1),
        call((2, 3), paddings=[1, 1, 2, 0], mode=0),
    ],
    bad=[
        (
            call((2,), paddings=[2, 1], mode=0), "InvalidArgumentError",
            "paddings must be less than the dimension size: 2",
        ),
        (call((2,), paddings=[3, 1], mode=1), "InvalidArgumentError", "no greater than the dimension size"),
        (call((2,), paddings=[1, -1], mode=1), "InvalidArgumentError", "non-negative"),
    ],
    doc="`tensor` with a border of its mirrored elements; mode 0 leaves the edge out, mode 1 "
        "repeats it.",
)  # fmt: skip

mirror_unpad = movement(
    "mirror_unpad", NUMBER, "g paddings:Ints mode:Int", native="mirror_pad_grad", pattern="adds",
    xla="movement.mirror_unpad",
    batch=batching.mirror_unpad,
    transpose=lambda g, x, out, paddings, mode: mirror_pad(g, paddings, mode),
    numpy=_numpy_unmirror,
    samples=[
        call((6,), paddings=[2, 1], mode=0), call((7,), paddings=[3, 1], mode=1),
        call((4, 5), paddings=[1, 1, 2, 0], mode=0),
    ],
    doc="The transpose of mirror_pad: the border is added to the elements that it was copied from.",
)  # fmt: skip


@composite("pad")
def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None
) -> Any:
    """`tensor` with a border around it.

    Args:
      paddings: the width before and after each axis, `[[before, after], ...]`.
      mode: "CONSTANT" (of `constant_values`), "REFLECT" (mirrored without the edge) or "SYMMETRIC".

    Raises:
      ValueError: if the mode is unknown.
      InvalidArgumentError: if the paddings do not match the shape of the tensor.
    """
    x = as_tensor(tensor)
    if not isinstance(paddings, (list, tuple)):
        paddings = array_of(paddings).tolist()
    try:
        widths = [width for before, after in paddings for width in (before, after)]
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"pad: paddings must be a matrix with 2 columns, one row for each axis; got {paddings!r}."
        ) from None
    mode = mode.upper()
    if mode == "CONSTANT":
        if isinstance(constant_values, int) and constant_values == 0:  # the default: the zero of each type
            constant_values = {string: "", boolean: False}.get(x.dtype, 0)
        return padded(x, constant_values, widths)
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ValueError(
            f'pad: Value of argument `mode` expected to be one of "CONSTANT", "REFLECT", or "SYMMETRIC". '
            f"Received `mode` = {mode}"
        )
    return mirror_pad(x, widths, int(mode == "SYMMETRIC"))
