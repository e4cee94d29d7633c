"""tf.image."""

CALLS = """
tf.image.resize(f(2, 4, 5, 3), [8, 7])
tf.image.resize(f(4, 5, 3), (2, 3), method="nearest")
tf.image.resize(f(4, 5, 3), i([2, 3]), tf.image.ResizeMethod.BICUBIC)
tf.image.resize(f(2, 4, 5, 3), [2, 3], method="area")
tf.image.resize(f(2, 4, 5, 3), [8, 3], method="area")
tf.image.resize(f(2, 4, 5, 3), [2, 3], method="lanczos3")
tf.image.resize(f(2, 4, 5, 3), [7, 8], method="lanczos5")
tf.image.resize(f(2, 4, 5, 3), [2, 3], method="gaussian")
tf.image.resize(f(2, 4, 5, 3), [7, 3], method="mitchellcubic")
tf.image.resize(f(2, 8, 9, 1), [3, 4], antialias=True)
tf.image.resize(f(2, 8, 9, 1), [3, 4], method="bicubic", antialias=True)
tf.image.resize(f(2, 8, 9, 1), [3, 4], method="lanczos3", antialias=True)
tf.image.resize(f(2, 8, 9, 1), [3, 4], method="gaussian", antialias=True)
tf.image.resize(f(4, 8, 3), [6, 6], preserve_aspect_ratio=True)
tf.image.resize(n(0, 256, 4, 5, 3, dtype="uint8"), [3, 3])
tf.image.resize(n(0, 256, 4, 5, 3, dtype="uint8"), [3, 3], method="nearest")
tf.image.resize(f(4, 5, 3), [4, 5])
tf.image.resize(f(0, 4, 5, 3), [2, 2])
tf.image.resize(f(4, 5), [2, 2])
tf.image.resize(f(4, 5, 3), [2])
tf.image.resize(f(4, 5, 3), 2)
tf.image.resize(f(4, 5, 3), [0, 2])
tf.image.resize(f(4, 5, 3), [2.0, 2.0])
tf.image.resize(f(4, 5, 3), [2, 2], method="no")
tf.image.resize_with_pad(f(4, 8, 3), 6, 6)
tf.image.resize_with_pad(f(2, 4, 8, 3), 6, 5, method="nearest")
tf.image.resize_with_pad(f(4, 8, 3), 6, 6, antialias=True)
tf.image.resize_with_crop_or_pad(f(4, 8, 3), 6, 6)
tf.image.resize_with_crop_or_pad(f(2, 4, 8, 3), 3, 9)
tf.image.resize_with_crop_or_pad(f(4, 8, 3), 0, 6)
tf.image.resize_with_crop_or_pad(f(4, 8), 2, 6)
tf.image.crop_and_resize(f(2, 5, 6, 3), v([[0.0, 0.0, 1.0, 1.0], [0.1, 0.2, 0.8, 0.9]]), i([0, 1]), [3, 3])  #: first float32
tf.image.crop_and_resize(f(2, 5, 6, 3), [[0.0, 0.0, 1.0, 1.0], [-0.5, 0.2, 1.5, 0.9]], [0, 1], [3, 2], method="nearest", extrapolation_value=7.0)  #: first
tf.image.crop_and_resize(f(2, 5, 6, 3), [[1.0, 0.0, 0.0, 1.0]], [0], [1, 1])  #: first
tf.image.crop_and_resize(f(2, 5, 6, 3), [[0.0, 0.0, 1.0, 1.0]], [5], [3, 2])
tf.image.crop_and_resize(f(2, 5, 6, 3), [[0.0, 0.0, 1.0, 1.0]], [0], [3])
tf.image.crop_and_resize(f(5, 6, 3), [[0.0, 0.0, 1.0, 1.0]], [0], [3, 3])
tf.image.crop_and_resize(f(2, 5, 6, 3), [[0.0, 0.0, 1.0]], [0], [3, 3])
tf.image.crop_and_resize(f(2, 5, 6, 3), [[0.0, 0.0, 1.0, 1.0]], [0], [3, 2], method="no")
tf.image.crop_to_bounding_box(f(5, 6, 3), 1, 2, 3, 4)
tf.image.crop_to_bounding_box(f(2, 5, 6, 3), 0, 0, 5, 6)
tf.image.crop_to_bounding_box(f(5, 6, 3), 3, 2, 3, 4)
tf.image.crop_to_bounding_box(f(5, 6, 3), -1, 2, 3, 4)
tf.image.pad_to_bounding_box(f(5, 6, 3), 1, 2, 8, 9)
tf.image.pad_to_bounding_box(f(2, 5, 6, 3), 0, 0, 5, 6)
tf.image.pad_to_bounding_box(f(5, 6, 3), 1, 2, 5, 9)
tf.image.pad_to_bounding_box(f(5, 6, 3), -1, 2, 8, 9)
tf.image.central_crop(f(6, 8, 3), 0.5)
tf.image.central_crop(f(2, 7, 7, 3), 0.6)
tf.image.central_crop(f(6, 8, 3), 1.0)
tf.image.central_crop(f(6, 8, 3), 0.0)
tf.image.central_crop(f(6, 8, 3), 1.5)
tf.image.central_crop(f(6, 8), 0.5)
tf.image.extract_glimpse(f(2, 6, 6, 1), [3, 3], [[0.0, 0.0], [0.5, -0.5]])  #: value
tf.image.extract_glimpse(f(2, 6, 6, 1), [3, 3], [[2.0, 2.0], [3.0, 3.0]], centered=False, normalized=False)  #: value
tf.image.extract_glimpse(f(2, 6, 6, 1), [3, 3], [[0.0, 0.0], [0.9, -0.9]], noise="zero")  #: value
tf.image.extract_patches(f(2, 6, 6, 2), [1, 2, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
tf.image.extract_patches(f(2, 6, 6, 2), [1, 2, 3, 1], [1, 1, 2, 1], [1, 2, 1, 1], padding="SAME")
tf.image.extract_patches(f(6, 6, 2), [1, 2, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
tf.image.extract_patches(f(1, 6, 6, 2), [2, 3], [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
tf.image.<flip_left_right|flip_up_down|transpose|rot90>(f(3, 4, 2))
tf.image.<flip_left_right|flip_up_down|transpose|rot90>(f(2, 3, 4, 2))
tf.image.<flip_left_right|flip_up_down|transpose|rot90>(f(3, 4))
tf.image.<flip_left_right|flip_up_down|transpose|rot90>(n(0, 256, 2, 3, 1, dtype="uint8"))
tf.image.<flip_left_right|flip_up_down|transpose|rot90>([[[1.0], [2.0]]])
tf.image.rot90(f(3, 4, 2), k=3)
tf.image.rot90(f(3, 4, 2), k=-2)
tf.image.rot90(f(3, 4, 2), i(6))
tf.image.<random_flip_left_right|random_flip_up_down>(f(3, 4, 2), seed=1)  #: random
tf.image.<random_flip_left_right|random_flip_up_down>(f(3, 4))
tf.image.<stateless_random_flip_left_right|stateless_random_flip_up_down>(f(3, 4, 2), seed=[1, 2])
tf.image.<stateless_random_flip_left_right|stateless_random_flip_up_down>(f(5, 3, 4, 2), seed=[3, 2])
tf.image.<stateless_random_flip_left_right|stateless_random_flip_up_down>(f(3, 4, 2), seed=[1])
tf.image.adjust_brightness(f(3, 4, 3, lo=0.0, hi=1.0), 0.2)
tf.image.adjust_brightness(n(0, 256, 2, 2, 3, dtype="uint8"), 0.2)
tf.image.adjust_brightness(f(3, 4, 3), f())
tf.image.adjust_contrast(f(3, 4, 3, lo=0.0, hi=1.0), 2.0)  #: half
tf.image.adjust_contrast(f(2, 3, 4, 3), 0.5)
tf.image.adjust_contrast(n(0, 256, 2, 2, 3, dtype="uint8"), 1.5)
tf.image.adjust_contrast(f(3), 2.0)
tf.image.adjust_gamma(f(3, 4, 3, lo=0.1, hi=1.0), 0.7)
tf.image.adjust_gamma(f(3, 4, 3, lo=0.1, hi=1.0), gamma=2.0, gain=3.0)
tf.image.adjust_gamma(n(0, 256, 2, 2, 3, dtype="uint8"), 0.7)
tf.image.adjust_gamma(f(3, 4, 3, lo=0.1, hi=1.0), -1.0)
tf.image.adjust_hue(f(3, 4, 3, lo=0.0, hi=1.0), 0.2)  #: first
tf.image.adjust_hue(n(0, 256, 2, 2, 3, dtype="uint8"), -0.3)
tf.image.adjust_hue(f(3, 4, 2), 0.2)
tf.image.adjust_hue(f(2, 3, 4, 3, lo=0.0, hi=1.0), 1.0)  #: value
tf.image.adjust_hue(f(3, 4, 3, lo=0.0, hi=1.0), 1.5)
tf.image.adjust_saturation(f(3, 4, 3, lo=0.0, hi=1.0), 0.5)  #: value
tf.image.adjust_saturation(f(3, 4, 3, lo=0.0, hi=1.0), 2.0)  #: value
tf.image.adjust_saturation(n(0, 256, 2, 2, 3, dtype="uint8"), 1.5)
tf.image.adjust_saturation(f(3, 4, 2), 0.5)
tf.image.random_brightness(f(3, 4, 3), 0.2)  #: random
tf.image.random_brightness(f(3, 4, 3), -0.2)
tf.image.random_contrast(f(3, 4, 3), 0.2, 0.5)  #: random
tf.image.random_contrast(f(3, 4, 3), 0.5, 0.2)
tf.image.random_contrast(f(3, 4, 3), -0.5, 0.2)
tf.image.random_hue(f(3, 4, 3, lo=0.0, hi=1.0), 0.2)  #: random
tf.image.random_hue(f(3, 4, 3), 0.7)
tf.image.random_hue(f(3, 4, 3), -0.2)
tf.image.random_saturation(f(3, 4, 3, lo=0.0, hi=1.0), 0.5, 2.0)  #: random
tf.image.random_saturation(f(3, 4, 3), 2.0, 0.5)
tf.image.random_crop(f(5, 6, 3), [3, 3, 3])  #: random
tf.image.random_crop(f(5, 6, 3), [3, 7, 3])
tf.image.stateless_random_brightness(f(3, 4, 3), 0.2, seed=[1, 2])
tf.image.stateless_random_contrast(f(3, 4, 3), 0.2, 0.5, seed=[1, 2])
tf.image.stateless_random_contrast(f(3, 4, 3), 0.5, 0.2, seed=[1, 2])
tf.image.stateless_random_hue(f(3, 4, 3, lo=0.0, hi=1.0), 0.2, seed=(1, 2))  #: first loose=10
tf.image.stateless_random_saturation(f(3, 4, 3, lo=0.0, hi=1.0), 0.5, 2.0, seed=(1, 2))  #: value loose=10
tf.image.stateless_random_crop(f(5, 6, 3), [3, 3, 3], seed=(1, 2))
tf.image.stateless_random_crop(f(5, 6, 3), [3, 7, 3], seed=(1, 2))
tf.image.per_image_standardization(f(3, 4, 3))
tf.image.per_image_standardization(f(2, 3, 4, 3))
tf.image.per_image_standardization(v(np.ones([3, 4, 1])))  #: first
tf.image.per_image_standardization(n(0, 256, 2, 2, 3, dtype="uint8"))
tf.image.per_image_standardization(f(3, 4))
tf.image.rgb_to_grayscale(f(3, 4, 3))
tf.image.rgb_to_grayscale(n(0, 256, 2, 2, 3, dtype="uint8"))
tf.image.rgb_to_grayscale(f(3, 4, 2))
tf.image.grayscale_to_rgb(f(3, 4, 1))
tf.image.grayscale_to_rgb(f(2, 3, 4, 1))
tf.image.grayscale_to_rgb(f(3, 4, 3))
tf.image.grayscale_to_rgb(f(1))
tf.image.<rgb_to_yiq|yiq_to_rgb|rgb_to_yuv|yuv_to_rgb>(f(3, 4, 3))
tf.image.<rgb_to_yiq|yiq_to_rgb|rgb_to_yuv|yuv_to_rgb>(f(3))
tf.image.<rgb_to_yiq|yiq_to_rgb|rgb_to_yuv|yuv_to_rgb>(f(3, 4, 2))
tf.image.<rgb_to_yiq|yiq_to_rgb|rgb_to_yuv|yuv_to_rgb>(n(0, 256, 2, 2, 3, dtype="uint8"))
tf.image.rgb_to_hsv(f(3, 4, 3, lo=0.0, hi=1.0))  #: first
tf.image.rgb_to_hsv(v([[[0.5, 0.5, 0.5], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]]))  #: value
tf.image.hsv_to_rgb(f(3, 4, 3, lo=0.0, hi=1.0))  #: value
tf.image.<rgb_to_hsv|hsv_to_rgb>(f(3, 4, 2))
tf.image.<rgb_to_hsv|hsv_to_rgb>(n(0, 256, 2, 2, 3, dtype="uint8"))
tf.image.convert_image_dtype(f(2, 2, 1, lo=0.0, hi=1.0), tf.uint8)
tf.image.convert_image_dtype(n(0, 256, 2, 2, 1, dtype="uint8"), tf.float32)
tf.image.convert_image_dtype(n(0, 256, 2, 2, 1, dtype="uint8"), tf.uint16)
tf.image.convert_image_dtype(n(0, 256, 2, 2, 1, dtype="uint16"), tf.uint8, saturate=True)
tf.image.convert_image_dtype(f(2, 2, 1), tf.uint8, saturate=True)
tf.image.convert_image_dtype(f(2, 2, 1), tf.float16)  #: first
tf.image.convert_image_dtype(f(2, 2, 1), dtype)
tf.image.convert_image_dtype(i([[[1]]]), tf.float32)
tf.image.convert_image_dtype(i([[[1]]]), tf.uint8)
tf.image.image_gradients(f(2, 4, 4, 3))
tf.image.image_gradients(f(4, 4, 3))
tf.image.sobel_edges(f(2, 5, 5, 2))
tf.image.sobel_edges(f(5, 5, 2))
tf.image.total_variation(f(2, 4, 4, 3))
tf.image.total_variation(f(4, 4, 3))
tf.image.total_variation(f(4, 4))
tf.image.psnr(f(4, 4, 3, lo=0.0, hi=1.0), f(4, 4, 3, lo=0.0, hi=1.0), 1.0)
tf.image.psnr(f(2, 4, 4, 3, lo=0.0, hi=1.0), f(2, 4, 4, 3, lo=0.0, hi=1.0), max_val=255)
tf.image.psnr(n(0, 256, 2, 2, 3, dtype="uint8"), n(0, 256, 2, 2, 3, dtype="uint8"), 255)
tf.image.psnr(v(np.ones([2, 2, 1])), v(np.ones([2, 2, 1])), 1.0)  #: first
tf.image.psnr(f(4, 4, 3), f(4, 5, 3), 1.0)
tf.image.ssim(f(12, 12, 2, lo=0.0, hi=1.0), f(12, 12, 2, lo=0.0, hi=1.0), 1.0)  #: loose=10
tf.image.ssim(f(2, 12, 12, 1, lo=0.0, hi=1.0), f(2, 12, 12, 1, lo=0.0, hi=1.0), 1.0, filter_size=5, k1=0.02)  #: loose=10
tf.image.ssim(f(12, 12, 1, lo=0.0, hi=1.0), f(12, 12, 1, lo=0.0, hi=1.0), 1.0, return_index_map=True)  #: loose=10 first
tf.image.ssim(f(4, 4, 1), f(4, 4, 1), 1.0)
tf.image.ssim(f(12, 12, 1), f(12, 11, 1), 1.0)
tf.image.ssim_multiscale(f(48, 48, 1, lo=0.0, hi=1.0), f(48, 48, 1, lo=0.0, hi=1.0), 1.0, power_factors=(0.5, 0.5), filter_size=5)  #: loose=50 first
tf.image.ssim_multiscale(f(8, 8, 1), f(8, 8, 1), 1.0)
tf.image.non_max_suppression(v([[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0]]), v([0.9, 0.75, 0.6]), 3)
tf.image.non_max_suppression([[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1]], [0.9, 0.75], 3, iou_threshold=0.9, score_threshold=0.8)
tf.image.non_max_suppression(f(0, 4), f(0), 3)  #: float32
tf.image.non_max_suppression([[0.0, 0.0, 1.0, 1.0]], [0.9], 3, iou_threshold=1.5)
tf.image.non_max_suppression([[0.0, 0.0, 1.0, 1.0]], [0.9, 0.3], 3)
tf.image.non_max_suppression_with_scores([[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0]], [0.9, 0.75, 0.6], 3, soft_nms_sigma=0.5)
tf.image.non_max_suppression_with_scores([[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0]], [0.9, 0.75, 0.6], 3)
tf.image.non_max_suppression_padded([[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0]], [0.9, 0.75, 0.6], 5, pad_to_max_output_size=True)
tf.image.non_max_suppression_padded([[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0]], [0.9, 0.75, 0.6], 3)
tf.image.non_max_suppression_overlaps([[1.0, 0.8], [0.8, 1.0]], [0.9, 0.3], 2, 0.5)
tf.image.combined_non_max_suppression([[[[0.0, 0.0, 1.0, 1.0]], [[0.0, 0.1, 1.0, 1.1]], [[0.0, 2.0, 1.0, 3.0]]]], [[[0.9, 0.1], [0.75, 0.2], [0.6, 0.3]]], 2, 4)
tf.image.combined_non_max_suppression([[[[0.0, 0.0, 1.0, 1.0]], [[0.0, 0.1, 1.0, 1.1]]]], [[[0.9], [0.75]]], 2, 4, 0.5, 0.8, True, False)
tf.image.generate_bounding_box_proposals(f(1, 2, 2, 2, lo=0.0, hi=1.0), f(1, 2, 2, 8, lo=-0.1, hi=0.1), [[64.0, 64.0, 1.0]], [[0.0, 0.0, 30.0, 30.0], [8.0, 8.0, 40.0, 24.0]], post_nms_topn=4)  #: float32 loose=100
tf.image.draw_bounding_boxes(f(1, 6, 6, 3), [[[0.1, 0.2, 0.8, 0.9]]], [[1.0, 0.0, 0.0]])  #: value
tf.image.draw_bounding_boxes(f(1, 6, 6, 3), [[[0.1, 0.2, 0.8, 0.9], [0.0, 0.0, 1.0, 1.0]]], None)  #: value
tf.image.draw_bounding_boxes(f(6, 6, 3), [[[0.1, 0.2, 0.8, 0.9]]], [[1.0, 0.0, 0.0]])
tf.image.sample_distorted_bounding_box([40, 50, 3], [[[0.1, 0.2, 0.8, 0.9]]], min_object_covered=0.1)  #: random
tf.image.sample_distorted_bounding_box([40, 50, 3], v(np.zeros([1, 0, 4])), use_image_if_no_bounding_boxes=True, seed=1)  #: random float32
tf.image.stateless_sample_distorted_bounding_box([40, 50, 3], [[[0.1, 0.2, 0.8, 0.9]]], seed=(1, 2))
tf.image.stateless_sample_distorted_bounding_box([40, 50, 3], [[[0.1, 0.2, 0.8, 1.9]]], seed=(1, 2))
tf.image.encode_png(n(0, 256, 2, 2, 3, dtype="uint8")).shape
tf.image.encode_png(f(2, 2, 3))
tf.image.decode_png(tf.image.encode_png(n(0, 256, 4, 5, 3, dtype="uint8")))
tf.image.decode_png(tf.image.encode_png(n(0, 256, 4, 5, 1, dtype="uint8")), channels=3)
tf.image.decode_png(tf.image.encode_png(n(0, 60000, 4, 5, 4, dtype="uint16")), dtype=tf.uint16)
tf.image.decode_png(b"no image")
tf.image.decode_image(tf.image.encode_png(n(0, 256, 4, 5, 3, dtype="uint8")))
tf.image.decode_image(tf.image.encode_png(n(0, 256, 4, 5, 3, dtype="uint8")), dtype=tf.float32)
tf.image.decode_jpeg(tf.image.encode_jpeg(n(0, 256, 16, 16, 3, dtype="uint8"), quality=90)).shape
tf.image.encode_jpeg(f(8, 8, 3))
tf.image.encode_jpeg(n(0, 256, 8, 8, 3, dtype="uint8"), quality=200)
tf.image.encode_jpeg(n(0, 256, 8, 8, 2, dtype="uint8"))
tf.image.extract_jpeg_shape(tf.image.encode_jpeg(n(0, 256, 16, 24, 3, dtype="uint8")))
tf.image.is_jpeg(tf.image.encode_jpeg(n(0, 256, 8, 8, 3, dtype="uint8")))
tf.image.decode_and_crop_jpeg(tf.image.encode_jpeg(n(0, 256, 16, 16, 3, dtype="uint8")), [0, 0, 4, 5]).shape
tf.image.adjust_jpeg_quality(n(0, 256, 16, 16, 3, dtype="uint8"), 50).shape
tf.image.adjust_jpeg_quality(f(8, 8, 3, lo=0.0, hi=1.0), 50)  #: random
tf.image.random_jpeg_quality(n(0, 256, 16, 16, 3, dtype="uint8"), 50, 90)  #: random
tf.image.random_jpeg_quality(n(0, 256, 16, 16, 3, dtype="uint8"), 90, 50)
tf.image.stateless_random_jpeg_quality(n(0, 256, 16, 16, 3, dtype="uint8"), 50, 90, seed=(1, 2))  #: random
"""
