"""Decoders of connectionist temporal classification: the best path, and a beam search over label sequences."""

from __future__ import annotations

import numpy as np

from gradtape._src.base import dtypes, errors
from gradtape._src.ops.moments import as_type, in_float
from gradtape._src.ops.samples import at, call, ints
from gradtape._src.ops.sparse import SparseTensor
from gradtape._src.ops.static import array_of
from gradtape._src.ops.table import WIDE, composite, opaque
from gradtape._src.tensors.conversion import as_tensor

__all__: list[str] = []


def _np_search(inputs, sequence_length, beam_width, top_paths):
    """All paths, added up by what they spell."""
    steps, batch, classes = inputs.shape
    labels, scores = np.full((top_paths, batch, steps), -1), np.full((batch, top_paths), -np.inf)
    for b in range(batch):
        p = np.exp(inputs[: sequence_length[b], b])
        p /= p.sum(-1, keepdims=True)
        total: dict = {}
        for path in np.ndindex(*[classes] * len(p)):
            word = tuple(c for i, c in enumerate(path) if c != classes - 1 and (i == 0 or path[i - 1] != c))
            total[word] = total.get(word, 0) + np.prod([p[t, c] for t, c in enumerate(path)])
        best = sorted(total, key=lambda w: -total[w])[:top_paths]
        for k, word in enumerate(best):
            labels[k, b, : len(word)] = word
            scores[b, k] = np.log(total[word])
    return labels, scores


ctc_beam_search = opaque(
    "ctc_beam_search", WIDE, "inputs sequence_length:Index beam_width:Int top_paths:Int", many=True, rule=None,
    numpy=_np_search,
    samples=[
        call((3, 2, 3), ints([3, 2]), beam_width=100, top_paths=3),
        call((4, 1, 2), ints([4], "int64"), beam_width=50, top_paths=1),
        call(at(np.zeros((2, 0, 3))), ints(np.zeros(0, int)), beam_width=2, top_paths=1),
    ],
    bad=[
        (call((2, 3), ints([2]), beam_width=2, top_paths=1), "InvalidArgumentError", "[time, batch, classes]"),
        (call((2, 1, 3), ints([3]), beam_width=2, top_paths=1), "InvalidArgumentError", "sequence_length[0] = 3"),
        (call((2, 1, 3), ints([2]), beam_width=2, top_paths=3), "InvalidArgumentError", "more paths than the beam width"),
    ],
    doc="The `top_paths` most likely label sequences (the last class is the blank), -1 past their ends, and their scores.",
)  # fmt: skip


def _rows(rows):
    """Lists of labels as a sparse matrix."""
    indices = [(r, i) for r, row in enumerate(rows) for i in range(len(row))]
    values = [label for row in rows for label in row]
    most = max((len(row) for row in rows), default=0)
    return SparseTensor(
        np.array(indices, np.int64).reshape(-1, 2),
        np.array(values, np.int64),
        np.array([len(rows), most], np.int64),
    )


@composite("nn.ctc_greedy_decoder")
def ctc_greedy_decoder(inputs, sequence_length, merge_repeated=True, blank_index=None):
    """The labels of the most likely class at each step.

    Args:
      inputs: logits [time, batch, classes].
      sequence_length: how many steps of each example count.
      merge_repeated: whether a class that repeats counts once (unless a blank is between).
      blank_index: the class that stands for no label; the last by default, negative ones count from the end.

    Returns:
      A list with one SparseTensor [batch, length] of labels, and the negated sums of the largest logits [batch, 1].
    """
    x, lengths = as_tensor(inputs), array_of(as_tensor(sequence_length))
    if x.ndim != 3:
        raise errors.InvalidArgumentError(
            f"ctc_greedy_decoder: inputs is not a 3-Tensor; got {x.dtype.name}{list(x.shape)}."
        )
    if lengths.shape != (x.shape[1],):
        raise errors.InvalidArgumentError(
            f"ctc_greedy_decoder: len(sequence_length) != batch_size; got {lengths.shape} and {x.shape[1]}."
        )
    if (lengths > x.shape[0]).any():
        raise errors.FailedPreconditionError(
            f"ctc_greedy_decoder: sequence_length must be at most {x.shape[0]}; got {lengths.tolist()}."
        )
    classes = x.shape[2]
    blank = classes - 1 if blank_index is None else int(blank_index)
    blank = blank + classes if blank < 0 else blank
    values = array_of(as_type(in_float(x), dtypes.float64))
    best, rows = values.argmax(-1), []
    score = np.zeros((x.shape[1], 1))
    for b, n in enumerate(lengths.tolist()):
        path = best[:n, b].tolist()
        score[b] = -values[:n, b].max(-1).sum() if n else 0
        rows.append(
            [c for i, c in enumerate(path) if c != blank and not (merge_repeated and i and path[i - 1] == c)]
        )
    return [_rows(rows)], as_type(as_tensor(score), x.dtype)


@composite("nn.ctc_beam_search_decoder")
def ctc_beam_search_decoder(inputs, sequence_length, beam_width=100, top_paths=1):
    """The most likely label sequences, found by a search that keeps `beam_width` of them; the last class is the blank.

    Returns:
      A list of `top_paths` SparseTensors [batch, length] of labels, and their log-probabilities [batch, top_paths].
    """
    x = as_tensor(inputs)
    labels, score = ctc_beam_search(in_float(x), as_tensor(sequence_length), int(beam_width), int(top_paths))
    paths = array_of(labels)
    return [_rows([row[row >= 0].tolist() for row in path]) for path in paths], as_type(score, x.dtype)


@composite("edit_distance")
def edit_distance(hypothesis, truth, normalize=True, name="edit_distance"):
    """How many labels have to be changed, put in or left out to make each hypothesis the truth (Levenshtein 1966).

    Args:
      hypothesis, truth: SparseTensors of sequences along the last axis.
      normalize: divide by the length of the truth.
    """
    for x in (hypothesis, truth):
        if not isinstance(x, SparseTensor):
            raise TypeError(f"edit_distance: expected a SparseTensor; got {type(x)}.")
    shape = np.maximum(array_of(hypothesis.dense_shape)[:-1], array_of(truth.dense_shape)[:-1])
    out = np.zeros(shape, np.float32)
    words = [_words(x) for x in (hypothesis, truth)]
    for place in np.ndindex(*shape):
        a, b = (w.get(place, []) for w in words)
        steps = float(_distance(a, b))
        out[place] = steps if not normalize else steps / len(b) if b else (np.inf if a else 0.0)
    return as_tensor(out)


def _words(sparse):
    words: dict = {}
    for place, label in zip(array_of(sparse.indices).tolist(), array_of(sparse.values).tolist(), strict=True):
        words.setdefault(tuple(place[:-1]), []).append(label)
    return words


def _distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]
