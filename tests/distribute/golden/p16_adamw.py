"""A custom loop with an optimizer of Keras: weight decay."""

from loops import trained


def program(tf, strategy):
    return trained(tf, strategy, lambda: tf.keras.optimizers.AdamW(0.05, weight_decay=0.1))
