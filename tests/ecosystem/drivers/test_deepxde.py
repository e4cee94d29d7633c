"""DeepXDE as its examples use it: equations forward and inverse, fractional and integro-differential ones, operators.

Networks start from weights that NumPy draws, on fixed points; the numbers are those of TensorFlow 2.21.
"""

import os

os.environ.setdefault("DDE_BACKEND", "tensorflow")

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
dde = pytest.importorskip("deepxde")


@pytest.fixture(autouse=True)
def settings():
    dde.config.set_random_seed(7)
    dde.optimizers.set_LBFGS_options(maxiter=15)
    yield
    use("float32")


def use(dtype):
    """The element type of everything; Keras remembers the one of layers made before."""
    dde.config.set_default_float(dtype)
    tf.keras.config.set_dtype_policy(dtype)


def start(net, *inputs):
    """Builds a network and draws its weights."""
    net(inputs[0] if len(inputs) == 1 else tuple(inputs))
    draw = np.random.RandomState(3)
    for weight in net.trainable_variables:
        shape = tuple(weight.shape)
        weight.assign(
            draw.normal(size=shape, scale=0.5 / max(shape[0], 1) ** 0.5 if len(shape) > 1 else 0.02)
        )
    return net


def fnn(sizes, activation="tanh", **kwargs):
    return dde.nn.FNN(sizes, activation, "Glorot uniform", **kwargs)


def constant(value):
    return lambda x: value


def with_fixed_bias(make, *args, **kwargs):
    """A DeepONet whose bias is not trained: it is a `tf.Variable`, which Keras 3 on TensorFlow does not find."""

    def fixed(make_variable, **options):
        return make_variable(**{**options, "trainable": False})

    with tf.variable_creator_scope(fixed):
        return make(*args, **kwargs)


def ones(*shape):
    return np.ones(shape, dde.config.real(np))


def trained(data, net, steps=20, optimizer="adam", before=None, **kwargs):
    """The losses at the end of a training."""
    model = dde.Model(data, net)
    model.compile(optimizer, **({} if optimizer == "L-BFGS" else {"lr": 1e-2}), **kwargs)
    if before:
        before(model)
    history, state = model.train(
        iterations=None if optimizer == "L-BFGS" else steps, display_every=1000, verbose=0
    )
    return model, np.array(history.loss_train[-1])


def poisson(dtype=np.float32):
    def pde(x, y):
        return -dde.grad.hessian(y, x) - np.pi**2 * tf.sin(np.pi * x)

    geom = dde.geometry.Interval(-1, 1)
    bc = dde.icbc.DirichletBC(geom, lambda x: np.sin(np.pi * x), lambda x, on: on)
    return dde.data.PDE(
        geom, pde, bc, 16, 2, solution=lambda x: np.sin(np.pi * x), num_test=20, train_distribution="uniform"
    )


def burgers():
    def pde(x, y):
        dy_x = dde.grad.jacobian(y, x, i=0, j=0)
        dy_t = dde.grad.jacobian(y, x, i=0, j=1)
        dy_xx = dde.grad.hessian(y, x, i=0, j=0)
        return dy_t + y * dy_x - 0.01 / np.pi * dy_xx

    space = dde.geometry.GeometryXTime(dde.geometry.Interval(-1, 1), dde.geometry.TimeDomain(0, 0.99))
    bc = dde.icbc.DirichletBC(space, lambda x: 0, lambda _, on: on)
    ic = dde.icbc.IC(space, lambda x: -np.sin(np.pi * x[:, 0:1]), lambda _, on: on)
    return dde.data.TimePDE(
        space, pde, [bc, ic], num_domain=40, num_boundary=8, num_initial=10, train_distribution="uniform"
    )


def agree(name, found):
    """TensorFlow's numbers are found."""
    np.testing.assert_allclose(np.asarray(found, float).ravel(), EXPECTED[name], rtol=1e-3, atol=2e-5)


def test_poisson_adam():
    model, losses = trained(poisson(), start(fnn([1, 16, 16, 1]), ones(2, 1)), metrics=["l2 relative error"])
    agree("poisson_adam", losses)
    agree("poisson_adam_predict", model.predict(np.array([[-0.5], [0.25]]))[:, 0])


def test_poisson_residual_by_operator():
    data = poisson()
    model, _ = trained(data, start(fnn([1, 16, 16, 1]), ones(2, 1)), steps=5)
    residual = model.predict(np.array([[-0.5], [0.25]], np.float32), operator=data.pde)
    agree("residual", residual[:, 0])


