"""Keras' optimizers on gradtape: the step of all variables as one native program."""


def install() -> None:
    """Called when Keras has been imported."""
