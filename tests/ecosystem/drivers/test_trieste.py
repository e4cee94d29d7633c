"""Trieste as its users write it: Bayesian optimisation with GPflow models; numbers of TensorFlow 2.21."""

import gpflow
import numpy as np
import tensorflow as tf
import trieste
from gpflow.keras import tf_keras
from trieste.acquisition.function import ExpectedImprovement, NegativeLowerConfidenceBound
from trieste.acquisition.rule import DiscreteThompsonSampling, EfficientGlobalOptimization
from trieste.models.gpflow import GaussianProcessRegression, build_gpr
from trieste.models.gpflux import DeepGaussianProcess, build_vanilla_deep_gp
from trieste.models.keras import DeepEnsemble, build_keras_ensemble
from trieste.models.optimizer import KerasOptimizer
from trieste.objectives import ScaledBranin

SPACE = ScaledBranin.search_space
GRID = tf.constant([[0.1, 0.2], [0.5, 0.5], [0.54, 0.15], [0.9, 0.4]], tf.float64)

# What TensorFlow gives: see the tests of the same names.
NUMBERS = {
    "points": [0.05194891927, 0.975172292, 0.8019489193, 0.6418389587, 0.3019489193, 0.1973945142, 0.6769489193,
        0.8640611809, 0.1769489193, 0.5307278476, 0.9269489193, 0.08628340311, 0.4269489193, 0.7529500698,
        0.6144489193, 0.4196167364, -0.9468636798, 0.6417532993, -0.4173861799, 1.866035428, -0.8731776091,
        -1.01130113, 0.1867025889, -0.5237340531],
    "built": [9.927357384, -0.371678007, -0.4056080232, -0.5963904135, -0.4671400332, 0.4051400067, 0.1637793067,
        0.3890178966, 0.3994604355],
    "trained": [9.356144999, -0.3746369027, -0.3697516326, -0.4380810522, -0.3143361672, 0.5326960565,
        0.3469901642, 0.5525352058, 0.5559706826],
    "acquisition": [0.05253958371, 0.01195158419, 0.09448457702, 0.0681465581, -0.4396039983, 0.1047969285,
        -0.2851295817, -0.09247986335, 0.5633678519, -0.18132644, 0.2153351217, -0.6840245457, 1.326437147,
        1.012652865, 1.531959902, 1.415183271],
    "own": [-0.3819283071, -0.3523985466, -0.6955561787, -0.5124857694, 0.1926271805, -0.01376601686,
        -0.03610416873, 0.003161927383, -0.01376601686, 0.05379157483, -0.01260361067, -0.01249788684,
        -0.03610416873, -0.01260361067, 0.1524679817, -0.005388456378, 0.003161927383, -0.01249788684,
        -0.005388456378, 0.1222595939],
}  # fmt: skip


def check(name, *values, rtol=1e-6):
    found = np.concatenate([np.ravel(np.asarray(v)) for v in values])
    np.testing.assert_allclose(found, NUMBERS[name], rtol=rtol, atol=rtol * 1e-2)


def observed(number=8):
    observer = trieste.objectives.utils.mk_observer(ScaledBranin.objective)
    return observer, observer(SPACE.sample_halton(number, seed=4))


def model_of(data):
    gpr = build_gpr(data, SPACE, likelihood_variance=1e-5, trainable_likelihood=False)
    return GaussianProcessRegression(gpr, num_kernel_samples=0)


def test_points_and_objective():
    _, data = observed()
    check("points", data.query_points, data.observations)


def test_a_model_is_built_and_trained():
    _, data = observed()
    model = model_of(data)
    check("built", model.model.training_loss(), *model.predict(GRID))
    model.optimize(data)
    check("trained", model.model.training_loss(), *model.predict(GRID), rtol=1e-4)


