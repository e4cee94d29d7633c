"""A corpus of small real programs, and the tests that run each of them in every mode."""
