"""`tf.keras`: Keras 3 itself, on gradtape, and with the spellings of Keras 2 beside its own.

Keras is an extra (`pip install "gradtape[keras]"`) and is imported when it is first used:

>>> import gradtape as tf
>>> layer = tf.keras.layers.Dense(2)
>>> layer(tf.ones([1, 3])).shape
TensorShape([1, 2])

This module is replaced by Keras' own (the one that TensorFlow shows as `tf.keras`) as soon as it is
imported, so `from gradtape.keras.layers import Dense` works as well. See `keras_gradtape`.
"""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("keras") is None:
    raise ImportError("tf.keras is Keras, which is not installed. Hint: pip install 'gradtape[keras]'.")

from keras_gradtape import keras2

keras2.replace(__name__)
