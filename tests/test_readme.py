"""The Python code of README.md and docs/ runs, and prints what the comments behind it say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    p for p in (ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")) if "```python" in p.read_text()
)
_EXPECTED = re.compile(r"^\s*print\(.*\)  # (.*)$", re.MULTILINE)


def code_of(page):
    """All Python blocks of a page as one program, each line where it stands in the page."""
    lines, inside = [], False
    for line in page.read_text().splitlines():
        fence = line.strip().startswith("```")
        lines.append(line if inside and not fence else "")
        if fence:
            inside = line.strip() == "```python"
    return "\n".join(lines)


@pytest.mark.parametrize("page", PAGES, ids=[p.name for p in PAGES])
def test_code_of_the_page_runs(page):
    code = code_of(page)
    run = f"exec(compile({code!r}, {str(page)!r}, 'exec'), {{'__name__': '__main__'}})"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", run], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == _EXPECTED.findall(code)


@pytest.mark.parametrize("page", PAGES, ids=[p.name for p in PAGES])
def test_cpp_of_the_page_is_in_the_core(page):
    """A C++ block that opens with the name of its file quotes that file."""
    for name, quoted in re.findall(r"```cpp\n// (core/\S+)\n(.*?)```", page.read_text(), re.DOTALL):
        source = (ROOT / name).read_text()
        for line in quoted.strip().splitlines():
            assert line.strip() in source, f"{page.name} quotes a line that {name} does not have: {line}"


LINKED = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md")))


@pytest.mark.parametrize("page", LINKED, ids=[p.name for p in LINKED])
def test_links_lead_to_files(page):
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose):
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
