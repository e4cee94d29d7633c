"""`tensorflow.python.autograph.pyct.transformer`: transformations of source code, of which there are none."""

from __future__ import annotations

from typing import Any


class Base:
    """The base of transformations: none can be made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "tensorflow.python.autograph.pyct is internal to TensorFlow; gradtape converts functions in its own way."
        )
