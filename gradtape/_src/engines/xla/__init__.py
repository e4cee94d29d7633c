"""The XLA engine: runs graphs as programs of XLA, through JAX. Imported when a program needs it."""
