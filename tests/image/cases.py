"""Calls of tf.image that must give TensorFlow's numbers, and a script that computes these.

`python tests/image/cases.py` in an environment with TensorFlow writes reference.json.
"""

import json
from pathlib import Path

import numpy as np

REFERENCE = Path(__file__).with_name("reference.json")


def _numbers(seed, *shape):
    return np.random.RandomState(seed).uniform(0, 1, shape).astype(np.float32)


# Names that the calls below may use.
NAMES = {
    "np": np,
    "A": _numbers(0, 2, 5, 4, 3),
    "B": _numbers(1, 2, 5, 4, 3),
    "ONE": _numbers(2, 7, 6, 2),
    "D": _numbers(3, 4, 5, 1).astype(np.float64),
    "H": _numbers(4, 3, 3, 3).astype(np.float16),
    "U": np.random.RandomState(5).randint(0, 256, (2, 4, 3, 3)).astype(np.uint8),
    "I32": np.random.RandomState(6).randint(0, 2**31 - 1, (3, 3, 3)).astype(np.int32),
    "P": _numbers(7, 14, 13, 2),
    "Q": _numbers(8, 14, 13, 2),
    "BOXES": np.array([[0, 0, 1, 1], [0.2, -0.1, 0.7, 0.9], [0.9, 0.8, 0.1, 0.3]], np.float32),
    "N": np.concatenate([_numbers(9, 12, 2) * 0.6, 0.6 + _numbers(10, 12, 2) * 0.4], 1),
    "SCORES": np.round(_numbers(11, 12), 1),
    "CLASSES": _numbers(12, 2, 6, 2),
}

