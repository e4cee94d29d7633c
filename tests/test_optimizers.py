"""tf.optimizers: Keras' numbers, every option, sparse gradients, functions, state and errors."""

import copy
import json
import pickle
import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.functions.function import function
from gradtape.optimizers import schedules

_cases = runpy.run_path(str(Path(__file__).with_name("optimizer_cases.py")))
OPTIMIZERS, SCHEDULES, start, gradients, train, rates = (
    _cases[name] for name in ("OPTIMIZERS", "SCHEDULES", "start", "gradients", "train", "rates")
)
KERAS = json.loads(_cases["REFERENCE"].read_text())
NAMES = [
    "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl", "Lion", "Lamb",
    "Adafactor",
]  # fmt: skip
ALL = [getattr(tf.optimizers, name) for name in NAMES]

# Two steps with learning rate 0.1 (semantics O2).
TWO_STEPS = {
    "SGD": [0.98, 1.96, 2.94, 4.08],
    "Adam": [0.80000705, 1.80000436, 2.80000353, 4.19999695],
    "AdamW": [0.79924726, 1.79844463, 2.79764414, 4.19675779],
    "RMSprop": [0.45437837, 1.45436192, 2.45435905, 4.54564238],
    "Adagrad": [0.94098139, 1.89940727, 2.87448049, 4.14016771],
    "Adadelta": [0.99971539, 1.99971545, 2.99971533, 4.00028467],
    "Adamax": [0.80000019, 1.80000019, 2.80000019, 4.19999981],
    "Nadam": [0.81636262, 1.8163625, 2.81636262, 4.18363762],
    "Ftrl": [-0.01248124, 0.20909885, 0.69805181, 1.65947318],
    "Lion": [0.79999995, 1.79999995, 2.80000019, 4.19999981],
    "Lamb": [0.45593277, 1.4559325, 2.45593238, 4.54406786],
    "Adafactor": [0.57893234, 1.40452051, 2.43507838, 4.53261328],
}


def pair(value=1.0, gradient=0.5):
    v = tf.Variable(value)
    return tf.zeros(v.shape) + gradient, v


# ---- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TWO_STEPS)
def test_two_steps(name):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    optimizer = getattr(tf.optimizers, name)(learning_rate=0.1)
    for _ in range(2):
        optimizer.apply_gradients([(tf.constant([[0.1, 0.2], [0.3, -0.4]]), v)])
    np.testing.assert_allclose(v.numpy().ravel(), TWO_STEPS[name], atol=1e-6)


@pytest.mark.parametrize("text", OPTIMIZERS)
def test_as_keras(text):
    np.testing.assert_allclose(train(tf, text), KERAS[text], rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("text", SCHEDULES)
def test_schedule_as_keras(text):
    np.testing.assert_allclose(rates(tf, text), KERAS[text], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_types_of_variables(cls, dtype):
    v = tf.Variable(np.full([2, 2], 2.0), dtype=dtype)
    optimizer = cls(0.1)
    for _ in range(3):
        optimizer.apply_gradients([(tf.constant([[1.0, 2.0], [0.5, 1.0]]), v)])  # float32 gradients
    assert v.dtype == tf.as_dtype(dtype)
    value = v.numpy().astype("float64")
    assert np.isfinite(value).all()
    # Adadelta starts with changes below the resolution of halves.
    assert (value < 2).all() or (cls is tf.optimizers.Adadelta and v.dtype.size == 2)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (2, 1, 3), (3, 0, 2)])
@pytest.mark.parametrize("cls", ALL)
def test_shapes_of_variables(cls, shape):
    v = tf.Variable(np.ones(shape, "float32"))
    optimizer = cls(0.1)
    for _ in range(2):
        optimizer.apply_gradients([(tf.ones(shape), v)])
    assert tuple(v.shape) == shape and np.isfinite(v.numpy()).all()


# ---- in a function ------------------------------------------------------------------------------


