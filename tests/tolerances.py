"""The one tolerance table of the tests, by element type, and a comparison that uses it."""

import numpy as np

from gradtape.testing import TOLERANCES


def assert_close(actual, expected, dtype=None, factor=1.0):
    """Asserts that `actual` is within the tolerance of its type from `expected`; NaN equals NaN."""
    name = np.dtype(dtype or np.asarray(actual).dtype).name
    limit = factor * TOLERANCES.get(name, 0.0)
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=limit, atol=limit)
