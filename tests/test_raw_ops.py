"""tf.raw_ops: every row names a function that is there, with parameters that it has; values; wrong calls. tf.lite."""

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


def test_fused_batch_norm_gives_what_tensorflow_gives():
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
