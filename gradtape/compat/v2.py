"""`tf.compat.v2`: gradtape itself, for programs that say `import tensorflow.compat.v2 as tf`.

>>> import gradtape.compat.v2 as tf
>>> tf.constant(1.0) + 1.0
<tf.Tensor: shape=(), dtype=float32, numpy=2.0>
"""

from __future__ import annotations

from typing import Any as _Any

import gradtape as _gradtape

__version__ = _gradtape.__version__


def enable_v2_behavior() -> None:
    """Nothing to do: there is no other behaviour."""


def __getattr__(name: str) -> _Any:
    value = getattr(_gradtape, name)
    globals()[name] = value  # cached: the next access is as fast as `gradtape.<name>`
    return value


def __dir__() -> list[str]:
    return dir(_gradtape)
