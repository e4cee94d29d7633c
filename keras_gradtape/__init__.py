"""Keras on gradtape: importing this package makes `gradtape` the backend of Keras.

>>> import keras_gradtape
>>> import keras
>>> keras.backend.backend()
'gradtape'

The same is reached by `tf.keras` after `import gradtape as tf`, and by `KERAS_BACKEND=gradtape` in
the environment. Keras on disk is not touched: see `gradtape_imports/keras_hook.py`.
"""

from gradtape_imports import keras_hook as hook

hook.activate()
