"""gradtape.debug: say why. Which op broke the way to a source, and which made the first NaN."""

from gradtape.debug.explain import Explanation, explain
from gradtape.debug.lines import lines
from gradtape.debug.numerics import NumericsError, check_numerics

__all__ = ["Explanation", "NumericsError", "check_numerics", "explain", "lines"]
