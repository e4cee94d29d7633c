"""The fuzzers: one module per kind, `harness` for what they share, `__main__` for the command line."""
