"""`tensorflow.__internal__.tf2`: TensorFlow 2 is what there is."""


def enabled() -> bool:
    """True: gradtape has only the behaviour of TensorFlow 2."""
    return True
