"""Functions that take functions: `tf.function`, which traces one, and `tf.cond`, `tf.while_loop`, `tf.map_fn`, ..."""
