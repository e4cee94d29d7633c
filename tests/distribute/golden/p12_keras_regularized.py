"""Losses that layers add are scaled once, and the last batch of one row leaves a replica without any."""

from layers import trained


def program(tf, strategy):
    layers = [tf.keras.layers.Dense(3, "tanh", kernel_regularizer=tf.keras.regularizers.L2(0.1))]
    return trained(tf, strategy, layers, 26)
