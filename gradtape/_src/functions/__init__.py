"""Functions of functions: `tf.function`, which makes a graph of one, and `tf.cond`, `tf.while_loop`, `tf.map_fn`, ..."""
