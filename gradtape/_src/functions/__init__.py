"""Functions that take functions: `tf.function`, which makes a graph of one, `tf.cond`, `tf.while_loop`, `tf.map_fn`, ..."""
