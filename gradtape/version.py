"""`tf.version`: the TensorFlow version whose interface gradtape follows, and gradtape's own version.

Programs compare `tf.__version__` with versions of TensorFlow (`assert tf.__version__ >= "2.0"`), so
that is the version of TensorFlow whose interface gradtape follows, with gradtape's own after a
plus sign, as Python's rules for versions allow: "2.21.0+gradtape.0.2.0". gradtape's own version
alone is `GRADTAPE`.

>>> import gradtape as tf
>>> tf.__version__.startswith("2.")
True
>>> tf.__version__ == f"{tf.version.VERSION}+gradtape.{tf.version.GRADTAPE}"
True
"""

GRADTAPE = "0.2.0"
VERSION = "2.21.0"
GIT_VERSION = COMPILER_VERSION = "unknown"
# TensorFlow's version numbers of its GraphDef format; gradtape does not use that format.
GRAPH_DEF_VERSION = GRAPH_DEF_VERSION_MIN_CONSUMER = GRAPH_DEF_VERSION_MIN_PRODUCER = 0

FULL = f"{VERSION}+gradtape.{GRADTAPE}"
