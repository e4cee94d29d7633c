"""The fuzzers: one module a kind, `harness` for what they share, `__main__` for the command line."""
