"""tensorflow-probability as its users write it: distributions against SciPy, bijectors, math, optimizers, chains, models.

It passes on TensorFlow and where `tensorflow` is gradtape.
"""

import math

import numpy as np
import pytest
import scipy.special as sp
import scipy.stats as st
import tensorflow as tf
import tensorflow_probability as tfp

tfd = tfp.distributions
tfb = tfp.bijectors

X = np.array([0.3, 0.9, 1.7])
REAL = np.array([-1.4, 0.2, 2.1])
UNIT = np.array([0.2, 0.55, 0.9])
COUNTS = np.array([0.0, 1.0, 4.0])


def _truncnorm(m, s, a, b):
    return st.truncnorm((a - m) / s, (b - m) / s, m, s)


class _Density:
    """A distribution without a class in SciPy: its log density, and perhaps mean and deviation."""

    def __init__(self, logpdf, mean=None, std=None):
        self.logpdf, self._mean, self._std = logpdf, mean, std

    def mean(self):
        return np.nan if self._mean is None else self._mean

    def std(self):
        return np.nan if self._std is None else self._std


def _kumaraswamy(a, b):
    return _Density(lambda x: np.log(a * b) + (a - 1) * np.log(x) + (b - 1) * np.log1p(-(x**a)))


def _half_t(df, m, s):
    return _Density(lambda x: np.log(2) + st.t(df, m, s).logpdf(x))


def _logit_normal(m, s):
    return _Density(lambda x: st.norm(m, s).logpdf(sp.logit(x)) - np.log(x * (1 - x)))


def _pert(low, peak, high, t):
    a, b = 1 + t * (peak - low) / (high - low), 1 + t * (high - peak) / (high - low)
    return st.beta(a, b, low, high - low)


def _sinh_arcsinh(m, s, skew, tail):
    scale = 2 / np.sinh(np.arcsinh(2) * tail)

    def logpdf(x):
        y = (x - m) / (s * scale)
        z = np.sinh(np.arcsinh(y) / tail - skew)
        slope = np.cosh(np.arcsinh(y) / tail - skew) / (tail * np.sqrt(1 + y**2)) / (s * scale)
        return st.norm.logpdf(z) + np.log(slope)

    return _Density(logpdf)


def _two_piece(m, s, skew):
    def logpdf(x):
        side = np.where(x < m, skew, 1 / skew)
        return np.log(2 * skew / (1 + skew**2)) + st.norm.logpdf((x - m) * side / s) - np.log(s)

    return _Density(logpdf)


def _continuous_bernoulli(p):
    norm = np.log(2 * np.arctanh(1 - 2 * p) / (1 - 2 * p))
    return _Density(lambda x: x * np.log(p) + (1 - x) * np.log1p(-p) + norm)


def _relaxed_bernoulli(t, logit):
    def logpdf(x):
        y = sp.logit(x)
        return np.log(t) + logit - t * y - 2 * np.log1p(np.exp(logit - t * y)) - np.log(x * (1 - x))

    return _Density(logpdf)


def _sigmoid_beta(a, b):
    return _Density(lambda x: a * sp.log_expit(x) + b * sp.log_expit(-x) - sp.betaln(a, b))


def _zero_inflated(n, q, p):
    def logpdf(x):
        return np.log(q * (x == 0) + (1 - q) * st.nbinom(n, 1 - p).pmf(x))

    return _Density(logpdf)


def _ordered(c0, c1, loc):
    edges = np.concatenate([[0.0], sp.expit(np.array([c0, c1]) - loc), [1.0]])
    return _Density(lambda x: np.log(np.diff(edges)[x.astype(int)]))


def _lambert(m, s, tail):
    def logpdf(x):
        z = (x - m) / s
        w = np.real(sp.lambertw(tail * z**2))
        u = np.sign(z) * np.sqrt(w / tail)
        return st.norm.logpdf(u) - np.log(s) + np.log(np.abs(u / z / (1 + w)))

    return _Density(logpdf)


def _matrix(rows):
    return np.array(rows, np.float64)


