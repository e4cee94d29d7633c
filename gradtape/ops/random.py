"""Random ops: uniform, normal, truncated normal, integers, categorical, gamma, Poisson, shuffling.

A row takes the stream to draw from as an operand `state`, int64[3] (`gradtape/random.py` says
which call gets which stream). The public functions are composites over the rows, so parameters
such as `mean` and `maxval` are differentiable by themselves.
"""

from __future__ import annotations

import math

import numpy as np

from gradtape import _core, dtypes
from gradtape import random as _state
from gradtape.ops.samples import at, call, ints
from gradtape.ops.table import ANY, FLOAT, composite, opaque

__all__ = ["random_bits", "random_normal", "random_uniform", "random_uniform_int", "truncated_normal_op"]

# ---- the reference: Philox4x32-10 in NumPy ------------------------------------------------------


def _philox(state, groups):
    """The random bits of groups 0, 1, ... of a stream: uint32[groups, 4]."""
    key, high, low = (int(s) & 2**64 - 1 for s in np.asarray(state).tolist())
    number = [(high << 64) + low + g for g in range(groups)]
    counter = [np.array([n >> 32 * i & 0xFFFFFFFF for n in number], np.uint64) for i in range(4)]
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        p0, p1 = counter[0] * np.uint64(0xD2511F53), counter[2] * np.uint64(0xCD9E8D57)
        counter = [
            p1 >> half ^ counter[1] ^ np.uint64(k0),
            p1 & mask,
            p0 >> half ^ counter[3] ^ np.uint64(k1),
            p0 & mask,
        ]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(counter, 1).astype(np.uint32)


def _floats(bits):
    return ((bits & np.uint32(0x7FFFFF)) | np.uint32(0x3F800000)).view(np.float32).astype(float) - 1