def test_poisson_lbfgs_in_float64():
    use("float64")
    _, losses = trained(poisson(), start(fnn([1, 16, 16, 1]), ones(2, 1)), optimizer="L-BFGS")
    agree("poisson_lbfgs", losses)


def test_burgers_adam_then_lbfgs():
    model, losses = trained(burgers(), start(fnn([2, 16, 16, 1]), ones(2, 2)))
    agree("burgers_adam", losses)
    model.compile("L-BFGS")
    history, _ = model.train(verbose=0)
    agree("burgers_lbfgs", history.loss_train[-1])


def test_neumann_robin_periodic_and_operator_conditions():
    def pde(x, y):
        return dde.grad.hessian(y, x) - 2

    geom = dde.geometry.Interval(-1, 1)
    right = lambda x, on: on and np.isclose(x[0], 1)  # noqa: E731
    left = lambda x, on: on and np.isclose(x[0], -1)  # noqa: E731
    conditions = [
        dde.icbc.NeumannBC(geom, lambda x: 2 * (x + 1), right),
        dde.icbc.RobinBC(geom, lambda x, y: y, right),
        dde.icbc.PeriodicBC(geom, 0, left, derivative_order=1),
        dde.icbc.OperatorBC(geom, lambda x, y, _: dde.grad.jacobian(y, x) - 1, left),
        dde.icbc.PointSetBC(np.array([[0.0], [0.5]]), np.array([[0.1], [0.3]])),
    ]
    data = dde.data.PDE(geom, pde, conditions, 16, 2, train_distribution="uniform")
    _, losses = trained(data, start(fnn([1, 12, 1]), ones(2, 1)), loss_weights=[1, 2, 1, 1, 0.5, 10])
    agree("conditions", losses)


def test_hard_constraints_and_features_on_a_disk():
    def pde(x, y):
        return dde.grad.hessian(y, x, i=0, j=0) + dde.grad.hessian(y, x, i=1, j=1) + 1

    geom = dde.geometry.Disk([0, 0], 1)
    net = fnn([2, 12, 12, 1], "swish")
    net.apply_feature_transform(lambda x: tf.concat([x, tf.reduce_sum(x**2, axis=1, keepdims=True)], axis=1))
    net.apply_output_transform(lambda x, y: (1 - tf.reduce_sum(x**2, axis=1, keepdims=True)) * y)
    data = dde.data.PDE(geom, pde, [], 40, 0, train_distribution="Hammersley")
    _, losses = trained(data, start(net, ones(2, 2)))
    agree("disk", losses)


def test_ode_system():
    def system(x, y):
        return [dde.grad.jacobian(y, x, i=0) - y[:, 1:2], dde.grad.jacobian(y, x, i=1) + y[:, 0:1]]

    geom = dde.geometry.TimeDomain(0, 3)
    conditions = [
        dde.icbc.IC(geom, lambda x: 0, lambda _, on: on, component=0),
        dde.icbc.IC(geom, lambda x: 1, lambda _, on: on, component=1),
    ]
    data = dde.data.PDE(geom, system, conditions, 20, 2, train_distribution="uniform", num_test=10)
    net = start(dde.nn.PFNN([1, [8, 8], [8, 8], 2], "tanh", "Glorot uniform"), ones(2, 1))
    _, losses = trained(data, net, decay=("inverse time", 10, 0.3))
    agree("ode_system", losses)


def test_inverse_lorenz():
    c1, c2, c3 = (dde.Variable(v) for v in (8.0, 20.0, -3.0))

    def system(x, y):
        y1, y2, y3 = y[:, 0:1], y[:, 1:2], y[:, 2:]
        dy = [dde.grad.jacobian(y, x, i=i) for i in range(3)]
        return [dy[0] - c1 * (y2 - y1), dy[1] - y1 * (c2 - y3) + y2, dy[2] - y1 * y2 - c3 * y3]

    geom = dde.geometry.TimeDomain(0, 3)
    first = (-8, 7, 27)
    ics = [dde.icbc.IC(geom, constant(v), lambda _, on: on, component=i) for i, v in enumerate(first)]
    seen_t = np.linspace(0, 3, 7)[:, None]
    seen = [dde.icbc.PointSetBC(seen_t, np.cos(seen_t * (i + 1)) * 5, component=i) for i in range(3)]
    data = dde.data.PDE(geom, system, ics + seen, 20, 2, anchors=seen_t, train_distribution="uniform")
    net = start(fnn([1, 10, 10, 3]), ones(2, 1))
    _, losses = trained(data, net, external_trainable_variables=[c1, c2, c3])
    agree("lorenz", losses)
    agree("lorenz_variables", [float(c) for c in (c1, c2, c3)])


