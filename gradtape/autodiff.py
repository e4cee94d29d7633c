"""tf.autodiff: the ways to differentiate."""

from gradtape.tape import GradientTape

__all__ = ["GradientTape"]
