"""Random ops: uniform, normal, truncated normal, integers, categorical, gamma, Poisson, binomial, shuffling.

A row takes the stream to draw from as an operand `state`, int64[3] (see `gradtape/_src/tensors/random.py` for
the stream of each call). The public functions are composites over the rows, so they are differentiable with
respect to parameters such as `mean` and `maxval`. Stateless functions are in `stateless.py`.
"""

from __future__ import annotations

import math

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes, errors
from gradtape._src.ops import philox
from gradtape._src.ops.arithmetic import maximum
from gradtape._src.ops.casting import cast
from gradtape._src.ops.creation import convert_to_tensor
from gradtape._src.ops.indexed import gather
from gradtape._src.ops.join import stack, unstack
from gradtape._src.ops.movement import broadcast_to, identity
from gradtape._src.ops.reduction import reduce_sum
from gradtape._src.ops.samples import at, call, ints
from gradtape._src.ops.special import gamma_sample_grad
from gradtape._src.ops.static import array_of
from gradtape._src.ops.table import ANY, FLOAT, composite, opaque
from gradtape._src.tensors import random as _state

__all__ = ["random_bits", "random_normal", "random_uniform", "random_uniform_int", "truncated_normal_op"]

# ---- the rows -----------------------------------------------------------------------------------

_S = ints([42, 7, 3], "int64")
_BIG = ints([-5, 2**40, -2], "int64")  # the counter carries into its upper half
_FLOATS = [
    call(_S, shape=[5]), call(_BIG, shape=[2, 3], dtype="float64"), call(_S, shape=[]),
    call(_S, shape=[0, 3]), call(_S, shape=[3], dtype="float64"),
]  # fmt: skip
_BAD_STATE = [(call(ints([1, 2], "int64"), shape=[2]), "InvalidArgumentError", "must be int64[3]")]

random_uniform = opaque(
    "random_uniform", FLOAT, "state:Index shape:Shape dtype:Dtype=float32", rule=None, xla="random.random_uniform",
    numpy=philox.uniform, samples=_FLOATS, bad=_BAD_STATE,
    doc="Uniform samples from [0, 1), drawn from the stream `state`.",
)  # fmt: skip

random_normal = opaque(
    "random_normal", FLOAT, "state:Index shape:Shape dtype:Dtype=float32", xla="random.random_normal",
    rule=None, tolerance=4,
    numpy=philox.normal, samples=_FLOATS, bad=_BAD_STATE, doc="Standard normal samples, drawn from the stream `state`.",
)  # fmt: skip

truncated_normal_op = opaque(
    "truncated_normal", FLOAT, "state:Index shape:Shape dtype:Dtype=float32", xla="sampling.truncated_normal",
    rule=None, tolerance=4,
    numpy=philox.truncated_normal,
    samples=[call(_S, shape=[5]), call(_S, shape=[2, 3], dtype="float64"), call(_S, shape=[0])],
    bad=_BAD_STATE, doc="Standard normal samples limited to [-2, 2], drawn from the stream `state`.",
)  # fmt: skip

random_uniform_int = opaque(
    "random_uniform_int", ANY, "minval:Free maxval:Free state:Index shape:Shape dtype:Dtype", rule=None,
    numpy=philox.uniform_int, xla="random.random_uniform_int",
    samples=[
        call(ints(-3), ints(20), _S, shape=[6], dtype="int32"),
        call(ints(1), ints(9), _S, shape=[], dtype="int32"),
        call(ints(5, "int64"), ints(10**12, "int64"), _BIG, shape=[2, 3], dtype="int64"),
        call(ints(0), ints(3), _S, shape=[0], dtype="int32"),
    ],
    bad=[(call(ints(5), ints(5), _S, shape=[2], dtype="int32"), "InvalidArgumentError", "minval < maxval")],
    doc="Uniform integers in [minval, maxval), drawn from the stream `state`.",
)  # fmt: skip

random_bits = opaque(
    "random_bits", ANY, "state:Index shape:Shape dtype:Dtype=int32", rule=None, xla="random.random_bits",
    numpy=philox.bits, samples=[
        call(_S, shape=[5]), call(_S, shape=[3], dtype="int64"), call(_BIG, shape=[2, 2], dtype="uint64"),
        call(_S, shape=[3], dtype="uint32"), call(_S, shape=[0]),
    ],
    bad=_BAD_STATE, doc="Uniform integers from the whole range of their type, drawn from the stream `state`.",
)  # fmt: skip

random_permutation = opaque(
    "random_shuffle_perm", ANY, "state:Index n:Int", rule=None, xla="random.random_shuffle_perm",
    numpy=philox.permutation, samples=[call(_S, n=7), call(_S, n=0), call(_BIG, n=2)],
    bad=[(call(_S, n=-1), "InvalidArgumentError", "non-negative")],
    doc="The numbers 0 to n - 1 in random order.",
)  # fmt: skip

