"""Modules of `tensorflow.python` and `tensorflow.compiler` that are more than other names: see `internals.py`."""
