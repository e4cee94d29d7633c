"""The pictures of examples/README.md: runs every example in full and keeps its pictures, scaled down.

    python tools/gallery.py             # all of them: ten minutes or so
    python tools/gallery.py vae gan     # these

Needs the extras that the examples need (keras, xla, demo) and Pillow.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PICTURES = EXAMPLES / "pictures"
WIDTH, HEIGHT = 420, 280  # of the largest picture, which is shown beside text
COLOURS = 128


def names() -> list[str]:
    """The examples of the gallery, in its order."""
    return re.findall(r"\(pictures/(\w+)\.png\)", (EXAMPLES / "README.md").read_text(encoding="utf-8"))


def draw(name: str) -> None:
    """Runs an example, and saves a small copy of its picture in the gallery.

    Raises:
      subprocess.CalledProcessError: if the example fails.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, str(EXAMPLES / f"{name}.py")],
            cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        keep(Path(folder) / f"{name}.png")


def keep(picture: Path) -> None:
    """Saves a small copy of a picture in the gallery."""
    with Image.open(picture) as drawn:
        small = drawn.convert("RGB")
    small.thumbnail((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
    PICTURES.mkdir(exist_ok=True)
    small.quantize(COLOURS).save(PICTURES / picture.name, optimize=True)


def main() -> None:
    for name in sys.argv[1:] or names():
        began = time.monotonic()
        draw(name)
        size = (PICTURES / f"{name}.png").stat().st_size
        print(f"{name}: {size / 1000:.0f} kB, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