@pytest.mark.parametrize("text", OPTIMIZERS)
def test_in_a_function(text):
    """The same numbers when steps are part of a traced function, which also creates the slots."""
    optimizer = eval(text, {name: getattr(tf.optimizers, name) for name in dir(tf.optimizers)})
    variables = [tf.Variable(v) for v in start()]

    @function
    def step(a, b):
        optimizer.apply_gradients(zip([a, b], variables, strict=True))

    for grads in gradients():
        step(*map(tf.constant, grads))
    assert step.experimental_get_tracing_count() == 1
    plain = np.concatenate([v.numpy().ravel() for v in variables])
    np.testing.assert_allclose(plain, KERAS[text][: len(plain)], rtol=2e-6, atol=2e-6)


def test_training_step_in_a_function():
    x = tf.constant(np.linspace(-1, 1, 16, dtype="float32")[:, None])
    w, b = tf.Variable([[0.0]]), tf.Variable([0.0])
    optimizer = tf.optimizers.Adam(0.1)

    @function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - (3 * x + 1)))
        grads = tape.gradient(loss, [w, b])
        optimizer.apply_gradients(zip(grads, [w, b], strict=True))
        return loss

    losses = [float(step()) for _ in range(200)]
    assert losses[-1] < 1e-3 < losses[0]
    assert int(optimizer.iterations) == 200
    optimizer.learning_rate = 0.0  # no new trace is needed for another rate
    before = w.numpy()
    step()
    assert w.numpy() == before and step.experimental_get_tracing_count() == 1


# ---- the learning rate --------------------------------------------------------------------------


def test_learning_rate_is_a_variable():
    optimizer = tf.optimizers.SGD(0.5)
    g, v = pair()
    optimizer.apply_gradients([(g, v)])
    assert v.numpy() == 0.75
    optimizer.learning_rate = 0.25
    optimizer.apply_gradients([(g, v)])
    assert v.numpy() == 0.625 and float(optimizer.learning_rate) == 0.25
    optimizer.learning_rate.assign(1.0)
    optimizer.apply_gradients([(g, v)])
    assert v.numpy() == 0.125
    optimizer.lr = 2.0
    assert optimizer.lr.numpy() == 2 and float(optimizer.learning_rate) == 2


@pytest.mark.parametrize(
    "rate", [0.5, np.float32(0.5), np.array(0.5), tf.constant(0.5), tf.Variable(0.5), lambda: 0.5]
)
def test_kinds_of_learning_rates(rate):
    optimizer = tf.optimizers.SGD(rate)
    g, v = pair()
    optimizer.apply_gradients([(g, v)])
    assert v.numpy() == 0.75 and float(optimizer.learning_rate) == 0.5


def test_function_as_learning_rate_is_called_every_step():
    now = [0.5]
    optimizer = tf.optimizers.SGD(lambda: now[0])
    g, v = pair()
    for rate in (0.5, 0.25, 1.0):
        now[0] = rate
        before = v.numpy()
        optimizer.apply_gradients([(g, v)])
        assert v.numpy() == before - rate * 0.5


def test_own_schedule_runs_as_python_every_step():
    class Halves(schedules.LearningRateSchedule):
        def __call__(self, step):
            return 0.5 if int(step) < 2 else 0.25  # reads the value

    optimizer = tf.optimizers.SGD(Halves())
    g, v = pair()
    seen = []
    for _ in range(4):
        before = v.numpy()
        optimizer.apply_gradients([(g, v)])
        seen.append((before - v.numpy()) / 0.5)
    assert seen == [0.5, 0.5, 0.25, 0.25]


def test_schedule_is_evaluated_before_the_step_and_cannot_be_set():
    optimizer = tf.optimizers.SGD(schedules.PiecewiseConstantDecay([0, 1], [1.0, 0.5, 0.25]))
    assert float(optimizer.learning_rate) == 1
    g, v = pair(0.0, 1.0)
    values = []
    for _ in range(4):
        optimizer.apply_gradients([(g, v)])
        values.append(float(v.numpy()))
    assert values == [-1.0, -1.5, -1.75, -2.0]
    with pytest.raises(TypeError, match="created with a `LearningRateSchedule` object"):
        optimizer.learning_rate = 0.1
    optimizer.learning_rate = schedules.InverseTimeDecay(8.0, 1, 1.0)
    assert float(optimizer.learning_rate) == pytest.approx(8 / 5)


