"""A custom loop with an optimizer of Keras: gradients that are clipped, in each replica, before they are added up."""

from loops import trained


def program(tf, strategy):
    return trained(tf, strategy, lambda: tf.keras.optimizers.SGD(0.5, clipnorm=0.1))
