"""A plugin of pytest for `make ecosystem`: records each case, and runs a sample of large test suites.

`ECOSYSTEM_CASES` names the file: a line of JSON for a case that begins, and one for how it ended, so that the results of
a process that dies or takes too long are kept, with the case it was in. `ECOSYSTEM_SAMPLE="100 7"` runs every 100th case,
by a hash of its name and the seed 7: the same cases on both libraries.
"""

import json
import os
import zlib


def _write(nodeid, how):
    with open(os.environ["ECOSYSTEM_CASES"], "a") as file:
        file.write(json.dumps([nodeid, how]) + "\n")


def _words(report):
    """The line of a report that shows the error."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr).strip().rpartition("\n")[2]
    return text.strip().split("\n")[0][:200] or "failed"


def pytest_collection_modifyitems(config, items):
    every, seed = (int(n) for n in os.environ.get("ECOSYSTEM_SAMPLE", "1 0").split())
    kept = [item for item in items if zlib.crc32(f"{seed} {item.nodeid}".encode()) % every == 0]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


def pytest_collectreport(report):
    if report.failed:
        _write(report.nodeid + "::collection", _words(report))


def pytest_runtest_logstart(nodeid, location):
    _write(nodeid, None)


def pytest_runtest_logreport(report):
    if report.failed:
        _write(report.nodeid, _words(report))
    elif report.skipped or report.when == "call":
        _write(report.nodeid, report.outcome)
