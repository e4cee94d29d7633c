"""Wrong input of optimizers, `tf.optimizers` and Keras': a clear error, and variables stay unchanged."""

import numpy as np
import pytest

import gradtape as tf

keras = tf.keras
KINDS = {"native": tf.optimizers, "Keras": keras.optimizers}


@pytest.fixture(params=KINDS)
def optimizers(request):
    return KINDS[request.param]


def variables():
    return tf.Variable([1.0, 2.0, 3.0], name="v"), tf.Variable([[1.0, 2.0]], name="w")


def sparse(values, indices):
    return tf.IndexedSlices(tf.constant(values), tf.constant(indices), (1, 2))


def values(*things):
    return [np.array(v.numpy()) for v in things]


# Name -> (what `(v, w)` are paired with, error, words).
ONES = [1.0, 1.0, 1.0]
PAIRS = {
    "another shape": (
        lambda v, w: [(tf.ones(3), v), (tf.ones([2, 2]), w)],
        tf.errors.InvalidArgumentError, r"variable 'w:0' with shape \[1, 2\] using a gradient of shape \[2, 2\]",
    ),
    "a shape that would broadcast": (
        lambda v, w: [(tf.ones(3), v), (tf.ones(2), w)],
        tf.errors.InvalidArgumentError, r"'w:0' with shape \[1, 2\] using a gradient of shape \[2\]",
    ),
    "no gradient at all": (
        lambda v, w: [(None, v), (None, w)],
        ValueError, r"No gradients provided for any variable.*tape\.explain\(loss, variable\)",
    ),
    "no pairs": (lambda v, w: [], ValueError, "not enough values to unpack"),
    "a tensor for a variable": (
        lambda v, w: [(tf.ones(3), v), (tf.ones(3), tf.constant(ONES))],
        TypeError, "can only change variables; expected a tf.Variable; got <tf.Tensor",
    ),
    "pairs the wrong way round": (lambda v, w: [(v, tf.ones(3))], TypeError, "swap them"),
    "text": (lambda v, w: [(tf.ones([1, 2]), w), ("three", v)], (TypeError, ValueError), "text"),
    "a row that is not there": (
        lambda v, w: [(tf.ones(3), v), (sparse([[1.0, 1.0]], [7]), w)],
        tf.errors.InvalidArgumentError, r"indices\[0\] = 7 is not in \[0, 1\), the rows of variable 'w:0'",
    ),
    "rows of another width": (
        lambda v, w: [(tf.ones(3), v), (sparse([[1.0] * 3], [0]), w)],
        tf.errors.InvalidArgumentError, r"'w:0' with shape \[1, 2\] using IndexedSlices with values \[1, 3\]",
    ),
    "a new variable, and another shape": (
        lambda v, w: [(tf.ones(3), v), (tf.ones(4), tf.Variable([5.0], name="new"))],
        tf.errors.InvalidArgumentError, "'new:0' with shape",
    ),
}  # fmt: skip


@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
@pytest.mark.parametrize("built", [False, True], ids=["fresh", "built"])
@pytest.mark.parametrize("name", PAIRS)
def test_gradients(optimizers, name, built, scaled):
    pairs, error, words = PAIRS[name]
    v, w = variables()
    opt = optimizers.Adam(0.1)
    if scaled:
        opt = optimizers.LossScaleOptimizer(opt, initial_scale=8.0)
    if built:
        opt.apply_gradients([(tf.ones(3), v), (tf.ones([1, 2]), w)])
    before, names = values(v, w, *opt.variables), [x.name for x in opt.variables]
    with pytest.raises(error, match=f"(?s){words}"):
        opt.apply_gradients(pairs(v, w))
    if "row that" not in name:  # in a trace indices are not known
        with pytest.raises(error, match=f"(?s){words}"):
            tf.function(lambda: opt.apply_gradients(pairs(v, w)))()
    assert [x.name for x in opt.variables] == names and int(opt.iterations) == built
    for a, b in zip(before, values(v, w, *opt.variables), strict=True):
        np.testing.assert_array_equal(a, b)
    # And it still works afterwards.
    opt.apply_gradients([(tf.ones(3), v), (tf.ones([1, 2]), w)])
    assert int(opt.iterations) == built + 1


