"""tf.raw_ops: every row names an existing function and its parameters; values; wrong calls. tf.lite."""

import inspect

import numpy as np
import pytest

import gradtape as tf
from gradtape import raw_ops

X = tf.constant([[1.0, 2.0], [3.0, 5.0]])
IMAGE = tf.reshape(tf.range(16.0), [1, 4, 4, 1])

# Verified on TensorFlow 2.21.
VALUES = [
    ("AddV2", {"x": X, "y": 1.0}, [[2, 3], [4, 6]]),
    ("Sum", {"input": X, "axis": [0], "keep_dims": True}, [[4, 7]]),
    ("Any", {"input": X > 4, "axis": 1}, [False, True]),
    ("Cast", {"x": X, "DstT": tf.int32, "Truncate": False}, [[1, 2], [3, 5]]),
    ("MatMul", {"a": X, "b": X, "transpose_a": True}, [[10, 17], [17, 29]]),
    ("ArgMax", {"input": X, "dimension": 0}, [1, 1]),
    ("BatchMatMulV2", {"x": X, "y": X, "adj_y": True}, [[5, 13], [13, 34]]),
    ("Relu", {"features": X - 3}, [[0, 0], [0, 2]]),
    ("SelectV2", {"condition": X > 2, "t": X, "e": -X}, [[-1, -2], [3, 5]]),
    ("ConcatV2", {"values": [X, X], "axis": 0}, np.vstack([X, X])),
    ("GatherV2", {"params": X, "indices": [1], "axis": 1}, [[2], [5]]),
    ("Transpose", {"x": X, "perm": [1, 0]}, [[1, 3], [2, 5]]),
    ("MaxPool", {"input": IMAGE, "ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"},
     [[[[5], [7]], [[13], [15]]]]),
    ("Atan2", {"y": 1.0, "x": 1.0, "name": "a"}, np.float32(np.pi / 4)),
    ("Pack", {"values": [X, X], "axis": 2}, np.stack([X, X], 2)),
    ("MirrorPad", {"input": X, "paddings": [[1, 0], [0, 0]], "mode": "REFLECT"}, [[3, 5], [1, 2], [3, 5]]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "value"), VALUES, ids=[v[0] for v in VALUES])
def test_values(name, given, value):
    np.testing.assert_allclose(getattr(tf.raw_ops, name)(**given), value, rtol=1e-6)


@pytest.mark.parametrize("name", dir(raw_ops))
def test_rows(name):
    where, *arguments = raw_ops._TABLE[name].split()
    function = tf
    getattr(tf.raw_ops, name)  # imports modules that are imported on first use
    for part in where.split("."):
        function = getattr(function, part)
    row = getattr(function, "row", None)
    known = [p.name for p in row.params] if row is not None else inspect.signature(function).parameters
    targets = [target if arrow else raw for raw, arrow, target in (a.partition(">") for a in arguments)]
    assert all(t in known for t in targets if t)
    assert getattr(tf.raw_ops, name).__name__ == name


