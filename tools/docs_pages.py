"""Runs the Markdown pages as programs: executes the code they show and compares what it prints.

- Blocks fenced as `python` run in order, in one namespace, in a temporary folder.
- The output of a block is in the comments behind its prints (`print(x)  # 3.0`) or, as a whole, in a block
  fenced as `text` right after it. Three dots stand for text that differs from run to run.
- Pictures of a page (`![...](name.png)`) are files that its code writes. One with a dark look is a `<picture>` of the
  two on one line, as git hosts want it, and stands in `Page.lines` as any other.
- Code for another library is fenced as `py-tensorflow` or `py-torch`: it is shown, not run.
- A page with a line `<!-- needs jax -->` runs only where that package is installed.

The tests check all of it (tests/test_docs.py); `make docs` runs pages for their pictures. To check one page:
`python tools/docs_pages.py docs/quick_start.md`.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import json
import linecache
import os
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DARK = ROOT / "docs" / "dark.mplstyle"
SHOWN_ONLY = ("py-tensorflow", "py-torch")
LANGUAGES = ("", "python", "text", "cpp", "console", "html", "toml", *SHOWN_ONLY)

_FENCE = re.compile(r"^\s*(`{3,}|:{3,})(.*)$")
_PRINTED = re.compile(r"^\s*print\(.*\)  # (.*)$", re.MULTILINE)
_PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
_TWO_LOOKS = re.compile(
    r'<picture><source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">'
    r'<img alt="([^"]*)" src="([^"]+)"></picture>'
)
_NEEDS = re.compile(r"^<!-- needs (\w+) -->$", re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")


class PageError(Exception):
    """An error in a page, with its line."""


class Block(NamedTuple):
    """A fenced block: its language, the line it begins on, and its text."""

    language: str
    line: int
    text: str


class Page:
    """A Markdown file, taken apart into prose and blocks."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
        self.dark: dict[str, str] = {}  # the dark looks of pictures
        self.lines = [_TWO_LOOKS.sub(self._one_look, line) for line in path.read_text().splitlines()]
        self.blocks: list[Block] = []
        self.prose: list[str] = []  # a line for each line of the page, empty within blocks
        self._read()

    def _read(self) -> None:
        closing = language = ""
        start = 0
        for number, line in enumerate(self.lines):
            fence = _FENCE.match(line)
            if closing:
                self.prose.append("")
                if line.strip() == closing:
                    self.blocks.append(Block(language, start, "\n".join(self.lines[start:number])))
                    closing = ""
            elif fence:
                closing, language, start = fence[1], fence[2].strip(), number + 1
                self.prose.append("")
            else:
                self.prose.append(line)
        if closing:
            raise PageError(f"{self.name}:{start}: this block does not end")

    def _one_look(self, m: re.Match) -> str:
        self.dark[m[3]] = m[1]
        return f"![{m[2]}]({m[3]})"

    @property
    def pictures(self) -> list[str]:
        return _PICTURE.findall("\n".join(self.prose))

    @property
    def links(self) -> list[str]:
        targets = (m[1] for m in _LINK.finditer("\n".join(self.prose)))
        return [
            target for target in targets if not re.match(r"[a-z]+:", target) and target not in self.pictures
        ]

    def with_links(self, place: Any) -> str:
        """The text of the page, with each link to a file replaced by `place(target, anchor)`."""

        def put(m: re.Match) -> str:
            outside = re.match(r"[a-z]+:", m[1]) or m[1] in self.pictures
            return m[0] if outside else place(m[1], m[2] or "")

        return "\n".join(
            _LINK.sub(put, prose) if prose else line
            for prose, line in zip(self.prose, self.lines, strict=True)
        )

    @property
    def missing(self) -> list[str]:
        """Packages that the page needs, and that are not installed."""
        return [name for name in _NEEDS.findall("\n".join(self.prose)) if find_spec(name) is None]

    def steps(self) -> list[tuple[Block, str]]:
        """The blocks to run, each with what it should print."""
        out = []
        for i, block in enumerate(self.blocks):
            after = self.blocks[i + 1] if i + 1 < len(self.blocks) else None
            where = f"{self.name}:{block.line}"
            if block.language == "python":
                expected = _PRINTED.findall(block.text)
                if after is not None and after.language == "text":
                    if expected:
                        raise PageError(f"{where}: the output stands in comments and in a block; choose one")
                    expected = after.text.splitlines()
                out.append((block, "".join(line.rstrip() + "\n" for line in expected)))
            elif block.language in SHOWN_ONLY:
                ast.parse(block.text)
            elif block.language not in LANGUAGES and not block.language.startswith("{"):
                raise PageError(f"{where}: a block fenced as {block.language!r}; expected one of {LANGUAGES}")
        return out


