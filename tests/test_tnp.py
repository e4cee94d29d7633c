"""tf.experimental.numpy against NumPy itself, and TensorProtos."""

import subprocess
import sys
from pathlib import Path

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
("append", (B, B, 0)), ("append", (B, 5.0)), ("dstack", ([B, B],)), ("atleast_3d", (B,)), ("atleast_3d", (B[0],)),
    ("hsplit", (B, 3)), ("vsplit", (B, [1, 3])), ("dsplit", (A, 2)), ("broadcast_arrays", (B, B[0])),
    ("fliplr", (B,)), ("flipud", (B,)), ("rot90", (B,)), ("rot90", (A, 2, (1, 2))), ("rot90", (B, -1)),
    ("compress", ([True, False, True], B, 0)), ("compress", ([0, 1], B)),
    ("take_along_axis", (B, np.argsort(B, 0), 0)), ("take_along_axis", (B, np.int64([[-1], [0], [1], [2]]), 1)),
    ("select", ([B > 1, B > 0], [B, -B], 7)), ("diagonal", (A,)), ("diagonal", (A, 1, 1, 2)), ("diagonal", (B, 5)),
    ("diagflat", (B[:2], 1)), ("diag_indices", (3,)), ("ix_", ([1, 2], [True, False, True])), ("tri", (3, 4, 1)),
    ("tril", (B, -1)), ("triu", (A, 1)), ("logspace", (0, 2, 5)), ("logspace", (0, 2, 5, False, 2.0)),
    ("geomspace", (1, 256, 9)), ("geomspace", (-1.0, -8.0, 4)), ("vander", (B[0],)),
    ("vander", (np.arange(3), 4, True)), ("polyval", (B[0], A)), ("kron", (B, B[0])), ("kron", (B, A[0])),
    ("cross", (B, B[::-1])), ("cross", (A, A[::-1], 1, 1, 1)), ("average", (B, 0, [1, 2, 3, 4])), ("average", (B,)),
    ("nansum", (np.array([1.0, np.nan]),)), ("nanprod", (np.array([2.0, np.nan]),)),
    ("nanmean", (np.array([[2.0, np.nan], [1.0, 3.0]]), 1)), ("bitwise_and", (6, np.int32([3, 5]))),
    ("bitwise_or", (True, np.array([True, False]))), ("bitwise_xor", (6, 3)), ("bitwise_not", (np.int8([1, -3]),)),
    ("gcd", (np.array([12, -18, 0]), 8)), ("lcm", (np.array([12, -18, 0]), 8)), ("fix", (A * 3,)),
    ("logaddexp2", (A, A - 1)), ("nextafter", (1.0, 2.0)), ("signbit", (np.float32([-0.0, 0.0, -1, np.inf]),)),
    ("signbit", (np.array([-1, 1]),)), ("isneginf", (np.array([-np.inf, np.inf]),)),
    ("isposinf", (np.array([-np.inf, np.inf]),)), ("iscomplex", (np.array([1j, 1 + 0j]),)),
    ("isreal", (np.array([1.0]),)), ("float_power", (2, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args"), NUMPY, ids=[f"{n}-{i}" for i, (n, _) in enumerate(NUMPY)])
def test_numpy_functions(name, args):
    got, want = getattr(tnp, name)(*args), getattr(np, name)(*args)
    if not isinstance(want, (list, tuple)):
        got, want = [got], [want]
    for x, y in zip(got, want, strict=True):
        assert isinstance(x, tf.Tensor) and x.numpy().dtype == np.asarray(y).dtype
        np.testing.assert_allclose(x.numpy(), y, atol=1e-12)


SPECIAL = [0.0, -0.0, 1.0, -3.0, np.inf, -np.inf, np.nan, 1e300, -1e-300, -1e-310, 710.0, -746.0, 1e16]


@pytest.mark.parametrize("name", ["hypot", "logaddexp", "logaddexp2", "heaviside", "arctan2", "maximum"])
def test_special_values(name):
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x, y)
    np.testing.assert_allclose(getattr(tnp, name)(x, y), want, rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    ("name", "at", "slopes"),
    [("logaddexp", 2.0, [0.5, 0.5]), ("logaddexp2", -1.0, [0.5, 0.5]), ("hypot", 0.0, [0.0, 0.0])],
)
def test_gradients_of_equal_numbers(name, at, slopes):
    x, y = tf.constant(at), tf.constant(at)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = getattr(tnp, name)(x, y)
    np.testing.assert_allclose(tape.gradient(z, [x, y]), slopes, rtol=1e-6)


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


def test_types_of_objects():
    assert tnp.iscomplexobj(1j) and tnp.isrealobj([1.0]) and tnp.isscalar(3) and not tnp.isscalar([3])
    assert tnp.result_type(tf.constant(1), np.float32) is tf.float64
    assert tnp.random.poisson(2.0, 3).dtype == tf.int64
    assert tnp.cross([1, 2], [3, 4]).numpy() == -2 and tnp.cross([1, 2], [3, 4, 5]).numpy().tolist() == [
        10,
        -5,
        -2,
    ]
    with pytest.raises(TypeError, match="expected integers"):
        tnp.bitwise_and(1.5, 2)


def test_numpy_behavior_of_tensors():
    """In a separate process, because it stays enabled."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("numpy_behavior.py")], capture_output=True, text=True
    )
    assert done.stdout == "fine\n", done.stderr


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: tnp.tril([1.0, 2.0]), "tril must have rank at least 2; got shape [(]2,[)]"),
        (lambda: tnp.triu(1.0), "triu must have rank at least 2"),
        (lambda: tnp.hsplit(B, 2), "does not result in an equal division: 3 elements along axis 1, 2 parts"),
        (lambda: tnp.vsplit(B, 3), "4 elements along axis 0, 3 parts"),
    ],
)
def test_shapes_that_do_not_fit(call, text):
    with pytest.raises(ValueError, match=text):
        call()


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
    assert [d.size for d in tf.make_tensor_proto(7, shape=[2]).tensor_shape.dim] == [2]
    with pytest.raises(TypeError, match="Expected Tensor's shape"):
        tf.make_tensor_proto([1, 2], shape=[3], verify_shape=True)


TEXTS = [
    ((10.0,), "dtype: DT_FLOAT tensor_shape {} float_val: 10.0", 10.0),
    (([10.0, 20.0],),
     r'dtype: DT_FLOAT tensor_shape { dim { size: 2 } } tensor_content: "\000\000 A\000\000\240A"', [10, 20]),
    ((10, tf.int64), "dtype: DT_INT64 tensor_shape {} int64_val: 10", 10),
    (
        ([1, 2, 3], None, [2, 2]),
        "dtype: DT_INT32 tensor_shape { dim { size: 2 } dim { size: 2 } } int_val: [1, 2, 3]", [[1, 2], [3, 3]],
    ),
    (([True, False],), "dtype: DT_BOOL tensor_shape { dim { size: 2 } } bool_val: true bool_val: false", [True, False]),
    ((1 + 2j,), "dtype: DT_COMPLEX128 tensor_shape {} dcomplex_val: 1 dcomplex_val: 2", 1 + 2j),
    ((1.5, tf.float16), "dtype: DT_HALF tensor_shape {} half_val: 15872", 1.5),
    ((["a", b"b"],), 'dtype: DT_STRING tensor_shape { dim { size: 2 } } string_val: "a" string_val: "b"', [b"a", b"b"]),
    (([], tf.float32), "dtype: DT_FLOAT tensor_shape { dim { size: 0 } }", []),
    ((b"\xff\n\"'",), r"""dtype: DT_STRING tensor_shape {} string_val: "\377\n\"\'" """, b"\xff\n\"'"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "text", "value"), TEXTS)
def test_texts_of_tensor_protos(args, text, value):
    proto = tf.make_tensor_proto(*args)
    tf.test.TestCase().assertProtoEquals(text, proto)
    for again in (proto, type(proto).FromString(proto.SerializeToString())):
        assert tf.make_ndarray(again).tolist() == value
    with pytest.raises(AssertionError):
        tf.test.TestCase().assertProtoEquals(text.replace("DT_", "DT_NO"), proto)


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        ((10.5, tf.int32), TypeError, "Expected int32, but got 10.5 of type 'float'"),
        (("a", tf.int32), TypeError, "Expected int32, but got 'a' of type 'str'"),
        ((1, tf.string), TypeError, "Expected string"), ((None,), ValueError, "None values not supported"),
        (([1, 2, 3], None, [2]), ValueError, "Too many elements provided"),
    ],
)  # fmt: skip
def test_tensor_protos_that_are_refused(args, error, text):
    with pytest.raises(error, match=text):
        tf.make_tensor_proto(*args)


def test_operands_by_name():
    assert (
        tf.experimental.numpy.exp(x=0.0) == 1.0
        and tf.experimental.numpy.add(x1=1.0, x2=2.0) == 3.0
        and tf.experimental.numpy.add(1.0, x2=2.0) == 3.0
    )
    with pytest.raises(TypeError, match="unexpected keyword argument 'y'"):
        tf.experimental.numpy.exp(y=0.0)
