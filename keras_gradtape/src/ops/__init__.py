"""Keras' ops on gradtape, one module for each of Keras' own."""

from keras_gradtape.src.ops import core, image, linalg, math, nn, numpy

__all__ = ["core", "image", "linalg", "math", "nn", "numpy"]
