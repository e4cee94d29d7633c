"""`tf.conv`, one function for two and three spatial axes, and patches of volumes.

They check arguments as TensorFlow's kernels of the same names do, and call the rows `conv` and `patches`.
"""

from __future__ import annotations

from typing import Any

from gradtape._src.base.errors import InvalidArgumentError, UnimplementedError
from gradtape._src.ops.convolutions import convolution
from gradtape._src.ops.movement import expand_dims, squeeze
from gradtape._src.ops.patches import patches
from gradtape._src.ops.static import ints_of
from gradtape._src.ops.table import composite
from gradtape._src.ops.windows import FORMATS, PADDINGS
from gradtape._src.tensors.conversion import as_tensor, as_tensors

__all__ = ["conv_general", "extract_volume_patches"]

_FORMATS = ("CHANNELS_LAST", "CHANNELS_FIRST")


@composite("conv")
def conv_general(
    input: Any, filter: Any, strides: Any, padding: str, explicit_paddings: Any = (), data_format: str = "CHANNELS_LAST",
    dilations: Any = (), batch_dims: int = 1, groups: int = 1, name: str | None = None,
) -> Any:  # fmt: skip
    """A convolution over two or three spatial axes.

    Args:
      input: `batch_dims` batch axes, the spatial axes, and channels, which `data_format` may put before the
        spatial axes.
      filter: `[sizes..., in_channels, out_channels]`.
      strides, dilations: one number for each axis, 1 for the batch and the channels.
      padding: "SAME", "VALID" or "EXPLICIT", for which `explicit_paddings` has two numbers for each axis.
      groups: the number of groups of channels; filters have `channels / groups` input channels.

    >>> import gradtape as tf
    >>> tf.conv(tf.ones([1, 4, 4, 1]), tf.ones([2, 2, 1, 1]), [1, 2, 2, 1], "VALID").shape
    TensorShape([1, 2, 2, 1])
    """
    x, w = as_tensors(input, filter)
    if data_format not in _FORMATS:
        raise InvalidArgumentError(_not_allowed("data_format", data_format, _FORMATS[::-1]))
    if padding not in (*PADDINGS, "EXPLICIT"):
        raise InvalidArgumentError(_not_allowed("padding", padding, ("SAME", "VALID", "EXPLICIT")))
    if not isinstance(strides, (list, tuple)):
        raise TypeError(f"conv: Expected list for 'strides' argument to 'conv' Op, not {strides!r}.")
    if w.ndim not in (4, 5):
        raise InvalidArgumentError(f"conv: The filter must be rank 4 or 5 but got {w.ndim}")
    dims = x.ndim - 1 - batch_dims
    if dims not in (2, 3) or batch_dims < 0:
        raise InvalidArgumentError(f"conv: The input must have 2 or 3 spatial dimensions but got {dims}")
    first = data_format == "CHANNELS_FIRST"
    strides, dilations = ints_of(strides), ints_of(dilations) or [1] * (dims + 2)
    for kind, numbers in (("Sliding window strides", strides), ("Dilation rates", dilations)):
        if len(numbers) != dims + 2:
            raise InvalidArgumentError(
                f"conv: {kind} field must specify {dims + 2} dimensions; got {numbers}."
            )
    for kind, numbers in (("strides", strides), ("dilation rates", dilations)):
        if numbers[0] != 1 or numbers[1 if first else -1] != 1:
            raise InvalidArgumentError(
                f"conv: Current implementation does not support {kind} in the batch and depth dimensions; got {numbers}."
            )
        if min(numbers) < 1:
            raise InvalidArgumentError(f"conv: Spatial {kind} should be larger than 0; got {numbers}.")
    if w.ndim != dims + 2:
        raise InvalidArgumentError(f"conv: The filter must be rank {dims + 2} but got {w.ndim}")
    depth = x.shape[batch_dims if first else -1]
    if groups < 1 or depth != w.shape[-2] * groups:
        raise InvalidArgumentError(
            f"conv: Input depth must be equal to filter depth: {depth} vs {w.shape[-2]}; got groups={groups}."
        )
    pads = _pads(padding, ints_of(explicit_paddings), dims)
    if batch_dims == 0:
        x = expand_dims(x, 0)
    out = convolution(x, w, strides, pads, FORMATS[dims][first], dilations)
    return squeeze(out, [0]) if batch_dims == 0 else out


def _not_allowed(name, value, allowed):
    texts = ", ".join(f'"{a}"' for a in allowed)
    return f"Value for attr '{name}' of \"{value}\" is not in the list of allowed values: {texts}"


def _pads(padding, explicit, dims):
    if padding != "EXPLICIT":
        if explicit:
            raise InvalidArgumentError(
                "conv: explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT"
            )
        return padding
    if len(explicit) != 2 * (dims + 2):
        raise InvalidArgumentError(
            f"conv: explicit_paddings attribute must contain {2 * (dims + 2)} values, but got: {len(explicit)}"
        )
    return [explicit[i : i + 2] for i in range(0, len(explicit), 2)]


@composite("extract_volume_patches")
def extract_volume_patches(
    input: Any, ksizes: Any, strides: Any, padding: str, name: str | None = None
) -> Any:
    """Extracts patches from volumes `[batch, planes, rows, columns, depth]`; each becomes one vector along the last axis.

    Args:
      ksizes, strides: the size of a patch, and the step from patch to patch: `[1, planes, rows, columns, 1]`.
      padding: "SAME" or "VALID".
    """
    x = as_tensor(input)
    sizes, steps = ints_of(ksizes), ints_of(strides)
    for argument, numbers in (("ksizes", sizes), ("strides", steps)):
        if len(numbers) < 5:
            raise InvalidArgumentError(
                f"extract_volume_patches: Length for attr '{argument}' of {len(numbers)} must be at least minimum 5"
            )
        if numbers[0] != 1 or numbers[4] != 1:
            raise UnimplementedError(
                f"extract_volume_patches: Only support {argument} across space; got {numbers}."
            )
    if padding not in PADDINGS:
        raise InvalidArgumentError(_not_allowed("padding", padding, ("SAME", "VALID")))
    if x.ndim != 5:
        raise InvalidArgumentError(
            f"extract_volume_patches: input must be 5-dimensional; got {x.shape.as_list()}."
        )
    return patches(x, sizes[1:4], steps[1:4], [1, 1, 1], PADDINGS[padding])
