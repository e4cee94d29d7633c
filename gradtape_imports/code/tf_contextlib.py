"""`tensorflow.python.util.tf_contextlib`: the standard library's."""

from contextlib import contextmanager as contextmanager
