"""bayesflow as its users write: networks, workflows that train, sample and score, derivatives, stored models."""

import bayesflow as bf
import keras
import numpy as np
import pytest
import tensorflow as tf

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 2)).astype("float32")
CONDITIONS = RNG.normal(size=(6, 3)).astype("float32")
SETS = RNG.normal(size=(4, 5, 2)).astype("float32")
SMALL = {"widths": (8, 8)}

# What TensorFlow 2.21 computes from the same seeds.
LOG_PROB = {
    "coupling": [-1.854507, -2.0484495, -2.0467234, -3.1365662],
    "spline": [-1.8545071, -2.0484495, -2.0467234, -3.1365662],
    "flow_matching": [-1.1972252, 0.4323497, -2.2956152, -5.5778031],
    "diffusion": [-4.2006989, -3.4056554, -5.312232, -16.9194965],
}
SUMMARY = {
    "deep_set": [-0.0998887, -5.4813094, -1.3786671, -4.3671713],
    "set_transformer": [1.2159982, 1.4394796, 0.3697482, -0.4475127],
    "time_series": [0.0363445, 0.2091243, 0.1014984, -0.2285161],
    "time_series_transformer": [-0.7309311, -0.2648849, 0.0260937, -0.0418736],
}
LOSSES = {
    "coupling": 2.7891445,
    "spline": 2.7836494,
    "flow_matching": 3.8851957,
    "diffusion": 6.3614788,
    "consistency": 1.0610348,
    "points": 1.3185291,
}
GENERATIVE = {
    "coupling": lambda: bf.networks.CouplingFlow(depth=2, subnet_kwargs=SMALL),
    "spline": lambda: bf.networks.CouplingFlow(depth=2, transform="spline", subnet_kwargs=SMALL),
    "flow_matching": lambda: bf.networks.FlowMatching(
        subnet_kwargs=SMALL, integrate_kwargs={"method": "euler", "steps": 10}
    ),
    "diffusion": lambda: bf.networks.DiffusionModel(
        subnet_kwargs=SMALL, integrate_kwargs={"method": "euler", "steps": 10}
    ),
}
SUMMARIES = {
    "deep_set": lambda: bf.networks.DeepSet(summary_dim=3, depth=1),
    "set_transformer": lambda: bf.networks.SetTransformer(
        summary_dim=3, embed_dims=(8,), num_heads=(2,), mlp_depths=(1,), mlp_widths=(8,)
    ),
    "time_series": lambda: bf.networks.TimeSeriesNetwork(summary_dim=3, filters=4, recurrent_dim=8),
    "time_series_transformer": lambda: bf.networks.TimeSeriesTransformer(
        summary_dim=3, embed_dims=(8,), num_heads=(2,), mlp_depths=(1,), mlp_widths=(8,)
    ),
}


@pytest.fixture(autouse=True)
def seeded():
    keras.utils.set_random_seed(7)


def numbers(x):
    return np.ravel(keras.ops.convert_to_numpy(x))[:4]


def test_backend_is_tensorflow():
    assert keras.backend.backend() == "tensorflow"
    assert tf.is_tensor(keras.ops.ones(2))


@pytest.mark.parametrize("name", GENERATIVE)
def test_density_and_samples(name):
    network = GENERATIVE[name]()
    network.build(X.shape, CONDITIONS.shape)
    z, log_density = network(X, conditions=CONDITIONS, density=True)
    assert z.shape == X.shape
    np.testing.assert_allclose(numbers(log_density), LOG_PROB[name], rtol=1e-4, atol=1e-4)
    back = network(z, conditions=CONDITIONS, inverse=True)
    if name in ("coupling", "spline"):
        np.testing.assert_allclose(back, X, atol=1e-4)
    assert network.sample((6,), conditions=CONDITIONS).shape == (6, 2)


@pytest.mark.parametrize("name", SUMMARIES)
def test_summary_network(name):
    network = SUMMARIES[name]()
    out = network(SETS)
    assert out.shape == (4, 3)
    np.testing.assert_allclose(numbers(out), SUMMARY[name], rtol=1e-4, atol=1e-5)
    if name in ("deep_set", "set_transformer"):
        np.testing.assert_allclose(network(SETS[:, ::-1]), out, rtol=1e-3, atol=1e-5)
    config = keras.saving.serialize_keras_object(network)
    assert keras.saving.serialize_keras_object(keras.saving.deserialize_keras_object(config)) == config


