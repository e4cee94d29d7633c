"""`keras.ops.numpy`: NumPy's functions with Keras' types, by kind in files of their own."""

from gradtape.backend import one_call_each
from keras_gradtape.src.ops.creation import *  # noqa: F403
from keras_gradtape.src.ops.elementwise import *  # noqa: F403
from keras_gradtape.src.ops.pairwise import *  # noqa: F403
from keras_gradtape.src.ops.products import *  # noqa: F403
from keras_gradtape.src.ops.reductions import *  # noqa: F403
from keras_gradtape.src.ops.shapes import *  # noqa: F403
from keras_gradtape.src.ops.sorting import *  # noqa: F403
from keras_gradtape.src.ops.statistics import *  # noqa: F403

one_call_each(globals())
