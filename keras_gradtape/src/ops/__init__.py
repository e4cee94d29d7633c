"""Keras' ops on gradtape, one module for each of Keras' own.

Keras 3.16 looks for the functions of `core` here as well.
"""

from keras_gradtape.src.ops import core, image, linalg, math, nn, numpy  # noqa: F401
from keras_gradtape.src.ops.core import *  # noqa: F403