def test_changed_options_count_at_once():
    optimizer = tf.optimizers.SGD(1.0, momentum=0.5)
    g, v = pair(0.0, 1.0)
    optimizer.apply_gradients([(g, v)])
    optimizer.momentum = 0.25
    optimizer.apply_gradients([(g, v)])
    assert v.numpy() == -1 - 1.25
    optimizer.clipvalue = 0.5
    optimizer.apply_gradients([(g, v)])
    assert v.numpy() == -1 - 1.25 - (0.25 * 1.25 + 0.5)


# ---- Keras-2 spellings --------------------------------------------------------------------------


def test_keras_2_spellings():
    optimizer = tf.optimizers.Adam(lr=0.5)
    assert optimizer.lr.numpy() == 0.5
    g, v = pair()
    done = optimizer.apply_gradients([(g, v)], name="train", experimental_aggregate_gradients=False)
    assert done is optimizer.iterations
    assert [x.name for x in optimizer.variables()] == [x.name for x in optimizer.weights]
    assert optimizer.get_slot(v, "m").numpy() == optimizer.get_slot(v, "momentum").numpy() == np.float32(0.05)
    assert tf.optimizers.legacy.Adam is tf.optimizers.Adam is tf.optimizers.experimental.Adam


def test_decay():
    optimizer = tf.optimizers.SGD(lr=1.0, decay=1.0)
    g, v = pair(0.0, 1.0)
    for _ in range(3):
        optimizer.apply_gradients([(g, v)])
    assert v.numpy() == pytest.approx(-1 - 1 / 2 - 1 / 3)
    assert tf.optimizers.SGD.from_config(optimizer.get_config())._decay == 1


def test_minimize():
    v = tf.Variable([3.0, -2.0])
    optimizer = tf.optimizers.SGD(0.1)
    assert optimizer.minimize(lambda: tf.reduce_sum(v * v), [v]).numpy() == 1
    np.testing.assert_allclose(v.numpy(), [2.4, -1.6], rtol=1e-6)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(v * v)
    optimizer.minimize(loss, [v], tape=tape)
    np.testing.assert_allclose(v.numpy(), [1.92, -1.28], rtol=1e-6)
    optimizer.minimize(lambda: tf.reduce_sum(v * v), lambda: [v])
    np.testing.assert_allclose(v.numpy(), [1.536, -1.024], rtol=1e-6)
    with pytest.raises(ValueError, match="`tape` is required"):
        optimizer.minimize(loss, [v])


def test_scaled_loss():
    v = tf.Variable(3.0)
    optimizer = tf.optimizers.SGD(0.1, loss_scale_factor=1024.0)
    assert optimizer.scale_loss(tf.constant(2.0)).numpy() == 2048
    optimizer.minimize(lambda: v * v, [v])
    assert v.numpy() == np.float32(2.4)
    assert tf.optimizers.SGD().scale_loss(2.0) == 2.0


# ---- gradients ----------------------------------------------------------------------------------


def test_missing_gradients():
    optimizer = tf.optimizers.SGD(0.5)
    g, v = pair()
    w = tf.Variable(1.0, name="unused")
    for _ in range(2):
        with pytest.warns(
            UserWarning, match=r"Gradients do not exist for variables \['unused:0'\] when minimizing"
        ):
            optimizer.apply_gradients([(g, v), (None, w)])
    assert v.numpy() == 0.5 and w.numpy() == 1 and int(optimizer.iterations) == 2
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        optimizer.apply_gradients([(None, v)])
    with pytest.raises(ValueError, match="not enough values to unpack"):
        optimizer.apply_gradients([])
    assert int(optimizer.iterations) == 2


