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

from docs_pages import two_looks

ROOT = Path(__file__).resolve().parents[1]
# Links in notebooks lead to the repository, which Colab can follow; in the site, to its own pages.
REPOSITORY = "https://github.com/gradtape/gradtape/blob/main/docs/"


def notebooks() -> list[Path]:
    """The notebooks of the documentation."""
    return sorted((ROOT / "docs").glob("*.ipynb"))


def run(path: Path, style: Path | None = None) -> Any:
    """The notebook with its results, run from top to bottom in a new kernel and an empty folder.

    Args:
      style: a file of Matplotlib's settings.

    Raises:
      nbclient.exceptions.CellExecutionError: if a cell fails.
    """
    import nbclient
    import nbformat

    os.environ["GRADTAPE_PROGRESS"] = "0"  # no progress bars on a page, even on a busy machine
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = nbclient.NotebookClient(
            notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}}
        )
        client.execute(env=os.environ | ({"MATPLOTLIBRC": str(style)} if style else {}))
    return notebook


def markdown(light: Any, dark: Any, name: str, folder: Path) -> str:
    """The notebook as a page of the site, from its results with pictures for light and for dark pages, which are
    written to `folder`."""
    parts = []
    for i, (cell, again) in enumerate(zip(light.cells, dark.cells, strict=True)):
        if cell.cell_type == "markdown":
            own = cell.source.replace(f"({REPOSITORY}{name}.ipynb)", f"(files/docs/{name}.ipynb)")
            parts.append(own.replace(f"({REPOSITORY}", "("))
            continue
        parts.append(f"```ipython\n{cell.source}\n```")
        for k, outputs in enumerate(zip(cell.outputs, again.outputs, strict=True)):
            parts.append(_shown(*outputs, folder / f"{name}_{i}_{k}.png"))
    return "\n\n".join(parts) + "\n"


def _shown(output: Any, dark: Any, picture: Path) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        return "```````{raw} html\n" + f'<div class="notebook-output">{data["text/html"]}</div>' + "\n```````"
    if "image/png" in data:
        second = picture.with_stem(picture.stem + "-dark")
        picture.write_bytes(base64.b64decode(data["image/png"]))
        second.write_bytes(base64.b64decode(dark["data"]["image/png"]))
        return two_looks("what the code above draws", picture.name, second.name)
    return f"```text\n{output.get('text') or data.get('text/plain', '')}\n```"


def main() -> None:
    import nbformat

    nbformat.write(run(Path(sys.argv[1])), sys.argv[2])


if __name__ == "__main__":
    main()