def two_looks(words: str, light: str, dark: str) -> str:
    """A picture of the site, in the look of the theme that a reader has chosen there."""
    looks = (("light", light), ("dark", dark))
    return "\n".join(
        f"```{{image}} {file}\n:alt: {words}\n:class: only-{theme}\n```" for theme, file in looks
    )


def pages() -> list[Page]:
    """Every page of the project."""
    paths = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        ROOT / "SECURITY.md",
        ROOT / "RELEASING.md",
        ROOT / "examples" / "README.md",
    ]
    for folder in ("docs", "gradtape/_src/help"):
        paths += sorted((ROOT / folder).glob("**/*.md"))
    return [Page(path) for path in paths]


def execute(page: Page) -> list[str]:
    """Runs the blocks of a page in this process; returns what each printed."""
    # Line numbers are those of the page, and functions of the page have a source (tf.function reads it).
    source = [""] * len(page.lines)
    for block, _ in page.steps():
        text = block.text.splitlines()
        source[block.line : block.line + len(text)] = text
    linecache.cache[page.name] = (1, None, [line + "\n" for line in source], page.name)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    outputs = []
    for block, _ in page.steps():
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile("\n" * block.line + block.text, page.name, "exec"), namespace)
        outputs.append("".join(line.rstrip() + "\n" for line in out.getvalue().splitlines()))
    return outputs


def run(page: Page, folder: Path, dark: bool = False) -> None:
    """Runs a page in a new process, in `folder`, where it writes its pictures; compares its output.

    With `dark`, Matplotlib draws for dark pages.

    Raises:
      PageError: if the code fails, prints something else, or does not write a picture.
    """
    steps = page.steps()
    outputs = _outputs(page, folder, {"MATPLOTLIBRC": str(DARK)} if dark else {}) if steps else []
    checker, flags = doctest.OutputChecker(), doctest.ELLIPSIS | doctest.DONT_ACCEPT_TRUE_FOR_1
    for (block, expected), printed in zip(steps, outputs, strict=True):
        if not checker.check_output(expected, printed, flags):
            raise PageError(
                f"{page.name}:{block.line}: expected\n{expected}\nbut the block prints\n{printed}"
            )
    for picture in (*page.pictures, *page.dark.values()):
        if not (folder / picture).is_file() and not (page.path.parent / picture).is_file():
            raise PageError(f"{page.name}: no code writes the picture {picture}")


def _outputs(page: Page, folder: Path, extra: dict[str, str]) -> list[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg", **extra}
    command = [sys.executable, "-W", "error", __file__, "--outputs", str(page.path)]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise PageError(f"{page.name} fails:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    if sys.argv[1] == "--outputs":
        outputs = execute(Page(Path(sys.argv[2])))
        print("\n" + json.dumps(outputs))
        return 0
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                run(Page(Path(name).resolve()), Path(folder))
            except PageError as e:
                print(e, file=sys.stderr)
                return 1
        print(f"{name}: runs, and its output matches")
    return 0


if __name__ == "__main__":
    sys.exit(main())
