"""`tf.function`: a Python function as a graph."""