categorical_op = opaque(
    "categorical", FLOAT, "logits state:Index num_samples:Int dtype:Dtype=int64", rule=None, xla="random.categorical",
    numpy=philox.categorical,
    samples=[
        call((2, 3), _S, num_samples=5), call((1, 4), _BIG, num_samples=3, dtype="int32"),
        call((2, 3), _S, num_samples=0),
    ],
    bad=[
        (call((3,), _S, num_samples=1), "InvalidArgumentError", "logits should be a matrix"),
        (call((2, 3), _S, num_samples=-1), "InvalidArgumentError", "nonnegative"),
    ],
    doc="Class indices drawn with the probabilities softmax(logits), `num_samples` for each row.",
)  # fmt: skip

_TF = ints([87654321, 5, 0], "int64")  # the stream of TensorFlow's ops with seed=5


def _gamma_rule(g, alpha, state, out, shape):
    """Implicit reparametrisation: as `alpha` changes, each sample moves so that its quantile stays the same."""
    return reduce_sum(g * gamma_sample_grad(alpha, out), list(range(len(shape))))


random_gamma = opaque(
    "random_gamma", FLOAT, "alpha state:Index shape:Shape", xla="sampling.random_gamma",
    rule=(_gamma_rule, None), tolerance=4,
    gradient_samples=[],  # a rejection sampler is not continuous in alpha; see tests/test_random.py
    numpy=philox.recorded([
        [0.027734944165202002, 0.5686103270080161, 2.8233154932905653],
        [0.08037696213740272, 0.5916012535277393, 2.1533925682978055],
    ]),
    samples=[call(at([0.5, 1.0, 3.0]), _TF, shape=[2])],
    bad=[(call(at([0.5]), ints([1], "int64"), shape=[2]), "InvalidArgumentError", "must be int64[3]")],
    doc="Samples from gamma distributions with the shape parameters `alpha`: a tensor `shape + alpha.shape`.",
)  # fmt: skip

random_poisson = opaque(
    "random_poisson", FLOAT, "lam state:Index shape:Shape dtype:Dtype=float32", xla="sampling.random_poisson",
    rule=None,
    numpy=philox.recorded([[0.0, 4.0, 45.0], [0.0, 3.0, 41.0]]),
    samples=[call(at([0.5, 3.0, 40.0]), _TF, shape=[2])],
    bad=[(call(at([0.5]), ints([1], "int64"), shape=[2]), "InvalidArgumentError", "must be int64[3]")],
    doc="Samples from Poisson distributions with the rates `lam`: a tensor `shape + lam.shape`.",
)  # fmt: skip


def _f32(*values):
    return at(values, "float32")


random_binomial = opaque(
    "random_binomial", ANY, "counts:Free probs:Free state:Index shape:Shape dtype:Dtype=int32", rule=None,
    xla="sampling.random_binomial",
    numpy=lambda counts, probs, state, shape, dtype="int32": np.array([[6, 0, 26], [4, 2, 28]], dtype),
    samples=[
        call(_f32(10.0, 20.0, 30.0), _f32(0.5, 0.1, 0.9), ints([0, 0, 89601], "int64"), shape=[2]),
    ],
    bad=[
        (call(_f32(1.0), _f32(0.5), ints([1], "int64"), shape=[2]), "InvalidArgumentError", "must be int64[3]"),
        (call(_f32(1.0, 2.0), _f32(0.5), _S, shape=[2]), "InvalidArgumentError", "one shape"),
    ],
    doc="Samples from binomial distributions, `counts` trials of probability `probs`: a tensor `shape + counts.shape`.",
)  # fmt: skip

stateless_state = opaque(
    "stateless_state", ANY, "seed:Index", rule=None, xla="random.stateless_state",
    numpy=lambda seed: np.append(philox.groups_of((0x02461E293EC8F720, seed[1], seed[0]), 1).view(np.int64)[0], 0),
    samples=[call(ints([1, 2])), call(ints([-3, 2**40], "int64"))],
    bad=[(call(ints([1])), "InvalidArgumentError", "seed must have shape [2]")],
    doc="The stream of a stateless op, from its two seeds, scrambled as TensorFlow does.",
)  # fmt: skip

# ---- from a stream to samples -------------------------------------------------------------------
#
# `streams(count)` gives the stream for `count` numbers: of an op, of a seed, or of a Generator.

_UNIFORM_TYPES = (
    dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64,
)  # fmt: skip