@pytest.mark.parametrize("wrong", [tf.ones([3]), tf.ones([2, 1]), tf.ones([]), np.ones([4], "float32")])
def test_wrong_shape_changes_nothing(wrong):
    optimizer = tf.optimizers.Adam(0.5)
    v, w = tf.Variable([1.0, 2.0], name="v"), tf.Variable([1.0, 2.0], name="w")
    for _ in range(2):  # before there is a program, and after
        before = [x.numpy() for x in (v, w, *optimizer.variables)]
        with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot update variable 'w:0' with shape"):
            optimizer.apply_gradients([(tf.ones([2]), v), (wrong, w)])
        for x, old in zip((v, w, *optimizer.variables), before, strict=False):
            np.testing.assert_array_equal(x.numpy(), old)
        optimizer.apply_gradients([(tf.ones([2]), v), (tf.ones([2]), w)])
    assert int(optimizer.iterations) == 2


def test_kinds_of_gradients():
    optimizer = tf.optimizers.SGD(1.0)
    v = tf.Variable([1.0, 2.0])
    for g in (
        [1.0, 1.0],
        np.ones(2),
        np.ones(2, "float32"),
        tf.ones([2], "float64"),
        tf.Variable([1.0, 1.0]),
    ):
        before = v.numpy()
        optimizer.apply_gradients([(g, v)])
        np.testing.assert_array_equal(v.numpy(), before - 1)
    with pytest.raises(TypeError, match="expected a tf.Variable"):
        optimizer.apply_gradients([(tf.ones([2]), tf.ones([2]))])


def test_new_variables_met_later():
    optimizer = tf.optimizers.Adam(0.1)
    (g, v), (h, w) = pair(), pair([1.0, 2.0])
    optimizer.apply_gradients([(g, v)])
    optimizer.apply_gradients([(h, w)])
    optimizer.apply_gradients([(g, v), (h, w)])
    optimizer.apply_gradients([(h, w), (g, v)])
    optimizer.apply_gradients([(g, v)])
    assert int(optimizer.iterations) == 5 and len(optimizer.variables) == 6


def test_same_variable_twice():
    optimizer = tf.optimizers.SGD(1.0, momentum=0.5)
    g, v = pair(0.0, 1.0)
    for _ in range(2):
        optimizer.apply_gradients([(g, v), (g, v)])
    assert v.numpy() == -(1 + 1.5 + 1.75 + 1.875)


def test_apply():
    optimizer = tf.optimizers.SGD(1.0)
    with pytest.raises(ValueError, match="the optimizer must already be built"):
        optimizer.apply([tf.ones([])])
    v, w = tf.Variable(1.0), tf.Variable(2.0)
    optimizer.build([v, w])
    optimizer.apply([tf.constant(0.25), tf.constant(0.5)])
    assert (v.numpy(), w.numpy()) == (0.75, 1.5)
    with pytest.raises(ValueError, match="Received a list of 1 gradients"):
        optimizer.apply([tf.ones([])])


def test_gradient_is_the_value_itself():
    """The variable's memory must not be overwritten while another tensor shares it."""
    for optimizer in (tf.optimizers.SGD(0.5), tf.optimizers.Adam(0.5)):
        v = tf.Variable(np.arange(6, dtype="float32"))
        for _ in range(3):
            value, old = v.value(), v.numpy()
            w = tf.Variable(v)  # shares the elements
            optimizer.apply_gradients([(value, v)])
            np.testing.assert_array_equal(value.numpy(), old)
            np.testing.assert_array_equal(w.numpy(), old)
            assert (v.numpy()[1:] != old[1:]).all()


def test_steps_between_passes_of_a_tape():
    v = tf.Variable([1.0, 2.0])
    optimizer = tf.optimizers.SGD(0.5)
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum(v * v * v)
        optimizer.apply_gradients([(tf.constant([1.0, 1.0]), v)])
        late = tf.reduce_sum(v * v)
    np.testing.assert_array_equal(tape.gradient(loss, v).numpy(), [3, 12])
    np.testing.assert_array_equal(tape.gradient(late, v).numpy(), [1, 3])