def workflow(network, **kwargs):
    simulator = bf.simulators.TwoMoons(rng=np.random.default_rng(1))
    return bf.BasicWorkflow(
        simulator=simulator,
        inference_network=network,
        inference_variables=["parameters"],
        inference_conditions=["observables"],
        initial_learning_rate=2e-3,
        **kwargs,
    )


TRAINED = {
    **GENERATIVE,
    "consistency": lambda: bf.networks.ConsistencyModel(total_steps=20, s1=12, subnet_kwargs=SMALL),
}


@pytest.mark.parametrize("name", TRAINED)
def test_workflow_trains_and_samples(name):
    flow = workflow(TRAINED[name]())
    data = flow.simulate(64)
    history = flow.fit_offline(data, epochs=2, batch_size=32, verbose=0)
    losses = history.history["loss"]
    assert len(losses) == 2 and np.isfinite(losses).all()
    np.testing.assert_allclose(losses[0], LOSSES[name], rtol=1e-4)
    samples = flow.sample(num_samples=3, conditions={"observables": data["observables"][:5]})
    assert samples["parameters"].shape == (5, 3, 2)
    if name in GENERATIVE:
        at = {"observables": data["observables"][:5], "parameters": data["parameters"][:5]}
        assert np.isfinite(flow.log_prob(at)).all()


def test_online_training_and_diagnostics():
    flow = workflow(GENERATIVE["coupling"]())
    history = flow.fit_online(epochs=1, batch_size=16, num_batches_per_epoch=3, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    table = flow.compute_default_diagnostics(test_data=20, num_samples=10)
    assert table.shape[1] == 2 and np.isfinite(table.to_numpy()).all()
    figures = flow.plot_default_diagnostics(
        test_data=20, num_samples=10, loss_kwargs={}, calibration_ecdf_kwargs={}
    )
    assert figures


def test_point_estimates():
    flow = workflow(bf.networks.PointNetwork(points=["mean", "quantiles"], q=[0.1, 0.9], subnet_kwargs=SMALL))
    data = flow.simulate(64)
    losses = flow.fit_offline(data, epochs=2, batch_size=32, verbose=0).history["loss"]
    np.testing.assert_allclose(losses[0], LOSSES["points"], rtol=1e-4)
    found = flow.estimate(conditions={"observables": data["observables"][:5]})["parameters"]
    assert found["mean"].shape == (5, 2) and set(found) == {"mean", "quantiles"}


def test_approximator_with_summaries_is_stored(tmp_path):
    def simulate(batch_shape):
        theta = RNG.normal(size=(*batch_shape, 2))
        return {"theta": theta, "x": theta[..., None, :] + RNG.normal(size=(*batch_shape, 5, 2))}

    adapter = (
        bf.Adapter().convert_dtype("float64", "float32").as_set(["x"])
        .rename("theta", "inference_variables").rename("x", "summary_variables")
    )  # fmt: skip
    approximator = bf.ContinuousApproximator(
        inference_network=GENERATIVE["coupling"](), summary_network=SUMMARIES["deep_set"](), adapter=adapter
    )
    approximator.compile(optimizer=keras.optimizers.Adam(1e-3))
    dataset = bf.OfflineDataset(simulate((32,)), batch_size=16, adapter=adapter)
    approximator.fit(dataset=dataset, epochs=1, verbose=0)
    test = simulate((3,))
    before = approximator.log_prob(test)
    approximator.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.log_prob(test), before, rtol=1e-5)
    assert loaded.sample(num_samples=4, conditions={"x": test["x"]})["theta"].shape == (3, 4, 2)


def test_derivatives():
    def f(x):
        return keras.ops.sin(x) * x[:, ::-1]

    out, vjp = bf.utils.vjp(f, keras.ops.convert_to_tensor(X), return_output=True)
    out2, jvp = bf.utils.jvp(
        f, (keras.ops.convert_to_tensor(X),), (keras.ops.ones_like(X),), return_output=True
    )
    np.testing.assert_allclose(
        vjp(keras.ops.ones_like(out)), np.cos(X) * X[:, ::-1] + np.sin(X[:, ::-1]), rtol=1e-4
    )
    np.testing.assert_allclose(jvp, np.cos(X) * X[:, ::-1] + np.sin(X), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(out, out2)


def test_two_networks_agree_in_a_function():
    network = GENERATIVE["coupling"]()
    network.build(X.shape, CONDITIONS.shape)
    eager = network(X, conditions=CONDITIONS, density=True)[1]
    traced = tf.function(lambda x, c: network(x, conditions=c, density=True)[1])(X, CONDITIONS)
    np.testing.assert_allclose(traced, eager, rtol=1e-5)
