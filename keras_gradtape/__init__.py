"""Keras on gradtape: importing this package makes `gradtape` the backend of Keras.

>>> import keras_gradtape
>>> import keras
>>> keras.backend.backend()
'gradtape'

`tf.keras` after `import gradtape as tf`, and `KERAS_BACKEND=gradtape` in the environment, do the same. The
installed Keras is not modified: see `gradtape_imports/keras_hook.py`.
"""

from gradtape_imports import keras_hook as hook

hook.activate()