def test_acquisition_functions():
    _, data = observed()
    model = model_of(data)
    points = GRID[:, None]
    improvement = ExpectedImprovement().prepare_acquisition_function(model, data)
    bound = NegativeLowerConfidenceBound(1.5).prepare_acquisition_function(model, data)
    with tf.GradientTape() as tape:
        tape.watch(points)
        value = improvement(points)
    check("acquisition", value, tape.gradient(value, points), bound(points))


def test_bayesian_optimisation_finds_the_minimum():
    tf.random.set_seed(1)
    np.random.seed(1)
    observer, data = observed()
    optimizer = trieste.bayesian_optimizer.BayesianOptimizer(observer, SPACE)
    rule = EfficientGlobalOptimization(ExpectedImprovement())
    result = optimizer.optimize(5, data, model_of(data), rule, track_state=False)
    found = result.try_get_final_dataset()
    assert found.query_points.shape == (13, 2)
    assert tf.reduce_min(found.observations) < -0.9  # the minimum is -1.047
    point, value, _ = result.try_get_optimal_point()
    assert point.shape == (2,) and value.numpy() == tf.reduce_min(found.observations).numpy()


def test_ask_and_tell():
    tf.random.set_seed(2)
    observer, data = observed()
    loop = trieste.ask_tell_optimization.AskTellOptimizer(
        SPACE, data, model_of(data), DiscreteThompsonSampling(50, 2)
    )
    for _ in range(2):
        asked = loop.ask()
        assert asked.shape == (2, 2) and all(point in SPACE for point in asked)
        loop.tell(observer(asked))
    assert loop.to_result().try_get_final_dataset().query_points.shape == (12, 2)


def test_a_model_of_our_own():
    _, data = observed()
    kernel = gpflow.kernels.Matern52(variance=0.5, lengthscales=[0.3, 0.4])
    gpr = gpflow.models.GPR(data.astuple(), kernel, noise_variance=1e-4)
    gpflow.set_trainable(gpr.likelihood, False)
    model = GaussianProcessRegression(gpr)
    mean, covariance = model.predict_joint(GRID)
    check("own", mean, covariance)


def test_an_ensemble_of_keras_networks():
    """Its weights are random: only that it learns and chooses points is checked."""
    tf.random.set_seed(0)
    observer, data = observed(20)
    networks = build_keras_ensemble(data, ensemble_size=3, num_hidden_layers=1, units=16)
    fit = {"batch_size": 10, "epochs": 60, "verbose": 0}
    model = DeepEnsemble(networks, KerasOptimizer(tf_keras.optimizers.Adam(0.05), fit))
    before = np.mean((model.predict(data.query_points)[0] - data.observations) ** 2)
    model.optimize(data)
    mean, variance = model.predict(data.query_points)
    assert np.mean((mean - data.observations) ** 2) < 0.5 * before and np.all(variance > 0)
    assert model.sample(data.query_points, 4).shape == (4, 20, 1)
    found = trieste.bayesian_optimizer.BayesianOptimizer(observer, SPACE).optimize(
        1, data, model, DiscreteThompsonSampling(50, 1)
    )
    assert found.try_get_final_dataset().observations.shape == (21, 1)


def test_a_deep_process():
    tf.random.set_seed(0)
    _, data = observed(20)

    def build():
        return build_vanilla_deep_gp(
            data, SPACE, num_layers=2, num_inducing_points=10, likelihood_variance=1e-2
        )

    fit = {"batch_size": 20, "epochs": 60, "verbose": 0}
    model = DeepGaussianProcess(build, KerasOptimizer(tf_keras.optimizers.Adam(0.02), fit))
    before = np.mean((model.predict(data.query_points)[0] - data.observations) ** 2)
    model.optimize(data)
    mean, variance = model.predict(data.query_points)
    assert np.mean((mean - data.observations) ** 2) < before and np.all(variance > 0)
    trajectory = model.trajectory_sampler().get_trajectory()
    assert trajectory(data.query_points[:, None]).shape == (20, 1, 1)
