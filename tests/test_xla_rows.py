"""docs/xla_rows.md matches the op table, and lists few rows."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# In a separate process, because other tests add rows to the table.
CODE = """
import sys
sys.path.insert(0, "tools")
import gradtape, xla_rows
from gradtape._src.ops.table import TABLE
hosted = {row.name for row in TABLE.values() if not row.xla}
assert hosted == set(xla_rows.REASONS), hosted ^ set(xla_rows.REASONS)
assert len(hosted) <= 20
print(xla_rows.page(), end="")
"""


def test_the_page_is_up_to_date_and_every_row_on_it_has_a_reason():
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    assert (ROOT / "docs" / "xla_rows.md").read_text() == done.stdout, "run `make xla-rows`"
