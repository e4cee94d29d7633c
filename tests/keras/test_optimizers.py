"""Keras' optimizers on gradtape: each step is one native program, and computes the same as Keras' own code."""

import copy

import numpy as np
import pytest

import gradtape as tf
import keras_gradtape  # noqa: F401  before Keras

import keras  # isort: skip
from keras import optimizers  # isort: skip
from keras_gradtape.src import optimizer as steps  # isort: skip

schedules = optimizers.schedules
# Two steps with rate 0.1 from [[1, 2], [3, 4]] with the gradient below, in TensorFlow 2.21.
REFERENCE = {
    "SGD": [[0.98, 1.96], [2.94, 4.08]],
    "Adam": [[0.80000705, 1.80000436], [2.80000353, 4.19999695]],
    "AdamW": [[0.79924726, 1.79844463], [2.79764414, 4.19675779]],
    "RMSprop": [[0.45437837, 1.45436192], [2.45435905, 4.54564238]],
    "Adagrad": [[0.94098139, 1.89940727], [2.87448049, 4.14016771]],
    "Adadelta": [[0.99971539, 1.99971545], [2.99971533, 4.00028467]],
    "Adamax": [[0.80000019, 1.80000019], [2.80000019, 4.19999981]],
    "Nadam": [[0.81636262, 1.8163625], [2.81636262, 4.18363762]],
    "Ftrl": [[-0.01248124, 0.20909885], [0.69805181, 1.65947318]],
    "Lion": [[0.79999995, 1.79999995], [2.80000019, 4.19999981]],
    "Lamb": [[0.45593277, 1.4559325], [2.45593238, 4.54406786]],
    "Adafactor": [[0.57893234, 1.40452051], [2.43507838, 4.53261328]],
}
GRADIENT = tf.constant([[0.1, 0.2], [0.3, -0.4]])


def compiled(opt):
    """Whether the last step was a single program without other ops."""
    return opt.__dict__["_programs"].last is not None


@pytest.mark.parametrize("make", [tf.Variable, keras.Variable])
@pytest.mark.parametrize("name", REFERENCE)
def test_two_steps_as_in_tensorflow(name, make):
    v, opt = make([[1.0, 2.0], [3.0, 4.0]]), getattr(optimizers, name)(0.1)
    for _ in range(2):
        assert opt.apply_gradients([(GRADIENT, v)]) is opt._iterations
    assert np.allclose(np.array(v), REFERENCE[name], atol=1e-6)
    assert compiled(opt) and int(opt.iterations) == 2


class Halving(schedules.LearningRateSchedule):
    """A schedule written by a user: it counts its calls and computes in Python."""

    def __init__(self):
        self.calls = 0

    def __call__(self, step):
        self.calls += 1
        return 0.1 * 0.5 ** float(step)


OPTIONS = {
    "clipnorm": lambda: optimizers.Adam(0.1, clipnorm=0.3),
    "clipvalue": lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True, clipvalue=0.1),
    "global_clipnorm": lambda: optimizers.RMSprop(0.1, global_clipnorm=0.5, centered=True, momentum=0.3),
    "weight_decay": lambda: optimizers.SGD(0.1, weight_decay=0.1),
    "ema": lambda: optimizers.Adam(0.1, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=3),
    "accumulation": lambda: optimizers.Adam(0.1, gradient_accumulation_steps=3),
    "all": lambda: optimizers.SGD(
        0.1,
        gradient_accumulation_steps=2,
        use_ema=True,
        ema_overwrite_frequency=2,
        clipnorm=0.2,
        weight_decay=0.01,
    ),
    "exponential": lambda: optimizers.Adam(schedules.ExponentialDecay(0.1, 2, 0.9)),
    "piecewise": lambda: optimizers.Adam(schedules.PiecewiseConstantDecay([2, 4], [0.1, 0.05, 0.01])),
    "restarts": lambda: optimizers.SGD(schedules.CosineDecayRestarts(0.1, 3)),
    "own schedule": lambda: optimizers.Adam(Halving()),
    "loss_scale_factor": lambda: optimizers.Adam(0.1, loss_scale_factor=8.0),
    "loss scaling": lambda: optimizers.LossScaleOptimizer(
        optimizers.Adam(0.1), initial_scale=4.0, dynamic_growth_steps=2
    ),
    "amsgrad": lambda: optimizers.Adam(0.1, amsgrad=True),
    "muon": lambda: optimizers.Muon(0.1),
    "schedule-free": lambda: optimizers.ScheduleFreeAdamW(0.1),
}