def test_wrong_calls():
    with pytest.raises(TypeError, match="only takes keyword args"):
        tf.raw_ops.Add(1.0, 2.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        tf.raw_ops.Add(x=1.0, z=2.0)
    with pytest.raises(AttributeError, match="has no attribute 'ImageProjectiveTransform'"):
        tf.raw_ops.ImageProjectiveTransform  # noqa: B018


def test_gradients():
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = tf.raw_ops.Mul(x=X, y=X)
    np.testing.assert_array_equal(tape.gradient(y, X), 2 * X)


def test_lite_is_a_name():
    assert not isinstance(X, (tf.lite.Interpreter, tf.lite.TFLiteConverter))
    assert (
        tf.lite.OpsSet.TFLITE_BUILTINS.value == "TFLITE_BUILTINS"
        and tf.lite.Optimize.DEFAULT.value == "DEFAULT"
    )
    for make in (tf.lite.Interpreter, tf.lite.TFLiteConverter.from_keras_model):
        with pytest.raises(NotImplementedError, match="gradtape does not have"):
            make("model")


def test_gradients_of_broadcasts_and_samples():
    sums = raw_ops.BroadcastGradientArgs(s0=[2, 1, 3], s1=[3])
    assert [axes.numpy().tolist() for axes in sums] == [[1], [0, 1]]
    assert [a.numpy().tolist() for a in raw_ops.BroadcastGradientArgs(s0=[3], s1=[3])] == [[], []]
    with tf.GradientTape() as tape:
        a = tf.Variable(2.0)
        y = tf.math.igamma(a, 1.5)
    np.testing.assert_allclose(raw_ops.IgammaGradA(a=2.0, x=1.5), tape.gradient(y, a), rtol=1e-6)
    assert raw_ops.RandomGammaGrad(alpha=2.0, sample=1.5).numpy() > 0


def test_a_gradient_that_is_prevented_is_refused():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = raw_ops.PreventGradient(input=x, message="not here") * 2.0
    assert y == 4.0
    with pytest.raises(LookupError, match="Gradient explicitly disabled. Reason: .*not here"):
        tape.gradient(y, x)


def test_fused_batch_norm_agrees_with_tensorflow():
    x = tf.reshape(tf.range(16.0), [2, 2, 2, 2]) ** 1.5
    given = {"x": x, "scale": [1.0, 2.0], "offset": [0.5, -0.5], "mean": [0.1, 0.2], "variance": [1.0, 3.0]}
    out = tf.raw_ops.FusedBatchNormV2(**given, epsilon=1e-3, exponential_avg_factor=0.3)
    np.testing.assert_allclose(out.y[0, 0], [[-0.72860646, -3.0744665], [-0.56858516, -2.634312]], rtol=2e-5)
    np.testing.assert_allclose(
        out.batch_mean, [6.5847993, 7.802996], rtol=1e-5
    )  # TensorFlow's, as all of these
    np.testing.assert_allclose(out.batch_variance, [107.81387, 126.74193], rtol=1e-5)
    np.testing.assert_allclose(out.reserve_space_1, [21.715996, 25.54332], rtol=1e-5)
    np.testing.assert_allclose(out.reserve_space_2, [312.41544, 363.5389], rtol=1e-5)
    used = tf.raw_ops.FusedBatchNormV3(**given, is_training=False)
    assert used._fields[-1] == "reserve_space_3" and used.reserve_space_3.shape == [0]
    np.testing.assert_allclose(used.y[0, 0, 0], [0.40000498, 0.4237451], rtol=1e-5)


def test_cudnn_has_shapes_in_functions_and_no_values():
    given = {
        "input": tf.ones([4, 2, 3]),
        "input_h": tf.ones([1, 2, 5]),
        "input_c": tf.ones([1, 2, 5]),
        "params": tf.ones([9]),
    }

    @tf.function
    def f(x):
        out = tf.raw_ops.CudnnRNN(**given | {"input": x})
        assert out.output.shape == [4, 2, 5] and out.output_h.shape == [1, 2, 5]
        return x + 1.0

    f.get_concrete_function(tf.TensorSpec([4, 2, 3]))
    with pytest.raises(tf.errors.NotFoundError, match="CudnnRNN"):
        tf.raw_ops.CudnnRNN(**given)


# Sums of squares of the variables after a step, measured with TensorFlow 2.21.
STEPS = {
    ("ResourceApplyGradientDescent", False): ("var alpha delta", [21.445]),
    ("ResourceApplyMomentum", False): ("var accum lr grad momentum", [19.731, 34.916]),
    ("ResourceApplyMomentum", True): ("var accum lr grad momentum", [18.422, 34.916]),
    ("ResourceSparseApplyMomentum", False): ("var accum lr grad momentum", [21.372, 31.69]),
    ("ResourceSparseApplyMomentum", True): ("var accum lr grad momentum", [20.943, 31.69]),
    ("ResourceApplyKerasMomentum", False): ("var accum lr grad momentum", [46.826, 6.6117]),
    ("ResourceApplyKerasMomentum", True): ("var accum lr grad momentum", [41.205, 6.6117]),
    ("ResourceSparseApplyKerasMomentum", False): ("var accum lr grad momentum", [39.109, 7.3852]),
    ("ResourceSparseApplyKerasMomentum", True): ("var accum lr grad momentum", [35.647, 7.3852]),
    ("ResourceApplyAdam", False): ("var m v beta1_power beta2_power lr beta1 beta2 epsilon grad", [21.334, 8.7097, 6.3774]),
    ("ResourceApplyAdam", True): ("var m v beta1_power beta2_power lr beta1 beta2 epsilon grad", [21.296, 8.7097, 6.3774]),
    ("ResourceApplyAdamWithAmsgrad", False): ("var m v vhat beta1_power beta2_power lr beta1 beta2 epsilon grad",
        [22.022, 8.7097, 6.3774, 18.316]),
    ("ResourceApplyAdaMax", False): ("var m v beta1_power lr beta1 beta2 epsilon grad", [15.684, 8.7097, 19.462]),
    ("ResourceApplyRMSProp", False): ("var ms mom lr rho momentum epsilon grad", [10.112, 10.22, 6.5628]),
    ("ResourceSparseApplyRMSProp", False): ("var ms mom lr rho momentum epsilon grad", [16.943, 10.968, 6.5273]),
    ("ResourceApplyCenteredRMSProp", False): ("var mg ms mom lr rho momentum epsilon grad",
        [7.8334, 0.34916, 33.362, 14.355]),
    ("ResourceSparseApplyCenteredRMSProp", False): ("var mg ms mom lr rho momentum epsilon grad",
        [12.91, 0.3169, 35.76, 15.309]),
    ("ResourceApplyAdadelta", False): ("var accum accum_update lr rho epsilon grad", [21.508, 10.22, 7.7295]),
    ("ResourceSparseApplyAdadelta", False): ("var accum accum_update lr rho epsilon grad", [22.858, 10.968, 7.0747]),
    ("ResourceApplyAdagrad", False): ("var accum lr grad", [22.264, 87.776]),
    ("ResourceSparseApplyAdagrad", False): ("var accum lr grad", [22.963, 83.21]),
    ("ResourceApplyAdagradV2", False): ("var accum lr epsilon grad", [22.265, 87.776]),
    ("ResourceSparseApplyAdagradV2", False): ("var accum lr epsilon grad", [22.963, 83.21]),
    ("ResourceApplyFtrl", False): ("var accum linear grad lr l1 l2 lr_power", [3.9923, 87.776, 1148.8]),
    ("ResourceSparseApplyFtrl", False): ("var accum linear grad lr l1 l2 lr_power", [9.767, 83.21, 490.11]),
    ("ResourceApplyFtrlV2", False): ("var accum linear grad lr l1 l2 l2_shrinkage lr_power", [3.97, 87.776, 1143.3]),
    ("ResourceSparseApplyFtrlV2", False): ("var accum linear grad lr l1 l2 l2_shrinkage lr_power", [9.7553, 83.21, 487.3]),
}  # fmt: skip
SCATTERS = {
    "Add": 57.471,
    "Sub": 16.916,
    "Update": 24.797,
    "Max": 29.599,
    "Min": 18.697,
    "Mul": 40.903,
    "Div": 24.461,
}
HYPER = {
    "lr": 0.1, "alpha": 0.1, "momentum": 0.9, "beta1": 0.9, "beta2": 0.99, "beta1_power": 0.81, "beta2_power": 0.98,
    "epsilon": 1e-3, "rho": 0.9, "l1": 0.3, "l2": 0.02, "l2_shrinkage": 0.01, "lr_power": -0.5,
}  # fmt: skip


def positive(rng):
    return tf.Variable(np.abs(rng.randn(4, 3)) + 0.1, dtype=tf.float32)


def the_gradient():
    rng = np.random.RandomState(0)
    return tf.constant(rng.randn(4, 3), tf.float32)


@pytest.mark.parametrize(("name", "nesterov"), STEPS)
@pytest.mark.parametrize("traced", [False, True])
def test_a_step_of_an_optimizer(name, nesterov, traced):
    words, expected = STEPS[name, nesterov]
    rng, held, given = np.random.RandomState(1), [], {}
    sparse = "Sparse" in name
    for word in words.split():
        if word in ("grad", "delta"):
            given[word] = the_gradient()[:2] if sparse else the_gradient()
        elif word in HYPER:
            given[word] = tf.constant(HYPER[word])
        else:
            held.append(positive(rng))
            given[word] = held[-1].handle
    if "Centered" in name:  # a variance, above the square of the mean
        held[1].assign(held[1] * 0.1)
        held[2].assign(held[2] + 1)
    given |= {"indices": tf.constant([3, 1])} if sparse else {}
    given |= {"use_nesterov": True} if nesterov else {}
    op = getattr(tf.raw_ops, name)
    if traced:
        tf.function(lambda: op(use_locking=True, **given))()
    else:
        assert op(**given) is None
    found = [float(tf.reduce_sum(v * v)) for v in held]
    np.testing.assert_allclose(found, expected, rtol=2e-4)


@pytest.mark.parametrize("what", SCATTERS)
def test_rows_of_a_variable_are_set(what):
    v = positive(np.random.RandomState(1))
    op = getattr(tf.raw_ops, f"ResourceScatter{what}")
    op(resource=v.handle, indices=tf.constant([1, 2]), updates=the_gradient()[:2])
    np.testing.assert_allclose(tf.reduce_sum(v * v), SCATTERS[what], rtol=1e-4)
