"""Candidate sampling: losses over many classes, computed from the true ones and a few sampled ones."""

from __future__ import annotations

import numpy as np

from gradtape._src.base import dtypes, errors
from gradtape._src.ops import casting
from gradtape._src.ops.comparison import equal
from gradtape._src.ops.contraction import matmul
from gradtape._src.ops.creation import ones
from gradtape._src.ops.embedding import embedding_lookup
from gradtape._src.ops.exponential import log
from gradtape._src.ops.join import concat
from gradtape._src.ops.losses import sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits
from gradtape._src.ops.movement import expand_dims, reshape, stop_gradient
from gradtape._src.ops.reduction import reduce_any, reduce_sum
from gradtape._src.ops.samples import at, call, ints
from gradtape._src.ops.static import array_of
from gradtape._src.ops.table import ANY, composite, opaque
from gradtape._src.tensors import random as _state
from gradtape._src.tensors.conversion import as_tensor

__all__ = ["candidate_sampler", "nce_loss", "sampled_softmax_loss"]

_UNIFORM, _LOG_UNIFORM, _WEIGHTS, _COUNTS = range(4)
_STATE = ints([87654321, 3, 0], "int64")
_TRUE = ints([[1, 2], [3, 4]], "int64")
_LOWEST = float(np.finfo(np.float32).min)

# What TensorFlow draws for the samples of the row.
_RECORDED = {
    _UNIFORM: ([15, 0, 3, 8, 17, 14], [[0.3, 0.3], [0.3, 0.3]], [0.3] * 6),
    _LOG_UNIFORM: (
        [0, 10, 6, 2, 9, 11], [[0.6812595725, 0.5479988456], [0.4560764432, 0.3898347616]],
        [0.87340343, 0.2070284784, 0.3014885485, 0.5479988456, 0.2246553302, 0.1919570416],
    ),
    _WEIGHTS: (
        [1, 5, 2, 4], [[0.380952388, 0.571428597], [0.761904776, 0.952380955]],
        [0.380952388, 1.142857194, 0.571428597, 0.952380955],
    ),
    _COUNTS: ([5, 1, 4, 2], [[2 / 3] * 2] * 2, [2 / 3] * 4),
}  # fmt: skip


def _np_sampler(true_classes, weights, state, kind, num_sampled, unique, range_max):
    sampled, expected, weight = _RECORDED[kind]
    return np.array(sampled, np.int64), np.array(expected), np.array(weight)


_NONE = at([], "float64")

candidate_sampler = opaque(
    "candidate_sampler", ANY,
    "true_classes:Index weights:Free state:Index kind:Int num_sampled:Int unique:Bool range_max:Int",
    many=True, rule=None, numpy=_np_sampler,
    samples=[
        call(_TRUE, _NONE, _STATE, kind=_UNIFORM, num_sampled=6, unique=True, range_max=20),
        call(_TRUE, _NONE, _STATE, kind=_LOG_UNIFORM, num_sampled=6, unique=True, range_max=20),
        call(_TRUE, at([1.0, 2, 3, 4, 5, 6], "float64"), _STATE, kind=_WEIGHTS, num_sampled=4, unique=True, range_max=6),
        call(_TRUE, at([1.0] * 6, "float64"), _STATE, kind=_COUNTS, num_sampled=4, unique=True, range_max=6),
    ],
    bad=[
        (call(true, _NONE, _STATE, kind=0, num_sampled=n, unique=True, range_max=4), "InvalidArgumentError", words)
        for true, n, words in (
            (_TRUE, 30, "range is too small"), (_TRUE, 2, "received 4"), (ints([1, 2]), 2, "must be a matrix"),
        )
    ],
    doc="Classes sampled from [0, range_max), and the expected counts of the true and of the sampled classes.",
)  # fmt: skip


def _sampled(op, kind, true_classes, num_true, num_sampled, unique, range_max, seed, weights=()):
    classes = as_tensor(true_classes)
    if classes.dtype is not dtypes.int64:
        classes = casting.cast(classes, dtypes.int64)
    if classes.ndim != 2 or classes.shape[1] != num_true:
        raise errors.InvalidArgumentError(
            f"{op}: true_classes must have num_true columns; expected shape [batch, {num_true}]; got {classes.shape}."
        )
    state = _state.op_stream(
        f"{op} {num_true} {num_sampled} {unique} {range_max}", None, seed, 512 * num_sampled
    )
    weights = as_tensor(np.asarray(weights, np.float64))
    return candidate_sampler(classes, weights, state, kind, int(num_sampled), bool(unique), int(range_max))


