"""gradtape.debug: say why, show it. Which op broke the way to a source, which made the first NaN, what a tape holds.

The classes are what `tape.explain`, `tape.memory`, `tape.health` and `function.profile` return.
"""

from gradtape.debug.explain import Explanation, explain
from gradtape.debug.health import Health
from gradtape.debug.lines import lines
from gradtape.debug.memory import Memory
from gradtape.debug.numerics import NumericsError, check_numerics
from gradtape.debug.programs import Profile
from gradtape.source import Line

__all__ = [
    "Explanation",
    "Health",
    "Line",
    "Memory",
    "NumericsError",
    "Profile",
    "check_numerics",
    "explain",
    "lines",
]
