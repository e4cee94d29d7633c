"""Writes docs/xla_rows.md: which ops run on XLA, and which on the host, in the middle of a program.

`make xla-rows` runs it. Whether an op is lowered comes from the op table; the reasons, which only a reader can
tell, are written here.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from gradtape._src.ops.table import TABLE

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "xla_rows.md"

# Rows that have no lowering: what they are called in programs, and the reason.
SIZES = "the shape of the result depends on values, which XLA cannot have; the function is cut there"
SCHUR = "a Schur decomposition, which XLA has on CPUs only"
EIGEN = "XLA has eigenvalues of general matrices on CPUs only, in another order"
REASONS = {
    "where_indices": ("`tf.where(x)`, `tf.boolean_mask`", SIZES),
    "unique": ("`tf.unique`, `tf.unique_with_counts`", SIZES),
    "candidate_sampler": ("`tf.random.log_uniform_candidate_sampler`, `tf.nn.sampled_softmax_loss`, `tf.nn.nce_loss`",
                          "it draws until there are enough different classes"),  # fmt: skip
    "ctc_beam_search": ("`tf.nn.ctc_beam_search_decoder`", "a search over a tree that grows and is cut"),
    "sparse_rows": ("`tf.sparse.sparse_dense_matmul` in eager code", "programs have no use for it"),
    "sqrtm": ("`tf.linalg.sqrtm`", SCHUR),
    "logm": ("`tf.linalg.logm`", SCHUR),
    "matrix_function_tangent": ("derivatives of `sqrtm` and `logm`", SCHUR),
    "eig": ("`tf.linalg.eig`", EIGEN),
    "eig_complex": ("`tf.linalg.eig`", EIGEN),
    "eigvals": ("`tf.linalg.eigvals`", EIGEN),
}  # fmt: skip

_HEAD = """# Ops on XLA and on the host

Written by `tools/xla_rows.py` from the op table (`make xla-rows`); the tests hold it up to date.

With XLA as the engine ([GPUs, TPUs and XLA](devices.md)), {lowered} of the {count} ops of the table become a part of the XLA
program. The {hosted} others run natively, on the CPU, in the middle of it: their operands come to the host and their results
go back. The log names each of them once, with the line of your program. What you call may be made of several ops of
the table; only what is listed here leaves the device.

| kind of op | on XLA | on the host |
|---|---|---|
"""

_TABLE = """
## On the host

| op of the table | in programs | why |
|---|---|---|
"""

_TAIL = """
Code of your own runs on the host, too, because it is Python: `tf.py_function`, `tf.numpy_function`, `tf.print`, assertions
of `tf.debugging`, the numbers that loops and branches draw (their streams, three numbers each), and the elements of a
`tf.data.Dataset` that a function loops over.
"""


def page() -> str:
    """The text of the page."""
    rows = [row for row in TABLE.values() if row.kind != "callback"]
    hosted = [row for row in rows if not row.xla]
    on_xla, on_host = Counter(r.kind for r in rows if r.xla), Counter(r.kind for r in hosted)
    text = _HEAD.format(lowered=len(rows) - len(hosted), count=len(rows), hosted=len(hosted))
    text += "".join(f"| {kind} | {on_xla[kind]} | {on_host[kind]} |\n" for kind in sorted(on_xla | on_host))
    text += _TABLE
    for row in sorted(hosted, key=lambda row: row.name):
        called, why = REASONS[row.name]
        text += f"| `{row.name}` | {called} | {why} |\n"
    return text + _TAIL


if __name__ == "__main__":
    PAGE.write_text(page())