# ---- sparse gradients ---------------------------------------------------------------------------

SPARSE = [
    *(f"{name}(0.1)" for name in NAMES), "SGD(0.1, momentum=0.9, nesterov=True)", "SGD(0.1, clipnorm=1.0)",
    "SGD(0.1, clipvalue=1.5)", "SGD(0.1, global_clipnorm=1.0)", "SGD(0.1, weight_decay=0.1)",
    "Adagrad(0.1, clipnorm=0.5, weight_decay=0.1)", "SGD(0.1, loss_scale_factor=2.0)",
    "Adam(0.1, gradient_accumulation_steps=2)", "SGD(0.1, use_ema=True, ema_momentum=0.5)",
]  # fmt: skip


def slices(rows, seed=0):
    values = np.random.RandomState(seed).randn(len(rows), 2).astype("float32")
    return tf.IndexedSlices(tf.constant(values), tf.constant(rows), (5, 2))


@pytest.mark.parametrize("text", SPARSE)
@pytest.mark.parametrize("traced", [False, True])
def test_sparse_as_dense(text, traced):
    """Rows that occur twice add up; the result is that of the dense gradient."""
    finals = []
    for dense in (False, True):
        optimizer = eval(text, {name: getattr(tf.optimizers, name) for name in dir(tf.optimizers)})
        v = tf.Variable(np.arange(10, dtype="float32").reshape(5, 2))

        def step(values, indices, dense=dense, optimizer=optimizer, v=v):
            g = tf.IndexedSlices(values, indices, (5, 2))
            optimizer.apply_gradients([(tf.convert_to_tensor(g) if dense else g, v)])

        run = function(step) if traced else step
        for seed, rows in enumerate([[1, 1, 3], [4, 0, 4], [2], [3, 3, 3, 1], [1, 1, 3]]):
            g = slices(rows, seed)
            run(g.values, g.indices)
        finals.append(v.numpy())
    np.testing.assert_allclose(*finals, rtol=1e-5, atol=1e-6)


def test_sparse_leaves_other_rows():
    for cls in (tf.optimizers.SGD, tf.optimizers.Adagrad, tf.optimizers.Adam, tf.optimizers.RMSprop):
        v = tf.Variable(tf.ones([5, 2]))
        cls(0.1).apply_gradients([(slices([1, 1, 3]), v)])
        changed = (v.numpy() != 1).all(1)
        assert changed.tolist() == [False, True, False, True, False]


def test_embedding():
    table = tf.Variable(np.ones([6, 3], "float32"))
    optimizer = tf.optimizers.Adagrad(0.5)
    for ids in ([0, 2, 2], [5, 5, 5, 1]):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, ids) ** 2)
        grads = tape.gradient(loss, [table])
        assert isinstance(grads[0], tf.IndexedSlices)
        optimizer.apply_gradients(zip(grads, [table], strict=True))
    assert (table.numpy()[[3, 4]] == 1).all() and (table.numpy()[[0, 1, 2, 5]] < 1).all()


@pytest.mark.parametrize("cls", [tf.optimizers.SGD, tf.optimizers.Adagrad, tf.optimizers.Adam])
def test_sparse_out_of_range_changes_nothing(cls):
    optimizer = cls(0.1)
    v, w = tf.Variable(tf.ones([5, 2])), tf.Variable([1.0, 2.0])
    for k in range(2):
        for bad in ([1, 7, 3], [1, 2, -1]):
            with pytest.raises(
                tf.errors.InvalidArgumentError, match=r"indices\[\d\] = -?\d is not in \[0, 5\)"
            ):
                optimizer.apply_gradients([(tf.ones([2]), w), (slices(bad), v)])
            assert int(optimizer.iterations) == k
        optimizer.apply_gradients([(tf.ones([2]), w), (slices([1, 2, 3]), v)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="using IndexedSlices with values"):
        optimizer.apply_gradients([(tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 1])), v)])


