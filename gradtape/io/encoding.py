"""Writing image files: encode_jpeg, encode_png."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError
from gradtape._src.control.text_ops import run, tensor
from gradtape._src.ops.static import array_of
from gradtape._src.tensors.conversion import as_tensor
from gradtape.io import png
from gradtape.io.images import pillow


@one_call
def encode_jpeg(
    image: Any,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> Any:
    """A JPEG file of an image, uint8 `[height, width, 1 or 3]`, as bytes."""
    op = "encode_jpeg"
    is_tensor = isinstance(image, (_core.Tensor, _core.Variable))
    x = as_tensor(image) if is_tensor else ops.convert_to_tensor(image, dtypes.uint8)
    if x.dtype is not dtypes.uint8:
        raise InvalidArgumentError(
            f"{op}: image must be uint8; got image: {x.dtype.name}{list(x.shape)}. Hint: "
            "tf.image.convert_image_dtype(image, tf.uint8)."
        )
    if x.ndim != 3 or x.shape[-1] not in (1, 3):
        raise InvalidArgumentError(f"{op}: image must be [height, width, 1 or 3]; got shape {list(x.shape)}.")
    channels = {"": x.shape[-1], "grayscale": 1, "rgb": 3}.get(format)
    if channels != x.shape[-1]:
        raise InvalidArgumentError(
            f"{op}: format {format!r} does not fit an image of {x.shape[-1]} channels."
        )
    if not 0 <= quality <= 100:
        raise InvalidArgumentError(f"{op}: quality must be in [0,100], got {quality}.")
    if 0 in tuple(x.shape):
        raise InvalidArgumentError(f"{op}: image must not be empty; got shape {list(x.shape)}.")
    scale = 1.0 if density_unit == "in" else 2.54

    def encode(x: Any) -> list:
        pixels, file = array_of(x), io.BytesIO()
        pillow().fromarray(pixels[:, :, 0] if channels == 1 else pixels).save(
            file, "JPEG", quality=max(int(quality), 1), progressive=progressive, optimize=optimize_size,
            subsampling=2 if chroma_downsampling else 0, dpi=(x_density * scale, y_density * scale),
            **({"xmp": xmp_metadata.encode()} if xmp_metadata else {}),
        )  # fmt: skip
        return [tensor([file.getvalue()], ())]

    return run(op, encode, [x], [((), dtypes.string)])[0]


@one_call
def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Any:
    """A PNG file of an image, uint8 or uint16 `[..., height, width, 1 to 4]`, as bytes. Needs no Pillow.

    Args:
      compression: from 0 (fast) to 9 (small); -1 is between.
    """
    op = "encode_png"
    x = as_tensor(image)
    if x.dtype not in (dtypes.uint8, dtypes.uint16):
        raise InvalidArgumentError(
            f"{op}: image must be uint8 or uint16; got image: {x.dtype.name}{list(x.shape)}. Hint: "
            "tf.image.convert_image_dtype(image, tf.uint8)."
        )
    if x.ndim < 3 or x.shape[-1] not in (1, 2, 3, 4) or 0 in tuple(x.shape)[-3:]:
        raise InvalidArgumentError(
            f"{op}: image must be [..., height, width, 1 to 4]; got shape {list(x.shape)}."
        )
    if not -1 <= compression <= 9:
        raise InvalidArgumentError(f"{op}: compression should be in [-1,9], got {compression}.")
    shape = x._dims[:-3]

    def encode(x: Any) -> list:
        pixels = array_of(x)
        return [tensor([png.encode(pixels[at], int(compression)) for at in np.ndindex(shape)], shape)]

    return run(op, encode, [x], [(shape, dtypes.string)])[0]
