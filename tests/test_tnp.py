"""tf.experimental.numpy against NumPy itself, and TensorProtos."""

import numpy as np
import pytest

import gradtape as tf

tnp = tf.experimental.numpy
RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(4, 3))
NUMPY = [
    ("moveaxis", (A, 0, -1)), ("moveaxis", (A, [0, 1], [-1, 0])), ("swapaxes", (A, 0, 2)), ("dot", (A, B)),
    ("inner", (A, A[0])), ("outer", (A[0, 0], B[:, 0])), ("diff", (A,)), ("diff", (A, 2, 0)), ("cumsum", (A, 1)),
    ("cumsum", (A,)), ("sort", (A,)), ("argsort", (A, 0)), ("tile", (B, (2, 1, 2))), ("hstack", ([B, B],)),
    ("vstack", ([B, B],)), ("clip", (A, -1, 1)), ("around", (A, 1)), ("std", (A, 1)), ("ptp", (A, 0)), ("sinc", (A,)),
    ("cbrt", (A,)), ("logaddexp", (A, A)), ("heaviside", (A, 0.5)), ("linspace", (0, 1, 5)), ("roll", (B, 1)),
    ("flip", (B,)), ("repeat", (B, 2)), ("split", (B, [1, 3])), ("take", (B, [1, 2], 0)), ("prod", (A, 0)),
    ("count_nonzero", (A,)), ("floor_divide", (A, 0.5)), ("mod", (A, 0.5)), ("vdot", (B, B)), ("trace", (B[:3],)),
    ("diag", (B,)), ("diag", (B[0],)), ("meshgrid", (np.arange(3), np.arange(2))), ("where", (B > 0,)), ("pad", (B, 1)),
    ("eye", (3,)), ("full", ((2,), 3)), ("isclose", (A, A + 1e-9)), ("tensordot", (A, B, 1)),
    ("sum", (np.arange(4, dtype=np.int8),)),
    ("mean", (np.arange(4),)), ("add", (np.float32([1]), np.int32([1]))), ("arange", (3,)), ("ones", ((2,),)),
    ("matmul", (B[:, 0], B)), ("matmul", (A, B)), ("maximum", (B, 0.5)), ("exp", (np.arange(3),)), ("square", (3,)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args"), NUMPY, ids=[f"{n}-{i}" for i, (n, _) in enumerate(NUMPY)])
def test_numpy_functions(name, args):
    got, want = getattr(tnp, name)(*args), getattr(np, name)(*args)
    if not isinstance(want, (list, tuple)):
        got, want = [got], [want]
    for x, y in zip(got, want, strict=True):
        assert isinstance(x, tf.Tensor) and x.numpy().dtype == np.asarray(y).dtype
        np.testing.assert_allclose(x.numpy(), y, atol=1e-12)


def test_numpy_types_and_gradients():
    x = tf.constant([1.0, 2.0])
    assert tnp.add(x, 1.5).dtype == tf.float32 and tnp.add(x, tnp.array([1.0, 2.0])).dtype == tf.float64
    assert tnp.random.randn(2).dtype == tf.float64 and tnp.random.randint(0, 5, (3,)).dtype == tf.int64
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tnp.sum(tnp.sqrt(tnp.square(x) + 1.0))
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), [1 / np.sqrt(2), 2 / np.sqrt(5)], rtol=1e-6)
    assert tnp.newaxis is None and tnp.float32 is np.float32 and not hasattr(tnp, "tf")
    with pytest.raises(AttributeError, match="not part of gradtape"):
        tnp.polyfit  # noqa: B018


def test_numpy_methods_of_tensors(caplog):
    names = "T astype ravel clip reshape transpose mean max min sum size tolist data".split()
    kept = {n: vars(tf.Tensor)[n] for n in names}
    try:
        tnp.experimental_enable_numpy_behavior()
        x = tf.constant([[1.0, 2.0, 3.0]])
        assert x.T.shape == x.transpose(1, 0).shape == x.transpose().shape == (3, 1) and x.size == 3
        assert (
            x.reshape(3).shape == x.ravel().shape == x.reshape([3]).shape == (3,) and x.mean().numpy() == 2.0
        )
        assert x.astype("int32").dtype == tf.int32 and x.tolist() == [[1.0, 2.0, 3.0]]
        assert "operators convert no types" in caplog.text
    finally:
        for name, value in kept.items():
            setattr(tf.Tensor, name, value)


PROTOS = [np.arange(6).reshape(2, 3), np.float16([1.5]), np.bool_(True), np.zeros((0, 2))]


@pytest.mark.parametrize("value", [*PROTOS, np.array([b"a", b"bc"], object)])
def test_tensor_protos(value):
    proto = tf.make_tensor_proto(value)
    again = type(proto).FromString(proto.SerializeToString())
    assert again == proto
    got = tf.make_ndarray(again)
    assert (
        got.dtype == np.asarray(value).dtype and got.shape == np.shape(value) and np.array_equal(got, value)
    )


def test_tensor_protos_of_tensorflow():
    """Single values and repeated ones, as TensorFlow writes them."""
    assert (
        tf.make_tensor_proto([1.0, 2.0]).SerializeToString().hex()
        == "08011204120208022208" + "0000803f00000040"
    )
    cls = type(tf.make_tensor_proto(1))
    assert (
        tf.make_ndarray(cls.FromString(bytes.fromhex("0801120412020803" + "2a040000803f"))).tolist()
        == [1.0] * 3
    )
    assert tf.make_ndarray(cls.FromString(bytes.fromhex("080312003a0107"))) == 7
    assert tf.make_tensor_proto(7, shape=[2]).tensor_shape == [2]
    with pytest.raises(TypeError, match="Expected Tensor's shape"):
        tf.make_tensor_proto([1, 2], shape=[3], verify_shape=True)
