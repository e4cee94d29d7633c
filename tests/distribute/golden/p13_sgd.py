"""A custom loop with an optimizer of Keras: momentum."""

from loops import trained


def program(tf, strategy):
    return trained(tf, strategy, lambda: tf.keras.optimizers.SGD(0.05, momentum=0.9))