METHODS = "bilinear nearest bicubic area lanczos3 lanczos5 gaussian mitchellcubic".split()
CALLS = [
    # ---- resize
    *(f"tf.image.resize(ONE, {size}, '{m}')" for m in METHODS for size in ([3, 9], [10, 4], [1, 1])),
    *(f"tf.image.resize(A, [3, 2], '{m}', antialias=True)" for m in METHODS),
    *(f"tf.image.resize(A, [8, 2], '{m}', antialias=True)" for m in ("bilinear", "bicubic", "lanczos5")),
    *(
        f"gradient(lambda x: tf.image.resize(x, [3, 9], '{m}', antialias={aa}) ** 2, ONE)"
        for m in METHODS if m != "area" for aa in (False, True)
    ),
    "tf.image.resize(U, [3, 5])", "tf.image.resize(U, [3, 5], 'nearest')", "tf.image.resize(U, [4, 3])",
    "tf.image.resize(D, [3, 3])", "tf.image.resize(D, [3, 3], 'nearest')", "tf.image.resize(H, [2, 4])",
    "tf.image.resize(H, [2, 4], 'nearest')",
    "tf.image.resize(ONE, [4, 9], preserve_aspect_ratio=True)",
    "tf.image.resize(ONE, [9, 4], 'area', preserve_aspect_ratio=True)",
    "tf.image.resize(ONE, tf.constant([2, 3]))", "tf.image.resize(A[:0], [3, 3])",
    "tf.image.resize(ONE[0], [2, 2])", "tf.image.resize(ONE, [2])", "tf.image.resize(ONE, 2)",
    "tf.image.resize(ONE, [2.0, 2.0])", "tf.image.resize(ONE, [0, 2])", "tf.image.resize(ONE, [-1, 2])",
    "tf.image.resize(ONE, [2, 2], 'cubic')", "tf.image.resize(ONE[:0], [2, 2])", "tf.image.resize(ONE > 0.5, [2, 2])",
    *(f"tf.image.resize_with_pad({x}, {h}, {w})" for x in ("ONE", "A") for h, w in ((4, 9), (9, 5), (7, 6), (1, 3))),
    "tf.image.resize_with_pad(ONE, 0, 3)", "tf.image.resize_with_pad(ONE, 3, 4, 'bicubic', True)",
    *(f"tf.image.resize_with_crop_or_pad({x}, {h}, {w})" for x in ("ONE", "U") for h, w in ((4, 9), (10, 3), (2, 2))),
    # ---- geometry
    *(f"tf.image.central_crop(ONE, {f})" for f in (0.1, 0.33, 0.5, 0.87, 1.0, 0.0, 1.5)),
    *(
        f"tf.image.{f}_to_bounding_box(ONE, {b})"
        for f in ("crop", "pad")
        for b in ("0, 0, 7, 6", "1, 2, 3, 4", "1, 2, 9, 9", "-1, 0, 3, 3", "0, -1, 8, 8", "0, 0, 0, 3", "2, 0, 7, 9")
    ),
    *(f"tf.image.rot90(ONE, {k})" for k in (-1, 0, 1, 2, 3, 5)), "tf.image.rot90(U, 3)",
    *(f"tf.image.{f}({x})" for f in ("flip_left_right", "flip_up_down", "transpose") for x in ("ONE", "U", "P[0]")),
    "tf.image.flip_left_right(A[None])", "tf.image.flip_up_down(ONE[:0])",
    *(
        f"tf.image.extract_patches(A, [1, {k}, 1], [1, {s}, 1], [1, {r}, 1], '{p}')"
        for k, s, r in (("2, 2", "1, 1", "1, 1"), ("3, 2", "2, 1", "1, 1"), ("2, 2", "1, 2", "2, 1"))
        for p in ("VALID", "SAME")
    ),
    "tf.image.extract_patches(A, [1, 9, 9, 1], [1, 1, 1, 1], [1, 1, 1, 1], 'VALID')",
    "tf.image.extract_patches(A, [1, 2, 2, 3], [1, 1, 1, 1], [1, 1, 1, 1], 'VALID')",
    "tf.image.extract_patches(ONE, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], 'VALID')",
    # ---- colour
    *(
        f"tf.image.convert_image_dtype({x}, '{t}', {s})"
        for x in ("ONE", "U", "D", "I32", "U.astype('int8')", "U.astype('uint16') * 200")
        for t in ("float32", "uint8", "int16", "float64") for s in (False, True)
    ),
    "tf.image.convert_image_dtype(ONE * 3 - 1, 'uint8', True)", "tf.image.convert_image_dtype(ONE > 0.5, 'uint8')",
    "tf.image.convert_image_dtype(ONE, tf.bool)",
    *(f"tf.image.{a}_to_{b}(A)" for a, b in (
        ("rgb", "hsv"), ("hsv", "rgb"), ("rgb", "yiq"), ("yiq", "rgb"), ("rgb", "yuv"), ("yuv", "rgb"), ("rgb", "grayscale"),
    )),
    "tf.image.rgb_to_grayscale(U)", "tf.image.rgb_to_grayscale(H)", "tf.image.grayscale_to_rgb(tf.constant(D))",
    "tf.image.grayscale_to_rgb(tf.constant(A))", "tf.image.rgb_to_hsv(ONE)",
    "tf.image.rgb_to_hsv(np.array([[0, 0, 0], [0.5, 0.5, 0.5], [1, 1, 0.5], [0.2, 0.2, 0.9], [-1, -2, -3]], 'f'))",
    "gradient(lambda x: tf.image.rgb_to_hsv(x) ** 2, A)",
    # ---- adjust
    *(f"tf.image.adjust_brightness({x}, {d})" for x in "AUDH" for d in (-0.3, 0.4)),
    *(f"tf.image.adjust_contrast({x}, {c})" for x in "AUD" for c in (0.0, 0.5, 2.5)),
    *(f"tf.image.adjust_gamma({x}, {g})" for x in "AUDH" for g in ("0.5", "2.0, 1.5")), "tf.image.adjust_gamma(A, -1.0)",
    *(f"tf.image.adjust_hue({x}, {d})" for x in ("A", "U") for d in (-0.7, 0.1, 0.5)), "tf.image.adjust_hue(ONE, 0.1)",
    *(f"tf.image.adjust_saturation({x}, {s})" for x in ("A", "U") for s in (0.0, 0.5, 3.0)),
    *(f"tf.image.per_image_standardization({x})" for x in ("A", "U", "D", "A * 0 + 0.5", "ONE[0]")),
    # ---- quality
    "tf.image.psnr(A, B, 1.0)", "tf.image.psnr(U, U[::-1], 255)", "tf.image.psnr(A, A, 1.0)",
    "tf.image.psnr(A, B[:, :2], 1.0)",
    "tf.image.ssim(P, Q, 1.0)", "tf.image.ssim(P, P, 1.0)", "tf.image.ssim(P, Q, 2.0, 5, 1.0, 0.02, 0.05)",
    "tf.image.ssim(P, Q, 1.0, return_index_map=True)", "tf.image.ssim(np.stack([P, Q]), np.stack([Q, P]), 1.0)",
    "tf.image.ssim(ONE, ONE, 1.0)", "tf.image.ssim(P, ONE, 1.0)", "tf.image.ssim(P[0], Q[0], 1.0)",
    "tf.image.ssim_multiscale(P, (P + Q) / 2, 1.0, (0.4, 0.6), filter_size=5)",
    "tf.image.ssim_multiscale(P[1:, 2:], (P + Q)[1:, 2:] / 2, 1.0, (0.2, 0.3, 0.5), 3, 1.0)",
    "tf.image.ssim_multiscale(P, Q, 1.0)",
    "gradient(lambda x: tf.image.ssim(x, Q, 1.0), P)",
    "tf.image.total_variation(tf.constant(A))", "tf.image.total_variation(tf.constant(ONE))",
    "tf.image.total_variation(tf.constant(ONE[0]))", "tf.image.total_variation(tf.constant(U))",
    "gradient(tf.image.total_variation, A)",
    "tf.image.image_gradients(tf.constant(A))", "tf.image.image_gradients(tf.constant(ONE))",
    "tf.image.sobel_edges(tf.constant(A))",
    # ---- crops
    *(
        f"tf.image.crop_and_resize(A, BOXES, [0, 1, 1], {size}, '{m}', 0.5)"
        for m in ("bilinear", "nearest") for size in ([3, 4], [1, 3], [4, 1])
    ),
    "gradient(lambda x: tf.image.crop_and_resize(x, BOXES, [0, 1, 1], [3, 4]) ** 2, A)",
    "gradient(lambda b: tf.image.crop_and_resize(A, b, [0, 1, 1], [3, 4]) ** 2, BOXES)",
    "tf.image.crop_and_resize(A, BOXES, [0, 1, 2], [3, 4])", "tf.image.crop_and_resize(A, BOXES, [0, 1], [3, 4])",
    "tf.image.crop_and_resize(A, BOXES, [0, 1, 1], [3])", "tf.image.crop_and_resize(A, BOXES, [0, 1, 1], [3, 0])",
    "tf.image.crop_and_resize(A, BOXES, [0, 1, 1], [3, 4], 'cubic')",
    "tf.image.crop_and_resize(U, BOXES, [0, 1, 1], [2, 2])",
    *(
        f"tf.image.extract_glimpse(A, [3, 2], [[{off}], [{off}]], {c}, {n}, 'zero')"
        for c in (True, False) for n, off in ((True, "0.3, -0.6"), (False, "1.6, 2.2"))
    ),
    # ---- random
    *(
        f"seeded({seed}, lambda: tf.image.random_{f}, seed={op}))"
        for seed in (1, 2) for op in (None, 7)
        for f in ("flip_left_right(A", "flip_up_down(ONE", "brightness(A, 0.3", "contrast(A, 0.2, 1.8", "hue(A, 0.4",
                  "saturation(A, 0.2, 2.0", "crop(ONE, [3, 2, 1]")
    ),
    *(
        f"tf.image.stateless_random_{f}, seed=[{seed}, 5])"
        for seed in (1, 2)
        for f in ("flip_left_right(A", "flip_up_down(ONE", "brightness(A, 0.3", "contrast(A, 0.2, 1.8", "hue(A, 0.4",
                  "saturation(A, 0.2, 2.0", "crop(ONE, [3, 2, 1]")
    ),
    "tf.image.random_brightness(A, -0.1)", "tf.image.random_contrast(A, 2.0, 1.0)", "tf.image.random_contrast(A, -1.0, 1.0)",
    "tf.image.random_hue(A, 0.6)", "tf.image.random_saturation(A, 1.0, 1.0)", "tf.image.random_crop(ONE, [8, 1, 1])",
    "tf.image.random_crop(ONE, [1, 1])", "tf.image.random_jpeg_quality(U[0], 50, 50)",
    "tf.image.random_jpeg_quality(U[0], 5, 500)",
    *(
        f"seeded({seed}, lambda: tf.image.sample_distorted_bounding_box([57, 83, 3], BOXES[None, :1], 3{k}))"
        for seed in (1, 2) for k in ("", ", 0.9", ", 0.3, (0.5, 2.0), (0.1, 0.3), 30")
    ),
    "tf.image.stateless_sample_distorted_bounding_box([57, 83, 3], BOXES[None, :1], [3, 4])",
    "tf.image.sample_distorted_bounding_box([57, 83, 3], BOXES[None, :0])",
    # ---- boxes
    *(f"tf.image.non_max_suppression(N, SCORES, 6, {t})" for t in (0.2, 0.5, 0.8)),
    "tf.image.non_max_suppression(N, SCORES, 9, 0.6, 0.45)", "tf.image.non_max_suppression(N, SCORES, -1)",
    "tf.image.non_max_suppression(N, SCORES, 3, 1.5)", "tf.image.non_max_suppression(N, SCORES[1:], 3)",
    "tf.image.non_max_suppression(N[:, :3], SCORES, 3)", "tf.image.non_max_suppression(N[:0], SCORES[:0], 3)",
    "tf.image.non_max_suppression_with_scores(N, SCORES, 6, 0.5, 0.2)",
    "tf.image.non_max_suppression_with_scores(N, SCORES, 9, 0.5, 0.2, 0.4)",
    "tf.image.non_max_suppression_padded(tf.constant(N), tf.constant(SCORES), 9, 0.4)",
    "tf.image.non_max_suppression_padded(N, SCORES, 9, 0.4, pad_to_max_output_size=True)",
    "tf.image.non_max_suppression_padded(np.stack([N, N]), np.stack([SCORES] * 2), 9, 0.4, pad_to_max_output_size=True)",
    "tf.image.non_max_suppression_padded(tf.constant([N, N]), tf.constant([SCORES] * 2), 9)",
    "tf.image.non_max_suppression_overlaps(N @ N.T / 3, SCORES, 5, 0.4)",
    *(
        f"tf.image.combined_non_max_suppression(N.reshape(2, 6, 1, 4), CLASSES, 3, {k})"
        for k in ("4, 0.5", "20, 0.5, 0.3", "20, 0.5, 0.3, True")
    ),
    "tf.image.draw_bounding_boxes(A, np.stack([BOXES] * 2), None)",
    "tf.image.draw_bounding_boxes(A, np.stack([BOXES] * 2), np.array([[1, 2, 3], [4, 5, 6]], 'f'))",
    "tf.image.draw_bounding_boxes(A[..., :1], np.stack([BOXES] * 2), np.zeros([0, 1], 'f'))",
    "tf.image.draw_bounding_boxes(A[..., :2], np.stack([BOXES] * 2), None)",
]  # fmt: skip


def result_of(tf, call):
    """The result of a call as JSON: arrays with type and shape, or the class of the error."""

    def gradient(f, x):
        x = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(f(x))
        return tape.gradient(y, x)

    def seeded(seed, f):
        tf.random.set_seed(seed)
        first, second = f(), f()
        return [*first, *second] if isinstance(first, tuple) else [first, second]

    try:
        result = eval(call, {"tf": tf, "gradient": gradient, "seeded": seeded, **NAMES})
    except Exception as e:
        return {"error": type(e).__name__}
    parts = [np.asarray(r) for r in (result if isinstance(result, (tuple, list)) else [result])]
    return {
        "results": [
            {
                "dtype": p.dtype.name,
                "shape": list(p.shape),
                "values": [float(f"{v:.6g}") for v in p.reshape(-1).tolist()],
            }
            for p in parts
        ]
    }


if __name__ == "__main__":
    import tensorflow

    found = {call: result_of(tensorflow, call) for call in CALLS}
    lines = ",\n".join(f"{json.dumps(call)}: {json.dumps(result)}" for call, result in found.items())
    REFERENCE.write_text(f"{{\n{lines}\n}}\n")
