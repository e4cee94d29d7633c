"""`keras.ops.numpy`: NumPy's functions with Keras' types, by kind in files of their own."""

from keras_gradtape.src.ops.elementwise import *  # noqa: F403
