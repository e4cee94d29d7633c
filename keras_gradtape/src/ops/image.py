"""`keras.ops.image` on gradtape, of one image or a batch, channels first or last, differentiable.

The functions live in `image_colour`, `image_filters`, `image_resizing` and `image_sampling`.
"""

from gradtape.backend import one_call_each
from keras_gradtape.src.ops.image_colour import hsv_to_rgb, rgb_to_grayscale, rgb_to_hsv
from keras_gradtape.src.ops.image_filters import gaussian_blur, sobel_edges
from keras_gradtape.src.ops.image_resizing import RESIZE_INTERPOLATIONS, resize, scale_and_translate
from keras_gradtape.src.ops.image_sampling import (
    AFFINE_TRANSFORM_INTERPOLATIONS,
    affine_transform,
    compute_homography_matrix,
    elastic_transform,
    map_coordinates,
    perspective_transform,
)

__all__ = [
    "AFFINE_TRANSFORM_INTERPOLATIONS",
    "RESIZE_INTERPOLATIONS",
    "affine_transform",
    "compute_homography_matrix",
    "elastic_transform",
    "gaussian_blur",
    "hsv_to_rgb",
    "map_coordinates",
    "perspective_transform",
    "resize",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "scale_and_translate",
    "sobel_edges",
]

one_call_each(globals())