def size_of(shape):
    """The shape as a list of ints, and the number of elements."""
    if shape is None:
        raise ValueError("random: `shape` must be a list of integers; got None.")
    if type(shape) is list and all(type(d) is int for d in shape):
        return shape, math.prod(shape)
    if isinstance(shape, (_core.Tensor, _core.Variable)):
        if not shape.dtype.is_integer:
            raise errors.InvalidArgumentError(f"random: `shape` must be integers; got {shape.dtype.name}.")
        shape = array_of(shape if isinstance(shape, _core.Tensor) else shape._read())
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
    dims, size = size_of(shape)
    return _scaled(random_normal(streams(size), dims, _want_float(dtype)), mean, stddev)


def truncated_normal_of(streams, shape, mean, stddev, dtype):
    dims, size = size_of(shape)
    return _scaled(truncated_normal_op(streams(size), dims, _want_float(dtype)), mean, stddev)


def bits_of(streams, shape, dtype):
    dims, size = size_of(shape)
    return random_bits(streams(size), dims, dtype)


def uniform_of(streams, shape, minval, maxval, dtype):
    dtype = dtypes.as_dtype(dtype)
    if dtype.is_integer:
        if (minval is None) != (maxval is None):
            raise ValueError(
                f"uniform: For integer dtype {dtype}, minval and maxval must be both `None` or both non-`None`; got "
                f"minval={minval} and maxval={maxval}"
            )
        if minval is None:
            return bits_of(streams, shape, dtype)
        lo, hi = convert_to_tensor(minval, dtype), convert_to_tensor(maxval, dtype)
        dims, size = size_of(shape)
        return random_uniform_int(lo, hi, streams(size), dims, dtype)
    if not dtype.is_floating:
        raise ValueError(f"uniform: Argument `dtype` got invalid value {dtype!r}.")
    dims, size = size_of(shape)
    numbers = random_uniform(streams(size), dims, dtype)
    maxval = 1 if maxval is None else maxval
    from_zero = minval is None or (type(minval) in (int, float) and minval == 0)
    if from_zero:
        return numbers if type(maxval) in (int, float) and maxval == 1 else numbers * maxval
    return numbers * (convert_to_tensor(maxval, dtype) - minval) + minval


def gamma_of(streams, sample_shape, alpha, beta):
    dims, size = size_of(sample_shape)
    numbers = random_gamma(alpha, streams(size * alpha._numel), dims)
    # Never 0, so that a logarithm of it is finite.
    tiny = float(np.finfo(np.float32 if alpha.dtype is dtypes.bfloat16 else alpha.dtype.as_numpy_dtype).tiny)
    return maximum(numbers if beta is None else numbers / beta, tiny)


def binomial_parameters(counts, probs):
    """Two parameters, converted to one float type and broadcast to one shape."""
    probs = convert_to_tensor(probs, dtype_hint=dtypes.float32)
    counts = convert_to_tensor(counts, dtype_hint=probs.dtype)
    wide = dtypes.float64 if dtypes.float64 in (probs.dtype, counts.dtype) else dtypes.float32
    shape = np.broadcast_shapes(tuple(counts.shape), tuple(probs.shape))
    return tuple(broadcast_to(cast(t, wide), shape) for t in (counts, probs))


def binomial_of(stream, shape, counts, probs, dtype):
    """`stream(samples, parameters)` returns the stream for that number of samples for each of that number of parameters."""
    counts, probs = binomial_parameters(counts, probs)
    dims, _ = size_of(shape)
    samples = samples_of(dims, counts, "the shape of counts and probs")
    return random_binomial(
        counts, probs, stream(math.prod(samples), counts._numel), samples, dtypes.as_dtype(dtype)
    )


def samples_of(dims, parameter, name):
    """The part of the shape before that of the parameter, with which it must end."""
    cut = len(dims) - parameter.ndim
    if cut < 0 or tuple(dims[cut:]) != tuple(parameter.shape):
        raise errors.InvalidArgumentError(
            f"random: Shape passed in must end with broadcasted shape; expected {name}, {parameter.shape}; got {dims}."
        )
    return dims[:cut]


def _of_op(op, dtype, seed):
    """Streams of a stateful op: another one for each call."""
    return lambda count: _state.op_stream(op, dtype, seed, 256 * count)


def of_seed(seed):
    """Streams of a stateless op: the same for every call."""
    return lambda count: stateless_state(seed)


# ---- tf.random.* --------------------------------------------------------------------------------


@composite("random.normal")
def normal(shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None, name=None):
    """Samples from a normal distribution. Differentiable with respect to `mean` and `stddev`.

    Args:
      shape: the shape of the result.
      mean, stddev: numbers or tensors that broadcast with `shape`.
      dtype: a float type.
      seed: the op seed, see `tf.random.set_seed`.
    """
    return normal_of(_of_op("normal", dtype, seed), shape, mean, stddev, dtype)


