"""AutoGraph: Python control flow over tensors inside `tf.function`.

`convert(f)` rewrites the source of a function: first its jumps become flags (`jumps`), then statements become
calls (`transform`), which needs to know the variables that each statement reads and writes (`variables`). The
rewritten code calls `operators`, which run Python's statement or trace it. `conversion` decides which
functions are converted."""
