"""Keras' batch normalization under a strategy: each replica has the statistics of its own part."""

from layers import trained


def program(tf, strategy):
    layers = [
        tf.keras.layers.Dense(3),
        tf.keras.layers.BatchNormalization(momentum=0.5),
        tf.keras.layers.Activation("tanh"),
    ]
    return trained(tf, strategy, layers, 6)
