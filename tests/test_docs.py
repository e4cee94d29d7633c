"""The documentation is true: its code runs, its links lead somewhere, the reference names everything."""

import inspect
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import docs_links  # noqa: E402
import docs_pages  # noqa: E402
import docs_reference  # noqa: E402

import gradtape as tf  # noqa: E402
from gradtape._src import ops  # noqa: E402
from gradtape._src.public import absent  # noqa: E402

PAGES = docs_pages.pages()
every_page = pytest.mark.parametrize("page", PAGES, ids=[p.name for p in PAGES])


@every_page
def test_code_of_the_page_runs(page, tmp_path):
    if page.missing:
        pytest.skip(f"the page is for those who have installed {', '.join(page.missing)}")
    docs_pages.run(page, tmp_path)


@every_page
def test_links_lead_to_files(page):
    for target in page.links:
        assert (page.path.parent / target).exists(), f"{page.name} links to {target}"


@every_page
def test_links_lead_to_headings(page):
    for target, anchor in re.findall(r"\]\(([^)#\s]*\.md)?#([^)\s]+)\)", "\n".join(page.prose)):
        there = docs_pages.Page((page.path.parent / target).resolve()) if target else page
        headings = [line.lstrip("# ") for line in there.prose if re.match(r"#+ ", line)]
        assert anchor in map(slug, headings), f"{page.name} links to #{anchor} of {there.name}"


