"""AutoGraph: Python control flow over tensors inside `tf.function`.

`convert(f)` rewrites the source of a function (`transform`), after its jumps were taken out
(`jumps`), with what is known about its variables (`variables`). The rewritten code calls
`operators`, which trace where a tensor decides. `conversion` says which functions that is done to.
"""
