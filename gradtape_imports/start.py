"""Runs when Python starts, from `gradtape.pth` (before Python 3.15) or `gradtape.start`.

Every start of Python in an environment with gradtape pays for it, so it imports next to nothing: it installs the
alias that the environment requests, and waits for the first import of Keras, which must know about its backend
before it chooses one.
"""

import os
import sys


class Waiting:
    """A finder that finds nothing itself: at the first import of Keras it is replaced by Keras' hook."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != "keras":
            return None
        sys.meta_path.remove(cls)  # type: ignore[arg-type]
        from gradtape_imports import keras_hook as hook

        return hook.install().find_spec(name, path, target)


def wait_for_keras() -> None:
    """Puts `Waiting` in place; `import gradtape` does so, too, where Python's start has not."""
    if Waiting not in sys.meta_path and "keras" not in sys.modules:
        sys.meta_path.insert(0, Waiting)  # type: ignore[arg-type]


def start() -> None:
    """Called once; a second call changes nothing."""
    wait_for_keras()
    if os.environ.get("GRADTAPE_AS_TENSORFLOW") == "1":
        from gradtape_imports import tensorflow_finder as finder

        finder.install()
