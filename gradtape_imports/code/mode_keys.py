"""`tensorflow.python.saved_model.model_utils.mode_keys`: names of what a model is used for."""


class KerasModeKeys:
    """The names that Keras 2 has."""

    TRAIN = "train"
    TEST = "test"
    PREDICT = "predict"
