"""zfit: densities and their sums, fitted to fixed data by Minuit, to TensorFlow's numbers."""

import numpy as np
import pytest
import tensorflow as tf
import zfit

RNG = np.random.RandomState(0)
DATA = np.concatenate([RNG.normal(1.0, 0.5, 600), RNG.uniform(-3, 5, 400)])
COUNT = iter(range(10**6))


def parameter(value, low, high):
    """Parameters have names of their own."""
    return zfit.Parameter(f"p{next(COUNT)}", value, low, high)


def space():
    return zfit.Space("x", limits=(-3, 5))


def gauss():
    return zfit.pdf.Gauss(mu=parameter(0.5, -2, 3), sigma=parameter(1.0, 0.1, 4), obs=space())


def fitted(model, data=DATA, loss=zfit.loss.UnbinnedNLL):
    result = zfit.minimize.Minuit().minimize(loss(model, zfit.Data.from_numpy(space(), data)))
    assert result.valid
    return result


def test_one_density():
    model = gauss()
    result = fitted(model, DATA[:600])
    values = [float(result.params[p]["value"]) for p in (model.params["mu"], model.params["sigma"])]
    np.testing.assert_allclose(values, [DATA[:600].mean(), DATA[:600].std()], rtol=2e-3)
    np.testing.assert_allclose(result.fmin, 437.572775, rtol=1e-6)


def test_a_sum_of_densities():
    """The fraction of the second one is a parameter without a value of its own."""
    peak, flat = gauss(), zfit.pdf.Uniform(-3, 5, obs=space())
    fraction = parameter(0.4, 0, 1)
    model = zfit.pdf.SumPDF([peak, flat], fracs=fraction)
    result = fitted(model)
    values = [float(result.params[p]["value"]) for p in (peak.params["mu"], peak.params["sigma"], fraction)]
    np.testing.assert_allclose(values, [0.964451, 0.486339, 0.586015], rtol=2e-3)
    np.testing.assert_allclose(float(tf.reduce_sum(model.pdf(DATA[:50]))), 17.846101, rtol=1e-3)


def test_errors_of_a_fit():
    model = gauss()
    result = fitted(model, DATA[:600])
    errors = result.hesse()
    mu = model.params["mu"]
    np.testing.assert_allclose(errors[mu]["error"], DATA[:600].std() / np.sqrt(600), rtol=1e-2)


def test_an_extended_sum():
    counts = parameter(500, 0, 2000), parameter(500, 0, 2000)
    peak, falling = gauss(), zfit.pdf.Exponential(parameter(-0.1, -2, 1), obs=space())
    model = zfit.pdf.SumPDF([peak.create_extended(counts[0]), falling.create_extended(counts[1])])
    result = fitted(model, loss=zfit.loss.ExtendedUnbinnedNLL)
    found = [float(result.params[c]["value"]) for c in counts]
    np.testing.assert_allclose(sum(found), 1000, rtol=2e-3)
    np.testing.assert_allclose(found, [586.0765, 413.9518], rtol=2e-3)


def test_gradients_of_a_loss():
    model = gauss()
    loss = zfit.loss.UnbinnedNLL(model, zfit.Data.from_numpy(space(), DATA))
    value, gradient = loss.value_gradient(list(model.params.values()))
    np.testing.assert_allclose(float(value), 2216.183793, rtol=1e-6)
    np.testing.assert_allclose(gradient, [-490.859148, -1598.089684], rtol=1e-6)


def test_a_density_of_ones_own_and_a_composed_parameter():
    class Bump(zfit.pdf.ZPDF):
        _PARAMS = ("height",)

        def _unnormalized_pdf(self, x):
            x = zfit.z.unstack_x(x)
            return 1.0 + self.params["height"] * tf.exp(-((x - 1.0) ** 2) / 0.5)

    half = parameter(2.0, 0.0, 50.0)
    height = zfit.ComposedParameter(f"p{next(COUNT)}", lambda a: 2.0 * a, params=[half])
    model = Bump(obs=space(), height=height)
    np.testing.assert_allclose(float(model.integrate(space())[0]), 1, rtol=1e-3)
    result = fitted(model)
    np.testing.assert_allclose(float(result.params[half]["value"]), 4.593997, rtol=2e-3)


