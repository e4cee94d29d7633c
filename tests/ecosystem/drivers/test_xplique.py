"""Xplique: attribution methods, metrics and concepts on small networks with weights of NumPy's.

The numbers are those of TensorFlow 2.21.
"""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
pytest.importorskip("xplique")

from xplique import attributions, metrics  # noqa: E402
from xplique.attributions import global_sensitivity_analysis as gsa  # noqa: E402
from xplique.concepts import Cav, Tcav  # noqa: E402
from xplique.features_visualizations import Objective  # noqa: E402

PIXELS, CLASSES = 8, 3


@pytest.fixture(autouse=True)
def seeds():
    np.random.seed(5)
    tf.random.set_seed(5)


def draw_weights(model, seed=1):
    draw = np.random.RandomState(seed)
    model.set_weights(
        [draw.normal(size=w.shape, scale=0.5 if w.ndim > 1 else 0.1) for w in model.get_weights()]
    )
    return model


def of_images():
    layers = tf.keras.layers
    return draw_weights(
        tf.keras.Sequential(
            [
                layers.Input((PIXELS, PIXELS, 2)),
                layers.Conv2D(4, 3, activation="relu", name="conv_1"),
                layers.MaxPooling2D(2),
                layers.Conv2D(5, 2, activation="relu", name="conv_2"),
                layers.Flatten(),
                layers.Dense(CLASSES, name="logits"),
            ]
        )
    )


def of_rows():
    layers = tf.keras.layers
    return draw_weights(
        tf.keras.Sequential([layers.Input((6,)), layers.Dense(8, activation="tanh"), layers.Dense(CLASSES)])
    )


def images(n=3):
    x = np.random.RandomState(2).uniform(size=(n, PIXELS, PIXELS, 2)).astype(np.float32)
    return x, np.eye(CLASSES, dtype=np.float32)[np.arange(n) % CLASSES]


def rows(n=4):
    x = np.random.RandomState(3).normal(size=(n, 6)).astype(np.float32)
    return x, np.eye(CLASSES, dtype=np.float32)[np.arange(n) % CLASSES]


def summary(maps):
    """Sums that tell maps apart."""
    maps = np.asarray(maps, np.float64)
    return [maps.sum(), np.abs(maps).sum(), (maps * np.linspace(-1, 1, maps.size).reshape(maps.shape)).sum()]


def agree(name, found):
    """TensorFlow's numbers are found."""
    np.testing.assert_allclose(np.asarray(found, float).ravel(), EXPECTED[name], rtol=1e-3, atol=2e-5)