def test_inverse_diffusion_with_callbacks(tmp_path):
    c = dde.Variable(2.0)

    def pde(x, y):
        dy_t = dde.grad.jacobian(y, x, i=0, j=1)
        dy_xx = dde.grad.hessian(y, x, i=0, j=0)
        return dy_t - c * dy_xx + tf.exp(-x[:, 1:]) * (tf.sin(np.pi * x[:, 0:1]) * (1 - np.pi**2))

    space = dde.geometry.GeometryXTime(dde.geometry.Interval(-1, 1), dde.geometry.TimeDomain(0, 1))
    exact = lambda x: np.sin(np.pi * x[:, 0:1]) * np.exp(-x[:, 1:])  # noqa: E731
    points = np.vstack((np.linspace(-1, 1, num=10), np.full(10, 1))).T
    conditions = [
        dde.icbc.DirichletBC(space, exact, lambda _, on: on),
        dde.icbc.IC(space, exact, lambda _, on: on),
        dde.icbc.PointSetBC(points, exact(points)),
    ]
    data = dde.data.TimePDE(
        space, pde, conditions, 30, 10, 8, anchors=points, solution=exact, train_distribution="uniform"
    )
    model = dde.Model(data, start(fnn([2, 12, 12, 1]), ones(2, 2)))
    model.compile("adam", lr=0.01, metrics=["l2 relative error"], external_trainable_variables=c)
    path = str(tmp_path / "variables.dat")
    kept = dde.callbacks.VariableValue(c, period=10, filename=path)
    best = dde.callbacks.ModelCheckpoint(str(tmp_path / "model"), save_better_only=True, period=10)
    early = dde.callbacks.EarlyStopping(min_delta=1e9, patience=12)
    history, _ = model.train(iterations=20, display_every=5, callbacks=[kept, best, early], verbose=0)
    assert history.steps[-1] < 20, "stopped early"
    agree("diffusion", history.loss_train[-1])
    agree("diffusion_variable", kept.get_value())
    with open(path) as file:
        assert [line.split()[0] for line in file] == ["0", "10", "13"]


def test_fractional_poisson():
    alpha = 1.5

    def fpde(x, y, matrix):
        lhs = (
            -tf.matmul(matrix, y)
            if not isinstance(matrix, (list, tuple))
            else -tf.sparse.sparse_dense_matmul(tf.SparseTensor(*matrix), y)
        )
        rhs = np.cos(np.pi * alpha / 2) * 2 * tf.ones_like(x)
        return lhs - rhs[: tf.size(lhs)]

    geom = dde.geometry.Interval(0, 1)
    bc = dde.icbc.DirichletBC(geom, lambda x: x**3 * (1 - x) ** 3, lambda _, on: on)
    data = dde.data.FPDE(
        geom, fpde, alpha, bc, [21], meshtype="static", solution=lambda x: x**3 * (1 - x) ** 3
    )
    net = fnn([1, 12, 12, 1])
    net.apply_output_transform(lambda x, y: x * (1 - x) * y)
    _, losses = trained(data, start(net, ones(2, 1)))
    agree("fractional", losses)


def test_fractional_on_a_dynamic_mesh():
    def fpde(x, y, matrix):
        lhs = -tf.sparse.sparse_dense_matmul(tf.SparseTensor(*matrix), y)
        return lhs - x[: tf.size(lhs)]

    geom = dde.geometry.Interval(0, 1)
    bc = dde.icbc.DirichletBC(geom, lambda x: 0, lambda _, on: on)
    data = dde.data.FPDE(
        geom,
        fpde,
        1.5,
        bc,
        [10],
        meshtype="dynamic",
        num_domain=8,
        num_boundary=2,
        train_distribution="uniform",
    )
    _, losses = trained(data, start(fnn([1, 12, 12, 1]), ones(2, 1)))
    agree("fractional_dynamic", losses)


def test_integro_differential():
    def ide(x, y, matrix):
        rhs = tf.matmul(tf.cast(matrix, tf.float32), y)
        return (dde.grad.jacobian(y, x) + y)[: tf.size(rhs)] - rhs

    geom = dde.geometry.TimeDomain(0, 5)
    ic = dde.icbc.IC(geom, lambda x: np.exp(-x) * np.cosh(x), lambda _, on: on)
    data = dde.data.IDE(
        geom,
        ide,
        ic,
        6,
        kernel=lambda x, s: np.exp(s - x),
        num_domain=8,
        num_boundary=2,
        train_distribution="uniform",
    )
    _, losses = trained(data, start(fnn([1, 12, 1]), ones(2, 1)))
    agree("ide", losses)


