"""alibi's explainers that use TensorFlow with tapes: integrated gradients and similarity of gradients.

Their sums are known: attributions add up to the difference to the baseline.
"""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
pytest.importorskip("alibi")

from alibi.explainers import GradientSimilarity, IntegratedGradients  # noqa: E402


def network(classes=3):
    layers = tf.keras.layers
    inputs = layers.Input((5,))
    x = layers.Dense(6, activation="tanh", name="hidden")(inputs)
    model = tf.keras.Model(inputs, layers.Dense(classes, activation="softmax")(x))
    draw = np.random.RandomState(1)
    model.set_weights([draw.normal(size=w.shape) for w in model.get_weights()])
    return model


def rows(n=4):
    return np.random.RandomState(2).normal(size=(n, 5)).astype(np.float32)


@pytest.mark.parametrize("method", ["gausslegendre", "riemann_middle"])
def test_integrated_gradients_add_up(method):
    model, x, target = network(), rows(), np.array([0, 1, 2, 1])
    explainer = IntegratedGradients(model, n_steps=50, method=method, internal_batch_size=20)
    found = explainer.explain(x, baselines=0.5, target=target)
    change = np.asarray(model(x) - model(np.full_like(x, 0.5)))[np.arange(4), target]
    np.testing.assert_allclose(found.attributions[0].sum(1), change, atol=2e-3)


def test_integrated_gradients_of_a_layer_add_up():
    model, x = network(), rows()
    explainer = IntegratedGradients(model, layer=model.get_layer("hidden"), n_steps=50)
    found = explainer.explain(x, target=np.zeros(4, int))
    assert found.attributions[0].shape == (4, 6)
    change = np.asarray(model(x) - model(np.zeros_like(x)))[
        :, 0
    ]  # the baseline is the output of the layer for zeros
    np.testing.assert_allclose(found.attributions[0].sum(1), change, atol=2e-3)


@pytest.mark.parametrize("kind", ["grad_dot", "grad_cos", "grad_asym_dot"])
def test_similar_rows(kind):
    x, y = rows(6), np.arange(6) % 3
    explainer = GradientSimilarity(
        network(),
        task="classification",
        loss_fn=tf.keras.losses.SparseCategoricalCrossentropy(),
        sim_fn=kind,
        backend="tensorflow",
    )
    found = explainer.fit(x, y).explain(x[2:3], y[2:3])
    assert sorted(found.ordered_indices[0].tolist()) == list(range(6))
    if kind == "grad_cos":
        assert found.ordered_indices[0][0] == 2
        np.testing.assert_allclose(found.scores[0][0], 1.0, rtol=1e-5)
