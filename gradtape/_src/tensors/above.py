"""What stands above this room and is used in it, and in the lowest ops.

Tensors are what ops compute with, and converting, indexing and printing them computes too; rules of the simplest ops
use others. They cannot import what imports them, so they look it up here when they are called: these modules put
themselves in while `import gradtape` runs.
"""

from __future__ import annotations

from typing import Any

ops: Any = None  # gradtape._src.ops
effects: Any = None  # gradtape._src.graph.effects
autograph: Any = None  # gradtape._src.autograph.conversion
backward: Any = None  # gradtape._src.graph.backward
operations: Any = None  # gradtape._src.graph.operations
static: Any = None  # gradtape._src.graph.static
