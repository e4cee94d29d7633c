"""GPflow as its users write it: models trained with L-BFGS, Adam, natural gradients and HMC, on a few points.

The numbers are those of TensorFlow 2.21, in float64: exact results agree to 1e-8, those of optimisers to 1e-4.
"""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

rng = np.random.RandomState(0)
X = np.linspace(0.0, 1.0, 25)[:, None]
Y = np.sin(12 * X) + 0.66 * np.cos(25 * X) + 0.1 * rng.randn(25, 1)
LABELS = (Y > 0).astype(np.float64)
X2 = rng.rand(20, 2)
Y2 = np.hstack([np.sin(6 * X2[:, :1]), np.cos(4 * X2[:, 1:]) + 0.1 * rng.randn(20, 1)])
Z = np.linspace(0.05, 0.95, 6)[:, None]
NEW = np.array([[0.12], [0.51], [1.1]])

# What TensorFlow gives: see the tests of the same names.
NUMBERS = {
    "gpr_before": [-58.88651644, 0.9093784371, -0.1044968097, 1.28503461, 0.01200712693, 0.01086159627,
        0.2108044618, 0.01200712693, 0.000382061577, -1.49950737e-05, 0.000382061577, 0.01086159627,
        -0.002139321763, -1.49950737e-05, -0.002139321763, 0.2108044618, 0.4050940889, -9.541389741,
        -0.4027042979],
    "gpr_trained": [9.819588464, 0.1123748445, 1.172284322, 1.000086785e-06, 0.545859746, 0.5320548212,
        0.9471274461, 0.0002016261759, 0.0006803797756, 0.6114400502],
    "gpr_gradients": [61.38782514, -11.23485406, -27.5412331],
    "gpr_three_steps": [16.84272549],
    "gpr_prior": [-35.78570307, -0.8256867602],
    "gpr_prior_trained": [31.82253891, 0.09468251142, 0.2883963743],
    "kernel_rbf": [15.75468048, 4.924443017, 2.268067827, 16.1249915],
    "kernel_exponential": [17.63504258, 3.065584551, 18.50222259],
    "kernel_matern12": [13.81405367, 3.751953537, 13.6715713],
    "kernel_matern32": [10.6390561, 5.616834594, 9.657608825],
    "kernel_rational": [20.74358155, -0.2852568252, 3.070032808, 22.43216537],
    "kernel_periodic": [12.36714043, -1.707259628, 7.219996076, 11.84232409],
    "kernel_cosine": [12.68454371, -2.450880077, 10.26874633, 12.24359836],
    "kernel_polynomial": [88.28307465, 135.061716, 65.28837513],
    "kernel_arccosine": [44.64473826, 34.93994311, 49.99564733, 15.05570422],
    "kernel_product": [5.845460308, 0.5341989402, 4.35589259, 5.679495978, 1.087615482],
    "kernel_linear": [6.564742584, 1.471165171, 1.483696846, 5.511992708],
    "sparse": [-76.83465475, -5.439248916, -50.69769307, 0.8275846023, -0.02167080925, -0.6828097404,
        0.05087205002, 0.05041305325, 0.3612992028, 0.8453150992, -0.1287422623, -0.8093371432, 0.05421416006,
        0.05346785499, 0.3677045842],
    "sparse_trained": [-31.00135595],
    "vgp_before": [-24.85194151, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25],
    "vgp_trained": [-11.92462804],
    "vgp_predicts": [0.9757735825, 0.8714945698, 0.7099059103],
    "natural_XiNat": [-15.93021605, 0.241694207],
    "natural_XiSqrtMeanVar": [-16.81734434, 0.2411196267],
    "svgp_True_True": [-276.293212, 0.4460105426, 1.229112455, -0.9947767784, 1, 0.1493817753, 6.113567966e-06,
        0.1493817753, 1, 0.01289068914, 6.113567966e-06, 0.01289068914, 1, 112.3068883, 67.77576377, 65.47417583,
        6.675176821, 127.6360167, 255.0638444],
    "svgp_False_True": [-271.0814741, 0.5294764254, 0.5476077331, -0.7074562086, 0.8346168824, -0.09953995354,
        0.4076775118, -0.09953995354, 0.8345954665, 0.4002816171, 0.4076775118, 0.4002816171, 3.434426732,
        97.7132459, 72.34401093, 542.2045223, 115.0865017, 9.249676757, 239.2534352],
    "svgp_True_False": [-276.293212, 0.4460105426, 1.229112455, -0.9947767784, 1, 0.1493817753, 6.113567966e-06,
        0.1493817753, 1, 0.01289068914, 6.113567966e-06, 0.01289068914, 1, 112.3068883, 123.4425118, 65.47417583,
        6.675176821, 127.6360167, 255.0638444],
    "svgp_False_False": [-271.0814741, 0.5294764254, 0.5476077331, -0.7074562086, 0.8346168824, -0.09953995354,
        0.4076775118, -0.09953995354, 0.8345954665, 0.4002816171, 0.4076775118, 0.4002816171, 3.434426732,
        97.7132459, 115.4974432, 542.2045223, 115.0865017, 9.249676757, 239.2534352],
    "svgp_batches": [-84.28650451, 0.7927066837, 0.1413309404],
    "likelihood_poisson": [-52.42616969, 0.44101719, -3.592903485, -2.449097843, -0.6549125284, -4.814567989,
        -3.291625251],
    "likelihood_student": [-43.8854529, 2.611726839, -0.2185711726, 0.0810954234, 1.258583236, -1.26940695,
        -0.9901522893],
    "likelihood_gamma": [-59.28409447, 15.54430371, 8.125091541, 8.273921746, 11.68684208, 4.157695421,
        -0.01046703883],
    "likelihood_beta": [-27.45550307, 0.7304553216, -0.01187768463, 0.06394399937, 0.3624592598, -0.307577872,
        -0.2474521709],
    "likelihood_exponential": [-59.28409447, 15.54430371, 8.125091541, 8.273921746, 11.68684208, 4.157695421,
        -0.01046703883],
    "multiclass": [-126.6901058],
    "multiclass_trained": [-64.89306605],
    "outputs_shared": [-410.7341281, 0, 0, 0, 0, 1.381826664, 0, 0, 1.381826664, 1.75526873, 0, 0, 1.75526873],
    "outputs_shared_trained": [-28.92960274],
    "outputs_separate": [-296.9111139, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1],
    "outputs_separate_trained": [-29.13806631],
    "outputs_coregional": [-273.9111139, 0, 0, 0, 0, 1.09, 0.44, 0.44, 0.68, 1.09, 0.44, 0.44, 0.68],
    "outputs_coregional_trained": [-38.6070558],
    "coregion": [-28.20604053, 0.0384089631, -0.01609570387, -0.01642005918, -0.04646312546],
    "gpmc": [-21.202204],
    "gpmc_trained": [-18.69904671],
    "gpmc_chain": [-2.691328298, 0.7911904773, 0.7522478912, 0.6528871048, 0.7424724495, 0.6138787054],
    "gplvm": [-84.59088944],
    "gplvm_trained": [-60.83031451],
    "expectations": [1, 1, 1, 0.5392047077, 0.3005280592, 0.3931363096, 0.5715640584, 0.4977045941, 0.624722713,
        0.4115928835, 0.443824552, 0.5767363657, 0.3710527726, 0.2196466196, 0.278327594, 0.2196466196,
        0.1597358005, 0.1798228082, 0.278327594, 0.1798228082, 0.2404410467, 0.4022492242, 0.3243023181,
        0.3993353096, 0.3243023181, 0.3212134981, 0.3513922817, 0.3993353096, 0.3513922817, 0.4565748345,
        0.2544567729, 0.2371720844, 0.3005655391, 0.2371720844, 0.27158265, 0.3057654484, 0.3005655391,
        0.3057654484, 0.4088802342, 0.7818266638, 1.15526873, 1.755539356],
}  # fmt: skip