EXACT = {
    "saliency": lambda m: attributions.Saliency(m),
    "gradient_input": lambda m: attributions.GradientInput(m),
    "integrated_gradients": lambda m: attributions.IntegratedGradients(m, steps=10),
    "occlusion": lambda m: attributions.Occlusion(m, patch_size=2, patch_stride=2),
    "deconvnet": lambda m: attributions.DeconvNet(m),
    "guided": lambda m: attributions.GuidedBackprop(m),
    "grad_cam": lambda m: attributions.GradCAM(m),
    "grad_cam_layer": lambda m: attributions.GradCAM(m, conv_layer="conv_1"),
    "grad_cam_pp": lambda m: attributions.GradCAMPP(m),
    "smooth_grad": lambda m: attributions.SmoothGrad(m, nb_samples=4, noise=0.0),
    "square_grad": lambda m: attributions.SquareGrad(m, nb_samples=4, noise=0.0),
    "sobol": lambda m: attributions.SobolAttributionMethod(
        m, grid_size=4, nb_design=8, sampler=gsa.HaltonSequenceRS()
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_attribution(name):
    x, y = images()
    agree(name, summary(EXACT[name](of_images())(x, y)))


def segments(image):
    """Four squares."""
    half = np.arange(PIXELS) // (PIXELS // 2)
    return tf.constant(half[:, None] * 2 + half[None, :], tf.int32)


DRAWN = {
    "hsic": lambda m: attributions.HsicAttributionMethod(m, grid_size=4, nb_design=40),
    "rise": lambda m: attributions.Rise(m, nb_samples=200, grid_size=3),
    "lime": lambda m: attributions.Lime(
        m, map_to_interpret_space=segments, ref_value=np.zeros(2, np.float32), nb_samples=30
    ),
    "kernel_shap": lambda m: attributions.KernelShap(
        m, map_to_interpret_space=segments, ref_value=np.zeros(2, np.float32), nb_samples=30
    ),
    "smooth_grad": lambda m: attributions.SmoothGrad(m, nb_samples=20, noise=0.01),
    "var_grad": lambda m: attributions.VarGrad(m, nb_samples=20, noise=0.01),
}


@pytest.mark.parametrize("name", DRAWN)
def test_attribution_with_random_numbers(name):
    """Each library draws its own numbers: only the shape is checked, and that values are finite and not all equal."""
    x, y = images(2)
    maps = np.asarray(DRAWN[name](of_images())(x, y))
    assert maps.shape[:3] == (2, PIXELS, PIXELS)
    assert np.isfinite(maps).all()
    assert maps.std() > 0


@pytest.mark.parametrize("name", ["saliency", "gradient_input", "integrated_gradients", "occlusion"])
def test_attribution_of_rows(name):
    x, y = rows()
    agree(
        f"rows_{name}",
        summary(
            EXACT[name](of_rows())(x, y)
            if name != "occlusion"
            else attributions.Occlusion(of_rows(), patch_size=1, patch_stride=1)(x, y)
        ),
    )


def test_regression():
    x, _ = rows()
    explainer = attributions.IntegratedGradients(of_rows(), operator="regression", steps=10)
    agree("regression", summary(explainer(x, np.ones((len(x), CLASSES), np.float32))))


def test_datasets_and_batches():
    x, y = images()
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(2)
    np.testing.assert_allclose(
        attributions.Saliency(of_images(), batch_size=2)(data, None),
        attributions.Saliency(of_images())(x, y),
        rtol=1e-5,
    )


def test_metrics():
    x, y = images()
    model = of_images()
    maps = attributions.Saliency(model)(x, y)
    agree("deletion", metrics.Deletion(model, x, y, steps=5)(maps))
    agree("insertion", metrics.Insertion(model, x, y, steps=5)(maps))
    assert -1 <= metrics.MuFidelity(model, x, y, grid_size=4, nb_samples=20)(maps) <= 1
    assert metrics.AverageStability(model, x, y, nb_samples=4)(attributions.Saliency(model)) >= 0


def test_concepts():
    model = of_images()
    x, _ = images(12)
    cav = Cav(model, "conv_2", classifier="SGD", test_fraction=0.2)(x[:6], x[6:] * 0.2)
    assert cav.shape == tuple(model.get_layer("conv_2").output.shape)[1:]
    fixed = np.random.RandomState(4).normal(size=cav.shape).astype(np.float32)
    agree("tcav", Tcav(model, "conv_2")(x, 1, fixed))


def test_objectives():
    model = of_images()
    objective = Objective.neuron(model, "logits", 1) + Objective.layer(model, "conv_2") * 0.5
    reconfigured, value, names, _ = objective.compile()
    outputs = reconfigured(images()[0][:1])
    assert len(names) >= 1
    agree("objective", value(outputs))


# What TensorFlow 2.21 gives.
EXPECTED = {
    "deconvnet": [-1.101858, 45.05746, 4.07351],
    "deletion": [1.652184],
    "grad_cam": [160.3994, 160.6771, 26.86385],
    "grad_cam_layer": [11.4492, 11.4492, 2.765108],
    "grad_cam_pp": [74.85897, 74.85897, 1.111803],
    "gradient_input": [4.879726, 25.88733, 2.048822],
    "guided": [9.724471, 31.04993, 1.400472],
    "insertion": [2.677795],
    "integrated_gradients": [4.333907, 21.1142, 2.257071],
    "objective": [3.051964],
    "occlusion": [-4.678943, 81.10081, 12.85998],
    "regression": [-1.955439, 14.00177, 1.133189],
    "rows_gradient_input": [1.163304, 5.294875, -0.3308848],
    "rows_integrated_gradients": [1.747704, 7.596473, -1.288728],
    "rows_occlusion": [2.724198, 6.285615, -0.5812236],
    "rows_saliency": [6.323914, 6.323914, 0.7676367],
    "saliency": [83.41871, 83.41871, 1.185083],
    "smooth_grad": [2.95888, 51.30428, 2.728226],
    "sobol": [4.31871, 4.410268, -1.556134],
    "square_grad": [45.34721, 45.34721, -0.2418174],
    "tcav": [1],
}  # fmt: skip
