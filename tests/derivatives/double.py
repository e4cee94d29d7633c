"""TensorFlow's names in double precision: a library in which every float32 is a float64.

Programs are written for float32. Central differences need more digits, so programs get this library instead:
constants, variables and all other new tensors are float64.
"""

import numpy as np

_WIDE = {"float32": "float64", "float16": "float64", "bfloat16": "float64", "complex64": "complex128"}
_FROM_NOTHING = ("zeros", "ones", "eye", "one_hot")


def widened(value):
    """Arrays and lists of floats in double precision; anything else unchanged."""
    if isinstance(value, (float, list, tuple, np.ndarray, np.generic)):
        try:
            array = np.asarray(value)
        except ValueError:  # a list of tensors of different shapes
            return value
        if array.dtype.kind in "fc":
            return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return value


class Double:
    """The library; `variables` lists the Variables that were made through it."""

    def __init__(self, tf):
        self._tf = tf
        self.variables = []
        self.hold(None)

    def __getattr__(self, name):
        if name in _WIDE:
            return getattr(self._tf, _WIDE[name])
        if name in _FROM_NOTHING:
            return lambda *args, **kwargs: self._made(name, args, kwargs)
        found = getattr(self._tf, name)
        if name == "linspace" or name.startswith("reduce_"):
            return lambda x, *args, **kwargs: found(widened(x), *args, **kwargs)
        return found

    def _made(self, name, args, kwargs):
        place = {"zeros": 1, "ones": 1}.get(name)
        if "dtype" not in kwargs and (place is None or len(args) <= place):
            kwargs["dtype"] = self._tf.float64
        return getattr(self._tf, name)(*args, **kwargs)

    def constant(self, value, *args, **kwargs):
        return self._tf.constant(widened(value), *args, **kwargs)

    def convert_to_tensor(self, value, *args, **kwargs):
        return self._tf.convert_to_tensor(widened(value), *args, **kwargs)

    def fill(self, dims, value):
        return self._tf.fill(dims, self.convert_to_tensor(value))

    def Variable(self, value, *args, **kwargs):  # noqa: N802
        v = self._tf.Variable(widened(value), *args, **kwargs)
        self.variables.append(v)
        return v

    def stop_gradient(self, x, name=None):
        """Works as usual; but while values are held, returns the first value, so that it does not vary with `x`."""
        if self.held is None:
            x = self._tf.stop_gradient(x)
            self.stopped.append(x)
            return x
        return next(self.held)

    def custom_gradient(self, f):
        """Values on which a function with a custom gradient stops gradients still change: its gradient says how."""

        def inside(*args):
            held, self.held = self.held, None
            try:
                return f(*args)
            finally:
                self.held = held

        return self._tf.custom_gradient(inside)

    def hold(self, stopped):
        """Makes `stop_gradient` return these values; None ends that."""
        self.held = None if stopped is None else iter(stopped)
        self.stopped = []
