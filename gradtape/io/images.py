"""Reading image files: decode_jpeg, decode_png, decode_image and so on. Writing is in `encoding`.

Pillow does the work, except for plain PNG files (`png`); it is imported on first use.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import dtypes
from gradtape._src.base.calls import one_call
from gradtape._src.base.errors import InvalidArgumentError, UnimplementedError
from gradtape._src.base.reading import reading
from gradtape._src.control.text_ops import elements, run, scalar
from gradtape._src.ops.static import array_of
from gradtape.io import png
from gradtape.io.contents import of_bytes, text_of

_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_PLAIN = ("L", "LA", "RGB", "RGBA")
_MOST_PIXELS = 1 << 29  # in all frames together; TensorFlow's limit


def pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            "Reading and writing image files needs Pillow. Hint: pip install gradtape[image]."
        ) from None
    return Image


def _open(data: bytes, op: str, formats: tuple[str, ...] | None = None) -> Any:
    kinds = " or ".join(formats or ("BMP", "GIF", "JPEG", "PNG"))
    what = (
        f"{op}: Unknown image file format, or invalid data. {kinds} required; got {len(data)} bytes beginning with "
        f"{data[:8]!r}: "
    )
    with reading(what, InvalidArgumentError):
        try:
            return pillow().open(io.BytesIO(data), formats=formats)
        except pillow().UnidentifiedImageError:  # whose message is an address in memory
            raise InvalidArgumentError(what.removesuffix(": ") + ".") from None


def _pixels(image: Any, channels: int, op: str) -> np.ndarray:
    """The pixels of an image as uint8 [height, width, channels]; 0 channels means as many as in the file."""
    with reading(f"{op}: Invalid {image.format} data: ", InvalidArgumentError):
        return _read_pixels(image, channels)


def _read_pixels(image: Any, channels: int) -> np.ndarray:
    mode = _MODES[channels] if channels else _own_mode(image)
    if image.mode.startswith("I;16"):
        image = pillow().fromarray((np.asarray(image, np.uint16) >> 8).astype(np.uint8))
    image.load()
    if image.mode != mode:
        image = image.convert("RGB" if image.mode == "P" and mode == "L" else mode).convert(mode)
    array = np.asarray(image)
    return array[:, :, None] if array.ndim == 2 else array


def _own_mode(image: Any) -> str:
    if image.mode in _PLAIN:
        return image.mode
    if image.mode == "1" or image.mode.startswith("I"):
        return "L"
    return "RGBA" if image.mode == "P" and "transparency" in image.info else "RGB"


def _tensor(pixels: np.ndarray) -> _core.Tensor:
    kind = dtypes.uint8 if pixels.dtype == np.uint8 else dtypes.uint16
    return _core.from_buffer(np.ascontiguousarray(pixels), kind._code)


def _want_channels(channels: Any, allowed: tuple[int, ...], op: str) -> int:
    channels = 0 if channels is None else int(channels)
    if channels not in allowed:
        raise InvalidArgumentError(f"{op}: channels must be one of {list(allowed)}; got {channels}.")
    return channels


def _shape(channels: int) -> tuple:
    """The static shape of an image before it is read."""
    return (None, None, channels or None)


# ---- one format ---------------------------------------------------------------------------------


def _jpeg_image(data: bytes, channels: int, ratio: int, op: str) -> Any:
    if channels == 4:
        raise InvalidArgumentError(f"{op}: JPEG does not support 4 channels.")
    image = _open(data, op, ("JPEG",))
    width, height = image.size
    # The decoder itself can scale down, and return only brightness.
    mode = "L" if channels == 1 and image.mode == "RGB" else None
    if mode or ratio > 1:
        image.draft(mode or image.mode, (max(width // ratio, 1), max(height // ratio, 1)))
    return image


@one_call
def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Any:
    """The pixels of a JPEG file: uint8 `[height, width, channels]`. Also reads PNG and GIF.

    Args:
      contents: the bytes of the file, as returned by `tf.io.read_file`.
      channels: 1 for brightness, 3 for colour, 0 for what the file has.
      ratio: 1, 2, 4 or 8: scales the image down, which reads faster.
      try_recover_truncated: return the available part of a truncated file.
      fancy_upscaling, acceptable_fraction, dct_method: accepted, without effect.
    """
    op = "decode_jpeg"
    count = _want_channels(channels, (0, 1, 3, 4), op)
    if int(ratio) not in (1, 2, 4, 8):
        raise InvalidArgumentError(f"{op}: ratio must be 1, 2, 4, or 8, got {ratio}.")

    def decode(data: bytes) -> Any:
        if not is_jpeg_data(data):
            return _decode_any(data, count, op)
        image = _jpeg_image(data, count, int(ratio), op)
        return _tensor((_recovered if try_recover_truncated else _pixels)(image, count, op))

    return of_bytes(op, decode, contents, _shape(count))


def _recovered(image: Any, channels: int, op: str) -> np.ndarray:
    from PIL import ImageFile

    before = ImageFile.LOAD_TRUNCATED_IMAGES
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        return _pixels(image, channels, op)
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = before


@one_call
def decode_and_crop_jpeg(
    contents: Any,
    crop_window: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Any:
    """A part of a JPEG file: `crop_window` is `[y, x, height, width]`."""
    op = "decode_and_crop_jpeg"
    count = _want_channels(channels, (0, 1, 3), op)

    def decode(data: Any, window: Any) -> list:
        y, x, height, width = elements(window)
        pixels = _pixels(_jpeg_image(_jpeg_only(scalar(data), op), count, int(ratio), op), count, op)
        down, across = pixels.shape[:2]
        if min(y, x) < 0 or min(height, width) <= 0 or y + height > down or x + width > across:
            raise InvalidArgumentError(
                f"{op}: Invalid crop window {[y, x, height, width]}; the image has {down} x {across} pixels."
            )
        return [_tensor(pixels[y : y + height, x : x + width])]

    window = ops.convert_to_tensor(crop_window, dtypes.int32)
    return run(op, decode, [text_of(contents, op), window], [(_shape(count), dtypes.uint8)])[0]


def _jpeg_only(data: bytes, op: str) -> bytes:
    if is_jpeg_data(data):
        return data
    raise InvalidArgumentError(
        f"{op}: expected a JPEG file; got {len(data)} bytes beginning with {data[:8]!r}."
    )


@one_call
def decode_png(contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None) -> Any:
    """The pixels of a PNG file: `[height, width, channels]`. Also reads JPEG and GIF.

    Args:
      contents: the bytes of the file, as returned by `tf.io.read_file`.
      channels: 1 for brightness, 3 for colour, 4 for colour with alpha, 0 for what the file has.
      dtype: uint8, or uint16 for files with 16 bits a channel.
    """
    op = "decode_png"
    kind = dtypes.as_dtype(dtype)
    if kind not in (dtypes.uint8, dtypes.uint16):
        raise InvalidArgumentError(f"{op}: dtype must be uint8 or uint16; got {kind.name}.")
    count = _want_channels(channels, (0, 1, 3, 4), op)

    def decode(data: bytes) -> Any:
        if kind is dtypes.uint16:
            return _tensor(_pixels_16(data, count, op))
        return _decode_any(data, count, op)

    return of_bytes(op, decode, contents, _shape(count), kind)


def _pixels_16(data: bytes, channels: int, op: str) -> np.ndarray:
    """Pixels as uint16: 16-bit values unchanged, 8-bit values widened as in PNG files, or by conversion."""
    if not png.is_png(data):
        return array_of(_decode_any(data, channels, op)).astype(np.uint16) * 256
    if png.header(data)[2] != 16:
        return array_of(_decode_any(data, channels, op)).astype(np.uint16) * 257
    with reading(f"{op}: Invalid PNG data: ", InvalidArgumentError):
        pixels = png.decode_16(data)
    own = pixels.shape[2]
    if channels in (0, own):
        return pixels
    if own <= 2 and channels >= 3:
        pixels = np.concatenate([np.repeat(pixels[..., :1], 3, -1), pixels[..., 1:]], -1)
    if channels == 4 and pixels.shape[2] == 3:
        return np.concatenate([pixels, np.full_like(pixels[..., :1], 65535)], -1)
    if channels < 3 and own >= 3:
        raise UnimplementedError(
            f"{op}: colour of 16 bits as brightness; expected channels 0, 3 or 4; got {channels}."
        )
    return pixels[..., :channels]


@one_call
def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Any:
    """The pixels of a BMP file: uint8 `[height, width, channels]`."""
    count = _want_channels(channels, (0, 3, 4), "decode_bmp")
    return of_bytes("decode_bmp", lambda data: _bmp(data, count), contents, _shape(count))


def _bmp(data: bytes, count: int) -> Any:
    image = _open(data, "decode_bmp", ("BMP",))
    if data[28:30] == b"\x20\0" and count != 3:  # 32 bits: Pillow ignores alpha
        size, at = 4 * image.width * image.height, int.from_bytes(data[10:14], "little")
        with reading("decode_bmp: Invalid BMP data: ", InvalidArgumentError):
            rows = np.frombuffer(data, np.uint8, size, at)
            pixels = rows.reshape(image.height, image.width, 4)[:, :, [2, 1, 0, 3]]
        upwards = int.from_bytes(data[22:26], "little", signed=True) > 0
        return _tensor(pixels[::-1] if upwards else pixels)
    return _tensor(_pixels(image, count, "decode_bmp"))


@one_call
def decode_gif(contents: Any, name: str | None = None) -> Any:
    """The frames of a GIF file: uint8 `[frames, height, width, 3]`. Also reads JPEG and PNG: one frame."""

    def decode(data: bytes) -> Any:
        if data[:3] == b"GIF":
            return _tensor(_frames(_open(data, "decode_gif", ("GIF",)), 3, "decode_gif"))
        return ops.expand_dims(_decode_any(data, 3, "decode_gif"), 0)

    return of_bytes("decode_gif", decode, contents, (None, None, None, 3))


def _frames(image: Any, channels: int, op: str) -> np.ndarray:
    with reading(f"{op}: Invalid {image.format} data: ", InvalidArgumentError):
        count = getattr(image, "n_frames", 1)
        if count * image.width * image.height > _MOST_PIXELS:
            raise ValueError(f"{count} frames of {image.width} x {image.height} pixels are too many")
        frames = []
        size = image.size
        for k in range(count):
            image.seek(k)
            if image.size != size:  # a frame extends beyond the first one, which a few bytes can claim
                raise ValueError(f"frame {k} makes an image of {size} pixels one of {image.size}")
            frames.append(_read_pixels(image, channels))
        return np.stack(frames)


@one_call
def decode_webp(contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None) -> Any:
    """The frames of a WebP file: uint8 `[frames, height, width, channels]`."""
    count = _want_channels(channels, (0, 3, 4), "decode_webp")

    def decode(data: bytes) -> Any:
        return _tensor(_frames(_open(data, "decode_webp", ("WEBP",)), count, "decode_webp"))

    return of_bytes("decode_webp", decode, contents, (None, *_shape(count)))


def decode_jxl(contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None) -> Any:
    """Not supported: Pillow cannot read JPEG XL."""
    raise UnimplementedError(
        "decode_jxl: JPEG XL files are not read. Hint: tf.io.decode_jpeg, tf.io.decode_png."
    )


# ---- any format ---------------------------------------------------------------------------------


def _decode_any(data: bytes, channels: int, op: str) -> _core.Tensor:
    """A JPEG, PNG or GIF file as uint8; an animation must have a single frame."""
    if is_jpeg_data(data):
        return _tensor(_pixels(_jpeg_image(data, channels, 1, op), channels, op))
    if png.is_png(data) and png.header(data)[2:4] == (
        16,
        4,
    ):  # brightness and alpha, which Pillow returns as colour
        return _tensor(
            _pixels(pillow().fromarray((_pixels_16(data, 0, op) >> 8).astype(np.uint8)), channels, op)
        )
    if png.is_png(data) and (own := png.plain_channels(data)) and channels in (0, own):
        with reading(f"{op}: Invalid PNG data: ", InvalidArgumentError):
            return png.decode(data)
    image = _open(data, op, ("PNG", "GIF"))
    if image.format == "GIF":
        _want_gif_channels(channels, op)
        frames = _frames(image, 3, op)
        if len(frames) > 1:
            raise InvalidArgumentError(
                f"{op}: Got {len(frames)} frames, but animated gifs can only be decoded by tf.io.decode_gif or "
                "tf.io.decode_image."
            )
        return _tensor(frames[0])
    return _tensor(_pixels(image, channels, op))


def _want_gif_channels(channels: int, op: str) -> None:
    if channels not in (0, 3):
        raise InvalidArgumentError(f"{op}: channels must be 0 or 3 for GIF, got {channels}.")


@one_call
def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Any:
    """The pixels of a JPEG, PNG, BMP or GIF file, whichever it is.

    Args:
      contents: the bytes of the file, as returned by `tf.io.read_file`.
      channels: 1 for brightness, 3 for colour, 4 for colour with alpha, 0 for what the file has.
      dtype: uint8, or another type that `tf.image.convert_image_dtype` knows.
      expand_animations: a GIF becomes `[frames, height, width, 3]`; if False, its first frame.
    """
    from gradtape.image.colour import convert_image_dtype

    op = "decode_image"
    kind, count = dtypes.as_dtype(dtype), _want_channels(channels, (0, 1, 3, 4), op)

    def decode(data: bytes) -> Any:
        if png.is_png(data) and (
            kind is dtypes.uint16 or (kind is not dtypes.uint8 and png.header(data)[2] == 16)
        ):
            pixels = _tensor(_pixels_16(data, count, op))
        elif data[:2] == b"BM":
            pixels = _bmp(data, _want_channels(count, (0, 3, 4), op))
        elif data[:3] == b"GIF":
            _want_gif_channels(count, op)
            frames = _frames(_open(data, op, ("GIF",)), 3, op)
            pixels = _tensor(frames if expand_animations else frames[0])
        else:
            pixels = _decode_any(data, count, op)
        return convert_image_dtype(pixels, kind)

    return of_bytes(op, decode, contents, None if expand_animations else _shape(count), kind)


def is_jpeg_data(data: bytes) -> bool:
    """Whether bytes begin like a JPEG file."""
    return data[:3] == b"\xff\xd8\xff"


@one_call
def is_jpeg(contents: Any, name: str | None = None) -> Any:
    """Whether bytes are a complete JPEG file."""
    return of_bytes(
        "is_jpeg", lambda data: ops.convert_to_tensor(is_jpeg_data(data)), contents, (), dtypes.bool
    )


@one_call
def extract_jpeg_shape(contents: Any, output_type: Any = dtypes.int32, name: str | None = None) -> Any:
    """`[height, width, channels]` of a JPEG file, without decoding it."""

    def shape(data: bytes) -> Any:
        image = _open(data, "extract_jpeg_shape", ("JPEG",))
        return ops.convert_to_tensor([image.height, image.width, len(image.getbands())], output_type)

    return of_bytes("extract_jpeg_shape", shape, contents, (3,), dtypes.as_dtype(output_type))
