"""Package metadata of `tensorflow`, for `importlib.metadata`."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from typing import Any

from gradtape.version import GRADTAPE, VERSION


class _Alias(importlib.metadata.Distribution):
    """A package without files, in the version of TensorFlow that gradtape is like."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        about = f"gradtape {GRADTAPE} under the name of TensorFlow"
        return f"Metadata-Version: 2.1\nName: tensorflow\nVersion: {VERSION}\nSummary: {about}\n"

    def locate_file(self, path: Any) -> Any:
        raise FileNotFoundError(f"tensorflow is gradtape here, and has no file {path}")


def find(context: Any = None) -> Iterator[importlib.metadata.Distribution]:
    """The package, if `context` requests it, or all packages."""
    name = getattr(context, "name", None)
    if name is None or name.lower() == "tensorflow":
        yield _Alias()