def run(opt, take, n=7, compile=False):
    variables = [
        keras.Variable(np.arange(6, dtype="float32").reshape(2, 3) / 3),
        keras.Variable(np.ones(3, "float32")),
    ]
    random = np.random.default_rng(1)
    take = tf.function(take) if compile else take
    for _ in range(n):
        take(opt, [tf.constant(random.normal(size=v.shape).astype("float32")) for v in variables], variables)
    return [np.array(v) for v in (*variables, *opt.variables)]


def by_program(opt, grads, variables):
    opt.apply_gradients(zip(grads, variables, strict=True))


def op_by_op(opt, grads, variables):
    if isinstance(opt, optimizers.LossScaleOptimizer):
        type(opt).apply(opt, grads, variables)
    else:
        steps.Base.apply(opt, grads, variables)


@pytest.mark.parametrize("make", OPTIONS.values(), ids=OPTIONS.keys())
def test_programs_compute_the_same_as_keras_code(make):
    for a, b in zip(run(make(), by_program), run(make(), op_by_op), strict=True):
        assert np.allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("make", [f for n, f in OPTIONS.items() if n != "own schedule"], ids=lambda f: "")
def test_inside_a_function_too(make):
    for a, b in zip(run(make(), by_program, compile=True), run(make(), op_by_op), strict=True):
        assert np.allclose(a, b, atol=1e-6)


def test_a_schedule_of_ones_own_is_called_in_every_step():
    v, opt = tf.Variable(0.0), optimizers.SGD(Halving())
    for _ in range(3):
        opt.apply_gradients([(tf.constant(1.0), v)])
    assert np.isclose(v.numpy(), -0.175) and opt._learning_rate.calls >= 3


def test_a_function_as_learning_rate_is_called_in_every_step():
    rates = iter([1.0, 0.5, 0.25])
    v, opt = tf.Variable(0.0), optimizers.SGD(lambda: next(rates))
    for _ in range(3):
        opt.apply_gradients([(tf.constant(1.0), v)])
    assert v.numpy() == -1.75


def test_changed_options_count_from_the_next_step_on():
    v, opt = tf.Variable(0.0), optimizers.SGD(1.0)
    opt.apply_gradients([(tf.constant(2.0), v)])
    opt.learning_rate = 0.5
    opt.apply_gradients([(tf.constant(2.0), v)])
    assert v.numpy() == -3
    opt.clipvalue = 1.0
    opt.apply_gradients([(tf.constant(2.0), v)])
    assert v.numpy() == -3.5
    opt.learning_rate = schedules.PiecewiseConstantDecay([100], [1.0, 0.0])
    opt.apply_gradients([(tf.constant(2.0), v)])
    assert v.numpy() == -4.5


def test_an_optimizer_of_ones_own_runs_its_python_code_each_time():
    class Own(optimizers.Optimizer):
        seen = 0

        def update_step(self, gradient, variable, learning_rate):
            Own.seen += 1
            variable.assign_sub(gradient * learning_rate * Own.seen)

    v, opt = tf.Variable(0.0), Own(1.0)
    for _ in range(3):
        opt.apply_gradients([(tf.constant(1.0), v)])
    assert v.numpy() == -6 and Own.seen == 3


def test_constraints():
    v = keras.Variable([3.0, 4.0])
    v.constraint = keras.constraints.UnitNorm(axis=0)
    opt = optimizers.SGD(0.0)
    opt.apply_gradients([(tf.constant([1.0, 1.0]), v)])
    assert np.allclose(v.numpy(), [0.6, 0.8]) and compiled(opt)


