"""tf-keras-vis: saliency maps of a small network, and inputs that maximise activations.

The weights are NumPy's; the numbers are those of TensorFlow 2.21.
"""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tf_keras_vis")

from tf_keras_vis.activation_maximization import ActivationMaximization  # noqa: E402
from tf_keras_vis.activation_maximization.callbacks import Progress  # noqa: E402
from tf_keras_vis.gradcam import Gradcam  # noqa: E402
from tf_keras_vis.gradcam_plus_plus import GradcamPlusPlus  # noqa: E402
from tf_keras_vis.layercam import Layercam  # noqa: E402
from tf_keras_vis.saliency import Saliency  # noqa: E402
from tf_keras_vis.scorecam import Scorecam  # noqa: E402
from tf_keras_vis.utils.model_modifiers import ReplaceToLinear  # noqa: E402
from tf_keras_vis.utils.scores import CategoricalScore  # noqa: E402

PIXELS, CLASSES = 8, 3


def network():
    layers = tf.keras.layers
    inputs = layers.Input((PIXELS, PIXELS, 3))
    x = layers.Conv2D(4, 3, activation="relu", name="conv_1")(inputs)
    x = layers.Conv2D(5, 2, activation="relu", name="conv_2")(layers.MaxPooling2D(2)(x))
    model = tf.keras.Model(inputs, layers.Dense(CLASSES, activation="softmax")(layers.Flatten()(x)))
    draw = np.random.RandomState(1)
    model.set_weights(
        [draw.normal(size=w.shape, scale=0.5 if w.ndim > 1 else 0.1) for w in model.get_weights()]
    )
    return model


def images(n=3):
    return np.random.RandomState(2).uniform(size=(n, PIXELS, PIXELS, 3)).astype(np.float32)


SCORE = CategoricalScore([0, 1, 2])


def summary(maps):
    """Sums that tell maps apart."""
    maps = np.asarray(maps, np.float64)
    return [maps.sum(), np.abs(maps).sum(), (maps * np.linspace(-1, 1, maps.size).reshape(maps.shape)).sum()]


def agree(name, found):
    """TensorFlow's numbers are found."""
    np.testing.assert_allclose(np.asarray(found, float).ravel(), EXPECTED[name], rtol=1e-3, atol=2e-5)


CAMS = {
    "gradcam": lambda m: Gradcam(m, model_modifier=ReplaceToLinear(), clone=True)(SCORE, images()),
    "gradcam_layer": lambda m: Gradcam(m)(SCORE, images(), penultimate_layer="conv_1"),
    "gradcam_raw": lambda m: Gradcam(m)(SCORE, images(), expand_cam=False, normalize_cam=False)[0],
    "gradcam_pp": lambda m: GradcamPlusPlus(m, model_modifier=ReplaceToLinear(), clone=True)(SCORE, images()),
    "layercam": lambda m: Layercam(m)(SCORE, images()),
    "scorecam": lambda m: Scorecam(m)(SCORE, images(), penultimate_layer="conv_2"),
    "faster_scorecam": lambda m: Scorecam(m)(SCORE, images(), penultimate_layer="conv_2", max_N=3),
    "saliency": lambda m: Saliency(m, model_modifier=ReplaceToLinear(), clone=True)(SCORE, images()),
    "saliency_signed": lambda m: Saliency(m)(SCORE, images(), keepdims=True, gradient_modifier=None),
}


@pytest.mark.parametrize("name", CAMS)
def test_map(name):
    agree(name, summary(CAMS[name](network())))


def test_functions_as_scores():
    agree("score", summary(Saliency(network())(lambda y: (y[0][0], y[1][1] * 2, y[2][2]), images())))


def test_smoothgrad():
    """The noise is random: the map must have the right shape and be near the one without noise."""
    smooth = Saliency(network())(SCORE, images(), smooth_samples=30, smooth_noise=0.001)
    assert smooth.shape == (3, PIXELS, PIXELS)
    plain = Saliency(network())(SCORE, images())
    assert np.corrcoef(smooth.ravel(), plain.ravel())[0, 1] > 0.95


def test_activation_maximization():
    maximization = ActivationMaximization(network(), model_modifier=ReplaceToLinear(), clone=True)
    found = maximization(
        SCORE, seed_input=images() * 255, steps=5, input_modifiers=[], regularizers=[], callbacks=[Progress()]
    )
    agree("maximized", summary(found))


def test_activation_maximization_from_noise():
    """With the default jitter, rotation and scaling, which are random, the result must be pixel values."""
    found = np.asarray(
        ActivationMaximization(network(), ReplaceToLinear(), clone=True)(CategoricalScore(1), steps=10)
    )
    assert found.shape == (1, PIXELS, PIXELS, 3)
    assert found.min() >= 0 and found.max() <= 255
    assert found.std() > 0


# What TensorFlow 2.21 gives.
EXPECTED = {
    "faster_scorecam": [88.00792, 88.00792, -10.29337],
    "gradcam": [53.49822, 53.49822, -14.83916],
    "gradcam_layer": [38.92436, 38.92436, -25.15053],
    "gradcam_pp": [30.36192, 30.36192, 0.1524578],
    "gradcam_raw": [0.1421882, 0.1421882, -0.0154541],
    "layercam": [67.19683, 67.19683, -5.016464],
    "maximized": [74194.7, 74194.7, -698.2261],
    "saliency": [58.37139, 58.37139, -3.671745],
    "saliency_signed": [308.3395, 308.3395, -0.5244071],
    "score": [59.24809, 59.24809, -7.942269],
    "scorecam": [86.46709, 86.46709, -8.371365],
}  # fmt: skip
