"""`keras.ops.nn`, `math` and `linalg` on gradtape: values, compiled as eager, gradients as differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gradtape as tf
import keras_gradtape  # noqa: F401  before Keras

keras = pytest.importorskip("keras")
from keras_gradtape.src import ops as backend  # noqa: E402  this needs Keras

ops = keras.ops
nn, linalg = backend.nn, backend.linalg
_rng = np.random.default_rng(3)


def _some(*shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    return _rng.uniform(low, high, shape)


X = np.array([[0.3, -1.2, 2.1, -3.3], [1.7, 0.4, -0.6, 6.5]])
M = _some(3, 3) + 3 * np.eye(3)
S = M @ M.T
LINE, IMAGE, VOLUME = _some(2, 7, 3), _some(2, 6, 7, 3), _some(1, 4, 5, 4, 2)
Q, K, V = _some(2, 3, 4, 5), _some(2, 6, 4, 5), _some(2, 6, 4, 5)
PROBABLE = np.exp(X) / np.exp(X).sum(-1, keepdims=True)
MILD, LABELS = (
    np.array([[0.3, 0.2, 0.4, 0.1], [0.25, 0.25, 0.1, 0.4]]),
    np.array([[0.2, 0.5, 1, 0], [0.8, 0.5, 0, 1]]),
)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# Values by NumPy, of one operand.
FORMULAS = [
    ("relu", lambda x: np.maximum(x, 0)), ("relu6", lambda x: np.clip(x, 0, 6)), ("sigmoid", sigmoid),
    ("tanh", np.tanh), ("softplus", lambda x: np.log1p(np.exp(x))), ("softsign", lambda x: x / (1 + abs(x))),
    ("silu", lambda x: x * sigmoid(x)), ("log_sigmoid", lambda x: np.log(sigmoid(x))),
    ("leaky_relu", lambda x: np.where(x > 0, x, 0.2 * x)), ("elu", lambda x: np.where(x > 0, x, np.expm1(x))),
    ("hard_sigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1)), ("hard_silu", lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    ("hard_tanh", lambda x: np.clip(x, -1, 1)), ("hard_shrink", lambda x: np.where(abs(x) > 0.5, x, 0)),
    ("soft_shrink", lambda x: np.sign(x) * np.maximum(abs(x) - 0.5, 0)), ("tanh_shrink", lambda x: x - np.tanh(x)),
    ("squareplus", lambda x: (x + np.sqrt(x * x + 4)) / 2), ("sparse_sigmoid", lambda x: np.clip((x + 1) / 2, 0, 1)),
    ("sparse_plus", lambda x: np.where(x <= -1, 0, np.where(x < 1, (x + 1) ** 2 / 4, x))),
    ("softmax", lambda x: PROBABLE), ("log_softmax", lambda x: np.log(PROBABLE)), ("rsqrt", lambda x: x * 0 + 1),
]  # fmt: skip

# (name, operands, other arguments): floats have gradients.
CALLS = [
    ("selu", [X]), ("gelu", [X]), ("gelu", [X], {"approximate": False}), ("celu", [X], {"alpha": 0.7}),
    ("elu", [X], {"alpha": 0.3}), ("glu", [X]), ("glu", [X], {"axis": 0}), ("threshold", [X, 0.5, 0.1]),
    ("sparsemax", [X]), ("sparsemax", [X], {"axis": 0}), ("softmax", [X], {"axis": 0}), ("softmax", [X], {"axis": None}),
    ("log_softmax", [X], {"axis": None}),
    ("max_pool", [IMAGE, 2]), ("max_pool", [LINE, 3, 2, "same"]), ("average_pool", [IMAGE, (2, 3), 1, "same"]),
    ("average_pool", [VOLUME, 2]), ("adaptive_average_pool", [IMAGE, (4, 3)]), ("adaptive_max_pool", [LINE, 3]),
    ("conv", [IMAGE, _some(3, 2, 3, 4)], {"padding": "same", "strides": 2}),
    ("conv", [IMAGE, _some(2, 2, 3, 4)], {"dilation_rate": (2, 3)}), ("conv", [IMAGE[..., :2], _some(2, 2, 1, 4)]),
    ("conv", [LINE, _some(3, 3, 2)], {"padding": "same", "strides": 2, "dilation_rate": 2}),
    ("conv", [VOLUME, _some(2, 3, 2, 2, 2)]), ("depthwise_conv", [IMAGE, _some(3, 3, 3, 2)], {"padding": "same"}),
    ("separable_conv", [LINE, _some(3, 3, 2), _some(1, 6, 2)], {"strides": 2}),
    ("conv_transpose", [IMAGE, _some(3, 2, 4, 3)], {"strides": 2, "padding": "same"}),
    ("conv_transpose", [LINE, _some(3, 2, 3)], {"strides": 3, "output_padding": 1}),
    ("conv_transpose", [LINE, _some(2, 2, 3)], {"strides": 2, "dilation_rate": 2, "padding": "same"}),
    ("unfold", [_some(2, 3, 5, 6), (2, 3)], {"stride": 2, "padding": 1}),
    ("unfold", [_some(1, 2, 5, 5), 2], {"dilation": 2}),
    ("fold", [_some(2, 12, 6), (3, 4), 2]), ("depth_to_space", [_some(1, 2, 3, 8), 2]),
    ("space_to_depth", [IMAGE[:, :, :6], 2]),
    ("categorical_crossentropy", [PROBABLE, X], {"from_logits": True}), ("categorical_crossentropy", [MILD[::-1], MILD]),
    ("categorical_crossentropy", [LABELS, X], {"from_logits": True, "axis": 0}),
    ("sparse_categorical_crossentropy", [np.array([2, 0]), MILD]),
    ("sparse_categorical_crossentropy", [np.array([[3], [1]]), X], {"from_logits": True}),
    ("binary_crossentropy", [MILD, MILD[::-1]]), ("binary_crossentropy", [PROBABLE, X], {"from_logits": True}),
    ("moments", [IMAGE, [0, 2]], {"keepdims": True}),
    ("batch_normalization", [IMAGE, _some(3), _some(3, low=0.5), -1, _some(3), _some(3)]),
    ("batch_normalization", [IMAGE, _some(6), _some(6, low=0.5), 1, _some(6)]), ("psnr", [X, X[::-1].copy(), 2.0]),
    ("layer_normalization", [IMAGE, _some(3), _some(3)]), ("layer_normalization", [IMAGE, _some(7, 3)], {"axis": (2, 3)}),
    ("rms_normalization", [IMAGE, _some(3)]),
    ("ctc_loss", [np.array([[1, 2, 1]]), _some(1, 5, 4), np.array([3]), np.array([5])]),
    ("dot_product_attention", [Q, K, V]), ("dot_product_attention", [Q, K[:, :, :2], V[:, :, :2]], {"is_causal": True}),
    ("dot_product_attention", [Q, K, V, _some(2, 4, 3, 6), _some(2, 1, 3, 6) > -1], {"scale": 0.3}),
    ("segment_sum", [X, np.array([1, 1])]), ("segment_prod", [X, np.array([1, 0]), 3]),
    ("segment_max", [X, np.array([0, 0]), 1]),
    ("segment_min", [X, np.array([0, 1])]), ("logsumexp", [X], {"axis": 1}), ("cdist", [_some(3, 2), _some(4, 2)]),
    ("extract_sequences", [_some(2, 9), 4, 2]), ("rfft", [_some(2, 8)]), ("stft", [_some(2, 24), 6, 3, 8]),
    ("istft", [(_some(5, 5), _some(5, 5)), 6, 3, 8]), ("irfft", [(_some(2, 5), _some(2, 5))]),
    ("fft2", [(_some(3, 4), _some(3, 4))]),
    ("erf", [X]), ("erfinv", [X / 10]), ("logdet", [M]), ("top_k", [X, 2]),
    ("cholesky", [S]), ("cholesky_inverse", [np.linalg.cholesky(S)]), ("det", [M]), ("inv", [M]),
    ("solve", [M, _some(3)]),
    ("solve", [M, _some(3, 2)]), ("solve_triangular", [M, _some(3)], {"lower": True}), ("qr", [M]), ("pinv", [M[:2]]),
    ("lstsq", [M[:, :2], _some(3)]), ("lu_factor", [M]), ("lu_factor", [M[:, :2]]),
    ("lu_factor", [M[None, :2]]), ("norm", [X]), ("norm", [M], {"ord": "nuc"}),
    ("norm", [M], {"ord": -2, "keepdims": True}), ("norm", [X], {"ord": 3, "axis": 1}),
    ("norm", [M], {"ord": -1, "axis": (1, 0)}),
]  # fmt: skip


def _function(name: str):
    for module in (backend.nn, backend.math, backend.linalg):
        if hasattr(module, name):
            return getattr(module, name)
    raise LookupError(name)


def _id(case) -> str:
    return case[0]


def _leaves(out) -> list:
    return [t for t in tf.nest.flatten(out) if t.dtype.is_floating]


def _parts(case):
    """The function of the float operands only, and these operands."""
    name, operands, *rest = case
    flat = tf.nest.flatten(operands)
    places = [i for i, a in enumerate(flat) if isinstance(a, np.ndarray) and a.dtype == np.float64]

    def call(*values):
        new = dict(zip(places, values, strict=True))
        return _function(name)(
            *tf.nest.pack_sequence_as(operands, [new.get(i, a) for i, a in enumerate(flat)]), **dict(*rest)
        )

    return call, [tf.constant(flat[i]) for i in places]


@pytest.mark.parametrize("case", FORMULAS, ids=_id)
def test_values(case) -> None:
    name, formula = case
    x = X * 0 + 1 if name == "rsqrt" else X
    np.testing.assert_allclose(_function(name)(x), formula(x), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("case", CALLS, ids=_id)
def test_compiled_as_eager(case) -> None:
    call, values = _parts(case)
    compiled = tf.function(lambda *xs: _leaves(call(*xs)), autograph=False)(*values)
    for a, b in zip(compiled, _leaves(call(*values)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("case", [*((n, [X + 0.05]) for n, _ in FORMULAS if n != "rsqrt"), *CALLS], ids=_id)
def test_gradients_are_differences(case) -> None:
    call, values = _parts(case)
    if case[0] == "cholesky":  # reads one triangle, and its gradient is symmetric
        return

    def total(*xs):
        outs = _leaves(call(*xs))
        return sum(tf.reduce_sum(o * np.cos(np.arange(o._numel)).reshape(o.shape)) for o in outs)

    assert tf.test.max_error(*tf.test.compute_gradient(total, values, delta=1e-5)) < 2e-5


@pytest.mark.parametrize(
    "case",
    [c for c in CALLS if "pool" in c[0] or "conv" in c[0] or "_space" in c[0] or "_depth" in c[0]],
    ids=_id,
)
def test_channels_first(case) -> None:
    name, (x, *rest), *kwargs = case
    last = _function(name)(x, *rest, **dict(*kwargs), data_format="channels_last")
    first = _function(name)(np.moveaxis(x, -1, 1), *rest, **dict(*kwargs), data_format="channels_first")
    np.testing.assert_allclose(np.moveaxis(first.numpy(), 1, -1), last, rtol=1e-9, atol=1e-12)


def test_types_and_integers() -> None:
    half = tf.ones([2, 4], "float16")
    for name in ("relu", "softmax", "gelu", "softplus", "hard_sigmoid", "sparsemax"):
        assert _function(name)(half).dtype.name == "float16"
    assert nn.sigmoid(np.array([1, 2])).dtype.name == "float32"
    assert nn.relu(tf.constant([-1, 2])).dtype.name == "int32"
    mean, variance = nn.moments(tf.fill([4], tf.constant(6e4, "float16")) * [1.0, 1, -1, -1], [0])
    assert variance.dtype.name == "float16" and float(variance) == 65504.0
    assert nn.one_hot([0, -1, 2], 3).numpy().tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert nn.multi_hot([[0, 2], [1, 1]], 3, dtype="bool").numpy().tolist() == [
        [True, False, True],
        [False, True, False],
    ]


def test_adaptive_pools_cut_as_torch() -> None:
    x = np.arange(10.0).reshape(1, 10, 1)
    windows = [(0, 3), (2, 5), (5, 8), (7, 10)]
    got = nn.adaptive_average_pool(x, 4).numpy().ravel()
    np.testing.assert_allclose(got, [np.arange(a, b).mean() for a, b in windows])


def test_sparsemax_is_a_distribution() -> None:
    out = nn.sparsemax(np.array([[0.5, 0.5, -3.0], [1.0, 0.4, 0.2]])).numpy()
    np.testing.assert_allclose(out, [[0.5, 0.5, 0], [0.8, 0.2, 0]], atol=1e-12)


def test_losses_see_the_logits_behind_probabilities() -> None:
    x = tf.constant([[200.0, 0.0, -200.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        losses = [
            keras.losses.categorical_crossentropy(np.array([[0.0, 0, 1]]), keras.activations.softmax(x)),
            keras.losses.sparse_categorical_crossentropy(np.array([2]), keras.activations.softmax(x)),
            keras.losses.binary_crossentropy(np.array([[0.0, 1, 1]]), keras.activations.sigmoid(x)),
        ]
    assert [round(float(v[0]), 3) for v in losses] == [400.0, 400.0, round((200 + math.log(2) + 200) / 3, 3)]
    np.testing.assert_allclose(tape.gradient(losses[0], x), [[1, 0, -1]], atol=1e-6)
    np.testing.assert_allclose(tape.gradient(losses[2], x), [[1 / 3, -0.5 / 3, -1 / 3]], atol=1e-6)


@pytest.mark.parametrize(("dtype", "limit"), [("float32", 1e-5), ("bfloat16", 0.02)])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_over_many_keys_is_the_same(dtype: str, limit: float, causal: bool) -> None:
    """It is one op there, but not with a bias."""
    q, k, v = (tf.cast(_some(2, 280, 3, 8), dtype) for _ in range(3))
    mask = _some(2, 1, 280, 280) > 0.3
    mask[0, 0, 200] = False  # a query without a key
    for some in (None, mask):
        one = nn.dot_product_attention(q, k, v, mask=some, is_causal=causal)
        small = nn.dot_product_attention(q, k, v, np.zeros((1, 1, 1, 1), "f4"), some, is_causal=causal)
        assert one.dtype == dtype
        np.testing.assert_allclose(tf.cast(one, "float32"), tf.cast(small, "float32"), rtol=0, atol=limit)


def test_attention_without_a_key_is_a_mean() -> None:
    out = nn.dot_product_attention(Q, K, V, mask=np.zeros((2, 1, 3, 6), bool)).numpy()
    np.testing.assert_allclose(out, np.broadcast_to(V.mean(1, keepdims=True), out.shape), rtol=1e-6)


def test_nothing_is_left_far_below() -> None:
    x = tf.constant([-87.5, -200.0, -np.inf])
    np.testing.assert_array_equal(nn.softplus(x), [0, 0, 0])


def test_ctc_decode_takes_the_first_of_equals() -> None:
    x = np.array([[[0.1, 0.4, 0.2, 0.4], [0.3, -0.3, 0.4, 0.2], [0.3, 0.2, 0.4, 0.3]]])
    labels, scores = nn.ctc_decode(x, [3], "beam_search", beam_width=4, top_paths=2)
    np.testing.assert_array_equal(labels, [[[1, 2, -1]], [[2, -1, -1]]])
    np.testing.assert_allclose(scores, [[-2.426537, -2.435596]], rtol=1e-6)
    labels, scores = nn.ctc_decode(x, [2], merge_repeated=False)
    np.testing.assert_array_equal(labels, [[[1, 2, -1]]])
    np.testing.assert_allclose(scores, [[-0.8]])


def test_empty_segments() -> None:
    out = backend.math.segment_max(np.array([1.0, 2.0]), np.array([0, 2]), 4).numpy()
    np.testing.assert_array_equal(out, [1, -np.inf, 2, -np.inf])


@pytest.mark.parametrize("shape", [(4, 4), (4, 3), (2, 3, 5)])
def test_lu_factor(shape) -> None:
    x = _some(*shape)
    lu, pivots = (t.numpy() for t in linalg.lu_factor(x))
    rows, columns = shape[-2:]
    for matrix, factors, exchanged in zip(
        x.reshape(-1, rows, columns),
        lu.reshape(-1, rows, columns),
        pivots.reshape(-1, min(rows, columns)),
        strict=True,
    ):
        n = min(rows, columns)
        product = (np.tril(factors[:, :n], -1) + np.eye(rows, n)) @ np.triu(factors[:n])
        for i in reversed(range(n)):
            product[[i, exchanged[i]]] = product[[exchanged[i], i]]
        np.testing.assert_allclose(product, matrix, atol=1e-12)


def test_norm_has_a_gradient_at_zero() -> None:
    x = tf.zeros([3])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = ops.norm(x)
    np.testing.assert_array_equal(tape.gradient(y, x), [0, 0, 0])


def test_jvp_of_several() -> None:
    x, y = tf.constant([1.0, 2.0]), tf.constant(3.0)
    out, moved = ops.jvp(lambda a, b: (a * b, b), (x, y), (tf.ones([2]), tf.constant(2.0)))
    np.testing.assert_allclose(out[0], [3, 6])
    np.testing.assert_allclose(moved[0], [5, 7])
    assert float(moved[1]) == 2


# Of Keras 3.15.1 on TensorFlow 2.21, seed 5.
DRAWN = [
    (lambda r: r.uniform((3,), seed=5), [0.06185328960418701, 0.8316690921783447, 0.9735771417617798]),
    (lambda r: r.normal((3,), seed=5), [-2.0553784370422363, 1.158187747001648, 0.19160862267017365]),
    (lambda r: r.truncated_normal((2,), seed=5), [1.158187747001648, 0.19160862267017365]),
    (lambda r: r.randint((3,), 0, 100, seed=5), [83, 10, 57]),
    (lambda r: r.dropout(np.ones(6, "float32"), 0.5, seed=5), [0, 2, 2, 0, 2, 0]),
    (lambda r: r.shuffle(np.arange(6), seed=5), [0, 3, 5, 4, 1, 2]),
    (lambda r: r.categorical(np.zeros((1, 4), "float32"), 5, seed=5), [[1, 3, 0, 2, 3]]),
    (lambda r: r.gamma((2,), 2.0, seed=5), [2.062347650527954, 5.2191057205200195]),
    (lambda r: r.beta((2,), 2.0, 3.0, seed=5), [0.7037739753723145, 0.5319366455078125]),
    (lambda r: r.binomial((3,), 10.0, 0.3, seed=5), [3, 3, 3]),
    (lambda r: r.uniform((2,), seed=3_000_000_000), [0.8224972486495972, 0.5607223510742188]),
]


@pytest.mark.parametrize("case", DRAWN)
def test_random_numbers_are_tensorflows(case) -> None:
    draw, wanted = case
    np.testing.assert_allclose(draw(keras.random), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: nn.conv(np.ones((1, 4, 4, 3)), np.ones((3, 3, 2, 2))), "evenly divisible"),
        (lambda: nn.conv(np.ones((1, 2, 2, 3)), np.ones((3, 3, 3, 2))), "empty output"),
        (lambda: nn.conv(np.ones((1, 4, 4, 3)), np.ones((3, 3, 3, 2)), padding="full"), "padding"),
        (lambda: nn.conv(np.ones((4, 4)), np.ones((3, 3, 3, 2))), "rank"),
        (lambda: nn.depthwise_conv(np.ones((1, 4, 4, 3)), np.ones((3, 3, 2, 1))), "input channels"),
        (lambda: nn.max_pool(np.ones((4, 4)), 2), "rank"),
        (lambda: nn.glu(np.ones(3)), "divisible by 2"),
        (lambda: nn.categorical_crossentropy(np.ones((2, 3)), np.ones((2, 4))), "same shape"),
        (lambda: nn.binary_crossentropy(np.ones((2, 3)), np.ones(2)), "same rank"),
        (lambda: nn.sparse_categorical_crossentropy(np.ones((2, 3)), np.ones((2, 4))), "rank"),
        (lambda: nn.dot_product_attention(np.ones((2, 3)), np.ones((2, 3)), np.ones((2, 3))), "4D"),
        (lambda: nn.ctc_decode(np.ones((1, 2, 3)), [2], strategy="best"), "strategy"),
        (lambda: ops.norm(np.ones((2, 2)), ord=7), "ord"),
        (lambda: ops.norm(np.ones(2), axis=1), "axis"),
    ],
)  # fmt: skip
def test_bad_input(call, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
