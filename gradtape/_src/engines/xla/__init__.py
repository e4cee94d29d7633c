"""The XLA engine: graphs as programs of XLA, through JAX. Imported when a program asks for it, never before."""
