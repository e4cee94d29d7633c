"""Settings of all tests: property tests draw the same examples every time, without a deadline."""

from hypothesis import settings

settings.register_profile("gradtape", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("gradtape")
