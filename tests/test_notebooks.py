"""The notebooks of docs/: kept without results, run from top to bottom, and shown by the site."""

import copy
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import notebooks  # noqa: E402

NOTEBOOKS = notebooks.notebooks()
every = pytest.mark.parametrize("path", NOTEBOOKS, ids=[p.stem for p in NOTEBOOKS])
INSTALLED = all(
    importlib.util.find_spec(name) for name in ("nbclient", "ipykernel", "matplotlib", "keras", "scipy")
)


@every
def test_is_kept_without_results(path):
    cells = json.loads(path.read_text())["cells"]
    assert [c["id"] for c in cells] == [f"cell-{i}" for i in range(1, len(cells) + 1)]
    for cell in cells:
        assert cell["cell_type"] == "markdown" or cell["outputs"] == [] and cell["execution_count"] is None
    install = "".join(cells[1]["source"])
    assert install.startswith("try:\n    import gradtape") and "%pip install" in install  # for Colab


@pytest.mark.skipif(not INSTALLED, reason="the packages that run notebooks are an extra")
@every
def test_runs_from_top_to_bottom(path, tmp_path):
    """In a separate process, so that warnings of Jupyter do not fail the test."""
    done = tmp_path / "done.ipynb"
    command = [sys.executable, str(ROOT / "tools" / "notebooks.py"), str(path), str(done)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    outputs = {
        c["id"]: c["outputs"] for c in json.loads(done.read_text())["cells"] if c["cell_type"] == "code"
    }
    shown = "".join(
        text for out in outputs.values() for o in out for text in o.get("data", {}).get("text/html", ())
    )
    # A drawing, the reason for a None with its line, one for a NaN, a function, health; two pictures.
    for wanted in (
        'class="gradtape-drawing"',
        "numpy()",
        "scale = np.mean",
        "tf.function",
        "Health of the gradients",
    ):
        assert wanted in shown
    printed = "".join(text for out in outputs.values() for o in out for text in o.get("text", ()))
    assert "div made the first nan" in printed and "cell [" in printed
    assert sum("image/png" in o.get("data", {}) for out in outputs.values() for o in out) == 2
    assert not any(o["output_type"] == "error" for out in outputs.values() for o in out)


@pytest.mark.skipif(not INSTALLED, reason="nbformat is installed with the packages that run notebooks")
def test_a_page_of_the_site(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    v4 = nbformat.v4
    out = [
        v4.new_output("execute_result", {"text/html": "<b>&</b>", "text/plain": "plain"}),
        v4.new_output("display_data", {"image/png": "iVBORw==", "text/plain": "a figure"}),
        v4.new_output("stream", text="printed"),
    ]
    link = f"[a]({notebooks.REPOSITORY}gradients.md#x) [b]({notebooks.REPOSITORY}it.ipynb) [c](https://example.org)"
    notebook = v4.new_notebook(cells=[v4.new_markdown_cell(link), v4.new_code_cell("f()", outputs=out)])
    dark = copy.deepcopy(notebook)
    dark.cells[1].outputs[1]["data"]["image/png"] = "iVBOSw=="
    assert notebooks.markdown(notebook, dark, "it", tmp_path).split("\n\n") == [
        "[a](gradients.md#x) [b](files/docs/it.ipynb) [c](https://example.org)",
        "```ipython\nf()\n```",
        '```````{raw} html\n<div class="notebook-output"><b>&</b></div>\n```````',
        "```{image} it_1_1.png\n:alt: what the code above draws\n:class: only-light\n```\n"
        "```{image} it_1_1-dark.png\n:alt: what the code above draws\n:class: only-dark\n```",
        "```text\nprinted\n```\n",
    ]
    assert (tmp_path / "it_1_1.png").read_bytes() == b"\x89PNG"
    assert (tmp_path / "it_1_1-dark.png").read_bytes() == b"\x89PNK"