def test_samples_and_limits():
    model = gauss()
    sample = zfit.run(model.sample(2000).value())[:, 0]
    assert (
        sample.shape == (2000,)
        and abs(sample.mean() - 0.5) < 0.15
        and sample.min() >= -3
        and sample.max() <= 5
    )
    inside = float(model.integrate(zfit.Space("x", limits=(-0.5, 1.5)))[0])
    np.testing.assert_allclose(inside, 0.6829, rtol=1e-3)
    with pytest.raises(ValueError):
        zfit.Parameter("bounded", 3.0, 0.0, 1.0)


# ---- a sum in other ways: its gradient, minimisers that use it, a constraint, bins ----

WIDE = zfit.Space("x", limits=(-5, 10))
_RNG = np.random.default_rng(1)
EVENTS = np.concatenate([_RNG.normal(1.2, 0.8, 300), _RNG.uniform(-5, 10, 700)])
FITTED = [
    1.0546576,
    0.7127408,
    0.0098784,
    0.3078397,
]  # mu, sigma, lambda, fraction: TensorFlow's, as all below


def sum_of_two():
    params = parameter(1.0, -4, 6), parameter(1.0, 0.1, 10), parameter(-0.06, -1, 1), parameter(0.3, 0, 1)
    peak = zfit.pdf.Gauss(mu=params[0], sigma=params[1], obs=WIDE)
    return zfit.pdf.SumPDF([peak, zfit.pdf.Exponential(params[2], obs=WIDE)], fracs=params[3]), list(params)


def loss_of(model, **kwargs):
    return zfit.loss.UnbinnedNLL(model, zfit.Data.from_numpy(WIDE, EVENTS), **kwargs)


def values(params):
    return [float(p.value()) for p in params]


def test_gradients_of_a_sum():
    model, params = sum_of_two()
    value, gradient = loss_of(model).value_gradient(params)
    np.testing.assert_allclose(float(value), 2580.7481938673345, rtol=1e-9)
    np.testing.assert_allclose(gradient, [-15.19890097, 56.20567645, -900.3989838, -60.95821966], rtol=1e-6)


@pytest.mark.parametrize(
    ("minimizer", "rtol"),
    [
        (zfit.minimize.Minuit(gradient="zfit"), 1e-4),
        (zfit.minimize.ScipySLSQP(), 1e-2),
        (zfit.minimize.ScipyTrustConstr(), 1e-2),
    ],
)
def test_minimisers_with_gradients(minimizer, rtol):
    model, params = sum_of_two()
    result = minimizer.minimize(loss_of(model))
    assert result.valid
    np.testing.assert_allclose(result.fmin, 2537.913468, rtol=1e-6)
    np.testing.assert_allclose(values(params), FITTED, rtol=rtol)


def test_a_constraint():
    model, params = sum_of_two()
    pull = zfit.constraint.GaussianConstraint(params[0], 1.2, sigma=0.01)
    assert zfit.minimize.Minuit().minimize(loss_of(model, constraints=[pull])).valid
    np.testing.assert_allclose(values(params), [1.1959879, 0.7134465, 0.0078432, 0.3048090], rtol=1e-4)


def test_a_binned_fit():
    bins = zfit.Space("x", binning=zfit.binned.RegularBinning(30, -5, 10, name="x"))
    model, params = sum_of_two()
    data = zfit.Data.from_numpy(WIDE, EVENTS).to_binned(bins)
    assert zfit.minimize.Minuit().minimize(zfit.loss.BinnedNLL(model.to_binned(bins), data)).valid
    np.testing.assert_allclose(values(params), [1.0427301, 0.7264006, 0.0102216, 0.3090343], rtol=1e-4)
