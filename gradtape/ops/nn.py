"""Losses, normalisation and dropout of tf.nn."""
