"""The common arguments of convolutions and pooling: strides, paddings and data formats in TensorFlow's forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape import _core
from gradtape._src.base.errors import InvalidArgumentError, UnimplementedError
from gradtape._src.ops.movement import reshape, transpose
from gradtape._src.ops.static import ints_of

__all__: list[str] = []

PADDINGS: dict[str, list[int]] = {"VALID": [], "SAME": [-1]}
FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


def channels_first(op: str, data_format: Any, dims: int) -> bool:
    """Whether channels come before the spatial axes."""
    last, first = FORMATS[dims]
    if data_format is None or data_format == last:
        return False
    if data_format != first:
        error = ValueError if dims == 1 else InvalidArgumentError
        raise error(f"{op}: `data_format` must be '{last}' or '{first}'. Received: data_format={data_format}")
    return True


def per_axis(op: str, value: Any, dims: int, first: bool, name: str) -> list[int]:
    """Converts `value` to one number per spatial axis: it may be one for all, one each, or one per axis of the images."""
    if value is None:
        return [1] * dims
    if type(value) is int:
        return [value] * dims
    sizes = ints_of(value)
    if len(sizes) == 1:
        return sizes * dims
    if len(sizes) == dims:
        return sizes
    if len(sizes) != dims + 2:
        raise ValueError(
            f"{op}: {name} should be of length 1, {dims} or {dims + 2}. Received: {name}={value} of length "
            f"{len(sizes)}"
        )
    outer = (sizes[0], sizes[1]) if first else (sizes[0], sizes[-1])
    if outer != (1, 1):
        raise UnimplementedError(
            f"{op}: Current implementation does not yet support {name} in the batch and depth dimensions; "
            f"got {name}={value}."
        )
    return sizes[2:] if first else sizes[1:-1]


def paddings(op: str, padding: Any, dims: int, first: bool) -> list[int]:
    """The attribute `paddings` of a row: [] for "VALID", [-1] for "SAME", else numbers before and after each axis.

    Args:
      padding: "VALID" (none), "SAME" (as many zeros as give ceil(size / stride) results; an odd one goes after),
        or `[[before, after], ...]` for every axis of the images.
    """
    if isinstance(padding, str):
        if padding not in PADDINGS:
            raise InvalidArgumentError(
                f"{op}: Value for attr 'padding' of \"{padding}\" is not in the list of allowed values: "
                f'"SAME", "VALID", "EXPLICIT"'
            )
        return PADDINGS[padding]
    return _explicit(op, padding, dims, first)


def resolved(
    paddings: Sequence[int], sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
    dilations: Sequence[int],
) -> list[int]:  # fmt: skip
    """The attribute `paddings` as numbers before and after each axis."""
    if len(paddings) == 2 * len(sizes):
        return list(paddings)
    pads: list[int] = []
    for n, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
        total = max(0, -(-n // s) * s - s + (k - 1) * d + 1 - n) if paddings else 0
        pads += (total // 2, total - total // 2)
    return pads


def results_of(
    sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
    paddings: Sequence[int],
) -> list[int]:  # fmt: skip
    """The number of results along each axis."""
    pads = resolved(paddings, sizes, kernel, strides, dilations)
    return [
        (n + pads[2 * i] + pads[2 * i + 1] - (k - 1) * d - 1 + s) // s
        for i, (n, k, s, d) in enumerate(zip(sizes, kernel, strides, dilations, strict=True))
    ]


def _explicit(op: str, padding: Any, dims: int, first: bool) -> list[int]:
    if not isinstance(padding, (list, tuple)):
        raise TypeError(f"{op}: Expected string or list of pairs for argument 'padding' not {padding!r}.")
    if len(padding) != dims + 2:
        raise ValueError(
            f"{op}: When padding is a list, it must be of size {dims + 2}. Received: padding={padding} of size "
            f"{len(padding)}"
        )
    pairs = [ints_of(pair) for pair in padding]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(
            f"{op}: Each element of a list of paddings must be a pair. Received: padding={padding}"
        )
    channel = 1 if first else -1
    if any(pairs[0]) or any(pairs[channel]):
        raise InvalidArgumentError(
            f"{op}: Nonzero explicit padding in the batch or depth dimensions is not supported; got {padding}."
        )
    inner = pairs[2:] if first else pairs[1:-1]
    return [n for pair in inner for n in pair]


# ---- formats --------------------------------------------------------------------------------------


def to_last(x: Any) -> Any:
    """`x` transposed to have its channels last."""
    rank = x.ndim
    return transpose(x, [0, *range(2, rank), 1])


def to_first(x: Any) -> Any:
    rank = x.ndim
    return transpose(x, [0, rank - 1, *range(1, rank - 1)])


def on_images(op: str, x: Any, dims: int, first: bool, function: Callable[[Any], Any]) -> Any:
    """Calls `function` with `x` as `[n, spatial..., channels]`, and converts the result to the format of `x`.

    All axes before the last `dims + 1` are batch axes.
    """
    rank = x.ndim
    if rank < dims + 2:
        raise InvalidArgumentError(
            f"{op}: input must be {dims + 2}-dimensional; got {x.dtype.name}{x.shape.as_list()}."
        )
    if rank == dims + 2 and not first:
        return function(x)
    outer = x.shape[: rank - dims - 1]
    if rank > dims + 2:
        x = reshape(x, [outer.num_elements(), *x.shape[rank - dims - 1 :]])
    out = function(to_last(x) if first else x)
    out = to_first(out) if first else out
    return reshape(out, [*outer, *out.shape[1:]]) if rank > dims + 2 else out


def is_tensor(x: Any) -> bool:
    return isinstance(x, (_core.Tensor, _core.Variable))


def steps_of(value: Any) -> list[int] | None:
    """Fast path: one number per spatial axis from the usual forms, channels last; None for any other form."""
    if type(value) is int:
        return [value, value]
    if type(value) is list and len(value) == 4 and value[0] == 1 == value[3]:
        return value[1:3]
    return value if type(value) is list and len(value) == 2 else None
