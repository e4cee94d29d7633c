"""A custom loop with an optimizer of Keras: moving averages of variables."""

from loops import trained


def program(tf, strategy):
    return trained(tf, strategy, lambda: tf.keras.optimizers.RMSprop(0.05, use_ema=True, ema_momentum=0.5))
