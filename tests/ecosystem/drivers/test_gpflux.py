"""GPflux as its users write it: Gaussian processes as layers of Keras 2, on a few points; numbers of TensorFlow 2.21."""

import gpflow
import gpflux
import numpy as np
import tensorflow as tf
from gpflow.keras import tf_keras

tf_keras.backend.set_floatx("float64")
X = np.linspace(0.0, 1.0, 20)[:, None]
Y = np.sin(9 * X) + 0.05 * np.random.RandomState(0).randn(20, 1)

# What TensorFlow gives: see the tests of the same names.
NUMBERS = {
    "layer": [1.000000536, 1.081656376, 1.131981945, 1.144550866, 1, 1, 1, 1, 1.476452067],
    "natural": [-43.8431543319259],
    "one_layer": [7.367020544, 1.792519984, -32.13058966],
}  # fmt: skip


def check(name, *values, rtol=1e-8):
    found = np.concatenate([np.ravel(np.asarray(v)) for v in values])
    np.testing.assert_allclose(found, NUMBERS[name], rtol=rtol, atol=rtol * 1e-2)


def layer(outputs=1, **how):
    kernel = gpflux.helpers.construct_basic_kernel(
        gpflow.kernels.SquaredExponential(lengthscales=0.3), output_dim=outputs, share_hyperparams=True
    )
    points = gpflux.helpers.construct_basic_inducing_variables(
        num_inducing=6,
        input_dim=1,
        output_dim=outputs,
        share_variables=True,
        z_init=np.linspace(0, 1, 6)[:, None],
    )
    return gpflux.layers.GPLayer(kernel, points, num_data=20, num_latent_gps=outputs, **how)


def deep(layers=1):
    stack = [layer(mean_function=gpflow.mean_functions.Identity()) for _ in range(layers - 1)]
    stack.append(layer(mean_function=gpflow.mean_functions.Zero()))
    return gpflux.models.DeepGP(stack, gpflow.likelihoods.Gaussian(0.1))


def test_a_layer():
    gp = layer(mean_function=gpflow.mean_functions.Zero())
    gp.q_mu.assign(np.cos(np.arange(6.0))[:, None])
    found = gp(X[:4])
    check("layer", found.mean(), found.variance(), gp.prior_kl())
    assert found.sample().shape == (4, 1)


def test_one_layer_is_trained_by_keras():
    model = deep()
    training = model.as_training_model()
    training.compile(tf_keras.optimizers.Adam(0.05))
    history = training.fit({"inputs": X, "targets": Y}, batch_size=20, epochs=15, shuffle=False, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]
    check("one_layer", history.history["loss"][0], history.history["loss"][-1], model.elbo((X, Y)), rtol=1e-5)


def test_two_layers_learn_a_function():
    tf.random.set_seed(1)
    model = deep(layers=2)
    training = model.as_training_model()
    training.compile(tf_keras.optimizers.Adam(0.05))
    slower = tf_keras.callbacks.ReduceLROnPlateau("loss", factor=0.95, patience=5)
    history = training.fit(
        {"inputs": X, "targets": Y}, batch_size=10, epochs=60, callbacks=[slower], verbose=0
    )
    losses = history.history["loss"]
    assert np.mean(losses[-5:]) < 0.5 * losses[0]
    found = model.as_prediction_model()(X)
    assert np.sqrt(np.mean((found.f_mean.numpy() - Y) ** 2)) < 0.5
    assert (found.y_var.numpy() >= found.f_var.numpy()).all()


def test_natural_gradients_of_the_last_layer():
    model = deep()
    training = gpflux.optimization.NatGradWrapper(model.as_training_model())
    training.natgrad_layers = True
    training.compile([gpflow.optimizers.NaturalGradient(1.0), tf_keras.optimizers.Adam(0.01)])
    training.fit({"inputs": X, "targets": Y}, batch_size=20, epochs=1, shuffle=False, verbose=0)
    check("natural", model.elbo((X, Y)), rtol=1e-5)


def test_functions_are_sampled_by_fourier_features():
    tf.random.set_seed(2)
    kernel = gpflow.kernels.Matern52(lengthscales=0.3)
    fourier = gpflux.layers.basis_functions.fourier_features
    features = fourier.RandomFourierFeatures(kernel, 400, dtype=tf.float64)
    assert features(X).shape == (20, 800)
    near = tf.matmul(features(X), features(X), transpose_b=True)
    np.testing.assert_allclose(near, kernel(X), atol=0.25)
