"""Every row of the op table keeps the contract of `gradtape.testing`: one test per row and check.

What XLA computes in all element types takes minutes to compile: `make xla-tests` asks for that check, too.
"""

import os

import pytest

from gradtape import testing
from gradtape._src.ops.table import TABLE

# Ops that other tests make may have no samples; those of the package must (tests/test_package.py).
PAIRS = [
    (check, name)
    for check in testing.CHECKS
    for name, row in TABLE.items()
    if list(row.samples) and check in testing.checks_of(row)
    if check != "xla_types" or os.environ.get("CONTRACT") == "all"
]


@pytest.mark.parametrize(("check", "name"), PAIRS, ids=[f"{name}-{check}" for check, name in PAIRS])
def test_contract(check, name):
    testing.check_op(TABLE[name], [check])
