"""Late access to packages above this one, for tensors and the lowest ops.

Converting, indexing and printing tensors uses ops, and the rules of the simplest ops use other ops. They cannot
import modules that import them, so they look them up here when they are called: `ops` registers itself while
`import gradtape` runs, the others are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import Any

ops: Any = None  # gradtape._src.ops

_LATE = {
    "effects": "gradtape._src.graph.effects",
    "autograph": "gradtape._src.autograph.conversion",
    "backward": "gradtape._src.graph.backward",
    "notebook": "gradtape._src.debug.notebook",
    "operations": "gradtape._src.graph.operations",
    "static": "gradtape._src.graph.static",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = globals()[name] = importlib.import_module(_LATE[name])
    return module


def shown(self: Any) -> str | None:
    """The HTML that a notebook shows for a value: the `_repr_html_` of all classes that have one. None: use `repr`.

    Where it fails, a notebook shows the text instead of a traceback.
    """
    try:
        return __getattr__("notebook").html(self)
    except Exception:
        return None
