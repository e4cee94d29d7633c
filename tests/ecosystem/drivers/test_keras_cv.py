"""keras-cv as its users write: boxes, losses, augmentation of images, a backbone that is trained."""

import keras
import keras_cv
import numpy as np
import pytest
import tensorflow as tf

BOXES = np.array([[[0, 0, 10, 10], [5, 5, 20, 20]]], "float32")
IMAGES = np.random.default_rng(0).uniform(0, 255, size=(2, 16, 16, 3)).astype("float32")

# What TensorFlow 2.21 computes from the same seed.
NUMBERS = {
    "focal": [0.2788915],
    "focal_gradient": [0.3221299, -0.0958667, -0.0161698],
    "IoULoss": [0.3199809],
    "IoULoss_gradient": [0.0481368, 0.0481368, 0.0393847, 0.0393847],
    "GIoULoss": [0.2860078],
    "GIoULoss_gradient": [0.0390874, 0.0390874, 0.0319806, 0.0319806],
    "CIoULoss": [0.5598449],
    "CIoULoss_gradient": [0.0740425, 0.0740425, 0.0605803, 0.0605803],
    "grayscale": [90.1230316, 90.1230316, 90.1230316, 149.5278931],
    "solarization": [92.5747681, 186.2043915, 244.5517578, 250.7854462],
    "posterization": [160.0, 64.0, 0.0, 0.0],
    "flip": [227.0199585, 57.9251862, 158.9127197, 151.5465088],
    "resizing": [62.2757263, 178.0018158, 114.7114563, 170.4770203],
    "classes": [0.3573803, 0.3324328, 0.3101869, 0.3652157],
}


@pytest.fixture(autouse=True)
def seeded():
    keras.utils.set_random_seed(5)


def first(x):
    return np.ravel(keras.ops.convert_to_numpy(x))[:4]


def test_boxes():
    centres = keras_cv.bounding_box.convert_format(BOXES, source="xyxy", target="center_xywh")
    np.testing.assert_allclose(centres, [[[5, 5, 10, 10], [12.5, 12.5, 15, 15]]])
    iou = keras_cv.bounding_box.compute_iou(BOXES, BOXES, "xyxy")
    np.testing.assert_allclose(iou, [[[1, 1 / 12], [1 / 12, 1]]], rtol=1e-5)
    clipped = keras_cv.bounding_box.clip_to_image(
        {"boxes": BOXES, "classes": np.zeros((1, 2), "float32")},
        bounding_box_format="xyxy",
        image_shape=(16, 16, 3),
    )
    np.testing.assert_allclose(clipped["boxes"][0, 1], [5, 5, 16, 16])


def test_losses_and_their_gradients():
    truth, logits = np.array([[0.0, 1.0, 1.0]], "float32"), tf.Variable([[0.3, -0.2, 0.9]])
    with tf.GradientTape() as tape:
        loss = keras_cv.losses.FocalLoss(from_logits=True, reduction="sum")(truth, logits)
    np.testing.assert_allclose([float(loss)], NUMBERS["focal"], rtol=1e-5)
    np.testing.assert_allclose(first(tape.gradient(loss, logits)), NUMBERS["focal_gradient"], rtol=1e-4)
    shifted = tf.Variable(BOXES[0] + 1.0)
    for name in ("IoULoss", "GIoULoss", "CIoULoss"):
        with tf.GradientTape() as tape:
            loss = getattr(keras_cv.losses, name)("xyxy", reduction="sum")(BOXES[0], shifted)
        np.testing.assert_allclose([float(loss)], NUMBERS[name], rtol=1e-4)
        np.testing.assert_allclose(
            first(tape.gradient(loss, shifted)), NUMBERS[f"{name}_gradient"], rtol=1e-3, atol=1e-5
        )


@pytest.mark.parametrize(
    "layer",
    [
        lambda: keras_cv.layers.Grayscale(output_channels=3),
        lambda: keras_cv.layers.Solarization(value_range=(0, 255), threshold_factor=(0.5, 0.5)),
        lambda: keras_cv.layers.Equalization(value_range=(0, 255)),
        lambda: keras_cv.layers.Posterization(value_range=(0, 255), bits=3),
        lambda: keras_cv.layers.RandomFlip("horizontal", rate=1.0),
        lambda: keras_cv.layers.Resizing(8, 8),
        lambda: keras_cv.layers.RandomContrast(value_range=(0, 255), factor=0.5, seed=1),
        lambda: keras_cv.layers.RandomCutout(0.5, 0.5, seed=1),
        lambda: keras_cv.layers.MixUp(seed=1),
    ],
    ids=[
        "grayscale",
        "solarization",
        "equalization",
        "posterization",
        "flip",
        "resizing",
        "contrast",
        "cutout",
        "mixup",
    ],
)
def test_augmentation(layer, request):
    made = layer()
    name = request.node.callspec.id
    inputs = {"images": IMAGES, "labels": np.eye(2, dtype="float32")}
    out = made(tf.nest.map_structure(tf.constant, inputs) if name == "mixup" else IMAGES)
    images = out["images"] if name == "mixup" else out
    assert np.isfinite(images).all() and images.shape[0] == 2
    if name in ("grayscale", "solarization", "posterization", "flip", "resizing"):
        np.testing.assert_allclose(first(images), NUMBERS[name], rtol=1e-4)
    data = tf.data.Dataset.from_tensor_slices(inputs if name == "mixup" else IMAGES).batch(2).map(made)
    assert len(list(data)) == 1


def test_backbone_trains():
    backbone = keras_cv.models.DenseNetBackbone(stackwise_num_repeats=[1, 1], include_rescaling=True)
    model = keras_cv.models.ImageClassifier(backbone=backbone, num_classes=3)
    model.compile("sgd", "categorical_crossentropy")
    out = model(IMAGES)
    np.testing.assert_allclose(first(out), NUMBERS["classes"], rtol=1e-3)
    losses = model.fit(IMAGES, np.eye(3, dtype="float32")[:2], epochs=2, verbose=0).history["loss"]
    assert np.isfinite(losses).all()