@composite("random.truncated_normal")
def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None, name=None):
    """Samples from a normal distribution, limited to two standard deviations from the mean. Arguments as in `normal`."""
    return truncated_normal_of(_of_op("truncated_normal", dtype, seed), shape, mean, stddev, dtype)


@composite("random.uniform")
def uniform(shape, minval=0, maxval=None, dtype=dtypes.float32, seed=None, name=None):
    """Samples from a uniform distribution over [minval, maxval), floats in [0, 1) by default.

    Differentiable with respect to `minval` and `maxval`.

    Raises:
      ValueError: for integers without `maxval`, or a type that is neither float nor int32/int64.
    """
    dtype = dtypes.as_dtype(dtype)
    if dtype not in _UNIFORM_TYPES:
        raise ValueError(
            f"uniform: Argument `dtype` got invalid value {dtype}. Accepted dtypes are {_UNIFORM_TYPES}."
        )
    if dtype.is_integer and maxval is None:
        raise ValueError(f"uniform: Must specify maxval for integer dtype {dtype!r}")
    return uniform_of(_of_op("uniform", dtype, seed), shape, minval, maxval, dtype)


@composite("random.gamma")
def gamma(shape, alpha, beta=None, dtype=dtypes.float32, seed=None, name=None):
    """Samples from gamma distributions with shape `alpha` and rate `beta`: `shape + broadcast(alpha, beta).shape`.

    Differentiable with respect to both; `alpha` through implicit reparametrisation.
    """
    alpha, beta = gamma_parameters(alpha, beta, dtype)
    return gamma_of(_of_op("gamma", alpha.dtype, seed), shape, alpha, beta)


def gamma_parameters(alpha, beta, dtype):
    alpha = convert_to_tensor(alpha, dtype)
    if beta is None:
        return alpha, None
    beta = convert_to_tensor(beta, dtype)
    if alpha.shape != beta.shape:
        alpha = broadcast_to(alpha, np.broadcast_shapes(tuple(alpha.shape), tuple(beta.shape)))
    return alpha, beta


@composite("random.beta")
def beta(shape, alpha, beta, dtype=dtypes.float32, seed=None, name=None):
    """Samples from beta distributions with parameters `alpha`, `beta`: `shape + broadcast(alpha, beta).shape`.

    Differentiable with respect to both. TensorFlow has this in TensorFlow Probability only.
    """
    alpha, beta = convert_to_tensor(alpha, dtype), convert_to_tensor(beta, dtype)
    common = np.broadcast_shapes(tuple(alpha.shape), tuple(beta.shape))
    parameters = stack([broadcast_to(alpha, common), broadcast_to(beta, common)])
    x = gamma_of(_of_op("beta", parameters.dtype, seed), shape, parameters, None)
    first, second = unstack(x, axis=len(size_of(shape)[0]))
    return first / (first + second)


@composite("random.poisson")
def poisson(shape, lam, dtype=dtypes.float32, seed=None, name=None):
    """Samples from Poisson distributions with the rates `lam`: a tensor `shape + lam.shape`. No gradient."""
    lam, dtype = convert_to_tensor(lam, dtype_hint=dtypes.float32), dtypes.as_dtype(dtype)
    dims, size = size_of(shape)
    return random_poisson(lam, _of_op("poisson", dtype, seed)(size * lam._numel), dims, dtype)


@composite("random.categorical")
def categorical(logits, num_samples, dtype=None, seed=None, name=None):
    """Class indices drawn with the probabilities softmax(logits): a tensor `[batch, num_samples]`."""
    logits = convert_to_tensor(logits)
    dtype = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
    num_samples = int(num_samples)
    steps = 512 * (logits.shape[0] if logits.ndim == 2 else 0) * (-(-num_samples // 4) * 4)
    return categorical_op(logits, _state.op_stream("categorical", dtype, seed, steps), num_samples, dtype)


@composite("random.shuffle")
def shuffle(value, seed=None, name=None):
    """`value` with the slices along its first axis in random order."""
    x = convert_to_tensor(value)
    if x.ndim == 0 or x.shape[0] < 2:
        _state.next_seeds(seed)
        return identity(x)
    n = x.shape[0]
    state = _state.op_stream("shuffle", x.dtype, seed, (n + 2) // 4)
    return gather(x, random_permutation(state, n))


@composite("random.stateless_uniform")
def stateless_uniform(shape, seed, minval=0, maxval=None, dtype=dtypes.float32, name=None, alg="auto_select"):
    """As `uniform`; the same two seeds always give the same numbers.

    Integers come from their whole range if both bounds are None.
    """
    _state.want_philox(alg)
    return uniform_of(of_seed(seed), shape, minval, maxval, dtype)
