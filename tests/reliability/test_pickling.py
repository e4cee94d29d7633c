"""Pickles and copies: values are kept bit for bit; objects that cannot be pickled raise an error."""

import copy
import importlib.util
import pickle

import numpy as np
import pytest

import gradtape as tf

WAYS = {f"pickle {p}": lambda x, p=p: pickle.loads(pickle.dumps(x, p)) for p in (2, 3, 4, 5)}
WAYS |= {"copy": copy.copy, "deepcopy": copy.deepcopy}
every_way = pytest.mark.parametrize("again", WAYS.values(), ids=WAYS)
APART = {
    name: way for name, way in WAYS.items() if name != "copy"
}  # a shallow copy of an object with state shares that state
apart = pytest.mark.parametrize("again", APART.values(), ids=APART)
DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128"
).split()
SHAPES = ((), (0, 3), (2, 3))


def assert_same(x, y):
    assert (x.dtype, x.shape) == (y.dtype, y.shape)
    assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


def values(dtype, shape):
    return tf.cast(tf.constant(np.linspace(0, 9, int(np.prod(shape))).reshape(shape)), dtype)


@every_way
@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors(dtype, again):
    for shape in SHAPES:
        x = values(dtype, shape)
        assert_same(x, again(x))
    nan = tf.cast(tf.constant([np.nan, np.inf, -0.0]), dtype) if "float" in dtype else x
    assert_same(nan, again(nan))


@apart
@pytest.mark.parametrize("dtype", DTYPES)
def test_variables(dtype, again):
    for shape in SHAPES:
        v = tf.Variable(values(dtype, shape), name="abc", trainable=False)
        w = again(v)
        assert_same(v, w)
        assert (w.name, w.trainable) == (v.name, False)
        w.assign(tf.zeros_like(w))
        assert_same(v, values(dtype, shape))


@every_way
def test_constraint_and_shape_of_a_variable(again):
    v = tf.Variable([1.0, -2.0], constraint=tf.nn.relu, shape=[None])
    w = again(v)
    assert w.constraint is tf.nn.relu
    assert w.shape.as_list() == [None]


@apart
def test_a_copy_is_on_no_tape(again):
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
        w = again(v)
        z = y + w * 3.0
    assert tape.gradient(z, [v, w]) == [4.0, 3.0]


@every_way
def test_shapes_types_and_specs(again):
    for x in (
        tf.TensorShape([2, None]), tf.TensorShape([]), tf.TensorSpec([2, None], tf.int32, "n"), tf.bfloat16, tf.float32,
        tf.random.Algorithm.PHILOX, tf.UnconnectedGradients.ZERO,
    ):  # fmt: skip
        assert again(x) == x
    assert again(tf.TensorShape(None)).rank is None
    assert again(tf.float16) is tf.float16
    assert again(tf.nn.relu) is tf.nn.relu


@every_way
def test_indexed_slices(again):
    x = tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 4]), tf.constant([5, 3]))
    y = again(x)
    assert_same(x.values, y.values)
    assert_same(x.indices, y.indices)
    assert_same(tf.convert_to_tensor(x), tf.convert_to_tensor(y))


@apart
def test_generators_go_on_where_they_were(again):
    g = tf.random.Generator.from_seed(3)
    g.normal([5])
    h = again(g)
    assert_same(g.normal([7]), h.normal([7]))


INITIALIZERS = (
    "GlorotUniform HeNormal LecunUniform Orthogonal TruncatedNormal Zeros Ones Constant RandomNormal RandomUniform "
    "VarianceScaling Identity"
).split()


@every_way
def test_initializers_and_schedules(again):
    for name in INITIALIZERS:
        make = getattr(tf.initializers, name)
        made = make(seed=3) if name not in ("Zeros", "Ones", "Constant", "Identity") else make()
        assert_same(again(made)([4, 4]), made([4, 4]))
    schedules = tf.optimizers.schedules
    for made in (
        schedules.CosineDecay(0.1, 100), schedules.ExponentialDecay(0.1, 10, 0.5),
        schedules.PiecewiseConstantDecay([1, 5], [0.1, 0.2, 0.3]), schedules.PolynomialDecay(0.1, 10),
        schedules.InverseTimeDecay(0.1, 10, 0.5),
    ):  # fmt: skip
        assert [float(again(made)(k)) for k in (0, 3, 50)] == [float(made(k)) for k in (0, 3, 50)]