def test_sparse_from_numpy():
    v = tf.Variable(tf.ones([5, 2]))
    optimizer = tf.optimizers.SGD(1.0)
    for _ in range(2):
        optimizer.apply_gradients(
            [(tf.IndexedSlices(np.ones([2, 2], "float32"), np.array([1, 1]), (5, 2)), v)]
        )
    np.testing.assert_array_equal(v.numpy()[:, 0], [1, -3, 1, 1, 1])


# ---- options ------------------------------------------------------------------------------------


def test_exclude_from_weight_decay():
    kernel, bias, other = tf.Variable(1.0, name="kernel"), tf.Variable(1.0, name="a/bias"), tf.Variable(1.0)
    optimizer = tf.optimizers.SGD(0.5, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_list=[other], var_names=["bias"])
    optimizer.apply_gradients([(tf.zeros([]), v) for v in (kernel, bias, other)])
    assert [v.numpy() for v in (kernel, bias, other)] == [0.75, 1, 1]
    with pytest.raises(ValueError, match="before the optimizer is built"):
        optimizer.exclude_from_weight_decay(var_names=["kernel"])


@pytest.mark.parametrize(
    "constraint", [lambda x: tf.clip_by_value(x, 0.0, 1.0), lambda x: np.clip(x.numpy(), 0, 1)]
)
def test_constraint(constraint):
    v = tf.Variable([0.5, 0.9], constraint=constraint)
    optimizer = tf.optimizers.SGD(1.0)
    for _ in range(2):
        optimizer.apply_gradients([(tf.constant([1.0, -1.0]), v)])
        np.testing.assert_array_equal(v.numpy(), [0, 1])


def test_accumulation_counts_updates():
    optimizer = tf.optimizers.SGD(1.0, gradient_accumulation_steps=2)
    v = tf.Variable(0.0)
    seen = []
    for g in (1.0, 3.0, 5.0, 7.0, 9.0):
        optimizer.apply_gradients([(tf.constant(g), v)])
        seen.append((float(v.numpy()), int(optimizer.iterations)))
    assert seen == [(0, 0), (-2, 1), (-2, 1), (-8, 2), (-8, 2)]


def test_average_of_a_variable_met_later():
    optimizer = tf.optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5)
    (g, v), (h, w) = pair(1.0, 1.0), pair(8.0, 1.0)
    optimizer.apply_gradients([(g, v)])
    optimizer.apply_gradients([(g, v), (h, w)])
    optimizer.finalize_variable_values([v, w])
    assert (v.numpy(), w.numpy()) == (-0.5, 7.5)
    with pytest.raises(ValueError, match="there is no average"):
        optimizer.finalize_variable_values([tf.Variable(1.0)])