def check(name, *values, rtol=1e-8):
    found = np.concatenate([np.ravel(np.asarray(v)) for v in values])
    np.testing.assert_allclose(found, NUMBERS[name], rtol=rtol, atol=rtol * 1e-2)


def scipy_minimize(model, data=None, **options):
    loss = model.training_loss if data is None else model.training_loss_closure(data)
    return gpflow.optimizers.Scipy().minimize(
        loss, model.trainable_variables, options={"maxiter": 200, **options}
    )


def regression(kernel=None):
    return gpflow.models.GPR((X, Y), kernel or gpflow.kernels.Matern52(lengthscales=0.3), noise_variance=0.05)


def test_gpr_before_training():
    model = regression(gpflow.kernels.SquaredExponential(lengthscales=0.2) + gpflow.kernels.Linear())
    mean, var = model.predict_f(NEW)
    _, full = model.predict_f(NEW, full_cov=True)
    density = model.predict_log_density((NEW, np.ones((3, 1))))
    check("gpr_before", model.log_marginal_likelihood(), mean, var, full, density)


def test_gpr_trained_by_scipy():
    model = regression()
    done = scipy_minimize(model)
    assert done.success
    mean, var = model.predict_y(NEW)
    check(
        "gpr_trained",
        model.training_loss(),
        [p.numpy() for p in model.trainable_parameters],
        mean,
        var,
        rtol=1e-4,
    )