OPTIMIZERS = {
    "SGD": lambda o: o.SGD(0.1, momentum=0.9, nesterov=True),
    "Adam": lambda o: o.Adam(o.schedules.ExponentialDecay(0.1, 2, 0.5), amsgrad=True),
    "AdamW": lambda o: o.AdamW(0.1, weight_decay=0.01),
    "RMSprop": lambda o: o.RMSprop(0.1, momentum=0.5, centered=True),
    "Adagrad": lambda o: o.Adagrad(0.1),
    "Adadelta": lambda o: o.Adadelta(0.1),
    "Adamax": lambda o: o.Adamax(0.1),
    "Nadam": lambda o: o.Nadam(0.1),
    "Ftrl": lambda o: o.Ftrl(0.1),
    "Adafactor": lambda o: o.Adafactor(0.1),
    "Lion": lambda o: o.Lion(0.1),
}


class Net(tf.Module):
    """A module with variables in attributes and lists, an op as its activation, and a traced method."""

    def __init__(self):
        super().__init__(name="net")
        self.w = tf.Variable([[1.0, -2.0], [0.5, 3.0]])
        self.more = [tf.Variable([0.1, 0.2], name="b", constraint=tf.nn.relu)]
        self.activation = tf.nn.tanh

    @tf.function
    def __call__(self, x):
        return self.activation(x @ self.w + self.more[0])


def steps(net, optimizer, n):
    x = tf.constant([[1.0, 2.0], [3.0, -1.0], [0.0, 0.5]])
    for _ in range(n):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(net(x) ** 2)
        variables = net.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize(
    "again", [WAYS["pickle 2"], WAYS["pickle 5"], copy.deepcopy], ids=["2", "5", "deepcopy"]
)
def test_training_goes_on(name, again):
    """A module and its optimizer, pickled together: later steps are the same bit for bit."""
    net, optimizer = Net(), OPTIMIZERS[name](tf.optimizers)
    steps(net, optimizer, 3)
    net2, optimizer2 = again((net, optimizer))
    assert [v.name for v in net2.variables] == [v.name for v in net.variables]
    assert int(optimizer2.iterations) == 3
    steps(net, optimizer, 4)
    middle = [v.numpy() for v in net.variables]
    steps(net2, optimizer2, 4)
    for v, w, m in zip(net.variables, net2.variables, middle, strict=True):
        assert_same(v, w)
        assert np.array_equal(v, m), "the copies share a variable"
    assert len(optimizer2.variables) == len(optimizer.variables)


@pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")
@pytest.mark.parametrize("again", [WAYS["pickle 5"], copy.deepcopy], ids=["pickle", "deepcopy"])
def test_keras_models(again):
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Dense(3, activation="relu"), layers.Dense(1)])
    model.compile("adam", "mse")
    x = np.linspace(-1, 1, 40).reshape(10, 4).astype("f4")
    model.fit(x, x[:, :1], epochs=2, verbose=0, shuffle=False)
    other = again(model)
    for m in (model, other):
        m.fit(x, x[:, :1], epochs=2, verbose=0, shuffle=False)
    for v, w in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(v, w)


def test_errors_of_ops():
    e = tf.errors.InvalidArgumentError(None, None, "words")
    again = pickle.loads(pickle.dumps(e))
    assert (type(again), str(again), again.error_code) == (type(e), str(e), e.error_code)


def symbol():
    kept = []
    tf.function(lambda x: kept.append(x * 2.0))(tf.constant(1.0))
    return kept[0]


@pytest.mark.parametrize(
    "make, words",
    [
        (tf.GradientTape, "cannot pickle 'GradientTape'"),
        (lambda: tf.data.Dataset.range(3), "a tf.data.Dataset cannot be pickled"),
        (symbol, "symbolic tf.Tensor"),
    ],
    ids=["tape", "dataset", "symbol"],
)
def test_objects_that_cannot_be_pickled(make, words):
    with pytest.raises((TypeError, NotImplementedError), match=words):
        pickle.dumps(make())