COVARIANCE = _matrix([[2.0, 0.6], [0.6, 1.0]])
TRIL = np.linalg.cholesky(COVARIANCE)
POINTS = _matrix([[0.5, -1.0], [2.0, 0.3]])
SIMPLEX = _matrix([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
SPHERE = _matrix([[0.6, 0.8, 0.0], [0.0, 0.6, -0.8]])

# name: (the distribution, SciPy's, parameters, where)
SCALARS = {
    "Normal": (tfd.Normal, st.norm, (0.4, 1.3), REAL),
    "LogNormal": (tfd.LogNormal, lambda m, s: st.lognorm(s, scale=np.exp(m)), (0.4, 0.6), X),
    "HalfNormal": (tfd.HalfNormal, lambda s: st.halfnorm(scale=s), (1.3,), X),
    "TruncatedNormal": (tfd.TruncatedNormal, _truncnorm, (0.4, 1.3, -2.0, 2.5), REAL),
    "TwoPieceNormal": (tfd.TwoPieceNormal, _two_piece, (0.4, 1.3, 1.6), REAL),
    "GeneralizedNormal": (tfd.GeneralizedNormal, lambda m, s, p: st.gennorm(p, m, s), (0.4, 1.3, 1.7), REAL),
    "Laplace": (tfd.Laplace, st.laplace, (0.4, 1.3), REAL),
    "Cauchy": (tfd.Cauchy, st.cauchy, (0.4, 1.3), REAL),
    "HalfCauchy": (tfd.HalfCauchy, st.halfcauchy, (-0.2, 1.3), X),
    "StudentT": (tfd.StudentT, st.t, (5.0, 0.4, 1.3), REAL),
    "HalfStudentT": (tfd.HalfStudentT, _half_t, (5.0, 0.1, 1.3), X),
    "Gamma": (tfd.Gamma, lambda a, b: st.gamma(a, scale=1 / b), (2.3, 1.4), X),
    "InverseGamma": (tfd.InverseGamma, lambda a, b: st.invgamma(a, scale=b), (5.3, 1.4), X),
    "ExpGamma": (tfd.ExpGamma, lambda a, b: st.loggamma(a, -np.log(b)), (2.3, 1.4), REAL),
    "Chi2": (tfd.Chi2, st.chi2, (3.4,), X),
    "Chi": (tfd.Chi, st.chi, (3.4,), X),
    "NoncentralChi2": (tfd.NoncentralChi2, st.ncx2, (3.4, 1.2), X),
    "Exponential": (tfd.Exponential, lambda r: st.expon(scale=1 / r), (1.4,), X),
    "Beta": (tfd.Beta, st.beta, (2.3, 1.4), UNIT),
    "Kumaraswamy": (tfd.Kumaraswamy, _kumaraswamy, (2.3, 1.4), UNIT),
    "SigmoidBeta": (tfd.SigmoidBeta, _sigmoid_beta, (2.3, 1.4), REAL),
    "Weibull": (tfd.Weibull, lambda k, s: st.weibull_min(k, scale=s), (2.3, 1.4), X),
    "Gumbel": (tfd.Gumbel, st.gumbel_r, (0.4, 1.3), REAL),
    "Logistic": (tfd.Logistic, st.logistic, (0.4, 1.3), REAL),
    "LogLogistic": (tfd.LogLogistic, lambda m, s: st.fisk(1 / s, scale=np.exp(m)), (0.4, 0.2), X),
    "Pareto": (tfd.Pareto, lambda a, s: st.pareto(a, scale=s), (5.3, 0.2), X),
    "GeneralizedPareto": (tfd.GeneralizedPareto, lambda m, s, c: st.genpareto(c, m, s), (0.1, 1.3, 0.2), X),
    "GeneralizedExtremeValue": (
        tfd.GeneralizedExtremeValue, lambda m, s, c: st.genextreme(-c, m, s), (0.1, 1.3, 0.2), REAL,
    ),
    "InverseGaussian": (tfd.InverseGaussian, lambda m, c: st.invgauss(m / c, scale=c), (1.1, 2.3), X),
    "Moyal": (tfd.Moyal, st.moyal, (0.4, 1.3), REAL),
    "VonMises": (tfd.VonMises, lambda m, k: st.vonmises(k, m), (0.4, 1.3), REAL),
    "Uniform": (tfd.Uniform, lambda a, b: st.uniform(a, b - a), (-2.0, 3.0), REAL),
    "Triangular": (
        tfd.Triangular, lambda a, b, c: st.triang((c - a) / (b - a), a, b - a), (-2.0, 3.0, 0.5), REAL,
    ),
    "PERT": (tfd.PERT, _pert, (-2.0, 0.4, 3.0, 4.0), REAL),
    "ExponentiallyModifiedGaussian": (
        tfd.ExponentiallyModifiedGaussian, lambda m, s, r: st.exponnorm(1 / (s * r), m, s), (0.4, 1.3, 0.8), REAL,
    ),
    "JohnsonSU": (tfd.JohnsonSU, st.johnsonsu, (0.3, 1.4, 0.4, 1.3), REAL),
    "SinhArcsinh": (tfd.SinhArcsinh, _sinh_arcsinh, (0.4, 1.3, 0.2, 1.1), REAL),
    "LogitNormal": (tfd.LogitNormal, _logit_normal, (0.4, 1.3), UNIT),
    "NormalInverseGaussian": (
        tfd.NormalInverseGaussian,
        lambda m, s, t, k: st.norminvgauss(t * s, k * s, m, s), (0.4, 1.3, 1.4, 0.5), REAL,
    ),
    "LambertWNormal": (tfd.LambertWNormal, _lambert, (0.4, 1.3, 0.2), REAL),
    "ContinuousBernoulli": (lambda p: tfd.ContinuousBernoulli(probs=p), _continuous_bernoulli, (0.3,), UNIT),
    "RelaxedBernoulli": (lambda t, c: tfd.RelaxedBernoulli(t, logits=c), _relaxed_bernoulli, (0.8, 0.4), UNIT),
    "Bernoulli": (lambda p: tfd.Bernoulli(probs=p, dtype=tf.float64), st.bernoulli, (0.3,), COUNTS[:2]),
    "Binomial": (lambda p: tfd.Binomial(np.float64(7), probs=p), lambda p: st.binom(7, p), (0.3,), COUNTS),
    "NegativeBinomial": (
        lambda n, p: tfd.NegativeBinomial(n, probs=p), lambda n, p: st.nbinom(n, 1 - p), (3.5, 0.3), COUNTS,
    ),
    "ZeroInflatedNegativeBinomial": (
        lambda n, q, p: tfd.ZeroInflatedNegativeBinomial(total_count=n, inflated_loc_probs=q, probs=p), _zero_inflated,
        (3.5, 0.2, 0.3), COUNTS,
    ),
    "Geometric": (lambda p: tfd.Geometric(probs=p), lambda p: st.geom(p, -1), (0.3,), COUNTS),
    "Poisson": (tfd.Poisson, st.poisson, (2.3,), COUNTS),
    "BetaBinomial": (
        lambda a, b: tfd.BetaBinomial(np.float64(7), a, b), lambda a, b: st.betabinom(7, a, b), (2.3, 1.4), COUNTS,
    ),
    "Skellam": (tfd.Skellam, st.skellam, (2.3, 1.4), COUNTS),
    "Zipf": (lambda p: tfd.Zipf(p, dtype=tf.float64), st.zipf, (5.3,), COUNTS + 1),
    "OrderedLogistic": (
        lambda a, b, m: tfd.OrderedLogistic(tf.stack([a, b]), m, dtype=tf.float64), _ordered, (-0.5, 0.9, 0.2),
        np.array([0.0, 1.0, 2.0]),
    ),
}  # fmt: skip
NO_GRADIENT = {
    "Zipf",
    "VonMises",
    "Skellam",
    "NoncentralChi2",
}  # of these the density and samples are checked, and no gradient

# name: (the distribution, the logarithm of SciPy's density, where)
VECTORS = {
    "MultivariateNormalDiag": (
        lambda: tfd.MultivariateNormalDiag([0.2, -0.1], np.array([1.3, 0.7])),
        lambda x: st.multivariate_normal([0.2, -0.1], np.diag([1.69, 0.49])).logpdf(x), POINTS,
    ),
    "MultivariateNormalTriL": (
        lambda: tfd.MultivariateNormalTriL(np.array([0.2, -0.1]), TRIL),
        lambda x: st.multivariate_normal([0.2, -0.1], COVARIANCE).logpdf(x), POINTS,
    ),
    "MultivariateNormalFullCovariance": (
        lambda: tfd.MultivariateNormalFullCovariance(np.array([0.2, -0.1]), COVARIANCE),
        lambda x: st.multivariate_normal([0.2, -0.1], COVARIANCE).logpdf(x), POINTS,
    ),
    "MultivariateNormalLinearOperator": (
        lambda: tfd.MultivariateNormalLinearOperator(
            np.array([0.2, -0.1]), tf.linalg.LinearOperatorLowerTriangular(TRIL, is_non_singular=True)
        ),
        lambda x: st.multivariate_normal([0.2, -0.1], COVARIANCE).logpdf(x), POINTS,
    ),
    "MultivariateNormalDiagPlusLowRankCovariance": (
        lambda: tfd.MultivariateNormalDiagPlusLowRankCovariance(
            np.array([0.2, -0.1]), np.array([1.0, 0.5]), np.array([[0.6], [0.3]])
        ),
        lambda x: st.multivariate_normal([0.2, -0.1], np.diag([1, 0.5]) + np.outer([0.6, 0.3], [0.6, 0.3])).logpdf(x),
        POINTS,
    ),
    "MultivariateStudentTLinearOperator": (
        lambda: tfd.MultivariateStudentTLinearOperator(
            np.float64(5), np.array([0.2, -0.1]), tf.linalg.LinearOperatorLowerTriangular(TRIL, is_non_singular=True)
        ),
        lambda x: st.multivariate_t([0.2, -0.1], COVARIANCE, 5).logpdf(x), POINTS,
    ),
    "MatrixNormalLinearOperator": (
        lambda: tfd.MatrixNormalLinearOperator(
            np.zeros((2, 2)), tf.linalg.LinearOperatorLowerTriangular(TRIL),
            tf.linalg.LinearOperatorLowerTriangular(np.eye(2)),
        ),
        lambda x: st.matrix_normal(np.zeros((2, 2)), COVARIANCE, np.eye(2)).logpdf(x), POINTS,
    ),
    "WishartTriL": (
        lambda: tfd.WishartTriL(np.float64(4), TRIL),
        lambda x: st.wishart(4, COVARIANCE).logpdf(x), COVARIANCE * 1.5,
    ),
    "LKJ": (lambda: tfd.LKJ(2, np.float64(1.5)), lambda x: st.beta(1.5, 1.5, -1, 2).logpdf(x[0, 1]),
            _matrix([[1, 0.3], [0.3, 1]])),
    "Dirichlet": (
        lambda: tfd.Dirichlet(np.array([1.4, 2.3, 0.8])),
        lambda x: st.dirichlet([1.4, 2.3, 0.8]).logpdf(x.T), SIMPLEX,
    ),
    "Categorical": (
        lambda: tfd.Categorical(probs=np.array([0.2, 0.3, 0.5])), lambda x: np.log([0.2, 0.3, 0.5])[x],
        np.array([0, 2]),
    ),
    "OneHotCategorical": (
        lambda: tfd.OneHotCategorical(probs=np.array([0.2, 0.3, 0.5]), dtype=tf.float64),
        lambda x: x @ np.log([0.2, 0.3, 0.5]), np.eye(3)[[0, 2]],
    ),
    "Multinomial": (
        lambda: tfd.Multinomial(np.float64(5), probs=np.array([0.2, 0.3, 0.5])),
        lambda x: st.multinomial(5, [0.2, 0.3, 0.5]).logpmf(x), _matrix([[1, 1, 3], [0, 0, 5]]),
    ),
    "DirichletMultinomial": (
        lambda: tfd.DirichletMultinomial(np.float64(5), np.array([1.4, 2.3, 0.8])),
        lambda x: [st.dirichlet_multinomial([1.4, 2.3, 0.8], 5).logpmf(r.astype(int)) for r in x],
        _matrix([[1, 1, 3], [0, 0, 5]]),
    ),
    "VonMisesFisher": (
        lambda: tfd.VonMisesFisher(np.array([0.0, 0.6, 0.8]), np.float64(2.5)),
        lambda x: st.vonmises_fisher([0.0, 0.6, 0.8], 2.5).logpdf(x), SPHERE,
    ),
    "SphericalUniform": (
        lambda: tfd.SphericalUniform(3, dtype=tf.float64), lambda x: np.full(2, -np.log(4 * np.pi)), SPHERE,
    ),
    "PlackettLuce": (
        lambda: tfd.PlackettLuce(np.array([0.5, 1.0, 2.5]), dtype=tf.int32),
        lambda x: np.log([2.5 / 4 * 1.0 / 1.5, 0.5 / 4 * 2.5 / 3.5]), np.array([[2, 1, 0], [0, 2, 1]]),
    ),
    "MixtureSameFamily": (
        lambda: tfd.MixtureSameFamily(
            tfd.Categorical(probs=np.array([0.3, 0.7])), tfd.Normal(np.array([-1.0, 1.0]), np.array([0.5, 0.8]))
        ),
        lambda x: np.log(0.3 * st.norm(-1, 0.5).pdf(x) + 0.7 * st.norm(1, 0.8).pdf(x)), REAL,
    ),
    "Mixture": (
        lambda: tfd.Mixture(
            tfd.Categorical(probs=np.array([0.3, 0.7])),
            [tfd.Normal(np.float64(-1), np.float64(0.5)), tfd.Laplace(np.float64(1), np.float64(0.8))],
        ),
        lambda x: np.log(0.3 * st.norm(-1, 0.5).pdf(x) + 0.7 * st.laplace(1, 0.8).pdf(x)), REAL,
    ),
    "Independent": (
        lambda: tfd.Independent(tfd.Normal(np.zeros(2), np.array([1.0, 2.0])), 1),
        lambda x: st.norm(0, [1, 2]).logpdf(x).sum(-1), POINTS,
    ),
    "Sample": (
        lambda: tfd.Sample(tfd.Normal(np.float64(0), np.float64(2)), 2),
        lambda x: st.norm(0, 2).logpdf(x).sum(-1), POINTS,
    ),
    "TransformedDistribution": (
        lambda: tfd.TransformedDistribution(tfd.Normal(np.float64(0.4), np.float64(0.6)), tfb.Exp()),
        lambda x: st.lognorm(0.6, scale=np.exp(0.4)).logpdf(x), X,
    ),
    "QuantizedDistribution": (
        lambda: tfd.QuantizedDistribution(tfd.Normal(np.float64(0.4), np.float64(1.3))),
        lambda x: np.log(st.norm(0.4, 1.3).cdf(x) - st.norm(0.4, 1.3).cdf(x - 1)), COUNTS,
    ),
    "FiniteDiscrete": (
        lambda: tfd.FiniteDiscrete(np.array([1.0, 2.0, 4.0]), probs=np.array([0.2, 0.3, 0.5])),
        lambda x: np.log([0.3, 0.5]), np.array([2.0, 4.0]),
    ),
    "HiddenMarkovModel": (
        lambda: tfd.HiddenMarkovModel(
            tfd.Categorical(probs=np.array([0.8, 0.2])),
            tfd.Categorical(probs=_matrix([[0.7, 0.3], [0.2, 0.8]])),
            tfd.Normal(np.array([0.0, 3.0]), np.array([1.0, 2.0])), num_steps=2,
        ),
        lambda x: np.log(
            np.array([0.8, 0.2]) * st.norm([0, 3], [1, 2]).pdf(x[0]) @ _matrix([[0.7, 0.3], [0.2, 0.8]])
            @ st.norm([0, 3], [1, 2]).pdf(x[1])
        ),
        np.array([0.5, 2.0]),
    ),
    "GaussianProcess": (
        lambda: tfd.GaussianProcess(
            tfp.math.psd_kernels.ExponentiatedQuadratic(np.float64(1.5), np.float64(0.7)),
            _matrix([[0.0], [0.4], [1.0]]), observation_noise_variance=np.float64(0.1),
        ),
        lambda x: st.multivariate_normal(
            np.zeros(3),
            1.5**2 * np.exp(-((np.array([0, 0.4, 1])[:, None] - np.array([0, 0.4, 1])) ** 2) / 2 / 0.49)
            + (0.1 + 1e-6) * np.eye(3),
        ).logpdf(x),
        np.array([0.3, -0.2, 1.1]),
    ),
}  # fmt: skip


def _float64(values):
    return [tf.constant(v, tf.float64) for v in values]


def _logpdf(frozen, x):
    return frozen.logpmf(x) if hasattr(frozen, "logpmf") else frozen.logpdf(x)


def test_there_are_sixty():
    assert len(SCALARS) + len(VECTORS) >= 60


@pytest.mark.parametrize("name", SCALARS)
def test_density_samples_and_gradients(name):
    make, scipy, params, x = SCALARS[name]
    ours, theirs = _float64(params), scipy(*params)
    with tf.GradientTape() as tape:
        tape.watch(ours)
        density = make(*ours).log_prob(tf.constant(x, tf.float64))
        total = tf.reduce_sum(density)
    expected = _logpdf(theirs, x)
    np.testing.assert_allclose(density, expected, rtol=1e-7, atol=1e-9)
    if name not in NO_GRADIENT:
        for i, g in enumerate(tape.gradient(total, ours)):
            h = 1e-6 * max(1.0, abs(params[i]))
            low, high = (
                _logpdf(scipy(*params[:i], params[i] + d, *params[i + 1 :]), x).sum() for d in (-h, h)
            )
            np.testing.assert_allclose(g, (high - low) / (2 * h), rtol=2e-5, atol=1e-6)
    n = 4000
    sample = make(*ours).sample(n, seed=[7, 11]).numpy()
    mean, deviation = float(theirs.mean()), float(theirs.std())
    assert sample.shape == (n,) and np.all(np.isfinite(sample))
    if math.isfinite(mean) and math.isfinite(deviation):
        assert abs(sample.mean() - mean) < 5 * deviation / math.sqrt(n)
        assert abs(sample.std() - deviation) < 0.25 * deviation


@pytest.mark.parametrize("name", VECTORS)
def test_density_and_samples_of_vectors(name):
    make, logpdf, x = VECTORS[name]
    d = make()
    np.testing.assert_allclose(d.log_prob(x), logpdf(x), rtol=1e-7, atol=1e-9)
    compiled = tf.function(d.log_prob)(x)
    np.testing.assert_allclose(compiled, logpdf(x), rtol=1e-7, atol=1e-9)
    sample = d.sample(1500, seed=[3, 5])
    assert sample.shape == [1500, *d.batch_shape, *d.event_shape]
    try:
        mean, deviation = d.mean().numpy(), d.stddev().numpy()
    except NotImplementedError:
        return
    distance = np.abs(np.mean(np.asarray(sample, np.float64), 0) - mean)
    assert np.all(distance <= 5 * deviation / math.sqrt(1500) + 1e-12)


def test_gradients_through_samples():
    shape = tf.constant(2.5, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(shape)
        draws = tfd.Gamma(shape, np.float64(1.0)).sample(3000, seed=[1, 2])
        mean = tf.reduce_mean(draws)
    np.testing.assert_allclose(tape.gradient(mean, shape), 1.0, atol=0.08)  # of the mean, which is the shape
    loc, scale = _float64((0.3, 1.2))
    with tf.GradientTape() as tape:
        tape.watch([loc, scale])
        second = tf.reduce_mean(tfd.Normal(loc, scale).sample(20000, seed=[1, 2]) ** 2)
    g = tape.gradient(second, [loc, scale])
    np.testing.assert_allclose(g, [0.6, 2.4], atol=0.06)


def test_seeds_repeat():
    d = tfd.Normal(0.0, 1.0)
    np.testing.assert_array_equal(d.sample(4, seed=[1, 2]), d.sample(4, seed=[1, 2]))
    assert np.any(d.sample(4, seed=[1, 2]) != d.sample(4, seed=[1, 3]))
    tf.random.set_seed(3)
    first = d.sample(3, seed=5).numpy()
    tf.random.set_seed(3)
    np.testing.assert_array_equal(first, d.sample(3, seed=5))


def test_other_functions_of_distributions():
    d = tfd.Normal(np.float64(0.4), np.float64(1.3))
    np.testing.assert_allclose(d.cdf(REAL), st.norm(0.4, 1.3).cdf(REAL), rtol=1e-9)
    np.testing.assert_allclose(d.log_survival_function(REAL), st.norm(0.4, 1.3).logsf(REAL), rtol=1e-9)
    np.testing.assert_allclose(d.quantile(UNIT), st.norm(0.4, 1.3).ppf(UNIT), rtol=1e-9)
    np.testing.assert_allclose(
        tfd.Gamma(np.float64(2.3), np.float64(1.4)).entropy(), st.gamma(2.3, scale=1 / 1.4).entropy()
    )
    np.testing.assert_allclose(tfd.StudentT(np.float64(5), 0.0, 1.0).cdf(REAL), st.t(5).cdf(REAL), rtol=1e-7)
    np.testing.assert_allclose(
        tfd.Beta(np.float64(2.3), np.float64(1.4)).cdf(UNIT), st.beta(2.3, 1.4).cdf(UNIT), rtol=1e-8
    )
    p, q = tfd.Normal(0.0, 1.0), tfd.Normal(0.5, 2.0)
    np.testing.assert_allclose(tfd.kl_divergence(p, q), np.log(2) + (1 + 0.25) / 8 - 0.5, rtol=1e-6)
    a, b = tfd.Gamma(2.0, 1.0), tfd.Gamma(3.0, 1.5)
    draws = a.sample(20000, seed=[1, 2])
    np.testing.assert_allclose(
        tfd.kl_divergence(a, b), np.mean(a.log_prob(draws) - b.log_prob(draws)), atol=0.02
    )
    assert "batch_shape=[3]" in str(tfd.Normal([0.0, 1.0, 2.0], 1.0))
    assert tfd.Normal([0.0, 1.0, 2.0], 1.0)[1:].batch_shape == [2]
    assert d.copy(loc=np.float64(1.0)).mean() == 1.0
    with pytest.raises(tf.errors.InvalidArgumentError):
        tfd.Normal(0.0, -1.0, validate_args=True).log_prob(0.0)


# ---- bijectors ------------------------------------------------------------------------------------

BIJECTORS = {
    "Exp": (tfb.Exp, REAL), "Log": (tfb.Log, X), "Softplus": (tfb.Softplus, REAL), "Sigmoid": (tfb.Sigmoid, REAL),
    "Tanh": (tfb.Tanh, REAL), "Softsign": (tfb.Softsign, REAL), "Square": (tfb.Square, X), "Sinh": (tfb.Sinh, REAL),
    "Expm1": (tfb.Expm1, REAL), "NormalCDF": (tfb.NormalCDF, REAL), "Reciprocal": (tfb.Reciprocal, X),
    "Shift": (lambda: tfb.Shift(np.float64(2)), REAL), "Scale": (lambda: tfb.Scale(np.float64(2)), REAL),
    "Power": (lambda: tfb.Power(3.0), X), "SinhArcsinh": (lambda: tfb.SinhArcsinh(np.float64(0.2), np.float64(1.1)), REAL),
    "GumbelCDF": (lambda: tfb.GumbelCDF(np.float64(0.1), np.float64(1.2)), REAL),
    "WeibullCDF": (lambda: tfb.WeibullCDF(np.float64(1.3), np.float64(1.2)), X),
    "KumaraswamyCDF": (lambda: tfb.KumaraswamyCDF(np.float64(1.3), np.float64(1.2)), UNIT),
    "GompertzCDF": (lambda: tfb.GompertzCDF(np.float64(0.8), np.float64(1.2)), X),
    "FrechetCDF": (lambda: tfb.FrechetCDF(np.float64(0.0), np.float64(1.2), np.float64(1.5)), X),
    "MoyalCDF": (lambda: tfb.MoyalCDF(np.float64(0.1), np.float64(1.2)), REAL),
    "GeneralizedPareto": (lambda: tfb.GeneralizedPareto(np.float64(0), np.float64(1.2), np.float64(0.3)), REAL),
    "LambertWTail": (lambda: tfb.LambertWTail(np.float64(0), np.float64(1), np.float64(0.2)), REAL),
    "Chain": (lambda: tfb.Chain([tfb.Exp(), tfb.Shift(np.float64(1)), tfb.Scale(np.float64(0.5))]), REAL),
    "Invert": (lambda: tfb.Invert(tfb.Softplus()), X),
    "RationalQuadraticSpline": (
        lambda: tfb.RationalQuadraticSpline(
            np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 1.0]), np.array([0.5, 1.5]), -3.0
        ),
        REAL,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BIJECTORS)
def test_bijectors_of_numbers(name):
    make, x = BIJECTORS[name]
    bijector, x = make(), tf.constant(x, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = bijector.forward(x)
    slope = tape.gradient(y, x)
    np.testing.assert_allclose(bijector.inverse(tf.identity(y)), x, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(
        bijector.forward_log_det_jacobian(x, 0), np.log(np.abs(slope)), rtol=1e-7, atol=1e-8
    )
    np.testing.assert_allclose(
        bijector.inverse_log_det_jacobian(tf.identity(y), 0), -np.log(np.abs(slope)), rtol=1e-6, atol=1e-8
    )
    np.testing.assert_allclose(tf.function(bijector.forward)(x), y, rtol=1e-12)


VECTOR_BIJECTORS = {
    "ScaleMatvecTriL": (lambda: tfb.ScaleMatvecTriL(TRIL), np.array([0.3, -1.2])),
    "ScaleMatvecDiag": (lambda: tfb.ScaleMatvecDiag(np.array([2.0, 3.0])), np.array([0.3, -1.2])),
    "Permute": (lambda: tfb.Permute([2, 0, 1]), X),
    "Cumsum": (tfb.Cumsum, X),
    "Ascending": (tfb.Ascending, REAL),
    "IteratedSigmoidCentered": (tfb.IteratedSigmoidCentered, REAL),
    "FillTriangular": (tfb.FillTriangular, np.array([1.0, 2.0, 3.0])),
    "FillScaleTriL": (lambda: tfb.FillScaleTriL(diag_shift=np.float64(1e-5)), np.array([0.4, 2.0, 0.7])),
    "CorrelationCholesky": (tfb.CorrelationCholesky, np.array([0.4, 2.0, 0.7])),
    "Reshape": (lambda: tfb.Reshape([3, 1], [3]), X),
    "Blockwise": (lambda: tfb.Blockwise([tfb.Exp(), tfb.Softplus()], [1, 2]), REAL),
    "RealNVP": (
        lambda: tfb.RealNVP(1, shift_and_log_scale_fn=lambda x, n, **_: (tf.tile(x, [n]), tf.tile(tf.sin(x), [n]))), REAL,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VECTOR_BIJECTORS)
def test_bijectors_of_vectors(name):
    make, x = VECTOR_BIJECTORS[name]
    bijector, x = make(), tf.constant(x, tf.float64)
    y = bijector.forward(x)
    np.testing.assert_allclose(bijector.inverse(tf.identity(y)), x, rtol=1e-7, atol=1e-9)
    detour = bijector.inverse_log_det_jacobian(tf.identity(y))
    np.testing.assert_allclose(bijector.forward_log_det_jacobian(x), -detour, rtol=1e-7, atol=1e-8)
    if y.shape == x.shape:
        x = tf.identity(x)  # a new tensor, since bijectors cache results by their arguments
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = make().forward(x)
        slope = np.linalg.slogdet(tape.jacobian(z, x))[1]
        np.testing.assert_allclose(bijector.forward_log_det_jacobian(x), slope, rtol=1e-7, atol=1e-8)


def test_masked_autoregressive_flow_of_a_function():
    def shift_and_log_scale(x):
        return tf.stack(
            [tf.math.cumsum(x, exclusive=True) * 0.3, 0.1 * tf.math.cumsum(x, exclusive=True)], -1
        )

    flow = tfb.MaskedAutoregressiveFlow(shift_and_log_scale)
    x = tf.constant(REAL)
    y = flow.forward(x)
    np.testing.assert_allclose(flow.inverse(tf.identity(y)), x, rtol=1e-9)


# ---- tfp.math --------------------------------------------------------------------------------------


def test_math():
    value, grad = tfp.math.value_and_gradient(lambda x: tf.reduce_sum(x**3), tf.constant([1.0, 2.0]))
    assert value == 9.0 and grad.numpy().tolist() == [3.0, 12.0]
    np.testing.assert_allclose(
        tfp.math.fill_triangular([1.0, 2, 3, 4, 5, 6]), [[4, 0, 0], [6, 5, 0], [3, 2, 1]]
    )
    np.testing.assert_allclose(
        tfp.math.fill_triangular_inverse([[4.0, 0, 0], [6, 5, 0], [3, 2, 1]]), [1, 2, 3, 4, 5, 6]
    )
    np.testing.assert_allclose(tfp.math.log1mexp(X), np.log1p(-np.exp(-X)))
    np.testing.assert_allclose(tfp.math.log_add_exp(X, X + 1), np.logaddexp(X, X + 1))
    np.testing.assert_allclose(tfp.math.lambertw(X), np.real(sp.lambertw(X)))
    np.testing.assert_allclose(tfp.math.erfcx(X), sp.erfcx(X))
    np.testing.assert_allclose(tfp.math.lbeta(X, X + 1), sp.betaln(X, X + 1))
    np.testing.assert_allclose(tfp.math.betainc(X, X + 1, UNIT), sp.betainc(X, X + 1, UNIT), rtol=1e-8)
    np.testing.assert_allclose(tfp.math.igammainv(X, UNIT), sp.gammaincinv(X, UNIT), rtol=1e-8)
    np.testing.assert_allclose(tfp.math.bessel_kve(X, X), sp.kve(X, X), rtol=1e-8)
    np.testing.assert_allclose(tfp.math.bessel_ive(X, X), sp.ive(X, X), rtol=1e-8)
    np.testing.assert_allclose(tfp.math.owens_t(X, X), sp.owens_t(X, X), rtol=1e-8)
    np.testing.assert_allclose(tfp.math.softplus_inverse(X), np.log(np.expm1(X)))
    np.testing.assert_allclose(tfp.math.interp_regular_1d_grid(0.25, 0.0, 1.0, [0.0, 1.0, 4.0]), 0.5)
    np.testing.assert_allclose(tfp.math.reduce_logmeanexp(X), np.log(np.mean(np.exp(X))))
    np.testing.assert_allclose(tfp.math.diag_jacobian(X, fn=lambda x: x**2)[1][0], 2 * X)
    np.testing.assert_allclose(
        tfp.math.pivoted_cholesky(COVARIANCE, 2) @ tf.transpose(tfp.math.pivoted_cholesky(COVARIANCE, 2)),
        COVARIANCE,
    )
    total, _ = tfp.math.reduce_kahan_sum(tf.fill([1000], 0.1))
    assert abs(total.numpy() - 100.0) < 1e-4
    root = tfp.math.find_root_chandrupatla(lambda x: x**2 - 2.0, 0.0, 2.0)
    np.testing.assert_allclose(root.estimated_root, 2**0.5, rtol=1e-5)
    np.testing.assert_allclose(tfp.stats.percentile(X, 50.0), 0.9)
    np.testing.assert_allclose(tfp.stats.covariance(POINTS), np.cov(POINTS.T, bias=True))
    np.testing.assert_allclose(
        tfp.stats.auto_correlation(np.arange(6.0), max_lags=2), [1.0, 0.6, 3 / 35], rtol=1e-6
    )


def test_kernels():
    kernels = tfp.math.psd_kernels
    x = _matrix([[0.0], [0.4], [1.0]])
    r = np.abs(x - x.T)
    np.testing.assert_allclose(
        kernels.ExponentiatedQuadratic(2.0, np.float64(0.7)).matrix(x, x), 4 * np.exp(-(r**2) / 0.98)
    )
    np.testing.assert_allclose(
        kernels.MaternOneHalf(np.float64(2), np.float64(0.7)).matrix(x, x), 4 * np.exp(-r / 0.7), rtol=1e-6
    )
    s = np.sqrt(5) * r / 0.7
    np.testing.assert_allclose(
        kernels.MaternFiveHalves(np.float64(2), np.float64(0.7)).matrix(x, x),
        4 * (1 + s + s**2 / 3) * np.exp(-s),
        rtol=1e-6,
    )
    both = kernels.Linear(np.float64(0.5)) + kernels.RationalQuadratic(
        amplitude=np.float64(1), length_scale=np.float64(0.7), scale_mixture_rate=np.float64(2)
    )
    expected = 0.25 + x @ x.T + (1 + r**2 / (2 * 2 * 0.49)) ** -2
    np.testing.assert_allclose(both.matrix(x, x), expected, rtol=1e-7)
    length = tf.Variable(0.7, dtype=tf.float64)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(kernels.ExponentiatedQuadratic(np.float64(1), length).matrix(x, x))
    np.testing.assert_allclose(
        tape.gradient(y, length), np.sum(np.exp(-(r**2) / 0.98) * r**2 / 0.343), rtol=1e-9
    )


def test_differential_equations():
    times = [0.0, 0.5, 1.0, 2.0]
    for solver in (tfp.math.ode.DormandPrince(rtol=1e-8, atol=1e-10), tfp.math.ode.BDF(rtol=1e-7, atol=1e-9)):
        found = solver.solve(
            lambda t, y: -2.0 * y, np.float64(0.0), np.float64(3.0), solution_times=times[1:]
        )
        np.testing.assert_allclose(found.states, 3 * np.exp(-2 * np.array(times[1:])), rtol=1e-4)


# ---- tfp.optimizer ----------------------------------------------------------------------------------


def _rosenbrock(x):
    return tf.reduce_sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("method", ["lbfgs_minimize", "bfgs_minimize"])
def test_minima_with_gradients(method, compiled):
    def run():
        return getattr(tfp.optimizer, method)(
            lambda x: tfp.math.value_and_gradient(_rosenbrock, x),
            tf.constant([-1.2, 1.0, 0.5], tf.float64),
            tolerance=1e-10,
        )

    found = (tf.function(run) if compiled else run)()
    assert found.converged and found.num_iterations < 100
    np.testing.assert_allclose(found.position, np.ones(3), atol=1e-8)


def test_minima_of_a_batch_and_without_gradients():
    goals = tf.constant([[1.0, 2.0], [-3.0, 0.5]], tf.float64)
    found = tfp.optimizer.lbfgs_minimize(
        lambda x: tfp.math.value_and_gradient(lambda x: tf.reduce_sum((x - goals) ** 2 * [1.0, 10.0], -1), x),
        tf.zeros_like(goals),
    )
    np.testing.assert_allclose(found.position, goals, atol=1e-6)
    simplex = tfp.optimizer.nelder_mead_minimize(
        _rosenbrock, initial_vertex=tf.constant([-1.2, 1.0], tf.float64), func_tolerance=1e-12
    )
    np.testing.assert_allclose(simplex.position, [1, 1], atol=1e-4)
    evolved = tfp.optimizer.differential_evolution_minimize(
        lambda x, y: (x - 1.0) ** 2 + (y + 0.5) ** 2,
        initial_position=_float64((0.0, 0.0)),
        population_size=20,
        max_iterations=100,
        seed=43210,
    )
    np.testing.assert_allclose([p.numpy() for p in evolved.position], [1, -0.5], atol=1e-2)


# ---- tfp.mcmc ---------------------------------------------------------------------------------------

TARGET = tfd.MultivariateNormalTriL(np.array([1.0, -2.0], np.float32), TRIL.astype(np.float32))


def _check_chain(samples, tolerance=0.25):
    flat = samples.numpy().reshape(-1, 2)
    np.testing.assert_allclose(flat.mean(0), [1.0, -2.0], atol=tolerance)
    np.testing.assert_allclose(np.cov(flat.T), COVARIANCE, atol=3 * tolerance)


def test_hamiltonian_monte_carlo():
    kernel = tfp.mcmc.HamiltonianMonteCarlo(TARGET.log_prob, step_size=0.7, num_leapfrog_steps=3)
    kernel = tfp.mcmc.SimpleStepSizeAdaptation(kernel, num_adaptation_steps=100)

    @tf.function
    def run():
        return tfp.mcmc.sample_chain(
            300, tf.zeros([4, 2]), kernel=kernel, num_burnin_steps=100, seed=[1, 2],
            trace_fn=lambda _, results: results.inner_results.is_accepted,
        )  # fmt: skip

    samples, accepted = run()
    assert samples.shape == [300, 4, 2] and 0.6 < tf.reduce_mean(tf.cast(accepted, tf.float32)) <= 1.0
    _check_chain(samples)
    assert np.all(tfp.mcmc.potential_scale_reduction(samples) < 1.1)
    assert np.all(tfp.mcmc.effective_sample_size(samples, cross_chain_dims=1) > 100)


def test_no_u_turn_sampler():
    kernel = tfp.mcmc.DualAveragingStepSizeAdaptation(
        tfp.mcmc.NoUTurnSampler(TARGET.log_prob, step_size=0.5, max_tree_depth=5), num_adaptation_steps=60
    )

    @tf.function
    def run():
        return tfp.mcmc.sample_chain(
            250, tf.zeros([4, 2]), kernel=kernel, num_burnin_steps=80, trace_fn=None, seed=[1, 2]
        )

    _check_chain(run())


def test_other_kernels():
    def chain(kernel, start, n):
        run = tf.function(
            lambda: tfp.mcmc.sample_chain(
                n, start, kernel=kernel, num_burnin_steps=100, trace_fn=None, seed=[1, 2]
            )
        )
        return run()

    _check_chain(chain(tfp.mcmc.RandomWalkMetropolis(TARGET.log_prob), tf.zeros([8, 2]), 600), 0.3)
    hamiltonian = tfp.mcmc.HamiltonianMonteCarlo(
        tfd.Gamma(3.0, 2.0).log_prob, step_size=0.5, num_leapfrog_steps=3
    )
    draws = chain(tfp.mcmc.TransformedTransitionKernel(hamiltonian, tfb.Exp()), tf.ones([8]), 300)
    assert np.all(draws > 0)
    np.testing.assert_allclose([np.mean(draws), np.var(draws)], [1.5, 0.75], atol=0.15)


def test_langevin_kernels():
    """Numbers of TensorFlow 2.21 for these seeds."""

    @tf.function
    def run():
        found = []
        for kernel in (
            tfp.mcmc.MetropolisAdjustedLangevinAlgorithm(TALL, step_size=0.5),
            tfp.mcmc.MetropolisAdjustedLangevinAlgorithm(
                TALL, step_size=0.3, volatility_fn=lambda *xs: [1 / (0.5 + 0.1 * tf.abs(x)) for x in xs]
            ),
        ):
            draws = tfp.mcmc.sample_chain(
                200, [tf.constant([1.0, 0.5])], kernel=kernel, num_burnin_steps=50, trace_fn=None, seed=(1, 2)
            )[0]
            found.append(tf.stack([tf.reduce_mean(draws, 0), tf.math.reduce_std(draws, 0)]))
        return found

    constant, changing = run()
    np.testing.assert_allclose(constant, [[0.1937, -0.1505], [1.0158, 0.4404]], atol=2e-4)
    np.testing.assert_allclose(changing, [[0.6157, -0.2237], [1.1152, 0.4248]], atol=2e-4)


def TALL(x):
    return tfd.MultivariateNormalDiag([0.3, -0.2], [1.0, 0.5]).log_prob(x)


@pytest.mark.parametrize("compiled", [False, True])
def test_diagonal_of_a_jacobian(compiled):
    def run():
        x, y = tf.constant([1.0, 2.0, 3.0]), tf.constant([0.5, 1.0, 1.5])
        return tfp.math.diag_jacobian(
            xs=[x, y], fn=lambda x, y: [x**2, y * tf.reduce_sum(x)], sample_shape=[3]
        )[1]

    np.testing.assert_allclose((tf.function(run) if compiled else run)(), [[2.0, 4, 6], [6, 6, 6]])


# ---- models -----------------------------------------------------------------------------------------


def test_joint_distributions():
    named = tfd.JointDistributionNamed(
        {"rate": tfd.Gamma(2.0, 1.0), "x": lambda rate: tfd.Sample(tfd.Exponential(rate), 3)}
    )
    value = named.sample(seed=[1, 2])
    assert set(value) == {"rate", "x"} and value["x"].shape == [3]
    expected = st.gamma(2).logpdf(1.5) + st.expon(scale=1 / 1.5).logpdf(X).sum()
    np.testing.assert_allclose(named.log_prob(rate=1.5, x=X.astype(np.float32)), expected, rtol=1e-6)
    sequential = tfd.JointDistributionSequential([tfd.Normal(0.0, 1.0), lambda m: tfd.Normal(m, 2.0)])
    np.testing.assert_allclose(
        sequential.log_prob([0.5, 1.0]), st.norm.logpdf(0.5) + st.norm(0.5, 2).logpdf(1.0), rtol=1e-6
    )

    @tfd.JointDistributionCoroutineAutoBatched
    def model():
        mean = yield tfd.Normal(0.0, 1.0, name="mean")
        yield tfd.Normal(mean * tf.ones(3), 1.0, name="x")

    draws = model.sample(5, seed=[1, 2])
    assert draws.mean.shape == [5] and draws.x.shape == [5, 3] and model.log_prob(draws).shape == [5]
    pinned = model.experimental_pin(x=X.astype(np.float32))
    np.testing.assert_allclose(
        pinned.unnormalized_log_prob(mean=0.5), st.norm.logpdf(0.5) + st.norm(0.5).logpdf(X).sum(), rtol=1e-6
    )


def test_variational_inference():
    posterior = tfd.Normal(1.5, 0.4)
    loc, scale = tf.Variable(0.0), tfp.util.TransformedVariable(1.0, tfb.Softplus())
    surrogate = tfd.Normal(loc, scale)
    assert len(surrogate.trainable_variables) == 2 and scale + 1.0 == 2.0
    losses = []
    for step in range(150):
        with tf.GradientTape() as tape:
            loss = tfp.vi.monte_carlo_variational_loss(
                posterior.log_prob, surrogate, sample_size=10, seed=[3, step]
            )
        for v, g in zip(
            surrogate.trainable_variables, tape.gradient(loss, surrogate.trainable_variables), strict=True
        ):
            v.assign_sub(0.05 * g)
        losses.append(float(loss))
    assert np.mean(losses[-10:]) < 0.05 < losses[0]
    np.testing.assert_allclose([float(loc), float(tf.convert_to_tensor(scale))], [1.5, 0.4], atol=0.1)


def test_distributions_in_and_out_of_functions():
    traces = []

    @tf.function
    def shifted(d):
        traces.append(d)
        return tfd.Normal(d.loc + 1.0, d.scale), d.log_prob(0.5)

    first, density = shifted(tfd.Normal(1.0, 2.0))
    second, _ = shifted(tfd.Normal(3.0, 2.0))
    assert isinstance(first, tfd.Normal) and float(first.mean()) == 2.0 and float(second.mean()) == 4.0
    assert len(traces) == 1
    np.testing.assert_allclose(density, st.norm(1, 2).logpdf(0.5), rtol=1e-6)
    mvn = tfd.MultivariateNormalTriL(np.zeros(2), TRIL)
    again = tf.nest.pack_sequence_as(
        mvn, tf.nest.flatten(mvn, expand_composites=True), expand_composites=True
    )
    np.testing.assert_allclose(again.log_prob(POINTS), mvn.log_prob(POINTS))


def test_regression_of_a_generalized_linear_model():
    rng = np.random.default_rng(0)
    design = rng.normal(size=(200, 2))
    response = (rng.uniform(size=200) < sp.expit(design @ [1.0, -2.0])).astype(np.float64)
    found, _, converged, _ = tfp.glm.fit(design, response, tfp.glm.Bernoulli())
    assert converged
    weights = found.numpy()
    np.testing.assert_allclose(design.T @ (response - sp.expit(design @ weights)), 0.0, atol=1e-3)