def test_gradients_of_gpr():
    model = regression()
    with tf.GradientTape() as tape:
        loss = model.training_loss()
    check("gpr_gradients", tape.gradient(loss, model.trainable_variables))
    eager = gpflow.optimizers.Scipy().minimize(
        model.training_loss, model.trainable_variables, compile=False, options={"maxiter": 3}
    )
    check("gpr_three_steps", eager.fun, rtol=1e-6)


def test_gpr_with_priors_and_mean():
    kernel = gpflow.kernels.SquaredExponential(lengthscales=0.3)
    kernel.lengthscales.prior = tfp.distributions.Gamma(
        gpflow.utilities.to_default_float(2.0), gpflow.utilities.to_default_float(3.0)
    )
    kernel.variance.prior = tfp.distributions.LogNormal(
        gpflow.utilities.to_default_float(0.0), gpflow.utilities.to_default_float(1.0)
    )
    model = gpflow.models.GPR((X, Y), kernel, mean_function=gpflow.mean_functions.Linear())
    gpflow.set_trainable(model.likelihood, False)
    before = model.log_posterior_density()
    check("gpr_prior", before, model.log_prior_density())
    scipy_minimize(model)
    check("gpr_prior_trained", model.training_loss(), kernel.lengthscales, kernel.variance, rtol=1e-4)


