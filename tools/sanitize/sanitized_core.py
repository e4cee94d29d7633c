"""A pytest plugin: every `import gradtape` of this process gets the core named by GRADTAPE_CORE."""

import importlib.util
import os
import sys

spec = importlib.util.spec_from_file_location("gradtape._core", os.environ["GRADTAPE_CORE"])
assert spec is not None and spec.loader is not None
core = importlib.util.module_from_spec(spec)
sys.modules["gradtape._core"] = core
spec.loader.exec_module(core)

import gradtape  # noqa: E402

gradtape._core = core
