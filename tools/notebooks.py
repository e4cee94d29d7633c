"""Notebooks of docs/: stored without results, run by the tests, and shown on the site with their output.

`python tools/notebooks.py docs/introduction.ipynb out.ipynb` runs one, as the tests do.
"""

from __future__ import annotations

import base64
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Links in notebooks lead to the repository, which Colab can follow; in the site, to its own pages.
REPOSITORY = "https://github.com/gradtape/gradtape/blob/main/docs/"


def notebooks() -> list[Path]:
    """The notebooks of the documentation."""
    return sorted((ROOT / "docs").glob("*.ipynb"))


def run(path: Path) -> Any:
    """The notebook with its results, run from top to bottom in a new kernel and an empty folder.

    Raises:
      nbclient.exceptions.CellExecutionError: if a cell fails.
    """
    import nbclient
    import nbformat

    os.environ["GRADTAPE_PROGRESS"] = "0"  # no progress bars on a page, even on a busy machine
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        nbclient.NotebookClient(
            notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}}
        ).execute()
    return notebook


def markdown(notebook: Any, name: str, folder: Path) -> str:
    """The notebook as a page of the site; its pictures are written to `folder`."""
    parts = []
    for i, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            own = cell.source.replace(f"({REPOSITORY}{name}.ipynb)", f"(files/docs/{name}.ipynb)")
            parts.append(own.replace(f"({REPOSITORY}", "("))
            continue
        parts.append(f"```ipython\n{cell.source}\n```")
        for k, output in enumerate(cell.outputs):
            parts.append(_shown(output, f"{name}_{i}_{k}.png", folder))
    return "\n\n".join(parts) + "\n"


def _shown(output: Any, picture: str, folder: Path) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        return "```````{raw} html\n" + f'<div class="notebook-output">{data["text/html"]}</div>' + "\n```````"
    if "image/png" in data:
        (folder / picture).write_bytes(base64.b64decode(data["image/png"]))
        return f"![what the code above draws]({picture})"
    return f"```text\n{output.get('text') or data.get('text/plain', '')}\n```"


def main() -> None:
    import nbformat

    nbformat.write(run(Path(sys.argv[1])), sys.argv[2])


if __name__ == "__main__":
    main()
