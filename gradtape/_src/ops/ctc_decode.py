"""A beam search over label sequences; `gradtape/sparse/sequences.py` has the decoders that use it."""

from __future__ import annotations

import numpy as np

from gradtape._src.ops.samples import at, call, ints
from gradtape._src.ops.table import WIDE, opaque

__all__: list[str] = []


def _np_search(inputs, sequence_length, beam_width, top_paths):
    """Adds up the probabilities of all paths with the same labels."""
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
    doc="The `top_paths` most likely label sequences, padded with -1, and their scores. The last class is the blank.",
)  # fmt: skip