def functions():
    """Sines at the sensor points, and their integrals."""
    frequencies = np.linspace(0.5, 4, 12)[:, None]
    sensors, points = np.linspace(0, 1, 10), np.linspace(0, 1, 15)
    return (
        np.sin(frequencies * sensors).astype(np.float32),
        points[:, None].astype(np.float32),
        ((1 - np.cos(frequencies * points)) / frequencies).astype(np.float32),
    )


def test_deeponet_cartesian():
    branch, trunk, values = functions()
    data = dde.data.TripleCartesianProd((branch[:8], trunk), values[:8], (branch[8:], trunk), values[8:])
    net = with_fixed_bias(dde.nn.DeepONetCartesianProd, [10, 12, 12], [1, 12, 12], "relu", "Glorot normal")
    _, losses = trained(data, start(net, branch, trunk), steps=50, metrics=["mean l2 relative error"])
    agree("deeponet_cartesian", losses)


def test_deeponet_aligned_with_lbfgs():
    branch, trunk, values = functions()
    pairs = np.repeat(branch, len(trunk), 0), np.tile(trunk, (len(branch), 1))
    data = dde.data.Triple(pairs, values.reshape(-1, 1), pairs, values.reshape(-1, 1))
    net = with_fixed_bias(dde.nn.DeepONet, [10, 8, 8], [1, 8, 8], "tanh", "Glorot normal")
    _, losses = trained(data, start(net, *(p[:2] for p in pairs)), optimizer="L-BFGS")
    agree("deeponet_lbfgs", losses)


@pytest.mark.parametrize(
    "strategy, sizes", [("independent", [8, 2 * 8]), ("split_both", [8, 16]), ("split_branch", [8, 16])]
)
def test_deeponet_with_two_outputs(strategy, sizes):
    branch, trunk, values = functions()
    data = dde.data.TripleCartesianProd(
        (branch, trunk), np.stack([values, 2 * values], -1), (branch, trunk), np.stack([values, values], -1)
    )
    sizes = [8, 8] if strategy == "independent" else sizes
    last = 8 if strategy == "split_branch" else sizes[-1]
    net = with_fixed_bias(
        dde.nn.DeepONetCartesianProd,
        [10, *sizes],
        [1, 8, last],
        "tanh",
        "Glorot normal",
        num_outputs=2,
        multi_output_strategy=strategy,
    )
    _, losses = trained(data, start(net, branch, trunk))
    agree("deeponet_" + strategy, losses)


def test_pod_deeponet():
    branch, trunk, values = functions()
    basis = np.linalg.svd(values)[2][:5].T.astype(np.float32)
    data = dde.data.TripleCartesianProd((branch, trunk), values, (branch, trunk), values)
    net = with_fixed_bias(dde.nn.PODDeepONet, basis, [10, 8, 5], "tanh", "Glorot normal")
    _, losses = trained(data, start(net, branch, trunk))
    agree("pod", losses)


def test_physics_informed_operator():
    def pde(x, y, v):
        return dde.grad.jacobian(y, x) - v

    geom = dde.geometry.TimeDomain(0, 1)
    ic = dde.icbc.IC(geom, lambda _: 0, lambda _, on: on)
    equation = dde.data.PDE(
        geom, pde, ic, num_domain=10, num_boundary=2, num_test=8, train_distribution="uniform"
    )
    space = dde.data.PowerSeries(N=3)
    data = dde.data.PDEOperator(equation, space, np.linspace(0, 1, num=6)[:, None], 5, num_test=4)
    net = with_fixed_bias(dde.nn.DeepONet, [6, 8, 8], [1, 8, 8], "tanh", "Glorot normal")
    net.apply_output_transform(lambda inputs, outputs: outputs * inputs[1])
    _, losses = trained(data, start(net, ones(2, 6), ones(2, 1)))
    agree("operator", losses)


