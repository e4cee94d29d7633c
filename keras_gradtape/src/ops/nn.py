"""`keras.ops.nn`: functions of neural networks with Keras' types, by kind in files of their own."""

from gradtape.backend import one_call_each
from keras_gradtape.src.ops.nn_activations import *  # noqa: F403
from keras_gradtape.src.ops.nn_conv import *  # noqa: F403
from keras_gradtape.src.ops.nn_losses import *  # noqa: F403
from keras_gradtape.src.ops.nn_normalization import *  # noqa: F403
from keras_gradtape.src.ops.nn_pool import *  # noqa: F403

one_call_each(globals())