def slug(heading):
    """The anchor of a heading, on a git host and in the site."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@every_page
def test_cpp_of_the_page_is_in_the_core(page):
    """A C++ block that opens with the name of its file quotes that file."""
    for block in page.blocks:
        quoted = re.match(r"// (core/\S+)\n", block.text) if block.language == "cpp" else None
        for line in block.text.splitlines()[1:] if quoted else ():
            source = (ROOT / quoted[1]).read_text()
            assert line.strip() in source, f"{page.name} quotes a line that {quoted[1]} does not have: {line}"


def test_every_page_is_in_the_navigation():
    index = (ROOT / "docs" / "index.md").read_text()
    entries = [
        line for block in re.findall(r"```\{toctree\}\n(.*?)```", index, re.DOTALL) for line in block.split()
    ]
    for page in sorted((ROOT / "docs").glob("*.md")):
        assert page.stem in [*entries, "index"], f"docs/index.md does not list {page.name}"


@pytest.mark.parametrize(
    "text, words",
    [
        ("```python\nprint(1)  # 2\n```", "but the block prints\n1"),
        ("```python\nprint(1)\n```", "but the block prints\n1"),
        ("```python\nprint(1)\nprint(2)\n```\n\n```text\n1\n3\n```", "but the block prints\n1\n2"),
        ("```python\n1 / 0\n```", "ZeroDivisionError"),
        ("```python\nx = 1\n```\n```python\nprint(y)  # 1\n```", "NameError"),
        ("```python\nx = 1\n```\n![a curve](curve.png)", "no code writes the picture curve.png"),
        ("```python3\nprint(1)\n```", "a block fenced as 'python3'"),
        ("```python\nprint(1)  # 1\n", "does not end"),
    ],
)
def test_a_page_that_is_wrong_is_refused(text, words, tmp_path):
    (tmp_path / "page.md").write_text(text)
    with pytest.raises(docs_pages.PageError) as e:
        docs_pages.run(docs_pages.Page(tmp_path / "page.md"), tmp_path)
    assert words in str(e.value)


def test_a_picture_in_two_looks(tmp_path):
    """On git hosts a <picture>; to a page, one picture, of which both files must exist."""
    (tmp_path / "page.md").write_text(
        '<picture><source media="(prefers-color-scheme: dark)" srcset="a-dark.svg"><img alt="an a" src="a.svg"></picture>'
    )
    page = docs_pages.Page(tmp_path / "page.md")
    assert page.lines == ["![an a](a.svg)"] and page.dark == {"a.svg": "a-dark.svg"} and page.links == []
    (tmp_path / "a.svg").write_text("<svg/>")
    with pytest.raises(docs_pages.PageError, match="no code writes the picture a-dark.svg"):
        docs_pages.run(page, tmp_path)
    (tmp_path / "a-dark.svg").write_text("<svg/>")
    docs_pages.run(page, tmp_path)


def test_pages_are_drawn_for_dark_sites(tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "page.md").write_text(
        "```python\nimport matplotlib\nopen('a.svg', 'w').write(str(matplotlib.rcParams['text.color']))\n```\n![a](a.svg)"
    )
    drawn = []
    for dark in (False, True):
        docs_pages.run(docs_pages.Page(tmp_path / "page.md"), tmp_path, dark)
        drawn.append((tmp_path / "a.svg").read_text())
    assert drawn[0] == "black" and drawn[1].endswith("cfd0d0")


def test_links_of_the_site_that_lead_nowhere(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.html").write_text(
        '<p id="here"><a href="#here"/><a href="#there"/><a href="../two.html#top"/><a href="../two.html#end"/>'
        '<img src="none.png"/><a href="https://example.org/x"/><a href="https:/x"/><a href="mailto:x@example.org"/>'
    )
    (tmp_path / "two.html").write_text('<h1 id="top"><a href="a/one.html"/></h1>')
    assert docs_links.broken_links(tmp_path) == [
        f"a/one.html: {link}" for link in ("#there", "../two.html#end", "none.png", "https:/x")
    ]


ENTRIES = docs_reference.entries()
NAMES = {name for e in ENTRIES for name in (e.name, *e.aliases)}


def test_the_reference_names_everything():
    """All names of the op table and of the package; and every namespace that is imported late."""
    spaces = set(docs_reference.NAMESPACES) | set(docs_reference.ELSEWHERE)
    inside = ("compat.v1", "compat.v2")  # names of tf once more; only what they add is described
    missing = {n for n in ops.PUBLIC if n not in NAMES and not n.startswith(inside)}
    missing |= {n for n in absent._ELSEWHERE if n not in NAMES and n not in spaces}
    missing |= {n for n in absent.LAZY if not any(s == n or s.startswith(n + ".") for s in spaces)}
    for name, value in vars(tf).items():
        if not name.startswith("_") and not inspect.ismodule(value) and name not in NAMES:
            missing.add(name)
    assert not missing


def test_the_reference_has_the_names_that_programs_use():
    symbols = (ROOT / "tools" / "symbols.csv").read_text().splitlines()[1:]
    used = [line.split(",")[0].removeprefix("tf.") for line in symbols if "__" not in line]
    elsewhere = ("keras", "losses", "metrics", "compat.v1", "compat.v2", "optimizers.legacy")
    missing = []
    for name in used:
        try:
            value = docs_reference.namespace(name) if not name.startswith(elsewhere) else None
        except AttributeError:
            continue  # not here, which docs/coverage.md says
        # Modules have pages; experimental.numpy shows NumPy's types.
        if value is None or inspect.ismodule(value) or getattr(value, "__module__", "") == "numpy":
            continue
        if not {name, name.rpartition(".")[0]} & NAMES and name not in docs_reference.NAMESPACES:
            missing.append(name)
    assert not missing


def test_everything_public_has_a_docstring():
    described = {id(e.value) for e in ENTRIES if inspect.isclass(e.value)}
    without = [e.name for e in ENTRIES if callable(e.value) and not docs_reference.docstring(e.value)]
    for e in ENTRIES:
        for name, member in docs_reference.members(e.value, described) if inspect.isclass(e.value) else ():
            value = docs_reference.plain_member(member)
            if (callable(value) or inspect.isdatadescriptor(value)) and not docs_reference.docstring(value):
                without.append(f"{e.name}.{name}")
    assert not without


def test_signatures_are_those_of_the_calls():
    assert docs_reference.signature(tf.reduce_sum) == "(input_tensor, axis=None, keepdims=False, name=None)"
    assert docs_reference.signature(tf.clip_by_value) == "(t, clip_value_min, clip_value_max, name=None)"
    assert docs_reference.signature(tf.GradientTape.watch) == "(tensor)"


def test_docstrings_become_markdown():
    text = "Does it.\n\nArgs:\n  x, y: operands,\n    on two lines.\n  **more: others.\n\nReturns:\n  A number.\n"
    text += "\n>>> f(1)\n2\n"
    assert docs_reference.markdown(text).split("\n") == [
        "Does it.", "", "", "**Args**", "", "- `x, y`: operands,", "  on two lines.", "- `**more`: others.", "", "",
        "**Returns**", "", "A number.", "", "", "```pycon", ">>> f(1)", "2", "```",
    ]  # fmt: skip