@pytest.mark.parametrize(
    "name, make",
    {
        "rbf": lambda k: k.RBF(lengthscales=[0.5, 0.7]),
        "exponential": lambda k: k.Exponential(),
        "matern12": lambda k: k.Matern12(),
        "matern32": lambda k: k.Matern32(lengthscales=0.4),
        "rational": lambda k: k.RationalQuadratic(alpha=0.5),
        "periodic": lambda k: k.Periodic(k.SquaredExponential(), period=0.7),
        "cosine": lambda k: k.Cosine(lengthscales=[0.5, 0.7]),
        "polynomial": lambda k: k.Polynomial(degree=2),
        "arccosine": lambda k: k.ArcCosine(order=1),
        "product": lambda k: k.Matern32(active_dims=[0]) * k.Constant(0.4) + k.White(0.2),
        "linear": lambda k: k.Linear(variance=[0.3, 0.4]) + k.Bias(0.3),
    }.items(),
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_kernels(name, make):
    kernel = make(gpflow.kernels)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(kernel(X2[:6], X2[6:9]) ** 2) + tf.reduce_sum(kernel(X2[:6], full_cov=False))
    slopes = tape.gradient(total, kernel.trainable_variables)
    check(f"kernel_{name}", total, *slopes, rtol=1e-7)


def test_sgpr_and_fitc():
    sgpr = gpflow.models.SGPR((X, Y), gpflow.kernels.Matern32(lengthscales=0.3), Z, noise_variance=0.05)
    fitc = gpflow.models.GPRFITC((X, Y), gpflow.kernels.Matern32(lengthscales=0.3), Z, noise_variance=0.05)
    check(
        "sparse", sgpr.elbo(), sgpr.upper_bound(), fitc.maximum_log_likelihood_objective(),
        *sgpr.predict_f(NEW), *fitc.predict_f(NEW),
    )  # fmt: skip
    scipy_minimize(sgpr, maxiter=10)
    check("sparse_trained", sgpr.elbo(), rtol=1e-4)


def test_vgp_classifies():
    model = gpflow.models.VGP(
        (X, LABELS), gpflow.kernels.Matern52(lengthscales=0.3), gpflow.likelihoods.Bernoulli()
    )
    check("vgp_before", model.elbo(), *model.predict_y(NEW))
    scipy_minimize(model, maxiter=300)
    check("vgp_trained", model.elbo(), rtol=1e-4)
    check("vgp_predicts", model.predict_y(NEW)[0], rtol=2e-2)
    assert np.mean((model.predict_y(X)[0].numpy() > 0.5) == LABELS) > 0.95


def test_natural_gradients_find_the_exact_posterior():
    exact = regression()
    model = gpflow.models.VGP(
        (X, Y), gpflow.kernels.Matern52(lengthscales=0.3), gpflow.likelihoods.Gaussian(0.05)
    )
    gpflow.optimizers.NaturalGradient(gamma=1.0).minimize(model.training_loss, [(model.q_mu, model.q_sqrt)])
    np.testing.assert_allclose(model.elbo(), exact.log_marginal_likelihood(), rtol=1e-4)
    np.testing.assert_allclose(model.predict_f(NEW)[0], exact.predict_f(NEW)[0], rtol=1e-3)


@pytest.mark.parametrize("xi", [gpflow.optimizers.XiNat, gpflow.optimizers.XiSqrtMeanVar])
def test_natural_gradients_and_adam(xi):
    model = gpflow.models.VGP(
        (X, LABELS), gpflow.kernels.Matern52(lengthscales=0.3), gpflow.likelihoods.Bernoulli()
    )
    for p in (model.q_mu, model.q_sqrt):
        gpflow.set_trainable(p, False)
    natural, adam = gpflow.optimizers.NaturalGradient(gamma=0.3), tf.optimizers.Adam(0.05)
    loss = model.training_loss_closure()

    @tf.function
    def step():
        natural.minimize(loss, [(model.q_mu, model.q_sqrt, xi())])
        with tf.GradientTape() as tape:
            value = loss()
        slopes = tape.gradient(value, model.trainable_variables)
        adam.apply_gradients(zip(slopes, model.trainable_variables, strict=True))

    for _ in range(5):
        step()
    check(f"natural_{xi.__name__}", model.elbo(), model.kernel.lengthscales, rtol=1e-5)


def sparse_variational(likelihood=None, **how):
    return gpflow.models.SVGP(
        gpflow.kernels.SquaredExponential(lengthscales=0.2),
        likelihood or gpflow.likelihoods.Gaussian(0.1),
        Z.copy(),
        num_data=25,
        **how,
    )


@pytest.mark.parametrize("whiten", [True, False])
@pytest.mark.parametrize("diagonal", [True, False])
def test_svgp(whiten, diagonal):
    model = sparse_variational(whiten=whiten, q_diag=diagonal)
    model.q_mu.assign(np.sin(5 * Z))
    with tf.GradientTape() as tape:
        elbo = model.elbo((X, Y))
    slopes = tape.gradient(elbo, model.trainable_variables)
    mean, var = model.predict_f(NEW, full_cov=True)
    check(f"svgp_{whiten}_{diagonal}", elbo, mean, var, *(tf.norm(s) for s in slopes), rtol=1e-7)


def test_svgp_in_minibatches():
    model = sparse_variational()
    batches = iter(tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(10))
    loss = model.training_loss_closure(batches, compile=True)
    adam = tf.optimizers.Adam(0.02)
    gpflow.set_trainable(model.inducing_variable, False)
    for _ in range(20):
        with tf.GradientTape() as tape:
            value = loss()
        slopes = tape.gradient(value, model.trainable_variables)
        adam.apply_gradients(zip(slopes, model.trainable_variables, strict=True))
    check("svgp_batches", model.elbo((X, Y)), model.kernel.variance, model.likelihood.variance, rtol=1e-5)


@pytest.mark.parametrize(
    "name, make, y",
    [
        ("poisson", lambda m: m.Poisson(), np.round(np.exp(Y))),
        ("student", lambda m: m.StudentT(), Y),
        ("gamma", lambda m: m.Gamma(), np.exp(Y)),
        ("beta", lambda m: m.Beta(), 0.5 + 0.2 * np.tanh(Y)),
        ("exponential", lambda m: m.Exponential(), np.exp(Y)),
    ],
)  # fmt: skip
def test_likelihoods(name, make, y):
    model = sparse_variational(make(gpflow.likelihoods))
    with tf.GradientTape() as tape:
        elbo = model.elbo((X, y))
    slopes = tape.gradient(elbo, [model.q_mu.unconstrained_variable])
    check(f"likelihood_{name}", elbo, *slopes, rtol=1e-7)


def test_multiclass():
    classes = np.digitize(Y, [-0.5, 0.5]).astype(float)
    likelihood = gpflow.likelihoods.MultiClass(3, invlink=gpflow.likelihoods.RobustMax(3))
    kernel = gpflow.kernels.Matern32(lengthscales=0.2) + gpflow.kernels.White(0.01)
    model = gpflow.models.SVGP(kernel, likelihood, Z.copy(), num_latent_gps=3, whiten=True, q_diag=True)
    gpflow.set_trainable(model.inducing_variable, False)
    before = model.elbo((X, classes))
    scipy_minimize(model, (X, classes), maxiter=10)
    check("multiclass", before, rtol=1e-8)
    check("multiclass_trained", model.elbo((X, classes)), rtol=1e-3)


@pytest.mark.parametrize("kind", ["shared", "separate", "coregional"])
def test_multi_output(kind):
    k = gpflow.kernels
    shared = gpflow.inducing_variables.SharedIndependentInducingVariables(
        gpflow.inducing_variables.InducingPoints(X2[:5].copy())
    )
    kernel = {
        "shared": lambda: k.SharedIndependent(k.Matern52() + k.Linear(), output_dim=2),
        "separate": lambda: k.SeparateIndependent([k.Matern52(), k.SquaredExponential(lengthscales=0.6)]),
        "coregional": lambda: k.LinearCoregionalization(
            [k.Matern52(), k.SquaredExponential(lengthscales=0.6)], W=np.array([[1.0, 0.3], [0.2, 0.8]])
        ),
    }[kind]()
    model = gpflow.models.SVGP(
        kernel, gpflow.likelihoods.Gaussian(0.1), inducing_variable=shared, num_latent_gps=2
    )
    before = model.elbo((X2, Y2))
    mean, var = model.predict_f(X2[:2], full_output_cov=True)
    check(f"outputs_{kind}", before, mean, var)
    scipy_minimize(model, (X2, Y2), maxiter=15)
    check(f"outputs_{kind}_trained", model.elbo((X2, Y2)), rtol=1e-2)


def test_coregion_of_gpr():
    x = np.hstack([np.tile(X[:10], (2, 1)), np.repeat([[0.0], [1.0]], 10, 0)])
    kernel = gpflow.kernels.Matern32(active_dims=[0]) * gpflow.kernels.Coregion(2, rank=1, active_dims=[1])
    model = gpflow.models.GPR((x, np.vstack([Y[:10], Y[5:15]])), kernel)
    kernel.kernels[1].W.assign([[0.4], [0.9]])
    check("coregion", model.log_marginal_likelihood(), model.predict_f(x[8:12])[0])


def test_gpmc_sampled_by_hmc():
    model = gpflow.models.GPMC(
        (X[::2], LABELS[::2]), gpflow.kernels.Matern32(lengthscales=0.3), gpflow.likelihoods.Bernoulli()
    )
    f64 = gpflow.utilities.to_default_float
    model.kernel.lengthscales.prior = tfp.distributions.Gamma(f64(2.0), f64(4.0))
    model.kernel.variance.prior = tfp.distributions.Gamma(f64(2.0), f64(2.0))
    check("gpmc", model.log_posterior_density())
    scipy_minimize(model, maxiter=100)
    check("gpmc_trained", model.log_posterior_density(), rtol=1e-5)
    helper = gpflow.optimizers.SamplingHelper(model.log_posterior_density, model.trainable_parameters)
    hmc = tfp.mcmc.HamiltonianMonteCarlo(
        target_log_prob_fn=helper.target_log_prob_fn, num_leapfrog_steps=8, step_size=0.05
    )
    adaptive = tfp.mcmc.SimpleStepSizeAdaptation(
        hmc, num_adaptation_steps=20, target_accept_prob=f64(0.75), adaptation_rate=0.1
    )

    @tf.function
    def run_chain():
        return tfp.mcmc.sample_chain(
            num_results=60,
            num_burnin_steps=20,
            current_state=helper.current_state,
            kernel=adaptive,
            trace_fn=lambda _, pkr: pkr.inner_results.is_accepted,
            seed=3,
        )

    samples, accepted = run_chain()
    assert samples[0].shape[0] == 60 and accepted.numpy().mean() > 0.4
    values = helper.convert_to_constrained_values(samples)
    assert all((v.numpy() > 0).all() for v in values[1:])  # the kernel's
    means = []
    for i in range(0, 60, 6):
        for variable, chain in zip(helper.current_state, samples, strict=True):
            variable.assign(chain[i])
        means.append(model.predict_y(X)[0].numpy())
    check("gpmc_chain", samples[1][-1], np.mean(means, 0)[::5], rtol=1e-4)


def test_gplvm():
    model = gpflow.models.BayesianGPLVM(
        Y2,
        X_data_mean=X2.copy(),
        X_data_var=np.full((20, 2), 0.1),
        kernel=gpflow.kernels.RBF(lengthscales=[1.0, 1.0]),
        inducing_variable=X2[:5].copy(),
    )
    check("gplvm", model.elbo(), rtol=1e-7)
    scipy_minimize(model, maxiter=5)
    check("gplvm_trained", model.elbo(), rtol=1e-3)


def test_expectations():
    p = gpflow.probability_distributions.DiagonalGaussian(
        tf.constant(X2[:3]), tf.constant(np.full((3, 2), 0.2))
    )
    kernel = gpflow.kernels.RBF(lengthscales=[0.5, 0.7])
    points = gpflow.inducing_variables.InducingPoints(X2[3:6])
    expectation = gpflow.expectations.expectation
    check(
        "expectations", expectation(p, kernel), expectation(p, (kernel, points)),
        expectation(p, (kernel, points), (kernel, points)), expectation(p, gpflow.kernels.Linear()),
    )  # fmt: skip


def test_posteriors_are_cached_and_agree():
    model = sparse_variational()
    model.q_mu.assign(np.cos(3 * Z))
    for cache in (
        gpflow.posteriors.PrecomputeCacheType.TENSOR,
        gpflow.posteriors.PrecomputeCacheType.VARIABLE,
    ):
        mean, var = model.posterior(cache).predict_f(NEW)
        np.testing.assert_allclose(mean, model.predict_f(NEW)[0], rtol=1e-7)
        np.testing.assert_allclose(var, model.predict_f(NEW)[1], rtol=1e-7)


def test_samples_of_functions():
    tf.random.set_seed(1)
    samples = regression().predict_f_samples(NEW, num_samples=2000)
    mean, var = regression().predict_f(NEW)
    assert samples.shape == (2000, 3, 1)
    np.testing.assert_allclose(tf.reduce_mean(samples, 0), mean, atol=0.1)
    np.testing.assert_allclose(tf.math.reduce_variance(samples, 0), var, rtol=0.2, atol=0.01)


def test_parameters_and_their_use():
    model = regression()
    values = gpflow.utilities.read_values(model)
    assert sorted(values) == [".kernel.lengthscales", ".kernel.variance", ".likelihood.variance"]
    copy = gpflow.utilities.deepcopy(model)
    copy.kernel.lengthscales.assign(0.9)
    assert model.kernel.lengthscales.numpy() == pytest.approx(0.3)
    gpflow.utilities.multiple_assign(model, {".kernel.variance": 2.5})
    assert model.kernel.variance.numpy() == pytest.approx(2.5)
    table = gpflow.utilities.tabulate_module_summary(model)
    assert "GPR.kernel.lengthscales" in table and "Softplus" in table
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        model.likelihood.variance.assign(-1.0)
    assert (model.kernel.variance * 2).numpy() == pytest.approx(5.0)
    model.kernel.lengthscales = gpflow.Parameter(0.4, transform=tfp.bijectors.Exp())
    assert [v.shape for v in model.trainable_variables] == [(), (), ()]


def test_checkpoint(tmp_path):
    model = regression()
    model.kernel.lengthscales.assign(0.77)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), str(tmp_path / "c"), max_to_keep=1)
    manager.save()
    fresh = regression()
    tf.train.Checkpoint(model=fresh).restore(manager.latest_checkpoint).assert_consumed()
    assert fresh.kernel.lengthscales.numpy() == pytest.approx(0.77)


def test_wrong_shapes():
    with pytest.raises(Exception, match="shape|Shape|dimension"):
        gpflow.models.GPR((X, Y[:5]), gpflow.kernels.RBF()).log_marginal_likelihood()