def test_physics_informed_operator_cartesian():
    def pde(x, y, v):
        return dde.grad.jacobian(y, x, j=1) + 0.5 * dde.grad.jacobian(y, x, j=0)

    space = dde.geometry.GeometryXTime(dde.geometry.Interval(0, 1), dde.geometry.TimeDomain(0, 1))
    ic = dde.icbc.IC(space, lambda x, v: v, lambda _, on: on)
    equation = dde.data.TimePDE(
        space, pde, ic, num_domain=10, num_initial=4, num_boundary=0, train_distribution="uniform"
    )
    data = dde.data.PDEOperatorCartesianProd(
        equation,
        dde.data.GRF(kernel="ExpSineSquared", length_scale=1),
        np.linspace(0, 1, num=6)[:, None],
        4,
        function_variables=[0],
    )
    net = with_fixed_bias(dde.nn.DeepONetCartesianProd, [6, 8, 8], [2, 8, 8], "tanh", "Glorot normal")
    _, losses = trained(data, start(net, ones(2, 6), ones(3, 2)), steps=5)
    agree("operator_cartesian", losses)


def test_function_and_data_sets():
    geom = dde.geometry.Interval(-1, 1)
    data = dde.data.Function(geom, lambda x: x * np.sin(5 * x), 16, 20, train_distribution="uniform")
    net = fnn([1, 16, 16, 1], regularization=["l2", 1e-3])
    model, losses = trained(data, start(net, ones(2, 1)), metrics=["l2 relative error"])
    agree("function", losses)
    x = np.linspace(-1, 1, 12)[:, None].astype(np.float32)
    data = dde.data.DataSet(x, np.cos(x), x, np.cos(x))
    _, losses = trained(data, start(fnn([1, 8, 1], "relu", dropout_rate=0.0), ones(2, 1)), loss="MAE")
    agree("dataset", losses)


def test_save_and_restore(tmp_path):
    data = poisson()
    model, _ = trained(data, start(fnn([1, 8, 1]), ones(2, 1)), steps=5)
    before = model.predict(np.array([[0.3]]))
    path = model.save(str(tmp_path / "model"))
    model.net.trainable_variables[0].assign(model.net.trainable_variables[0] * 0)
    assert not np.allclose(model.predict(np.array([[0.3]])), before)
    model.restore(path)
    np.testing.assert_array_equal(model.predict(np.array([[0.3]])), before)


def test_resampled_points_and_gradient_enhanced_losses():
    def pde(x, y):
        dy_xx = dde.grad.hessian(y, x)
        r = dy_xx + tf.sin(x)
        return [r, dde.grad.jacobian(r, x)]

    geom = dde.geometry.Interval(0, np.pi)
    net = fnn([1, 12, 12, 1])
    net.apply_output_transform(lambda x, y: x * (np.pi - x) * y)
    data = dde.data.PDE(geom, pde, [], 12, 0, train_distribution="Sobol")
    model = dde.Model(data, start(net, ones(2, 1)))
    model.compile("adam", lr=1e-3, loss_weights=[1, 0.01])
    history, _ = model.train(iterations=10, callbacks=[dde.callbacks.PDEPointResampler(period=4)], verbose=0)
    agree("gpinn", history.loss_train[-1])


# What TensorFlow 2.21 gives.
EXPECTED = {
    "burgers_adam": [0.006919, 0.0356641, 0.328008],
    "burgers_lbfgs": [0.0435523, 0.0095479, 0.1336915],
    "conditions": [3.838969, 21.37139, 0.02257372, 0.01675405, 0.07933555, 0.1834548],
    "dataset": [0.3774284],
    "deeponet_cartesian": [0.0013434],
    "deeponet_independent": [0.0117388],
    "deeponet_lbfgs": [0.0016672],
    "deeponet_split_both": [0.0150834],
    "deeponet_split_branch": [0.0145597],
    "diffusion": [10.63442, 0.2949452, 0.2637751, 0.0693428],
    "diffusion_variable": [2.086727],
    "disk": [0.0074294],
    "fractional": [0.4365738, 0],
    "fractional_dynamic": [0.0793104, 0.0036441],
    "function": [0.2221427, 0.0044075],
    "gpinn": [0.2766029, 0.0019281],
    "ide": [0.0435415, 0.0575646],
    "lorenz": [2.016586, 0.8188655, 2.451256, 62.19009, 44.63144, 677.3922, 14.11838, 13.3772, 13.5964],
    "lorenz_variables": [7.863355, 19.86025, -2.815176],
    "ode_system": [0.07814074, 0.05703947, 1.395521e-05, 0.01556093],
    "operator": [0.0419649, 0],
    "operator_cartesian": [0.0018622, 0.5281203],
    "pod": [0.0047987],
    "poisson_adam": [4.835844, 10.10084],
    "poisson_adam_predict": [-2.411489, 1.469781],
    "poisson_lbfgs": [19.742, 3.24943],
    "residual": [9.343445, -6.635672],
}  # fmt: skip