@composite("random.uniform_candidate_sampler")
def uniform_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, seed=None, name=None):
    """Samples `num_sampled` classes from [0, range_max), all equally likely.

    Returns:
      The sampled classes, and the expected count of each true class and of each sampled class among them.
    """
    return _sampled("uniform", _UNIFORM, true_classes, num_true, num_sampled, unique, range_max, seed)


@composite("random.log_uniform_candidate_sampler")
def log_uniform_candidate_sampler(
    true_classes, num_true, num_sampled, unique, range_max, seed=None, name=None
):
    """As `uniform_candidate_sampler`; class k has the probability `log((k + 2) / (k + 1)) / log(range_max + 1)`.

    This approximates the frequencies of words in a vocabulary that is sorted by frequency.
    """
    return _sampled("log_uniform", _LOG_UNIFORM, true_classes, num_true, num_sampled, unique, range_max, seed)


_learned: dict = {}


@composite("random.learned_unigram_candidate_sampler nn.learned_unigram_candidate_sampler")
def learned_unigram_candidate_sampler(
    true_classes, num_true, num_sampled, unique, range_max, seed=None, name=None
):
    """As `uniform_candidate_sampler`; classes have the frequencies of the true classes of earlier calls."""
    arguments = (num_true, num_sampled, unique, range_max, seed)
    counts = _learned.setdefault(arguments, np.ones(range_max))
    out = _sampled("learned", _COUNTS, true_classes, num_true, num_sampled, unique, range_max, seed, counts)
    np.add.at(counts, array_of(as_tensor(true_classes)).reshape(-1), 1)
    return out


@composite("random.fixed_unigram_candidate_sampler nn.fixed_unigram_candidate_sampler")
def fixed_unigram_candidate_sampler(
    true_classes, num_true, num_sampled, unique, range_max, vocab_file="", distortion=1.0, num_reserved_ids=0,
    num_shards=1, shard=0, unigrams=(), seed=None, name=None,
):  # fmt: skip
    """As `uniform_candidate_sampler`; class k has a probability proportional to `unigrams[k] ** distortion`.

    Args:
      vocab_file: instead of `unigrams`, a CSV file with one class per line and its weight in the last field.
      num_reserved_ids: the number of classes of weight 0 before the others.
      num_shards, shard: use only the classes `shard`, `shard + num_shards`, `shard + 2 * num_shards`, ...
    """
    if bool(vocab_file) == bool(len(unigrams)):
        problem = "Must only provide one of" if vocab_file else "Must provide either"
        raise errors.InvalidArgumentError(
            f"fixed_unigram_candidate_sampler: {problem} vocab_file and unigrams."
        )
    if vocab_file:
        from gradtape._src.base.reading import reading, take_all  # few programs use a file

        with reading(f"Wrong vocabulary format in {vocab_file}: ", errors.InvalidArgumentError):
            unigrams = [float(line.split(b",")[-1]) for line in take_all(vocab_file).splitlines()]
    weights = [0.0] * num_reserved_ids + [float(np.float32(w) ** np.float32(distortion)) for w in unigrams]
    weights = weights[shard::num_shards]
    return _sampled("fixed", _WEIGHTS, true_classes, num_true, num_sampled, unique, range_max, seed, weights)


@composite("random.all_candidate_sampler nn.all_candidate_sampler")
def all_candidate_sampler(true_classes, num_true, num_sampled, unique, seed=None, name=None):
    """The classes 0 to `num_sampled - 1`, each with an expected count of 1. For tests."""
    shape = as_tensor(true_classes).shape
    return [as_tensor(np.arange(num_sampled)), ones(shape), ones([num_sampled])]


