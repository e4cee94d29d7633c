"""`tf.image`: resizing, cropping, colours, augmentation, measures of quality, boxes.

In reading order: `geometry` (moving pixels), `filters`, `resampling` and `resize` (every resizing method is a
product with two band matrices), `projection` (interpolation between pixels), `crops`, `colour`, `adjust`, `augment`
and `distort` (random changes), `quality`, `boxes`. Image files are read in `gradtape/io/images.py`.
"""

from __future__ import annotations

from gradtape._src.base.calls import one_call_each
from gradtape._src.public import absent as _absent
from gradtape.image import projection as projection  # for `tf.raw_ops`
from gradtape.image.adjust import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    per_image_standardization,
)
from gradtape.image.augment import (
    adjust_jpeg_quality,
    random_brightness,
    random_contrast,
    random_crop,
    random_flip_left_right,
    random_flip_up_down,
    random_hue,
    random_jpeg_quality,
    random_saturation,
    stateless_random_brightness,
    stateless_random_contrast,
    stateless_random_crop,
    stateless_random_flip_left_right,
    stateless_random_flip_up_down,
    stateless_random_hue,
    stateless_random_jpeg_quality,
    stateless_random_saturation,
)
from gradtape.image.boxes import (
    combined_non_max_suppression,
    draw_bounding_boxes,
    generate_bounding_box_proposals,
    non_max_suppression,
    non_max_suppression_overlaps,
    non_max_suppression_padded,
    non_max_suppression_with_scores,
)
from gradtape.image.colour import (
    convert_image_dtype,
    grayscale_to_rgb,
    hsv_to_rgb,
    rgb_to_grayscale,
    rgb_to_hsv,
    rgb_to_yiq,
    rgb_to_yuv,
    yiq_to_rgb,
    yuv_to_rgb,
)
from gradtape.image.crops import crop_and_resize, extract_glimpse
from gradtape.image.distort import sample_distorted_bounding_box, stateless_sample_distorted_bounding_box
from gradtape.image.geometry import (
    central_crop,
    crop_to_bounding_box,
    extract_patches,
    flip_left_right,
    flip_up_down,
    pad_to_bounding_box,
    resize_with_crop_or_pad,
    rot90,
    transpose,
)
from gradtape.image.quality import image_gradients, psnr, sobel_edges, ssim, ssim_multiscale, total_variation
from gradtape.image.resize import ResizeMethod, resize, resize_with_pad
from gradtape.io.encoding import encode_jpeg, encode_png
from gradtape.io.images import (
    decode_and_crop_jpeg,
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_jxl,
    decode_png,
    decode_webp,
    extract_jpeg_shape,
    is_jpeg,
)

__all__ = [
    "ResizeMethod", "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_jpeg_quality",
    "adjust_saturation", "central_crop", "combined_non_max_suppression", "convert_image_dtype", "crop_and_resize",
    "crop_to_bounding_box", "decode_and_crop_jpeg", "decode_bmp", "decode_gif", "decode_image", "decode_jpeg",
    "decode_jxl", "decode_png", "decode_webp", "draw_bounding_boxes", "encode_jpeg", "encode_png",
    "extract_glimpse", "extract_jpeg_shape", "extract_patches", "flip_left_right", "flip_up_down",
    "generate_bounding_box_proposals", "grayscale_to_rgb", "hsv_to_rgb", "image_gradients", "is_jpeg",
    "non_max_suppression", "non_max_suppression_overlaps", "non_max_suppression_padded",
    "non_max_suppression_with_scores", "pad_to_bounding_box", "per_image_standardization", "psnr",
    "random_brightness", "random_contrast", "random_crop", "random_flip_left_right", "random_flip_up_down",
    "random_hue", "random_jpeg_quality", "random_saturation", "resize", "resize_with_crop_or_pad",
    "resize_with_pad", "rgb_to_grayscale", "rgb_to_hsv", "rgb_to_yiq", "rgb_to_yuv", "rot90",
    "sample_distorted_bounding_box", "sobel_edges", "ssim", "ssim_multiscale", "stateless_random_brightness",
    "stateless_random_contrast", "stateless_random_crop", "stateless_random_flip_left_right",
    "stateless_random_flip_up_down", "stateless_random_hue", "stateless_random_jpeg_quality",
    "stateless_random_saturation", "stateless_sample_distorted_bounding_box", "total_variation", "transpose",
    "yiq_to_rgb", "yuv_to_rgb",
]  # fmt: skip

one_call_each(globals())

__getattr__, __dir__ = _absent.of("image")
