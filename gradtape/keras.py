"""`tf.keras`: Keras 3 itself, on gradtape, and with the spellings of Keras 2 beside its own.

Keras is an extra (`pip install "gradtape[keras]"`) and is imported when it is first used:

>>> import gradtape as tf
>>> layer = tf.keras.layers.Dense(2)
>>> layer(tf.ones([1, 3])).shape
TensorShape([1, 2])

This module is replaced by Keras' own (the one that TensorFlow shows as `tf.keras`) as soon as it is
imported, so `from gradtape.keras.layers import Dense` works as well. See `keras_gradtape`.

Where `import tensorflow` means gradtape, `TF_USE_LEGACY_KERAS=1` makes it Keras 2 (`tf_keras`), as with TensorFlow.
"""

from __future__ import annotations

import importlib.util
import sys

from gradtape_imports import tensorflow_finder

if tensorflow_finder.wants_keras2():
    if importlib.util.find_spec("tf_keras") is None:
        raise ImportError(
            "TF_USE_LEGACY_KERAS asks for Keras 2. Hint: pip install --no-deps tf_keras, or unset it."
        )
    sys.modules[__name__] = importlib.import_module("tf_keras.api._v2.keras")
else:
    if importlib.util.find_spec("keras") is None:
        raise ImportError("tf.keras is Keras, which is not installed. Hint: pip install 'gradtape[keras]'.")

    from keras_gradtape import keras2

    keras2.replace(__name__)
