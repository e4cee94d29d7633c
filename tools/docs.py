"""Builds the site: `make docs` runs it, and build/docs/index.html is the result.

The pages are in several folders, where they are read on a git host: docs/, gradtape/_src/help/, and the root. They
are copied to one folder here, with adjusted links, the pictures their code draws, notebooks with their output, and
the reference written from docstrings. Sphinx turns it into HTML; a warning or a broken link is an error. No network
is used.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import docs_reference
import notebooks
from docs_links import broken_links
from docs_pages import DARK, ROOT, Page, PageError, pages, run, two_looks

from gradtape._src import help

SOURCE = ROOT / "build" / "docs_source"
SITE = ROOT / "build" / "docs"
REPOSITORY = "https://github.com/gradtape/gradtape/blob/main"

# Where pages outside of docs/ go. The first page of the site takes the place of the README.
PLACES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "RELEASING.md": "releasing.md",
    "examples/README.md": "examples.md",
    "docs": "index.md",
}


def place_of(path: Path) -> str:
    """Where in the site a file of the repository is."""
    name = path.relative_to(ROOT).as_posix()
    for folder, to in (("docs/", ""), ("gradtape/_src/help/", "help/")):
        if name.startswith(folder):
            return to + name.removeprefix(folder).replace(".ipynb", ".md")
    return PLACES.get(name, "files/" + name)


def gather(page: Page) -> None:
    """Copies a page, and the files that it links to, into the folder that Sphinx reads."""
    own_place = place_of(page.path)

    def placed(target: str, anchor: str) -> str:
        file = (page.path.parent / target).resolve()
        if not file.exists():
            raise PageError(f"{page.name} links to {target}, which does not exist")
        there = place_of(file)
        if there.startswith("files/") and (file.suffix == ".md" or file.is_dir()):  # not a page of the site
            return f"{REPOSITORY}/{file.relative_to(ROOT).as_posix()}{anchor}"
        if there.startswith("files/"):
            copy = SOURCE / there
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
        if file.name == "README.md" and file.parent == ROOT:
            anchor = ""
        return os.path.relpath(there, Path(own_place).parent) + anchor

    out = SOURCE / own_place
    out.parent.mkdir(parents=True, exist_ok=True)
    text = page.with_links(placed) + "\n"
    if page.pictures:
        with tempfile.TemporaryDirectory() as light, tempfile.TemporaryDirectory() as dark:
            run(page, Path(light))
            if any((Path(light) / name).exists() for name in page.pictures):
                run(page, Path(dark), dark=True)
            for name in page.pictures:
                text = put_picture(text, name, page, Path(light) / name, Path(dark) / name)
    out.write_text(text)


def put_picture(text: str, name: str, page: Page, light: Path, dark: Path) -> str:
    """Copies a picture that a page has drawn, or else its own, into the site; the text with both looks, if they
    differ."""
    folder = (SOURCE / place_of(page.path)).parent
    if not light.exists():
        light, dark = page.path.parent / name, page.path.parent / page.dark.get(name, name)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(light, folder / name)
    if light.read_bytes() == dark.read_bytes():
        return text
    second = str(Path(name).with_stem(Path(name).stem + "-dark"))
    shutil.copy(dark, folder / second)
    return re.sub(
        rf"^!\[([^\]]*)\]\({re.escape(name)}\)$",
        lambda m: two_looks(m[1], name, second),
        text,
        flags=re.MULTILINE,
    )


def fill(page: Path, name: str, text: str) -> None:
    """Replaces a mark `<!-- name -->` in a page by text."""
    page.write_text(page.read_text().replace(f"<!-- {name} -->", text))


def main() -> int:
    start = time.perf_counter()
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.rmtree(SITE, ignore_errors=True)
    try:
        for page in pages():
            if page.name != "README.md":
                gather(page)
        for notebook in notebooks.notebooks():
            page = SOURCE / f"{notebook.stem}.md"
            light, dark = notebooks.run(notebook), notebooks.run(notebook, DARK)
            page.write_text(notebooks.markdown(light, dark, notebook.stem, SOURCE))
            (SOURCE / "files" / "docs").mkdir(parents=True, exist_ok=True)
            shutil.copy(notebook, SOURCE / "files" / "docs")
    except PageError as e:
        print(f"docs: {e}", file=sys.stderr)
        return 1
    fill(
        SOURCE / "questions.md",
        "questions",
        "```{toctree}\n:hidden:\n:maxdepth: 1\n\n" + "\n".join(f"help/{t}" for t in help.TOPICS) + "\n```",
    )
    fill(SOURCE / "api" / "index.md", "namespaces", docs_reference.contents())
    docs_reference.write(SOURCE / "api")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run([*command, "-c", str(ROOT / "docs"), str(SOURCE), str(SITE)], cwd=ROOT)
    broken = broken_links(SITE) if done.returncode == 0 else []
    for link in broken:
        print(f"docs: {link} is broken", file=sys.stderr)
    if done.returncode == 0 and not broken:
        print(f"build/docs/index.html, in {time.perf_counter() - start:.0f} s")
    return done.returncode or bool(broken)


if __name__ == "__main__":
    sys.exit(main())
