"""Diagnostics: which op cut the path to a source, which op made the first NaN, what a tape holds.

The classes are what `tape.explain`, `tape.memory`, `tape.health` and `function.profile` return, with plots of them.
"""

from gradtape._src.base.source import Line
from gradtape._src.debug.explain import Explanation, explain
from gradtape._src.debug.health import Health
from gradtape._src.debug.lines import lines
from gradtape._src.debug.memory import Memory
from gradtape._src.debug.numerics import NumericsError, check_numerics
from gradtape._src.debug.plots import Plot, plot_sparsity
from gradtape._src.debug.programs import Profile
from gradtape._src.public import absent as _absent

__all__ = [
    "Explanation",
    "Health",
    "Line",
    "Memory",
    "NumericsError",
    "Plot",
    "Profile",
    "check_numerics",
    "explain",
    "lines",
    "plot_sparsity",
]

__getattr__, __dir__ = _absent.of("debug")