def test_a_constraint_in_numpy():
    v = tf.Variable([3.0, -4.0], constraint=lambda x: np.maximum(x.numpy(), 0))
    opt = optimizers.SGD(1.0)
    for _ in range(2):
        opt.apply_gradients([(tf.constant([1.0, 1.0]), v)])
    assert v.numpy().tolist() == [1, 0] and int(opt.iterations) == 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_element_types(dtype):
    # Adam's 0.999 is 1 in bfloat16, in Keras as here.
    opt = optimizers.SGD(0.25) if dtype == "bfloat16" else optimizers.Adam(0.125)
    v = keras.Variable([1.0, 2.0], dtype=dtype)
    for _ in range(3):
        opt.apply_gradients([(tf.constant([0.5, -0.5], dtype), v)])
    assert v.dtype == dtype and np.allclose(np.array(v, "float32"), [1 - 0.375, 2 + 0.375], atol=0.02)


def test_gradients_of_another_type_are_cast():
    v, opt = keras.Variable([1.0, 2.0]), optimizers.SGD(1.0)
    opt.apply_gradients([(tf.constant([1.0, 1.0], tf.float16), v)])
    opt.apply([np.array([1.0, 1.0])], [v])
    assert v.numpy().tolist() == [-1, 0]


# ---- sparse gradients -----------------------------------------------------------------------


@pytest.mark.parametrize("name", REFERENCE)
@pytest.mark.parametrize("options", [{}, {"clipnorm": 0.5}, {"weight_decay": 0.1}], ids=str)
def test_sparse_gradients_count_as_the_dense_ones(name, options):
    def trained(sparse):
        v, opt = (
            tf.Variable(np.arange(12, dtype="float32").reshape(4, 3)),
            getattr(optimizers, name)(0.1, **options),
        )
        for rows in ([1, 3, 1], [0, 0, 1], [2, 3, 3]):
            g = tf.IndexedSlices(tf.reshape(tf.range(9.0), [3, 3]) / 10, tf.constant(rows), [4, 3])
            opt.apply_gradients([(g if sparse else tf.convert_to_tensor(g), v)])
        return v.numpy()

    assert np.allclose(trained(True), trained(False), atol=1e-6)


def test_embeddings_are_changed_in_the_rows_that_were_read():
    layer = keras.layers.Embedding(50, 2)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(np.array([3, 7, 3])))
    g = tape.gradient(loss, layer.trainable_variables)
    before = layer.embeddings.numpy()
    optimizers.SGD(1.0).apply_gradients(zip(g, layer.trainable_variables, strict=True))
    changed = before - layer.embeddings.numpy()
    assert np.allclose(changed[[3, 7]], [[2, 2], [1, 1]], atol=1e-6) and np.allclose(
        changed.sum(), 6, atol=1e-5
    )


def test_rows_out_of_range():
    v, opt = tf.Variable(np.ones((4, 3), "float32")), optimizers.SGD(1.0)
    for _ in range(2):
        g = tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 4]), [4, 3])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 4"):
            opt.apply_gradients([(g, v)])
    assert np.all(v.numpy() == 1)


# ---- wrong input ----------------------------------------------------------------------------


def test_missing_gradients_are_named():
    a, b = keras.Variable(1.0, name="a"), keras.Variable(1.0, name="b")
    opt = optimizers.SGD(1.0)
    with pytest.warns(UserWarning, match=r"Gradients do not exist for variables \['b'\]"):
        opt.apply_gradients([(tf.constant(1.0), a), (None, b)])
    assert (a.numpy(), b.numpy()) == (0, 1)
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        opt.apply_gradients([(None, a), (None, b)])
    with pytest.raises(ValueError, match="not enough values to unpack"):
        opt.apply_gradients([])
    assert int(opt.iterations) == 1