BAD = [
    (
        lambda o: o.SGD(0.1, clipnorm=1.0, clipvalue=1.0),
        "Only one of `clipnorm`, `clipvalue` and `global_clipnorm`",
    ),
    (lambda o: o.SGD(0.1, momentum=2.0), "`momentum` must be a float between"),
    (lambda o: o.SGD(0.1, gradient_accumulation_steps=1), "must be an integer >= 2"),
    (lambda o: o.SGD(0.1, use_ema=True, ema_momentum=2.0), "`ema_momentum` must be in the range"),
    (lambda o: o.SGD(0.1, use_ema=True, ema_overwrite_frequency=0.5), "must be an integer >= 1"),
    (lambda o: o.SGD(0.1, foo=1), r"Argument\(s\) not recognized: {'foo': 1}"),
    (lambda o: o.SGD("fast"), "Argument `learning_rate` should be float"),
    (lambda o: o.AdamW(weight_decay=None), "`weight_decay` must be a float"),
    (lambda o: o.Ftrl(initial_accumulator_value=-1.0), "needs to be positive or zero"),
    (lambda o: o.Ftrl(learning_rate_power=1.0), "needs to be negative or zero"),
    (lambda o: o.Lion(beta_1=2.0), "degenerates to SignSGD"),
    (lambda o: o.get("foo"), "Could not interpret optimizer identifier: foo"),
    (lambda o: o.SGD().set_weights([]), "has not yet been built"),
    (lambda o: o.schedules.ExponentialDecay(0.1, 0, 0.5), "`decay_steps` must be > 0"),
    (lambda o: o.schedules.PiecewiseConstantDecay([1], [1.0]), "should be 1 less than the length of values"),
    (lambda o: o.schedules.deserialize({"class_name": "Foo", "config": {}}), "Unknown decay: 'Foo'"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_wrong_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make(tf.optimizers)


# ---- state --------------------------------------------------------------------------------------


def test_names_of_the_state():
    optimizer = tf.optimizers.Adam(0.1, amsgrad=True)
    optimizer.build([tf.Variable([1.0], name="w"), tf.Variable([[1.0]], name="a/b")])
    assert [v.name for v in optimizer.variables] == [
        f"{name}:0" for name in (
            "iteration", "learning_rate", "w_0_momentum", "w_0_velocity", "w_0_velocity_hat",
            "a_b_0_momentum", "a_b_0_velocity", "a_b_0_velocity_hat",
        )
    ]  # fmt: skip
    assert not any(v.trainable for v in optimizer.variables)
    assert optimizer.iterations.dtype == tf.int64


@pytest.mark.parametrize("cls", ALL)
def test_state_round_trip(cls):
    variables = [[tf.Variable(v) for v in start()] for _ in range(2)]
    first, second = cls(0.1), cls(0.1)
    steps = [[tf.constant(g) for g in grads] for grads in gradients()[:10]]
    for grads in steps[:5]:
        first.apply_gradients(zip(grads, variables[0], strict=True))
    second.build(variables[1])
    second.set_weights(first.get_weights())
    for v, w in zip(*variables, strict=True):
        w.assign(v)
    for grads in steps[5:]:
        for optimizer, vs in zip((first, second), variables, strict=True):
            optimizer.apply_gradients(zip(grads, vs, strict=True))
    for v, w in zip(*variables, strict=True):
        np.testing.assert_array_equal(v.numpy(), w.numpy())


def test_wrong_state_changes_nothing():
    optimizer = tf.optimizers.Adam(0.1)
    optimizer.build([tf.Variable([1.0, 2.0])])
    weights = optimizer.get_weights()
    wrong = [w + 1 for w in weights[:-1]] + [np.zeros(3)]
    for bad, message in (
        (wrong, "not compatible with provided weight shape"),
        (weights[:-1], "expected 4 values"),
    ):
        with pytest.raises(ValueError, match=message):
            optimizer.set_weights(bad)
        for x, old in zip(optimizer.get_weights(), weights, strict=True):
            np.testing.assert_array_equal(x, old)


@pytest.mark.parametrize("text", OPTIMIZERS)
def test_config_round_trip(text):
    optimizer = eval(text, {name: getattr(tf.optimizers, name) for name in dir(tf.optimizers)})
    config = optimizer.get_config()
    json.dumps(config)
    assert type(optimizer).from_config(config).get_config() == config
    again = tf.optimizers.deserialize(tf.optimizers.serialize(optimizer))
    assert type(again) is type(optimizer) and again.get_config() == config


@pytest.mark.parametrize("text", SCHEDULES)
def test_config_of_schedules(text):
    schedule = eval(text, vars(schedules))
    again = schedules.deserialize(schedules.serialize(schedule))
    assert again.get_config() == schedule.get_config() and float(again(3)) == float(schedule(3))


def test_get():
    for name in NAMES:
        assert type(tf.optimizers.get(name.lower())).__name__ == name
    optimizer = tf.optimizers.Adam()
    assert tf.optimizers.get(optimizer) is optimizer
    assert tf.optimizers.get(tf.optimizers.serialize(optimizer)).get_config() == optimizer.get_config()


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies(again):
    g, v = pair([1.0, 2.0])
    optimizer = tf.optimizers.Adam(0.1)
    optimizer.apply_gradients([(g, v)])
    w, other = again((v, optimizer))
    optimizer.apply_gradients([(g, v)])
    other.apply_gradients([(g, w)])
    np.testing.assert_array_equal(v.numpy(), w.numpy())
    assert int(other.iterations) == 2 and len(other.variables) == 4


# ---- own optimizers -----------------------------------------------------------------------------


def test_optimizer_written_for_keras():
    class Momentum(tf.optimizers.Optimizer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.momentum = 0.5

        def build(self, variables):
            super().build(variables)
            self.momentums = self.add_optimizer_variables(variables, "momentum")

        def update_step(self, gradient, variable, learning_rate):
            m = self.momentums[self._get_variable_index(variable)]
            m.assign(m * self.momentum - gradient * learning_rate)
            variable.assign_add(m)

    optimizer = Momentum(learning_rate=1.0)
    g, v = pair(0.0, 1.0)
    for _ in range(3):
        optimizer.apply_gradients([(g, v)])
    assert v.numpy() == -(1 + 1.5 + 1.75)
    assert [x.name for x in optimizer.variables] == [
        "iteration:0",
        "learning_rate:0",
        "Variable_0_momentum:0",
    ]


def test_rule_is_missing():
    with pytest.raises(NotImplementedError, match="must have a method `update"):
        tf.optimizers.Optimizer(0.1).apply_gradients([pair()])


# ---- one native program -------------------------------------------------------------------------


def test_memory_is_overwritten(counted_memory):
    """A step allocates nothing of the size of the variables, unless another tensor shares their values."""
    from gradtape import _core

    v = tf.Variable(tf.ones([1 << 18]))
    g = tf.ones([1 << 18])
    optimizer = tf.optimizers.Adam(0.1)
    for _ in range(2):
        optimizer.apply_gradients([(g, v)])
    _core.reset_peak_memory()
    before = _core.memory_info()
    optimizer.apply_gradients([(g, v)])
    assert _core.memory_info()["peak"] < before["live_bytes"] + (1 << 18)
    held = v.value()
    optimizer.apply_gradients([(g, v)])
    assert held.numpy()[0] != v.numpy()[0]


def test_in_place_only_where_nothing_reads_the_old_value_afterwards():
    class Late(tf.optimizers.Optimizer):
        def slots(self, v):
            return {"previous": 0.0, "total": 0.0}

        def update(self, v, g, slots, lr, step):
            new = v - lr * g
            slots.previous = v  # the old value is read after the new one was computed
            slots.total += tf.reduce_sum(v)
            return new

    optimizer = Late(1.0)
    v = tf.Variable(np.arange(5000, dtype="float32"))
    expected = np.arange(5000, dtype="float32")
    for _ in range(3):
        old = expected
        expected = expected - 1
        optimizer.apply_gradients([(tf.ones([5000]), v)])
        np.testing.assert_array_equal(v.numpy(), expected)
        np.testing.assert_array_equal(optimizer.get_slot(v, "previous").numpy(), old)


def test_no_warnings_in_a_plain_loop():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer = tf.optimizers.Adam()
        for _ in range(3):
            optimizer.apply_gradients([pair()])


@pytest.mark.parametrize(
    ("given", "got"),
    [([1.0, 2.0], "a float"), ([[1.0], [2.0]], "a list of 1"), ([(1.0, 2.0, 3.0)], "a tuple of 3")],
)
def test_arguments_that_are_no_pairs(given, got):
    with pytest.raises(
        TypeError, match=f"apply_gradients takes .gradient, variable. pairs.*got {got} in the place"
    ):
        tf.optimizers.SGD().apply_gradients(given)


def test_the_warning_about_missing_gradients_names_the_users_line():
    v, w = tf.Variable(1.0), tf.Variable(2.0)
    with pytest.warns(UserWarning, match="Gradients do not exist") as told:
        tf.optimizers.SGD().apply_gradients([(tf.constant(1.0), v), (None, w)])
    assert told[0].filename == __file__
    with pytest.warns(UserWarning, match="Gradients do not exist") as told:
        tf.optimizers.SGD().minimize(lambda: v * v, [v, w])
    assert told[0].filename == __file__