def test_missing_gradients_are_named(optimizers):
    v, w = variables()
    opt = optimizers.SGD(1.0)
    words = r"(?s)do not exist for variables \['w:0'\].*tape\.explain\(loss, variable\)"
    for step in (opt.apply_gradients, tf.function(lambda pairs: opt.apply_gradients(pairs))):
        with pytest.warns(UserWarning, match=words) as caught:
            step([(tf.ones(3), v), (None, w)])
        assert len(caught) == 1
    assert w.numpy().tolist() == [[1, 2]] and v.numpy().tolist() == [-1, 0, 1]
    layer = keras.layers.Dense(1, name="head")
    layer.build([None, 1])
    with pytest.warns(UserWarning, match=r"variables \['head/bias'\]"):
        keras.optimizers.SGD(1.0).apply_gradients([(tf.ones([1, 1]), layer.kernel), (None, layer.bias)])


def test_numbers_of_gradients_and_variables(optimizers):
    v, w = variables()
    opt = optimizers.Adam(0.1)
    with pytest.raises(ValueError, match="must already be built"):
        opt.apply([tf.ones(3)])
    with pytest.raises(ValueError, match="got 1 gradients for 2 variables"):
        opt.apply([tf.ones(3)], [v, w])
    opt.apply([tf.ones(3), tf.ones([1, 2])], [v, w])
    with pytest.raises(ValueError, match="Received a list of 1 gradients, but the optimizer is tracking 2"):
        opt.apply([tf.ones(3)])
    with pytest.raises(ValueError, match="got 1 gradients for 2 variables"):
        opt.apply([tf.ones(3)], [v, w])
    assert int(opt.iterations) == 1


def test_state(optimizers):
    v, w = variables()
    opt = optimizers.Adam(0.1)
    with pytest.raises(ValueError, match="has not yet been built"):
        opt.set_weights([1, 2])
    opt.build([v, w])
    good = opt.get_weights()
    wrong = [x + 1 for x in good[:-1]] + [np.ones((7, 7))]
    for bad, words in (
        (wrong, r"w_0_velocity.* has shape \(1, 2\) not compatible with provided weight shape \(7, 7\)"),
        (good[:-1], "expected 6 values, one for each variable; got 5"),
    ):
        with pytest.raises(ValueError, match=words):
            opt.set_weights(bad)
        for a, b in zip(good, opt.get_weights(), strict=True):
            np.testing.assert_array_equal(a, b)


def test_checkpoints_of_something_else(optimizers, tmp_path):
    v, w = variables()
    opt = optimizers.Adam(0.1)
    opt.apply_gradients([(tf.ones(3), v)])
    path = tf.train.Checkpoint(v=v, opt=opt).save(str(tmp_path / "a"))
    small, other = tf.Variable([1.0, 2.0]), optimizers.Adam(0.1)
    other.apply_gradients([(tf.ones(2), small)])
    before = values(small, *other.variables)
    with pytest.raises(ValueError, match=r"v: float32\[3\], the program float32\[2\]. Nothing was restored"):
        tf.train.Checkpoint(v=small, opt=other).restore(path)
    with pytest.raises(AssertionError, match="saved values have no object in the program"):
        tf.train.Checkpoint(x=small, y=other).restore(path).assert_consumed()
    with pytest.raises(tf.errors.NotFoundError):
        tf.train.Checkpoint(v=small, opt=other).restore(str(tmp_path / "b"))
    data = next(p for p in tmp_path.iterdir() if p.name.startswith("a-1."))
    data.write_bytes(data.read_bytes()[:-9])
    with pytest.raises((ValueError, tf.errors.DataLossError)):
        tf.train.Checkpoint(v=small, opt=other).restore(path)
    for a, b in zip(before, values(small, *other.variables), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), 0.0, -1.0])
def test_scales_that_are_none(optimizers, scale):
    with pytest.raises(ValueError, match="`loss_scale_factor` must be a number above zero"):
        optimizers.SGD(0.1, loss_scale_factor=scale)
    with pytest.raises(ValueError, match="`initial_scale` must be a number above zero"):
        optimizers.LossScaleOptimizer(optimizers.SGD(0.1), initial_scale=scale)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_scaled_loss_that_is_no_number(optimizers, bad):
    v = tf.Variable([1.0, 2.0])
    opt = optimizers.LossScaleOptimizer(optimizers.Adam(0.1), initial_scale=8.0)
    opt.apply_gradients([(tf.ones(2), v)])
    inner = values(v, *opt.inner_optimizer.variables)
    for step in (opt.apply_gradients, tf.function(lambda pairs: opt.apply_gradients(pairs))):
        step([(tf.constant([bad, 1.0]), v)])
    for a, b in zip(inner, values(v, *opt.inner_optimizer.variables), strict=True):
        np.testing.assert_array_equal(a, b)
    assert float(opt.dynamic_scale) == 2 and int(opt.step_counter) == 0
