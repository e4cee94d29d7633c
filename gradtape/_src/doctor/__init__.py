"""`python -m gradtape doctor PATH`: reads a TensorFlow project and reports what matters before it runs on gradtape.

Nothing in the project is run or imported. `read` finds the files, `names` looks up every TensorFlow name in
gradtape, `packages` knows what other packages need and how the project is started, `tapes` finds causes of
gradients that are None, `numbers` of NaN.
"""

from __future__ import annotations

from pathlib import Path

from gradtape._src.doctor import names, numbers, packages, tapes
from gradtape._src.doctor.read import Finding, Source, sources

__all__ = ["Finding", "Report", "Source", "check", "sources"]


class Report:
    """The findings in a project; `str` of it is what the command prints."""

    def __init__(self) -> None:
        self.files = 0
        self.with_tensorflow = 0
        self.uses = 0
        self.names: set[str] = set()
        self.findings: list[Finding] = []
        self.with_keras = 0
        self.needs_the_name = False  # whether `import tensorflow` must work, for packages or internal modules

    @property
    def problems(self) -> list[Finding]:
        """The findings that need attention: everything but notes."""
        return [f for f in self.findings if f.code != "note"]

    def _count(self, *codes: str) -> int:
        return sum(f.code in codes for f in self.findings)

    @property
    def summary(self) -> str:
        """One sentence of counts."""
        missing = {f.name for f in self.findings if f.code == "missing"}
        parts = [
            f"{_counted(self.files, 'file')}, {self.with_tensorflow} with TensorFlow: "
            f"{_counted(self.uses, 'use')} of {_counted(len(self.names), 'name')}",
            f"{_counted(len(missing), 'name')} missing in {_counted(self._count('missing'), 'place')}",
            _counted(self._count("none", "nan"), "likely mistake"),
            _counted(self._count("note"), "note"),
        ]
        if self._count("unread"):
            parts.append(f"{_counted(self._count('unread'), 'file')} could not be read")
        return ", ".join(parts) + "."

    @property
    def door(self) -> str:
        """How the project is started; empty if it needs nothing of gradtape."""
        return packages.door(self.with_tensorflow > 0, self.with_keras > 0, self.needs_the_name)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.findings), self.summary, *filter(None, [self.door])])


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def check(path: str | Path) -> Report:
    """Reads the Python files and notebooks at `path`, a file or a folder.

    >>> import tempfile, pathlib
    >>> from gradtape._src import doctor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     program = pathlib.Path(folder, "program.py")
    ...     _ = program.write_text("import tensorflow as tf\\nprint(tf.square(2.0), tf.queue.FIFOQueue(3))")
    ...     report = doctor.check(folder)
    >>> report.summary
    '1 file, 1 with TensorFlow: 2 uses of 2 names, 1 name missing in 1 place, 0 likely mistakes, 0 notes.'

    Raises:
      FileNotFoundError: if there is nothing at `path`.
    """
    report = Report()
    for source in sources(Path(path)):
        report.files += 1
        if isinstance(source, Finding):
            report.findings.append(source)
            continue
        try:
            _examine(source, report)
        except RecursionError:
            report.findings.append(
                Finding(source.place(1), 1, "unread", "its expressions are nested too deeply.")
            )
    report.findings += packages.required(Path(path))
    report.needs_the_name |= any(f.name in packages.NAMES for f in report.findings)
    return report


def _examine(source: Source, report: Report) -> None:
    aliases = names.aliases(source)
    report.with_keras += aliases.uses_keras
    report.needs_the_name |= bool(aliases.packages or aliases.internal)
    if not (aliases.uses_tensorflow or aliases.packages):
        return
    uses = names.uses(source, aliases)
    findings = [
        *names.check(source, aliases, uses),
        *tapes.check(source, aliases),
        *numbers.check(source, aliases),
    ]
    report.with_tensorflow += aliases.uses_tensorflow
    report.uses += len(uses)
    report.names |= {name for name, _ in uses}
    report.findings += sorted(
        {f for f in findings if not source.allows(f.line)}, key=lambda f: (f.line, f.text)
    )
