"""Decoders for connectionist temporal classification (best path, beam search), and edit distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape._src.base import dtypes, errors
from gradtape._src.base.calls import one_call
from gradtape._src.base.room import want_room
from gradtape._src.ops.ctc_decode import ctc_beam_search
from gradtape._src.ops.moments import as_type, in_float
from gradtape._src.ops.static import array_of
from gradtape._src.tensors.conversion import as_tensor
from gradtape.sparse.ordering import check_inside
from gradtape.sparse.tensor import SparseTensor


def _rows(rows: Any) -> Any:
    """Lists of labels as a sparse matrix."""
    indices = [(r, i) for r, row in enumerate(rows) for i in range(len(row))]
    values = [label for row in rows for label in row]
    most = max((len(row) for row in rows), default=0)
    return SparseTensor(
        np.array(indices, np.int64).reshape(-1, 2),
        np.array(values, np.int64),
        np.array([len(rows), most], np.int64),
    )


@one_call
def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: Any = True, blank_index: Any = None
) -> Any:
    """The labels of the most likely class at each step.

    Args:
      inputs: logits [time, batch, classes].
      sequence_length: the number of steps of each example.
      merge_repeated: whether a repeated class counts once (unless there is a blank in between).
      blank_index: the class that means no label; the last by default, negative indices count from the end.

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


@one_call
def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: Any = 100, top_paths: Any = 1
) -> Any:
    """The most likely label sequences, by a beam search of width `beam_width`; the last class is the blank.

    Returns:
      A list of `top_paths` SparseTensors [batch, length] of labels, and their log-probabilities [batch, top_paths].
    """
    x = as_tensor(inputs)
    labels, score = ctc_beam_search(in_float(x), as_tensor(sequence_length), int(beam_width), int(top_paths))
    paths = array_of(labels)
    return [_rows([row[row >= 0].tolist() for row in path]) for path in paths], as_type(score, x.dtype)


@one_call
def edit_distance(
    hypothesis: Any, truth: Any, normalize: Any = True, name: str | None = "edit_distance"
) -> Any:
    """The number of changes, insertions and deletions that turn each hypothesis into the truth (Levenshtein 1966).

    Args:
      hypothesis, truth: SparseTensors of sequences along the last axis.
      normalize: divide by the length of the truth.
    """
    for x in (hypothesis, truth):
        if not isinstance(x, SparseTensor):
            raise TypeError(f"edit_distance: expected a SparseTensor; got {type(x)}.")
    shape = np.maximum(array_of(hypothesis.dense_shape)[:-1], array_of(truth.dense_shape)[:-1])
    want_room(*shape, item=4)
    out = np.zeros(shape, np.float32)
    words = [_words(x) for x in (hypothesis, truth)]
    for place in set().union(*words):  # the others are 0
        a, b = (w.get(place, []) for w in words)
        steps = float(_distance(a, b))
        out[place] = steps if not normalize else steps / len(b) if b else (np.inf if a else 0.0)
    return as_tensor(out)


def _words(sparse: Any) -> Any:
    words: dict = {}
    check_inside(
        "edit_distance", array_of(sparse.indices)[:, :-1], array_of(sparse.dense_shape)[:-1].tolist()
    )
    for place, label in zip(array_of(sparse.indices).tolist(), array_of(sparse.values).tolist(), strict=True):
        words.setdefault(tuple(place[:-1]), []).append(label)
    return words


def _distance(a: Any, b: Any) -> Any:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]