@composite("nn.compute_accidental_hits")
def compute_accidental_hits(true_classes, sampled_candidates, num_true, seed=None, name=None):
    """Finds the sampled classes that are true classes of an example.

    Returns:
      For each hit: the index of the example, the position of the sampled class, and the lowest float32 as its weight.
    """
    true, sampled = array_of(as_tensor(true_classes)), array_of(as_tensor(sampled_candidates))
    if true.ndim != 2 or true.shape[1] != num_true:
        raise errors.InvalidArgumentError(
            f"compute_accidental_hits: true_classes must be a batch_size * num_true matrix; got shape {true.shape} and "
            f"num_true={num_true}."
        )
    place = {int(c): i for i, c in enumerate(sampled)}
    hits = [(row, place[int(c)]) for row, classes in enumerate(true) for c in classes if int(c) in place]
    rows, columns = zip(*hits, strict=True) if hits else ((), ())
    lowest = np.full(len(hits), _LOWEST, np.float32)
    return [as_tensor(np.array(rows, np.int32)), as_tensor(np.array(columns, np.int64)), as_tensor(lowest)]


# ---- losses -------------------------------------------------------------------------------------


def _logits(
    weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, remove, seed
):
    """The logits of the true and the sampled classes, and their labels."""
    labels = as_tensor(labels)
    if labels.dtype is not dtypes.int64:
        labels = casting.cast(labels, dtypes.int64)
    flat = reshape(labels, [-1])
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes, seed)
    sampled, true_expected, sampled_expected = (stop_gradient(as_tensor(v)) for v in sampled_values)
    sampled = casting.cast(sampled, dtypes.int64)
    x = as_tensor(inputs)
    ids = concat([flat, sampled], 0)
    rows = embedding_lookup(weights, ids)
    bias = embedding_lookup(biases, ids)
    n, batch = flat.shape[0], x.shape[0]
    true_rows = reshape(rows[:n], [batch, num_true, rows.shape[-1]])
    true_logits = reduce_sum(expand_dims(x, 1) * true_rows, -1) + reshape(bias[:n], [batch, num_true])
    sampled_logits = matmul(x, rows[n:], transpose_b=True) + bias[n:]
    if remove:
        hit = reduce_any(equal(expand_dims(labels, -1), sampled), 1)  # of [batch, num_true, sampled]
        sampled_logits = sampled_logits + casting.cast(hit, x.dtype) * _LOWEST
    true_logits = true_logits - log(casting.cast(true_expected, x.dtype))
    sampled_logits = sampled_logits - log(casting.cast(sampled_expected, x.dtype))
    logits = concat([true_logits, sampled_logits], 1)
    share = np.zeros(tuple(logits.shape), np.float64)
    share[:, :num_true] = 1 / num_true
    return logits, casting.cast(as_tensor(share), logits.dtype)


@composite("nn.nce_loss")
def nce_loss(
    weights, biases, labels, inputs, num_sampled, num_classes, num_true=1, sampled_values=None,
    remove_accidental_hits=False, name="nce_loss",
):  # fmt: skip
    """The noise-contrastive estimation loss of each example (Gutmann and Hyvarinen 2010): true classes against sampled ones.

    Args:
      weights: a tensor [classes, dim], or a list of its shards.
      biases: a tensor [classes].
      labels: the true classes, integers [batch, num_true].
      inputs: a tensor [batch, dim].
      num_sampled: the number of classes sampled for the batch.
      sampled_values: the result of a candidate sampler; by default `log_uniform_candidate_sampler`.
      remove_accidental_hits: ignore sampled classes that are true classes of the example.
    """
    logits, labels = _logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values,
        remove_accidental_hits, None,
    )  # fmt: skip
    return reduce_sum(sigmoid_cross_entropy_with_logits(labels, logits), 1)


@composite("nn.sampled_softmax_loss")
def sampled_softmax_loss(
    weights, biases, labels, inputs, num_sampled, num_classes, num_true=1, sampled_values=None,
    remove_accidental_hits=True, seed=None, name="sampled_softmax_loss",
):  # fmt: skip
    """The softmax cross-entropy of each example over its true classes and a few sampled ones. Arguments as in `nce_loss`."""
    logits, labels = _logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values,
        remove_accidental_hits, seed,
    )  # fmt: skip
    return softmax_cross_entropy_with_logits(labels, logits)