def test_wrong_shapes_leave_everything_as_it_was():
    a, b = keras.Variable([1.0, 2.0]), keras.Variable([[3.0]])
    opt = optimizers.Adam(0.1)
    good = [(tf.constant([1.0, 1.0]), a), (tf.constant([[1.0]]), b)]
    opt.apply_gradients(good)
    state = [np.array(v) for v in (a, b, *opt.variables)]
    for bad in (tf.constant([1.0]), tf.constant([[1.0, 2.0]])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="shapes must be equal"):
            opt.apply_gradients([good[0], (bad, b)])
    for before, v in zip(state, (a, b, *opt.variables), strict=True):
        assert np.array_equal(before, np.array(v))


def test_unknown_variables_and_unbuilt_optimizers():
    opt = optimizers.SGD(1.0)
    with pytest.raises(ValueError, match="must already be built"):
        opt.apply([tf.constant(1.0)])
    a = keras.Variable(1.0)
    opt.build([a])
    opt.apply([tf.constant(1.0)])
    assert a.numpy() == 0


# ---- programs -------------------------------------------------------------------------------


def test_one_native_call_a_step():
    variables = [keras.Variable(np.ones(4, "float32")) for _ in range(20)]
    grads = [tf.ones([4]) for _ in variables]
    opt = optimizers.Adam(0.1)
    opt.apply_gradients(zip(grads, variables, strict=True))
    seen = []
    update = opt.__dict__["_programs"].last
    assert update.step(list(zip(grads, variables, strict=True)))
    from gradtape import _core

    watching = _core.Scope(watcher=lambda *call: seen.append(call))
    watching.__enter__()
    try:
        opt.apply_gradients(zip(grads, variables, strict=True))
    finally:
        watching.__exit__()
    assert not seen and int(opt.iterations) == 3


def test_copies_start_without_programs():
    v, opt = tf.Variable(1.0), optimizers.SGD(1.0)
    opt.apply_gradients([(tf.constant(1.0), v)])
    assert len(copy.deepcopy(opt.__dict__["_programs"])) == 0


def test_different_sets_of_variables():
    a, b = tf.Variable([1.0]), tf.Variable([2.0, 3.0])
    opt = optimizers.Adam(0.1)
    opt.build([a, b])
    one = tf.constant([1.0])
    for _ in range(2):
        opt.apply_gradients([(one, a)])
        opt.apply_gradients([(tf.constant([1.0, 1.0]), b), (one, a)])
    assert int(opt.iterations) == 4 and len(opt.__dict__["_programs"]) == 2


def test_learning_rates_can_be_looked_at_while_training():
    opt = optimizers.Adam(schedules.ExponentialDecay(1.0, 1, 0.5))
    v = tf.Variable(1.0)
    for expected in (1.0, 0.5, 0.25):
        assert np.isclose(float(opt.learning_rate), expected)
        opt.apply_gradients([(tf.constant(1.0), v)])


def test_a_tape_follows_the_step_of_an_optimizer():
    w = tf.Variable(2.0)
    opt = optimizers.SGD(0.5)
    with tf.GradientTape(track_assign=True) as outer:
        with tf.GradientTape() as inner:
            loss = w * w
        opt.apply_gradients([(inner.gradient(loss, w), w)])
        after = w * 3.0
    assert np.isclose(outer.gradient(after, w).numpy(), 0)  # 3 * (1 - 0.5 * 2)


def test_optimizers_without_keras_take_variables_of_keras():
    """In TensorFlow `tf.optimizers` are Keras': programs mix them."""
    layer = keras.layers.Dense(1, kernel_initializer="ones")
    layer.build((None, 2))
    optimizer = tf.optimizers.SGD(0.5)
    x = tf.constant([[1.0, 2.0]])

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x))
        variables = layer.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    step()
    np.testing.assert_allclose(layer.kernel.numpy(), [[0.5], [0.0]])
    tf.function(step)()
    np.testing.assert_allclose(layer.kernel.numpy(), [[0.0], [-1.0]])
    optimizer.minimize(lambda: tf.reduce_sum(layer(x)), layer.trainable_variables)
    np.testing.assert_allclose(layer.kernel.numpy(), [[-0.5], [-2.0]])
    assert int(optimizer.iterations) == 3
