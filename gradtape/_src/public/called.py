"""Messages of the core in the user's words: `reduce_sum() got ...`, where the row is `sum`, and which argument was meant."""

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


# What to do about messages of the core, by the row: words of the message, and what is said after it.
_HINTS = {
    "matmul": [
        (
            "size-incompatible",
            " Hint: the last axis of a has to be as long as the second to last one of b; "
            "tf.matmul(a, b, transpose_b=True), or transpose_a, turns one round.",
        )
    ],
    "conv": [("filter depth", " Hint: filters are [height, width, channels in, channels out].")],
    "concat": [("`axis` is not valid", " Hint: tf.concat([x, y], axis): the tensors are one list.")],
    "stack": [("`axis` is not valid", " Hint: tf.stack([x, y], axis): the tensors are one list.")],
    "reshape": [("requested shape", " Hint: -1 in the place of one size stands for what is left.")],
    "add": [("Incompatible shapes", _BROADCAST)],
    "mul": [("Incompatible shapes", _BROADCAST)],
    "sub": [("Incompatible shapes", _BROADCAST)],
    "div": [("Incompatible shapes", _BROADCAST)],
}


# Rows that no public name belongs to, and the function that calls them: for Pythons before 3.12, see `_public_name`.
_CALLED = {
    "attention": "scaled_dot_product_attention", "categorical": "random.categorical", "clip": "clip_by_value",
    "conv": "convolution", "div": "divide", "div_no_nan": "divide_no_nan", "moments": "reduce_variance",
    "mul_no_nan": "multiply_no_nan", "random_poisson": "random.poisson", "root": "norm", "select": "where",
    "shape_as": "shape", "sigmoid_xent": "sigmoid_cross_entropy_with_logits", "size_as": "size",
    "softmax_xent": "softmax_cross_entropy_with_logits",
    "sparse_softmax_xent": "sparse_softmax_cross_entropy_with_logits", "squeeze_axes": "squeeze", "where_indices": "where",
}  # fmt: skip


def renamed(name: str, text: str) -> str:
    """A message about the op of the row `name`, with the name under which it was called."""
    row = dict.get(TABLE, name)  # the row of an op that ran is there
    if row is None:
        return text
    rest = text[len(name) :]
    if rest.startswith("()"):
        rest += _about_arguments(row, rest)
    rest += next((hint for words, hint in _HINTS.get(name, ()) if words in rest), "")
    return _public_name(row) + rest


def _public_name(row: Row) -> str:
    public = [full.rpartition(".")[2] for full in row.names]
    # Before Python 3.12, an error of the core is made where it is caught: what was called there says nothing.
    called = source.called().rpartition(".")[2] if sys.version_info >= (3, 12) else ""
    if called in public or any(full.rpartition(".")[2] == called for full in PUBLIC.names()):
        return called  # perhaps a function that is made of this op
    if not public:
        return _CALLED.get(row.name, row.name)
    return row.name if row.name in public else public[0]


def _about_arguments(row: Row, words: str) -> str:
    """The signature, and the keyword that may have been meant."""
    known = [p.name for p in row.params]
    shown = ", ".join(p.name if p.default is ... else f"{p.name}={p.default!r}" for p in row.params)
    if found := _KEYWORD.search(words):
        return f".{argument(found[1], known)} Its arguments: ({shown})."
    return f". Its arguments: ({shown})." if _COUNT.search(words) else ""