def _np_uniform(state, shape, dtype="float32"):
    size = math.prod(np.atleast_1d(shape).tolist())
    if dtype == "float64":
        b = _philox(state, (size + 1) // 2).reshape(-1, 2).astype(np.uint64)
        x = ((b[:, 0] & np.uint64(0xFFFFF)) << np.uint64(32) | b[:, 1] | np.uint64(1023 << 52)).view(
            np.float64
        ) - 1
        return x[:size].reshape(shape)
    return _floats(_philox(state, (size + 3) // 4).reshape(-1))[:size].reshape(shape)


def _np_normal(state, shape, dtype="float32"):
    size = math.prod(np.atleast_1d(shape).tolist())
    wide = dtype == "float64"
    groups = (size + 1) // 2 if wide else (size + 3) // 4
    u = _np_uniform(state, (groups if wide else 2 * groups, 2), dtype)
    radius = np.sqrt(-2 * np.log(np.maximum(u[:, 0], 1e-7)))
    angle = 2 * np.pi * u[:, 1]
    return np.stack([np.sin(angle) * radius, np.cos(angle) * radius], 1).reshape(-1)[:size].reshape(shape)


def _np_truncated(state, shape, dtype="float32"):
    size = math.prod(np.atleast_1d(shape).tolist())
    per_group = 2 if dtype == "float64" else 4
    out = []
    key, high, low = np.asarray(state).tolist()
    for g in range(-(-size // per_group)):
        some = _np_normal((key, high, low + g * per_group * 64), (per_group * 16,), dtype)
        out.extend(some[np.abs(some) < 2][:per_group])
    return np.array(out[:size]).reshape(shape)


def _np_bits(state, shape, dtype="int32"):
    size = math.prod(np.atleast_1d(shape).tolist())
    kind = np.dtype(dtype)
    b = _philox(state, (size + 1) // 2 if kind.itemsize == 8 else (size + 3) // 4)
    unsigned = (
        b.reshape(-1)
        if kind.itemsize == 4
        else (b.astype(np.uint64)[:, ::2] | b.astype(np.uint64)[:, 1::2] << np.uint64(32)).reshape(-1)
    )
    return unsigned[:size].reshape(shape).view(kind)


def _np_uniform_int(minval, maxval, state, shape, dtype):
    kind = np.dtype(dtype)
    bits = _np_bits(state, shape, "u" + kind.name.lstrip("u"))
    return (bits % bits.dtype.type(int(maxval) - int(minval))).astype(kind) + kind.type(minval)


def _np_permutation(state, n):
    bits = _philox(state, n // 4 + 1).reshape(-1).tolist()
    p = list(range(n))
    for i in range(n - 1):
        k = i + bits[i] % (n - i)
        p[i], p[k] = p[k], p[i]
    return np.array(p, np.int64)


def _np_categorical(logits, state, num_samples, dtype="int64"):
    cdf = np.cumsum(np.exp(logits - logits.max(-1, keepdims=True)), -1)
    u = _np_uniform(state, (len(logits), num_samples), "float64") * cdf[:, -1:]
    return np.array([np.searchsorted(c, x, "right") for c, x in zip(cdf, u, strict=True)], dtype)


def _recorded(value):
    """A reference for samplers that reject: the numbers of TensorFlow for the sample of the row."""
    return lambda *operands, shape, **attrs: np.broadcast_to(np.array(value), [*shape, *operands[0].shape])


# ---- the rows -----------------------------------------------------------------------------------

_S = ints([42, 7, 3], "int64")
_BIG = ints([-5, 2**40, -2], "int64")  # the counter carries into its upper half
_FLOATS = [
    call(_S, shape=[5]), call(_BIG, shape=[2, 3], dtype="float64"), call(_S, shape=[]),
    call(_S, shape=[0, 3]), call(_S, shape=[3], dtype="float64"),
]  # fmt: skip
_BAD_STATE = [(call(ints([1, 2], "int64"), shape=[2]), "InvalidArgumentError", "must be int64[3]")]

random_uniform = opaque(
    "random_uniform", FLOAT, "state:Index shape:Shape dtype:Dtype=float32", rule=None,
    numpy=_np_uniform, samples=_FLOATS, bad=_BAD_STATE,
    doc="Uniform numbers in [0, 1) from the stream `state`.",
)  # fmt: skip

random_normal = opaque(
    "random_normal", FLOAT, "state:Index shape:Shape dtype:Dtype=float32", rule=None, tolerance=4,
    numpy=_np_normal, samples=_FLOATS, bad=_BAD_STATE, doc="Standard normal numbers from the stream `state`.",
)  # fmt: skip

truncated_normal_op = opaque(
    "truncated_normal", FLOAT, "state:Index shape:Shape dtype:Dtype=float32", rule=None, tolerance=4,
    numpy=_np_truncated,
    samples=[call(_S, shape=[5]), call(_S, shape=[2, 3], dtype="float64"), call(_S, shape=[0])],
    bad=_BAD_STATE, doc="Standard normal numbers between -2 and 2 from the stream `state`.",
)  # fmt: skip

random_uniform_int = opaque(
    "random_uniform_int", ANY, "minval:Free maxval:Free state:Index shape:Shape dtype:Dtype", rule=None,
    numpy=_np_uniform_int,
    samples=[
        call(ints(-3), ints(20), _S, shape=[6], dtype="int32"),
        call(ints(1), ints(9), _S, shape=[], dtype="int32"),
        call(ints(5, "int64"), ints(10**12, "int64"), _BIG, shape=[2, 3], dtype="int64"),
        call(ints(0), ints(3), _S, shape=[0], dtype="int32"),
    ],
    bad=[(call(ints(5), ints(5), _S, shape=[2], dtype="int32"), "InvalidArgumentError", "minval < maxval")],
    doc="Integers in [minval, maxval) from the stream `state`.",
)  # fmt: skip

random_bits = opaque(
    "random_bits", ANY, "state:Index shape:Shape dtype:Dtype=int32", rule=None,
    numpy=_np_bits, samples=[
        call(_S, shape=[5]), call(_S, shape=[3], dtype="int64"), call(_BIG, shape=[2, 2], dtype="uint64"),
        call(_S, shape=[3], dtype="uint32"), call(_S, shape=[0]),
    ],
    bad=_BAD_STATE, doc="Integers from the whole range of their type from the stream `state`.",
)  # fmt: skip

random_permutation = opaque(
    "random_shuffle_perm", ANY, "state:Index n:Int", rule=None,
    numpy=_np_permutation, samples=[call(_S, n=7), call(_S, n=0), call(_BIG, n=2)],
    bad=[(call(_S, n=-1), "InvalidArgumentError", "non-negative")],
    doc="The numbers 0 to n - 1 in random order.",
)  # fmt: skip

categorical_op = opaque(
    "categorical", FLOAT, "logits state:Index num_samples:Int dtype:Dtype=int64", rule=None,
    numpy=_np_categorical,
    samples=[
        call((2, 3), _S, num_samples=5), call((1, 4), _BIG, num_samples=3, dtype="int32"),
        call((2, 3), _S, num_samples=0),
    ],
    bad=[
        (call((3,), _S, num_samples=1), "InvalidArgumentError", "logits should be a matrix"),
        (call((2, 3), _S, num_samples=-1), "InvalidArgumentError", "nonnegative"),
    ],
    doc="Class numbers drawn with the probabilities softmax(logits), `num_samples` for each row.",
)  # fmt: skip

_TF = ints([87654321, 5, 0], "int64")  # the stream of TensorFlow's ops with seed=5

random_gamma = opaque(
    "random_gamma", FLOAT, "alpha state:Index shape:Shape", rule=None, tolerance=4,
    numpy=_recorded([
        [0.027734944165202002, 0.5686103270080161, 2.8233154932905653],
        [0.08037696213740272, 0.5916012535277393, 2.1533925682978055],
    ]),
    samples=[call(at([0.5, 1.0, 3.0]), _TF, shape=[2])],
    bad=[(call(at([0.5]), ints([1], "int64"), shape=[2]), "InvalidArgumentError", "must be int64[3]")],
    doc="Gamma numbers with the shape parameters `alpha`: a tensor `shape + alpha.shape`. No gradient yet.",
)  # fmt: skip

random_poisson = opaque(
    "random_poisson", FLOAT, "lam state:Index shape:Shape dtype:Dtype=float32", rule=None,
    numpy=_recorded([[0.0, 4.0, 45.0], [0.0, 3.0, 41.0]]),
    samples=[call(at([0.5, 3.0, 40.0]), _TF, shape=[2])],
    bad=[(call(at([0.5]), ints([1], "int64"), shape=[2]), "InvalidArgumentError", "must be int64[3]")],
    doc="Poisson numbers with the rates `lam`: a tensor `shape + lam.shape`.",
)  # fmt: skip

stateless_state = opaque(
    "stateless_state", ANY, "seed:Index", rule=None,
    numpy=lambda seed: np.append(_philox((0x02461E293EC8F720, seed[1], seed[0]), 1).view(np.int64)[0], 0),
    samples=[call(ints([1, 2])), call(ints([-3, 2**40], "int64"))],
    bad=[(call(ints([1])), "InvalidArgumentError", "seed must have shape [2]")],
    doc="The stream of a stateless op: its two seeds, scrambled as TensorFlow does.",
)  # fmt: skip

# ---- from a stream to numbers -------------------------------------------------------------------
#
# `streams(count)` gives the stream for `count` numbers: of an op, of a seed, or of a Generator.

_UNIFORM_TYPES = (
    dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64,
)  # fmt: skip


def _size(shape):
    """The shape as a list of ints, and the number of elements."""
    if type(shape) is list and all(type(d) is int for d in shape):
        return shape, math.prod(shape)
    if isinstance(shape, (_core.Tensor, _core.Variable)):
        shape = (shape if isinstance(shape, _core.Tensor) else shape._read()).numpy()
    dims = (
        [shape]
        if isinstance(shape, int)
        else np.asarray(shape).reshape(-1).tolist()
        if isinstance(shape, np.ndarray)
        else list(shape)
    )
    dims = [int(d) for d in dims]
    return dims, math.prod(dims)


def _scaled(numbers, mean, stddev):
    plain = type(mean) in (int, float) and type(stddev) in (int, float)
    return numbers if plain and mean == 0 and stddev == 1 else numbers * stddev + mean


def _want_float(dtype):
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise TypeError(f"random: these numbers are floats; expected a floating dtype; got {dtype!r}.")
    return dtype


def normal_of(streams, shape, mean, stddev, dtype):
    dims, size = _size(shape)
    return _scaled(random_normal(streams(size), dims, _want_float(dtype)), mean, stddev)


def truncated_normal_of(streams, shape, mean, stddev, dtype):
    dims, size = _size(shape)
    return _scaled(truncated_normal_op(streams(size), dims, _want_float(dtype)), mean, stddev)


def bits_of(streams, shape, dtype):
    dims, size = _size(shape)
    return random_bits(streams(size), dims, dtype)


def uniform_of(streams, shape, minval, maxval, dtype):
    from gradtape import ops

    dtype = dtypes.as_dtype(dtype)
    if dtype.is_integer:
        if (minval is None) != (maxval is None):
            raise ValueError(
                f"For integer dtype {dtype}, minval and maxval must be both `None` or both non-`None`; got "
                f"minval={minval} and maxval={maxval}"
            )
        if minval is None:
            return bits_of(streams, shape, dtype)
        lo, hi = ops.convert_to_tensor(minval, dtype), ops.convert_to_tensor(maxval, dtype)
        dims, size = _size(shape)
        return random_uniform_int(lo, hi, streams(size), dims, dtype)
    dims, size = _size(shape)
    numbers = random_uniform(streams(size), dims, _want_float(dtype))
    maxval = 1 if maxval is None else maxval
    from_zero = minval is None or (type(minval) in (int, float) and minval == 0)
    if from_zero:
        return numbers if type(maxval) in (int, float) and maxval == 1 else numbers * maxval
    return numbers * (ops.convert_to_tensor(maxval, dtype) - minval) + minval


def gamma_of(streams, sample_shape, alpha, beta):
    from gradtape import ops

    dims, size = _size(sample_shape)
    numbers = random_gamma(alpha, streams(size * alpha._numel), dims)
    # Never 0, so that a logarithm of it is finite.
    tiny = float(np.finfo(np.float32 if alpha.dtype is dtypes.bfloat16 else alpha.dtype.as_numpy_dtype).tiny)
    return ops.maximum(numbers if beta is None else numbers / beta, tiny)


def _of_op(op, dtype, seed):
    """Streams of a stateful op."""
    return lambda count: _state.op_stream(op, dtype, seed, 256 * count)


def _of_seed(seed):
    """Streams of a stateless op: always the same."""
    return lambda count: stateless_state(seed)


# ---- tf.random.* --------------------------------------------------------------------------------


@composite("random.normal")
def normal(shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None, name=None):
    """Normal numbers, differentiable by `mean` and `stddev`.

    Args:
      shape: the shape of the result.
      mean, stddev: numbers or tensors that broadcast with `shape`.
      dtype: a float type.
      seed: the op seed, see `tf.random.set_seed`.
    """
    return normal_of(_of_op("normal", dtype, seed), shape, mean, stddev, dtype)


@composite("random.truncated_normal")
def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None, name=None):
    """Normal numbers; those more than two standard deviations from the mean are drawn again."""
    return truncated_normal_of(_of_op("truncated_normal", dtype, seed), shape, mean, stddev, dtype)


@composite("random.uniform")
def uniform(shape, minval=0, maxval=None, dtype=dtypes.float32, seed=None, name=None):
    """Uniform numbers in [minval, maxval), differentiable by both; floats in [0, 1) by default.

    Raises:
      ValueError: for integers without `maxval`, or a type that is neither float nor int32/int64.
    """
    dtype = dtypes.as_dtype(dtype)
    if dtype not in _UNIFORM_TYPES:
        raise ValueError(f"Argument `dtype` got invalid value {dtype}. Accepted dtypes are {_UNIFORM_TYPES}.")
    if dtype.is_integer and maxval is None:
        raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
    return uniform_of(_of_op("uniform", dtype, seed), shape, minval, maxval, dtype)


@composite("random.gamma")
def gamma(shape, alpha, beta=None, dtype=dtypes.float32, seed=None, name=None):
    """Gamma numbers with shape `alpha` and rate `beta`: a tensor `shape + broadcast(alpha, beta).shape`.

    Differentiable by `beta`; the gradient by `alpha` is not there yet.
    """
    alpha, beta = _gamma_parameters(alpha, beta, dtype)
    return gamma_of(_of_op("gamma", alpha.dtype, seed), shape, alpha, beta)


def _gamma_parameters(alpha, beta, dtype):
    from gradtape import ops

    alpha = ops.convert_to_tensor(alpha, dtype)
    if beta is None:
        return alpha, None
    beta = ops.convert_to_tensor(beta, dtype)
    if alpha.shape != beta.shape:
        alpha = ops.broadcast_to(alpha, np.broadcast_shapes(tuple(alpha.shape), tuple(beta.shape)))
    return alpha, beta


@composite("random.poisson")
def poisson(shape, lam, dtype=dtypes.float32, seed=None, name=None):
    """Poisson numbers with the rates `lam`: a tensor `shape + lam.shape`. No gradient."""
    from gradtape import ops

    lam, dtype = ops.convert_to_tensor(lam, dtype_hint=dtypes.float32), dtypes.as_dtype(dtype)
    dims, size = _size(shape)
    return random_poisson(lam, _of_op("poisson", dtype, seed)(size * lam._numel), dims, dtype)


@composite("random.categorical")
def categorical(logits, num_samples, dtype=None, seed=None, name=None):
    """Class numbers drawn with the probabilities softmax(logits): a tensor `[batch, num_samples]`."""
    from gradtape import ops

    logits = ops.convert_to_tensor(logits)
    dtype = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
    num_samples = int(num_samples)
    steps = 512 * (logits.shape[0] if logits.ndim == 2 else 0) * (-(-num_samples // 4) * 4)
    return categorical_op(logits, _state.op_stream("categorical", dtype, seed, steps), num_samples, dtype)


@composite("random.shuffle")
def shuffle(value, seed=None, name=None):
    """`value` with its rows (first axis) in random order."""
    from gradtape import ops

    x = ops.convert_to_tensor(value)
    if x.ndim == 0 or x.shape[0] < 2:
        _state.next_seeds(seed)
        return ops.identity(x)
    n = x.shape[0]
    state = _state.op_stream("shuffle", x.dtype, seed, (n + 2) // 4)
    return ops.gather(x, random_permutation(state, n))


# ---- stateless ----------------------------------------------------------------------------------


@composite("random.stateless_normal")
def stateless_normal(shape, seed, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None, alg="auto_select"):
    """As `normal`; the same two seeds always give the same numbers."""
    return normal_of(_of_seed(seed), shape, mean, stddev, dtype)


@composite("random.stateless_truncated_normal")
def stateless_truncated_normal(
    shape, seed, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None, alg="auto_select"
):
    """As `truncated_normal`; the same two seeds always give the same numbers."""
    return truncated_normal_of(_of_seed(seed), shape, mean, stddev, dtype)


@composite("random.stateless_uniform")
def stateless_uniform(shape, seed, minval=0, maxval=None, dtype=dtypes.float32, name=None, alg="auto_select"):
    """As `uniform`; the same two seeds always give the same numbers.

    Integers come from their whole range if both bounds are None.
    """
    return uniform_of(_of_seed(seed), shape, minval, maxval, dtype)


@composite("random.stateless_categorical")
def stateless_categorical(logits, num_samples, seed, dtype=dtypes.int64, name=None):
    """As `categorical`; the same two seeds always give the same numbers."""
    return categorical_op(logits, stateless_state(seed), num_samples, dtype)


@composite("random.stateless_gamma")
def stateless_gamma(shape, seed, alpha, beta=None, dtype=dtypes.float32, name=None):
    """As `gamma`, for a `shape` that ends with the shape of the parameters; the same seeds always
    give the same numbers."""
    alpha, beta = _gamma_parameters(alpha, beta, dtype)
    dims, _ = _size(shape)
    return gamma_of(_of_seed(seed), _without(dims, alpha, "alpha"), alpha, beta)


@composite("random.stateless_poisson")
def stateless_poisson(shape, seed, lam, dtype=dtypes.int32, name=None):
    """As `poisson`, for rates that broadcast to `shape`; the same two seeds, the same numbers."""
    from gradtape import ops

    lam = ops.convert_to_tensor(lam, dtype_hint=dtypes.float32)
    dims, _ = _size(shape)
    if tuple(dims[len(dims) - lam.ndim :]) != tuple(lam.shape):
        lam = ops.broadcast_to(lam, dims)
    return random_poisson(lam, stateless_state(seed), _without(dims, lam, "lam"), dtype)


def _without(dims, parameter, name):
    """The part of a shape that is left of the parameter's."""
    cut = len(dims) - parameter.ndim
    if cut < 0 or tuple(dims[cut:]) != tuple(parameter.shape):
        raise ValueError(
            f"random: `shape` must end with the shape of `{name}`; got {dims} and {parameter.shape}."
        )
    return dims[:cut]


@composite("random.split random.experimental.stateless_split")
def split(seed, num=2, alg="auto_select"):
    """`num` new seeds for stateless ops from one: an integer tensor `[num, 2]`."""
    from gradtape import ops

    seed = ops.convert_to_tensor(seed)
    return bits_of(_of_seed(seed), [num, 2], seed.dtype)


@composite("random.fold_in random.experimental.stateless_fold_in")
def fold_in(seed, data, alg="auto_select"):
    """A new seed for stateless ops from a seed and a number."""
    from gradtape import ops

    data = ops.convert_to_tensor(data)
    return ops.stack([bits_of(_of_seed(seed), [], data.dtype), data])


for _name in ("Generator", "Algorithm", "create_rng_state", "get_global_generator", "set_global_generator"):
    composite(f"random.experimental.{_name}")(getattr(_state, _name))
