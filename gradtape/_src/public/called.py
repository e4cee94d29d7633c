"""Messages of the core with the name that the user called (`reduce_sum() got ...`, where the row is `sum`), and hints."""

from __future__ import annotations

import re
import sys

from gradtape._src.base import source
from gradtape._src.ops.table import PUBLIC, TABLE, Row
from gradtape._src.public.close import argument

_BROADCAST = (
    " Hint: sizes are compared from the last axis on, and must be equal or 1; x[:, tf.newaxis] adds an axis."
)
_KEYWORD = re.compile(r"got an unexpected keyword argument '(\w+)'$")
_COUNT = re.compile(r"missing required argument|takes at most \d+ arguments")


# Hints by row: a part of a message of the core, and the hint to append.
_HINTS = {
    "matmul": [
        (
            "size-incompatible",
            " Hint: the last axis of a must be as long as the second to last axis of b; "
            "tf.matmul(a, b, transpose_b=True), or transpose_a, transposes one.",
        )
    ],
    "conv": [("filter depth", " Hint: filters are [height, width, channels in, channels out].")],
    "concat": [("`axis` is not valid", " Hint: tf.concat([x, y], axis): the tensors are one list.")],
    "stack": [("`axis` is not valid", " Hint: tf.stack([x, y], axis): the tensors are one list.")],
    "reshape": [("requested shape", " Hint: one size may be -1: it follows from the others.")],
    "add": [("Incompatible shapes", _BROADCAST)],
    "mul": [("Incompatible shapes", _BROADCAST)],
    "sub": [("Incompatible shapes", _BROADCAST)],
    "div": [("Incompatible shapes", _BROADCAST)],
}


# Rows without a public name, and the function that calls them: for Python before 3.12, see `_public_name`.
_CALLED = {
    "attention": "scaled_dot_product_attention", "categorical": "random.categorical", "clip": "clip_by_value",
    "conv": "convolution", "div": "divide", "div_no_nan": "divide_no_nan", "moments": "reduce_variance",
    "mul_no_nan": "multiply_no_nan", "random_poisson": "random.poisson", "root": "norm", "select": "where",
    "shape_as": "shape", "sigmoid_xent": "sigmoid_cross_entropy_with_logits", "size_as": "size",
    "softmax_xent": "softmax_cross_entropy_with_logits",
    "sparse_softmax_xent": "sparse_softmax_cross_entropy_with_logits", "squeeze_axes": "squeeze", "where_indices": "where",
}  # fmt: skip


def renamed(name: str, text: str) -> str:
    """Replaces the row name `name`, with which a message begins, by the name that the user called."""
    row = dict.get(TABLE, name)  # the row of an op that ran is imported
    if row is None:
        return text
    rest = text[len(name) :]
    if rest.startswith("()"):
        rest += _about_arguments(row, rest)
    rest += next((hint for words, hint in _HINTS.get(name, ()) if words in rest), "")
    return _public_name(row) + rest


def _public_name(row: Row) -> str:
    public = [full.rpartition(".")[2] for full in row.names]
    # Before Python 3.12, the exception is created where it is caught, when the frame of the call is gone.
    called = source.called().rpartition(".")[2] if sys.version_info >= (3, 12) else ""
    if called in public or any(full.rpartition(".")[2] == called for full in PUBLIC.names()):
        return called  # may be a composite that uses this op
    if not public:
        return _CALLED.get(row.name, row.name)
    return row.name if row.name in public else public[0]


def _about_arguments(row: Row, words: str) -> str:
    """The arguments of the op, and a suggestion for an unknown keyword."""
    names = [p.name for p in row.params]
    signature = ", ".join(p.name if p.default is ... else f"{p.name}={p.default!r}" for p in row.params)
    if match := _KEYWORD.search(words):
        return f".{argument(match[1], names)} Its arguments: ({signature})."
    return f". Its arguments: ({signature})." if _COUNT.search(words) else ""
